-- SQL of the pages. `$name` is a bound value; `{name}` is a part of ours, or the section of that name.

-- name: attempts
-- The table of attempts with what the steps ask for.
(
  SELECT *, outcome IS NOT DISTINCT FROM 'solved' AS is_solved, coalesce(attempt_index, 0) AS nth,
    coalesce(bool_or(coalesce(attempt_index, 0) = 0 AND outcome = 'solved') OVER trial, false) AS first_solved,
    max(coalesce(attempt_index, 0)) OVER trial AS last,
    min(attempt_index) FILTER (attempt_index > 0 AND outcome = 'solved') OVER trial AS solved_at
  FROM attempts LEFT JOIN (
    SELECT session_id, value = 'true' AS has_patch FROM signals
    WHERE signal = 'verification.patch_present' AND level = 'attempt' AND value IS NOT NULL
  ) USING (session_id)
  WINDOW trial AS (PARTITION BY run_id, coalesce(trial_id, session_id))
)

-- name: place
-- The project of a session `s`: all its worktrees and clones, as `user.place` finds them.
coalesce((
  SELECT max(value->>'$') FROM signals
  WHERE signal = 'user.place' AND level = 'session' AND signals.session_id = s.session_id
), lower(s.repo), s.cwd)

-- name: with_prompt
-- Puts beside each session the first thing a person asked for in it, as `prompt`.
LEFT JOIN (
  SELECT session_id, arg_min(text, turn) AS prompt FROM turns
  WHERE kind IN ('prompt', 'queued_prompt') GROUP BY session_id
) USING (session_id)

-- name: files
(SELECT *, coalesce(format, 'not recognised') AS kind FROM artifacts)

-- name: attempts_with_sessions
{attempts} a LEFT JOIN (
  SELECT session_id, n_tool_calls, output_tokens, visible_output_tokens, cost_usd FROM sessions
) s USING (session_id)

-- name: labels_latest
-- The last label of each labeller for each thing.
SELECT session_id, turn, seq, labeller, arg_max(
  {'labeller': labeller, 'value': value, 'reason': reason, 'number': number,
   'unsure': coalesce(detail = '{"unsure": true}', false)},
  coalesce(created_at, TIMESTAMP '1970-01-01')) AS label
FROM labels WHERE task = $task AND {sessions}{labels} GROUP BY 1, 2, 3, 4

-- name: weaknesses
SELECT repo, commit_sha, scanner, rule, cwe, severity, path, line, place, owner, session_id, text, message
FROM weaknesses {where}

-- name: condition.no_outcome
s.session_id NOT IN (
  SELECT session_id FROM signals WHERE signal = 'user.session_outcome' AND level = 'session' AND value IS NOT NULL
  UNION ALL SELECT session_id FROM attempts WHERE outcome IS NOT NULL
)

-- name: condition.outcome
s.session_id IN (
  SELECT session_id FROM signals WHERE signal = 'user.session_outcome' AND value = $outcome_json
  UNION ALL SELECT session_id FROM attempts WHERE outcome = $outcome
)

-- name: condition.text
(contains(lower(concat_ws(' ', s.title, s.session_id)), lower($text))
OR s.session_id IN (
  SELECT session_id FROM (
    SELECT session_id, arg_min(text, turn) AS prompt FROM turns
    WHERE kind IN ('prompt', 'queued_prompt') GROUP BY session_id
  ) WHERE contains(lower(prompt), lower($text))
)
OR s.session_id IN (
  SELECT session_id FROM attempts WHERE contains(lower(concat_ws(' ', task_id, trial_id)), lower($text))
))

-- name: condition.call
s.session_id IN (SELECT session_id FROM tool_calls WHERE thread = 'main' AND {call})

-- name: condition.edit
s.session_id IN (SELECT session_id FROM edits WHERE thread = 'main' AND {edit})

-- name: condition.signal
s.session_id IN (SELECT session_id FROM signals WHERE {value})

-- name: condition.counted
s.session_id IN (SELECT unnest($behind))

-- name: filter.without_time_or_cost
SELECT count(*) FILTER (s.started_at IS NULL) AS time, count(*) FILTER (s.cost_usd IS NULL) AS cost,
  count(*) FILTER (s.visible_output_tokens IS NOT NULL) AS bounds
