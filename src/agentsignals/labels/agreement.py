"""Two labellers on the same messages or sessions: how far they agree, and what their disagreements are made of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import fsum

from msgspec import Struct, field

from agentsignals.labels.tasks import Task
from agentsignals.redaction import redacted
from agentsignals.stats import agreement as jackknife
from agentsignals.stats.agent_traces import FAILURE_PATTERNS
from agentsignals.stats.agreement import (
    Estimate,
    Pair,
    ac1,
    agreement,
    alpha,
    coincidences,
    icc,
    kappa_estimate,
    spearman,
    weighted_kappa,
)
from agentsignals.stats.intervals import FEWEST_CLUSTERS, Interval, clustered, sums_interval

SCALES = {name: tuple("01234") for name in ("task_paraphrase_accuracy", "goal_alignment_at_close")}
"""Scores with few steps, which are compared as classes, too."""
_CONTINUOUS = "session_success"
MOST_SCORE = 100
_ORDERED = frozenset(("sentiment", "plan_optimality", "instruction_adherence", *SCALES))
"""Tasks whose classes, as declared, go from one end to the other."""
_SCORE = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_TURN = re.compile(r"none|[0-9]{1,6}")
"""Verdict of conflation_turn, the one task that has neither classes nor a score."""
EXAMPLES = 3
EXCERPT_CHARS = 160


class Both(Struct, frozen=True):
    """One thing that both judged."""

    session_id: str
    turn: int | None
    """From 0; None: the whole session."""
    a: str
    b: str
    score_a: float | None = None
    score_b: float | None = None
    text: str | None = None
    project: str | None = None
    """Its project, where intervals are over these."""

    @property
    def cluster(self) -> str:
        """The unit that intervals draw: things of one are alike."""
        return self.project or self.session_id


class OfClass(Struct, frozen=True, kw_only=True):
    """One class, with the second labeller's word taken as the truth. Intervals at 95 percent, over sessions; None under
    six with the class."""

    n: int
    """Labels of this class by the second labeller."""
    predicted: int = field(name="said")
    """Labels of this class by the first labeller."""
    precision: float | None
    recall: float | None
    f1: float | None
    precision_interval: Interval | None = None
    recall_interval: Interval | None = None
    f1_interval: Interval | None = None


class Example(Struct, frozen=True):
    """A message of a pattern or topic, secrets masked. The turn is counted from 1."""

    session: str
    turn: int | None
    excerpt: str | None


class Pattern(Struct, frozen=True):
    """Things that the first labelled `a` and the second `b`."""

    a: str
    b: str
    n: int
    share: float
    examples: list[Example]
    name: str | None = None
    """The typical error it is, for sentiment (`FAILURE_PATTERNS`)."""


class Scores(Struct, frozen=True):
    """Two labellers' scores of the same things."""

    n: int
    icc: Estimate | None
    spearman: Estimate | None
    mean_difference: float
    mean_difference_interval: Interval | None = None


class WeightedBack(Struct, frozen=True):
    """Estimates for the population of a stratified sample: each thing counts by its `weight`."""

    things: float
    agreement: float
    chance: float
    kappa: Estimate | None
    """The interval is over sessions, and takes the strata for chance: it is a little wide."""


class Comparison(Struct, kw_only=True):
    """Result of a comparison. Coefficients are None where they are not defined; so are all figures of classes where
    the task's verdict is a score of many values. Intervals are over projects where a gold file names six or more, else
    over sessions: messages of one are alike."""

    task: str
    a: str
    b: str
    n: int
    sessions: int
    projects: int | None = None
    """Where intervals are over these."""
    agreement: float | None = None
    agreement_interval: Interval | None = None
    chance: float | None = None
    kappa: Estimate | None = None
    weighted_kappa: Estimate | None = None
    """With quadratic weights, where the classes have an order."""
    ac1: Estimate | None = None
    """Gwet's, which a frequent class does not press down."""
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    per_class: dict[str, OfClass] = field(default_factory=dict)
    scores: Scores | None = None
    patterns: list[Pattern] = field(default_factory=list)
    """Disagreements, the most frequent first."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Things left out of n, by reason."""
    weighted_back: WeightedBack | None = None
    """With a gold file whose rows have weights: of what they stand for. The other figures are of the rows."""
    gold: str | None = None
    """Who made the gold file that stands as the second, in the file's own words."""
    warnings: list[str] = field(default_factory=list)


