-- study: edits
-- order: 120
-- title: Edits
-- question: How do agents change files?
-- limit: Some agents cannot edit a file that they have not read. For them, the share of edits after a read says
--   nothing.

-- name: edits.ways
SELECT session_id, via, count(*) AS n
FROM (SELECT DISTINCT session_id, seq, path, via FROM edits WHERE thread = 'main')
GROUP BY ALL ORDER BY ALL

-- name: edits.files
SELECT place, path, count(DISTINCT (session_id, seq)) AS n, count(DISTINCT session_id) AS sessions,
  sum(added) AS added, sum(removed) AS removed
FROM edits JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY ALL ORDER BY n DESC, path

-- name: edits_rows.of_file
SELECT session_id, count(DISTINCT seq) AS n
FROM edits JOIN sessions USING (session_id)
WHERE thread = 'main' AND path = $path AND coalesce(place, '') = $place
GROUP BY session_id

-- finding: edits.read_first
-- signals: corpus.read_before_edit_rate
-- title: Edits of files that the agent had read or changed before
-- of: edit attempts on existing files
-- unit: share of edit attempts

-- finding: edits.per_read
-- signals: behavior.edit_to_read_ratio
-- title: Number of edits per file read
-- of: reads
-- unit: edits per read

-- finding: edits.lines.median
-- signals: behavior.diff_lines
-- title: Median lines added and removed per session
-- unit: lines
-- note: sum over all edits, so a line edited twice counts twice; sessions without edits count as 0

-- finding: edits.by_shell
-- title: File changes made by shell commands
-- of: file changes
SELECT avg(CAST(via = 'shell' AS INT))
FROM (SELECT DISTINCT session_id, seq, path, via FROM edits WHERE thread = 'main')

-- finding: edits.again
-- title: Edited regions that were edited again later
-- of: edited regions
-- unit: share of regions
-- signals: user.region_re_edit_count
SELECT sum(number) / sum(CAST(detail->>'regions' AS DOUBLE))
FROM signals
WHERE signal = 'user.region_re_edit_count'

-- table: edits.files
-- title: Most edited files
-- columns: path file:code | place project:code | changes:count | sessions:count | added:count | removed:count
-- of: file changes

-- chart: edits.read_first.agents
-- title: Edits of files that the agent had read or changed before, by agent
-- of: edit attempts
-- note: the number of attempted edits is in brackets; lines are 95% intervals

-- study: coding_modes
-- order: 200
-- title: Who writes the code: agent, person or both
-- question: Who wrote the committed code, agents or people?
-- context: product

-- name: coding_modes.sessions
SELECT session_id, place, {started_at} FROM sessions ORDER BY session_id

-- finding: coding_modes.percent.median
-- title: Agent's share of a session's committed lines, median, as the data set records it
-- note: the SWE-chat paper reports 73.3
-- unit: percent of committed lines
-- signals: chat.agent_percentage
SELECT median(number) FROM signals WHERE signal = 'chat.agent_percentage'

-- table: coding_modes.roads
-- title: Who wrote the code (agent, person or both): as the data set records it, and as computed from the edits
-- of: sessions with both

-- chart: coding_modes.shares
-- title: Who writes the code: agent, person or both
-- of: sessions
-- note: the number of sessions is in brackets; lines are 95% intervals

-- study: survival
-- order: 210
-- title: Code survival
-- question: How many lines written by agents survive?
-- context: product
-- limit: Survival of lines can be defined in many ways; each figure states its definition. A line that was
--   overwritten and later restored counts both as overwritten and as kept.
-- limit: A line survives if git blame still assigns it to the commit that added it; re-indented lines do not. Commits
--   that the newest commit does not build on are excluded.

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

-- finding: survival.met
-- title: Sessions that changed lines of an earlier session, or wrote next to them
-- of: sessions that wrote lines
-- note: lines are followed through all commits of the repository's working tree
-- unit: share of sessions

