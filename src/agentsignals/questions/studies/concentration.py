"""How much of the collection lies in one repository, as it grew (SWE-chat, Figure 22)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import partial
from typing import Any

from agentsignals.questions.charts import MOST_POINTS, OTHERS, iso_time, lines, start_of
from agentsignals.questions.estimates import DOMINANT, by, chart, count, listing, mark, ranked, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, EvidenceRows, Inputs, Outcome, Row, Study, Table
from agentsignals.questions.sql import PLACE, STARTED
from agentsignals.redaction import redacted

_DRAWN = 3
_MOST = 15
_OF = "sessions whose place is known"


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["sessions"]
    placed = [(row, place) for row in rows if (place := row["place"]) is not None]
    counted = Counter(place for _, place in placed)
    if not counted:
        return Outcome()
    n = counted.total()
    largest = ranked(counted)
    unplaced = f"{len(rows) - n:,} sessions name none" if len(rows) > n else ""
    kish = "the square of the sessions over the sum of their squares by place (Kish)"
    effective = n * n / sum(k * k for k in counted.values())
    asked = (
        ("places", "Repositories and folders", len(counted), unplaced),
        ("effective", "Places of one size that would tell as much", effective, kish),
        ("half", "Places that hold half of the sessions", _holding(largest, n / 2), ""),
    )
    findings = [
        count(value, n, evidence=[row["session_id"] for row, _ in placed]).finding(
            f"concentration.{name}", title, _OF, note, unit="places"
        )
        for name, title, value, note in asked
    ]
    limits = []
    if largest[0][1] > DOMINANT * n:
        limits.append(f"{largest[0][1] / n:.0%} of the sessions lie in one place: every figure is mostly its people's.")
    over_time = _chart(placed, [place for place, _ in largest[:_DRAWN]])
    return Outcome(findings, [_table(placed, largest)], [over_time], limits)


def _holding(largest: list[tuple[str, int]], wanted: float) -> int:
    """How many of the largest places hold so many sessions."""
    held = 0
    for at, (_, n) in enumerate(largest):
        held += n
        if held >= wanted:
            return at + 1
    return len(largest)


def _table(placed: list[tuple[Row, str]], largest: list[tuple[str, int]]) -> Table:
    rows: list[list[Any]] = []
    groups = by([row for row, _ in placed], PLACE)
    for place, n in largest[:_MOST]:
        group = groups[place]
        models = {row["model"] for row in group} - {None}
        times = [row["started_at"] for row in group if row["started_at"] is not None]
        agents = listing(Counter(row["agent"] for row in group))
        span = [min(times, default=None), max(times, default=None)]
        rows.append([redacted(place), n, n / len(placed), agents, len(models), *span])
    return table(
        "concentration.largest",
        "Largest places",
        "place repository or folder:code | n sessions:count | share:share | agents | models:count"
        " | first first session:date | last last session:date",
        rows,
        n=len(placed),
        of=_OF,
        evidence=[[row["session_id"] for row in groups[place]] for place, _ in largest[:_MOST]],
        note=f"The {_MOST} largest of {len(largest):,}." if len(largest) > _MOST else "",
    )


def _chart(placed: list[tuple[Row, str]], largest: list[str]) -> Chart | None:
    """The share of the largest places among all sessions up to each day."""
    timed = sorted((r["started_at"], place, r["session_id"]) for r, place in placed if r["started_at"] is not None)
    starts = [start_of(moment, "day") for moment, _, _ in timed]
    days = sorted(set(starts))
    if len(days) < 2:
        return None
    step = -(-len(days) // MOST_POINTS)
    points = {*days[::step], days[-1]}
    names = [_short(redacted(place)) for place in largest]
    names = [f"{n + 1}: {name}" for n, name in enumerate(names)] if len(set(names)) < len(names) else names
    counted: Counter[str] = Counter()
    rows: list[Row] = []
    at = 0
    for day in days:
        while at < len(timed) and starts[at] <= day:
            counted[timed[at][1]] += 1
            at += 1
        if day not in points:
            continue
        for place, name in zip(largest, names, strict=True):
            n, share = counted[place], counted[place] / at
            tip = f"{redacted(place)}, up to {day:%Y-%m-%d}: {n:,} of {at:,} sessions ({formatted(share, 'share')})"
            behind = partial(_so_far, timed, at, place)
            rows.append(mark({"name": name, "from": iso_time(day), "value": share, "tip": tip}, behind))
    return chart(
        "concentration.over_time",
        "Share of the largest places among all sessions so far",
        rows,
        lines(rows, "share of sessions so far", "share", names, (iso_time(days[0]), iso_time(days[-1]))),
        n=len(timed),
        of="sessions whose place and time are known",
        note=f"the {len(largest)} largest; {OTHERS} are not drawn" if len(counted) > len(largest) else "",
        says="; ".join(row["tip"] for row in rows if row["from"] == iso_time(days[-1])),
    )


def _so_far(timed: list[tuple[datetime, str, str]], n: int, place: str) -> EvidenceRows:
    return [(session_id, float(of == place), 1) for _, of, session_id in timed[:n]]


def _short(place: str) -> str:
    """The last name of a path."""
    return place.replace("\\", "/").rstrip("/").rpartition("/")[2][:30] or place[:30]


STUDY = Study(
    name="concentration",
    order=130,
    title="Concentration",
    question="How much of what was read lies in one place?",
    queries={"sessions": f"SELECT session_id, agent, model, {PLACE}, {STARTED} FROM sessions ORDER BY session_id"},
    function=_outcome,
)