FROM sessions s {where}

-- name: filter.last
SELECT max(started_at) AS last FROM sessions WHERE started_at < TIMESTAMP '2100-01-01'

-- name: filter.sessions
SELECT s.session_id FROM sessions s {where}

-- name: filter.values
SELECT {column} AS v FROM sessions s WHERE {column} <> '' GROUP BY 1 ORDER BY count(*) DESC, 1

-- name: filter.contexts
SELECT context AS v FROM sessions GROUP BY 1 ORDER BY 1 DESC

-- name: filter.tools
SELECT name AS v FROM tool_calls WHERE thread = 'main' GROUP BY 1 ORDER BY count(*) DESC, 1

-- name: filter.outcomes
SELECT value->>'$' AS v FROM signals
WHERE signal = 'user.session_outcome' AND level = 'session' AND value IS NOT NULL GROUP BY 1
UNION SELECT outcome FROM attempts WHERE outcome <> '' ORDER BY 1

-- name: overview.corpus_values
SELECT signal, value, number, absent, absent_detail, detail->>'at_least' AS at_least FROM signals
WHERE level = 'corpus' ORDER BY signal

-- name: figures.sessions
-- One row a session; a clock that was never set stretches no axis. Answered calls, of which the trace says whether
-- they failed, are the denominator of `user.tool_error_rate`.
SELECT s.session_id, s.agent, s.model, coalesce(measured.place, lower(s.repo), s.cwd) AS repo, s.branch, s.unpriced,
  coalesce(s.cost_usd, attempt.harness_cost_usd) AS cost_usd,
  s.visible_output_tokens IS NOT NULL AS is_bound, s.title, s.n_tool_calls,
  CASE WHEN s.started_at BETWEEN TIMESTAMP '2015-01-01' AND TIMESTAMP '2100-01-01' THEN s.started_at END AS started_at,
  coalesce(measured.place, lower(s.repo), s.cwd) AS place, coalesce(measured.outcome, attempt.outcome) AS outcome, attempt.task,
  coalesce(calls.failed, 0) AS failed, coalesce(calls.n, 0) AS answered
FROM sessions s LEFT JOIN (
  SELECT session_id, max(CASE WHEN signal = 'user.place' THEN value->>'$' END) AS place,
    max(CASE WHEN signal = 'user.session_outcome' THEN value->>'$' END) AS outcome
  FROM signals
  WHERE signal IN ('user.place', 'user.session_outcome') AND level = 'session' AND value IS NOT NULL GROUP BY 1
) measured USING (session_id) LEFT JOIN (
  SELECT session_id, max(outcome) AS outcome, max(task_id) AS task, max(harness_cost_usd) AS harness_cost_usd
  FROM attempts GROUP BY 1
) attempt USING (session_id) LEFT JOIN (
  SELECT session_id, count(*) AS n, count(*) FILTER (status = 'error') AS failed FROM tool_calls
  WHERE thread = 'main' AND status IN ('ok', 'error') GROUP BY 1
) calls USING (session_id)
{where} ORDER BY s.session_id

-- name: figures.tools
SELECT session_id, name AS tool, count(*) AS n, count(*) FILTER (status = 'error') AS failed
FROM tool_calls WHERE thread = 'main' AND status IN ('ok', 'error') AND session_id IN ({sessions}) GROUP BY 1, 2

-- name: figures.edited_files
SELECT {place} AS repo, path, count(DISTINCT (session_id, seq)) AS edits,
  count(DISTINCT session_id) AS sessions, sum(added)::BIGINT AS added, sum(removed)::BIGINT AS removed
FROM edits JOIN sessions s USING (session_id) WHERE thread = 'main' AND session_id IN ({sessions})
GROUP BY 1, 2 ORDER BY edits DESC, sessions DESC, path LIMIT $most

-- name: finding.rows
SELECT * FROM ({cause}) LIMIT {most}

-- name: files.formats
SELECT coalesce(format, 'not recognised') AS format, count(*) AS artifacts, sum(records) AS records,
  sum(skipped) AS skipped, sum(bytes) AS bytes
FROM artifacts GROUP BY 1 ORDER BY artifacts DESC, 1

