-- name: cost.bill
SELECT session_id, agent, model, place, branch, {is_subagents} AS is_subagents, cost_usd, visible_output_tokens
FROM sessions WHERE cost_usd IS NOT NULL ORDER BY session_id

-- name: cost.calls
SELECT t.session_id, t.thread, t.step, t.seq, t.model, epoch_us(timestamp) AS timestamp,
  strftime(timestamp, '%Y-%m-%d') AS day, t.stop_reason, t.input_tokens, t.output_tokens, t.cache_read_tokens,
  t.cache_write_tokens, t.cache_write_1h_tokens, t.input_in_step, t.cost_usd, t.cost_source, t.web_searches
FROM steps AS t JOIN sessions AS s USING (session_id)
WHERE s.cost_usd IS NOT NULL AND t.cost_usd <> 0
ORDER BY t.session_id, thread, step

-- name: cost.results
-- Equal arguments and a result of equal length, with no edit of the file (or of any, if the call reads no file) between
-- the two calls: the result was there already.
WITH answered AS (
  SELECT session_id, thread, step, seq, result_seq, class, path, name, status, purpose, result_tokens,
    row_number() OVER w AS n, lag(seq) OVER w AS seq_before, lag(result_tokens) OVER w AS tokens_before
  FROM tool_calls
  WHERE result_tokens IS NOT NULL AND result_seq IS NOT NULL
  WINDOW w AS (PARTITION BY session_id, thread, name, arguments, status IN ('ok', 'unknown') ORDER BY seq)
),
last_change AS (
  SELECT again.session_id, again.seq, max(changed.seq) AS of_any,
    max(changed.seq) FILTER (changed.path = again.path) AS of_file
  FROM answered AS again
  LEFT JOIN edits AS changed
    ON changed.session_id = again.session_id AND changed.seq < again.seq AND changed.seq > again.seq_before
  WHERE {is_again}
  GROUP BY ALL
)
SELECT answered.session_id, thread, step, answered.seq, result_seq, result_tokens, name, path,
  CASE WHEN status = 'error' THEN 'failed'
  WHEN {is_again} AND class = 'read' AND path IS NOT NULL AND of_file IS NULL THEN 'reread'
  WHEN {is_again} AND of_any IS NULL AND class NOT IN ('plan', 'task', 'ask', 'edit')
  AND purpose IS DISTINCT FROM 'poll' THEN 'repeated' ELSE 'result' END AS kind
FROM answered LEFT JOIN last_change USING (session_id, seq)
ORDER BY answered.session_id, thread, result_seq, answered.seq

-- name: cost.compactions
SELECT session_id, thread, seq FROM events WHERE kind = 'compaction' ORDER BY session_id, seq
