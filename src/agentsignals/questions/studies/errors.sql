-- study: errors
-- order: 90
-- title: Errors
-- question: How often do tool calls fail, and are they made good?
-- limit: For every agent a non-zero exit, an error and a time-out failed, and a search that found nothing did not.
--   Some errors are probes (does this file exist?), and what agents log differs: a rate is no measure of skill.

-- name: errors.calls
SELECT session_id, agent, class, status, error_class, count(*) AS n
FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY ALL ORDER BY ALL

-- finding: errors.rate
-- signals: user.tool_error_rate
-- title: Tool calls that failed
-- of: answered calls
-- note: a non-zero exit, an error and a time-out failed, and a search that found nothing did not; refusals by the
--   person and cancelled calls count on neither side
-- headline: yes

-- finding: errors.recovery
-- signals: corpus.error_recovery_rate
-- title: Failed calls soon made good
-- of: failed calls
-- note: the same tool on the same target succeeded within five calls of the same turn

-- table: errors.kinds
-- title: Failed calls by what they say
-- columns: kind error | calls:count | share:share | sessions:count | classes in calls of class
-- of: failed calls

-- table: errors.by_class
-- title: Failed calls by class
-- columns: class | failed:count | answered:count | rate:share | ends:share | sessions:count
-- of: answered calls

-- chart: errors.kinds
-- title: What failed calls say
-- of: failed calls

-- study: recovery
-- order: 100
-- title: After a failure
-- question: What does an agent do when a call has failed?
-- limit: What comes after is the first call asked for once the failure was known.
-- limit: The same call again is no mistake where something changed meanwhile: a server that starts, a person's
--   refusal withdrawn. Refused calls are not counted as failed.

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
-- title: Failed calls that are made again unchanged at once
-- of: failed calls

-- finding: recovery.looked
-- title: Failed calls after which the agent looks first
-- of: failed calls

-- finding: recovery.given_up
-- title: Failed calls with which the agent stops
-- of: failed calls
-- note: no further call before the next prompt, or at all

-- finding: recovery.next_worked
-- title: Failed calls whose next call succeeds
-- of: failed calls with an answered call behind them
-- unit: share of failed calls

-- table: recovery.patterns
-- title: What comes after a failed call
-- columns: pattern next | n failed calls:count | share:share | sessions:count | answered next call answered:count |
--   worked of them succeeded:share
-- of: failed calls
-- note: Main thread; the first that fits counts, from above.

-- table: recovery.by_error
-- title: What comes after a failed call, by what it said
-- of: failed calls

-- chart: recovery.next
-- title: What comes after a failed call
-- of: failed calls

-- study: repetition
-- order: 110
-- title: Repetition
-- question: Do agents go in circles?

-- finding: repetition.pooled
-- signals: dynamics.repetition_rate
-- title: Calls that repeat an earlier call of the session
-- of: calls
-- note: same tool, same arguments, no successful edit in between; looks at something that runs are left out

-- finding: repetition.median
-- signals: dynamics.repetition_rate
-- title: Repeated calls in the median session
-- unit: share of calls
-- kind: share

-- finding: repetition.stale
-- of: sessions with a call
-- unit: share of sessions
-- signals: dynamics.repetition_rate

-- finding: errors.rejected
-- title: Calls the person refused
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'rejected'

-- finding: errors.cancelled
-- title: Calls cancelled
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'cancelled'

-- finding: errors.unknown
-- title: Calls of which the trace does not say whether they failed
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'unknown'

-- finding: errors.none
-- title: Calls without a result
-- of: tool calls
-- unit: calls
SELECT count(*) FROM tool_calls WHERE thread = 'main' AND status = 'none'
