"""A baseline: anonymous numbers about many sessions, for others to compare their own sessions with.

It holds counts, means and quantiles of at least five sessions, and no text, id, path or name.
"""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import fsum, inf, isfinite, sqrt
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agentsignals.errors import BaselineError
from agentsignals.questions.charts import dots, intervals_by_position
from agentsignals.questions.estimates import DOMINANT, INTERVAL_NOTE, Estimate, chart, count, table
from agentsignals.questions.label_shares import QUERIES, Labelled, labelled, rules_recall_text
from agentsignals.questions.question import (
    Chart,
    Context,
    Finding,
    Inputs,
    Kind,
    NoSessions,
    Outcome,
    Row,
    Study,
    Table,
    formatted,
    mark,
    times,
)
from agentsignals.questions.sql import PLACED, declared, read_queries
from agentsignals.stats.agent_traces import LOW_N, bands, negative_between
from agentsignals.stats.intervals import Interval, Z, quantile

FORM = 1
"""Version of the file."""
FEWEST = 5
"""Groups of fewer sessions or messages are left out: a quantile would be somebody's own figure."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_BYTES = 1_000_000
_LARGEST = 1e12

MEASURES: dict[str, tuple[str, Kind]] = {
    "corpus.autonomy_ratio": ("Tool calls per prompt", "number"),
    "user.tool_error_rate": ("Tool calls that failed", "share"),
    "corpus.error_recovery_rate": ("Failed calls that recovered", "share"),
    "corpus.tool_mix_entropy": ("Tool entropy, bits", "number"),
    "corpus.session_length_events": ("Events per session", "number"),
    "corpus.read_before_edit_rate": ("Edits after a read", "share"),
    "corpus.session_cost_usd": ("Cost per session", "usd"),
    "corpus.output_input_token_ratio": ("Output tokens per input token", "share"),
    "corpus.short_messages": ("Messages of up to 20 characters", "share"),
    "chat.pushback_rate": ("Prompts with pushback or after an interruption", "share"),
}
"""Title and kind of the numeric behavioural measures of agent-traces."""

OF_WORDS = "chat.pushback_rate"
"""Always a lower bound: the rules miss most pushback."""
QUERY: dict[str, str] = {
    **QUERIES,
    "sessions": PLACED,
    **read_queries(
        __file__,
        paths=", ".join(f"'{path}'" for path in MEASURES),
        of_words=OF_WORDS,
        # Lower bounds if output is logged in mid-stream.
        of_output="'corpus.session_cost_usd', 'corpus.output_input_token_ratio'",
    )["baseline"],
}
"""Queries for a baseline and for a comparison with one."""

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Spread(Struct, frozen=True, kw_only=True):
    """Distribution of a measure over sessions."""

    signal: str
    version: int
    n: Count
    mean: float
    sd: Annotated[float, Meta(ge=0)]
    """Standard deviation with n - 1."""
    quantiles: list[float]
    """At `QUANTILES`, linear between neighbours."""
    at_least: bool = False
    """True if they are lower bounds: output logged in mid-stream, or word rules."""
    not_judged: Share = 0.0
    """Share of sessions that rules for English do not judge, out of those and the `n`."""


class Rate(Struct, frozen=True):
    """NEGATIVE messages at a turn, or in a class of turns."""

    turn: str
    """1 to 10, or `11+`."""
    n: Count
    """Labelled messages."""
    negative: Count
    low: Share | None = None
    high: Share | None = None
    """95 % interval over projects or sessions."""

    @property
    def value(self) -> float:
        return self.negative / self.n


class Baseline(Struct, frozen=True, kw_only=True):
    """Numbers about a set of sessions."""

    form: int
    context: str
    """`product` or `eval`."""
    sessions: Count
    places: Count
    """Known projects (repositories or folders)."""
    largest_place: Share | None
    """The largest project's share of the sessions whose project is known."""
    measures: list[Spread]
    negative_by_turn: list[Rate]
    labels_mark: str = ""
    """Hash of the labeller and its prompts: equal for equal labelling, and names nobody."""


