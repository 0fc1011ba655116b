-- study: agents
-- order: 340
-- title: Behaviour of agents, compared
-- question: How do agents differ in ten measures of behaviour (from the agent-traces study)?

-- name: agents.agents
SELECT CASE WHEN grouping(sessions.agent) = 1 THEN 'all agents' ELSE sessions.agent END AS agent,
  count(DISTINCT session_id) AS n, bool_or(visible_output_tokens IS NOT NULL) AS low,
  median(number) FILTER (signal = 'corpus.autonomy_ratio') AS autonomy, sum(num) FILTER
  (signal = 'user.tool_error_rate') / nullif(sum(den) FILTER (signal = 'user.tool_error_rate'), 0) AS errors, sum
  (num) FILTER (signal = 'corpus.error_recovery_rate') / nullif
  (sum(den) FILTER (signal = 'corpus.error_recovery_rate'), 0) AS recovery,
  median(number) FILTER (signal = 'corpus.tool_mix_entropy') AS entropy,
  median(number) FILTER (signal = 'corpus.session_length_events') AS events, sum(num) FILTER
  (signal = 'corpus.read_before_edit_rate') / nullif(sum(den) FILTER (signal = 'corpus.read_before_edit_rate'), 0)
  AS read_first, median(number) FILTER (signal = 'corpus.session_cost_usd') AS cost, sum(num) FILTER
  (signal = 'corpus.output_input_token_ratio') / nullif
  (sum(den) FILTER (signal = 'corpus.output_input_token_ratio'), 0) AS output, sum(num) FILTER
  (signal = 'corpus.short_messages') / nullif(sum(den) FILTER (signal = 'corpus.short_messages'), 0) AS short, sum
  (num) FILTER (signal = 'chat.pushback_rate') / nullif(sum(den) FILTER (signal = 'chat.pushback_rate'), 0) AS
  pushback
FROM ({agents_rows.signals})
JOIN sessions USING (session_id)
GROUP BY GROUPING SETS ((), (sessions.agent))
ORDER BY n DESC, grouping(sessions.agent) DESC, sessions.agent

-- name: agents.openings
SELECT agent, json_extract_string(value, '') AS label, count(*) AS n
FROM named_signals JOIN sessions USING (session_id)
WHERE signal = 'corpus.first_message_pattern' AND absent IS NULL
GROUP BY ALL ORDER BY ALL

-- name: agents_rows.signals
-- The signals of the table, each with what it is a ratio of: JSON is read once a row.
SELECT session_id, signal, number, TRY_CAST(parts[1] AS DOUBLE) AS num, TRY_CAST(parts[2] AS DOUBLE) AS den
FROM (
  SELECT session_id, signal, number,
    CASE WHEN signal <> 'corpus.short_messages' THEN detail->>['num', 'den']
      WHEN absent IS NULL THEN value->>['le_20', 'n'] END AS parts
  FROM named_signals
  WHERE signal IN ('chat.pushback_rate', 'corpus.autonomy_ratio', 'corpus.error_recovery_rate',
    'corpus.output_input_token_ratio', 'corpus.read_before_edit_rate', 'corpus.session_cost_usd',
    'corpus.session_length_events', 'corpus.short_messages', 'corpus.tool_mix_entropy', 'user.tool_error_rate')
)

-- name: agents_rows.of_agent
SELECT DISTINCT session_id
FROM ({agents_rows.signals}) JOIN sessions USING (session_id)
WHERE $agent = $all OR sessions.agent = $agent

-- finding: agents.output_input
-- signals: corpus.output_input_token_ratio
-- title: Output tokens per input token, cached input included
-- of: input tokens
-- unit: of input tokens

-- table: agents.metrics
-- signals: chat.pushback_rate corpus.first_message_pattern
-- title: Behaviour of agents, compared
-- columns: agent | n sessions:count | autonomy calls per prompt:number | errors failed calls:share |
--   recovery recovered failures:share | entropy tool entropy, bits:number | events events per session:number |
--   read_first edits after a read:share | cost cost per session:usd | output output/input tokens:share |
--   short messages ≤20 characters:share | pushback pushback or interruption:share |
--   opening most common first message
-- of: sessions

-- study: models
-- order: 330
-- title: Models
-- question: Which models were used?

-- name: models.steps
SELECT steps.model AS model, session_id, place, count(*) AS steps, sum(steps.output_tokens) AS output,
  any_value(visible_output_tokens) IS NOT NULL AS low
FROM steps JOIN sessions USING (session_id)
WHERE thread = 'main' AND steps.model IS NOT NULL
GROUP BY ALL ORDER BY ALL

-- name: models.calls
SELECT steps.model AS model, session_id, count(*) FILTER (status IN ('ok', 'error')) AS answered,
  count(*) FILTER (status = 'error') AS failed
FROM tool_calls JOIN steps USING (session_id, step)
WHERE tool_calls.thread = 'main' AND steps.model IS NOT NULL
GROUP BY steps.model, session_id ORDER BY ALL

-- finding: models.count
-- title: Models used
-- of: sessions naming a model
-- note: names as the logs write them; one model may have several
-- unit: models
SELECT count(DISTINCT model) FROM steps WHERE thread = 'main' AND model IS NOT NULL

-- finding: models.unnamed
-- title: Sessions with model calls but no model name
-- of: sessions
-- unit: sessions
SELECT (SELECT count(*) FROM sessions) - (SELECT count(DISTINCT session_id) FROM steps WHERE thread = 'main' AND
  model IS NOT NULL)

-- finding: models.largest_place
-- title: Sessions in the largest project
-- of: sessions with a known project
-- unit: share of sessions

-- table: models.used
-- title: Models, by number of sessions
-- columns: model:code | sessions:count | places projects:count | largest largest project:share | steps model
--   calls:count | output output tokens:tokens | answered answered calls:count | rate failed:share | ends:share |
--   warning caution
-- of: model calls

-- chart: models.errors
-- title: Failed tool calls by model
-- of: answered calls

-- study: data_sets
-- order: 350
-- title: How agents behave, by data set
-- question: How much do ten measures of behaviour (from the agent-traces study) vary across data sets, agents and
--   models?
-- context: product

-- name: data_sets.inputs
SELECT session_id, agent, model, place, visible_output_tokens, value
FROM named_signals JOIN sessions USING (session_id)
WHERE signal = 'corpus.metric_inputs' AND absent IS NULL ORDER BY session_id

-- name: data_sets.variance
SELECT value, CAST(detail->>'data_sets' AS BIGINT) AS sets
FROM named_signals WHERE signal = 'corpus.cross_dataset_variance[]' AND absent IS NULL

-- finding: data_sets.most_apart
-- title: Measure that varies most across data sets
-- of: datasets
-- unit: metric
-- signals: corpus.cross_dataset_variance[] corpus.metric_inputs

-- table: data_sets.variance
-- title: How much each measure varies across data sets
-- columns: metric | robust MAD/median:share | cv standard deviation/mean:share | n datasets with a value:count
-- of: datasets
-- note: MAD: median absolute deviation, scaled so that it compares with a standard deviation. The metrics that vary
--   most come first.

-- chart: data_sets.spread
-- title: How much measures vary across data sets
-- of: datasets
