-- name: failures.calls
WITH calls AS (
  SELECT *, epoch(started_at) AS began FROM ({failures_rows.calls})
), later AS (
  SELECT *, min(CASE WHEN status = 'ok' THEN began END) OVER (PARTITION BY session_id,
    tool ORDER BY seq ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS worked_at,
    max(CASE WHEN status = 'ok' THEN seq END) OVER (PARTITION BY session_id, tool) AS worked_seq
  FROM calls
)
SELECT tool, session_id, error_class, count(*) AS n, count(*) FILTER (status = 'error') AS failed,
  count(*) FILTER (status = 'error' AND worked_seq > seq) AS mended,
  median((worked_at - began) / 60) FILTER (status = 'error') AS minutes
FROM later
GROUP BY ALL HAVING failed > 0 ORDER BY ALL

-- name: failures.kinds
-- How many sessions of a cell have so many failed calls (k) and calls (n) of a tool, and of all tools that are a measure.
WITH by_tool AS (
  SELECT session_id, tool, count(*) FILTER (status = 'error') AS k, count(*) AS n
  FROM ({failures_rows.calls}) GROUP BY ALL
), measured AS (
  SELECT session_id, CAST(sum(k) AS BIGINT) AS k_all, CAST(sum(n) AS BIGINT) AS n_all
  FROM by_tool WHERE tool NOT IN {checks} GROUP BY session_id
)
SELECT repo, cwd, agent, model, tool, k, n, coalesce(k_all, 0) AS k_all, coalesce(n_all, 0) AS n_all, count(*) AS sessions
FROM (
  SELECT * FROM by_tool UNION ALL SELECT session_id, NULL, k_all, n_all FROM measured
) LEFT JOIN measured USING (session_id) JOIN sessions USING (session_id)
GROUP BY ALL

-- name: failures_rows.calls
-- Calls that count for their tool: an equal call that failed right after an equal failure is the same failure.
SELECT session_id, seq, {tool} AS tool, name, command, status, error_class, started_at
FROM (
  SELECT *, lag((name, arguments, status)) OVER (PARTITION BY session_id ORDER BY seq) AS before
  FROM tool_calls WHERE thread = 'main'
)
WHERE status IN ('ok', 'error') AND error_class IS DISTINCT FROM 'sibling_cancelled'
  AND NOT (status = 'error' AND coalesce(before = (name, arguments, 'error'), false))

-- name: untested_changes.changed
SELECT e.session_id, e.seq AS edited, c.seq AS checked
FROM ({untested_changes_rows.last_edit}) AS e
LEFT JOIN (
  SELECT session_id, max(seq) AS seq
  FROM tool_calls WHERE class = 'test' OR shell_kind IN ('test', 'build')
  GROUP BY session_id
) AS c USING (session_id)
ORDER BY session_id

-- name: hotspots.edits
SELECT DISTINCT session_id, path
FROM edits
WHERE path IS NOT NULL AND thread = 'main' AND NOT regexp_matches(lower(path),
  '(^|/)(changelog|history|todo|tasks?|plan|package|cargo|go)\.[^/]*$|\.(md|lock|json|sum|mod)$')
ORDER BY session_id, path

-- name: waiting.ran
SELECT tool, list(hours) AS hours FROM ({waiting.each_ran}) GROUP BY tool

-- name: waiting.each_ran
SELECT tool, session_id, ran_s, least(ran_s, worked_s) / 3600 AS hours
FROM (SELECT tool, session_id, sum(ran_s) AS ran_s FROM ({waiting_rows.apart}) GROUP BY ALL)
JOIN ({waiting.times}) USING (session_id)

-- name: waiting.ended
SELECT {program} AS tool, count(*) AS n, count(*) FILTER (status = 'rejected') AS refused
FROM tool_calls WHERE status IN ('ok', 'error', 'rejected') AND thread NOT IN ('abandoned', 'replayed')
GROUP BY ALL ORDER BY ALL

-- name: waiting.waits
{waiting_rows.waits}
ORDER BY session_id, seq

-- name: waiting.times
SELECT session_id, number AS worked_s, waited_s, left_alone_s
FROM (SELECT session_id, number FROM signals WHERE signal = 'infra.work_time_s' AND number IS NOT NULL)
JOIN (
  SELECT session_id, TRY_CAST(s[1] AS DOUBLE) + TRY_CAST(s[2] AS DOUBLE) AS waited_s, TRY_CAST(s[3] AS DOUBLE) AS left_alone_s
  FROM (
    SELECT session_id, detail->>['asked_s', 'calls_s', 'left_alone_s'] AS s
    FROM signals WHERE signal = 'infra.waiting_time_s' AND number IS NOT NULL
  )
) USING (session_id)
JOIN sessions USING (session_id)

-- name: waiting_rows.spans
-- From when to when each call ran, at most.
SELECT session_id, seq, tool, until, greatest(began, until - to_microseconds(CAST(1e6 * longest AS BIGINT))) AS began
FROM (
  SELECT session_id, seq, {program} AS tool, started_at AS began, ended_at AS until, {longest} AS longest
  FROM tool_calls
  WHERE thread NOT IN ('abandoned', 'replayed') AND class NOT IN ('ask', 'task') AND ended_at > started_at
)
WHERE longest > 0

-- name: waiting_rows.apart
-- How long each call ran, each moment of a session's calls of one tool once.
SELECT session_id, seq, tool, greatest(0, epoch(until) - epoch(CASE WHEN before > began THEN before ELSE began END))
  AS ran_s
FROM (
  SELECT *, max(until) OVER (PARTITION BY session_id, tool
    ORDER BY began, until, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM ({waiting_rows.spans})
)

-- name: waiting_rows.ran
-- The same, together no longer than the agent worked.
SELECT session_id, seq, tool, ran_s * least(1, worked_s / sum(ran_s) OVER (PARTITION BY session_id, tool)) AS ran_s
FROM ({waiting_rows.apart})
JOIN (
  SELECT session_id, number AS worked_s FROM signals WHERE signal = 'infra.work_time_s' AND number IS NOT NULL
) USING (session_id)
WHERE ran_s > 0

-- name: waiting_rows.waits
SELECT session_id, seq, {program} AS tool, waited_s,
  CASE WHEN class = 'ask' OR purpose = 'plan_handoff' THEN 'question' WHEN class = 'edit' THEN 'edit' ELSE 'call' END AS kind
FROM (
  SELECT session_id, CAST(wait->>'seq' AS BIGINT) AS seq, CAST(wait->>'seconds' AS DOUBLE) AS waited_s
  FROM (
    SELECT session_id, unnest(CAST((detail->'waits') AS JSON[])) AS wait
    FROM signals WHERE signal = 'infra.waiting_time_s' AND (detail->'waits') IS NOT NULL
  )
)
JOIN tool_calls USING (session_id, seq)

-- name: untested_changes_rows.last_edit
SELECT session_id, max(seq) AS seq
FROM edits
WHERE thread = 'main' AND NOT regexp_matches(lower(path),
  '\.(md|mdx|txt|rst|adoc|json|ya?ml|toml|lock|csv|svg|png)$')
GROUP BY session_id

-- name: pushback_rows.objecting
SELECT session_id, turns.seq, turns.turn, {label} AS label
FROM signals JOIN turns USING (session_id, turn)
WHERE signal = 'chat.pushback_type' AND {label} IN ('correction', 'failure_report', 'rejection')

-- asked: loops
-- question: Where do agents repeat the same failing call?
-- sliced: sessions calls runs

-- asked: failures
-- question: Which tool calls fail most often, and do they succeed later?
-- sliced: sessions calls
-- summed: kinds

-- asked: untested_changes
-- question: Did agents test their last change?
-- sliced: sessions changed

-- asked: hotspots
-- question: Which files are changed in most sessions (hotspots)?
-- sliced: sessions edits

-- asked: waiting
-- question: Where do I wait for agents, and where do they wait for me?
-- sliced: each_ran times waits
-- summed: ended ran

-- asked: pushback
-- question: Where do I object to or correct agents?
-- sliced: sessions turns
