"""What fails most, and whether it is mended: a tool that fails more often than it works, or more often here than
elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from statistics import median

from agentsignals.questions.estimates import Part, clustered_share_alone, top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import (
    LEAST_PART,
    SESSIONS,
    Answer,
    Contrast,
    contrasts,
    finding_id,
    p_above,
    safe_name,
    sessions_sql,
    share_difference,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import PROGRAM, place_by_session

FEWEST_CALLS = 20
"""Calls of a tool before it is looked at."""
OFTEN = 0.5
"""Failing more often than working is said of a tool wherever it is used: what chance may have made is held against the
person's other calls, for no share of failures is everybody's."""
_CHECKS = ("test", "build")
"""What fails because it is run, and is no measure of other calls."""
_CAVEAT = "Some failures are probes (does this file exist?), and tests fail because they are run"


def _answers(inputs: Inputs) -> list[Answer]:
    sessions = inputs.rows["sessions"]
    places = place_by_session(sessions)
    calls = inputs.many["calls"]
    by_use = [(row["tool"] in _CHECKS, row["session_id"], row["failed"], row["n"]) for row in calls]
    whole = max(1, sum(failed for _, _, failed, _ in by_use))
    measure = _summed((session_id, k, n) for is_check, session_id, k, n in by_use if not is_check)
    made = []
    for tool, of_tool in groupby(calls, itemgetter("tool")):
        rows = list(of_tool)
        failed = sum(row["failed"] for row in rows)
        if sum(row["n"] for row in rows) < FEWEST_CALLS or failed < LEAST_PART * whole:
            continue
        parts = _parts(rows)
        made.append(_often(tool, rows, measure if tool in _CHECKS else _without(parts, measure), places, whole))
        n = sum(n for _, _, n in parts)
        made += [_more(tool, rows, contrast, n, whole) for contrast in contrasts(parts, sessions)]
    return made


def _parts(rows: Iterable[Row]) -> list[Part]:
    """Of each session: failed calls, and calls."""
    return _summed(map(itemgetter("session_id", "failed", "n"), rows))


def _summed(parts: Iterable[Part]) -> list[Part]:
    """The parts of each session as one."""
    ks: dict[str, float] = {}
    ns: dict[str, float] = {}
    for session_id, k, n in parts:
        ks[session_id] = ks.get(session_id, 0.0) + k
        ns[session_id] = ns.get(session_id, 0.0) + n
    return [(session_id, k, ns[session_id]) for session_id, k in ks.items()]


def _without(parts: list[Part], measure: list[Part]) -> list[Part]:
    """A person's calls but for these."""
    less = {session_id: (k, n) for session_id, k, n in parts}
    left = ((s, k - less.get(s, (0, 0))[0], n - less.get(s, (0, 0))[1]) for s, k, n in measure)
    return [(session_id, k, n) for session_id, k, n in left if n]


def _often(tool: str, rows: list[Row], others: list[Part], places: dict[str, str], whole: float) -> Answer:
    share, rest = (clustered_share_alone(each, places) for each in (_parts(rows), others))
    between = share_difference(share, rest)
    against = f", against {formatted(rest.value, 'share')} of your calls of other tools" if between else ""
    failed = sum(row["failed"] for row in rows)
    return Answer(
        id=finding_id("failures.often", tool),
        about=f"failures.{tool}",
        sentence=f"{safe_name(tool)} fails more often than it works: {failed:,} of {share.n:,.0f} calls"
        f" ({formatted(share.value, 'share')}){against}; mostly {_error(rows)}{_mended(rows)}.",
        size=failed,
        unit="failed calls",
        share=failed / whole if float(share.value or 0) > OFTEN else 0.0,
        interval=share.interval,
        p=between[1] if between else p_above(share, OFTEN),
        n=len({row["session_id"] for row in rows}),
        cause=_rows(tool),
        do=f"Mend or replace it: see what {_error(rows)} says.",
        caveat=f"{_CAVEAT}; {share.note}.",
        sessions=top_sessions((row["session_id"], row["failed"]) for row in rows),
    )