def baseline_of(inputs: Inputs, context: str) -> Baseline:
    """Compute a baseline from the rows of `QUERY`."""
    sessions = inputs.rows["sessions"]
    places = Counter(place for row in sessions if (place := row["place"]) is not None)
    labels = labelled(inputs)
    mark = ""
    if labels:
        rows = (row for row in inputs.rows["labels"] if row["labeller"] == labels.labeller)
        prompts = sorted({row["prompt_hash"] or "" for row in rows})
        mark = hashlib.blake2b("\0".join([labels.labeller, *prompts]).encode(), digest_size=4).hexdigest()
    return Baseline(
        form=FORM,
        context=context,
        sessions=len(sessions),
        places=len(places),
        largest_place=max(places.values()) / places.total() if places else None,
        measures=spreads(inputs.rows["measures"]),
        negative_by_turn=rates(labels) if labels else [],
        labels_mark=mark,
    )


def spreads(rows: Sequence[Row]) -> list[Spread]:
    """Return the distributions of the measures that enough sessions have."""
    by_measure: dict[str, list[Row]] = {}
    unjudged = Counter(row["signal"] for row in rows if row.get("unjudged"))
    for row in rows:
        if row["number"] is not None and isfinite(row["number"]):
            by_measure.setdefault(row["signal"], []).append(row)
    low = {row["signal"] for row in rows if row["low"]}
    made = []
    for path in MEASURES:
        ascending = sorted(row["number"] for row in by_measure.get(path, ()))
        n = len(ascending)
        if n >= FEWEST:
            mean = fsum(ascending) / n
            spread = Spread(
                signal=path,
                version=max(row["version"] for row in by_measure[path]),
                n=n,
                mean=mean,
                sd=sqrt(fsum((value - mean) ** 2 for value in ascending) / (n - 1)),
                quantiles=[quantile(ascending, share) for share in QUANTILES],
                at_least=path in low,
                not_judged=unjudged[path] / (n + unjudged[path]),
            )
            made.append(spread)
    return made


def rates(labels: Labelled) -> list[Rate]:
    """Return NEGATIVE by turn, for turns with enough labelled messages."""
    by_turn = []
    for first, last in bands():
        point = labels.estimate(partial(negative_between, first=first, last=last))
        if point.n >= FEWEST:
            low, high = point.interval or (None, None)
            by_turn.append(Rate(f"{first}+" if last == inf else f"{first}", int(point.n), int(point.k), low, high))
    return by_turn


def difference(mine: Rate, other: Rate) -> Interval | None:
    """Return the interval of the difference of two rates (Newcombe 1998, method 10), clipped to -1 and 1."""
    if mine.low is None or mine.high is None or other.low is None or other.high is None:
        return None
    gap = mine.value - other.value
    below = sqrt((mine.value - mine.low) ** 2 + (other.high - other.value) ** 2)
    above = sqrt((mine.high - mine.value) ** 2 + (other.value - other.low) ** 2)
    return max(-1.0, gap - below), min(1.0, gap + above)


def standardised(mine: Spread, other: Spread) -> float | None:
    """Return Cohen's d (pooled standard deviation), or None if nothing varies."""
    freedom = mine.n + other.n - 2
    pooled = sqrt(((mine.n - 1) * mine.sd**2 + (other.n - 1) * other.sd**2) / freedom) if freedom > 0 else 0.0
    return (mine.mean - other.mean) / pooled if pooled > 0 else None


def encode(baseline: Baseline) -> bytes:
    """Encode the baseline as a JSON file."""
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"


