-- name: modes.modes
-- One row for each session with a mode. `…_percent` of its committed lines are an agent's, for the replay an estimate
-- from `replayed_low` to `replayed_high`.
SELECT session_id, max(recorded) AS recorded, max(recorded_percent) AS recorded_percent, max(replayed) AS replayed,
  max(replayed_percent) AS replayed_percent, max(replayed_low) AS replayed_low, max(replayed_high) AS replayed_high,
  max(lines) AS lines
FROM (
  SELECT session_id, max(json_extract_string(value, '')) FILTER (signal = '{signal}') AS recorded,
    max(number) FILTER (signal = '{percent}') AS recorded_percent, NULL AS replayed, NULL AS replayed_percent,
    NULL AS replayed_low, NULL AS replayed_high, NULL AS lines
  FROM {named} WHERE signal IN ('{signal}', '{percent}') AND absent IS NULL GROUP BY session_id
  UNION ALL
  SELECT session_id, NULL, NULL, replace(value, 'vibe', 'vibe_coding'), 100 * number,
    100 * CAST(detail->>'low' AS DOUBLE), 100 * CAST(detail->>'high' AS DOUBLE), CAST(detail->>'n' AS BIGINT)
  FROM labels WHERE task = '{label}' AND labeller = '{labeller}'
) JOIN sessions USING (session_id)
GROUP BY session_id ORDER BY session_id

-- table: survival.by_mode
-- title: What became of the lines that agents wrote, by mode
-- of: sessions whose calls wrote lines
-- note: SWE-chat (v1, modes as recorded, sessions that map cleanly; all, collaborative, vibe): Eq 2 44.3, 38.2,
--   59.0%; Eq 3 50.3, 44.1, 64.6%; overwritten by the agent itself 9.3, 10.1, 7.1%; deleted by people 42.2, 46.9,
--   30.9%.

-- table: survival.by_repository
-- title: Lines of agents, by repository
-- of: repositories
-- note: Sessions are those that its commits are linked to.

-- table: survival.by_age
-- title: Committed lines that are still there, by age
-- of: lines in commits of the head's history
-- note: Age is counted back from the newest commit of the repository.

-- chart: survival.fates
-- title: What became of the lines that agents wrote
-- of: lines

-- chart: survival.age
-- title: Agents' committed lines that are still there, by age of the commit
-- of: lines
-- note: lines in brackets; the line is the 95% interval
