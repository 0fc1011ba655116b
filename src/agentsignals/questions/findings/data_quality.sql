-- name: untold.sessions
SELECT session_id, agent, cost_usd, visible_output_tokens FROM sessions ORDER BY session_id

-- name: untold.artifacts
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
