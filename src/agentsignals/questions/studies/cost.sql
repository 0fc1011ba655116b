-- name: cost.reasons
SELECT session_id, absent, absent_detail FROM signals WHERE signal = 'tokens.cost_usd' AND absent IS NOT NULL

-- name: cost.left_out
SELECT sum(steps.cost_usd) AS usd FROM steps JOIN sessions USING (session_id) WHERE sessions.cost_usd IS NULL

-- name: cost.sources
SELECT session_id, count(*) AS priced, count(*) FILTER (cost_source = 'recorded') AS recorded
FROM steps WHERE cost_usd IS NOT NULL
GROUP BY session_id ORDER BY session_id
