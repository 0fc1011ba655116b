-- study: autonomy
-- order: 30
-- title: Autonomy
-- question: How much does an agent do for each prompt?
-- context: product
-- limit: Agents log tool calls differently (hooks, batches, planning tools): calls for each prompt compare sessions
--   of one agent, hardly agents with each other.

-- finding: autonomy.median
-- signals: corpus.autonomy_ratio
-- title: Tool calls for each prompt, median session
-- unit: calls for each prompt
-- headline: yes

-- finding: autonomy.pooled
-- signals: corpus.autonomy_ratio
-- title: Tool calls for each prompt, all sessions together
-- of: prompts
-- note: all calls over all prompts: long sessions weigh more
-- unit: calls for each prompt

-- table: autonomy.by_agent
-- title: Tool calls for each prompt, by agent
-- columns: agent | n sessions:count | median:number | ends:number | q25 25%:number | q75 75%:number | pooled all
--   together:number
-- of: sessions with a prompt

-- chart: autonomy.agents
-- title: Median calls for each prompt by agent
-- of: sessions with a prompt
-- note: sessions in brackets; the line is the 95% interval over places, missing where there is too little

-- study: turn_time
-- order: 170
-- title: Time for a prompt
-- question: How long does an agent work for a prompt?
-- context: product
-- limit: Where no record dates a call's start, it counts for at most as long as its kind can take. Short waits for
--   permission are then inside; longer ones, and a machine that slept, are not.

-- name: turn_time.turns
SELECT named.session_id, named.turn, number AS seconds, agent, coalesce(turns.model, sessions.model) AS model,
  {said_at}
FROM named_signals AS named JOIN sessions USING (session_id) JOIN turns USING (session_id, turn)
WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL
ORDER BY named.session_id, named.turn

-- finding: turn_time.median
-- title: Time the agent worked for the median prompt
-- of: prompts with an answer and a time
-- note: SWE-chat: under a minute
-- unit: seconds
-- signals: chat.turn_autonomy_s
SELECT median(number) FROM signals WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL

-- finding: turn_time.over_minute
-- title: Prompts the agent worked for longer than a minute
-- of: prompts with an answer and a time
-- unit: share of prompts
-- signals: chat.turn_autonomy_s
SELECT avg(CAST(number > 60 AS INT))
FROM signals
WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL

-- study: friction
-- order: 180
-- title: Friction
-- question: How do turns end, and does that change?
-- context: product

-- name: friction.turns
WITH of_turns AS (
  SELECT session_id, turn, bool_or(number > 0) FILTER (signal = 'chat.hard_interruption') AS cut,
    max(json_extract_string(value, '')) FILTER (signal = 'chat.pushback_type') AS pushback,
    bool_or(number > 0 AND detail->>'how' = 'tool') FILTER (signal = 'chat.agent_clarification_stop') AS asked
  FROM named_signals
  WHERE signal IN ('chat.hard_interruption', 'chat.pushback_type', 'chat.agent_clarification_stop')
    AND absent IS NULL
  GROUP BY ALL
)
SELECT session_id, turn, cut, pushback, asked, {said_at}
FROM turns LEFT JOIN of_turns USING (session_id, turn)
ORDER BY session_id, turn

-- table: friction.by_mode
-- title: How turns end, by coding mode
-- of: turns

-- chart: friction.ends
-- title: How turns end
-- of: turns

-- study: oversight
-- order: 190
-- title: Oversight
-- question: How do people keep an eye on what agents do?
-- context: product
-- limit: Not every agent logs an interruption, a refusal or a plan: an agent with none of them may just not say so.
--   SWE-chat's figures are of Claude Code alone.

-- name: oversight.turns
WITH of_turns AS (
  SELECT session_id, turn,
    bool_or(number > 0 AND detail->>'how' = 'tool') FILTER (signal = 'chat.agent_clarification_stop') AS asked,
    bool_or(number > 0 AND detail->>'how' = 'question') FILTER (signal = 'chat.agent_clarification_stop') AS
    asked_in_words, max(number) FILTER (signal = 'chat.turn_autonomy_s') AS seconds
  FROM named_signals
  WHERE signal IN ('chat.agent_clarification_stop', 'chat.turn_autonomy_s') AND absent IS NULL
  GROUP BY ALL
), did AS (
  SELECT session_id, turn, count(*) AS calls, count(*) FILTER (status = 'rejected') AS refused,
    count(*) FILTER (purpose = 'plan_handoff') AS plans,
    count(*) FILTER (purpose = 'plan_handoff' AND status IN ('ok', 'rejected')) AS decided,
    count(*) FILTER (purpose = 'plan_handoff' AND status = 'ok') AS approved
  FROM tool_calls WHERE thread = 'main'
  GROUP BY ALL
), cut AS (
  SELECT session_id, turn, count(*) AS interrupts
  FROM events WHERE kind = 'interrupt' AND thread = 'main'
  GROUP BY ALL
)
SELECT session_id, turn, agent, asked, asked_in_words, seconds, coalesce(calls, 0) AS calls, refused, plans,
  decided, approved, interrupts, {said_at}
FROM turns JOIN sessions USING (session_id) LEFT JOIN of_turns USING (session_id, turn)
LEFT JOIN did USING (session_id, turn) LEFT JOIN cut USING (session_id, turn)
ORDER BY session_id, turn

-- finding: oversight.seconds
-- title: Time the agent worked for the median prompt
-- of: turns
-- unit: seconds
-- signals: chat.turn_autonomy_s

-- finding: oversight.calls
-- title: Calls for the median prompt
-- of: turns
-- unit: calls

-- finding: oversight.interrupted
-- title: Turns that the person interrupted
-- of: turns
-- note: SWE-chat: 5% (v1, the agent's own marker)

-- finding: oversight.refused
-- title: Turns in which the person refused a call
-- of: turns

-- finding: oversight.asked
-- title: Turns in which the agent asked by tool
-- of: turns
-- note: SWE-chat: 1.4% (v1)
-- signals: chat.agent_clarification_stop

-- finding: oversight.asked_in_words
-- title: Turns that changed nothing and ended in a question
-- of: turns
-- note: by patterns, in English
-- signals: chat.agent_clarification_stop

-- finding: oversight.plans
-- title: Turns in which the agent showed a plan and waited
-- of: turns

-- finding: oversight.approved
-- title: Plans that the person approved
-- of: plans with an answer
-- unit: share of plans
-- note: refused ones are the others; SWE-chat: 32% of the last calls of interrupted turns show a plan (v1, Figure 21)

-- finding: oversight.refused_calls
-- title: Calls that the person refused
-- of: calls
-- note: main thread

-- chart: oversight.acts
-- title: Oversight
-- of: turns
-- note: how many in brackets; the line is the 95% interval