-- finding: survival.efficiency
-- title: Lines by agents that reached a commit (equation 2 of the SWE-chat paper)
-- of: lines
-- note: a line counts if any later commit contains it; the SWE-chat paper reports 44.3% (version 1) and 59% (version
--   2)

-- finding: survival.rate
-- title: Lines by agents that reached a commit, of those the session did not overwrite (equation 3 of the SWE-chat
--   paper)
-- of: lines
-- note: the SWE-chat paper (version 1) reports 50.3%

-- finding: survival.strict
-- title: Lines by agents that the next commit keeps, in the files it changed (equation 2 of the SWE-chat paper)
-- of: lines
-- note: counted are the lines that the agent wrote since the previous commit of the session

-- finding: survival.strict.rate
-- title: Lines by agents that the next commit keeps, of those the session did not overwrite, in the files it changed
--   (equation 3 of the SWE-chat paper)
-- of: lines
-- note: counted are the lines that the agent wrote since the previous commit of the session

-- finding: survival.window
-- title: Lines by agents that the next commit keeps, in all files (equation 2 of the SWE-chat paper)
-- of: lines
-- note: counted are the lines that the agent wrote since the previous commit of the session; lines committed later
--   count as lost

-- finding: survival.window.rate
-- title: Lines by agents that the next commit keeps, of those the session did not overwrite, in all files (equation 3
--   of the SWE-chat paper)
-- of: lines
-- note: counted are the lines that the agent wrote since the previous commit of the session; lines committed later
--   count as lost

-- finding: survival.alive
-- title: Committed lines by agents that still exist
-- of: lines of commits in HEAD's history
-- unit: share of lines

-- finding: survival.alive.others
-- title: Other lines of the same commits that still exist
-- of: lines of commits in HEAD's history
-- unit: share of lines

-- study: efficiency
-- order: 220
-- title: Efficiency
-- question: What do 100 committed lines by agents cost in time, prompts and dollars?
-- context: product

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
    sum(gap) FILTER (gap <= {idle_s} OR kind IN ('text', 'thinking', 'tool_call', 'tool_result')) AS seconds
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

-- study: weaknesses
-- order: 230
-- title: Weaknesses
-- question: Which security weaknesses did commits add, and did agents or people write those lines?
-- context: product

-- name: weaknesses.scans
SELECT scans.*, commits.mode, commits.recorded_mode
FROM scans JOIN commits USING (repo, commit_sha)
ORDER BY repo, commit_sha, scanner, place

-- name: weaknesses.findings
SELECT repo, commit_sha, scanner, change, rule, cwe, place, owner, tag
FROM weaknesses WHERE change IN ('introduced', 'fixed')
ORDER BY ALL

-- table: weaknesses.rates
-- title: Security weaknesses per 1,000 added lines
-- columns: attribution | by | group | files | lines added lines:count | introduced:count | introduced_rate per
--   1,000:number | low from:number | high to:number | fixed:count | fixed_rate fixed per 1,000:number
-- of: commits that added lines

-- table: survival.by_mode
-- title: What became of lines written by agents, by who wrote the session's code
-- of: sessions that wrote lines
-- note: The same figures in the SWE-chat paper (version 1), for all, collaborative and vibe-coding sessions: lines
--   that reached a commit 44.3, 38.2, 59.0% (equation 2) or 50.3, 44.1, 64.6% (equation 3); overwritten by the agent
--   itself 9.3, 10.1, 7.1%; deleted by people 42.2, 46.9, 30.9%.

-- table: survival.by_repository
-- title: What became of lines by agents, by repository
-- of: repositories
-- note: Only sessions that wrote commits of the repository are counted.

-- table: survival.by_age
-- title: Committed lines that still exist, by age of the commit
-- of: lines of commits in HEAD's history
-- note: Age is the time from a commit to the newest commit of the repository.

-- chart: survival.fates
-- title: What became of lines written by agents
-- of: lines

-- chart: survival.age
-- title: Committed lines by agents that still exist, by age of the commit
-- of: lines
-- note: the number of lines is in brackets; error bars are 95% intervals