-- name: files.skipped
SELECT skipped_reasons, count(*) AS n FROM artifacts WHERE skipped_reasons <> '{}' GROUP BY 1

-- name: files.kinds
SELECT DISTINCT coalesce(format, 'not recognised') AS kind FROM artifacts ORDER BY 1

-- name: files.count
SELECT count(*) AS n FROM {files} {where}

-- name: files.page
SELECT artifact_id, path, kind, bytes, records, skipped, skipped_reasons, note FROM {files} {where}
ORDER BY skipped DESC, path, artifact_id LIMIT $size OFFSET $start

-- name: sessions.by_id
SELECT session_id, agent, model, context, title, coalesce(repo, cwd) AS place, started_at, n_tool_calls, cost_usd,
  visible_output_tokens, format, cwd, parent_session_id, left(prompt, 400) AS prompt
FROM sessions {with_prompt} WHERE list_contains($ids, session_id)

-- name: sessions.first_prompts
SELECT session_id, left(arg_min(text, turn), 400) AS prompt FROM turns
WHERE kind IN ('prompt', 'queued_prompt') AND session_id IN (SELECT unnest($ids)) GROUP BY session_id

-- name: sessions.page
-- Prompts of the sessions that are shown, not of all.
WITH shown AS (
  SELECT session_id, context, agent, model, coalesce(repo, cwd) AS place, branch, title, started_at, ended_at,
    format, cwd, parent_session_id, n_prompts, n_tool_calls, n_edits, output_tokens, cost_usd, visible_output_tokens, unpriced,
    epoch(ended_at - started_at) AS seconds, row_number() OVER () AS rank
  FROM (SELECT * FROM sessions s {where} {order})
), outcomes AS (
  SELECT session_id, coalesce(measured.outcome, attempt.outcome) AS outcome, task_id, reward
  FROM shown LEFT JOIN (
    SELECT session_id, max(value->>'$') AS outcome FROM signals
    WHERE signal = 'user.session_outcome' AND level = 'session' AND value IS NOT NULL GROUP BY session_id
  ) measured USING (session_id) LEFT JOIN (
    SELECT session_id, max(outcome) AS outcome, max(task_id) AS task_id, max(reward) AS reward FROM attempts
    GROUP BY session_id
  ) attempt USING (session_id)
)
SELECT * FROM shown LEFT JOIN outcomes USING (session_id) LEFT JOIN (
  SELECT session_id, left(arg_min(text, turn), 400) AS prompt FROM turns
  WHERE kind IN ('prompt', 'queued_prompt') AND session_id IN (SELECT session_id FROM shown) GROUP BY session_id
) USING (session_id) ORDER BY rank

-- name: sessions.count
SELECT count(*) AS n FROM sessions s {where}

-- name: pair.facts
SELECT s.*, left(prompt, 400) AS prompt, a.task_id, a.trial_id AS trial, a.attempt_index AS attempt, a.outcome, a.reward,
  a.patch_outcome_label, a.wall_time_s, a.exit_status, a.effective_tool_cap, a.model_id, a.agent_type
FROM sessions s {with_prompt}
LEFT JOIN (SELECT * EXCLUDE (trial_id, attempt_index), trial_id, attempt_index FROM attempts) a USING (session_id)
WHERE session_id = $session

-- name: pair.nearby
-- Attempts at the task of a session, or sessions of its repository, nearest in time first.
WITH all_of AS (
  SELECT s.session_id, context, agent, model, title, started_at, left(prompt, 300) AS prompt,
    CASE WHEN context = 'eval' THEN task_id ELSE coalesce(repo, cwd) END AS place
  FROM sessions s {with_prompt} LEFT JOIN (SELECT session_id, task_id FROM attempts) USING (session_id)
)
SELECT o.* FROM all_of o JOIN all_of t
  ON t.session_id = $session AND o.place = t.place AND o.context = t.context AND o.session_id <> t.session_id
ORDER BY abs(epoch(o.started_at) - epoch(t.started_at)) NULLS LAST, o.session_id LIMIT 15

