"""Turns: calls and time for each prompt, how turns end, and how people oversee agents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentsignals.questions import sql
from agentsignals.questions.charts import RATIOS, bars, dots, histogram_chart, lines_chart
from agentsignals.questions.estimates import (
    DOMINANT,
    ONE_PLACE,
    ClusteredShare,
    Sample,
    agents_by_sessions,
    bar,
    by,
    chart,
    clustered_median,
    clustered_share,
    median_finding,
    n_sessions,
    pooled_finding,
    pooled_ratio,
    ranked,
    share_of,
    signal_values,
    table,
)
from agentsignals.questions.formatting import formatted, with_bound
from agentsignals.questions.label_shares import (
    NONE,
    PUSHBACK,
    PUSHBACK_LABELS,
    at_least_text,
    pushback_finding,
    rules_recall_text,
)
from agentsignals.questions.question import Chart, Evidence, Inputs, Outcome, Row, Study, Table
from agentsignals.questions.sql import declared, read_queries
from agentsignals.questions.written_lines import MODE_SOURCES, MODES, MODES_OF_SOURCE, NAMES, mode_by_session
from agentsignals.stats.intervals import median, nonzero_sums, quantile

_SQL = read_queries(__file__)

_AUTONOMY = "corpus.autonomy_ratio"
WINDOW_DAYS, FEWEST_TURNS = 7, 20
"""Days of a rolling window, and turns behind a point of a line (this project's choice)."""


def autonomy(inputs: Inputs) -> Outcome:
    measured = [row for row in inputs.rows["values"] if row["number"] is not None]
    of_agent = by(measured, "agent")
    rows: list[list[Any]] = []
    marks: list[Row] = []
    behind = []
    for agent in agents_by_sessions(measured):
        group = of_agent[agent]
        calls = sorted([row["number"] for row in group])
        typical = clustered_median([(row["session_id"], row["number"]) for row in group], inputs.places)
        together = pooled_ratio(group, inputs.places, is_share=False).value
        quarters = quantile(calls, 0.25), quantile(calls, 0.75)
        rows.append([agent, len(calls), typical.value, *typical.ends, *quarters, together])
        behind.append([row["session_id"] for row in group])
        ends = "–".join(formatted(end, "number") for end in typical.ends)
        sure = f"95% {ends}" if typical.interval else "too few for an interval"
        of = f"median {formatted(typical.value, 'number')} calls for each prompt"
        marks.append(typical.mark(f"{agent} ({len(calls)})", f"{agent}: {of}, {sure}, n = {len(calls)} sessions"))
    findings = [
        median_finding(inputs, "autonomy.median"),
        pooled_finding(inputs, "autonomy.pooled", is_share=False),
    ]
    title, unit, n = "Tool calls for each prompt", "tool calls for each prompt", len(measured)
    spread = histogram_chart(signal_values(inputs, _AUTONOMY), RATIOS, id="autonomy.spread", title=title, unit=unit)
    agents = chart("autonomy.agents", marks, dots(marks, unit, "number"), n=n)
    return Outcome(findings, [table("autonomy.by_agent", rows, n=n, evidence=behind)], [spread, agents])


AUTONOMY_STUDY = Study(
    **declared("study", "autonomy", values=sql.values(_AUTONOMY), absent=sql.ABSENT), function=autonomy
)


def _over_time(rows: list[tuple[Any, str, Any]], id: str, title: str, **lines: Any) -> Chart | None:  # noqa: A002  (the chart's field)
    """Lines over rolling windows of turns: time, session and observation of each."""
    title = f"{title}, {WINDOW_DAYS} days rolling"
    return lines_chart(rows, id=id, title=title, days=WINDOW_DAYS, fewest=FEWEST_TURNS, **lines)


# -- Time for a prompt (SWE-chat, Figure 30)

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_MINUTES: tuple[float, ...] = (0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
_MINUTE = 60.0
_ROUNDING = 1e-9


def turn_time(inputs: Inputs) -> Outcome:
    rows, places = inputs.rows["turns"], inputs.places
    took = [(row["session_id"], row["seconds"]) for row in rows]
    findings = [
        clustered_median(took, places, "seconds").finding("turn_time.median"),
        share_of(rows, places, lambda row: row["seconds"] > _MINUTE).finding("turn_time.over_minute"),
    ]
    title, unit, of = "Minutes an agent worked for a prompt", "minutes", "prompts"
    minutes = [(session_id, seconds / _MINUTE) for session_id, seconds in took]
    timed = [(row["timestamp"], row["session_id"], row["seconds"] / _MINUTE) for row in rows]
    at = {name: _at(share) for name, share in _QUANTILES.items()}
    charts = [
        histogram_chart(minutes, _MINUTES, id="turn_time.spread", title=title, unit=unit, of=of),
        _over_time(timed, "turn_time.over_time", title, measures=at, unit=unit, kind="number", of=of),
    ]
    tables = [_by("agent", rows, places), _by("model", [r for r in rows if r["model"]], places)]
    return Outcome([f for f in findings if f.n], tables, charts)


def _at(share: float) -> Callable[[list[float]], float | None]:
    """That quantile, where so many values lie beyond it that it is not just the longest; None of fewer."""
    return lambda values: quantile(sorted(values), share) if len(values) * (1 - share) >= 1 - _ROUNDING else None


def _by(key: str, rows: list[Row], places: dict[str, str]) -> Table:
    """Quantiles by agent or model, with what speaks against a comparison."""
    shown: list[list[Any]] = []
    groups = by(rows, key)
    order = ranked({name: len(group) for name, group in groups.items()})
    for name, n in order:
        group = groups[name]
        seconds = [row["seconds"] for row in group]
        held = Counter(place for row in group if (place := places.get(row["session_id"])) is not None)
        largest = max(held.values(), default=0) / n
        figures = [_at(share)(seconds) for share in _QUANTILES.values()]
        warning = ONE_PLACE if largest > DOMINANT else ""
        shown.append([name, n, n_sessions(group), *figures, largest or None, warning])
    quantiles = " | ".join(f"{name}:seconds" for name in _QUANTILES)
    return table(
        f"turn_time.by_{key}",
        shown,
        title=f"Time for a prompt, by {key}",
        header=f"{key}:{'code' if key == 'model' else 'text'} | n prompts:count | sessions:count | {quantiles}"
        " | largest largest place:share | warning says little because",
        n=len(rows),
        of="prompts with an answer and a time",
        evidence=[[row["session_id"] for row in groups[name]] for name, _ in order],
        note="p90 is told of ten prompts and more, p99 of a hundred, p99.9 of a thousand: of fewer it is the longest."
        + (" A prompt's model is the one its trace names, else its session's." if key == "model" else ""),
    )


TURN_TIME_STUDY = Study(**declared("study", "turn_time"), function=turn_time)


# -- Friction: how turns end (SWE-chat, Figures 8 and 31)

_CUT, _ASKS = "chat.hard_interruption", "chat.agent_clarification_stop"
_OBJECTS = "pushback"
ENDS = {
    "asked": ("the agent asked by tool", "SWE-chat: 1.4%"),
    "interrupted": ("the person cut it short", "SWE-chat: 5%"),
    _OBJECTS: ("the next prompt objects, at least", "SWE-chat: about 39%, of labels by a model"),
    "undisturbed": ("none of these, at most", "SWE-chat: 51% to 56%"),
}
"""Endings of a turn; the first that fits counts."""


def friction(inputs: Inputs) -> Outcome:
    recall = rules_recall_text()
    limit = (
        f"Objections that word rules find are a flag, no share, and in English alone ({recall}): never"
        " beside labels by a model. agentsignals label pushback --by classifier makes labels that a share can rest on;"
        " charts and tables stay with the rules."
    )
    # Each turn with how it ended; what objects is the next turn of its session.
    turns = inputs.rows["turns"]
    if not turns:
        return Outcome(limits=[limit])
    following = {(row["session_id"], row["turn"] - 1): row["pushback"] for row in turns}
    rows: list[Row] = []
    objecting: dict[tuple[str, int], bool] = {}
    for row in turns:
        reaction = following.get((row["session_id"], row["turn"]))
        objected = reaction not in (None, NONE)
        end = "asked" if row["asked"] else "interrupted" if row["cut"] else _OBJECTS if objected else "undisturbed"
        rows.append({**row, "end": end})
        if reaction is not None and end in (_OBJECTS, "undisturbed"):
            objecting[row["session_id"], row["turn"] + 1] = objected
    ends, sample = [row["end"] for row in rows], Sample([row["session_id"] for row in rows], inputs.places)
    findings = []
    marks = []
    for end, (words, published) in ENDS.items():
        e = sample.among(ends, end)
        of = at_least_text(e.k, e.n, "turns") if end == _OBJECTS else e.words("turns")
        marks.append(bar(words, e.k / e.n, f"{words}: {of}", evidence=e.counted))
        title = f"Turns that ended so: {words}"
        if end == _OBJECTS:
            title = "Turns neither asked nor cut whose next prompt objects"
            of = "such turns before a prompt in English"
            findings.append(pushback_finding(inputs, objecting, f"friction.{end}", title, of, published))
        elif end == "undisturbed":
            note = f"{published}; at most, for of objections {recall}"
            more: dict[str, Any] = {"signals": (_CUT, PUSHBACK, _ASKS), "classes": (NONE,)}
            findings.append(e.finding(f"friction.{end}", title, "turns", note, **more))
        else:
            findings.append(e.finding(f"friction.{end}", title, "turns", published, signals=(_CUT, _ASKS)))

    def ends_in(end: str, of: list[Row]) -> list[float]:
        return [float(row["end"] == end) for row in of]

    names = {"asked": "asked", "interrupted": "interrupted", _OBJECTS: "pushback, at least"}
    lines = _over_time(
        [(row["timestamp"], row["session_id"], row) for row in rows],
        "friction.over_time",
        "Friction",
        shares={name: partial(ends_in, end) for end, name in names.items()},
        unit="share of turns",
        kind="share",
        of="turns",
    )
    charts = [
        chart("friction.ends", marks, bars(marks, "share of turns", "share"), n=len(rows), note=recall),
        (lines and replace(lines, note="; ".join(part for part in (lines.note, recall) if part))),
    ]
    # Endings of turns by the coding mode of their session, for both sources.
    shown: list[list[Any]] = []
    behind = []
    for source in MODE_SOURCES:
        mode_of = mode_by_session(inputs.rows["modes"], source)
        for mode in (*MODES_OF_SOURCE[source], None) if mode_of else ():
            group = [row for row in rows if mode_of.get(row["session_id"]) == mode]
            counted, n = Counter(row["end"] for row in group), len(group)
            if group:
                shares = (with_bound(counted[end] / n, end == _OBJECTS) for end in ENDS)
                shown.append([f"{NAMES[mode] if mode else 'no mode'}, {source}", n, *shares])
                behind.append(group)
    header = " | ".join(["mode | n turns:count", *(f"{end} {words}:share" for end, (words, _) in ENDS.items())])
    note = f"The first that fits counts, from the left. Of objections {recall}."
    by_mode = table("friction.by_mode", shown, header=header, n=len(rows), evidence=behind, note=note)
    return Outcome(findings, [by_mode], charts, [limit])


FRICTION_STUDY = Study(**declared("study", "friction", labels=PUSHBACK_LABELS, modes=MODES), function=friction)


# -- Oversight (SWE-chat, Figures 8, 30 and 31)

_Column = Callable[[list[Row]], list[float]]


def _once(column: str) -> _Column:
    return lambda rows: [float(bool(row[column])) for row in rows]


def _times(column: str) -> _Column:
    return lambda rows: [float(row[column] or 0) for row in rows]


def _each(rows: list[Row]) -> list[float]:
    return [1.0] * len(rows)


class _Act(NamedTuple):
    """Something that happens to a turn. `part` of `whole`: how often, of how many chances it had in each turn."""

    key: str
    short: str
    part: _Column
    whole: _Column = _each


ACTS = (
    _Act("interrupted", "interrupted", _once("interrupts")),
    _Act("refused", "a call refused", _once("refused")),
    _Act("asked", "asked by tool", _once("asked")),
    _Act("asked_in_words", "asked in words", _once("asked_in_words")),
    _Act("plans", "showed a plan", _once("plans")),
    _Act("approved", "plans approved", _times("approved"), _times("decided")),
    _Act("refused_calls", "calls refused", _times("refused"), _times("calls")),
)


class _Turns:
    """Turns by column: `parts` and `wholes` of each act, by its key."""

    def __init__(self, rows: list[Row]) -> None:
        self.sessions: list[str] = [row["session_id"] for row in rows]
        self.parts = {act.key: act.part(rows) for act in ACTS}
        self.wholes = {act.key: act.whole(rows) for act in ACTS}
        self.calls: list[float] = [row["calls"] or 0 for row in rows]
        self.seconds: list[float | None] = [row["seconds"] for row in rows]

    def estimates(self, places: dict[str, str]) -> list[tuple[_Act, ClusteredShare]]:
        turns = Sample(self.sessions, places)
        return [
            (act, turns.share(self.parts[act.key]) if act.whole is _each else self._of_chances(act, places))
            for act in ACTS
        ]

    def _of_chances(self, act: _Act, places: dict[str, str]) -> ClusteredShare:
        parts = zip(self.sessions, self.parts[act.key], self.wholes[act.key], strict=True)
        return clustered_share([part for part in parts if part[2]], places)

    def figures(self, groups: Sequence[Any]) -> dict[Any, list[Any]]:
        """Return the figures of each group; `groups` names each turn's group."""
        shares = [
            (nonzero_sums(groups, self.parts[act.key]), nonzero_sums(groups, self.wholes[act.key])) for act in ACTS
        ]
        calls, seconds = defaultdict(list), defaultdict(list)
        for group, n, took in zip(groups, self.calls, self.seconds, strict=True):
            calls[group].append(n)
            if took is not None:
                seconds[group].append(took)
        return {
            group: [
                len(each),
                *(part.get(group, 0.0) / whole[group] if group in whole else None for part, whole in shares),
                median(each),
                median(seconds[group]),
            ]
            for group, each in calls.items()
        }

    def of(self, groups: Sequence[Any], wanted: Any) -> list[str]:
        """The sessions of a group's turns."""
        return [session_id for session_id, group in zip(self.sessions, groups, strict=True) if group == wanted]


def oversight(inputs: Inputs) -> Outcome:
    rows, places = inputs.rows["turns"], inputs.places
    if not rows:
        return Outcome(limits=[])
    turns = _Turns(rows)
    findings = []
    marks = []
    for act, estimate in turns.estimates(places):
        finding = estimate.finding(f"oversight.{act.key}")
        findings.append(finding)
        if estimate.n:
            tip = f"{finding.title}: {estimate.words(finding.of)}"
            marks.append(estimate.mark(f"{act.short} ({estimate.k:,.0f})", tip))
    seconds = [(s, float(took)) for s, took in zip(turns.sessions, turns.seconds, strict=True) if took is not None]
    calls = list(zip(turns.sessions, map(float, turns.calls), strict=True))
    findings += [
        clustered_median(seconds, places, "seconds").finding("oversight.seconds"),
        clustered_median(calls, places).finding("oversight.calls"),
    ]

    def taken(column: list[float], of: list[int]) -> list[float]:
        return [column[at] for at in of]

    def calls_at(share: float) -> Callable[[list[int]], float]:
        return lambda of: quantile(sorted(taken(turns.calls, of)), share)

    timed = [(row["timestamp"], row["session_id"], n) for n, row in enumerate(rows)]
    shares = {act.short: partial(taken, turns.parts[act.key]) for act in ACTS if act.whole is _each}
    measures = {"median": calls_at(0.5), "90%": calls_at(0.9)}
    title, unit = "What people and agents do to a turn", "share of turns"
    charts = [
        chart("oversight.acts", marks, dots(marks, "share of turns, plans or calls"), n=len(rows)),
        _over_time(timed, "oversight.over_time", title, unit=unit, kind="share", of="turns", shares=shares),
        _over_time(
            timed,
            "oversight.autonomy",
            "Calls for a prompt",
            unit="calls",
            kind="number",
            of="turns",
            measures=measures,
        ),
    ]
    shown: list[list[Any]] = []
    behind: list[Evidence] = []
    n_replayed = 0
    for source in MODE_SOURCES:
        if mode_of := mode_by_session(inputs.rows["modes"], source):
            groups = [mode_of.get(session_id) for session_id in turns.sessions]
            figures = turns.figures(groups)
            held = [mode for mode in MODES_OF_SOURCE[source] if mode in figures]
            shown += [[f"{NAMES[mode]}, {source}", *figures[mode]] for mode in held]
            behind += [partial(turns.of, groups, mode) for mode in held]
            n_replayed += sum(figures[mode][0] for mode in held) if source == "replayed" else 0
    agents = [row["agent"] for row in rows]
    figures = turns.figures(agents)
    order = agents_by_sessions({row["session_id"]: row for row in rows}.values())
    of_agents = [[agent, *figures[agent]] for agent in order]
    tables = [
        _oversight_table("mode", shown, n_replayed or len(rows), behind),
        _oversight_table("agent", of_agents, len(rows), [partial(turns.of, agents, agent) for agent in order]),
    ]
    return Outcome([f for f in findings if f.n], tables, charts)


def _oversight_table(key: str, shown: list[list[Any]], n: int, behind: Sequence[Evidence]) -> Table:
    acts = " | ".join(f"{act.key} {act.short}:share" for act in ACTS)
    header = f"{key} {key} | n turns:count | {acts} | calls calls, median:number | seconds time, median:seconds"
    title = f"Oversight, by {key}"
    return table(f"oversight.by_{key}", shown, title=title, header=header, n=n, of="turns", evidence=behind)


OVERSIGHT_STUDY = Study(**declared("study", "oversight", modes=MODES), function=oversight)
