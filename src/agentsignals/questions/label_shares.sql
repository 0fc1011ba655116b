-- name: sentiment.labels
-- One row for each label of a message; the latest of one labeller comes last.
SELECT session_id, turn, labeller, value, model, prompt_hash, created_at, epoch_us(created_at) AS at
FROM labels WHERE task = 'sentiment' AND turn IS NOT NULL
ORDER BY session_id, turn, labeller, created_at NULLS FIRST, value

-- name: sentiment.messages
-- One row for each message of labelled sessions, with the model it was addressed to.
WITH answers AS (SELECT session_id, seq, model FROM steps WHERE thread = 'main' AND model <> ''),
opened AS (SELECT session_id, arg_min(model, seq) AS model FROM answers GROUP BY session_id)
SELECT said.session_id, said.turn, place,
  coalesce(answers.model, CASE WHEN said.turn = 0 THEN opened.model END, sessions.model) AS model
FROM turns AS said JOIN sessions USING (session_id) LEFT JOIN opened USING (session_id)
ASOF LEFT JOIN answers ON said.session_id = answers.session_id AND said.seq > answers.seq
WHERE said.kind NOT IN ({unjudged}) AND said.session_id IN (SELECT session_id FROM labels WHERE task = 'sentiment')
ORDER BY said.session_id, said.turn

-- name: pushback.labels
-- One row for each labelled message and labeller, without the rules, whose labels repeat the signal.
SELECT session_id, turn, labeller, value,
  TRY_CAST(json_extract(labels.detail, '$.probabilities.non_pushback') AS DOUBLE) AS quiet
FROM labels JOIN sessions USING (session_id)
WHERE task = 'pushback' AND turn IS NOT NULL AND seq IS NULL AND value IS NOT NULL
  AND split_part(labeller, ':', 1) <> '{rules}'
QUALIFY row_number() OVER (PARTITION BY session_id, turn, labeller ORDER BY created_at DESC NULLS LAST) = 1
ORDER BY session_id, turn, labeller
