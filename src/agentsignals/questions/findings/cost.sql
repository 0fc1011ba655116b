-- name: large_results.results
-- The dearest results; the first row has the number of all.
WITH paid AS (
  SELECT session_id, sum(cost_usd) AS usd FROM charges WHERE cause = 'carried_results' GROUP BY session_id
), parted AS (
  WITH moments AS (
    SELECT session_id, thread, seq, 'step' AS what, NULL AS call_seq, NULL AS name, NULL AS tokens
    FROM steps WHERE coalesce(input_tokens, 0) + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) > 0
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
    tokens * times / sum(tokens * times) OVER (PARTITION BY session_id) AS part, count(*) OVER () AS results
  FROM counted WHERE what = 'result' AND times > 0
), dear AS (
  SELECT CASE WHEN part >= {least_part} THEN part * coalesce(usd, 0.0) END AS cost_usd, parted.*
  FROM parted LEFT JOIN paid USING (session_id)
  ORDER BY cost_usd DESC NULLS LAST, session_id, seq LIMIT {most_results}
)
SELECT session_id, cost_usd, seq, name, tokens, times,
  CASE WHEN row_number() OVER (ORDER BY cost_usd DESC NULLS LAST, session_id, seq) = 1 THEN results END AS results
FROM dear

-- name: money.writes
-- What was written for minutes.
SELECT session_id, model, epoch_us(date_trunc('day', timestamp)) AS at,
  sum(cache_write_tokens - coalesce(cache_write_1h_tokens, 0)) AS tokens
FROM steps WHERE thread IN ('abandoned', 'main', 'replayed') AND cache_write_tokens > 0
GROUP BY ALL

-- name: money_rows.losses
SELECT session_id, seq, step, model, after, tokens AS lost_tokens, cost_usd, pause_s, lives_s FROM cache_losses

-- name: money_rows.compaction
SELECT session_id, seq, turn FROM events WHERE kind = 'compaction'

-- name: money_rows.carried_results
SELECT session_id, seq, name, path, result_tokens FROM tool_calls WHERE result_tokens > 0

-- name: data_quality.artifacts
SELECT sum(records) AS records, sum(skipped) AS skipped
FROM artifacts
HAVING sum(records) > 0 OR sum(skipped) > 0

-- name: evidence.unpriced
SELECT session_id, min(seq) AS seq, any_value(steps.model) AS model
FROM steps JOIN sessions USING (session_id) WHERE sessions.cost_usd IS NULL
GROUP BY session_id

-- name: evidence.output
SELECT session_id, min(seq) AS seq, visible_output_tokens
FROM steps JOIN sessions USING (session_id) WHERE visible_output_tokens IS NOT NULL
GROUP BY ALL

-- name: evidence.records
SELECT path, skipped, skipped_reasons FROM artifacts WHERE skipped > 0 ORDER BY skipped DESC

-- asked: few_sessions
-- question: Do a few sessions make up most of the cost?
-- sliced: sessions

-- asked: expensive_projects
-- question: In which projects does a session cost more?
-- sliced: sessions
-- needs_charges: yes

-- asked: money
-- question: Where did the money go?
-- sliced: sessions losses writes
-- needs_charges: yes

-- asked: large_results
-- question: Where did the money go?
-- sliced: sessions
-- summed: results

-- asked: repeated_work
-- question: Which work is done, and paid for, more than once?
-- sliced: sessions repeats
-- needs_charges: yes

-- asked: data_quality
-- question: Which costs and records are missing from the data?
-- sliced: sessions
-- summed: artifacts
