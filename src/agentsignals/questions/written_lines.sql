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
