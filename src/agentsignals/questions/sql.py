"""SQL that several studies ask, over the store's tables. Free of double quotes and of `$`: it fits a shell command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentsignals.model import UNSPOKEN
from agentsignals.model.lazy import deferred_pattern

SPOKEN = f"kind NOT IN {tuple(sorted(UNSPOKEN))}"
"""Condition on turns: a person's own words."""
STARTED = (
    "CASE WHEN started_at BETWEEN TIMESTAMP '2015-01-01' AND TIMESTAMP '2100-01-01' THEN started_at END AS started_at"
)
"""When a session began; a clock that was never set (1970) must not stretch the axis of everybody's time."""

PLACE = "place"
"""Where a session lies: a column that the table `sessions` has for studies (`findings.inputs.Reader`)."""
LIES = (
    "SELECT session_id, max(json_extract_string(value, '')) AS place FROM signals WHERE signal = 'user.place' AND"
    " absent IS NULL GROUP BY session_id"
)
"""Where sessions lie, told of all of them together (`views.history.places`); nothing of eval runs."""


def with_place(sessions: str = "sessions", lies: str = f"({LIES})") -> str:
    """Sessions with their place; of an eval run its own. `lies`: the rows of `LIES`."""
    return (
        f"SELECT sessions.*, coalesce(lies.place, lower(repo), cwd) AS place FROM {sessions} AS sessions"
        f" LEFT JOIN {lies} AS lies USING (session_id)"
    )


NAMED = "named_signals"
"""Rows of `signals` that the queries of a report name (`signal = '…'`, `signal IN (…)`), with the columns they read."""
WHERE_EACH_LIES = f"SELECT session_id, place FROM ({with_place()}) ORDER BY session_id"
"""`PLACED` where the table `sessions` is the store's own."""
IS_SUBAGENTS = "parent_session_id IS NOT NULL AND n_prompts = 0"
"""Condition on sessions: a subagent's (Codex, OpenCode). A fork has a parent too, but a person speaks in it."""
BOUND = "visible_output_tokens"
"""The column that is there where a session's output, and so its cost, is a lower bound."""


IS_COST_BOUND = f"({BOUND} IS NOT NULL OR unpriced IS NOT NULL)"
"""Condition on sessions: the cost is a lower bound, as `is_cost_bound` has it."""


def is_cost_bound(session: Mapping[str, Any]) -> bool:
    """Whether a session's cost is a lower bound: output logged in mid-stream, or a part that has no price."""
    return session[BOUND] is not None or session["unpriced"] is not None


FACTS = (
    f"SELECT session_id, agent, agent_version, model, repo, cwd, epoch_us(started_at) AS started_at, {IS_SUBAGENTS} AS"
    " is_subagents, n_prompts,"
    f" n_edits, cost_usd, main_cost_usd, unpriced, {BOUND},"
    " input_tokens IS NOT NULL AND output_tokens IS NOT NULL AS has_tokens,"
    " main_input_tokens + coalesce(main_cache_read_tokens, 0) + coalesce(main_cache_write_tokens, 0) AS sent_tokens,"
    f" list_contains(conventions, 'rewinds_logged') AS logs_rewinds FROM (SELECT * REPLACE ({STARTED}) FROM sessions)"
)
"""What findings want to know of sessions, one row each: they are read once for all. Their place is that of `SITES`."""
SITES = (
    "SELECT repo, cwd, coalesce(lower(repo), cwd) AS own, min(session_id) AS session_id FROM sessions"
    " GROUP BY repo, cwd"
)
"""A session of each repository and folder, which tell where all of them lie."""
SESSIONS = (
    f"SELECT session_id, agent, model, {PLACE}, parent_session_id, {IS_SUBAGENTS} AS is_subagents, {STARTED}, title,"
    " n_prompts, n_steps, n_tool_calls, n_subagent_tool_calls, n_edits, input_tokens, output_tokens, cache_read_tokens,"
    " cache_write_tokens, cost_usd, recorded_cost_usd, replaced_cost_usd, subagent_cost_usd, unpriced,"
    " visible_output_tokens"
    " FROM sessions ORDER BY session_id"
)
"""One row a session."""

