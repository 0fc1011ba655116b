-- name: edits.ways
SELECT session_id, via, count(*) AS n
FROM (SELECT DISTINCT session_id, seq, path, via FROM edits WHERE thread = 'main')
GROUP BY ALL ORDER BY ALL

-- name: edits.files
SELECT place, path, count(DISTINCT (session_id, seq)) AS n, count(DISTINCT session_id) AS sessions,
  sum(added) AS added, sum(removed) AS removed
FROM edits JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY ALL ORDER BY n DESC, path

-- name: coding_modes.sessions
SELECT session_id, place, {started_at} FROM sessions ORDER BY session_id

-- name: survival.fates
SELECT session_id, CAST(coalesce(detail->>'produced', '0') AS DOUBLE) AS produced,
  CAST(coalesce(detail->>'committed', '0') AS DOUBLE) AS committed,
  CAST(coalesce(detail->>'overwritten_by_self', '0') AS DOUBLE) AS overwritten_by_self,
  CAST(coalesce(detail->>'overwritten_by_other_session', '0') AS DOUBLE) AS overwritten_by_other_session,
  CAST(coalesce(detail->>'taken', '0') AS DOUBLE) AS taken,
  CAST(coalesce(detail->>'standing', '0') AS DOUBLE) AS standing
FROM labels JOIN sessions USING (session_id)
WHERE task = 'code_survival' AND labeller = 'attribution' ORDER BY session_id

-- name: survival.commits
SELECT repo, commit_sha, session_ids, written, rewritten, written_in_files, rewritten_in_files, kept
FROM commits WHERE written IS NOT NULL
ORDER BY repo, commit_sha

-- name: survival.lines
SELECT repo, commit_sha, starts_with(tag, 'agent_') AS is_agents, epoch(any_value(committed_at)) AS committed,
  epoch(any_value(newest)) AS newest, CAST(count(alive) AS BIGINT) AS known,
  CAST(count(*) FILTER (alive) AS BIGINT) AS alive
FROM line_attribution
JOIN (
  SELECT repo, commit_sha, committed_at, max(committed_at) OVER (PARTITION BY repo) AS newest FROM commits
) USING (repo, commit_sha)
GROUP BY repo, commit_sha, is_agents ORDER BY repo, commit_sha, is_agents

-- name: survival.met
SELECT session_id, number AS n
FROM labels JOIN sessions USING (session_id)
WHERE task = 'earlier_on_same_lines' AND labeller = 'attribution'
ORDER BY session_id

-- name: efficiency.effort
WITH wanted AS (
  SELECT session_id
  FROM checkpoints WHERE total_committed > 0
  UNION
  SELECT unnest(session_ids)
  FROM commits WHERE added > 0
), said AS (
  SELECT session_id, sum(length(text)) AS characters FROM turns WHERE {spoken} GROUP BY session_id
), worked AS (
  SELECT session_id, sum(number) AS agent_seconds
  FROM named_signals WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL
  GROUP BY session_id
), gaps AS (
  SELECT session_id, kind,
    epoch(timestamp) - lag(epoch(timestamp)) OVER (PARTITION BY session_id ORDER BY timestamp, seq) AS gap
  FROM events WHERE timestamp IS NOT NULL AND session_id IN (SELECT session_id FROM wanted)
), lasted AS (
  SELECT session_id,
    sum(gap) FILTER (gap <= 120 OR kind IN ('text', 'thinking', 'tool_call', 'tool_result')) AS seconds
  FROM gaps
  GROUP BY session_id
)
SELECT session_id, cost_usd AS usd,
  CASE WHEN input_tokens IS NOT NULL
    OR output_tokens IS NOT NULL THEN coalesce(input_tokens, 0) + coalesce(output_tokens, 0) + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) END AS tokens,
  characters, seconds, agent_seconds, visible_output_tokens IS NOT NULL AS low
FROM sessions JOIN wanted USING (session_id) LEFT JOIN said USING (session_id)
LEFT JOIN worked USING (session_id) LEFT JOIN lasted USING (session_id)
ORDER BY session_id

-- name: efficiency.replayed
SELECT session_id, CAST(sum(added) AS BIGINT) AS lines, bool_and(n = 1) AND count(added) = count(*) AS is_alone
FROM (
  SELECT unnest(session_ids) AS session_id, added, len(session_ids) AS n
  FROM commits WHERE relation IS NOT NULL AND relation <> 'copy'
)
JOIN sessions USING (session_id)
GROUP BY session_id ORDER BY session_id

-- name: efficiency.recorded
SELECT session_id, CAST(sum(total_committed) AS BIGINT) AS lines, bool_and(n = 1) AS is_alone
FROM checkpoints JOIN sessions USING (session_id)
JOIN (SELECT checkpoint_id, count(DISTINCT session_id) AS n FROM checkpoints GROUP BY checkpoint_id) USING
  (checkpoint_id)
WHERE total_committed IS NOT NULL
GROUP BY session_id ORDER BY session_id

-- name: weaknesses.scans
SELECT scans.*, commits.mode, commits.recorded_mode
FROM scans JOIN commits USING (repo, commit_sha)
ORDER BY repo, commit_sha, scanner, place

-- name: weaknesses.findings
SELECT repo, commit_sha, scanner, change, rule, cwe, place, owner, tag
FROM weaknesses WHERE change IN ('introduced', 'fixed')
ORDER BY ALL
