-- name: worth_opening.prompts
SELECT session_id, left(text, 400) AS text FROM turns WHERE turn = 0 ORDER BY session_id

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

-- name: concentration.sessions
SELECT session_id, agent, model, place, {started_at} FROM sessions ORDER BY session_id
