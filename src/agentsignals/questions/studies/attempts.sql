-- study: attempts
-- order: 360
-- title: Eval runs
-- question: How did the attempts of each agent, model and data set end?
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
-- title: Attempts of eval runs
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
-- note: their tokens, reasoning and tool calls are unknown
SELECT count(*) FILTER (NOT has_transcript) FROM attempts

-- finding: attempts.localized
-- title: First attempts that changed the right file
-- of: attempts where this is known
-- unit: share of attempts
-- signals: behavior.localized_correct_file
SELECT avg(CAST(value = 'true' AS INT))
FROM signals
WHERE signal = 'behavior.localized_correct_file' AND absent IS NULL AND coalesce(attempt_index, 0) = 0

-- finding: attempts.first_tool
-- title: First attempts that first opened a file they later changed
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
-- note: not comparable with first attempts, because only failures are retried
-- signals: verification.outcome
SELECT avg(CAST(outcome = 'solved' AS INT))
FROM attempts
WHERE attempt_index > 0 AND outcome IN ('solved', 'failed')

-- finding: attempts.solved
-- title: First attempts solved
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
-- title: Spent on graders, simulated users and runs that were thrown away
-- of: attempts whose harness records it
-- unit: US dollars
SELECT sum(harness_other_cost_usd) FROM attempts WHERE harness_other_cost_usd IS NOT NULL

-- finding: attempts.time_per_solved
SELECT sum(a.wall_time_s) / nullif(count(*) FILTER (outcome = 'solved'), 0)
FROM attempts a JOIN sessions s USING (session_id)
WHERE coalesce(a.attempt_index, 0) = 0 AND outcome IN ('solved', 'failed') AND a.wall_time_s IS NOT NULL

-- table: attempts.by_treatment
-- title: Outcomes by agent, model and data set
-- of: attempts
-- note: Retries are separate, because only failures are retried, often under another cap. Tasks differ between
--   rows, so do not compare them.

-- table: attempts.each
-- title: Each attempt
-- of: attempts

-- chart: attempts.outcomes
-- title: Outcomes of first attempts
-- of: first attempts

-- chart: attempts.solved
-- title: Share of first attempts solved, by agent, model and data set
-- of: first attempts with an outcome

-- study: failures
-- order: 362
-- title: Failures of eval runs
-- question: Why did attempts fail?
-- context: eval

-- name: failures.places
SELECT session_id, json_extract_string(value, '') AS level, outcome
FROM signals
JOIN (SELECT session_id, outcome FROM attempts) USING (session_id)
WHERE signal = 'verification.patch_localization' AND value IS NOT NULL
ORDER BY session_id

-- finding: failures.count
-- of: first attempts
-- unit: first attempts

-- table: failures.places
-- title: Overlap with the gold patch
-- columns: near finest overlap:code | n attempts:count | solved:count | failed:count | share:share
-- of: attempts with a patch and a gold patch
-- note: The gold patch is one of several possible fixes.

-- table: failures.examples
-- title: Examples of each class, with evidence
-- columns: class:code | because evidence | file:code | event:count | task:code | candidate:code | attempt:count
--   | session:session
-- of: attempts that failed or were aborted

-- table: failures.not_earned
-- title: Passes by reward hacking
-- columns: verdict:code | because evidence | event:count | task:code | candidate:code | attempt:count |
--   session:session
-- of: passes that looked up the fix or changed the verifier

-- table: failures.by_candidate
-- title: By candidate
-- columns: candidate:code | class:code | n in this class:count | of failed:count | share:share | ends:share
-- of: first attempts that failed or were broken off

-- chart: failures.classes
-- title: Why first attempts failed
-- of: first attempts that failed or were broken off

-- study: outcomes
-- order: 310
-- title: Outcomes
-- question: How did sessions end, and on what evidence?
-- context: product
-- limit: A session without a verdict is neither accepted nor rejected: no commit is recorded and nobody commented. So
--   the accepted and rejected shares are lower bounds.

-- name: outcomes.outcomes
SELECT session_id, place, json_extract_string(value, '') AS label, absent, detail->>'evidence_kind' AS evidence
FROM named_signals JOIN sessions USING (session_id) WHERE signal = 'user.session_outcome'
ORDER BY session_id

-- finding: outcomes.censored
-- title: Sessions that may not have ended
-- of: sessions
-- note: still running when the traces were read, or nothing to judge
-- unit: sessions
-- signals: user.session_outcome
SELECT count(*)
FROM signals
WHERE signal = 'user.session_outcome' AND absent IS NOT NULL AND absent <> 'none_found'

-- finding: outcomes.accepted
-- title: Accepted
-- of: sessions that ended
-- unit: share of sessions
-- note: a lower bound, because some sessions have no verdict
-- signals: user.session_outcome
SELECT avg(CAST(absent IS NULL AND json_extract_string(value, '') = 'accepted' AS INT))
FROM signals
WHERE signal = 'user.session_outcome' AND (absent IS NULL OR absent = 'none_found')

-- finding: outcomes.rejected
-- title: Rejected
-- of: sessions that ended
-- unit: share of sessions
-- note: a lower bound, because some sessions have no verdict
-- signals: user.session_outcome
SELECT avg(CAST(absent IS NULL AND json_extract_string(value, '') = 'explicitly_rejected' AS INT))
FROM signals
WHERE signal = 'user.session_outcome' AND (absent IS NULL OR absent = 'none_found')

-- finding: outcomes.evidence
-- title: Sessions whose outcome has evidence
-- of: sessions that ended
-- unit: share of sessions
-- note: a commit, the person's words, the next session, an interruption, or an open question
-- signals: user.session_outcome
SELECT avg(CAST(absent IS NULL AS INT))
FROM signals
WHERE signal = 'user.session_outcome' AND (absent IS NULL OR absent = 'none_found')

-- table: outcomes.kinds
-- title: Outcomes by evidence
-- columns: outcome | evidence | sessions:count | share:share | ends:share
-- of: sessions that ended

-- chart: outcomes.kinds
-- title: How sessions ended, by evidence
-- of: sessions that ended
