-- study: messages
-- order: 250
-- title: Messages
-- question: How much do people write?
-- context: product
-- limit: Pasted text counts as written: the longest messages are mostly pastes.

-- name: messages.lengths
SELECT session_id, agent, place, length(trim(text, concat(' ', chr(9), chr(10), chr(13)))) AS chars
FROM turns JOIN sessions USING (session_id)
WHERE {spoken} AND length(trim(text, concat(' ', chr(9), chr(10), chr(13)))) > 0
ORDER BY session_id, turn

-- name: messages.common
SELECT value, CAST(detail->>'messages' AS BIGINT) AS messages
FROM named_signals WHERE signal = 'corpus.top_duplicate_messages[]' AND absent IS NULL

-- finding: messages.median
-- title: Length of the median message
-- of: messages
-- note: plan hand-offs and bare attachments are not counted
-- unit: characters
SELECT median(length(trim(text, concat(' ', chr(9), chr(10), chr(13)))))
FROM turns JOIN sessions USING (session_id)
WHERE kind NOT IN ('attachment', 'plan_handoff', 'scripted_prompt') AND length(trim(text, concat(' ', chr(9),
  chr(10), chr(13)))) > 0

-- finding: messages.common
-- title: Most common message
-- of: messages
-- unit: words
-- signals: corpus.top_duplicate_messages[]

-- table: messages.by_agent
-- title: Length of people's messages, by agent
-- of: messages

-- table: messages.most_common
-- title: Messages that come again
-- columns: text message | n times:count | share of all messages:share | sessions:count
-- of: messages
-- note: Case, outer blanks and a final . or ! put aside; secrets, addresses and paths hidden if recognised.

-- study: people
-- order: 240
-- title: People
-- question: How do people steer?
-- context: product

-- name: people.later
SELECT session_id, turn, json_extract_string(value, '') <> 'non_pushback' AS objects
FROM named_signals WHERE signal = 'chat.pushback_type' AND absent IS NULL AND turn > 0
ORDER BY session_id, turn

-- name: people.short
SELECT session_id, CAST(value->>'le_20' AS INT) AS le_20, CAST(value->>'n' AS INT) AS n
FROM named_signals WHERE signal = 'corpus.short_messages' AND absent IS NULL
ORDER BY session_id

-- name: people.cuts
SELECT session_id, turn, number > 0 AS cut
FROM named_signals WHERE signal = 'chat.hard_interruption' AND absent IS NULL
ORDER BY session_id, turn

-- name: people.turns
SELECT session_id, least(turn + 1, 6) AS at, count(*) FILTER (signal = 'chat.hard_interruption') AS n,
  count(*) FILTER (signal = 'chat.hard_interruption' AND number = 1) AS cut,
  count(*) FILTER (signal = 'chat.pushback_type' AND absent IS NULL) AS judged, count(*) FILTER (
  signal = 'chat.pushback_type' AND absent IS NULL AND json_extract_string(value, '') <> 'non_pushback') AS objects
FROM named_signals WHERE signal IN ('chat.hard_interruption', 'chat.pushback_type')
GROUP BY 1, 2 ORDER BY 1, 2

-- finding: people.short
-- title: Messages of at most 20 characters
-- of: messages
-- signals: corpus.short_messages
SELECT sum(CAST(value->>'le_20' AS INT)) / sum(CAST(value->>'n' AS INT))
FROM signals
WHERE signal = 'corpus.short_messages' AND absent IS NULL

-- finding: people.opening
-- title: Most common opening
-- of: first messages
-- unit: pattern
-- signals: corpus.first_message_pattern
SELECT replace(json_extract_string(value, ''), '_', ' ') AS opening
FROM signals
WHERE signal = 'corpus.first_message_pattern' AND absent IS NULL
GROUP BY 1
ORDER BY count(*) DESC, 1 LIMIT 1

-- chart: people.positions
-- title: When people object or interrupt
-- of: prompts

-- chart: people.openings
-- title: How sessions open
-- of: first messages

-- study: intents
-- order: 150
-- title: Intents and personas
-- question: What do people ask for, and how?
-- context: product

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

