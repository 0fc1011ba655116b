-- study: sessions
-- order: 10
-- title: Sessions
-- question: How many sessions are there, and how large are they?
-- limit: These are the sessions at hand, not a random sample of people, agents or tasks.

-- finding: sessions.work_s.median
-- signals: infra.work_time_s
-- title: Median working time of the agent per session
-- kind: seconds
-- unit: seconds
-- note: your pauses, waits for approval and sleep of the machine are left out

-- finding: sessions.waiting_s.median
-- signals: infra.waiting_time_s
-- title: Median waiting time of the agent per session
-- kind: seconds
-- unit: seconds
-- note: the agent waited for approval or an answer, or the machine slept; this is not part of working time

-- finding: sessions.events.median
-- signals: corpus.session_length_events
-- title: Median events per session
-- unit: events

-- finding: sessions.count
-- title: Sessions
-- of: sessions
-- unit: sessions
-- headline: yes
SELECT count(*) FROM sessions WHERE true

-- finding: sessions.without_time
-- title: Sessions whose time is not known
-- of: sessions
-- unit: sessions
-- note: they are left out only of figures over time
SELECT count(*)
FROM sessions
WHERE (CASE WHEN started_at BETWEEN TIMESTAMP '2015-01-01' AND TIMESTAMP '2100-01-01' THEN started_at END) IS NULL

-- finding: sessions.without_prompt
-- title: Sessions without a prompt by a person
-- of: sessions
-- unit: sessions
-- note: these sessions were started by a program or another agent, so they have no calls per prompt
SELECT count(*) FROM sessions WHERE n_prompts = 0

-- finding: sessions.children
-- title: Sessions that another session started
-- of: sessions
-- unit: sessions
SELECT count(*) FROM sessions WHERE parent_session_id IS NOT NULL

-- finding: sessions.turns.total
-- title: Human prompts
-- of: sessions
-- unit: prompts
-- headline: yes
SELECT coalesce(sum(n_prompts), 0) FROM sessions

-- finding: sessions.tool_calls.total
-- title: Tool calls
-- of: sessions
-- unit: calls
-- headline: yes
SELECT coalesce(sum(n_tool_calls), 0) FROM sessions

-- finding: sessions.edits.total
-- title: File changes
-- of: sessions
-- unit: changes
SELECT coalesce(sum(n_edits), 0) FROM sessions

-- finding: sessions.steps.total
-- title: Model calls
-- of: sessions
-- unit: calls
SELECT coalesce(sum(n_steps), 0) FROM sessions

-- finding: sessions.subagent_tool_calls.total
-- title: Tool calls of subagents
-- of: sessions
-- unit: calls
SELECT coalesce(sum(n_subagent_tool_calls), 0) FROM sessions

-- finding: sessions.turns.median
-- title: Median prompts per session
-- of: sessions
-- unit: prompts
SELECT median(n_prompts) FROM sessions

-- finding: sessions.tool_calls.median
-- title: Median tool calls per session
-- of: sessions
-- unit: calls
SELECT median(n_tool_calls) FROM sessions

-- finding: sessions.edits.median
-- title: Median file changes per session
-- of: sessions
-- unit: changes
SELECT median(n_edits) FROM sessions

-- table: sessions.by_agent
-- title: Sessions by agent
-- columns: agent | sessions:count | turns prompts:count | tool_calls tool calls:count | edits:count |
--   subagent_tool_calls subagent calls:count | first:date | last:date
-- of: sessions

-- table: sessions.spread
-- title: Sizes of sessions: smallest to largest
-- of: sessions
-- note: Means are not shown, because a few sessions with very large values would dominate them.

-- study: worth_opening
-- order: 20
-- title: Sessions to look at first
-- question: Which sessions should I review first?

-- name: worth_opening.prompts
SELECT session_id, left(text, 400) AS text FROM turns WHERE turn = 0 ORDER BY session_id

-- finding: worth.cost_share
-- title: Share of the cost that is in the {most_opened} most expensive sessions
-- of: priced sessions
-- unit: share of cost
-- signals: corpus.session_cost_usd
-- priced: yes
SELECT (
  SELECT sum(number) FROM (
    SELECT number FROM signals WHERE signal = 'corpus.session_cost_usd'
    ORDER BY number DESC NULLS LAST LIMIT {most_opened}
  )
) / sum(number)
FROM signals
WHERE signal = 'corpus.session_cost_usd'

