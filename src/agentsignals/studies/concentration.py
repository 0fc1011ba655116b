"""How much of the collection lies in one repository, as it grew (SWE-chat, Figure 22)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentsignals.analysis.calendar import start_of
from agentsignals.analysis.charts import OTHERS, lines
from agentsignals.analysis.clusters import DOMINANT
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.places import Places
from agentsignals.analysis.rolling import MOST_POINTS, iso
from agentsignals.analysis.rows import STARTED
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again_in_report
from agentsignals.redaction import redacted

_DRAWN = 3
_MOST = 15


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["sessions"]
    where = Places(rows)
    placed = [(row, place) for row in rows if (place := where.of(row)) is not None]
    counted = Counter(place for _, place in placed)
    if not counted:
        return Outcome()
    n = counted.total()
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    findings = [
        Finding(
            id="concentration.places",
            title="Repositories and folders",
            value=len(counted),
            unit="places",
            n=n,
            of="sessions whose place is known",
            command=again_in_report("concentration"),
            note=f"{len(rows) - n:,} sessions name none" if len(rows) > n else "",
        ),
        Finding(
            id="concentration.effective",
            title="Places of one size that would tell as much",
            value=n * n / sum(k * k for k in counted.values()),
            unit="places",
            n=n,
            of="sessions whose place is known",
            command=again_in_report("concentration"),
            note="the square of the sessions over the sum of their squares by place (Kish)",
        ),
        Finding(
            id="concentration.half",
            title="Places that hold half of the sessions",
            value=_holding(ranked, n / 2),
            unit="places",
            n=n,
            of="sessions whose place is known",
            command=again_in_report("concentration"),
        ),
    ]
    limits = []
    if ranked[0][1] > DOMINANT * n:
        limits.append(f"{ranked[0][1] / n:.0%} of the sessions lie in one place: every figure is mostly its people's.")
    chart = _chart(placed, [place for place, _ in ranked[:_DRAWN]])
    return Outcome(findings, [_table(placed, ranked)], [chart] if chart else [], limits)


def _holding(ranked: list[tuple[str, int]], wanted: float) -> int:
    """How many of the largest places hold so many sessions."""
    held = 0
    for at, (_, n) in enumerate(ranked):
        held += n
        if held >= wanted:
            return at + 1
    return len(ranked)


def _table(placed: list[tuple[Row, str]], ranked: list[tuple[str, int]]) -> Table:
    by_place: dict[str, list[Row]] = {}
    for row, place in placed:
        by_place.setdefault(place, []).append(row)
    rows: list[list[Any]] = []
    for place, n in ranked[:_MOST]:
        agents = Counter(row["agent"] for row in by_place[place])
        models = {row["model"] for row in by_place[place]} - {None}
        times = [row["started_at"] for row in by_place[place] if row["started_at"] is not None]
        told_agents = ", ".join(f"{agent} {k:,}" for agent, k in sorted(agents.items(), key=lambda p: (-p[1], p[0])))
        span = [min(times), max(times)] if times else [None, None]
        rows.append([redacted(place), n, n / len(placed), told_agents, len(models), *span])
    return Table(
        id="concentration.largest",
        title="Largest places",
        columns=(
            Column("place", "repository or folder", "code"),
            Column("n", "sessions", "count"),
            Column("share", "share", "share"),
            Column("agents", "agents"),
            Column("models", "models", "count"),
            Column("first", "first session", "date"),
            Column("last", "last session", "date"),
        ),
        rows=rows,
        n=len(placed),
        of="sessions whose place is known",
        note=f"The {_MOST} largest of {len(ranked):,}." if len(ranked) > _MOST else "",
    )


def _chart(placed: list[tuple[Row, str]], largest: list[str]) -> Chart | None:
    """The share of the largest places among all sessions up to each day."""
    timed = sorted((row["started_at"], place) for row, place in placed if row["started_at"] is not None)
    days = sorted({start_of(moment, "day") for moment, _ in timed})
    if len(days) < 2:
        return None
    step = -(-len(days) // MOST_POINTS)
    drawn = {*days[::step], days[-1]}
    names = [_short(redacted(place)) for place in largest]
    names = [f"{n + 1}: {name}" for n, name in enumerate(names)] if len(set(names)) < len(names) else names
    counted: Counter[str] = Counter()
    rows: list[Row] = []
    at = 0
    for day in days:
        while at < len(timed) and start_of(timed[at][0], "day") <= day:
            counted[timed[at][1]] += 1
            at += 1
        if day not in drawn:
            continue
        for place, name in zip(largest, names, strict=True):
            n, share = counted[place], counted[place] / at
            tip = f"{redacted(place)}, up to {day:%Y-%m-%d}: {n:,} of {at:,} sessions ({formatted(share, 'share')})"
            rows.append({"name": name, "from": iso(day), "value": share, "tip": tip})
    ends = [row["tip"] for row in rows if row["from"] == iso(days[-1])]
    return Chart(
        id="concentration.over_time",
        title="Share of the largest places among all sessions so far",
        says="; ".join(ends),
        spec=lines(rows, "share of sessions so far", "share", names, (iso(days[0]), iso(days[-1]))),
        n=len(timed),
        of="sessions whose place and time are known",
        note=f"the {len(largest)} largest; {OTHERS} are not drawn" if len(counted) > len(largest) else "",
    )


def _short(place: str) -> str:
    """The last name of a path."""
    return place.replace("\\", "/").rstrip("/").rpartition("/")[2][:30] or place[:30]


STUDY = Study(
    name="concentration",
    place=130,
    title="Concentration",
    question="How much of what was read lies in one place?",
    queries={
        "sessions": f"SELECT session_id, agent, model, repo, cwd, {STARTED} FROM sessions ORDER BY session_id",
    },
    function=_outcome,
)
