"""You against a baseline: your sessions beside what others' are like, and where the two are furthest apart."""

from __future__ import annotations

import shlex
from functools import partial
from math import sqrt
from typing import Any

from agentsignals.analysis.baseline import (
    MEASURES,
    OF_WORDS,
    QUERY,
    Baseline,
    Rate,
    Spread,
    baseline_of,
    difference,
    standardised,
)
from agentsignals.analysis.behind import Closed
from agentsignals.analysis.charts import by_position, dots
from agentsignals.analysis.clusters import DOMINANT
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import INTERVAL_NOTE, Estimate, chart, count, drawn, mark, table
from agentsignals.analysis.named_shares import rules_find
from agentsignals.analysis.study import Chart, Context, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.estimates import Interval
from agentsignals.stats.proportions import Z
from agentsignals.stats.sentiment_counts import LOW_N

YOURS, BASE = "yours", "baseline"
_OF_TWO = "the interval is made of those of both sides, over places"
_NO_PLACES = "the interval takes sessions as independent"
"""A baseline's places are not published."""
_ELSEWHERE = Closed("It rests on another collection's figures, which name no session.")
_MEDIAN = 2
"""Where the median stands among the quantiles."""


def against(baseline: Baseline, path: str) -> Study:
    """The study that holds a store's sessions against this baseline. `path`: where it was read, for the command."""
    context: Context = "eval" if baseline.context == "eval" else "product"
    command = f"agentsignals report --baseline {shlex.quote(path)} --study sessions -o baseline.json"
    return Study(
        name="baseline",
        title="You against a baseline",
        question="Where do your sessions differ from those of the baseline?",
        queries=QUERY,
        function=partial(_compare, baseline, command),
        context=context,
    )


def _compare(base: Baseline, command: str, inputs: Inputs) -> Outcome:
    yours = baseline_of(inputs, base.context)
    of_base = {rate.turn: rate for rate in base.negative_by_turn}
    turns = [(rate, of_base[rate.turn]) for rate in yours.negative_by_turn if rate.turn in of_base]
    of_measure = {spread.signal: spread for spread in base.measures}
    pairs = [(spread, of_measure[spread.signal]) for spread in yours.measures if spread.signal in of_measure]
    return Outcome(
        [_size(yours, base, command), _furthest_turn(turns, yours, base, command), _furthest_measure(pairs, command)],
        [_measures_table(pairs), _turns_table(turns)],
        drawn(_turns_chart(turns), _measures_chart(pairs)),
        _limits(yours, base, pairs),
    )


def _size(yours: Baseline, base: Baseline, command: str) -> Finding:
    of = "sessions of the baseline"
    note = f"in {base.places:,} places; yours: {yours.sessions:,} sessions in {yours.places:,} places"
    size = count(base.sessions, base.sessions, behind=_ELSEWHERE)
    return size.finding("baseline.sessions", of.capitalize(), of, note, unit="sessions", command=command)


def _furthest_turn(turns: list[tuple[Rate, Rate]], yours: Baseline, base: Baseline, command: str) -> Finding:
    """The turn with the largest gap, of those with enough messages on both sides."""
    title = "Largest gap of NEGATIVE at one turn"
    wide = [pair for pair in turns if min(pair[0].n, pair[1].n) >= LOW_N]
    if not wide:
        lacking = (
            "neither side has labels" if not (yours.negative_by_turn or base.negative_by_turn)
            else "your sessions have no sentiment labels" if not yours.negative_by_turn
            else "the baseline has no sentiment labels" if not base.negative_by_turn
            else f"no turn has {LOW_N} labelled messages on both sides"
        )  # fmt: skip
        return _no_gap("turn_gap", title, command, lacking)
    mine, other = max(wide, key=lambda pair: abs(pair[0].value - pair[1].value))
    note = (
        f"yours {formatted(mine.value, 'share')} (n = {mine.n:,}), the baseline's {formatted(other.value, 'share')}"
        f" (n = {other.n:,}); of {len(wide)} turns compared the furthest apart"
    )
    return Estimate(
        value=mine.value - other.value, n=mine.n, interval=difference(mine, other), note=_OF_TWO, counted=_ELSEWHERE
    ).finding(
        "baseline.turn_gap",
        f"{title}: turn {mine.turn}",
        "your labelled messages there",
        note,
        unit="share of messages",
        command=command,
        headline=True,
    )


