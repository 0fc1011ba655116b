"""Who writes the code: the person, the agent or both, as replayed and as recorded (SWE-chat, Figures 5, 19e, 25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import fmean

from msgspec.structs import replace

from agentsignals.questions import sql
from agentsignals.questions.charts import dots, histogram_chart, lines_chart
from agentsignals.questions.estimates import INTERVAL_NOTE, ClusteredShare, chart, clustered_median, share_of, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.questions.written_lines import (
    LABEL,
    LABELLER,
    MODE_SOURCES,
    MODES,
    MODES_OF_SOURCE,
    NAMES,
    PERCENT,
    SIGNAL,
    ModeSource,
    mode_source,
)
from agentsignals.stats.intervals import median

_PUBLISHED = {"human_only": "22.7", "collaborative": "36.5", "vibe_coding": "40.8"}
_PERCENTS: tuple[float, ...] = (0, 20, 40, 60, 80, 99, 100)
"""Upper ends of classes: nothing, fifths, and from 99 percent everything."""
WINDOW_DAYS = 14
_FEWEST = 10
"""Sessions behind a point of a line (this project's choice)."""
_OF: dict[ModeSource, str] = {"replayed": "sessions with attributed commits", "recorded": "sessions with a record"}
_REPLAYED = f"FROM labels WHERE task = '{LABEL}' AND labeller = '{LABELLER}'"
_NONE = (
    "No session has a record of whose lines were committed: such records come with checkpoints, agentsignals ingest"
    " git:REPOSITORY reads them, and agentsignals attribute REPOSITORY replays whose lines they were."
)
_UNKNOWN = (
    "A mode by replay is unknown where lines that nothing explains leave more than one open: from surely an agent's to"
    " surely a person's lies the interval, and it reaches over a border."
    " Shares of lines in charts are estimates, in which an unknown line counts for half."
)
_RECORDED = (
    "Modes as recorded are the collector's. A replay of one collection found agents' lines taken for a person's where"
    " the agent commits in the middle of a turn: half of its human-only records were agents' work. So these shares say"
    " too little of agents."
)


def _outcome(inputs: Inputs) -> Outcome:
    places = inputs.places
    rows = inputs.rows["modes"]
    if not rows:
        return Outcome(limits=[_NONE])
    shares = {
        road: {mode: share_of(classified, places, _is(road, mode)) for mode in MODES_OF_SOURCE[road]}
        for road in MODE_SOURCES
        if (classified := [row for row in rows if row[road] is not None])
    }
    findings = [_finding(road, mode, estimate) for road, of in shares.items() for mode, estimate in of.items()]
    medians = [*(_recorded_median(rows, places) if "recorded" in shares else []), *_replayed_medians(rows, places)]
    limits = [
        *([_UNKNOWN] if "replayed" in shares else []),
        *([_RECORDED] if "recorded" in shares else []),
        "Sessions whose work was never committed have no mode.",
    ]
    charts = [_chart(shares), *_of_road(mode_source(rows), rows, inputs)]
    return Outcome(findings + [f for f in medians if f.n], [_against_each_other(rows)], charts, limits)


def _is(road: ModeSource, mode: str) -> Callable[[Row], bool]:
    return lambda row: bool(row[road] == mode)


def _all_of(road: ModeSource, mode: str) -> Callable[[list[Row]], list[float]]:
    return lambda rows: [float(row[road] == mode) for row in rows]


def _finding(road: ModeSource, mode: str, estimate: ClusteredShare) -> Finding:
    is_recorded = road == "recorded"
    return estimate.finding(
        f"coding_modes.{'' if is_recorded else 'replayed.'}{mode}",
        f"Sessions of mode {NAMES[mode]}, as {road}",
        _OF[road],
        f"SWE-chat, as recorded: {_PUBLISHED[mode]}%" if mode in _PUBLISHED else "",
        unit="share of sessions",
        signals=(SIGNAL, PERCENT) if is_recorded else (),
        sql=f"SELECT avg(CAST({sql.LABEL} = '{mode}' AS INT)) FROM signals WHERE signal = '{SIGNAL}' AND absent IS NULL"
        if is_recorded
        else f"SELECT avg(CAST(value = '{mode.removesuffix('_coding')}' AS INT)) {_REPLAYED}",
    )


def _recorded_median(rows: list[Row], places: dict[str, str]) -> list[Finding]:
    percents = [(row["session_id"], row["recorded_percent"]) for row in rows if row["recorded_percent"] is not None]
    return [
        clustered_median(percents, places).finding(
            "coding_modes.percent.median",
            "Lines by the agent in the median session, as recorded",
            _OF["recorded"],
            "SWE-chat, as recorded: 73.3",
            unit="percent of committed lines",
            signals=(PERCENT,),
            sql=f"SELECT median(number) FROM signals WHERE signal = '{PERCENT}'",
        )
    ]


def _replayed_medians(rows: list[Row], places: dict[str, str]) -> list[Finding]:
    """The medians of the bounds. The interval of both is that of the two together: none is narrower than its bounds."""
    bounded = [row for row in rows if row["replayed_low"] is not None]
    low, high = (
        clustered_median([(row["session_id"], row[f"replayed_{end}"]) for row in bounded], places)
        for end in ("low", "high")
    )
    interval = (low.interval[0], high.interval[1]) if low.interval and high.interval else None
    return [
        replace(estimate, interval=interval).finding(
            f"coding_modes.replayed.percent.{end}.median",
            f"Lines by the agent in the median session, {words}, as replayed ({_unknown(bounded)})",
            _OF["replayed"],
            "the median of the sessions' bounds; the interval holds both bounds",
            unit="percent of committed lines",
            sql=f"SELECT median(100 * CAST(detail->>'{end}' AS DOUBLE)) {_REPLAYED}",
        )
        for end, words, estimate in (("low", "at least", low), ("high", "at most", high))
    ]


def _unknown(rows: list[Row]) -> str:
    """What share of the sessions' lines may be anybody's."""
    lines = sum(row["lines"] for row in rows)
    unknown = sum(row["lines"] * (row["replayed_high"] - row["replayed_low"]) / 100 for row in rows)
    return f"{formatted(unknown / lines, 'share')} of lines unknown" if lines else "no line known"


def _of_road(road: ModeSource, rows: list[Row], inputs: Inputs) -> list[Chart | None]:
    """How shares of lines spread, and how modes change, on one road."""
    started = {row["session_id"]: row["started_at"] for row in inputs.rows["sessions"]}
    timed = [(started.get(row["session_id"]), row["session_id"], row) for row in rows]
    unknown = f" ({_unknown([row for row in rows if row['lines']])})" if road == "replayed" else ""
    percents = [
        (at, session_id, row[f"{road}_percent"]) for at, session_id, row in timed if row[f"{road}_percent"] is not None
    ]
    return [
        histogram_chart(
            [(session_id, percent) for _, session_id, percent in percents],
            _PERCENTS,
            id="coding_modes.percent",
            title=f"Lines by the agent, of those committed, as {road}{unknown}",
            unit="percent of lines",
        ),
        lines_chart(
            [part for part in timed if part[2][road] is not None],
            shares={NAMES[mode]: _all_of(road, mode) for mode in MODES_OF_SOURCE[road]},
            id="coding_modes.over_time",
            title=f"Coding modes as {road}, {WINDOW_DAYS} days rolling",
            unit="share of sessions",
            kind="share",
            of="sessions",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
        lines_chart(
            percents,
            measures={"mean": fmean, "median": median},
            id="coding_modes.percent.over_time",
            title=f"Lines by the agent, of those committed, as {road}{unknown}, {WINDOW_DAYS} days rolling",
            unit="percent of lines",
            kind="number",
            of="sessions",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    ]


def _chart(shares: dict[ModeSource, dict[str, ClusteredShare]]) -> Chart | None:
    estimates = [(f"{NAMES[mode]}{{}} {road}", e) for road, of in shares.items() for mode, e in of.items()]
    rows = [
        e.mark(f"{name.format(',')} ({e.k:,.0f})", f"{name.format(' as')}: {e.words('sessions')}")
        for name, e in estimates
    ]
    return chart(
        "coding_modes.shares",
        "Coding modes",
        rows,
        dots(rows, "share of sessions"),
        n=max(e.n for _, e in estimates),
        of="sessions",
        note=f"sessions in brackets; {INTERVAL_NOTE}",
    )


def _against_each_other(rows: list[Row]) -> Table:
    """What each recorded mode is by replay."""
    both = [row for row in rows if row["recorded"] is not None and row["replayed"] is not None]
    counted = Counter((row["recorded"], row["replayed"]) for row in both)
    shown = [
        [NAMES[mode], sum(row["recorded"] == mode for row in both)] + [counted[mode, other] for other in NAMES]
        for mode in MODES_OF_SOURCE["recorded"]
    ]
    replayed = " | ".join(f"{mode} {name} by replay:count" for mode, name in NAMES.items())
    return table(
        "coding_modes.roads",
        "Modes as recorded, and what they are by replay",
        f"recorded as recorded | n sessions:count | {replayed}",
        shown if both else [],
        n=len(both),
        of="sessions with both",
        evidence=[
            [row["session_id"] for row in both if row["recorded"] == mode] for mode in MODES_OF_SOURCE["recorded"]
        ]
        if both
        else [],
    )


STUDY = Study(
    name="coding_modes",
    order=200,
    title="Coding modes",
    question="Who writes the code that is committed?",
    queries={
        "sessions": f"SELECT session_id, {sql.PLACE}, {sql.STARTED} FROM sessions ORDER BY session_id",
        "modes": MODES,
    },
    function=_outcome,
    context="product",
)