def decode(data: bytes, name: str) -> Baseline:
    """Decode a baseline file from elsewhere. BaselineError if it is not valid."""
    hint = "Run `agentsignals export --to baseline -o FILE.json` to write one."
    if len(data) > _MOST_BYTES:
        raise BaselineError(f"{name} is not a baseline: it has {len(data):,} bytes; {_MOST_BYTES:,} are allowed.", hint)
    try:
        baseline = msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise BaselineError(f"{name} is not a baseline file: {problem}.", hint) from problem
    if baseline.form != FORM:
        raise BaselineError(f"{name} has baseline format {baseline.form}; this version reads format {FORM}.", hint)
    first_turns = {f"{a}+" if b == inf else f"{a}" for a, b in bands()}
    rates_, spreads_ = baseline.negative_by_turn, baseline.measures
    turns, paths = {rate.turn for rate in rates_}, {spread.signal for spread in spreads_}
    impossible = {
        "its context is neither product nor eval": baseline.context not in ("product", "eval"),
        "a turn is duplicated, or has more NEGATIVE messages than messages": len(turns) < len(rates_)
        or any(r.n < FEWEST or r.negative > r.n for r in rates_),
        "a turn number is invalid": not turns <= first_turns,
        "a figure is out of range": any(abs(f) > _LARGEST for s in spreads_ for f in (s.mean, s.sd, *s.quantiles)),
        "a measure is duplicated, or has no quantiles": len(paths) < len(spreads_)
        or any(len(s.quantiles) != len(QUANTILES) or s.n < 2 for s in spreads_),
    }
    for wrong, holds in impossible.items():
        if holds:
            raise BaselineError(f"{name} is not a baseline file: {wrong}.", hint)
    return baseline


# -- comparison with a baseline ----------------------------------------------------------------------------------------


YOURS, BASE = "yours", "baseline"
_OF_TWO = "interval over the projects of both sides, because sessions of one project are alike"
_NO_PLACES = "the interval treats sessions as independent"
"""A baseline contains no projects."""
_ELSEWHERE = NoSessions("Based on another collection's figures, which name no session.")
_MEDIAN = 2
"""Index of the median among the quantiles."""


def against(baseline: Baseline, path: str) -> Study:
    """Return the study that compares a store's sessions with this baseline. `path`: its file, for the command."""
    context: Context = "eval" if baseline.context == "eval" else "product"
    command = f"agentsignals report --baseline {shlex.quote(path)} --study sessions -o baseline.json"
    return Study(
        **declared("study", "baseline", **QUERY),
        function=partial(_compare, baseline, command),
        context=context,
    )


def _compare(base: Baseline, command: str, inputs: Inputs) -> Outcome:
    """Compare the store's numbers with a baseline's: sizes, sentiment by turn, and each measure."""
    yours = baseline_of(inputs, base.context)
    of_measure = {spread.signal: spread for spread in base.measures}
    pairs = [(spread, of_measure[spread.signal]) for spread in yours.measures if spread.signal in of_measure]
    limits = [
        "A difference from the baseline also reflects different tasks, agents and people. Intervals assume"
        " independent sessions, and the largest of many differences is partly chance."
    ]
    for baseline, whose in ((base, "the baseline's"), (yours, "your")):
        if baseline.largest_place is not None and baseline.largest_place > DOMINANT:
            limits.append(
                f"{baseline.largest_place:.0%} of {whose} sessions with a known project are from one project."
            )
    if yours.negative_by_turn and base.negative_by_turn and yours.labels_mark != base.labels_mark:
        limits.append(
            "Your sentiment labels and the baseline's come from different labellers or prompts, which may explain a"
            " difference. Two labellers of one dataset agreed with a kappa of 0.43 (agent-traces)."
        )
    if others := [MEASURES[mine.signal][0] for mine, other in pairs if mine.version != other.version]:
        limits.append(f"Measured differently here than in the baseline, so not compared: {', '.join(others)}.")
    sizes = count(base.sessions, base.sessions, evidence=_ELSEWHERE).finding(
        "baseline.sessions",
        title="Sessions in the baseline",
        note=(
            f"of {times(base.places, 'project')}; yours: {times(yours.sessions, 'session')} of"
            f" {times(yours.places, 'project')}"
        ),
        command=command,
    )
    turn_gap, turns_table, turns_chart = _by_turn(yours, base, command)
    measure_gap, measures_table, measures_chart = _by_measure(pairs, command)
    return Outcome([sizes, turn_gap, measure_gap], [measures_table, turns_table], [turns_chart, measures_chart], limits)


