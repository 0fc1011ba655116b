-- name: messages.lengths
SELECT session_id, agent, place, length(trim(text, concat(' ', chr(9), chr(10), chr(13)))) AS chars
FROM turns JOIN sessions USING (session_id)
WHERE {spoken} AND length(trim(text, concat(' ', chr(9), chr(10), chr(13)))) > 0
ORDER BY session_id, turn

-- name: messages.common
SELECT value, CAST(detail->>'messages' AS BIGINT) AS messages
FROM named_signals WHERE signal = 'corpus.top_duplicate_messages[]' AND absent IS NULL

-- name: people.later
SELECT session_id, turn, json_extract_string(value, '') <> 'non_pushback' AS objects
FROM named_signals WHERE signal = 'chat.pushback_type' AND absent IS NULL AND turn > 0
ORDER BY session_id, turn

-- name: people.short
SELECT session_id, CAST(value->>'le_20' AS INT) AS le_20, CAST(value->>'n' AS INT) AS n
FROM named_signals WHERE signal = 'corpus.short_messages' AND absent IS NULL
ORDER BY session_id

-- name: people.cuts
SELECT session_id, CAST(sum(number) AS INT) AS cut, count(number) AS n
FROM named_signals WHERE signal = 'chat.hard_interruption'
GROUP BY session_id ORDER BY session_id

-- name: people.turns
SELECT session_id, least(turn + 1, 6) AS at, count(*) FILTER (signal = 'chat.hard_interruption') AS n,
  count(*) FILTER (signal = 'chat.hard_interruption' AND number = 1) AS cut,
  count(*) FILTER (signal = 'chat.pushback_type' AND absent IS NULL) AS judged, count(*) FILTER (
  signal = 'chat.pushback_type' AND absent IS NULL AND json_extract_string(value, '') <> 'non_pushback') AS objects
FROM named_signals WHERE signal IN ('chat.hard_interruption', 'chat.pushback_type')
GROUP BY 1, 2 ORDER BY 1, 2

-- name: intents.turns
WITH of_turns AS (
  SELECT session_id, turn, max(json_extract_string(value, '')) FILTER (signal = 'chat.prompt_intent') AS intent,
    max(detail->>'method') FILTER (signal = 'chat.prompt_intent') AS method,
    max(detail->>'labeller') FILTER (signal = 'chat.prompt_intent') AS labeller,
    max(number) FILTER (signal = 'chat.turn_autonomy_s') AS seconds,
    bool_or(number > 0) FILTER (signal = 'chat.hard_interruption') AS cut,
    max(json_extract_string(value, '')) FILTER (signal = 'chat.pushback_type') AS pushback
  FROM named_signals
  WHERE signal IN ('chat.prompt_intent', 'chat.turn_autonomy_s', 'chat.hard_interruption', 'chat.pushback_type')
    AND absent IS NULL
  GROUP BY ALL
)
SELECT session_id, turn, intent, method, labeller, seconds, cut,
  CAST(lead(pushback) OVER (PARTITION BY session_id ORDER BY turn) <> 'non_pushback' AS INT) AS objected
FROM of_turns WHERE intent IS NOT NULL
ORDER BY session_id, turn

-- name: intents.personas
SELECT session_id, json_extract_string(value, '') AS persona, detail->>'method' AS rule
FROM named_signals WHERE signal = 'chat.user_persona' AND absent IS NULL
ORDER BY session_id

-- name: topics.prompts
WITH of_turns AS (
  SELECT session_id, turn, max(json_extract_string(value, '')) FILTER (signal = 'chat.prompt_language') AS language,
    max(json_extract_string(value, '')) FILTER (signal = 'chat.pushback_type') AS pushback,
    max(number) FILTER (signal = 'chat.turn_autonomy_s') AS seconds,
    bool_or(number > 0) FILTER (signal = 'chat.hard_interruption') AS cut
  FROM named_signals
  WHERE signal IN ('chat.prompt_language', 'chat.pushback_type', 'chat.turn_autonomy_s', 'chat.hard_interruption')
    AND absent IS NULL
  GROUP BY ALL
)
SELECT session_id, turn, text, language, pushback, seconds, cut
FROM turns LEFT JOIN of_turns USING (session_id, turn)
WHERE kind IN ('prompt', 'queued_prompt') ORDER BY session_id, turn
