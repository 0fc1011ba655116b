"""What follows what: pairs of neighbouring calls, and how they change from a session's beginning to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from agentsignals.analysis.charts import heat
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.analysis.tool_kinds import KIND

FEWEST_CALLS = 10
"""A shorter session has no beginning, middle and end to speak of (as chat.tool_calls_by_position)."""
_MOST_PAIRS = 20
_THIRDS = ("beginning", "middle", "end")
_NEXT = "lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id)"
_NEIGHBOURS = f"FROM (SELECT session_id, class, {_NEXT} AS following FROM tool_calls WHERE thread = 'main')"


def _outcome(inputs: Inputs) -> Outcome:
    places = by_session(inputs.rows["sessions"])
    classes, kinds = inputs.rows["classes"], inputs.rows["kinds"]
    findings = [
        _share(
            classes,
            places,
            "same",
            "Calls followed by one of their class",
            lambda row: row["class"] == row["following"],
            f"SELECT avg(CAST(class = following AS INT)) {_NEIGHBOURS} WHERE following IS NOT NULL",
        ),
        _share(
            [row for row in classes if row["class"] == "edit"],
            places,
            "tested",
            "Edits followed at once by a test run",
            lambda row: row["following"] == "test",
            f"SELECT avg(CAST(following = 'test' AS INT)) {_NEIGHBOURS} WHERE class = 'edit' AND following IS NOT NULL",
            "edits with a call behind them",
        ),
        _share(
            [row for row in classes if row["following"] == "edit"],
            places,
            "looked",
            "Edits that follow a read or a search at once",
            lambda row: row["class"] in ("read", "search"),
            f"SELECT avg(CAST(class IN ('read', 'search') AS INT)) {_NEIGHBOURS} WHERE following = 'edit'",
            "edits with a call before them",
        ),
    ]
    chart = _matrix(classes)
    tables = [_pairs(kinds), _thirds(inputs.rows["thirds"])]
    limits = [
        "Neighbours are calls in the order they were asked for; calls that an agent asks for at once follow each other"
        " here, too. A pair says what came next, not why.",
    ]
    return Outcome([f for f in findings if f.n], tables, [chart] if chart else [], limits)


def _share(  # noqa: PLR0913  (a finding's words, in the order they are read)
    rows: list[Row],
    places: dict[str, str],
    name: str,
    title: str,
    holds: Callable[[Row], bool],
    sql: str,
    of: str = "neighbouring calls",
) -> Finding:
    estimate = Estimate([(row["session_id"], row["n"] * holds(row), row["n"]) for row in rows], places)
    return estimate.finding(id=f"transitions.{name}", title=title, unit=f"share of {of}", of=of, command=again(sql))


def _matrix(rows: list[Row]) -> Chart | None:
    """Of the calls of a class, the shares of what came next."""
    pairs: Counter[tuple[str, str]] = Counter()
    for row in rows:
        pairs[row["class"], row["following"]] += row["n"]
    before: Counter[str] = Counter()
    for (class_, _), n in pairs.items():
        before[class_] += n
    if not before:
        return None
    order = sorted(before, key=lambda class_: (-before[class_], class_))
    after = sorted({following for _, following in pairs}, key=lambda c: (-before[c], c))
    drawn: list[Row] = [
        {
            "name": f"{class_} ({before[class_]:,})",
            "column": following,
            "value": pairs[class_, following] / before[class_],
            "tip": f"after {class_}: {following} {pairs[class_, following]:,} of {before[class_]:,} times"
            f" ({formatted(pairs[class_, following] / before[class_], 'share')})",
        }
        for class_ in order
        for following in after
    ]
    return Chart(
        id="transitions.matrix",
        title="What comes after a call, by class, in percent",
        says="; ".join(row["tip"] for row in drawn if row["value"] >= 0.25),
        spec=heat(drawn, after),
        n=before.total(),
        of="neighbouring calls",
        note="each row adds up to 100; calls with another behind them in brackets",
    )


def _pairs(rows: list[Row]) -> Table:
    """The commonest pairs of kinds, and how much commoner than chance."""
    pairs: Counter[tuple[str, str]] = Counter()
    sessions: Counter[tuple[str, str]] = Counter()
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    for row in rows:
        pair = row["kind"], row["following"]
        pairs[pair] += row["n"]
        sessions[pair] += 1
        first[pair[0]] += row["n"]
        second[pair[1]] += row["n"]
    total = pairs.total()
    ranked = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:_MOST_PAIRS]
    return Table(
        id="transitions.pairs",
        title="Commonest pairs of neighbouring calls",
        columns=(
            Column("first", "call"),
            Column("second", "next call"),
            Column("n", "times", "count"),
            Column("share", "of all pairs", "share"),
            Column("lift", "times chance", "number"),
            Column("sessions", "sessions", "count"),
        ),
        rows=[[a, b, n, n / total, n * total / (first[a] * second[b]), sessions[a, b]] for (a, b), n in ranked],
        n=total,
        of="neighbouring calls",
        note="In the kinds of SWE-chat. Times chance: against calls in any order; 1 is as often as that."
        + (f" The {_MOST_PAIRS} most frequent of {len(pairs):,}." if len(pairs) > _MOST_PAIRS else ""),
    )


def _thirds(rows: list[Row]) -> Table:
    """How the commonest transitions are spread over a session."""
    counted: dict[int, Counter[tuple[str, str]]] = {third: Counter() for third in range(3)}
    for row in rows:
        counted[row["third"]][row["class"], row["following"]] += row["n"]
    together = counted[0] + counted[1] + counted[2]
    ranked = sorted(together.items(), key=lambda item: (-item[1], item[0]))[:_MOST_PAIRS]
    return Table(
        id="transitions.thirds",
        title="Transitions from the beginning of a session to its end",
        columns=(
            Column("first", "call"),
            Column("second", "next call"),
            Column("n", "times", "count"),
            *(Column(name, name, "share") for name in _THIRDS),
        ),
        rows=[
            [a, b, n, *(counted[t][a, b] / counted[t].total() if counted[t].total() else None for t in range(3))]
            for (a, b), n in ranked
        ],
        n=together.total(),
        of=f"transitions in sessions of at least {FEWEST_CALLS} calls",
        note="By class: the share of all transitions in the first, second and last third of a session's calls.",
    )


STUDY = Study(
    name="transitions",
    place=70,
    title="What follows what",
    question="In which order are tools used, and does it change in the course of a session?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "classes": f"SELECT session_id, class, following, count(*) AS n {_NEIGHBOURS} WHERE following IS NOT NULL"
        " GROUP BY ALL ORDER BY ALL",
        "kinds": "SELECT session_id, kind, following, count(*) AS n FROM (SELECT session_id, kind, lead(kind) OVER"
        f" (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM (SELECT session_id, seq, call_id, {KIND}"
        " AS kind FROM tool_calls WHERE thread = 'main')) WHERE following IS NOT NULL GROUP BY ALL ORDER BY ALL",
        "thirds": "SELECT third, class, following, count(*) AS n FROM (SELECT class, lead(class) OVER down AS"
        " following, CAST(floor(3 * (row_number() OVER down - 1) / count(*) OVER whole) AS BIGINT) AS third, count(*)"
        " OVER whole AS calls FROM tool_calls WHERE thread = 'main' WINDOW down AS (PARTITION BY session_id ORDER BY"
        " seq, call_id), whole AS (PARTITION BY session_id)) WHERE following IS NOT NULL AND calls >="
        f" {FEWEST_CALLS} GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
)
