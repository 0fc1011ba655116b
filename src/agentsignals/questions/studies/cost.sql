-- study: cost
-- order: 320
-- title: Tokens and cost
-- question: How many tokens were used, and what did they cost?

-- name: cost.reasons
SELECT session_id, absent, absent_detail FROM signals WHERE signal = 'tokens.cost_usd' AND absent IS NOT NULL

-- name: cost.sources
SELECT session_id, count(*) AS priced, count(*) FILTER (cost_source = 'recorded') AS recorded
FROM steps WHERE cost_usd IS NOT NULL
GROUP BY session_id ORDER BY session_id

-- finding: cost.total
-- title: Cost
-- of: priced sessions
-- headline: yes
SELECT sum(cost_usd) FROM sessions

-- finding: cost.subagents
-- title: Cost of subagents
-- of: priced sessions
SELECT sum(CASE WHEN parent_session_id IS NOT NULL AND n_prompts = 0 THEN cost_usd ELSE subagent_cost_usd END)
FROM sessions
WHERE cost_usd IS NOT NULL

-- finding: cost.billed
-- title: Part of the cost that the logs record
-- of: priced sessions
-- note: the cost of model calls without a recorded cost is estimated at list price
SELECT sum(recorded_cost_usd) FROM sessions WHERE cost_usd IS NOT NULL

-- finding: cost.median
-- title: Median cost per session
-- of: priced sessions
SELECT median(cost_usd) FROM sessions

-- finding: cost.unpriced
-- title: Sessions whose cost is not known
-- of: sessions
-- note: these values are unknown, not zero
-- unit: sessions
-- priced: yes
SELECT count(*) - count(cost_usd) FROM sessions

-- finding: cost.recorded
-- title: Model calls whose cost the log records
-- of: priced model calls
-- note: the cost of model calls without a recorded cost is estimated at list price
-- priced: yes
SELECT avg(CAST(cost_source = 'recorded' AS INT)) FROM steps WHERE cost_usd IS NOT NULL

-- finding: cost.cached
-- title: Input tokens read from the prompt cache
-- signals: tokens.cache_read_ratio
-- of: input tokens

-- table: cost.by_agent
-- title: Tokens and cost by agent
-- columns: agent | sessions:count | priced:count | unpriced:count | cost:usd | median median session:usd |
--   input:tokens | cache_read cache read:tokens | cache_write cache write:tokens | output:tokens
-- of: sessions
-- note: A dash means unknown, not zero. >= marks a lower bound. Subagents are included.

-- table: cost.unpriced
-- title: Why the cost of sessions is not known
-- columns: reason | detail:code | agent | sessions:count
-- of: sessions without a price

-- chart: cost.agents
-- title: Cost by agent
-- of: priced sessions
-- note: in brackets: how many sessions have a known cost, and how many there are

-- study: cost_causes
-- order: 325
-- title: Cost by cause
-- question: Where did the money go?

-- name: cost_causes.sessions_by
SELECT {counts} FROM charges JOIN sessions USING (session_id)

-- name: cost_causes_rows.charges
SELECT {column} AS value, cause, list(charges.cost_usd) AS usd, 
  bool_or({is_cost_bound}) AS is_bound
FROM charges JOIN sessions USING (session_id)
GROUP BY value, cause ORDER BY value, cause

-- name: cost_causes_rows.sessions
SELECT value, list(usd) AS usd
FROM (
  SELECT {column} AS value, session_id, sum(charges.cost_usd) AS usd
  FROM charges JOIN sessions USING (session_id)
  GROUP BY value, session_id
)
GROUP BY value ORDER BY value

-- name: cost_causes_rows.of_value
SELECT session_id, sum(charges.cost_usd) AS k, 1 AS n
FROM charges JOIN sessions USING (session_id)
WHERE {column} = $value
GROUP BY session_id

-- table: cost_causes.causes
-- title: Cost by cause
-- columns: cause | usd cost:usd | share of the bill:share | sessions sessions:count
-- of: priced sessions

-- chart: cost_causes.bill
-- title: Cost by cause
-- of: priced sessions

-- finding: cost.input_tokens
-- title: Uncached input tokens
-- of: sessions whose logs state them
-- unit: tokens
SELECT sum(input_tokens) FROM sessions

-- finding: cost.cache_read_tokens
-- title: Cache read tokens
-- of: sessions whose logs state them
-- unit: tokens
SELECT sum(cache_read_tokens) FROM sessions

-- finding: cost.cache_write_tokens
-- title: Cache write tokens
-- of: sessions whose logs state them
-- unit: tokens
SELECT sum(cache_write_tokens) FROM sessions

-- finding: cost.output_tokens
-- title: Output tokens
-- of: sessions whose logs state them
-- unit: tokens
-- headline: yes
SELECT sum(output_tokens) FROM sessions
