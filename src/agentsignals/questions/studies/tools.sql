-- name: tools.calls
SELECT session_id, agent, class, count(*) AS n
FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY ALL ORDER BY ALL

-- name: tools.names
SELECT name, count(*) AS n, count(DISTINCT session_id) AS sessions,
  string_agg(DISTINCT agent, ', ' ORDER BY agent) AS agents
FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY name ORDER BY n DESC, name

-- name: tool_categories.calls
SELECT session_id, kind, count(*) AS n
FROM (SELECT session_id, {kind} AS kind FROM tool_calls WHERE thread = 'main')
GROUP BY ALL ORDER BY ALL

-- name: tool_positions.calls
WITH cut AS (
  SELECT session_id, turn, number > 0 AS cut
  FROM named_signals WHERE signal = 'chat.hard_interruption' AND absent IS NULL
), placed AS (
  SELECT session_id, turn, seq, {kind} AS kind, row_number() OVER down AS forward,
    count(*) OVER (PARTITION BY session_id, turn) - row_number() OVER down + 1 AS back
  FROM tool_calls WHERE thread = 'main' AND turn IS NOT NULL
  WINDOW down AS (PARTITION BY session_id, turn ORDER BY seq, call_id)
)
SELECT least(forward, 30) AS forward, least(back, 30) AS back, kind, coalesce(cut, false) AS cut, count(*) AS n
FROM placed LEFT JOIN cut USING (session_id, turn)
GROUP BY ALL ORDER BY ALL

-- name: tool_positions.turns
WITH cut AS (
  SELECT session_id, turn, number > 0 AS cut
  FROM named_signals WHERE signal = 'chat.hard_interruption' AND absent IS NULL
), placed AS (
  SELECT session_id, turn, seq, {kind} AS kind, row_number() OVER down AS forward,
    count(*) OVER (PARTITION BY session_id, turn) - row_number() OVER down + 1 AS back
  FROM tool_calls WHERE thread = 'main' AND turn IS NOT NULL
  WINDOW down AS (PARTITION BY session_id, turn ORDER BY seq, call_id)
)
SELECT session_id, first, last, coalesce(cut, false) AS cut, count(*) AS n
FROM (
  SELECT session_id, turn, max(kind) FILTER (forward = 1) AS first, max(kind) FILTER (back = 1) AS last
  FROM placed
  GROUP BY ALL
)
LEFT JOIN cut USING (session_id, turn)
GROUP BY ALL ORDER BY ALL

-- name: transitions.classes
SELECT session_id, class, following, count(*) AS n
FROM (
  SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following
  FROM tool_calls WHERE thread = 'main'
)
WHERE following IS NOT NULL
GROUP BY ALL ORDER BY ALL

-- name: transitions.kinds
SELECT session_id, kind, following, count(*) AS n
FROM (
  SELECT session_id, kind, lead(kind) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following
  FROM (SELECT session_id, seq, call_id, {kind} AS kind FROM tool_calls WHERE thread = 'main')
)
WHERE following IS NOT NULL
GROUP BY ALL ORDER BY ALL

-- name: transitions.thirds
SELECT third, class, following, count(*) AS n
FROM (
  SELECT class, lead(class) OVER down AS following,
    CAST(floor(3 * (row_number() OVER down - 1) / count(*) OVER whole) AS BIGINT) AS third,
    count(*) OVER whole AS calls
  FROM tool_calls WHERE thread = 'main'
  WINDOW down AS (PARTITION BY session_id ORDER BY seq, call_id), whole AS (PARTITION BY session_id)
)
WHERE following IS NOT NULL AND calls >= 10
GROUP BY ALL ORDER BY ALL

-- name: tool_profiles.mixes
SELECT session_id, agent, value, CAST(detail->>'n' AS BIGINT) AS n
FROM named_signals JOIN sessions USING (session_id)
WHERE signal = 'corpus.tool_class_mix' AND absent IS NULL ORDER BY session_id