-- name: pair.numbers
-- How far apart two numbers lie: the share of the store's sessions between them, those at an end counted by half.
WITH pair AS (
  SELECT signal, max(number) FILTER (session_id = $a) AS a, max(number) FILTER (session_id = $b) AS b,
    max(value) FILTER (session_id = $a) AS a_value, max(value) FILTER (session_id = $b) AS b_value
  FROM signals WHERE session_id IN ($a, $b) AND turn IS NULL AND level <> 'corpus' AND isfinite(number)
  GROUP BY signal HAVING a <> b
)
SELECT signal, any_value(a) AS a, any_value(b) AS b, any_value(a_value) AS a_value, any_value(b_value) AS b_value,
  count(*) AS n,
  avg(CASE WHEN number < greatest(a, b) THEN 1.0 WHEN number = greatest(a, b) THEN 0.5 ELSE 0 END)
  - avg(CASE WHEN number < least(a, b) THEN 1.0 WHEN number = least(a, b) THEN 0.5 ELSE 0 END) AS apart
FROM pair JOIN signals USING (signal)
WHERE turn IS NULL AND level <> 'corpus' AND isfinite(number) GROUP BY signal ORDER BY apart DESC, signal

-- name: pair.words
SELECT signal, max(value) FILTER (session_id = $a) AS a_value, max(value) FILTER (session_id = $b) AS b_value
FROM signals WHERE session_id IN ($a, $b) AND turn IS NULL AND level <> 'corpus' AND number IS NULL AND absent IS NULL
GROUP BY signal HAVING a_value <> b_value ORDER BY signal

-- name: pair.other_attempts
SELECT session_id, coalesce(model_id, agent_type, '') AS who, attempt_index FROM attempts
WHERE task_id = $task AND NOT list_contains($shown, session_id) ORDER BY who, attempt_index, session_id LIMIT 20

-- name: session.signals
-- Of a list that is too long for a line its length is asked for: those of a long session are megabytes.
SELECT signal, turn, level, number, absent, absent_detail, detail->>'at_least' AS at_least,
  CASE WHEN length(value) > 4000 AND starts_with(value, '[') THEN to_json(json_array_length(value) || ' entries')
    WHEN length(value) > 4000 AND starts_with(value, '{') THEN to_json(len(json_keys(value)) || ' entries')
    ELSE value END AS value
FROM signals WHERE session_id = $session AND level <> 'corpus' AND turn IS NULL ORDER BY signal

-- name: session.turn_signals
SELECT signal, turn, level, value, number, absent, detail->>'at_least' AS at_least, detail->>'labeller' AS labeller
FROM signals
WHERE session_id = $session AND turn BETWEEN $low AND $high AND value NOT IN ('null', 'false', '0', '[]', '{}')
ORDER BY turn, signal

-- name: session.first_prompt
SELECT left(text, 400) AS text FROM turns
WHERE session_id = $session AND kind IN ('prompt', 'queued_prompt') AND trim(text) <> '' ORDER BY turn LIMIT 1

-- name: session.children
SELECT s.session_id, s.agent, s.title, left(prompt, 200) AS prompt, s.n_tool_calls, s.started_at FROM sessions s
LEFT JOIN (
  SELECT session_id, arg_min(text, turn) AS prompt FROM turns
  WHERE session_id IN (SELECT session_id FROM sessions WHERE parent_session_id = $session) GROUP BY session_id
) USING (session_id)
WHERE parent_session_id = $session ORDER BY started_at LIMIT 200

-- name: session.outline
SELECT t.turn, t.seq, t.kind, left(t.text, 160) AS text, coalesce(c.n_calls, 0) AS n_calls,
  coalesce(c.n_failed, 0) AS n_failed, coalesce(d.n_edits, 0) AS n_edits
FROM (SELECT turn, seq, kind, text FROM turns WHERE session_id = $session AND turn BETWEEN $low AND $high) t
LEFT JOIN (
  SELECT turn, count(*) AS n_calls, count(*) FILTER (status = 'error') AS n_failed FROM tool_calls
  WHERE session_id = $session AND turn BETWEEN $low AND $high GROUP BY turn
) c USING (turn)
LEFT JOIN (
  SELECT turn, count(DISTINCT (seq, path)) AS n_edits FROM edits
  WHERE session_id = $session AND turn BETWEEN $low AND $high GROUP BY turn
) d USING (turn)
ORDER BY t.turn

