-- name: attempts.attempts
SELECT a.session_id, a.trial_id, a.attempt_index, a.task_id, a.dataset, a.has_transcript, a.outcome, a.reward,
  coalesce(a.agent_type, s.agent) AS agent, coalesce(a.model_id, s.model) AS model, a.effective_tool_cap AS cap,
  a.patch_outcome_label AS label, w.reason, coalesce(w.inferred, false) AS inferred, w.localized, w.precise,
  s.n_tool_calls, s.visible_output_tokens IS NOT NULL AS low, coalesce(s.cost_usd, a.harness_cost_usd) AS cost,
  coalesce(s.input_tokens + s.output_tokens, a.harness_input_tokens + a.harness_output_tokens) AS tokens,
  a.wall_time_s AS time, a.fail_to_pass_count, a.pass_to_fail_count, a.pass_to_pass_count, a.fail_to_fail_count
FROM attempts a JOIN sessions s USING (session_id)
LEFT JOIN (
  SELECT session_id, max(detail->>'reason') FILTER (signal = 'verification.outcome') AS reason,
    bool_or(detail->>'inferred' = 'true') FILTER (signal = 'verification.outcome') AS inferred,
    bool_or(value = 'true') FILTER (signal = 'behavior.localized_correct_file') AS localized,
    bool_or(value = 'true') FILTER (signal = 'anticipation.first_tool_precision') AS precise
  FROM signals
  WHERE signal IN ('verification.outcome', 'behavior.localized_correct_file', 'anticipation.first_tool_precision')
  GROUP BY session_id
) w USING (session_id)
ORDER BY a.task_id, model, agent, a.attempt_index, a.session_id

-- name: failures.places
SELECT session_id, json_extract_string(value, '') AS level, outcome
FROM signals
JOIN (SELECT session_id, outcome FROM attempts) USING (session_id)
WHERE signal = 'verification.patch_localization' AND value IS NOT NULL
ORDER BY session_id

-- name: outcomes.outcomes
SELECT session_id, place, json_extract_string(value, '') AS label, absent, detail->>'evidence_kind' AS evidence
FROM named_signals JOIN sessions USING (session_id) WHERE signal = 'user.session_outcome'
ORDER BY session_id