-- finding: worth.error_share
-- title: Share of all failed calls that are in the {most_opened} sessions with most failures
-- of: failed calls
-- signals: user.tool_error_rate
SELECT (
  SELECT sum(k) FROM (
    SELECT CAST(detail->>'num' AS DOUBLE) AS k FROM signals WHERE signal = 'user.tool_error_rate'
    ORDER BY k DESC NULLS LAST LIMIT {most_opened}
  )
) / sum(CAST(detail->>'num' AS DOUBLE))
FROM signals
WHERE signal = 'user.tool_error_rate'

-- study: usage
-- order: 140
-- title: Usage
-- question: How long are sessions, how many calls does a prompt start, and in which languages are prompts?
-- context: product
-- limit: The calls after a prompt belong to it, until the next prompt. A prompt that was typed while the agent worked
--   gets the calls after it.

-- name: usage.sessions
SELECT session_id, place, n_prompts FROM sessions ORDER BY session_id

-- name: usage.calls
SELECT session_id, turn, number
FROM named_signals WHERE signal = 'chat.tool_calls_per_turn' AND absent IS NULL
ORDER BY session_id, turn

-- name: usage.files
SELECT session_id, value
FROM named_signals WHERE signal = 'chat.file_types_touched' AND absent IS NULL
ORDER BY session_id

-- name: usage.languages
SELECT session_id, json_extract_string(value, '') AS language, count(*) AS n
FROM named_signals WHERE signal = 'chat.prompt_language' AND absent IS NULL
GROUP BY ALL ORDER BY ALL

-- finding: usage.turns.median
-- title: Median prompts per session, without sessions that have none
-- of: sessions with a prompt
-- unit: prompts
SELECT median(n_prompts) FROM sessions WHERE n_prompts > 0

-- finding: usage.calls.median
-- title: Median tool calls per prompt
-- of: prompts
-- unit: tool calls
-- signals: chat.tool_calls_per_turn
SELECT median(number) FROM signals WHERE signal = 'chat.tool_calls_per_turn' AND absent IS NULL

-- finding: usage.without_call
-- title: Prompts answered without a tool call
-- of: prompts
-- signals: chat.tool_calls_per_turn
SELECT avg(CAST(number = 0 AS INT)) FROM signals WHERE signal = 'chat.tool_calls_per_turn' AND absent IS NULL

-- finding: usage.english
-- title: Prompts in English
-- of: prompts whose language is known
-- note: the SWE-chat paper reports over 80%
-- signals: chat.prompt_language
SELECT avg(CAST(json_extract_string(value, '') = 'en' AS INT))
FROM signals
WHERE signal = 'chat.prompt_language' AND absent IS NULL

-- table: usage.sizes
-- title: Prompts and calls per session: smallest to largest
-- of: sessions with a prompt

-- chart: usage.file_types
-- title: Types of the files that calls read or change
-- of: calls on one file

-- chart: usage.languages
-- title: Languages of prompts
-- of: prompts whose language is known
-- note: two-letter language codes (ISO 639-1); prompts under 20 characters and prompts that are mostly code are left
--   out

-- study: concentration
-- order: 130
-- title: Concentration
-- question: How many of the sessions come from the largest projects?

-- name: concentration.sessions
SELECT session_id, agent, model, place, {started_at} FROM sessions ORDER BY session_id

-- table: concentration.largest
-- title: Largest projects
-- columns: place project:code | n sessions:count | share:share | agents | models:count | first first session:date |
--   last last session:date
-- of: sessions with a known project

-- chart: concentration.over_time
-- title: Share of sessions in the largest projects, added up
-- of: sessions with a known project and time

-- study: reading
-- order: 370
-- title: Records read and records skipped
-- question: Which data are these figures based on, and what is missing?
-- context: both

-- name: reading.totals
SELECT (SELECT count(*) FROM artifacts) AS files, (SELECT sum(records) FROM artifacts) AS records,
  (SELECT sum(skipped) FROM artifacts) AS skipped, (SELECT count(*) FROM events WHERE kind = 'unknown') AS unknown

