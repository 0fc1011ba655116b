-- name: upgrades.sessions
SELECT session_id, agent, agent_version, model, place, {started_at}, n_prompts, n_edits, parent_session_id,
  main_cost_usd, visible_output_tokens, unpriced,
  main_input_tokens + coalesce(main_cache_read_tokens, 0) + coalesce(main_cache_write_tokens, 0) AS sent_tokens,
  list_contains(conventions, 'rewinds_logged') AS logs_rewinds
FROM sessions WHERE NOT ({is_subagents}) ORDER BY session_id

-- name: upgrades.rewinds
SELECT session_id, count(*) AS n FROM events WHERE kind = 'rewind' GROUP BY session_id ORDER BY session_id

-- name: upgrades.edited
SELECT session_id, epoch(min(coalesce(ended_at, started_at))) - epoch(any_value(began)) AS seconds
FROM (SELECT session_id, min(timestamp) AS began FROM turns GROUP BY session_id)
JOIN tool_calls USING (session_id)
WHERE thread = 'main' AND status = 'ok' AND (session_id, seq) IN (SELECT (session_id, seq) FROM edits)
GROUP BY session_id ORDER BY session_id
