-- study: baseline
-- title: Your sessions compared with a baseline file
-- question: Where do your sessions differ from those in the baseline file?

-- name: baseline.measures
SELECT session_id, signal, version, CASE WHEN signal = 'corpus.short_messages' THEN TRY_CAST(value->>'le_20' AS DOUBLE)
  / nullif(TRY_CAST(value->>'n' AS DOUBLE), 0) ELSE number END AS number,
  signal = '{of_words}' OR (signal IN ({of_output}) AND visible_output_tokens IS NOT NULL) AS low,
  absent IS NOT NULL AS unjudged
FROM signals JOIN sessions USING (session_id)
WHERE signal IN ({paths}) AND (absent IS NULL OR absent_detail LIKE 'language%') ORDER BY signal, session_id

-- finding: baseline.sessions
-- of: sessions of the baseline
-- unit: sessions

-- finding: baseline.turn_gap
-- of: your labelled messages at that turn
-- unit: share of messages
-- headline: yes

-- finding: baseline.measure_gap
-- of: your sessions
-- unit: standard deviations
-- headline: yes

-- table: baseline.turns
-- columns: turn | n your n:count | rate yours:share | base_n baseline's n:count | base_rate baseline's:share |
--   gap:share | ends:share | warning caution
-- of: your labelled messages

-- table: baseline.measures
-- title: Your sessions and those in the baseline file
-- of: your sessions, at most
-- note: Gap: the difference of the means in standard deviations (0.2 is small, 0.8 is large; Cohen 1988). Medians and
--   quantiles are shown because a few sessions have very large values.

-- chart: baseline.measures
-- title: Your sessions compared with the baseline file, by measure
-- of: your sessions, at most

-- chart: baseline.turns
-- of: your labelled messages