-- name: session.turn_at
SELECT turn FROM turns WHERE session_id = $session AND seq <= $seq ORDER BY seq DESC LIMIT 1

-- name: session.facts
SELECT * FROM sessions WHERE session_id = $session

-- name: transcript.entries
SELECT thread, list(seq ORDER BY seq) AS seqs, list(mask ORDER BY seq) AS masks
FROM (
  SELECT e.seq, e.thread, {mask} AS mask
  FROM (SELECT seq, thread, kind FROM events WHERE session_id = $session) e
  LEFT JOIN (SELECT seq, class, status, outcome FROM tool_calls WHERE session_id = $session) c USING (seq)
  LEFT JOIN (SELECT DISTINCT seq FROM edits WHERE session_id = $session) d USING (seq)
  ANTI JOIN (SELECT result_seq FROM tool_calls WHERE session_id = $session AND result_seq IS NOT NULL) r
    ON e.seq = r.result_seq
) GROUP BY thread ORDER BY min(seq)

-- name: transcript.containing
SELECT coalesce(c.seq, e.seq) AS seq FROM (
  SELECT seq FROM events WHERE session_id = $session AND contains(lower(text), lower($words))
) e LEFT JOIN (
  SELECT seq, result_seq FROM tool_calls WHERE session_id = $session AND result_seq IS NOT NULL
) c ON c.result_seq = e.seq
UNION SELECT seq FROM tool_calls WHERE session_id = $session AND contains(lower(arguments), lower($words))

-- name: transcript.call_of_result
SELECT seq FROM tool_calls WHERE session_id = $session AND result_seq = $seq

-- name: transcript.calls
SELECT seq, thread, name, class, path, command, arguments, argument_roles, status, outcome, error_class, exit_code,
  result_tokens, result_seq, ran_s
FROM tool_calls WHERE session_id = $session AND seq IN (SELECT unnest($seqs)) AND seq BETWEEN $low AND $high

-- name: transcript.events
SELECT seq, turn, thread, kind, left(text, $most) AS text, greatest(n_chars, length(text)) AS n_chars, timestamp, line
FROM events WHERE session_id = $session AND seq IN (SELECT unnest($seqs)) AND seq BETWEEN $low AND $high ORDER BY seq

-- name: transcript.edits
SELECT seq, path, op, via, hunk, start_line, end_line, old_start, added, removed, whole_file
FROM edits WHERE session_id = $session AND seq IN (SELECT unnest($seqs)) AND seq BETWEEN $low AND $high
ORDER BY seq, hunk

-- name: transcript.turns
SELECT turn, kind, seq FROM turns WHERE session_id = $session AND seq IN (SELECT unnest($seqs))

-- name: trajectory.steps
SELECT bin, max(context) AS context, max(cost) AS cost, max(seq) AS seq, min(seq) AS first, count(context) AS n
FROM (
  SELECT seq, (row_number() OVER (ORDER BY seq) - 1) * $bins // greatest(count(*) OVER (), $bins) AS bin,
    CASE WHEN thread = 'main' AND coalesce(stop_reason NOT SIMILAR TO '(session_total|iteration_.*)', true)
      THEN input_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) END AS context,
    sum(cost_usd) OVER (ORDER BY seq, step) AS cost
  FROM steps WHERE session_id = $session
) GROUP BY bin ORDER BY bin

-- name: trajectory.counts
SELECT count(*) AS n, count(*) FILTER (thread = 'main' AND input_tokens IS NOT NULL) AS with_context,
  count(cost_usd) AS with_cost
FROM steps WHERE session_id = $session

-- name: trajectory.marks
SELECT seq * $bins // greatest($n, 1) AS bin, min(seq) AS seq, count(*) AS n FROM {table}
WHERE session_id = $session {when} GROUP BY bin ORDER BY bin

-- name: trajectory.signals
SELECT signal, count(*) AS n FROM signals WHERE session_id = $session AND turn IS NOT NULL AND absent IS NULL
GROUP BY signal HAVING count(*) > 1 ORDER BY signal

-- name: trajectory.values_by_turn
SELECT s.turn, t.seq, s.number, s.value, s.detail->>'at_least' AS at_least
FROM signals s JOIN turns t ON t.session_id = s.session_id AND t.turn = s.turn
WHERE s.session_id = $session AND s.signal = $signal AND s.absent IS NULL ORDER BY s.turn

