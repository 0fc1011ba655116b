"""Turns: calls and time for each prompt, how turns end, and how people oversee agents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
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
_PER_TURN = "tool calls for each prompt"
_UNIT = "calls for each prompt"


def autonomy(inputs: Inputs) -> Outcome:
    title = "Tool calls for each prompt"
    findings = [
        median_finding(inputs, "autonomy.median"),
        pooled_finding(inputs, "autonomy.pooled", is_share=False),
    ]  # fmt: skip
    measured = [row for row in inputs.rows["values"] if row["number"] is not None]
    rows: list[list[Any]] = []
    marks: list[Row] = []
    of_agent = by(measured, "agent")
    for agent in agents_by_sessions(measured):
        group = of_agent[agent]
        calls = sorted([row["number"] for row in group])
        typical = clustered_median([(row["session_id"], row["number"]) for row in group], inputs.places)
        quarters = quantile(calls, 0.25), quantile(calls, 0.75)
        together = pooled_ratio(group, inputs.places, is_share=False).value
        rows.append([agent, len(calls), typical.value, *typical.ends, *quarters, together])
        ends = "–".join(formatted(end, "number") for end in typical.ends)
        sure = f"95% {ends}" if typical.interval else "too few for an interval"
        tip = f"{agent}: median {formatted(typical.value, 'number')} {_UNIT}, {sure}, n = {len(calls)} sessions"
        marks.append(typical.mark(f"{agent} ({len(calls)})", tip))
    n, _of = len(measured), "sessions with a prompt"
    by_agent = table(
        "autonomy.by_agent", rows, n=n, evidence=[[row["session_id"] for row in of_agent[shown[0]]] for shown in rows]
    )
    spread = histogram_chart(
        signal_values(inputs, _AUTONOMY), RATIOS, id="autonomy.spread", title=title, unit=_PER_TURN
    )
    spec = dots(marks, _PER_TURN, "number")
    agents = chart("autonomy.agents", marks, spec, n=n)
    return Outcome(findings, [by_agent], [spread, agents])


AUTONOMY_STUDY = Study(
    **declared("study", "autonomy"), queries={"values": sql.values(_AUTONOMY), "absent": sql.ABSENT}, function=autonomy
)


# -- Time for a prompt (SWE-chat, Figure 30)

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_MINUTES: tuple[float, ...] = (0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
TURN_TIME_WINDOW_DAYS = 7
_TURN_TIME_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
_OF = "prompts with an answer and a time"
_MINUTE = 60.0
_ROUNDING = 1e-9


def turn_time(inputs: Inputs) -> Outcome:
    rows = inputs.rows["turns"]
    places = inputs.places
    findings = [
        clustered_median([(row["session_id"], row["seconds"]) for row in rows], places, "seconds").finding(
            "turn_time.median"
        ),
        share_of(rows, places, lambda row: row["seconds"] > _MINUTE).finding("turn_time.over_minute"),
    ]
    title = "Minutes an agent worked for a prompt"
    charts = [
        histogram_chart(
            [(row["session_id"], row["seconds"] / _MINUTE) for row in rows],
            _MINUTES,
            id="turn_time.spread",
            title=title,
            unit="minutes",
            of="prompts",
        ),
        lines_chart(
            [(row["timestamp"], row["session_id"], row["seconds"] / _MINUTE) for row in rows],
            measures={name: _at(share) for name, share in _QUANTILES.items()},
            id="turn_time.over_time",
            title=f"{title}, {TURN_TIME_WINDOW_DAYS} days rolling",
            unit="minutes",
            kind="number",
            of="prompts",
            days=TURN_TIME_WINDOW_DAYS,
            fewest=_TURN_TIME_FEWEST,
        ),
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
    for name, n in ranked({name: len(group) for name, group in groups.items()}):
        group = groups[name]
        seconds = [row["seconds"] for row in group]
        held = Counter(places.get(row["session_id"]) for row in group)
        largest = max((k for place, k in held.items() if place is not None), default=0) / n
        shown.append(
            [
                *(name, n, len({row["session_id"] for row in group})),
                *(_at(share)(seconds) for share in _QUANTILES.values()),
                largest or None,
                ONE_PLACE if largest > DOMINANT else "",
            ]
        )
    quantiles = " | ".join(f"{name}:seconds" for name in _QUANTILES)
    return table(
        f"turn_time.by_{key}",
        shown,
        title=f"Time for a prompt, by {key}",
        header=f"{key}:{'code' if key == 'model' else 'text'} | n prompts:count | sessions:count | {quantiles}"
        " | largest largest place:share | warning says little because",
        n=len(rows),
        of=_OF,
        evidence=[[row["session_id"] for row in groups[cells[0]]] for cells in shown],
        note="p90 is told of ten prompts and more, p99 of a hundred, p99.9 of a thousand: of fewer it is the longest."
        + (" A prompt's model is the one its trace names, else its session's." if key == "model" else ""),
    )


TURN_TIME_STUDY = Study(**declared("study", "turn_time"), queries=_SQL["turn_time"], function=turn_time)


# -- Friction: how turns end (SWE-chat, Figures 8 and 31)

_CUT, _ASKS = "chat.hard_interruption", "chat.agent_clarification_stop"
FRICTION_WINDOW_DAYS = 7
_FRICTION_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
_OBJECTS = "pushback"
ENDS = {
    "asked": ("the agent asked by tool", "SWE-chat: 1.4%"),
    "interrupted": ("the person cut it short", "SWE-chat: 5%"),
    _OBJECTS: ("the next prompt objects, at least", "SWE-chat: about 39%, of labels by a model"),
    "undisturbed": ("none of these, at most", "SWE-chat: 51% to 56%"),
}
"""Endings of a turn; the first that fits counts."""


def _ends_in(end: str, rows: list[Row]) -> list[float]:
    return [float(row["end"] == end) for row in rows]


def friction(inputs: Inputs) -> Outcome:
    # Each turn with how it ended; what objects is the next turn of its session.
    turns = inputs.rows["turns"]
    ended_rows: list[Row] = []
    for at, row in enumerate(turns):
        after = turns[at + 1] if at + 1 < len(turns) else None
        follows = after is not None and after["session_id"] == row["session_id"] and after["turn"] == row["turn"] + 1
        reaction = after["pushback"] if follows and after is not None else None
        objected = reaction not in (None, NONE)
        end = "asked" if row["asked"] else "interrupted" if row["cut"] else _OBJECTS if objected else "undisturbed"
        is_asked_about = reaction is not None and end in (_OBJECTS, "undisturbed")
        ended_rows.append({**row, "end": end, "next": (row["session_id"], row["turn"] + 1) if is_asked_about else None})
    rows = ended_rows
    if not rows:
        return Outcome(limits=[_limit()])
    ends, sample = [row["end"] for row in rows], Sample([row["session_id"] for row in rows], inputs.places)
    estimates = {end: sample.among(ends, end) for end in ENDS}
    findings = [
        estimate.finding(
            f"friction.{end}",
            f"Turns that ended so: {ENDS[end][0]}",
            "turns",
            ENDS[end][1]
            if end != "undisturbed"
            else f"{ENDS[end][1]}; at most, for of objections {rules_recall_text()}",
            signals=(_CUT, PUSHBACK, _ASKS) if end == "undisturbed" else (_CUT, _ASKS),
            classes=(NONE,) if end == "undisturbed" else (),
        )
        for end, estimate in estimates.items()
        if end != _OBJECTS
    ]
    findings.insert(
        2,
        pushback_finding(
            inputs,
            {row["next"]: row["end"] == _OBJECTS for row in rows if row["next"]},
            f"friction.{_OBJECTS}",
            "Turns neither asked nor cut whose next prompt objects",
            "such turns before a prompt in English",
            ENDS[_OBJECTS][1],
        ),
    )
    marks = [
        bar(ENDS[end][0], e.k / e.n, f"{ENDS[end][0]}: {words}", evidence=e.counted)
        for end, e in estimates.items()
        for words in [at_least_text(e.k, e.n, "turns") if end == _OBJECTS else e.words("turns")]
    ]
    spec = bars(marks, "share of turns", "share")
    names = {"asked": "asked", "interrupted": "interrupted", _OBJECTS: "pushback, at least"}
    lines = lines_chart(
        [(row["timestamp"], row["session_id"], row) for row in rows],
        shares={name: partial(_ends_in, end) for end, name in names.items()},
        id="friction.over_time",
        title=f"Friction, {FRICTION_WINDOW_DAYS} days rolling",
        unit="share of turns",
        kind="share",
        of="turns",
        days=FRICTION_WINDOW_DAYS,
        fewest=_FRICTION_FEWEST,
    )
    charts = [
        chart("friction.ends", marks, spec, n=len(rows), note=rules_recall_text()),
        (lines and replace(lines, note="; ".join(part for part in (lines.note, rules_recall_text()) if part))),
    ]
    # Endings of turns by the coding mode of their session, for both sources.
    modes = inputs.rows["modes"]
    shown: list[list[Any]] = []
    behind = []
    for source in MODE_SOURCES:
        mode_of = mode_by_session(modes, source)
        for mode in (*MODES_OF_SOURCE[source], None) if mode_of else ():
            group = [row for row in rows if mode_of.get(row["session_id"]) == mode]
            mode_ends = [row["end"] for row in group]
            if mode_ends:
                name = f"{NAMES[mode] if mode else 'no mode'}, {source}"
                shown.append(
                    [
                        name,
                        len(mode_ends),
                        *(with_bound(mode_ends.count(end) / len(mode_ends), end == _OBJECTS) for end in ENDS),
                    ]
                )
                behind.append(group)
    return Outcome(
        findings,
        [
            table(
                "friction.by_mode",
                shown,
                header=" | ".join(
                    ["mode | n turns:count", *(f"{end} {words}:share" for end, (words, _) in ENDS.items())]
                ),
                n=len(rows),
                evidence=behind,
                note=f"The first that fits counts, from the left. Of objections {rules_recall_text()}.",
            )
        ],
        charts,
        [_limit()],
    )


def _limit() -> str:
    return (
        f"Objections that word rules find are a flag, no share, and in English alone ({rules_recall_text()}): never"
        " beside labels by a model. agentsignals label pushback --by classifier makes labels that a share can rest on;"
        " charts and tables stay with the rules."
    )


FRICTION_STUDY = Study(
    **declared("study", "friction"),
    queries={**_SQL["friction"], "labels": PUSHBACK_LABELS, "modes": MODES},
    function=friction,
)


# -- Oversight (SWE-chat, Figures 8, 30 and 31)

OVERSIGHT_WINDOW_DAYS = 7
_OVERSIGHT_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""


_Column = Callable[[list[Row]], list[float]]


def _once(column: str) -> _Column:
    return lambda rows: list(map(float, map(bool, map(itemgetter(column), rows))))


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
    rows = inputs.rows["turns"]
    if not rows:
        return Outcome(limits=[])
    places = inputs.places
    turns = _Turns(rows)
    estimates = turns.estimates(places)
    findings = [estimate.finding(f"oversight.{act.key}") for act, estimate in estimates]
    seconds = [(s, float(took)) for s, took in zip(turns.sessions, turns.seconds, strict=True) if took is not None]
    calls = list(zip(turns.sessions, map(float, turns.calls), strict=True))
    findings += [
        clustered_median(seconds, places, "seconds").finding("oversight.seconds"),
        clustered_median(calls, places).finding("oversight.calls"),
    ]
    of_turns = [act for act in ACTS if act.whole is _each]
    charts = [
        _oversight_chart(estimates, len(rows)),
        _over_time(
            rows,
            "oversight.over_time",
            "What people and agents do to a turn",
            unit="share of turns",
            kind="share",
            shares={act.short: partial(_taken, turns.parts[act.key]) for act in of_turns},
        ),
        _over_time(
            rows,
            "oversight.autonomy",
            "Calls for a prompt",
            unit="calls",
            kind="number",
            measures={"median": _calls(turns, 0.5), "90%": _calls(turns, 0.9)},
        ),
    ]
    modes = inputs.rows["modes"]
    shown: list[list[Any]] = []
    behind: list[Evidence] = []
    for source in MODE_SOURCES:
        if mode_of := mode_by_session(modes, source):
            groups = list(map(mode_of.get, turns.sessions))
            figures = turns.figures(groups)
            held = [mode for mode in MODES_OF_SOURCE[source] if mode in figures]
            shown += [[f"{NAMES[mode]}, {source}", *figures[mode]] for mode in held]
            behind += [partial(turns.of, groups, mode) for mode in held]
    n = sum(row[1] for row in shown if "replayed" in row[0]) or len(turns.sessions)
    agent_groups = [row["agent"] for row in rows]
    agent_figures = turns.figures(agent_groups)
    order = agents_by_sessions({row["session_id"]: row for row in rows}.values())
    agent_behind = [partial(turns.of, agent_groups, agent) for agent in order]
    tables = [
        _oversight_table("mode", "mode", shown, n, behind),
        _oversight_table(
            "agent", "agent", [[agent, *agent_figures[agent]] for agent in order], len(rows), agent_behind
        ),
    ]
    return Outcome([f for f in findings if f.n], tables, charts)


def _over_time(rows: list[Row], name: str, title: str, **lines: Any) -> Chart | None:
    return lines_chart(
        [(row["timestamp"], row["session_id"], n) for n, row in enumerate(rows)],
        id=name,
        title=f"{title}, {OVERSIGHT_WINDOW_DAYS} days rolling",
        of="turns",
        days=OVERSIGHT_WINDOW_DAYS,
        fewest=_OVERSIGHT_FEWEST,
        **lines,
    )


def _taken(column: list[float], turns: list[int]) -> list[float]:
    return list(map(column.__getitem__, turns))


def _calls(turns: _Turns, share: float) -> Callable[[list[int]], float]:
    return lambda of: quantile(sorted(_taken(turns.calls, of)), share)


def _oversight_chart(estimates: list[tuple[_Act, ClusteredShare]], n: int) -> Chart | None:
    rows = [
        estimate.mark(f"{act.short} ({estimate.k:,.0f})", f"{words['title']}: {estimate.words(words['of'])}")
        for act, estimate in estimates
        for words in [declared("finding", f"oversight.{act.key}")]
        if estimate.n
    ]
    spec = dots(rows, "share of turns, plans or calls")
    return chart("oversight.acts", rows, spec, n=n)


def _oversight_table(key: str, label: str, shown: list[list[Any]], n: int, behind: Sequence[Evidence]) -> Table:
    acts = " | ".join(f"{act.key} {act.short}:share" for act in ACTS)
    header = f"{key} {label} | n turns:count | {acts} | calls calls, median:number | seconds time, median:seconds"
    return table(
        f"oversight.by_{key}", shown, title=f"Oversight, by {label}", header=header, n=n, of="turns", evidence=behind
    )


OVERSIGHT_STUDY = Study(
    **declared("study", "oversight"), queries={**_SQL["oversight"], "modes": MODES}, function=oversight
)
