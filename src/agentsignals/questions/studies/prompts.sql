-- study: messages
-- order: 250
-- title: Messages
-- question: How much do people write to their agents?
-- context: product
-- limit: Text that a person pasted counts as written by the person. Most of the longest messages are pasted text.

-- name: messages.lengths
SELECT session_id, agent, place, length(trim(text, concat(' ', chr(9), chr(10), chr(13)))) AS chars
FROM turns JOIN sessions USING (session_id)
WHERE {spoken} AND length(trim(text, concat(' ', chr(9), chr(10), chr(13)))) > 0
ORDER BY session_id, turn

-- name: messages.common
SELECT value, CAST(detail->>'messages' AS BIGINT) AS messages
FROM named_signals WHERE signal = 'corpus.top_duplicate_messages[]' AND absent IS NULL

-- finding: messages.median
-- title: Median message length in characters
-- of: messages
-- note: plans handed over to a new session and messages without text are left out
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
-- title: Message length, by agent
-- of: messages

-- table: messages.most_common
-- title: Repeated messages
-- columns: text message | n times:count | share of all messages:share | sessions:count
-- of: messages
-- note: Messages that differ only in upper case, surrounding blanks or a final . or ! count as the same. Recognized
--   secrets, addresses and paths are masked.

-- study: people
-- order: 240
-- title: People
-- question: How do people guide their agents?
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
-- title: Most common kind of first message
-- of: first messages
-- unit: pattern
-- signals: corpus.first_message_pattern
SELECT replace(json_extract_string(value, ''), '_', ' ') AS opening
FROM signals
WHERE signal = 'corpus.first_message_pattern' AND absent IS NULL
GROUP BY 1
ORDER BY count(*) DESC, 1 LIMIT 1

-- chart: people.positions
-- signals: chat.pushback_type
-- title: Objections and interruptions, by position of the prompt in the session
-- of: prompts

-- chart: people.openings
-- signals: corpus.first_message_pattern
-- title: First messages of sessions, by kind
-- of: first messages

-- study: intents
-- order: 150
-- title: What people ask for, and how they ask
-- question: What do people ask for, and how?
-- context: product

-- name: intents.turns
WITH of_turns AS (
  SELECT session_id, turn, max(json_extract_string(value, '')) FILTER (signal = 'chat.prompt_intent') AS intent,
    max(coalesce(detail->>'labeller', 'rules')) FILTER (signal = 'chat.prompt_intent') AS labeller,
    max(CAST(detail->'probabilities' AS VARCHAR)) FILTER (signal = 'chat.prompt_intent') AS probabilities,
    max(number) FILTER (signal = 'chat.turn_autonomy_s') AS seconds,
    bool_or(number > 0) FILTER (signal = 'chat.hard_interruption') AS cut,
    max(json_extract_string(value, '')) FILTER (signal = 'chat.pushback_type') AS pushback
  FROM named_signals
  WHERE signal IN ('chat.prompt_intent', 'chat.turn_autonomy_s', 'chat.hard_interruption', 'chat.pushback_type')
    AND absent IS NULL
  GROUP BY ALL
)
SELECT session_id, turn, intent, labeller, probabilities, seconds, cut,
  CAST(lead(pushback) OVER (PARTITION BY session_id ORDER BY turn) <> 'non_pushback' AS INT) AS objected
FROM of_turns WHERE intent IS NOT NULL
ORDER BY session_id, turn

-- name: intents.personas
SELECT session_id, json_extract_string(value, '') AS persona, detail->>'method' AS rule
FROM named_signals WHERE signal = 'chat.user_persona' AND absent IS NULL
ORDER BY session_id

-- chart: intents.prompts
-- signals: chat.prompt_intent

-- table: intents.activities
-- signals: chat.prompt_intent chat.pushback_type
-- title: Prompts by what the agent did
-- columns: activity | n prompts:count | sessions:count | median median time:seconds | mean mean time:seconds |
--   cut cut short:share | objected pushback in next prompt:share
-- of: prompts