-- name: trajectory.length
SELECT max(seq) + 1 AS n FROM events WHERE session_id = $session

-- name: explanation.events
SELECT e.seq, e.kind, e.turn, e.thread, e.timestamp, c.name, c.status, c.error_class, c.exit_code
FROM (
  SELECT seq, kind, turn, thread, timestamp FROM events
  WHERE session_id = $session AND seq IN (SELECT unnest($seqs))
) e LEFT JOIN (
  SELECT seq, name, status, error_class, exit_code FROM tool_calls
  WHERE session_id = $session AND seq IN (SELECT unnest($seqs))
) c USING (seq)

-- name: explanation.same_value
SELECT count(*) AS n, count(*) FILTER (value = $value) AS same FROM signals
WHERE signal = $signal AND level IN ('session', 'attempt') AND absent IS NULL

-- name: explanation.title
SELECT title, context FROM sessions WHERE session_id = $session

-- name: raw.event
SELECT artifact_id, line, left(text, 200) AS text FROM events WHERE session_id = $session AND seq = $seq

-- name: raw.artifact
SELECT path, format, sha256, bytes FROM artifacts WHERE artifact_id = $id

-- name: signals.quantiles
-- Of a signal of sessions each has one value: which they are need not be held in memory. Quantiles share their values.
SELECT signal, n, known, once + of_many AS sessions, low, high, mean, at_least, quantiles[1] AS q10,
  quantiles[2] AS q25, quantiles[3] AS median, quantiles[4] AS q75, quantiles[5] AS q90, quantiles[6] AS q95
FROM (
  SELECT signal, count(*) AS n, count(*) FILTER (absent IS NULL) AS known,
    count(*) FILTER (level = 'session') AS once,
    count(DISTINCT CASE WHEN level <> 'session' THEN session_id END) AS of_many,
    min(number) AS low, max(number) AS high, avg(number) AS mean,
    quantile_cont(number, [0.1, 0.25, 0.5, 0.75, 0.9, 0.95]) AS quantiles,
    coalesce(bool_or(contains(detail, 'at_least') AND detail->>'at_least' = 'true'), false) AS at_least
  FROM signals WHERE level <> 'corpus' {chosen} GROUP BY signal
)

-- name: signals.bins
SELECT s.signal, least($bins - 1, floor($bins * (s.number - e.low) / (e.high - e.low)))::INTEGER AS bin, count(*) AS n
FROM signals s JOIN (
  SELECT signal, min(number) AS low, max(number) AS high FROM signals
  WHERE level <> 'corpus' {chosen} AND isfinite(number) GROUP BY signal HAVING min(number) < max(number)
) e USING (signal)
WHERE s.level <> 'corpus' {chosen} AND isfinite(s.number) GROUP BY 1, 2

-- name: signals.missing
SELECT signal, absent, count(*) AS n FROM signals WHERE level <> 'corpus' {chosen} AND absent IS NOT NULL
GROUP BY 1, 2 ORDER BY n DESC, absent

-- name: signals.labels
SELECT signal, value->>'$' AS label, count(*) AS n FROM signals
WHERE signal IN (SELECT unnest($enums)) AND value IS NOT NULL {chosen} GROUP BY 1, 2 ORDER BY n DESC, 2

-- name: signals.numbers
SELECT signal, list(number ORDER BY number) AS numbers,
  coalesce(bool_or(contains(detail, 'at_least') AND detail->>'at_least' = 'true'), false) AS at_least
FROM signals
WHERE level IN ('session', 'attempt') AND number IS NOT NULL AND isfinite(number) GROUP BY signal

-- name: signal.absent
SELECT absent AS reason, absent_detail AS detail, count(*) AS n FROM signals
WHERE signal = $signal AND absent IS NOT NULL {chosen} GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT 20

-- name: signal.values
SELECT value, detail->>'labeller' AS labeller, count(*) AS n, min(session_id) AS example FROM signals
WHERE signal = $signal AND absent IS NULL {chosen} GROUP BY ALL ORDER BY n DESC, value, labeller LIMIT $most

