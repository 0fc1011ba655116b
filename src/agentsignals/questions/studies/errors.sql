-- name: errors.calls
SELECT session_id, agent, class, status, error_class, count(*) AS n
FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main'
GROUP BY ALL ORDER BY ALL

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