def _furthest_measure(pairs: list[tuple[Spread, Spread]], command: str) -> Finding:
    """The measure whose means lie the most standard deviations apart, of those measured alike."""
    title = "Largest standardised gap of a measure"
    gaps = [(gap, mine, other) for mine, other in _alike(pairs) if (gap := standardised(mine, other)) is not None]
    if not gaps:
        return _no_gap(
            "measure_gap", title, command, "no measure varies, of the same version and no lower bound, on both"
        )
    gap, mine, other = max(gaps, key=lambda entry: abs(entry[0]))
    name, kind = MEASURES[mine.signal]
    note = (
        f"mean {formatted(mine.mean, kind)} against {formatted(other.mean, kind)}"
        f" (n = {other.n:,} sessions of the baseline);"
        f" of {len(gaps)} measures the furthest apart"
    )
    return Estimate(
        value=gap, n=mine.n, kind="number", interval=_interval(gap, mine, other), note=_NO_PLACES, counted=_ELSEWHERE
    ).finding(
        "baseline.measure_gap",
        f"{title}: {name}",
        "your sessions",
        note,
        unit="standard deviations",
        command=command,
        headline=True,
        signals=(mine.signal,),
    )


def _no_gap(name: str, title: str, command: str, note: str) -> Finding:
    return count(None, 0, "number", behind=_ELSEWHERE).finding(
        f"baseline.{name}", title, "sessions", note, unit="", command=command
    )


def _alike(pairs: list[tuple[Spread, Spread]]) -> list[tuple[Spread, Spread]]:
    return [(mine, other) for mine, other in pairs if not _unlike(mine, other)]


def _unlike(mine: Spread, other: Spread) -> str:
    """Why the gap of two measures says nothing; empty where it does."""
    if mine.version != other.version:
        return f"measured otherwise: version {mine.version} against {other.version}"
    whose = [side for side, spread in ((YOURS, mine), (BASE, other)) if spread.at_least]
    why = rules_find() if mine.signal == OF_WORDS else "output logged in mid-stream"
    return f"a lower bound, {why}: {' and '.join(whose)}" if whose else ""


def _interval(gap: float, mine: Spread, other: Spread) -> Interval:
    """Of a standardised difference (Hedges and Olkin 1985), sessions taken as independent."""
    n, m = mine.n, other.n
    half = Z * sqrt((n + m) / (n * m) + gap**2 / (2 * (n + m)))
    return gap - half, gap + half


def _measures_table(pairs: list[tuple[Spread, Spread]]) -> Table:
    rows: list[list[Any]] = []
    for mine, other in pairs:
        name, kind = MEASURES[mine.signal]
        warning = _unlike(mine, other)
        figures = [formatted(value, kind, side.at_least) for side in (mine, other) for value in _summary(side)]
        gap = None if warning else standardised(mine, other)
        low, high = _interval(gap, mine, other) if gap is not None else (None, None)
        rows.append([name, mine.n, *figures[:4], other.n, *figures[4:], gap, low, high, warning])
    sides = " | ".join(
        f"{side}_n {whose} n:count | {side}_mean {whose} mean:figure | {side}_median {whose} median:figure"
        f" | {side}_low {whose} 10%:figure | {side}_high {whose} 90%:figure"
        for side, whose in ((YOURS, "your"), (BASE, "baseline's"))
    )
    return table(
        "baseline.measures",
        "Your sessions and the baseline's",
        f"measure measure of a session | {sides} | gap gap, standard deviations:number | from 95% from:number"
        " | to:number | warning says little because",
        rows,
        n=max((mine.n for mine, _ in pairs), default=0),
        of="of your sessions at most",
        behind=_ELSEWHERE,
        note="A gap is the difference of the means over their common standard deviation; 0.2 is small, 0.8 large"
        " (Cohen 1988). Medians and quantiles stand beside because most measures are skewed.",
    )


def _summary(spread: Spread) -> tuple[float, float, float, float]:
    return spread.mean, spread.quantiles[_MEDIAN], spread.quantiles[0], spread.quantiles[-1]


