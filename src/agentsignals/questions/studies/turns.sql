-- name: turn_time.turns
SELECT named.session_id, named.turn, number AS seconds, agent, coalesce(turns.model, sessions.model) AS model,
  {said_at}
FROM named_signals AS named JOIN sessions USING (session_id) JOIN turns USING (session_id, turn)
WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL
ORDER BY named.session_id, named.turn

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