def _more(tool: str, rows: list[Row], contrast: Contrast, of_tool: float, whole: float) -> Answer:
    here = [row for row in rows if row["session_id"] in contrast.in_group]
    there = formatted(contrast.rest.value, "share")
    return Answer(
        id=finding_id(f"failures.{contrast.key}", f"{tool} {contrast.value}"),
        about=f"failures.{tool}",
        sentence=f"{safe_name(tool)} fails in {formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f}"
        f" calls {contrast.where}, against {there} in {contrast.matched}; mostly {_error(here)}{_mended(here)}.",
        **contrast.more(of_tool, "failed calls", whole),
        cause=_rows(tool, f" AND {sessions_sql(contrast.in_group)}"),
        do=f"Look what {_error(here)} says {contrast.where}.",
        caveat=f"Goes with it, and need not be because of it. {_CAVEAT}; {contrast.group.note}.",
        sessions=top_sessions((row["session_id"], row["failed"]) for row in here),
    )


def _rows(tool: str, condition: str = "") -> str:
    return with_source_lines(
        "SELECT session_id, seq, name, command, error_class, status FROM tool_calls"
        f" WHERE status = 'error' AND {_TOOL} = {sql_text(tool)}{condition}"
    )


def _error(rows: list[Row]) -> str:
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds[(row["error_class"] or "an error without a class").replace("_", " ")] += row["failed"]
    return f"“{safe_name(kinds.most_common(1)[0][0])}”" if kinds else "errors"


def _mended(rows: list[Row]) -> str:
    failed = sum(row["failed"] for row in rows)
    waited = [row["minutes"] for row in rows if row["minutes"] is not None]
    if not failed:
        return ""
    mended = f"; {formatted(sum(row['mended'] for row in rows) / failed, 'share')} of it works later in the session"
    return mended + (f", after {formatted(60 * median(waited), 'seconds')} in the median session" if waited else "")


_TOOL = (
    "CASE WHEN class = 'test' OR shell_kind IN ('test', 'build') THEN coalesce(shell_kind, class)"
    f" WHEN class = 'shell' THEN {PROGRAM} WHEN class IN ('mcp', 'web', 'other') THEN name ELSE class END"
)
"""What is done: that it tests or builds, whatever with; the program that is run; a server's or a search's tool by its
name, for one of many may fail; else what the tool is for, which each agent calls otherwise."""
_CALLS = (
    f"SELECT session_id, seq, {_TOOL} AS tool, status, error_class, epoch(started_at) AS began FROM (SELECT *,"
    " lag((name, arguments, status)) OVER (PARTITION BY session_id ORDER BY seq) AS before FROM tool_calls"
    " WHERE thread = 'main') WHERE status IN ('ok', 'error') AND error_class IS DISTINCT FROM 'sibling_cancelled'"
    " AND NOT (status = 'error' AND coalesce(before = (name, arguments, 'error'), false))"
)
"""Answered calls. The same failing call again at once is a circle, and no further failure."""
FINDING = Question(
    name="failures",
    question="What fails most, and is it mended?",
    queries={
        "sessions": SESSIONS,
        "calls": f"WITH calls AS ({_CALLS}), later AS (SELECT *, min(CASE WHEN status = 'ok' THEN began END) OVER"
        " (PARTITION BY"
        " session_id, tool ORDER BY seq ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS worked_at,"
        " max(CASE WHEN status = 'ok' THEN seq END) OVER (PARTITION BY session_id, tool) AS worked_seq FROM calls)"
        " SELECT tool, session_id, error_class, count(*) AS n, count(*) FILTER (status = 'error') AS failed,"
        " count(*) FILTER (status = 'error' AND worked_seq > seq) AS mended,"
        " median((worked_at - began) / 60) FILTER (status = 'error') AS minutes"
        " FROM later GROUP BY ALL ORDER BY ALL",
    },
    function=_answers,
    sliced=frozenset({"calls"}),
)
