"""A baseline: what many sessions are like, in numbers that name nobody, for others to hold their own against.

It has counts, means and quantiles, and nothing of fewer than five: no text, no id, no path, no name.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from math import fsum, inf, isfinite, sqrt
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from agentsignals.analysis.labelled import QUERIES, Labelled, labelled
from agentsignals.analysis.rows import BOUND, PLACED
from agentsignals.analysis.study import Inputs, Kind, Row
from agentsignals.errors import BaselineError
from agentsignals.stats.estimates import Interval, quantile
from agentsignals.stats.sentiment_counts import bands, negative_at

FORM = 1
"""Version of the file."""
FEWEST = 5
"""Nothing is told of fewer sessions or messages: a quantile of two of them would be somebody's own figure."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_BYTES = 1_000_000
_LARGEST = 1e12

MEASURES: dict[str, tuple[str, Kind]] = {
    "corpus.autonomy_ratio": ("Tool calls for each prompt", "number"),
    "user.tool_error_rate": ("Tool calls that failed", "share"),
    "corpus.error_recovery_rate": ("Failed calls made good", "share"),
    "corpus.tool_mix_entropy": ("Variety of tools, bits", "number"),
    "corpus.session_length_events": ("Events in a session", "number"),
    "corpus.read_before_edit_rate": ("Edits of files read before", "share"),
    "corpus.session_cost_usd": ("Cost of a session", "usd"),
    "corpus.output_input_token_ratio": ("Output tokens for each input token", "share"),
    "corpus.short_messages": ("Messages of up to 20 characters", "share"),
    "chat.pushback_rate": ("Prompts that object, by words, or follow a cut", "share"),
}
"""The behavioural measures of agent-traces that are numbers of a session, with their titles."""

_PATHS = ", ".join(f"'{path}'" for path in MEASURES)
_OF_OUTPUT = "'corpus.session_cost_usd', 'corpus.output_input_token_ratio'"
"""Lower bounds where output is logged in mid-stream."""
OF_WORDS = "chat.pushback_rate"
"""A lower bound always: word rules miss most of what a reader calls pushback."""
_NUMBER = "CASE WHEN signal = 'corpus.short_messages' THEN TRY_CAST(value->>'le_20' AS DOUBLE)"
_NUMBER += " / nullif(TRY_CAST(value->>'n' AS DOUBLE), 0) ELSE number END"
QUERY: dict[str, str] = {
    **QUERIES,
    "sessions": PLACED,
    "measures": f"SELECT session_id, signal, version, {_NUMBER} AS number,"
    f" signal = '{OF_WORDS}' OR (signal IN ({_OF_OUTPUT}) AND {BOUND} IS NOT NULL) AS low"
    " FROM signals JOIN sessions USING (session_id)"
    f" WHERE signal IN ({_PATHS}) AND absent IS NULL ORDER BY signal, session_id",
}
"""The rows a baseline is made of; a comparison asks for the same."""

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Spread(Struct, frozen=True, kw_only=True):
    """How a measure spreads over sessions."""

    signal: str
    version: int
    n: Count
    mean: float
    sd: Annotated[float, Meta(ge=0)]
    """Standard deviation over sessions, with n - 1."""
    quantiles: list[float]
    """At `QUANTILES`, linear between neighbours."""
    at_least: bool = False
    """Whether they are lower bounds: some of its sessions log output in mid-stream, or it rests on word rules."""


class Rate(Struct, frozen=True):
    """NEGATIVE messages at a turn, or in a class of turns."""

    turn: str
    """1 to 10, or `11+`."""
    n: Count
    """Messages with a label."""
    negative: Count
    low: Share | None = None
    high: Share | None = None
    """At 95 percent, over places or sessions."""

    @property
    def value(self) -> float:
        return self.negative / self.n


class Baseline(Struct, frozen=True, kw_only=True):
    """What a set of sessions is like."""

    form: int
    context: str
    """`product` or `eval`."""
    sessions: Count
    places: Count
    """Repositories or folders they lie in, as far as that is known."""
    largest_place: Share | None
    """Of the sessions whose place is known, those in the one with most."""
    measures: list[Spread]
    negative_by_turn: list[Rate]
    labels_mark: str = ""
    """Stands for who labelled, with which prompt, without naming them: two marks are alike when these are."""


def baseline_of(inputs: Inputs, context: str) -> Baseline:
    """What these rows of `QUERY` are like."""
    sessions = inputs.rows["sessions"]
    places = Counter(place for row in sessions if (place := row["place"]) is not None)
    labels = labelled(inputs)
    return Baseline(
        form=FORM,
        context=context,
        sessions=len(sessions),
        places=len(places),
        largest_place=max(places.values()) / places.total() if places else None,
        measures=spreads(inputs.rows["measures"]),
        negative_by_turn=rates(labels) if labels else [],
        labels_mark=_mark(labels, inputs.rows["labels"]) if labels else "",
    )


