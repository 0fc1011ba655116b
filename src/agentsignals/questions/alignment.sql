-- name: runs.facts
SELECT s.session_id, s.agent, coalesce(a.model_id, s.model) AS model, a.task_id, a.trial_id, a.attempt_index,
  a.outcome, a.patch_outcome_label AS patch, a.exit_status AS ended
FROM sessions s LEFT JOIN attempts a USING (session_id) WHERE list_contains($ids, s.session_id)

-- name: runs.of_task
SELECT session_id FROM attempts JOIN (SELECT session_id, n_tool_calls FROM sessions) USING (session_id)
WHERE task_id = $name AND n_tool_calls > 0 ORDER BY attempt_index, session_id LIMIT {limit}

-- name: runs.of_trial
SELECT session_id FROM attempts JOIN (SELECT session_id, n_tool_calls FROM sessions) USING (session_id)
WHERE trial_id = $name AND n_tool_calls > 0 ORDER BY attempt_index, session_id LIMIT {limit}
