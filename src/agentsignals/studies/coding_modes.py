"""Who writes the code: the person, the agent or both, as replayed and as recorded (SWE-chat, Figures 5, 19e, 25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import fmean

from agentsignals.analysis.charts import dots
from agentsignals.analysis.clusters import Estimate, median_interval
from agentsignals.analysis.distributions import histogram_chart
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.modes import LABEL, LABELLER, MODES, NAMES, OF_ROAD, PERCENT, ROADS, SIGNAL, Road, road_of
from agentsignals.analysis.over_days import lines_chart
from agentsignals.analysis.places import by_session
from agentsignals.analysis.rows import STARTED
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import median

_PUBLISHED = {"human_only": "22.7", "collaborative": "36.5", "vibe_coding": "40.8"}
_PERCENTS: tuple[float, ...] = (0, 20, 40, 60, 80, 99, 100)
"""Upper ends of classes: nothing, fifths, and from 99 percent everything."""
WINDOW_DAYS = 14
_FEWEST = 10
"""Sessions behind a point of a line (this project's choice)."""
_OF: dict[Road, str] = {"replayed": "sessions with attributed commits", "recorded": "sessions with a record"}
_NONE = (
    "No session has a record of whose lines were committed: such records come with checkpoints, agentsignals ingest"
    " git:REPOSITORY reads them, and agentsignals attribute REPOSITORY replays whose lines they were."
)
_UNKNOWN = (
    "A mode by replay is unknown where lines that nothing explains leave more than one open: from surely an agent's to"
    " surely a person's lies the interval, and it reaches over a border."
)
_RECORDED = (
    "Modes as recorded are the collector's. A replay of one collection found agents' lines taken for a person's where"
    " the agent commits in the middle of a turn: half of its human-only records were agents' work. So these shares say"
    " too little of agents."
)


def _outcome(inputs: Inputs) -> Outcome:
    places = by_session(inputs.rows["sessions"])
    rows = inputs.rows["modes"]
    if not rows:
        return Outcome(limits=[_NONE])
    shares = {
        road: {mode: _estimate(road, mode, classified, places) for mode in OF_ROAD[road]}
        for road in ROADS
        if (classified := [row for row in rows if row[road] is not None])
    }
    findings = [_finding(road, mode, estimate) for road, of in shares.items() for mode, estimate in of.items()]
    medians = [_median(road, [r for r in rows if r[f"{road}_percent"] is not None], places) for road in shares]
    charts = [_chart(shares), *_of_road(road_of(rows), rows, inputs)]
    limits = [
        *([_UNKNOWN] if "replayed" in shares else []),
        *([_RECORDED] if "recorded" in shares else []),
        "Sessions whose work was never committed have no mode.",
    ]
    return Outcome(
        findings + [f for f in medians if f.n],
        [_against_each_other(rows)],
        [c for c in charts if c is not None],
        limits,
    )


def _estimate(road: Road, mode: str, rows: list[Row], places: dict[str, str]) -> Estimate:
    return Estimate([(row["session_id"], float(row[road] == mode), 1) for row in rows], places)


def _finding(road: Road, mode: str, estimate: Estimate) -> Finding:
    published = f"SWE-chat, as recorded: {_PUBLISHED[mode]}%" if mode in _PUBLISHED else ""
    asked = (
        f"SELECT avg(CAST(json_extract_string(value, '') = '{mode}' AS INT)) FROM signals WHERE signal = '{SIGNAL}'"
        " AND absent IS NULL"
        if road == "recorded"
        else f"SELECT avg(CAST(value = '{mode.removesuffix('_coding')}' AS INT)) FROM labels WHERE task = '{LABEL}'"
        f" AND labeller = '{LABELLER}'"
    )
    return estimate.finding(
        published,
        id=f"coding_modes.{'' if road == 'recorded' else 'replayed.'}{mode}",
        title=f"Sessions of mode {NAMES[mode]}, as {road}",
        unit="share of sessions",
        of=_OF[road],
        signals=(SIGNAL, PERCENT) if road == "recorded" else (),
        command=again(asked),
    )


def _median(road: Road, rows: list[Row], places: dict[str, str]) -> Finding:
    column = f"{road}_percent"
    return Finding(
        id=f"coding_modes.{'' if road == 'recorded' else 'replayed.'}percent.median",
        title=f"Lines by the agent in the median session, as {road}",
        value=median([row[column] for row in rows]),
        unit="percent of committed lines",
        kind="number",
        n=len(rows),
        of=_OF[road],
        interval=median_interval([(row["session_id"], row[column]) for row in rows], places),
        signals=(PERCENT,) if road == "recorded" else (),
        command=again(
            f"SELECT median(number) FROM signals WHERE signal = '{PERCENT}'"
            if road == "recorded"
            else f"SELECT median(100 * number) FROM labels WHERE task = '{LABEL}' AND labeller = '{LABELLER}'"
        ),
        note="SWE-chat, as recorded: 73.3"
        + ("" if road == "recorded" else "; of the lines whose hand is known or inferred"),
    )


def _of_road(road: Road, rows: list[Row], inputs: Inputs) -> list[Chart | None]:
    """How shares of lines spread, and how modes change, on one road."""
    started = {row["session_id"]: row["started_at"] for row in inputs.rows["sessions"]}
    timed = [(started.get(row["session_id"]), row[road]) for row in rows if row[road] is not None]
    percents = [(started.get(r["session_id"]), r[f"{road}_percent"]) for r in rows if r[f"{road}_percent"] is not None]
    return [
        histogram_chart(
            [row[f"{road}_percent"] for row in rows if row[f"{road}_percent"] is not None],
            _PERCENTS,
            id="coding_modes.percent",
            title=f"Lines by the agent, of those committed, as {road}",
            unit="percent of lines",
        ),
        lines_chart(
            [(at, mode) for at, mode in timed if at is not None],
            {NAMES[mode]: _share_of(mode) for mode in OF_ROAD[road]},
            id="coding_modes.over_time",
            title=f"Coding modes as {road}, {WINDOW_DAYS} days rolling",
            unit="share of sessions",
            kind="share",
            of="sessions",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
        lines_chart(
            [(at, percent) for at, percent in percents if at is not None],
            {"mean": fmean, "median": median},
            id="coding_modes.percent.over_time",
            title=f"Lines by the agent, of those committed, as {road}, {WINDOW_DAYS} days rolling",
            unit="percent of lines",
            kind="number",
            of="sessions",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    ]


def _share_of(mode: str) -> Callable[[list[str]], float]:
    return lambda modes: modes.count(mode) / len(modes)


def _chart(shares: dict[Road, dict[str, Estimate]]) -> Chart:
    rows: list[Row] = []
    for road, of in shares.items():
        for mode, estimate in of.items():
            low, high = estimate.interval or (None, None)
            share = formatted(estimate.value, "share")
            tip = f"{NAMES[mode]} as {road}: {estimate.k:,.0f} of {estimate.n:,.0f} sessions, {share}"
            name = f"{NAMES[mode]}, {road} ({estimate.k:,.0f})"
            rows.append({"name": name, "value": estimate.value, "low": low, "high": high, "tip": tip})
    return Chart(
        id="coding_modes.shares",
        title="Coding modes",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of sessions"),
        n=max(int(estimate.n) for of in shares.values() for estimate in of.values()),
        of="sessions",
        note="sessions in brackets; the line is the 95% interval",
    )


def _against_each_other(rows: list[Row]) -> Table:
    """What each recorded mode is by replay."""
    both = [row for row in rows if row["recorded"] is not None and row["replayed"] is not None]
    counted = Counter((row["recorded"], row["replayed"]) for row in both)
    shown = [
        [NAMES[mode], sum(row["recorded"] == mode for row in both)] + [counted[mode, other] for other in NAMES]
        for mode in OF_ROAD["recorded"]
    ]
    return Table(
        id="coding_modes.roads",
        title="Modes as recorded, and what they are by replay",
        columns=(
            Column("recorded", "as recorded"),
            Column("n", "sessions", "count"),
            *(Column(mode, f"{name} by replay", "count") for mode, name in NAMES.items()),
        ),
        rows=shown if both else [],
        n=len(both),
        of="sessions with both",
    )


STUDY = Study(
    name="coding_modes",
    place=200,
    title="Coding modes",
    question="Who writes the code that is committed?",
    queries={
        "sessions": f"SELECT session_id, repo, cwd, {STARTED} FROM sessions ORDER BY session_id",
        "modes": MODES,
    },
    function=_outcome,
    context="product",
)
