-- study: attempts
-- order: 360
-- title: Eval runs
-- question: How many attempts of each agent, model and data set were solved?
-- context: eval

-- name: attempts.attempts
SELECT a.session_id, a.trial_id, a.attempt_index, a.task_id, a.dataset, a.has_transcript, a.outcome, a.reward,
  coalesce(a.agent_type, s.agent) AS agent, coalesce(a.model_id, s.model) AS model, a.effective_tool_cap AS cap,
  a.patch_outcome_label AS label, w.reason, coalesce(w.inferred, false) AS inferred, w.localized, w.precise,
  s.n_tool_calls, s.visible_output_tokens IS NOT NULL AS low, coalesce(s.cost_usd, a.harness_cost_usd) AS cost,
  coalesce(s.input_tokens + s.output_tokens, a.harness_input_tokens - coalesce(a.harness_cache_read_tokens, 0) + a.harness_output_tokens) AS tokens,
  a.harness_other_cost_usd AS other_cost, a.wall_time_s AS time, a.fail_to_pass_count, a.pass_to_fail_count, a.pass_to_pass_count, a.fail_to_fail_count
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

-- finding: attempts.count
-- title: Number of eval attempts
-- of: attempts
-- unit: attempts
SELECT count(*) FROM attempts

-- finding: attempts.trials
-- title: Trials
-- of: attempts
-- unit: trials
SELECT count(DISTINCT trial_id) FROM attempts

-- finding: attempts.tasks
-- title: Tasks
-- of: attempts
-- unit: tasks
SELECT count(DISTINCT task_id) FROM attempts

-- finding: attempts.without_transcript
-- title: Attempts without a transcript
-- of: attempts
-- unit: attempts
-- note: the tokens, reasoning and tool calls of these attempts are unknown
SELECT count(*) FILTER (NOT has_transcript) FROM attempts

-- finding: attempts.localized
-- title: Attempts whose first change was in a file of the reference solution
-- of: attempts where this is known
-- unit: share of attempts
-- signals: behavior.localized_correct_file
SELECT avg(CAST(value = 'true' AS INT))
FROM signals
WHERE signal = 'behavior.localized_correct_file' AND absent IS NULL AND coalesce(attempt_index, 0) = 0

-- finding: attempts.first_tool
-- title: Attempts that changed the first file they opened
-- of: attempts where this is known
-- unit: share of attempts
-- signals: anticipation.first_tool_precision
SELECT avg(CAST(value = 'true' AS INT))
FROM signals
WHERE signal = 'anticipation.first_tool_precision' AND absent IS NULL AND coalesce(attempt_index, 0) = 0

-- finding: attempts.retries_solved
-- title: Retries solved
-- of: attempts where this is known
-- unit: share of attempts
-- note: do not compare this with other attempts: only tasks that failed are retried
-- signals: verification.outcome
SELECT avg(CAST(outcome = 'solved' AS INT))
FROM attempts
WHERE attempt_index > 0 AND outcome IN ('solved', 'failed')

-- finding: attempts.solved
-- title: Attempts that solved their task, retries excluded
-- of: attempts where this is known
-- unit: share of attempts
-- signals: verification.outcome
SELECT avg(CAST(outcome = 'solved' AS INT))
FROM attempts
WHERE coalesce(attempt_index, 0) = 0 AND outcome IN ('solved', 'failed')

-- finding: attempts.cost_per_solved
SELECT sum(coalesce(s.cost_usd, a.harness_cost_usd)) / nullif(count(*) FILTER (outcome = 'solved'), 0)
FROM attempts a JOIN sessions s USING (session_id)
WHERE coalesce(a.attempt_index, 0) = 0 AND outcome IN ('solved', 'failed') AND coalesce(s.cost_usd, a.harness_cost_usd) IS NOT NULL

-- finding: attempts.tokens_per_solved
SELECT sum(coalesce(s.input_tokens + s.output_tokens, a.harness_input_tokens - coalesce(a.harness_cache_read_tokens, 0) + a.harness_output_tokens)) / nullif(count(*) FILTER (outcome = 'solved'), 0)
FROM attempts a JOIN sessions s USING (session_id)
WHERE coalesce(a.attempt_index, 0) = 0 AND outcome IN ('solved', 'failed') AND coalesce(s.input_tokens + s.output_tokens, a.harness_input_tokens - coalesce(a.harness_cache_read_tokens, 0) + a.harness_output_tokens) IS NOT NULL

-- finding: attempts.other_cost
-- title: Cost of graders, simulated users and discarded runs
-- of: attempts whose harness records it
-- unit: US dollars
SELECT sum(harness_other_cost_usd) FROM attempts WHERE harness_other_cost_usd IS NOT NULL