LABEL = "json_extract_string(value, '')"
"""A value that is text, without JSON's quotes. The empty path is the whole value; `$` would belong to the shell."""

# The bill by cause.

CAUSES: dict[str, str] = {
    "subagents": "subagents",
    "compaction": "context rewritten after compaction",
    "rebuilt": "expired prompt caches rebuilt",
    "missed": "cache misses before expiry",
    "failed": "failed calls",
    "repeated": "repeated calls",
    "reread": "re-reads of unchanged files",
    "carried_results": "re-sent context: tool results",
    "carried_start": "re-sent context: start of the session",
    "carried_words": "re-sent context: messages and call arguments",
    "cache_write": "new context: cache writes",
    "input": "new context: uncached input",
    "output": "output",
    "other": "other",
}
"""Text by cause, in order of precedence: a dollar that two causes claim belongs to the first."""
CARRIED = ("carried_results", "carried_start", "carried_words")
BOUNDED = ("output", "subagents")
"""Causes that are lower bounds where a session logs its output in mid-stream."""
BILL = (
    f"SELECT session_id, agent, model, {PLACE}, branch, {IS_SUBAGENTS} AS is_subagents, cost_usd,"
    " visible_output_tokens, unpriced FROM sessions WHERE cost_usd IS NOT NULL ORDER BY session_id"
)
"""One row a priced session."""
_SUMS = ", ".join(f"sum(cost_usd) FILTER (cause = '{cause}') AS {cause}" for cause in CAUSES)
PAID = f"SELECT session_id, {_SUMS} FROM charges GROUP BY session_id"
"""Dollars by cause, one row a session."""
REPEATS = (
    "SELECT session_id, name, path, kind, row_number() OVER (PARTITION BY session_id ORDER BY thread, result_seq, seq)"
    " AS number FROM repeated_calls"
)
"""Calls that were paid for twice, by session in their order."""

FEWEST_EQUAL = 3
"""Equal failing calls, with no success of the same call and no edit between, from which they are a circle: once more is
a retry."""
EQUAL_FAILURES = (
    "WITH again AS (SELECT session_id, seq, thread, name, arguments, status, sum(CASE WHEN status = 'error' THEN 0 ELSE"
    " 1 END) OVER (PARTITION BY session_id, thread, name, arguments ORDER BY seq) AS worked, (SELECT count(*) FROM"
    " edits JOIN tool_calls AS made USING (session_id, seq) WHERE edits.session_id = calls.session_id AND edits.seq <"
    " calls.seq AND made.status <> 'error') AS edited FROM tool_calls AS calls WHERE purpose IS DISTINCT FROM 'poll'"
    " AND class NOT IN ('plan', 'task', 'ask') AND (session_id, name, arguments) IN (SELECT (session_id, name,"
    " arguments) FROM tool_calls WHERE status = 'error' GROUP BY session_id, name, arguments HAVING count(*) >="
    f" {FEWEST_EQUAL})), runs AS (SELECT *, count(*) OVER (PARTITION BY session_id, thread, name, arguments, worked,"
    " edited) AS equal_calls FROM again WHERE status = 'error')"
    f" SELECT session_id, seq, name, equal_calls FROM runs WHERE equal_calls >= {FEWEST_EQUAL}"
)
"""Failing calls that make a loop."""
LOOPS = f"{EQUAL_FAILURES} ORDER BY session_id, seq"
CALLED = (
    "SELECT session_id, count(*) AS n, count(*) FILTER (thread = 'main' AND status IN ('ok', 'error')) AS answered,"
    " count(*) FILTER (thread = 'main' AND status = 'error') AS failed FROM tool_calls GROUP BY session_id"
    " ORDER BY session_id"
)
"""Calls of a session; of the main thread those that were answered, and those that failed."""
LOST = (
    "SELECT session_id, thread, cause, after, tokens, cost_usd, read_usd, pause_s, lives_s, longer_usd"
    " FROM cache_losses"
)
"""Losses of caches."""

