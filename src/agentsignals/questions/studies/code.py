"""Code: how agents edit, who wrote what was committed, how long it survives, what it took, which weaknesses it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import fsum
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, dots, histogram_chart, lines_chart
from agentsignals.questions.estimates import (
    INTERVAL_NOTE,
    ClusteredShare,
    Estimate,
    Sample,
    agents_by_sessions,
    bar,
    chart,
    clustered_median,
    clustered_share,
    median_finding,
    pooled_finding,
    pooled_ratio,
    share_of,
    signal_rows,
    table,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import (
    Chart,
    EvidenceQuery,
    Finding,
    Inputs,
    Kind,
    NoSessions,
    Outcome,
    Row,
    Study,
    Table,
)
from agentsignals.questions.sql import declared, read_queries
from agentsignals.questions.written_lines import (
    ALL,
    LABEL,
    LABELLER,
    MODE_SOURCES,
    MODES,
    MODES_OF_SOURCE,
    NAMES,
    NO_REPLAY,
    PERCENT,
    SIGNAL,
    ModeSource,
    Rate,
    age_chart,
    by_age,
    by_mode,
    by_repo,
    fates_chart,
    kept_by_session,
    mode_by_session,
    mode_source,
    rates,
    surviving_lines,
    written,
)
from agentsignals.stats.intervals import FEWEST_CLUSTERS, median, quantile

IDLE_S = 120
"""A longer gap in which nobody acted is no part of the time a session took (the paper's Equation 7)."""
_SQL = read_queries(__file__, idle_s=str(IDLE_S))

_READ_FIRST = "corpus.read_before_edit_rate"
_RATIO = "behavior.edit_to_read_ratio"
_LINES = "behavior.diff_lines"
_AGAIN = "user.region_re_edit_count"
_MOST_FILES = 20


def edits(inputs: Inputs) -> Outcome:
    measured = [row for row in signal_rows(inputs, _READ_FIRST) if row["number"] is not None]
    rows: list[Row] = []
    for agent in agents_by_sessions(measured):
        group = [row for row in measured if row["agent"] == agent and row["num"] is not None and row["den"]]
        estimate = pooled_ratio(group, inputs.places)
        share = formatted(estimate.value, "share")
        tip = f"{agent}: {share} of {estimate.n:,.0f} edit attempts, {len(group):,} sessions"
        rows.append(estimate.mark(f"{agent} ({estimate.n:,.0f})", tip))
    places = inputs.places
    shell = share_of(inputs.rows["ways"], places, lambda row: row["via"] == "shell", "n")
    again = pooled_ratio(signal_rows(inputs, _AGAIN), places, "number", "regions")
    files = inputs.rows["files"]
    merged: dict[tuple[str, str], list[int]] = {}
    for files_row in files:
        counts = merged.setdefault((files_row["place"] or "", files_row["path"]), [0, 0, 0, 0])
        for i, key in enumerate(("n", "sessions", "added", "removed")):
            counts[i] += int(files_row[key] or 0)
    most = sorted(merged.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_FILES]
    more = f" The {len(most)} most changed of {len(merged):,} files." if len(merged) > len(most) else ""
    return Outcome(
        [
            pooled_finding(inputs, "edits.read_first"),
            pooled_finding(inputs, "edits.per_read", is_share=False),
            median_finding(inputs, "edits.lines.median"),
            shell.finding("edits.by_shell"),
            again.finding("edits.again"),
        ],
        [
            table(
                "edits.files",
                [[path, place.rstrip("/").rsplit("/", 1)[-1], *counts] for (place, path), counts in most],
                n=sum(counts[0] for counts in merged.values()),
                evidence=[
                    EvidenceQuery(_SQL["edits_rows"]["of_file"], {"place": place, "path": path})
                    for (place, path), _ in most
                ],
                note=f"Lines added and removed.{more}",
            )
        ],
        [
            chart(
                "edits.read_first.agents",
                rows,
                dots(rows, "share of edit attempts"),
                n=pooled_ratio(measured, inputs.places).n,
            )
        ],
    )


EDITS_STUDY = Study(
    **declared("study", "edits"),
    queries={
        **_SQL["edits"],
        "values": sql.values(_READ_FIRST, _RATIO, _LINES, _AGAIN, detail=(*sql.RATIO, "regions")),
        "absent": sql.ABSENT,
    },
    function=edits,
)


# -- Coding modes (SWE-chat, Figures 5, 19e, 25)

_PUBLISHED = {"human_only": "22.7", "collaborative": "36.5", "vibe_coding": "40.8"}
_PERCENTS: tuple[float, ...] = (0, 20, 40, 60, 80, 99, 100)
"""Upper ends of classes: nothing, fifths, and from 99 percent everything."""
WINDOW_DAYS = 14
_FEWEST = 10
"""Sessions behind a point of a line (this project's choice)."""
_CODING_MODES_OF: dict[ModeSource, str] = {
    "replayed": "sessions with attributed commits",
    "recorded": "sessions with a record",
}
_REPLAYED_LABELS = f"FROM labels WHERE task = '{LABEL}' AND labeller = '{LABELLER}'"
_NO_MODES = (
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


def _matches(source: ModeSource, mode: str, rows: list[Row]) -> list[float]:
    return [float(row[source] == mode) for row in rows]


def coding_modes(inputs: Inputs) -> Outcome:
    places = inputs.places
    rows = inputs.rows["modes"]
    if not rows:
        return Outcome(limits=[_NO_MODES])
    shares: dict[ModeSource, dict[str, ClusteredShare]] = {}
    for source in MODE_SOURCES:
        classified = [row for row in rows if row[source] is not None]
        if classified:
            sample = Sample([row["session_id"] for row in classified], places)
            modes = [row[source] for row in classified]
            shares[source] = {mode: sample.among(modes, mode) for mode in MODES_OF_SOURCE[source]}
    findings = [
        _coding_modes_finding(source, mode, estimate) for source, of in shares.items() for mode, estimate in of.items()
    ]
    # The medians of the bounds. The interval of both is that of the two together: none is narrower than
    # its bounds.
    bounded = [row for row in rows if row["replayed_low"] is not None]
    low, high = (
        clustered_median([(row["session_id"], row[f"replayed_{end}"]) for row in bounded], places)
        for end in ("low", "high")
    )
    interval = (low.interval[0], high.interval[1]) if low.interval and high.interval else None
    recorded = [(row["session_id"], row["recorded_percent"]) for row in rows if row["recorded_percent"] is not None]
    of_recorded = clustered_median(recorded, places).finding(
        "coding_modes.percent.median", of=_CODING_MODES_OF["recorded"]
    )
    medians = [
        *([of_recorded] if "recorded" in shares else []),
        *[
            replace(estimate, interval=interval).finding(
                f"coding_modes.replayed.percent.{end}.median",
                f"Lines by the agent in the median session, {words}, as replayed ({_unknown(bounded)})",
                _CODING_MODES_OF["replayed"],
                "the median of the sessions' bounds; the interval holds both bounds",
                unit="percent of committed lines",
                sql=f"SELECT median(100 * CAST(detail->>'{end}' AS DOUBLE)) {_REPLAYED_LABELS}",
            )
            for end, words, estimate in (("low", "at least", low), ("high", "at most", high))
        ],
    ]
    limits = [
        *([_UNKNOWN] if "replayed" in shares else []),
        *([_RECORDED] if "recorded" in shares else []),
        "Sessions whose work was never committed have no mode.",
    ]
    estimates = [(f"{NAMES[mode]}{{}} {source}", e) for source, of in shares.items() for mode, e in of.items()]
    modes_rows = [
        e.mark(f"{name.format(',')} ({e.k:,.0f})", f"{name.format(' as')}: {e.words('sessions')}")
        for name, e in estimates
    ]
    charts = [
        chart(
            "coding_modes.shares", modes_rows, dots(modes_rows, "share of sessions"), n=max(e.n for _, e in estimates)
        ),
        *_source_charts(mode_source(rows), rows, inputs),
    ]
    # What each recorded mode is by replay.
    both = [row for row in rows if row["recorded"] is not None and row["replayed"] is not None]
    counted = Counter((row["recorded"], row["replayed"]) for row in both)
    shown = [
        [NAMES[mode], sum(row["recorded"] == mode for row in both)] + [counted[mode, other] for other in NAMES]
        for mode in MODES_OF_SOURCE["recorded"]
    ]
    replayed = " | ".join(f"{mode} {name} by replay:count" for mode, name in NAMES.items())
    return Outcome(
        findings + [f for f in medians if f.n],
        [
            table(
                "coding_modes.roads",
                shown if both else [],
                header=f"recorded as recorded | n sessions:count | {replayed}",
                n=len(both),
                evidence=[
                    [row["session_id"] for row in both if row["recorded"] == mode]
                    for mode in MODES_OF_SOURCE["recorded"]
                ]
                if both
                else [],
            )
        ],
        charts,
        limits,
    )


def _coding_modes_finding(source: ModeSource, mode: str, estimate: ClusteredShare) -> Finding:
    is_recorded = source == "recorded"
    return estimate.finding(
        f"coding_modes.{'' if is_recorded else 'replayed.'}{mode}",
        f"Sessions of mode {NAMES[mode]}, as {source}",
        _CODING_MODES_OF[source],
        f"SWE-chat, as recorded: {_PUBLISHED[mode]}%" if mode in _PUBLISHED else "",
        unit="share of sessions",
        signals=(SIGNAL, PERCENT) if is_recorded else (),
        sql=f"SELECT avg(CAST({sql.LABEL} = '{mode}' AS INT)) FROM signals WHERE signal = '{SIGNAL}' AND absent IS NULL"
        if is_recorded
        else f"SELECT avg(CAST(value = '{mode.removesuffix('_coding')}' AS INT)) {_REPLAYED_LABELS}",
    )


def _unknown(rows: list[Row]) -> str:
    """Describe the share of the sessions' lines whose author is unknown."""
    lines = sum(row["lines"] for row in rows)
    unknown = sum(row["lines"] * (row["replayed_high"] - row["replayed_low"]) / 100 for row in rows)
    return f"{formatted(unknown / lines, 'share')} of lines unknown" if lines else "no line known"


def _source_charts(source: ModeSource, rows: list[Row], inputs: Inputs) -> list[Chart | None]:
    """Charts of one source: distribution of agent-written lines, and modes over time."""
    started = {row["session_id"]: row["started_at"] for row in inputs.rows["sessions"]}
    timed = [(started.get(row["session_id"]), row["session_id"], row) for row in rows]
    unknown = f" ({_unknown([row for row in rows if row['lines']])})" if source == "replayed" else ""
    percents = [
        (at, session_id, row[f"{source}_percent"])
        for at, session_id, row in timed
        if row[f"{source}_percent"] is not None
    ]
    return [
        histogram_chart(
            [(session_id, percent) for _, session_id, percent in percents],
            _PERCENTS,
            id="coding_modes.percent",
            title=f"Lines by the agent, of those committed, as {source}{unknown}",
            unit="percent of lines",
        ),
        lines_chart(
            [part for part in timed if part[2][source] is not None],
            shares={NAMES[mode]: partial(_matches, source, mode) for mode in MODES_OF_SOURCE[source]},
            id="coding_modes.over_time",
            title=f"Coding modes as {source}, {WINDOW_DAYS} days rolling",
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
            title=f"Lines by the agent, of those committed, as {source}{unknown}, {WINDOW_DAYS} days rolling",
            unit="percent of lines",
            kind="number",
            of="sessions",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    ]


CODING_MODES_STUDY = Study(
    **declared("study", "coding_modes"), queries={**_SQL["coding_modes"], "modes": MODES}, function=coding_modes
)


# -- Survival of code (SWE-chat, Table 3; Equations 2 and 3)


_Lines: TypeAlias = Callable[[Row], float]
_BY_SESSION: dict[str, tuple[_Lines, _Lines]] = {
    "efficiency": (lambda row: row["committed"], written),
    "rate": (lambda row: row["committed"], kept_by_session),
}
"""Definitions of survival: which lines are divided by which."""
_BY_COMMIT: dict[str, tuple[_Lines, _Lines]] = {
    "strict": (lambda row: row["kept"], lambda row: row["written_in_files"]),
    "strict.rate": (lambda row: row["kept"], lambda row: row["written_in_files"] - row["rewritten_in_files"]),
    "window": (lambda row: row["kept"], lambda row: row["written"]),
    "window.rate": (lambda row: row["kept"], lambda row: row["written"] - row["rewritten"]),
}


def survival(inputs: Inputs) -> Outcome:
    sessions, commits, lines = inputs.rows["fates"], inputs.rows["commits"], inputs.rows["lines"]
    if not (sessions or commits):
        return Outcome(limits=[NO_REPLAY])
    places = inputs.places
    repos = {row["commit_sha"]: row["repo"] for row in [*commits, *lines]}
    alive = {
        "alive": [row for row in lines if row["is_agents"]],
        "alive.others": [row for row in lines if not row["is_agents"]],
    }
    findings = []
    for name, definition in _BY_SESSION.items():
        findings.append(
            _survival_finding(name, definition, [(r["session_id"], r) for r in sessions], places, "sessions")
        )
    for name, definition in _BY_COMMIT.items():
        findings.append(_survival_finding(name, definition, [(r["commit_sha"], r) for r in commits], repos, "commits"))
    for name, rows in alive.items():
        parts = surviving_lines(rows)
        note = f"in {len(parts):,} commits, by git blame at the head"
        findings.append(clustered_share(parts, repos, "commits").finding(f"survival.{name}", note=note))
    findings.append(share_of(inputs.rows["met"], places, lambda row: row["n"] > 0).finding("survival.met"))
    return Outcome(
        [f for f in findings if f.n],
        [by_mode(sessions, inputs.rows["modes"], places), by_repo(sessions, commits, lines), by_age(lines, repos)],
        [fates_chart(sessions), age_chart(lines, repos)],
    )


def _survival_finding(
    name: str, lines: tuple[_Lines, _Lines], rows: list[tuple[str, Row]], places: dict[str, str], drawn: str
) -> Finding:
    """A share of lines. Lines of a commit that come back from before may make more than were written."""
    kept, made = lines
    parts = [(key, min(kept(row), made(row)), made(row)) for key, row in rows if made(row) > 0]
    said = declared("finding", f"survival.{name}")["note"]
    note = f"{said}; over {len(parts):,} {drawn}"
    return clustered_share(parts, places, drawn).finding(f"survival.{name}", note=note)


SURVIVAL_STUDY = Study(**declared("study", "survival"), queries={**_SQL["survival"], "modes": MODES}, function=survival)


# -- Efficiency (SWE-chat, Figures 7 and 29; Equations 4 to 8)

LINES = 100


class Measure(NamedTuple):
    """Something that a session took. `divisor`: from what the rows hold to the unit."""

    key: str
    title: str
    unit: str
    kind: Kind
    medians: Mapping[str, float] = MappingProxyType({})
    """The paper's, by recorded mode, where it prints them (v1)."""
    means: Mapping[str, float] = MappingProxyType({})
    divisor: float = 1


def _of(human: float, together: float, vibe: float) -> dict[str, float]:
    return {"human_only": human, "collaborative": together, "vibe_coding": vibe}


MEASURES = (
    Measure(
        key="usd", title="Cost", unit="USD", kind="usd", medians=_of(0.07, 0.05, 0.13), means=_of(1.1, 0.574, 0.916)
    ),
    Measure(
        key="tokens",
        title="Tokens",
        unit="tokens",
        kind="tokens",
        medians={"vibe_coding": 204_000},
        means=_of(1.4e6, 0.74e6, 1.2e6),
    ),
    Measure(
        key="characters",
        title="Characters of prompts",
        unit="characters",
        kind="number",
        means=_of(22_364, 9_903, 14_810),
    ),
    Measure(
        key="seconds",
        title="Time without idling",
        unit="minutes",
        kind="number",
        medians=_of(8.6, 4.8, 12.6),
        means=_of(82.9, 51.3, 80.5),
        divisor=60,
    ),
    Measure(
        key="agent_seconds",
        title="Time of the agent",
        unit="minutes",
        kind="number",
        means=_of(74.0, 47.7, 71.2),
        divisor=60,
    ),
)
_BOUND = ("usd", "tokens")
"""Lower bounds where output is logged in mid-stream."""
_EFFICIENCY_OF: dict[ModeSource, str] = {
    "replayed": "sessions alone in their commits",
    "recorded": "sessions alone in their recorded commits",
}
_NO_COMMITS = (
    "No session is known to have committed a line: agentsignals attribute REPOSITORY finds the commits of its sessions."
)


def efficiency(inputs: Inputs) -> Outcome:
    places = inputs.places
    effort = {row["session_id"]: row for row in inputs.rows["effort"]}
    modes = inputs.rows["modes"]
    by_source = {
        source: _effort_per_lines(inputs.rows[source], effort, mode_by_session(modes, source))
        for source in MODE_SOURCES
    }
    sources = [source for source in MODE_SOURCES if any((row["lines"] or 0) > 0 for row in inputs.rows[source])]
    if not sources:
        return Outcome(limits=[_NO_COMMITS])
    source = next((name for name in sources if by_source[name]), sources[0])
    findings = [_alone(name, inputs.rows[name], places) for name in sources]
    findings += [_median(measure, source, "", by_source[source], places) for measure in MEASURES]
    findings += [
        _median(measure, "recorded", mode, by_source["recorded"], places)
        for measure in MEASURES
        for mode in measure.medians
    ]
    limits = [
        "A session that commits two lines costs a fortune for each hundred: medians tell of sessions, not of lines."
        " Lines are all that its commits added, the person's and generated ones too; what came after the last commit is"
        " in the effort, and what was thrown away is nobody's line.",
        "Idle time is a gap of over two minutes that no sign of the agent ends; what the agent"
        " itself took leaves out waits for leave.",
    ]
    if "replayed" not in sources:
        limits.append("No repository was attributed: lines and modes are as the collector recorded them.")
    return Outcome(
        [f for f in findings if f.n],
        [_efficiency_table(name, by_source[name], places) for name in sources],
        [_efficiency_chart(measure, source, by_source[source], places) for measure in MEASURES],
        limits,
    )


def _effort_per_lines(lines: list[Row], effort: dict[str, Row], modes: dict[str, str]) -> list[Row]:
    """Mode and measures for a hundred lines, of the sessions that are alone in their commits."""
    effort_rows: list[Row] = []
    for row in lines:
        took = effort.get(row["session_id"])
        if not row["is_alone"] or not row["lines"] or row["lines"] < 0 or took is None:
            continue
        values = {
            measure.key: None
            if (spent := took[measure.key]) is None
            else LINES * spent / measure.divisor / row["lines"]
            for measure in MEASURES
        }
        effort_rows.append(
            {"session_id": row["session_id"], "low": took["low"], "mode": modes.get(row["session_id"]), **values}
        )
    return effort_rows


def _of_mode(measure: Measure, rows: list[Row], mode: str, places: dict[str, str]) -> tuple[Estimate, list[float]]:
    """The median of the sessions of a mode, and their values; no interval of so few that it would be a guess."""
    values = [
        (row["session_id"], row[measure.key])
        for row in rows
        if row[measure.key] is not None and (not mode or row["mode"] == mode)
    ]
    return clustered_median(values, places, measure.kind, FEWEST_CLUSTERS), sorted(value for _, value in values)


def _alone(source: ModeSource, rows: list[Row], places: dict[str, str]) -> Finding:
    with_lines = [row for row in rows if row["lines"] is not None and row["lines"] > 0]
    recorded = ", as recorded" if source == "recorded" else ""
    return share_of(with_lines, places, lambda row: row["is_alone"]).finding(
        f"efficiency.{source}.alone",
        f"Sessions that share none of their commits with another{recorded}",
        "sessions with committed lines",
        "SWE-chat: 48.6% map cleanly, by a rule it does not print",
        unit="share of sessions",
    )


def _median(measure: Measure, source: ModeSource, mode: str, rows: list[Row], places: dict[str, str]) -> Finding:
    published = measure.medians.get(mode) if source == "recorded" else None
    of_mode = f", {NAMES[mode]} as {source}" if mode else ""
    low = measure.key in _BOUND and any(row["low"] for row in rows)
    notes = (
        f"SWE-chat: {formatted(published, measure.kind)}" if published is not None else "",
        "at least: of some sessions output is logged in mid-stream" if low else "",
    )
    return _of_mode(measure, rows, mode, places)[0].finding(
        ".".join(part for part in ("efficiency", source, measure.key, mode) if part),
        f"{measure.title} for {LINES} committed lines, median session{of_mode}",
        _EFFICIENCY_OF[source],
        "; ".join(note for note in notes if note),
        unit=f"{measure.unit} per {LINES} lines",
        priced=measure.key == "usd",
        at_least=low,
    )


def _efficiency_table(source: ModeSource, rows: list[Row], places: dict[str, str]) -> Table:
    """Median with interval, quartiles and mean of each measure in each mode, beside what the paper prints."""
    shown: list[list[Any]] = []
    behind = []
    for measure in MEASURES:
        for mode in ("", *MODES_OF_SOURCE[source]):
            typical, values = _of_mode(measure, rows, mode, places)
            if not values:
                continue
            figures = [typical.value, *typical.ends, quantile(values, 0.25), quantile(values, 0.75)]
            figures += [fsum(values) / len(values), measure.medians.get(mode), measure.means.get(mode)]
            is_named = measure.unit in measure.title.lower()
            name = measure.title if is_named else f"{measure.title}, {measure.unit}"
            low = measure.key in _BOUND and any(row["low"] for row in rows)
            words = (formatted(figure, measure.kind, low and n < len(figures) - 2) for n, figure in enumerate(figures))
            shown.append([name, NAMES.get(mode, "all"), len(values), *words])
            behind.append(typical.counted)
    return table(
        f"efficiency.{source}",
        shown,
        title=f"For {LINES} committed lines, by mode as {source}",
        header=f"measure | mode mode as {source} | n sessions:count | median:figure | ends:figure | q25 25%:figure"
        " | q75 75%:figure | mean:figure | published_median paper's median:figure | published_mean paper's mean:figure",
        n=len(rows),
        of=_EFFICIENCY_OF[source],
        evidence=behind,
        note="The paper's are of its version 1 and its modes as recorded. A mean of ratios is a few sessions'.",
    )


def _efficiency_chart(measure: Measure, source: ModeSource, rows: list[Row], places: dict[str, str]) -> Chart | None:
    shown: list[Row] = []
    for mode in ("", *MODES_OF_SOURCE[source]):
        typical, values = _of_mode(measure, rows, mode, places)
        if not values:
            continue
        name = NAMES.get(mode, "all")
        low = measure.key in _BOUND and any(row["low"] for row in rows)
        figure = f"median {formatted(typical.value, measure.kind, low)} {measure.unit} for {LINES} lines"
        shown.append(typical.mark(f"{name} ({len(values)})", f"{name}: {figure}, n = {len(values):,} sessions"))
    return chart(
        f"efficiency.{measure.key}",
        shown,
        dots(shown, f"{measure.unit} per {LINES} lines, median", measure.kind),
        title=f"{measure.title} for {LINES} committed lines, by mode as {source}",
        n=len(rows),
        of=_EFFICIENCY_OF[source],
        note=f"sessions in brackets; {INTERVAL_NOTE}",
        fewest=2,
    )


EFFICIENCY_STUDY = Study(
    **declared("study", "efficiency"), queries={**_SQL["efficiency"], "modes": MODES}, function=efficiency
)


# -- Weaknesses (SWE-chat, Table 4, Figures 26 and 27)

_NO_SCANS = "No repository was scanned: agentsignals scan REPO does it."
_EXACT = "the interval takes findings as independent"
_SHOWN = 15
_OF_COMMITS = NoSessions("It counts lines of commits: the page Code has them.")
_NAMES = {"human_only": "human only", "collaborative": "collaborative", "vibe": "vibe coding", "unknown": "unknown"}
_LIMITS = [
    "Findings of a static scanner are not confirmed weaknesses, and rates of different rule sets don't compare: the"
    " published ones are of an unnamed set.",
    "Intervals are exact for independent findings; those of one commit are not, so they are too narrow where few"
    " commits have most.",
    "The order of modes can turn with the attribution, which each rate names.",
]


def weaknesses(inputs: Inputs) -> Outcome:
    if not inputs.rows["scans"]:
        return Outcome(limits=[_NO_SCANS])
    commits = Counter(row["scanner"] for row in inputs.rows["scans"])
    scanner = min(commits, key=lambda name: (-commits[name], name))
    findings = [row for row in inputs.rows["findings"] if row["scanner"] == scanner]
    weakness_rates = rates([row for row in inputs.rows["scans"] if row["scanner"] == scanner], findings)
    new = [row for row in findings if row["change"] == "introduced"]
    reported = [
        _weaknesses_finding(rate, scanner)
        for rate in weakness_rates
        if rate.files == ALL
        and rate.lines
        and (rate.by == "all" or (rate.attribution == "replayed" and rate.group != "nobody"))
    ]
    charts = [
        _weaknesses_chart("rules", "Introduced findings by rule", Counter(row["rule"] for row in new)),
        _weaknesses_chart("cwes", "Introduced findings by weakness", Counter(cwe for row in new for cwe in row["cwe"])),
    ]
    return Outcome(
        reported,
        [
            table(
                "weaknesses.rates",
                [
                    [
                        *(
                            r.attribution,
                            r.by,
                            r.group,
                            r.files,
                            r.lines,
                            r.introduced,
                            r.introduced_rate,
                            r.introduced_low,
                        ),
                        *(r.introduced_high, r.fixed, r.fixed_rate),
                    ]
                    for r in weakness_rates
                ],
                n=weakness_rates[0].commits,
                evidence=_OF_COMMITS,
                note=f"scanner {scanner}",
            )
        ],
        charts,
        _LIMITS,
    )


def _weaknesses_finding(rate: Rate, scanner: str) -> Finding:
    words = "all" if rate.by == "all" else f"{rate.by} {_NAMES.get(rate.group, rate.group)}, {rate.attribution}"
    low, high = rate.introduced_low, rate.introduced_high
    interval = None if low is None or high is None else (low, high)
    return Estimate(
        value=rate.introduced_rate, n=rate.lines, kind="number", interval=interval, note=_EXACT, counted=_OF_COMMITS
    ).finding(
        "weaknesses.introduced" if rate.by == "all" else f"weaknesses.{rate.by}.{rate.group}",
        f"Introduced findings per 1 000 added lines ({words})",
        "added lines of scanned files",
        f"scanner {scanner}; {rate.introduced} in {rate.commits_with} commits, {rate.largest_commit} in one",
        unit="findings per 1 000 lines",
    )


def _weaknesses_chart(name: str, title: str, counted: Counter[str]) -> Chart | None:
    rows = [bar(key, n, f"{key}: {n:,}", evidence=_OF_COMMITS) for key, n in counted.most_common(_SHOWN)]
    spec, n, of = bars(rows, "findings"), counted.total(), "introduced findings"
    return chart(f"weaknesses.{name}", rows, spec, title=title, n=n, of=of)


WEAKNESSES_STUDY = Study(**declared("study", "weaknesses"), queries=_SQL["weaknesses"], function=weaknesses)