-- finding: attempts.time_per_solved
SELECT sum(a.wall_time_s) / nullif(count(*) FILTER (outcome = 'solved'), 0)
FROM attempts a JOIN sessions s USING (session_id)
WHERE coalesce(a.attempt_index, 0) = 0 AND outcome IN ('solved', 'failed') AND a.wall_time_s IS NOT NULL

-- table: attempts.by_treatment
-- title: Solved and failed attempts, by agent, model and data set
-- of: attempts
-- note: Retries are counted separately, because only failed attempts are retried, often with other limits. Do not
--   compare rows: their tasks differ.

-- table: attempts.each
-- title: Each attempt
-- of: attempts

-- chart: attempts.outcomes
-- title: Attempts: solved, failed or not judged
-- of: attempts, retries excluded

-- chart: attempts.solved
-- title: Share of attempts solved, by agent, model and data set
-- of: judged attempts, retries excluded

-- study: failures
-- order: 362
-- title: Why eval attempts failed
-- question: Why did eval attempts fail?
-- context: eval

-- name: failures.places
SELECT session_id, json_extract_string(value, '') AS level, outcome
FROM signals
JOIN (SELECT session_id, outcome FROM attempts) USING (session_id)
WHERE signal = 'verification.patch_localization' AND value IS NOT NULL
ORDER BY session_id

-- finding: failures.count
-- of: attempts, retries excluded
-- unit: attempts

-- table: failures.places
-- title: How near attempts came to the code that the reference solution changes
-- columns: near finest overlap:code | n attempts:count | solved:count | failed:count | share:share
-- of: attempts with a patch and a gold patch
-- note: The reference solution (gold patch) is only one of several possible fixes.

-- table: failures.examples
-- title: Examples of each reason for failure, with evidence
-- columns: class:code | because evidence | file:code | event:count | task:code | candidate:code | attempt:count
--   | session:session
-- of: attempts that failed or were aborted

-- table: failures.not_earned
-- title: Passed attempts that cheated (reward hacking)
-- columns: verdict:code | because evidence | event:count | task:code | candidate:code | attempt:count |
--   session:session
-- of: passes that looked up the fix or changed the verifier

-- table: failures.by_candidate
-- title: By candidate
-- columns: candidate:code | class:code | n in this class:count | of failed:count | share:share | ends:share
-- of: failed or aborted attempts, retries excluded

-- chart: failures.classes
-- title: Why attempts failed
-- of: failed or aborted attempts, retries excluded

-- study: outcomes
-- order: 310
-- title: Outcomes
-- question: How did sessions end, and what shows it?
-- context: product
-- limit: A session counts as neither accepted nor rejected if no commit followed and nobody commented on the result.
--   So the real shares of accepted and of rejected sessions are higher.

-- name: outcomes.outcomes
SELECT session_id, place, json_extract_string(value, '') AS label, absent, detail->>'evidence_kind' AS evidence
FROM named_signals JOIN sessions USING (session_id) WHERE signal = 'user.session_outcome'
ORDER BY session_id

-- finding: outcomes.censored
-- title: Sessions that may still be running
-- of: sessions
-- note: sessions that were still running when their logs were read, or in which there was nothing to judge
-- unit: sessions
-- signals: user.session_outcome
SELECT count(*)
FROM signals
WHERE signal = 'user.session_outcome' AND absent IS NOT NULL AND absent <> 'none_found'

-- finding: outcomes.accepted
-- title: Accepted
-- of: sessions that ended
-- unit: share of sessions
-- note: the real share is higher: for some sessions it is not known
-- signals: user.session_outcome
SELECT avg(CAST(absent IS NULL AND json_extract_string(value, '') = 'accepted' AS INT))
FROM signals
WHERE signal = 'user.session_outcome' AND (absent IS NULL OR absent = 'none_found')

-- finding: outcomes.rejected
-- title: Rejected
-- of: sessions that ended
-- unit: share of sessions
-- note: the real share is higher: for some sessions it is not known
-- signals: user.session_outcome
SELECT avg(CAST(absent IS NULL AND json_extract_string(value, '') = 'explicitly_rejected' AS INT))
FROM signals
WHERE signal = 'user.session_outcome' AND (absent IS NULL OR absent = 'none_found')

-- finding: outcomes.evidence
-- title: Sessions where something shows how they ended
-- of: sessions that ended
-- unit: share of sessions
-- note: evidence is a commit, what the person said, the next session, an interruption, or an open question
-- signals: user.session_outcome
SELECT avg(CAST(absent IS NULL AS INT))
FROM signals
WHERE signal = 'user.session_outcome' AND (absent IS NULL OR absent = 'none_found')

-- table: outcomes.kinds
-- title: How sessions ended, and what shows it
-- columns: outcome | evidence | sessions:count | share:share | ends:share
-- of: sessions that ended

-- chart: outcomes.kinds
-- title: How sessions ended, and what shows it
-- of: sessions that ended
