-- name: why_failed.rungs
SELECT session_id, rung, CASE WHEN rung = 'failed' THEN coalesce(class, reason) ELSE reason END AS reason, task_id
FROM (
  SELECT session_id, max(json_extract_string(value, '')) FILTER (signal = 'verification.outcome') AS rung,
    max(detail->>'reason') FILTER (signal = 'verification.outcome') AS reason,
    max(json_extract_string(value, '')) FILTER (signal = 'verification.failure_class') AS class
  FROM signals
  WHERE signal IN ('verification.outcome', 'verification.failure_class') AND absent IS NULL
  GROUP BY session_id
)
JOIN (SELECT session_id, task_id FROM attempts) USING (session_id)
WHERE rung IS NOT NULL ORDER BY session_id

-- name: not_earned.audits
SELECT session_id, json_extract_string(value, '') AS verdict, detail->>'read_by' AS read_by, task_id
FROM signals
JOIN (SELECT session_id, task_id FROM attempts) USING (session_id)
WHERE signal = 'verification.pass_audit' AND absent IS NULL ORDER BY session_id

-- asked: solved_more
-- question: Which model, agent or setting solved more of the same tasks?
-- context: eval

-- asked: no_model
-- question: Which eval attempts do not record their model?
-- context: eval

-- asked: solved_cost
-- question: What does a solved task cost?
-- context: eval

-- asked: why_failed
-- question: Why did eval attempts fail?
-- context: eval

-- asked: not_earned
-- question: Which passed attempts cheated (reward hacking)?
-- context: eval