def _largest_gap(name: str, title: str, gap: Estimate | None, **words: Any) -> Finding:
    if gap is not None:
        return gap.finding(f"baseline.{name}", title=title, **words)
    return count(None, 0, "number", evidence=_ELSEWHERE).finding(
        f"baseline.{name}", title, "sessions", unit="", headline=False, **words
    )


def _by_turn(yours: Baseline, base: Baseline, command: str) -> tuple[Finding, Table, Chart | None]:
    """Compare NEGATIVE by turn: the largest difference among turns with enough messages, all turns, and their chart."""
    of_base = {rate.turn: rate for rate in base.negative_by_turn}
    turns = [(rate, of_base[rate.turn]) for rate in yours.negative_by_turn if rate.turn in of_base]
    title, gap = "Largest difference in the share of NEGATIVE messages at one turn", None
    if wide := [pair for pair in turns if min(pair[0].n, pair[1].n) >= LOW_N]:
        mine, other = max(wide, key=lambda pair: abs(pair[0].value - pair[1].value))
        value, ends = mine.value - other.value, difference(mine, other)
        gap = Estimate(value=value, n=mine.n, interval=ends, note=_OF_TWO, counted=_ELSEWHERE)
        title = f"{title}: turn {mine.turn}"
        note = (
            f"yours {formatted(mine.value, 'share')} (n = {mine.n:,}), the baseline's"
            f" {formatted(other.value, 'share')} (n = {other.n:,}); the largest difference"
            f" of {len(wide)} turns"
        )
    else:
        note = (
            "neither side has labels" if not (yours.negative_by_turn or base.negative_by_turn)
            else "your sessions have no sentiment labels" if not yours.negative_by_turn
            else "the baseline has no sentiment labels" if not base.negative_by_turn
            else f"no turn has {LOW_N} labelled messages on both sides"
        )  # fmt: skip
    finding = _largest_gap("turn_gap", title, gap, note=note, command=command)
    rows: list[list[Any]] = []
    marks: list[Row] = []
    for pair in turns:
        mine, other = pair
        low, high = difference(mine, other) or (None, None)
        few = "few messages" if min(mine.n, other.n) < LOW_N else ""
        rows.append([mine.turn, mine.n, mine.value, other.n, other.value, mine.value - other.value, low, high, few])
        for name, rate in zip((YOURS, BASE), pair, strict=True):
            share = f"{rate.negative:,} of {rate.n:,} NEGATIVE, {formatted(rate.value, 'share')}"
            drawn = {"name": name, "at": rate.turn, "value": rate.value, "low": rate.low, "high": rate.high}
            marks.append(mark({**drawn, "tip": f"turn {rate.turn}, {name}: {share}"}, _ELSEWHERE))
    title, n = "Negative messages by position in the session: yours and the baseline file's", sum(r.n for r, _ in turns)
    note = f"Few: under {LOW_N} labelled messages on either side."
    made = table("baseline.turns", rows, title=title, n=n, evidence=_ELSEWHERE, note=note)
    across, up = "turn number in the session", "share of labelled messages"
    spec = intervals_by_position(across, up, (YOURS, BASE))
    note = f"the baseline's n = {sum(other.n for _, other in turns):,}; lines are 95% intervals"
    fewest = 4  # two turns, each of both
    return finding, made, chart("baseline.turns", marks, spec, title=title, n=n, note=note, fewest=fewest)