def spreads(rows: Sequence[Row]) -> list[Spread]:
    """The measures that enough sessions have."""
    numbers: dict[str, list[float]] = {}
    versions: dict[str, int] = {}
    low = {row["signal"] for row in rows if row["low"]}
    for row in rows:
        if row["number"] is not None and isfinite(row["number"]):
            numbers.setdefault(row["signal"], []).append(row["number"])
            versions[row["signal"]] = max(row["version"], versions.get(row["signal"], 0))
    return [
        _spread(path, versions[path], sorted(numbers[path]), path in low)
        for path in MEASURES
        if len(numbers.get(path, ())) >= FEWEST
    ]


def _spread(path: str, version: int, ascending: list[float], at_least: bool) -> Spread:
    n = len(ascending)
    mean = fsum(ascending) / n
    sd = sqrt(fsum((value - mean) ** 2 for value in ascending) / (n - 1))
    return Spread(
        signal=path,
        version=version,
        n=n,
        mean=mean,
        sd=sd,
        quantiles=[quantile(ascending, share) for share in QUANTILES],
        at_least=at_least,
    )


def rates(labels: Labelled) -> list[Rate]:
    """NEGATIVE by turn, of the turns with enough labelled messages."""
    by_turn = []
    for first, last in bands():
        point = labels.estimate(partial(negative_at, first=first, last=last))
        if point.n >= FEWEST:
            low, high = point.interval or (None, None)
            by_turn.append(Rate(f"{first}+" if last == inf else f"{first}", int(point.n), int(point.k), low, high))
    return by_turn


def _mark(labelled_sessions: Labelled, labels: Sequence[Row]) -> str:
    prompts = sorted({row["prompt_hash"] or "" for row in labels if row["labeller"] == labelled_sessions.labeller})
    return hashlib.blake2b("\0".join([labelled_sessions.labeller, *prompts]).encode(), digest_size=4).hexdigest()


def difference(mine: Rate, other: Rate) -> Interval | None:
    """The interval of the difference of two rates out of theirs (Newcombe 1998, method 10: squared distances add)."""
    if mine.low is None or mine.high is None or other.low is None or other.high is None:
        return None
    gap = mine.value - other.value
    below = sqrt((mine.value - mine.low) ** 2 + (other.high - other.value) ** 2)
    above = sqrt((mine.high - mine.value) ** 2 + (other.value - other.low) ** 2)
    return max(-1.0, gap - below), min(1.0, gap + above)


def standardised(mine: Spread, other: Spread) -> float | None:
    """How many standard deviations apart the means are (Cohen's d, pooled). None where nothing varies."""
    freedom = mine.n + other.n - 2
    pooled = sqrt(((mine.n - 1) * mine.sd**2 + (other.n - 1) * other.sd**2) / freedom) if freedom > 0 else 0.0
    return (mine.mean - other.mean) / pooled if pooled > 0 else None


def encode(baseline: Baseline) -> bytes:
    """The baseline as a JSON file."""
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"


def decode(data: bytes, name: str) -> Baseline:
    """The baseline a file holds. BaselineError when it is none: it came from somebody else, and may be anything."""
    hint = "`agentsignals export --to baseline -o FILE.json` writes one."
    if len(data) > _MOST_BYTES:
        raise BaselineError(f"{name} is no baseline: it has {len(data):,} bytes.", hint)
    try:
        baseline = msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise BaselineError(f"{name} is no baseline: {problem}.", hint) from problem
    if baseline.form != FORM:
        raise BaselineError(f"{name} is a baseline of form {baseline.form}, and form {FORM} is read here.", hint)
    wrong = _wrong(baseline)
    if wrong:
        raise BaselineError(f"{name} is no baseline: {wrong}.", hint)
    return baseline


def _wrong(baseline: Baseline) -> str:
    """What in it can't be; empty when all can."""
    if baseline.context not in ("product", "eval"):
        return "its context is neither product nor eval"
    first_turns: Mapping[str, int] = {(f"{a}+" if b == inf else f"{a}"): a for a, b in bands()}
    turns = [rate.turn for rate in baseline.negative_by_turn]
    if len(set(turns)) < len(turns) or any(r.n < FEWEST or r.negative > r.n for r in baseline.negative_by_turn):
        return "a turn comes twice, or has more NEGATIVE messages than messages"
    if not set(turns) <= set(first_turns):
        return "it has a turn that is none"
    figures = [f for s in baseline.measures for f in (s.mean, s.sd, *s.quantiles)]
    if any(abs(figure) > _LARGEST for figure in figures):
        return "a figure is beyond all measure"
    paths = [spread.signal for spread in baseline.measures]
    if len(set(paths)) < len(paths) or any(len(s.quantiles) != len(QUANTILES) or s.n < 2 for s in baseline.measures):
        return "a measure comes twice, or lacks quantiles"
    return ""
