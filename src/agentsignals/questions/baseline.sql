-- name: baseline.measures
SELECT session_id, signal, version, CASE WHEN signal = 'corpus.short_messages' THEN TRY_CAST(value->>'le_20' AS DOUBLE)
  / nullif(TRY_CAST(value->>'n' AS DOUBLE), 0) ELSE number END AS number,
  signal = '{of_words}' OR (signal IN ({of_output}) AND visible_output_tokens IS NOT NULL) AS low
FROM signals JOIN sessions USING (session_id)
WHERE signal IN ({paths}) AND absent IS NULL ORDER BY signal, session_id