-- study: topics
-- order: 160
-- title: Topics
-- question: Which topics are people's prompts about?
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
-- title: Prompts that fit no topic
-- of: prompts compared
-- note: prompts closer to another topic, or in a group of fewer than five; the SWE-chat paper reports 42.6%, by
--   another method
-- unit: share of prompts

-- finding: topics.largest
-- title: Largest topic
-- of: prompts of that topic
-- unit: words

-- table: topics.topics
-- signals: chat.pushback_type
-- title: Topics of prompts
-- columns: topic top words | n prompts:count | share:share | sessions:count | places projects:count | largest
--   largest project:share | fit silhouette:number | pushback pushback:share | cut cut short:share | time
--   median time:seconds | warning caution
-- of: prompts compared

-- table: topics.left_out
-- title: Prompts left out of the topics
-- columns: reason | n prompts:count
-- of: excluded prompts
-- note: So that no project dominates, at most a tenth of the compared prompts, or twenty, come from one project.

-- table: topics.examples
-- title: Most typical prompts of each topic
-- columns: topic | prompt | session:session
-- of: prompts compared
-- note: Prompts are shown without code, paths and names. Recognized secrets and addresses are masked.

-- chart: topics.sizes
-- title: Topics of prompts
-- of: prompts compared

-- study: sentiment
-- order: 260
-- title: Sentiment
-- question: What sentiment do people's messages express?
-- context: product

-- finding: sentiment.pure_neutral
-- title: Sessions with only neutral messages
-- of: sessions with a label
-- unit: share of sessions

-- table: sentiment.labellers
-- title: Labellers
-- columns: labeller:code | model:code | prompt:code | labels:count | no_label no label:count | last:date | taken used
-- of: labels
-- note: All labels are from one labeller. "No label": its answer was neither positive nor neutral nor negative.

-- table: sentiment.agreement
-- of: messages with two labels

-- chart: sentiment.labels
-- title: Sentiment labels
-- of: labelled messages

-- chart: sentiment.patterns
-- title: Errors of another labeller, if the one used here is right (four patterns of the agent-traces study)
-- of: messages with two labels

-- study: sentiment_turns
-- order: 270
-- title: Sentiment of people's messages, by position in the session
-- question: Do people get more negative as a session goes on?
-- context: product

-- table: sentiment_turns.curve
-- title: Share of negative messages, by position in the session
-- columns: sessions of | turn | n labelled:count | negative NEGATIVE:count | rate share:share | ends:share |
--   warning caution
-- of: labelled messages

-- chart: sentiment_turns.by_turn
-- title: Share of negative messages, by position in the session
-- of: labelled messages

-- study: sentiment_openings
-- order: 280
-- title: Sessions with a later positive message after a negative first one
-- question: Do sessions with a negative first message recover?
-- context: product

-- table: sentiment_openings.recovery_by_opening
-- title: Sessions with a later positive message, by sentiment of the first message
-- columns: opening first message | n sessions:count | k POSITIVE later:count | rate share:share | ends:share |
--   several of sessions with a later message:share | note based on
-- of: sessions with a labelled first message
-- note: Sessions with a single message are included; they cannot have a later message.

-- chart: sentiment_openings.chart
-- title: Sessions with a later positive message, by sentiment of the first message
-- of: sessions with a labelled first message
-- note: the number of sessions is in brackets; lines are 95% intervals

-- study: sentiment_after
-- order: 290
-- title: Messages after the first negative one
-- question: Do messages become more negative after the first negative one?
-- context: product

-- chart: sentiment_after.chart
-- title: Sentiment of messages after the first negative one
-- of: labelled messages
-- note: this first negative message itself is left out, and so are sessions that start with it

-- study: sentiment_models
-- order: 300
-- title: Sentiment of people's messages, by model
-- question: Are people more negative with some models?
-- context: product

-- table: sentiment_models.shares
-- title: Share of negative messages, by model
-- columns: model:code | n labelled:count | places projects:count | largest largest project:share | negative
--   NEGATIVE:count | rate share:share | ends:share | warning caution
-- of: labelled messages

-- chart: sentiment_models.chart
-- title: Share of negative messages, by model
-- of: labelled messages
