-- name: large_results.results
SELECT * REPLACE (CASE WHEN part >= {least_part} THEN part END AS part)
FROM (
  WITH moments AS (
    SELECT session_id, thread, seq, 'step' AS what, NULL AS call_seq, NULL AS name, NULL AS tokens
    FROM steps
    UNION ALL
    SELECT session_id, thread, seq, 'compaction', NULL, NULL, NULL
    FROM events WHERE kind = 'compaction'
    UNION ALL
    SELECT session_id, thread, result_seq, 'result', seq, name, result_tokens
    FROM tool_calls WHERE result_tokens > 0 AND result_seq IS NOT NULL AND status <> 'error'
  ), parted AS (
    SELECT *, count(*) FILTER (what = 'compaction') OVER
      (PARTITION BY session_id, thread ORDER BY seq ROWS UNBOUNDED PRECEDING) AS part
    FROM moments WHERE thread IN ('abandoned', 'main', 'replayed')
  ), counted AS (
    SELECT *, count(*) FILTER (what = 'step') OVER (PARTITION BY session_id, thread,
      part ORDER BY seq ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS times
    FROM parted
  )
  SELECT session_id, call_seq AS seq, name, tokens, times,
    tokens * times / sum(tokens * times) OVER (PARTITION BY session_id) AS part,
    count(*) OVER (PARTITION BY session_id) AS results
  FROM counted WHERE what = 'result' AND times > 0
)
QUALIFY part >= {least_part} OR row_number() OVER (PARTITION BY session_id ORDER BY part DESC, seq) = 1

-- name: money_rows.lost
-- Model calls that were sent again what the call before was sent, and did not read it from the cache there was.
SELECT session_id, seq, step, model, least(size, lag(size) OVER w) - coalesce(cache_read_tokens, 0) AS lost_tokens,
  cost_usd, epoch(timestamp) - lag(epoch(timestamp)) OVER w AS pause_s, CASE WHEN max(cache_write_1h_tokens) OVER
  earlier > 0 THEN {long_lifetime_s} ELSE {lifetime_s} END AS lives_s
FROM (SELECT *, coalesce(input_tokens, 0) + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) AS size
  FROM steps WHERE thread IN ('main', 'abandoned', 'replayed') AND cost_usd > 0 AND coalesce(stop_reason NOT
  SIMILAR TO '(session_total|iteration_.*)', true) AND input_in_step IS NULL AND session_id NOT IN (SELECT session_id FROM sessions WHERE
  parent_session_id IS NOT NULL))
WHERE size > 0
WINDOW w AS (PARTITION BY session_id, thread ORDER BY step), earlier AS (PARTITION BY session_id, thread ORDER BY
  step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
QUALIFY size >= {shrunk} * lag(size) OVER w AND max(coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens,
  0)) OVER earlier > 0
