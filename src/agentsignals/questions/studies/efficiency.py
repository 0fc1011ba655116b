"""What a hundred committed lines take: tokens, money, words, time of the person and of the agent, by who wrote them
(SWE-chat, Figures 7 and 29; Equations 4 to 8)."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from types import MappingProxyType
from typing import Any, NamedTuple

from agentsignals.questions import sql
from agentsignals.questions.charts import dots
from agentsignals.questions.estimates import INTERVAL_NOTE, Estimate, chart, clustered_median, share_of, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Finding, Inputs, Kind, Outcome, Row, Study, Table
from agentsignals.questions.written_lines import (
    MODE_SOURCES,
    MODES,
    MODES_OF_SOURCE,
    NAMES,
    ModeSource,
    mode_by_session,
)
from agentsignals.stats.intervals import FEWEST_CLUSTERS, quantile

LINES = 100
IDLE_S = 120
"""A longer gap in which nobody acted is no part of the time a session took (the paper's Equation 7)."""


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
_OF: dict[ModeSource, str] = {
    "replayed": "sessions alone in their commits",
    "recorded": "sessions alone in their recorded commits",
}
_NONE = (
    "No session is known to have committed a line: agentsignals attribute REPOSITORY finds the commits of its sessions."
)


def _outcome(inputs: Inputs) -> Outcome:
    places = inputs.places
    effort = {row["session_id"]: row for row in inputs.rows["effort"]}
    modes = inputs.rows["modes"]
    by_road = {
        road: _effort_per_lines(inputs.rows[road], effort, mode_by_session(modes, road)) for road in MODE_SOURCES
    }
    roads = [road for road in MODE_SOURCES if any((row["lines"] or 0) > 0 for row in inputs.rows[road])]
    if not roads:
        return Outcome(limits=[_NONE])
    road = next((name for name in roads if by_road[name]), roads[0])
    findings = [_alone(name, inputs.rows[name], places) for name in roads]
    findings += [_median(measure, road, "", by_road[road], places) for measure in MEASURES]
    findings += [
        _median(measure, "recorded", mode, by_road["recorded"], places)
        for measure in MEASURES
        for mode in measure.medians
    ]
    return Outcome(
        [f for f in findings if f.n],
        [_table(name, by_road[name], places) for name in roads],
        [_chart(measure, road, by_road[road], places) for measure in MEASURES],
        _limits(roads),
    )


def _effort_per_lines(lines: list[Row], effort: dict[str, Row], modes: dict[str, str]) -> list[Row]:
    """Of the sessions that are alone in their commits: the mode, and what each measure says for a hundred lines."""
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


def _alone(road: ModeSource, rows: list[Row], places: dict[str, str]) -> Finding:
    with_lines = [row for row in rows if row["lines"] is not None and row["lines"] > 0]
    recorded = ", as recorded" if road == "recorded" else ""
    return share_of(with_lines, places, lambda row: row["is_alone"]).finding(
        f"efficiency.{road}.alone",
        f"Sessions that share none of their commits with another{recorded}",
        "sessions with committed lines",
        "SWE-chat: 48.6% map cleanly, by a rule it does not print",
        unit="share of sessions",
    )


def _median(measure: Measure, road: ModeSource, mode: str, rows: list[Row], places: dict[str, str]) -> Finding:
    published = measure.medians.get(mode) if road == "recorded" else None
    of_mode = f", {NAMES[mode]} as {road}" if mode else ""
    low = measure.key in _BOUND and any(row["low"] for row in rows)
    notes = (
        f"SWE-chat: {formatted(published, measure.kind)}" if published is not None else "",
        "at least: of some sessions output is logged in mid-stream" if low else "",
    )
    return _of_mode(measure, rows, mode, places)[0].finding(
        ".".join(part for part in ("efficiency", road, measure.key, mode) if part),
        f"{measure.title} for {LINES} committed lines, median session{of_mode}",
        _OF[road],
        "; ".join(note for note in notes if note),
        unit=f"{measure.unit} per {LINES} lines",
        priced=measure.key == "usd",
        at_least=low,
    )


def _table(road: ModeSource, rows: list[Row], places: dict[str, str]) -> Table:
    """Median with interval, quartiles and mean of each measure in each mode, beside what the paper prints."""
    shown: list[list[Any]] = []
    behind = []
    for measure in MEASURES:
        for mode in ("", *MODES_OF_SOURCE[road]):
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
        f"efficiency.{road}",
        f"For {LINES} committed lines, by mode as {road}",
        f"measure | mode mode as {road} | n sessions:count | median:figure | ends:figure | q25 25%:figure"
        " | q75 75%:figure | mean:figure | published_median paper's median:figure | published_mean paper's mean:figure",
        shown,
        n=len(rows),
        of=_OF[road],
        evidence=behind,
        note="The paper's are of its version 1 and its modes as recorded. A mean of ratios is a few sessions'.",
    )


