-- study: tools
-- order: 40
-- title: Tools
-- question: Which tools do agents use?
-- limit: A shell command counts as one call, however much it does. So a share of calls is not a share of the work.

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

-- name: tools_rows.of_name
SELECT session_id, count(*) AS n FROM tool_calls WHERE thread = 'main' AND name = $name GROUP BY session_id

-- finding: tools.shell_share
-- title: Shell commands, without those that only read, search or test
-- of: tool calls
-- unit: share of calls
SELECT avg(CAST(class = 'shell' AS INT)) FROM tool_calls WHERE thread = 'main'

-- finding: tools.mcp_sessions
-- title: Sessions that use an MCP tool
-- of: sessions with a tool call
-- unit: share of sessions
SELECT avg(m)
FROM (SELECT max(CAST(class = 'mcp' AS INT)) AS m FROM tool_calls WHERE thread = 'main' GROUP BY session_id)

-- finding: tools.names
-- title: Number of different tools
-- of: tool calls
-- unit: names
SELECT count(DISTINCT name) FROM tool_calls WHERE thread = 'main'

-- finding: tools.entropy.median
-- signals: corpus.tool_mix_entropy
-- title: Median entropy of tool use per session
-- unit: bits
-- note: entropy measures how evenly tools are used: 0 is a single tool, 2 is four tools used equally often

-- table: tools.names
-- title: Number of calls of each tool
-- columns: name tool:code | calls:count | share:share | sessions:count | agents
-- of: tool calls

-- table: tools.classes
-- title: Tool calls by kind
-- columns: class | calls:count | share:share | sessions:count
-- of: tool calls
-- note: Subagents' calls are left out. A shell command that only reads, searches or tests counts as that kind.

-- chart: tools.mix
-- title: Tool calls by kind, for each agent (percent)
-- of: tool calls
-- note: each row adds up to 100%; the number of calls is in brackets

-- study: tool_categories
-- order: 50
-- title: Kinds of tool calls
-- question: Which kinds of tool calls do agents make, by the categories of the SWE-chat paper?
-- limit: Shell commands are sorted by their first word, as in the SWE-chat paper: "cd x && git push" counts as a file
--   command because of cd. The paper lists only the most common words of each kind.

-- name: tool_categories.calls
SELECT session_id, kind, count(*) AS n
FROM (SELECT session_id, {kind} AS kind FROM tool_calls WHERE thread = 'main')
GROUP BY ALL ORDER BY ALL

-- finding: tool_categories.looking
-- title: Calls of tools that read, search or list files, without shell commands that do
-- of: tool calls
-- unit: share of calls
-- note: the SWE-chat paper reports 31.3% (Table 5); the study Tools counts such shell commands as reads and searches

-- finding: tool_categories.changing
-- title: Calls that edit or write a file
-- of: tool calls
-- unit: share of calls
-- note: the SWE-chat paper reports 22.5% (Table 5)

-- finding: tool_categories.commands
-- title: Shell commands, as the SWE-chat paper counts them
-- of: tool calls
-- unit: share of calls
-- note: the SWE-chat paper reports 33.3% (Table 5); searches by shell command are left out

-- table: tool_categories.calls
-- title: Tool calls by kind
-- columns: kind | calls:count | share:share | ends:share | sessions:count | published SWE-chat:share
-- of: tool calls

-- chart: tool_categories.shares
-- title: Tool calls by kind
-- of: tool calls