-- table: intents.activities
-- title: Turns by what was asked for
-- columns: activity asked for | n prompts:count | sessions:count | median median time:seconds | mean mean
--   time:seconds | cut cut short:share | objected next prompt objects:share
-- of: prompts

-- study: topics
-- order: 160
-- title: Topics
-- question: What are prompts about?
-- context: product

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

-- finding: topics.count
-- title: Topics
-- of: prompts compared
-- unit: topics

-- finding: topics.noise
-- title: Prompts without a topic
-- of: prompts compared
-- note: as near to another topic as to its own, or in a group of under five; SWE-chat: 42.6%, by another method
-- unit: share of prompts

-- finding: topics.largest
-- title: Largest topic
-- of: prompts of that topic
-- unit: words

-- table: topics.topics
-- title: Topics of prompts
-- columns: topic topic, by its words | n prompts:count | share:share | sessions:count | places:count | largest
--   largest place:share | fit silhouette:number | pushback objections among them:share | cut cut short:share | time
--   median time:seconds | warning says little because
-- of: prompts compared

-- table: topics.left_out
-- title: Prompts that were not compared
-- columns: reason | n prompts:count
-- of: prompts left out
-- note: A place may have a tenth of the prompts, or twenty.

-- table: topics.examples
-- title: Prompts nearest to the middle of each topic
-- columns: topic | prompt | session:session
-- of: prompts compared
-- note: As compared: without code, paths and names. Secrets and addresses hidden if recognised.

-- chart: topics.sizes
-- title: Topics of prompts
-- of: prompts compared

-- study: sentiment
-- order: 260
-- title: Sentiment
-- question: How much do people's messages say of how they feel?
-- context: product

-- finding: sentiment.pure_neutral
-- title: Sessions with neither a POSITIVE nor a NEGATIVE message
-- of: sessions with a label
-- unit: share of sessions

-- table: sentiment.labellers
-- title: Who labelled
-- columns: labeller:code | model:code | prompt:code | labels:count | no_label no label:count | last:date | taken
-- of: labels
-- note: Figures of two labellers are never put together. No label: what was said was none of the three.

-- table: sentiment.agreement
-- of: messages with two labels

-- chart: sentiment.labels
-- title: Labels of messages
-- of: labelled messages

-- study: sentiment_turns
-- order: 270
-- title: Sentiment by turn
-- question: Do people get more negative as a session goes on?
-- context: product

-- table: sentiment_turns.curve
-- title: NEGATIVE messages by turn
-- columns: sessions of | turn | n labelled:count | negative NEGATIVE:count | rate share:share | ends:share | warning
--   says little because
-- of: labelled messages

-- chart: sentiment_turns.by_turn
-- title: NEGATIVE messages by turn
-- of: labelled messages

-- study: sentiment_openings
-- order: 280
-- title: First messages and recovery
-- question: Does a session that opens badly end badly?
-- context: product

-- table: sentiment_openings.recovery_by_opening
-- title: A POSITIVE message later, by the label of the first
-- columns: opening first message | n sessions:count | k POSITIVE later:count | rate share:share | ends:share |
--   several with a later message:share | note rests on
-- of: sessions whose first message is labelled
-- note: Sessions of one message stay in: they can't recover.

-- chart: sentiment_openings.chart
-- title: Sessions with a POSITIVE message later, by the first message's label
-- of: sessions whose first message is labelled
-- note: sessions in brackets; the line is the 95% interval

-- study: sentiment_after
-- order: 290
-- title: After a negative message
-- question: Does a session get darker, or louder?
-- context: product

-- chart: sentiment_after.chart
-- title: Messages before and after a session turns negative
-- of: labelled messages
-- note: behind the first NEGATIVE message, where that is not the session's first; itself not counted

-- study: sentiment_models
-- order: 300
-- title: Sentiment by model
-- question: Are people more negative with some models?
-- context: product

-- table: sentiment_models.shares
-- title: NEGATIVE messages by model
-- columns: model:code | n labelled:count | places:count | largest largest place:share | negative NEGATIVE:count |
--   rate share:share | ends:share | warning says little because
-- of: labelled messages

-- chart: sentiment_models.chart
-- title: NEGATIVE messages by model
-- of: labelled messages