def _chart(measure: Measure, road: ModeSource, rows: list[Row], places: dict[str, str]) -> Chart | None:
    shown: list[Row] = []
    for mode in ("", *MODES_OF_SOURCE[road]):
        typical, values = _of_mode(measure, rows, mode, places)
        if not values:
            continue
        name = NAMES.get(mode, "all")
        low = measure.key in _BOUND and any(row["low"] for row in rows)
        figure = f"median {formatted(typical.value, measure.kind, low)} {measure.unit} for {LINES} lines"
        shown.append(typical.mark(f"{name} ({len(values)})", f"{name}: {figure}, n = {len(values):,} sessions"))
    return chart(
        f"efficiency.{measure.key}",
        f"{measure.title} for {LINES} committed lines, by mode as {road}",
        shown,
        dots(shown, f"{measure.unit} per {LINES} lines, median", measure.kind),
        n=len(rows),
        of=_OF[road],
        note=f"sessions in brackets; {INTERVAL_NOTE}",
        fewest=2,
    )


def _limits(roads: list[ModeSource]) -> list[str]:
    limits = [
        "A session that commits two lines costs a fortune for each hundred: medians tell of sessions, not of lines."
        " Lines are all that its commits added, the person's and generated ones too; what came after the last commit is"
        " in the effort, and what was thrown away is nobody's line.",
        "Idle time is a gap of over two minutes that no sign of the agent ends; what the agent"
        " itself took leaves out waits for leave.",
    ]
    if "replayed" not in roads:
        limits.append("No repository was attributed: lines and modes are as the collector recorded them.")
    return limits


_EFFORT = f"""
WITH wanted AS (SELECT session_id FROM checkpoints WHERE total_committed > 0
 UNION SELECT unnest(session_ids) FROM commits WHERE added > 0),
said AS (SELECT session_id, sum(length(text)) AS characters FROM turns
 WHERE {sql.SPOKEN} GROUP BY session_id),
worked AS (SELECT session_id, sum(number) AS agent_seconds FROM {sql.NAMED}
 WHERE signal = 'chat.turn_autonomy_s' AND absent IS NULL GROUP BY session_id),
gaps AS (SELECT session_id, kind, epoch(timestamp) - lag(epoch(timestamp))
 OVER (PARTITION BY session_id ORDER BY timestamp, seq) AS gap FROM events
 WHERE timestamp IS NOT NULL AND session_id IN (SELECT session_id FROM wanted)),
lasted AS (SELECT session_id, sum(gap) FILTER (gap <= {IDLE_S}
 OR kind IN ('text', 'thinking', 'tool_call', 'tool_result')) AS seconds FROM gaps GROUP BY session_id)
SELECT session_id, cost_usd AS usd, CASE WHEN input_tokens IS NOT NULL OR output_tokens IS NOT NULL THEN
 coalesce(input_tokens, 0) + coalesce(output_tokens, 0) + coalesce(cache_read_tokens, 0)
 + coalesce(cache_write_tokens, 0) END AS tokens, characters, seconds, agent_seconds,
 visible_output_tokens IS NOT NULL AS low
FROM sessions JOIN wanted USING (session_id) LEFT JOIN said USING (session_id) LEFT JOIN worked USING (session_id)
 LEFT JOIN lasted USING (session_id) ORDER BY session_id"""
_REPLAYED = """
SELECT session_id, CAST(sum(added) AS BIGINT) AS lines, bool_and(n = 1) AND count(added) = count(*) AS is_alone
FROM (SELECT unnest(session_ids) AS session_id, added, len(session_ids) AS n FROM commits
 WHERE relation IS NOT NULL AND relation <> 'copy') JOIN sessions USING (session_id)
GROUP BY session_id ORDER BY session_id"""
_RECORDED = """
SELECT session_id, CAST(sum(total_committed) AS BIGINT) AS lines, bool_and(n = 1) AS is_alone
FROM checkpoints JOIN sessions USING (session_id)
 JOIN (SELECT checkpoint_id, count(DISTINCT session_id) AS n FROM checkpoints GROUP BY checkpoint_id)
 USING (checkpoint_id) WHERE total_committed IS NOT NULL GROUP BY session_id ORDER BY session_id"""

STUDY = Study(
    name="efficiency",
    order=220,
    title="Efficiency",
    question="What do a hundred committed lines take?",
    queries={"modes": MODES, "effort": _EFFORT, "replayed": _REPLAYED, "recorded": _RECORDED},
    function=_outcome,
    context="product",
)