-- name: signal.extremes
-- Prompts of the sessions that are shown, not of all.
WITH shown AS (
  SELECT session_id, turn, number, value, detail->>'at_least' AS at_least FROM signals
  WHERE signal = $signal AND absent IS NULL AND level <> 'corpus' {numbered} {chosen}
  ORDER BY {order}, session_id, turn LIMIT $most
)
SELECT g.*, s.agent, s.title, s.started_at, prompt FROM shown g JOIN sessions s USING (session_id) LEFT JOIN (
  SELECT session_id, left(arg_min(text, turn), 300) AS prompt FROM turns
  WHERE kind IN ('prompt', 'queued_prompt') AND session_id IN (SELECT session_id FROM shown) GROUP BY session_id
) USING (session_id) ORDER BY {order}, session_id, g.turn

-- name: signal.corpus_value
SELECT value, number, absent, absent_detail, detail->>'at_least' AS at_least FROM signals
WHERE signal = $signal AND level = 'corpus'

-- name: signal.histogram
SELECT {counts} FROM signals WHERE signal = $signal AND level <> 'corpus' {chosen}

-- name: attempts.data_sets
SELECT dataset AS v FROM attempts WHERE dataset <> '' GROUP BY 1 ORDER BY count(*) DESC, 1

-- name: attempts.by_treatment
SELECT {columns}, count(*) AS n, {counts} FROM {attempts}
GROUP BY {columns} ORDER BY n DESC, {columns} LIMIT {most}

-- name: attempts.judged
count(DISTINCT task_id) AS tasks, count(*) FILTER (outcome IN ('solved', 'failed')) AS judged,
list({'task': coalesce(task_id, session_id), 'solved': outcome = 'solved'})
  FILTER (outcome IN ('solved', 'failed')) AS judgements,
count(*) FILTER (reward IS NOT NULL OR patch_outcome_label IS NOT NULL) AS verified,
count(*) FILTER (outcome = 'agent_not_started') AS agent_not_started,
count(*) FILTER (outcome = 'verifier_not_run') AS verifier_not_run,
count(*) FILTER (outcome = 'infrastructure') AS infrastructure, median(wall_time_s) AS wall_time_s

-- name: attempts.count
SELECT count(*) AS n FROM {attempts_with_sessions} {where}

-- name: attempts.page
SELECT session_id, trial_id, attempt_index, is_last, task_id, agent_type, model_id, dataset, effective_tool_cap, reward,
  outcome, patch_outcome_label, fail_to_pass_count, pass_to_fail_count, wall_time_s, timed_out, exit_status,
  has_transcript, n_tool_calls, output_tokens, coalesce(cost_usd, harness_cost_usd) AS cost_usd, visible_output_tokens
FROM {attempts_with_sessions} {where} ORDER BY {order}, trial_id, attempt_index, session_id LIMIT $size OFFSET $start

-- name: labels.counts
SELECT task, labeller, value, count(*) AS n, count(DISTINCT session_id) AS sessions,
  count(*) FILTER (detail = '{"unsure": true}') AS unsure
FROM labels WHERE {sessions} GROUP BY ALL ORDER BY n DESC, task, labeller, value

-- name: labels.details
SELECT session_id, value, detail FROM labels WHERE {sessions} AND task = $task AND labeller = $labeller

-- name: labels.items
-- Things with their labels.
SELECT session_id, turn, seq, count(*) AS n, count(DISTINCT label.value) AS n_values,
  max(label.number) - min(label.number) AS apart, list(label ORDER BY labeller) AS labels
FROM ({labels_latest}) GROUP BY 1, 2, 3 HAVING {things}

-- name: labels.turns
SELECT session_id, turn, seq, text FROM turns WHERE session_id IN ({ids})

-- name: labels.answers
SELECT session_id, turn, max(seq) AS seq FROM events
WHERE session_id IN ({ids}) AND kind = 'text' AND n_chars > 0 GROUP BY 1, 2

-- name: labels.events
-- Asked of named sessions, so that no file is read that has none of them: a tenth of what a join takes.
SELECT session_id, seq, text, right(text, 1500) AS ending FROM events
WHERE session_id IN ({ids}) AND seq IN (SELECT unnest($seqs))

-- name: labels.numbers
SELECT count(*) AS n, count(*) FILTER (n > 1) AS shared, count(*) FILTER (n_values > 1) AS apart,
  count(*) FILTER ({condition}) AS shown
