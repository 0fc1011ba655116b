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

-- name: money.losses
SELECT session_id, cause, after, cost_usd, read_usd, pause_s, lives_s, longer_usd
FROM cache_losses WHERE session_id IN (SELECT session_id FROM sessions) ORDER BY session_id, thread, step
