-- name: cost.bill
SELECT session_id, agent, model, place, branch, {is_subagents} AS is_subagents, cost_usd, visible_output_tokens, unpriced
FROM sessions WHERE cost_usd IS NOT NULL ORDER BY session_id

-- name: cost.paid
SELECT session_id, {causes}
FROM charges WHERE session_id IN (SELECT session_id FROM sessions) GROUP BY session_id ORDER BY session_id

-- name: cost.repeats
SELECT session_id, name, path, kind
FROM repeated_calls WHERE session_id IN (SELECT session_id FROM sessions) ORDER BY session_id, thread, result_seq, seq