-- name: reading.formats
SELECT a.format AS format, count(*) AS files, any_value(coalesce(s.sessions, 0)) AS sessions,
  sum(records) AS records, sum(skipped) AS skipped, sum(bytes) AS bytes
FROM artifacts a
LEFT JOIN (SELECT format, count(*) AS sessions FROM sessions GROUP BY format) s USING (format)
GROUP BY a.format ORDER BY files DESC, a.format

-- name: reading.skips
SELECT path, skipped_reasons FROM artifacts WHERE skipped_reasons <> '{}' ORDER BY path

-- name: reading.notes
SELECT trim(regexp_replace(note, '[0-9a-f-]{12,}', '…')) AS note, count(*) AS files
FROM artifacts WHERE note IS NOT NULL
GROUP BY 1 ORDER BY files DESC, 1

-- name: reading_rows.format
SELECT session_id FROM sessions WHERE format = $format

-- name: reading_rows.unknown
SELECT session_id, count(*) AS n FROM events WHERE kind = 'unknown' GROUP BY session_id

-- table: reading.no_traces
-- title: Files that are not agent logs, by file extension
-- columns: ending extension:code | files:count
-- of: files

-- table: reading.notes
-- title: Copies and continued sessions, each counted once
-- columns: note kind | files:count
-- of: files

-- table: reading.formats
-- title: Log files read, by log format
-- columns: format | files:count | sessions:count | records records read:count | skipped:count | bytes size:bytes
-- of: files
-- note: A format with 0 sessions only adds data to sessions of other formats, or its files hold no session.

-- table: reading.reasons
-- title: Skipped records, by why they were skipped
-- columns: reason | records:count | files:count | example example:code
-- of: skipped records

-- chart: reading.formats
-- title: Bytes of log files read, by format
-- of: files
-- note: the number of files is in brackets

-- finding: reading.files
-- title: Files read
-- of: files
-- unit: files
SELECT count(*) FROM artifacts

-- finding: reading.records
-- title: Records read
-- of: records found
-- unit: records
SELECT coalesce(sum(records), 0) FROM artifacts

-- finding: reading.skipped
-- title: Records skipped
-- of: records found
-- unit: records
-- note: a file whose format is not known counts as one record
-- headline: yes
SELECT coalesce(sum(skipped), 0) FROM artifacts

-- finding: reading.no_traces
-- title: Files that are not agent logs
-- of: files found
-- unit: files
-- note: these files are not JSON and were not read

-- finding: reading.unknown
-- title: Records that were read but not understood
-- of: records read
-- unit: records
-- note: they are kept, as events of the kind `unknown`
SELECT count(*) FROM events WHERE kind = 'unknown'

-- study: autonomy
-- order: 30
-- title: Autonomy
-- question: How much work does an agent do per prompt?
-- context: product
-- limit: Agents log tool calls differently (hooks, batches, planning tools). So compare calls per prompt only between
--   sessions of the same agent.

-- finding: autonomy.median
-- signals: corpus.autonomy_ratio
-- title: Tool calls per prompt in the median session
-- unit: calls per prompt
-- headline: yes

-- finding: autonomy.pooled
-- signals: corpus.autonomy_ratio
-- title: Tool calls per prompt, over all sessions together
-- of: prompts
-- note: all calls of all sessions divided by all their prompts, so long sessions count more
-- unit: calls per prompt

-- table: autonomy.by_agent
-- title: Tool calls per prompt, by agent
-- columns: agent | n sessions:count | median:number | ends:number | q25 p25:number | q75 p75:number | pooled
--   pooled:number
-- of: sessions with a prompt

-- chart: autonomy.agents
-- title: Median calls per prompt, by agent
-- of: sessions with a prompt
-- note: the number of sessions is in brackets; lines are 95% intervals, where there is enough data

-- study: turn_time
-- order: 170
-- title: Working time of the agent per prompt
-- question: How long does an agent work per prompt?
-- context: product
-- limit: If a call's start is not logged, at most the time limit of its kind counts (10 s for an edit, 600 s for a
--   command). So short waits for approval are included; longer waits and sleep of the machine are not.

-- name: turn_time.turns
SELECT named.session_id, named.turn, number AS seconds, agent, coalesce(turns.model, sessions.model) AS model,
  {said_at}
