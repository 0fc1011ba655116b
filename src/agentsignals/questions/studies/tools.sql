-- study: tools
-- order: 40
-- title: Tools
-- question: Which tools do agents use?
-- limit: A shell command is one call however much it does: shares of calls are no shares of work.

-- name: tools.calls
SELECT session_id, agent, class, count(*) AS n
FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY ALL ORDER BY ALL

-- name: tools.names
SELECT name, CAST(sum(n) AS BIGINT) AS n, count(*) AS sessions, string_agg(DISTINCT agent, ', ' ORDER BY agent) AS agents,
  list(n) AS parts
FROM (SELECT name, session_id, any_value(agent) AS agent, count(*) AS n
  FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main' GROUP BY name, session_id)
GROUP BY name ORDER BY n DESC, name

-- finding: tools.shell_share
-- title: Calls that are shell commands
-- of: tool calls
-- note: test runs included; reading and searching through the shell counts as reading and searching
-- unit: share of calls
SELECT avg(CAST(class IN ('shell', 'test') AS INT)) FROM tool_calls WHERE thread = 'main'

-- finding: tools.mcp_sessions
-- title: Sessions that use an MCP tool
-- of: sessions with a tool call
-- unit: share of sessions
SELECT avg(m)
FROM (SELECT max(CAST(class = 'mcp' AS INT)) AS m FROM tool_calls WHERE thread = 'main' GROUP BY session_id)

-- finding: tools.names
-- title: Different tools by name
-- of: tool calls
-- unit: names
SELECT count(DISTINCT name) FROM tool_calls WHERE thread = 'main'

-- finding: tools.entropy.median
-- signals: corpus.tool_mix_entropy
-- title: Variety of tools in the median session
-- unit: bits
-- note: entropy of the tool names: 0 is one tool only, 2 is as varied as four tools used equally often

-- table: tools.names
-- title: Calls by tool
-- columns: name tool:code | calls:count | share:share | sessions:count | agents
-- of: tool calls

-- table: tools.classes
-- title: Calls by class
-- columns: class | calls:count | share:share | sessions sessions with one:count
-- of: tool calls
-- note: Main thread. A shell command that only reads, searches or tests counts in that class.

-- chart: tools.mix
-- title: What each agent's calls are, in percent
-- of: tool calls
-- note: each row adds up to 100; calls in brackets

-- study: tool_categories
-- order: 50
-- title: Kinds of tool calls
-- question: What are the calls, in the kinds of SWE-chat?
-- limit: Shell commands are told apart by their first word alone: cd somewhere && git push is a file command here, as
--   in the paper. The paper prints the commonest words of each kind only.

-- name: tool_categories.calls
SELECT session_id, kind, count(*) AS n
FROM (SELECT session_id, {kind} AS kind FROM tool_calls WHERE thread = 'main')
GROUP BY ALL ORDER BY ALL

-- finding: tool_categories.looking
-- title: Calls that read, search or list
-- of: tool calls
-- unit: share of calls
-- note: SWE-chat: 31.3% (Table 5)

-- finding: tool_categories.changing
-- title: Calls that edit or write a file
-- of: tool calls
-- unit: share of calls
-- note: SWE-chat: 22.5% (Table 5)

-- finding: tool_categories.commands
-- title: Calls that are shell commands, in the kinds of SWE-chat
-- of: tool calls
-- unit: share of calls
-- note: SWE-chat: 33.3% (Table 5); searches through the shell are not among them

-- table: tool_categories.calls
-- title: Calls by kind
-- columns: kind | calls:count | share:share | ends:share | sessions sessions with one:count | published in
--   SWE-chat:share
-- of: tool calls

-- chart: tool_categories.shares
-- title: Calls by kind
-- of: tool calls

-- study: tool_positions
-- order: 60
-- title: From the first call to the last
-- question: What does an agent do first, last, and when it is cut short?
-- limit: A turn is interrupted when the person stopped it, refused a call, or queued a stop; where a trace does not
--   say so, it counts as finished.

-- name: tool_positions.calls
{positions_rows.calls}
SELECT least(forward, 30) AS forward, least(back, 30) AS back, kind, coalesce(cut, false) AS cut, count(*) AS n
FROM placed LEFT JOIN cut USING (session_id, turn)
GROUP BY ALL ORDER BY ALL

-- name: tool_positions.turns
{positions_rows.calls}
SELECT session_id, first, last, coalesce(cut, false) AS cut, count(*) AS n
FROM (
  SELECT session_id, turn, max(kind) FILTER (forward = 1) AS first, max(kind) FILTER (back = 1) AS last
  FROM placed
  GROUP BY ALL
)
LEFT JOIN cut USING (session_id, turn)
GROUP BY ALL ORDER BY ALL

-- name: positions_rows.calls
WITH cut AS (
  SELECT session_id, turn, number > 0 AS cut
  FROM named_signals WHERE signal = 'chat.hard_interruption' AND absent IS NULL
), placed AS (
  SELECT session_id, turn, seq, {kind} AS kind, row_number() OVER down AS forward,
    count(*) OVER (PARTITION BY session_id, turn) - row_number() OVER down + 1 AS back
  FROM tool_calls WHERE thread = 'main' AND turn IS NOT NULL
  WINDOW down AS (PARTITION BY session_id, turn ORDER BY seq, call_id)
)

-- name: positions_rows.of_cell
{positions_rows.calls}
SELECT session_id, count(*) AS n
FROM (SELECT placed.*, coalesce(cut, false) AS cut FROM placed LEFT JOIN cut USING (session_id, turn))

-- finding: tool_positions.first_looks
-- title: First calls of a turn that read or search
-- of: turns with a call
-- unit: share of turns
-- signals: chat.hard_interruption

-- finding: tool_positions.last_git
-- title: Last calls of finished turns that are git or gh
-- of: finished turns
-- unit: share of turns
-- note: SWE-chat: 27%
-- signals: chat.hard_interruption

-- finding: tool_positions.last_plan
-- title: Last calls of interrupted turns that hand in a plan
-- of: interrupted turns
-- unit: share of turns
-- note: SWE-chat: 32%
-- signals: chat.hard_interruption

-- table: tool_positions.ends
-- title: First and last calls of turns, by kind
-- of: turns with a call

-- study: transitions
-- order: 70
-- title: What follows what
-- question: In which order are tools used, and does it change in the course of a session?
-- limit: Neighbours are calls in the order they were asked for; calls that an agent asks for at once follow each
--   other here, too. A pair says what came next, not why.

-- name: transitions.classes
SELECT session_id, class, following, count(*) AS n
FROM (
  SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following
  FROM tool_calls WHERE thread = 'main'
)
WHERE following IS NOT NULL
GROUP BY ALL ORDER BY ALL

-- name: transitions.kinds
SELECT session_id, kind, following, count(*) AS n
FROM (
  SELECT session_id, kind, lead(kind) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following
  FROM (SELECT session_id, seq, call_id, {kind} AS kind FROM tool_calls WHERE thread = 'main')
)
WHERE following IS NOT NULL
GROUP BY ALL ORDER BY ALL

-- name: transitions.thirds
SELECT third, class, following, count(*) AS n
FROM (
  SELECT class, lead(class) OVER down AS following,
    CAST(floor(3 * (row_number() OVER down - 1) / count(*) OVER whole) AS BIGINT) AS third,
    count(*) OVER whole AS calls
  FROM tool_calls WHERE thread = 'main'
  WINDOW down AS (PARTITION BY session_id ORDER BY seq, call_id), whole AS (PARTITION BY session_id)
)
WHERE following IS NOT NULL AND calls >= {fewest_in_thirds}
GROUP BY ALL ORDER BY ALL

-- name: transitions_rows.of_pair
SELECT session_id, count(*) AS n
FROM (
  SELECT session_id, class, lead(class) OVER down AS following, count(*) OVER whole AS calls
  FROM tool_calls WHERE thread = 'main'
  WINDOW down AS (PARTITION BY session_id ORDER BY seq, call_id), whole AS (PARTITION BY session_id)
)
WHERE class = $class AND following = $following AND calls >= {fewest_in_thirds}
GROUP BY session_id

-- finding: transitions.same
-- title: Calls followed by one of their class
-- of: neighbouring calls
SELECT avg(CAST(class = following AS INT))
FROM (SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM
  tool_calls WHERE thread = 'main')
WHERE following IS NOT NULL

-- finding: transitions.tested
-- title: Edits followed at once by a test run
-- of: edits with a call behind them
SELECT avg(CAST(following = 'test' AS INT))
FROM (SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM
  tool_calls WHERE thread = 'main')
WHERE class = 'edit' AND following IS NOT NULL

-- finding: transitions.looked
-- title: Edits that follow a read or a search at once
-- of: edits with a call before them
SELECT avg(CAST(class IN ('read', 'search') AS INT))
FROM (SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM
  tool_calls WHERE thread = 'main')
WHERE following = 'edit'

-- table: transitions.thirds
-- title: Transitions from the beginning of a session to its end
-- note: By class: the share of all transitions in the first, second and last third of a session's calls.

-- table: transitions.pairs
-- title: Commonest pairs of neighbouring calls
-- columns: first call | second next call | n times:count | share of all pairs:share | lift times chance:number |
--   sessions:count
-- of: neighbouring calls

-- chart: transitions.matrix
-- title: What comes after a call, by class, in percent
-- of: neighbouring calls
-- note: each row adds up to 100; calls with another behind them in brackets

-- study: tool_profiles
-- order: 80
-- title: Working styles
-- question: Do sessions fall into groups by the tools they use?
-- limit: A style is a cut through a cloud: sessions at its edges could be in the next. Agents whose shell does what
--   others have tools for look like another style.

-- name: tool_profiles.mixes
SELECT session_id, agent, value, CAST(detail->>'n' AS BIGINT) AS n
FROM named_signals JOIN sessions USING (session_id)
WHERE signal = 'corpus.tool_class_mix' AND absent IS NULL ORDER BY session_id

-- finding: tool_profiles.count
-- title: Working styles by the classes of calls
-- of: sessions of at least {fewest_styled} calls
-- unit: styles
-- signals: corpus.tool_class_mix

-- finding: tool_profiles.silhouette
-- title: How far the styles stand apart: mean silhouette
-- of: sessions of at least {fewest_styled} calls
-- unit: of 1
-- signals: corpus.tool_class_mix

-- table: tool_profiles.styles
-- title: Working styles
-- columns: style | n sessions:count | share:share | agents | places:count | largest largest place:share | fit
--   silhouette:number | warning says little because
-- of: sessions of at least {fewest_styled} calls
-- note: Named by the classes of call of which it has most more than sessions have on the whole.

-- chart: tool_profiles.mix
-- title: What the calls of each style are, in percent
-- of: sessions of at least {fewest_styled} calls
-- note: means of sessions; sessions in brackets
