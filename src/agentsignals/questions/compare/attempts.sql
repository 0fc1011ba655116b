-- name: attempts.attempts
SELECT a.session_id, a.trial_id, a.attempt_index, a.task_id, a.knobs, s.format, s.agent_version, s.repo,
  a.facts->>'$.root' AS root, coalesce(a.agent_type, s.agent) AS agent_type, coalesce(a.model_id, s.model) AS model_id,
  {columns}
FROM attempts a JOIN sessions s USING (session_id)
WHERE session_id IN ({attempts.chosen}) ORDER BY session_id

-- name: attempts.values
SELECT session_id, signal, value, absent, absent_detail, detail FROM signals
WHERE level = 'attempt' AND signal IN ({signals}) AND session_id IN ({attempts.chosen})

-- name: attempts.chosen
SELECT session_id FROM sessions JOIN (SELECT * EXCLUDE (trial_id, attempt_index) FROM attempts) USING (session_id)
WHERE ({where})