PLACED = f"SELECT session_id, {PLACE} FROM sessions ORDER BY session_id"
"""Where each session lies, as `places.by_session` wants it."""

SAID_AT = (
    "CASE WHEN timestamp BETWEEN TIMESTAMP '2015-01-01' AND TIMESTAMP '2100-01-01' THEN timestamp END AS timestamp"
)
"""When a prompt was given, with the same care as `STARTED`."""

PROGRAM = r"coalesce(nullif(regexp_extract(command, '^(?:cd \S+ *(?:&&|;) *)?(\S+(?: [a-z][\w:-]*)?)', 1), ''), name)"
"""Program and verb of a call, after a change of folder."""

OBJECTIONS = (
    f"SELECT session_id, {LABEL} AS label, count(*) AS n FROM signals JOIN sessions USING (session_id)"
    " WHERE signal = 'chat.pushback_type' AND absent IS NULL AND turn > 0 GROUP BY ALL ORDER BY ALL"
)
"""How many follow-up prompts of a session have each label of pushback."""


RATIO = ("num", "den")
"""Details of a signal that is a ratio: what `measures.pooled` needs."""


def values(*paths: str, detail: tuple[str, ...] = RATIO, more: str = "") -> str:
    """One row a session and signal that has a value: session_id, agent, place, signal, number; these details as
    numbers; `more` columns of `NAMED`, each with a comma behind. Why others have none: `ABSENT`."""
    wanted = ", ".join(f"'{path}'" for path in paths)
    keys = ", ".join(f"'{key}'" for key in detail)
    read = f", detail->>[{keys}] AS details" if detail else ""  # read once for all keys
    numbers = "".join(f", TRY_CAST(details[{n + 1}] AS DOUBLE) AS {key}" for n, key in enumerate(detail))
    return (
        f"SELECT session_id, agent, {PLACE}, signal, {more}number{numbers} FROM (SELECT *{read} FROM {NAMED})"
        f" JOIN sessions USING (session_id) WHERE signal IN ({wanted}) AND absent IS NULL ORDER BY session_id, signal"
    )


ABSENT = (
    f"SELECT signal, absent, count(*) AS n FROM {NAMED} JOIN sessions USING (session_id) WHERE absent IS NOT NULL"
    " GROUP BY ALL ORDER BY n DESC, min(session_id), signal, absent"
)
"""Why sessions have no value of a signal: a row a signal and reason, most frequent ones first."""


ENGLISH_ONLY = frozenset((
    "anticipation.assumption_count", "anticipation.clarification_sought", "anticipation.conflation_turn",
    "anticipation.prompt_underspecification",
    "chat.agent_clarification_stop", "chat.prompt_intent", "chat.pushback_rate", "chat.pushback_type",
    "corpus.first_message_pattern", "dynamics.assumption_lock_turn", "dynamics.correction_ratio",
    "dynamics.gd_inaction", "dynamics.objections", "dynamics.session_failure_mode", "loop.marker_score",
    "reasoning.plan_steps_detected", "reasoning.self_correction_count", "user.agent_hedging_curve[]",
    "user.agent_hedging_rate", "user.closing_reaction", "user.confirmation_requests", "user.session_outcome",
))  # fmt: skip
"""Signals that rest on rules made for English: absent, with the language as the reason, for others."""


def unjudged(paths: Iterable[str]) -> str:
    """Return a query of how many values the language withholds, of how many: signal, of_turns, unjudged, n."""
    foreign, among = "absent_detail LIKE 'language%'", ", ".join(f"'{path}'" for path in sorted(paths))
    return (
        f"SELECT signal, count(turn) > 0 AS of_turns, count(*) FILTER ({foreign}) AS unjudged,"
        f" count(*) FILTER (absent IS NULL OR {foreign}) AS n FROM signals JOIN sessions USING (session_id)"
        f" WHERE signal IN ({among}) GROUP BY signal"
    )


