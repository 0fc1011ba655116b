-- name: summary.sessions
-- Answered calls, of which the trace says whether they failed, are the denominator of `user.tool_error_rate`.
SELECT session_id, {started_at}, coalesce(cost_usd, attempt.harness_cost_usd) AS cost_usd, unpriced, visible_output_tokens IS NOT NULL AS is_bound,
  coalesce(calls.failed, 0) AS failed, coalesce(calls.n, 0) AS answered
FROM sessions LEFT JOIN (
  SELECT session_id, count(*) AS n, count(*) FILTER (status = 'error') AS failed FROM tool_calls
  WHERE thread = 'main' AND status IN ('ok', 'error') GROUP BY 1
) AS calls USING (session_id) LEFT JOIN (
  SELECT session_id, max(harness_cost_usd) AS harness_cost_usd FROM attempts GROUP BY 1
) AS attempt USING (session_id)
ORDER BY session_id