class Several(Struct, kw_only=True):
    """More than two labellers."""

    task: str
    labellers: list[str]
    n: int
    """Things with labels of at least two."""
    alpha: Estimate | None
    """Krippendorff's over those things; None where it is not defined, and for scores of many values."""
    alpha_of: str
    """`ordinal` where the classes go from one end to the other, else `nominal`."""
    pairs: list[Comparison]
    """Each two of them, on what both labelled."""


def compare(task: Task, a: str, b: str, both: Sequence[Both]) -> Comparison:
    """Compares what `a` and `b` said of the same things."""
    sessions, projects = {pair.session_id for pair in both}, {pair.project for pair in both} - {None}
    comparison = Comparison(
        task=task.name, a=a, b=b, n=len(both), sessions=len(sessions), projects=len(projects) or None
    )
    scored = [(p.session_id, p.score_a, p.score_b) for p in both if p.score_a is not None and p.score_b is not None]
    if not task.values and scored:
        comparison.scores = _scores(scored)
    labels = classes(task) or sorted({name for pair in both for name in (pair.a, pair.b)})
    measured = None if task.name == _CONTINUOUS else agreement([(pair.a, pair.b) for pair in both], labels)
    if measured is None:
        return comparison
    comparison.agreement, comparison.chance = measured.agreement, measured.chance
    comparison.confusion = measured.confusion
    comparison.kappa = kappa_estimate((pair.cluster, pair.a, pair.b) for pair in both)
    comparison.agreement_interval = clustered((pair.cluster, pair.a == pair.b, 1) for pair in both).interval
    by_cluster = [(pair.cluster, (pair.a, pair.b), 1.0) for pair in both]
    comparison.ac1 = jackknife.pairs_estimate(by_cluster, partial(ac1, labels=len(labels)))
    if ordered(task):
        comparison.weighted_kappa = jackknife.pairs_estimate(by_cluster, partial(weighted_kappa, order=labels))
    comparison.per_class = {name: _of_class(name, both) for name in labels}
    apart: dict[tuple[str, str], list[Both]] = {}
    for pair in both:
        if pair.a != pair.b:
            apart.setdefault((pair.a, pair.b), []).append(pair)
    named = FAILURE_PATTERNS if task.name == "sentiment" else {}
    comparison.patterns = [
        Pattern(a, b, len(pairs), len(pairs) / len(both), _examples(pairs), named.get((a, b)))
        for (a, b), pairs in sorted(apart.items(), key=lambda pattern: (-len(pattern[1]), pattern[0]))
    ]
    return comparison


def _scores(scored: Sequence[tuple[str, float, float]]) -> Scores:
    sessions: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for session_id, a, b in scored:
        sessions[session_id].append((a, b))
    pairs, sizes = list(sessions.values()), [float(len(of)) for of in sessions.values()]

    def over(coefficient: Callable[[Sequence[tuple[float, float]]], float | None]) -> Estimate | None:
        return jackknife.jackknife_estimate(
            pairs, sizes, lambda some: coefficient([pair for of in some for pair in of])
        )

    apart = [(fsum(a - b for a, b in of), float(len(of))) for of in pairs]
    return Scores(
        len(scored),
        over(icc),
        over(spearman),
        fsum(d for d, _ in apart) / len(scored),
        sums_interval(apart) if len(apart) >= FEWEST_CLUSTERS else None,
    )


def ordered(task: Task) -> bool:
    """Tell whether a task's classes are ordinal, as declared."""
    return task.name in _ORDERED