def _turns_table(turns: list[tuple[Rate, Rate]]) -> Table:
    rows: list[list[Any]] = []
    for mine, other in turns:
        low, high = difference(mine, other) or (None, None)
        few = "few messages" if min(mine.n, other.n) < LOW_N else ""
        rows.append([mine.turn, mine.n, mine.value, other.n, other.value, mine.value - other.value, low, high, few])
    return table(
        "baseline.turns",
        "NEGATIVE messages by turn, yours and the baseline's",
        "turn | n your n:count | rate yours:share | base_n baseline's n:count | base_rate baseline's:share | gap:share"
        " | ends:share | warning says little because",
        rows,
        n=sum(mine.n for mine, _ in turns),
        of="of your labelled messages",
        behind=_ELSEWHERE,
        note=f"Few: under {LOW_N} labelled messages on either side.",
    )


def _turns_chart(turns: list[tuple[Rate, Rate]]) -> Chart | None:
    rows: list[Row] = [
        mark(
            {
                "name": name,
                "at": rate.turn,
                "value": rate.value,
                "low": rate.low,
                "high": rate.high,
                "tip": f"turn {rate.turn}, {name}: {rate.negative:,} of {rate.n:,} NEGATIVE,"
                f" {formatted(rate.value, 'share')}",
            },
            _ELSEWHERE,
        )
        for pair in turns
        for name, rate in zip((YOURS, BASE), pair, strict=True)
    ]
    return chart(
        "baseline.turns",
        "NEGATIVE messages by turn, yours and the baseline's",
        rows,
        by_position(rows, "number of the turn in its session", "share of labelled messages", (YOURS, BASE)),
        n=sum(mine.n for mine, _ in turns),
        of="of your labelled messages",
        note=f"the baseline's n = {sum(other.n for _, other in turns):,}; lines are 95% intervals",
        fewest=4,  # two turns, each of both
    )


def _measures_chart(pairs: list[tuple[Spread, Spread]]) -> Chart | None:
    rows: list[Row] = []
    for mine, other in _alike(pairs):
        gap = standardised(mine, other)
        if gap is None:
            continue
        low, high = _interval(gap, mine, other)
        name, kind = MEASURES[mine.signal]
        tip = (
            f"{name}: {gap:+.2f} standard deviations; mean {formatted(mine.mean, kind)} (n = {mine.n:,}) against"
            f" {formatted(other.mean, kind)} (n = {other.n:,})"
        )
        rows.append(mark({"name": name, "value": gap, "low": low, "high": high, "tip": tip}, _ELSEWHERE))
    rows.sort(key=lambda row: -abs(row["value"]))
    most = max((other.n for _, other in pairs), default=0)
    return chart(
        "baseline.measures",
        "How far your sessions lie from the baseline's",
        rows,
        dots(rows, "standard deviations above the baseline's mean", "number"),
        n=max((mine.n for mine, _ in pairs), default=0),
        of="of your sessions at most",
        note=f"the baseline's n = {most:,} at most; {INTERVAL_NOTE}",
    )


def _limits(yours: Baseline, base: Baseline, pairs: list[tuple[Spread, Spread]]) -> list[str]:
    limits = [
        "A gap to the baseline is one of tasks, agents and people as much as of you. Its intervals take sessions as"
        " independent, and of many gaps the largest is large by chance too."
    ]
    for baseline, whose in ((base, "the baseline's"), (yours, "your")):
        if baseline.largest_place is not None and baseline.largest_place > DOMINANT:
            limits.append(f"{baseline.largest_place:.0%} of {whose} sessions whose place is known lie in one place.")
    if yours.negative_by_turn and base.negative_by_turn and yours.labels_mark != base.labels_mark:
        limits.append(
            "Your sentiment labels and the baseline's are of different labellers or prompts: a gap may be theirs. Two"
            " labellers of one data set agreed with a kappa of 0.43 (agent-traces)."
        )
    others = [MEASURES[mine.signal][0] for mine, other in pairs if mine.version != other.version]
    if others:
        limits.append(f"Measured otherwise here than in the baseline, and not compared: {', '.join(others)}.")
    return limits