def pooled(path: str) -> str:
    """A ratio signal over all sessions together: sum over sum."""
    over = "sum(CAST(detail->>'num' AS DOUBLE)) / sum(CAST(detail->>'den' AS DOUBLE))"
    return f"SELECT {over} FROM signals WHERE signal = '{path}'"


def place_by_session(rows: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The place of each session whose place is known. Rows: session_id, place."""
    return {row["session_id"]: row["place"] for row in rows if row["place"] is not None}


def sections(file: Path) -> dict[str, str]:
    """The sections of a `.sql` file by name. Each stands below a line `-- name: …`."""
    return {name: text for kind, name, text in _sections(file) if kind == "name"}


def read_queries(module: str, **fragments: str) -> dict[str, dict[str, str]]:
    """The queries of the `.sql` file beside a module, by study (or finding) and name, each on one line. A section is
    named `study.name`; `fragments` replace their names in braces, and so does a section (`{study.name}`).

    The file also says what is asked and what a reader is shown: sections `-- study: …`, `-- asked: …`,
    `-- finding: …`, `-- table: …` and `-- chart: …` hold fields, a line each (`-- title: …`), and a finding the SQL
    that recomputes its value. `declared` gives them.
    """
    found: dict[str, dict[str, str]] = {}
    read = list(_sections(Path(module).with_suffix(".sql")))
    texts = {name: _COMMENT.sub("", text) for kind, name, text in read if kind == "name"}

    def filled(text: str) -> str:
        for fragment, meant in (_FRAGMENTS | fragments).items():
            text = text.replace(f"{{{fragment}}}", meant)
        return _SECTION_NAME.sub(lambda named: filled(texts[named[1]]), text)

    for kind, section, text in read:
        whole = filled(text)
        query = _BLANKS.sub("", " ".join(_COMMENT.sub("", whole).split()))
        if kind == "name":
            asker, _, name = section.partition(".")
            found.setdefault(asker, {})[name] = query
            continue
        fields: dict[str, Any] = {"name": section} if kind in ("study", "asked") else {}
        for key, value in _FIELD.findall(whole.replace("\n--   ", " ")):
            match key:
                case "limit":
                    fields["limits"] = (*fields.get("limits", ()), value)
                case "signals":
                    fields[key] = tuple(value.split())
                case "sliced" | "summed":
                    fields[key] = frozenset(value.split())
                case "order":
                    fields[key] = int(value)
                case "any_language" | "headline" | "priced" | "needs_charges":
                    fields[key] = True
                case _:
                    fields[key] = value
        _declared[kind, section] = fields | ({"sql": query} if query else {})
    for kind, section, _ in read:
        if kind in ("study", "asked"):
            _declared[kind, section]["queries"] = found.get(section, {})
    return found


def declared(kind: str, name: str, **queries: str) -> dict[str, Any]:
    """Return the fields that a `.sql` file declares for a study, question, finding, table or chart; empty if it
    declares none. A study or question has the file's queries of its name, and these."""
    fields = dict(_declared.get((kind, name), {}))
    if "queries" in fields:
        fields["queries"] = fields["queries"] | queries
    return fields


def _sections(file: Path) -> Iterator[tuple[str, str, str]]:
    _, *pieces = _SECTION.split(file.read_text("utf-8"))
    for kind, name, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        yield kind, name, text.strip()


_declared: dict[tuple[str, str], dict[str, Any]] = {}
_SECTION = deferred_pattern(r"^-- (name|study|asked|finding|table|chart): ([\w.]+)\n", re.MULTILINE)
_COMMENT = deferred_pattern(r"^--.*", re.MULTILINE)
_SECTION_NAME = deferred_pattern(r"\{(\w+\.\w+)\}")
_FIELD = deferred_pattern(r"^-- (\w+): (.*)$", re.MULTILINE)
_BLANKS = deferred_pattern(r"(?<=\() | (?=\))")
"""Left where a bracket is broken into lines."""
_FRAGMENTS = {"started_at": STARTED, "said_at": SAID_AT, "spoken": SPOKEN}
