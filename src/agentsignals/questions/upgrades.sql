-- name: upgrades.rewinds
SELECT session_id, count(*) AS n FROM events WHERE kind = 'rewind' GROUP BY session_id

-- name: upgrades.edited
SELECT session_id, epoch(min(coalesce(ended_at, started_at))) - epoch(any_value(began)) AS seconds
FROM (SELECT session_id, min(timestamp) AS began FROM turns GROUP BY session_id)
JOIN tool_calls USING (session_id)
WHERE thread = 'main' AND status = 'ok' AND (session_id, seq) IN (SELECT (session_id, seq) FROM edits)
GROUP BY session_id
