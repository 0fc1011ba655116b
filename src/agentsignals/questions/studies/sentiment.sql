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