def _by_measure(pairs: list[tuple[Spread, Spread]], command: str) -> tuple[Finding, Table, Chart | None]:
    """Compare measures: the largest standardised difference, all measures, and their chart."""
    rows: list[list[Any]] = []
    marks: list[Row] = []
    gaps: list[tuple[float, Interval, Spread, Spread]] = []
    for mine, other in pairs:
        name, kind = MEASURES[mine.signal]
        warning = ""
        if mine.version != other.version:
            warning = f"measured differently: version {mine.version} against {other.version}"
        elif whose := [side for side, spread in ((YOURS, mine), (BASE, other)) if spread.at_least]:
            why = rules_recall_text() if mine.signal == OF_WORDS else "under-reported output tokens"
            warning = f"a lower bound, {why}: {' and '.join(whose)}"
        for side, spread in ((YOURS, mine), (BASE, other)):
            if spread.not_judged:
                share = formatted(spread.not_judged, "share")
                warning += f"{'; ' if warning else ''}{side}: {share} of sessions not judged: another language"
        gap = None if warning else standardised(mine, other)
        ends: Interval | tuple[None, None] = None, None
        if gap is not None:
            # Hedges and Olkin 1985, with sessions as independent.
            half = Z * sqrt((mine.n + other.n) / (mine.n * other.n) + gap**2 / (2 * (mine.n + other.n)))
            low, high = ends = gap - half, gap + half
            gaps.append((gap, ends, mine, other))
            tip = (
                f"{name}: {gap:+.2f} standard deviations; mean {formatted(mine.mean, kind)} (n = {mine.n:,}) against"
                f" {formatted(other.mean, kind)} (n = {other.n:,})"
            )
            marks.append(mark({"name": name, "value": gap, "low": low, "high": high, "tip": tip}, _ELSEWHERE))
        figures = [
            formatted(value, kind, side.at_least)
            for side in (mine, other)
            for value in (side.mean, side.quantiles[_MEDIAN], side.quantiles[0], side.quantiles[-1])
        ]
        rows.append([name, mine.n, *figures[:4], other.n, *figures[4:], gap, *ends, warning])
    title, furthest = "Largest standardized difference of a measure", None
    words: dict[str, Any] = {
        "note": "no measure is comparable: same version, no lower bound, and variation on both sides"
    }
    if gaps:
        gap, interval, mine, other = max(gaps, key=lambda entry: abs(entry[0]))
        name, kind = MEASURES[mine.signal]
        title = f"{title}: {name}"
        furthest = Estimate(value=gap, n=mine.n, kind="number", interval=interval, note=_NO_PLACES, counted=_ELSEWHERE)
        note = (
            f"mean {formatted(mine.mean, kind)} against {formatted(other.mean, kind)}"
            f" (n = {other.n:,} sessions of the baseline); the largest difference of {len(gaps)} measures"
        )
        words = {"note": note, "signals": (mine.signal,)}
    finding = _largest_gap("measure_gap", title, furthest, command=command, **words)
    sides = " | ".join(
        f"{side}_n {whose} n:count | {side}_mean {whose} mean:figure | {side}_median {whose} median:figure"
        f" | {side}_low {whose} 10%:figure | {side}_high {whose} 90%:figure"
        for side, whose in ((YOURS, "your"), (BASE, "baseline's"))
    )
    header = (
        f"measure measure per session | {sides} | gap difference, standard deviations:number | from 95% from:number"
        " | to:number | warning caution"
    )
    n, most = (max((pair[side].n for pair in pairs), default=0) for side in (0, 1))
    made = table("baseline.measures", rows, header=header, n=n, evidence=_ELSEWHERE)
    marks.sort(key=lambda row: -abs(row["value"]))
    spec = dots("standard deviations above the baseline's mean", "number")
    note = f"the baseline's n = {most:,} at most; {INTERVAL_NOTE}"
    return finding, made, chart("baseline.measures", marks, spec, n=n, note=note)