FROM ({items})

-- name: labels.page
SELECT * FROM ({items}) WHERE {condition}
ORDER BY n_values DESC, apart DESC NULLS LAST, n DESC, session_id, turn, seq LIMIT $size OFFSET $start

-- name: code.repositories
SELECT repo, count(*) AS commits, count(*) FILTER (relation IS NOT NULL) AS attributed,
  CAST(coalesce(sum(added) FILTER (relation IS NOT NULL), 0) AS BIGINT) AS added, {sums},
  CAST(coalesce(sum(written), 0) AS BIGINT) AS written, CAST(coalesce(sum(kept), 0) AS BIGINT) AS kept,
  CAST(coalesce(sum(written_in_files), 0) AS BIGINT) AS written_in_files,
  min(committed_at) AS first, max(committed_at) AS last
FROM commits GROUP BY repo ORDER BY added DESC, repo

-- name: code.modes
SELECT DISTINCT mode FROM commits WHERE mode <> '' ORDER BY 1

-- name: code.count
SELECT count(*) AS n FROM commits {where}

-- name: code.commits
SELECT repo, commit_sha, committed_at, author, subject, relation, session_ids, added, files, agent_low, agent_high, mode,
  recorded_mode, recorded_percentage, flags, coalesce(introduced, 0) AS introduced, {lines}
FROM commits LEFT JOIN (
  SELECT repo, commit_sha, count(*) AS introduced FROM weaknesses WHERE change = 'introduced' GROUP BY repo, commit_sha
) USING (repo, commit_sha)
{where}

-- name: code.alive
SELECT repo, {owner} AS owner, count(alive) AS known, count(*) FILTER (alive) AS alive
FROM line_attribution GROUP BY ALL

-- name: code.worst_weaknesses
{weaknesses}
ORDER BY list_position(['critical', 'high', 'medium', 'low'], lower(coalesce(severity, ''))) NULLS LAST, rule, path, line,
  commit_sha LIMIT $most

-- name: code.rules
SELECT rule, severity, owner, count(*) AS n FROM weaknesses {where} GROUP BY ALL ORDER BY n DESC, 1, 2, 3

-- name: code.scans
SELECT scanner, count(DISTINCT (repo, commit_sha)) AS commits, sum(files) AS files, sum(skipped) AS skipped
FROM scans {where} GROUP BY scanner ORDER BY 1

-- name: code.places
-- Regions of files that many calls changed; a line's number is the one it had right after the call.
SELECT place, path, region, n, sessions, last.session_id AS session_id, last.seq AS seq, last.at AS at FROM (
  SELECT coalesce(s.repo, s.cwd, '') AS place, e.path AS path,
    greatest(e.start_line - 1, 0) // {region_lines} AS region,
    count(DISTINCT (e.session_id, e.seq)) AS n, count(DISTINCT e.session_id) AS sessions,
    max({'at': coalesce(s.started_at, TIMESTAMP '1970-01-01'), 'session_id': e.session_id, 'seq': e.seq}) AS last
  FROM edits e JOIN sessions s USING (session_id)
  WHERE e.thread = 'main' AND e.start_line IS NOT NULL AND NOT coalesce(e.whole_file, false) {in_repository}
  GROUP BY 1, 2, 3
)
WHERE n >= $fewest ORDER BY n DESC, sessions DESC, place, path, region LIMIT $most

-- name: code.in_repository
AND session_id IN (SELECT unnest(session_ids) FROM commits WHERE repo = $repo)

-- name: commit.lines
SELECT path, {owner} AS owner, session_id, count(*) AS n, min(seq) AS seq, min(line) AS first,
  count(alive) AS known, count(*) FILTER (alive) AS alive
FROM line_attribution WHERE repo = $repo AND commit_sha = $sha GROUP BY ALL ORDER BY path, n DESC, owner, session_id

-- name: commit.weaknesses
{weaknesses} ORDER BY path, line

-- name: report.agents
SELECT agent, count(*) AS n FROM sessions GROUP BY agent ORDER BY n DESC, agent

-- name: report.sessions
SELECT {columns} FROM sessions WHERE session_id IN (SELECT unnest(?)) ORDER BY session_id
