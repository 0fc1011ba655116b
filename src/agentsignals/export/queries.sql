-- name: training.sessions
SELECT session_id, s.agent, coalesce(a.model_id, s.model) AS model, s.repo, a.dataset, a.task_id AS task,
  a.has_transcript, coalesce(trim(o.value, '"'), '') AS rung, coalesce(trim(p.value, '"'), '') AS pass_audit
FROM sessions s LEFT JOIN attempts a USING (session_id)
LEFT JOIN (SELECT session_id, value FROM signals
           WHERE level = 'attempt' AND signal = 'verification.outcome' AND absent IS NULL) o USING (session_id)
LEFT JOIN (SELECT session_id, value FROM signals
           WHERE level = 'attempt' AND signal = 'verification.pass_audit' AND absent IS NULL) p USING (session_id)
ORDER BY session_id

-- name: team.sessions
SELECT s.session_id, s.context, coalesce(strftime(s.started_at, '%G-W%V'), 'no_week') AS week, s.agent, s.model,
  s.n_prompts AS prompts,
  coalesce(c.calls, 0) AS calls, coalesce(c.failed, 0) AS failed_calls, s.n_edits AS edits,
  coalesce(s.input_tokens, 0) + coalesce(s.cache_read_tokens, 0) + coalesce(s.cache_write_tokens, 0) AS input_tokens,
  coalesce(s.output_tokens, 0) AS output_tokens, s.cost_usd, coalesce(a.outcome, o.outcome) AS outcome
FROM sessions s
LEFT JOIN (SELECT session_id, count(*) AS calls, count(*) FILTER (status = 'error') AS failed
           FROM tool_calls GROUP BY 1) c USING (session_id)
LEFT JOIN (SELECT session_id, any_value(outcome) AS outcome FROM attempts GROUP BY 1) a USING (session_id)
LEFT JOIN (SELECT session_id, any_value(value->>'$') AS outcome FROM signals
           WHERE signal = 'user.session_outcome' AND absent IS NULL GROUP BY 1) o USING (session_id)

-- name: team.values
SELECT session_id, signal, number FROM signals
WHERE level IN ('session', 'attempt') AND turn IS NULL AND absent IS NULL AND isfinite(number)

-- name: agent_trace.commits
SELECT repo, commit_sha, epoch_us(committed_at) AS at, agent_low, agent_high FROM commits
WHERE added IS NOT NULL AND list_has_any(session_ids, $ids) ORDER BY repo, committed_at, commit_sha

-- name: agent_trace.lines
SELECT l.commit_sha, l.path, l.line, l.tag, l.session_id, s.model FROM line_attribution l
LEFT JOIN sessions s USING (session_id) WHERE l.repo = $repo ORDER BY l.commit_sha, l.path, l.line