-- study: tool_positions
-- order: 60
-- title: First and last calls after a prompt
-- question: What does an agent do first and last after a prompt, and right before a person stops it?
-- context: product
-- limit: A turn (a prompt and the agent's work on it) counts as cut short if the person interrupted it, refused a
--   call or queued a stop. Where a log does not record this, the turn counts as finished.

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
-- title: Prompts after which the first call reads or searches
-- of: turns with a call
-- unit: share of turns
-- signals: chat.hard_interruption

-- finding: tool_positions.last_git
-- title: Prompts whose last call is git or gh, of prompts that ran to their end
-- of: finished turns
-- unit: share of turns
-- note: the SWE-chat paper reports 27%
-- signals: chat.hard_interruption

-- finding: tool_positions.last_plan
-- title: Prompts cut short right after the agent proposed a plan
-- of: turns cut short
-- unit: share of turns
-- signals: chat.hard_interruption

-- table: tool_positions.ends
-- title: First and last calls after a prompt, by kind
-- of: turns with a call

-- study: transitions
-- order: 70
-- title: Order of tool calls
-- question: In which order are tools used, and does it change within a session?
-- limit: Calls are in the order in which the model requested them; calls made at the same time count as one after the
--   other. A pair shows what came next, not why.

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
-- title: Calls followed by a call of the same kind
-- of: consecutive calls
SELECT avg(CAST(class = following AS INT))
FROM (SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM
  tool_calls WHERE thread = 'main')
WHERE following IS NOT NULL

-- finding: transitions.tested
-- title: Edits that a test run directly follows
-- of: edits with a next call
SELECT avg(CAST(following = 'test' AS INT))
FROM (SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM
  tool_calls WHERE thread = 'main')
WHERE class = 'edit' AND following IS NOT NULL

-- finding: transitions.looked
-- title: Edits that directly follow a read or search
-- of: edits with a previous call
SELECT avg(CAST(class IN ('read', 'search') AS INT))
FROM (SELECT session_id, class, lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM
  tool_calls WHERE thread = 'main')
WHERE following = 'edit'

-- table: transitions.thirds
-- title: Pairs of consecutive calls in each third of a session
-- note: For each pair of call kinds: its share of all pairs in the first, second and last third of a session's calls.

-- table: transitions.pairs
-- title: Most frequent pairs of consecutive calls
-- columns: first call | second next call | n times:count | share of all pairs:share | lift lift:number |
--   sessions:count
-- of: consecutive calls

-- chart: transitions.matrix
-- title: Kind of the next call after each kind of call (percent)
-- of: consecutive calls
-- note: each row adds up to 100%; the number of calls is in brackets

-- study: tool_profiles
-- order: 80
-- title: Working styles
-- question: Do sessions fall into groups by the tools they use?
-- limit: The groups overlap: a session between two groups could belong to either. Agents that use shell commands
--   instead of file tools form a group of their own.

-- name: tool_profiles.mixes
SELECT session_id, agent, value, CAST(detail->>'n' AS BIGINT) AS n
FROM named_signals JOIN sessions USING (session_id)
WHERE signal = 'corpus.tool_class_mix' AND absent IS NULL ORDER BY session_id

-- finding: tool_profiles.count
-- title: Number of working styles found
-- of: sessions of at least {fewest_styled} calls
-- unit: styles
-- signals: corpus.tool_class_mix

-- finding: tool_profiles.silhouette
-- title: How clearly the working styles differ (mean silhouette: 0 not at all, 1 fully)
-- of: sessions of at least {fewest_styled} calls
-- unit: of 1
-- signals: corpus.tool_class_mix

-- table: tool_profiles.styles
-- title: Working styles
-- columns: style | n sessions:count | share:share | agents | places projects:count | largest largest project:share |
--   fit silhouette:number | warning caution
-- of: sessions of at least {fewest_styled} calls
-- note: A style is named after the kinds of calls that it uses far more than the average session.

-- chart: tool_profiles.mix
-- title: Tool calls by kind, for each working style (percent)
-- of: sessions of at least {fewest_styled} calls
-- note: means over sessions; the number of sessions is in brackets

-- study: errors
-- order: 90
-- title: Errors
-- question: How often do tool calls fail, and how often do agents recover?
-- limit: A non-zero exit code, an error or a time-out counts as a failure; a search without results does not. The
--   rate does not measure skill: some failures are normal (does this file exist?), and agents log failures
--   differently.

-- name: errors.calls
SELECT session_id, agent, class, status, error_class, count(*) AS n
FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY ALL ORDER BY ALL

-- finding: errors.rate
-- signals: user.tool_error_rate
-- title: Tool calls that failed
-- of: answered calls
-- note: failures are non-zero exit codes, errors and time-outs; refused and cancelled calls are left out
-- headline: yes

-- finding: errors.recovery
-- signals: corpus.error_recovery_rate
-- title: Failed calls that succeeded soon after
-- of: failed calls
-- note: recovered: the same tool succeeded on the same file or command within the next five calls after the same
--   prompt

-- table: errors.kinds
-- title: Failed calls by type of error
-- columns: kind error | calls:count | share:share | sessions:count | classes tool classes
-- of: failed calls

-- table: errors.by_class
-- title: Failed calls by kind of call
-- columns: class | failed:count | answered:count | rate:share | ends:share | sessions:count
-- of: answered calls

-- chart: errors.kinds
-- title: Failed calls by type of error
-- of: failed calls

-- study: recovery
-- order: 100
-- title: What agents do after a failed call
-- question: What does an agent do after a failed call?
-- limit: The next action is the first tool call after the agent was told of the failure.
-- limit: Repeating a failed call can be right if something changed in between, for example if a server was started.
--   Calls that the person refused do not count as failed.

-- name: recovery.failed
SELECT failed.session_id, failed.error_class,
  CASE WHEN next.name IS NULL THEN 'over' WHEN next.turn IS DISTINCT FROM failed.turn THEN 'turn_over'
    WHEN next.name = failed.name AND next.arguments = failed.arguments THEN 'again'
    WHEN next.name = failed.name THEN 'varied' WHEN next.class IN ('read', 'search') THEN 'looked'
    ELSE 'other' END AS pattern,
  CASE WHEN next.turn IS DISTINCT FROM failed.turn THEN NULL WHEN next.status = 'ok' THEN 1
    WHEN next.status = 'error' THEN 0 END AS worked, count(*) AS n
FROM (
  SELECT session_id, seq, result_seq, turn, name, arguments, error_class
  FROM tool_calls
  WHERE thread = 'main' AND status = 'error' AND error_class IS DISTINCT FROM 'sibling_cancelled'
) AS failed
ASOF LEFT JOIN (
  SELECT session_id, seq, turn, name, arguments, class, status FROM tool_calls WHERE thread = 'main'
) AS next ON failed.session_id = next.session_id AND coalesce(failed.result_seq, failed.seq) < next.seq
GROUP BY ALL ORDER BY ALL

-- name: recovery.runs
SELECT session_id, length, count(*) AS n
FROM (
  SELECT session_id, island, count(*) AS length
  FROM (
    SELECT session_id, status, row_number() OVER (PARTITION BY session_id ORDER BY seq, call_id) - row_number() OVER
      (PARTITION BY session_id, status = 'error' ORDER BY seq, call_id) AS island
    FROM tool_calls WHERE thread = 'main' AND error_class IS DISTINCT FROM 'sibling_cancelled'
  )
  WHERE status = 'error'
  GROUP BY ALL
)
GROUP BY ALL ORDER BY ALL

-- finding: recovery.again
-- title: Failed calls that the agent repeated at once, unchanged
-- of: failed calls

-- finding: recovery.looked
-- title: Failed calls followed by a read or search
-- of: failed calls

-- finding: recovery.given_up
-- title: Failed calls after which the agent stopped
-- of: failed calls
-- note: the agent makes no further call before the next prompt or the end of the session

-- finding: recovery.next_worked
-- title: Failed calls after which the next call succeeded
-- of: failed calls with an answered next call
-- unit: share of failed calls

-- table: recovery.patterns
-- title: Next action after a failed call
-- columns: pattern next action | n failed calls:count | share:share | sessions:count | answered next call
--   answered:count | worked succeeded:share
-- of: failed calls
-- note: Subagents' calls are left out. Each other call counts once, in the first row that fits it.

-- table: recovery.by_error
-- title: Next action after a failed call, by type of error
-- of: failed calls

-- chart: recovery.next
-- title: Next action after a failed call
-- of: failed calls

-- study: repetition
-- order: 110
-- title: Repetition
-- question: How often do agents repeat calls?

-- finding: repetition.pooled
-- signals: dynamics.repetition_rate
-- title: Calls that repeat an earlier call, with no successful edit in between
-- of: calls
-- note: a repeat has the same tool and arguments; planning, delegating, questions and polling are not counted

-- finding: repetition.median
-- signals: dynamics.repetition_rate
-- title: Median share of repeated calls per session
-- unit: share of calls
-- kind: share

-- finding: repetition.stale
-- title: Sessions with the same call {min_repeat_run} or more times and no edit in between
-- of: sessions with a call
-- unit: share of sessions
-- signals: dynamics.repetition_rate
SELECT avg(CAST(CAST(detail->>'stale_max' AS INT) >= {min_repeat_run} AS INT))
FROM signals
WHERE signal = 'dynamics.repetition_rate' AND absent IS NULL

-- finding: errors.rejected
-- title: Refused calls
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'rejected'

-- finding: errors.cancelled
-- title: Cancelled calls
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'cancelled'

-- finding: errors.unknown
-- title: Calls of which the log does not say whether they failed
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'unknown'

-- finding: errors.none
-- title: Calls without a result
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'none'