def alpha_of(task: Task, things: Sequence[tuple[str, Sequence[str]]]) -> Estimate | None:
    """Krippendorff's alpha where the verdicts are classes, over things (session, the labels it has)."""
    if task.name == _CONTINUOUS:
        return None
    of_thing = ((session_id, pair, n) for session_id, labels in things for pair, n in coincidences(labels).items())
    return jackknife.pairs_estimate(of_thing, partial(alpha, order=classes(task) if ordered(task) else ()))


def weighted_back(things: Sequence[tuple[str, str, str, float]]) -> WeightedBack | None:
    """The figures over (session, first's label, second's, weight); None of nothing."""
    cells = jackknife.sum_cells({(a, b): weight} for _, a, b, weight in things)
    whole = fsum(cells.values())
    if not whole:
        return None
    same, chance = _same_and_chance(cells)

    def kappa(cells: Mapping[Pair, float]) -> float | None:
        if not cells or len({name for pair in cells for name in pair}) == 1:
            return None
        same, chance = _same_and_chance(cells)
        return (same - chance) / (1 - chance)

    weighed = ((session_id, (a, b), weight) for session_id, a, b, weight in things)
    return WeightedBack(whole, same, chance, jackknife.pairs_estimate(weighed, kappa))


def _same_and_chance(cells: Mapping[Pair, float]) -> tuple[float, float]:
    first, second = jackknife.margins(cells)
    whole = fsum(cells.values())
    same = fsum(weight for (a, b), weight in cells.items() if a == b) / whole
    return same, fsum(first[name] * second[name] for name in first.keys() & second.keys()) / whole**2


def classes(task: Task) -> tuple[str, ...]:
    """Return a task's classes; empty where the verdict is any number."""
    return task.values or SCALES.get(task.name, ())


def fitting(task: Task, value: str | None) -> str | None:
    """The task's class that these words name, whatever their case and blanks; where it has none, the number. None when
    they are neither."""
    text, allowed = (value or "").strip(), classes(task)
    if allowed:
        plain = text.replace(" ", "_").casefold()
        return next((name for name in allowed if name.casefold() == plain), None)
    if task.name != _CONTINUOUS:
        return text if _TURN.fullmatch(text) else None
    return text if _SCORE.fullmatch(text) and float(text) <= MOST_SCORE else None


def score(task: Task, label: str) -> float | None:
    """The number that a label of people's stands for, on the scale that models' verdicts have; None of a class."""
    if task.name in SCALES:
        return int(label) / 4
    return float(label) if not task.values and _SCORE.fullmatch(label) else None


def _of_class(name: str, both: Sequence[Both]) -> OfClass:
    """F1 is a ratio of sums, too: twice the hits over how often either gave the class."""
    parts = [(pair.cluster, pair.a == name, pair.b == name) for pair in both]
    hits, predicted, n = (sum(column) for column in zip(*((a and b, a, b) for _, a, b in parts), strict=True))
    return OfClass(
        n=n,
        predicted=predicted,
        precision=hits / predicted if predicted else None,
        recall=hits / n if n else None,
        f1=2 * hits / (predicted + n) if predicted + n else None,
        precision_interval=clustered((at, a and b, a) for at, a, b in parts).interval,
        recall_interval=clustered((at, a and b, b) for at, a, b in parts).interval,
        f1_interval=clustered((at, 2 * (a and b), a + b) for at, a, b in parts).interval,
    )


def excerpt(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"


def _examples(pairs: list[Both]) -> list[Example]:
    """A few different messages, spread over the sessions. Masked before they are cut: half a secret is no longer
    recognised as one."""
    examples = []
    different = list(
        {
            (pair.text or pair.session_id, pair.turn if pair.text is None else None): pair for pair in reversed(pairs)
        }.values()
    )[::-1]
    for pair in different[:: max(1, len(different) // EXAMPLES)][:EXAMPLES]:
        line = None if pair.text is None else excerpt(redacted(pair.text))
        examples.append(Example(pair.session_id, None if pair.turn is None else pair.turn + 1, line))
    return examples