FROM named_signals AS named JOIN sessions USING (session_id) JOIN turns USING (session_id, turn)
WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL
ORDER BY named.session_id, named.turn

-- finding: turn_time.median
-- title: Median working time per prompt
-- of: prompts with an answer and a time
-- note: the SWE-chat paper reports under a minute
-- unit: seconds
-- signals: chat.turn_autonomy_s
SELECT median(number) FROM signals WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL

-- finding: turn_time.over_minute
-- title: Prompts on which the agent worked more than a minute
-- of: prompts with an answer and a time
-- unit: share of prompts
-- signals: chat.turn_autonomy_s
SELECT avg(CAST(number > 60 AS INT))
FROM signals
WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL

-- study: friction
-- order: 180
-- title: Friction
-- question: How does the agent's work on a prompt end, and does this change over time?
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

-- chart: friction.over_time
-- signals: chat.pushback_type

-- finding: friction.asked
-- any_language: a call is no matter of words

-- table: friction.by_mode
-- signals: chat.pushback_type
-- title: How the agent's work on a prompt ends, by who writes the code
-- of: turns

-- chart: friction.ends
-- signals: chat.pushback_type
-- title: How the agent's work on a prompt ends
-- of: turns

-- study: oversight
-- order: 190
-- title: Oversight
-- question: How do people oversee their agents?
-- context: product
-- limit: Not every agent logs interruptions, refusals or plans, so a zero can mean "not logged". The figures of the
--   SWE-chat paper cover Claude Code only.

-- name: oversight.turns
WITH of_turns AS (
  SELECT session_id, turn,
    bool_or(number > 0 AND detail->>'how' = 'tool') FILTER (signal = 'chat.agent_clarification_stop') AS asked,
    bool_or(number > 0 AND detail->>'how' = 'question') FILTER (signal = 'chat.agent_clarification_stop') AS
    asked_in_words, max(number) FILTER (signal = 'chat.turn_autonomy_s') AS seconds,
    bool_or(number > 0) FILTER (signal = 'chat.hard_interruption') AS cut
  FROM named_signals
  WHERE signal IN ('chat.agent_clarification_stop', 'chat.turn_autonomy_s', 'chat.hard_interruption')
    AND absent IS NULL
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
SELECT session_id, turn, agent, asked, asked_in_words, seconds, cut, coalesce(calls, 0) AS calls, refused, plans,
  decided, approved, interrupts, {said_at}
FROM turns JOIN sessions USING (session_id) LEFT JOIN of_turns USING (session_id, turn)
LEFT JOIN did USING (session_id, turn) LEFT JOIN cut USING (session_id, turn)
ORDER BY session_id, turn

-- finding: oversight.seconds
-- title: Median working time per prompt
-- of: turns
-- unit: seconds
-- signals: chat.turn_autonomy_s

-- finding: oversight.calls
-- title: Median calls per prompt
-- of: turns
-- unit: calls

-- finding: oversight.interrupted
-- title: Prompts after which the person interrupted the agent
-- of: turns
-- note: the SWE-chat paper (version 1) reports 5%, from the agent's own interruption marker

-- finding: oversight.refused
-- title: Prompts after which the person refused a call
-- of: turns

-- finding: oversight.asked
-- title: Prompts after which the agent asked a question with its question tool
-- of: turns
-- note: the SWE-chat paper (version 1) reports 1.4%
-- signals: chat.agent_clarification_stop
-- any_language: a call is no matter of words

-- finding: oversight.asked_in_words
-- title: Prompts that the agent answered with a question, without changing a file
-- of: turns
-- note: questions are recognized by English word patterns
-- signals: chat.agent_clarification_stop

-- finding: oversight.plans
-- title: Prompts after which the agent proposed a plan
-- of: turns

-- finding: oversight.approved
-- title: Plans approved
-- of: plans with an answer
-- unit: share of plans
-- note: the person refused all other plans

-- finding: oversight.refused_calls
-- title: Share of tool calls that the person refused
-- of: calls
-- note: subagents' calls are left out

-- chart: oversight.over_time
-- signals: chat.agent_clarification_stop

-- chart: oversight.acts
-- signals: chat.agent_clarification_stop
-- title: Oversight
-- of: turns
-- note: numbers in brackets are counts; lines are 95% intervals
