"""Two labellers on the same messages or sessions: how far they agree, and what their disagreements are made of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from math import fsum

from msgspec import Struct, field

from agentsignals.labels.task import Task
from agentsignals.redaction import redacted
from agentsignals.stats.agreement import agreement
from agentsignals.stats.coefficients import Estimate, ac1, alpha, icc, kappa_estimate, spearman, weighted_kappa

SCALES = {name: tuple("01234") for name in ("task_paraphrase_accuracy", "goal_alignment_at_close")}
"""Scores with few steps, which are compared as classes, too."""
_CONTINUOUS = "session_success"
MOST_SCORE = 100
_ORDERED = frozenset(("sentiment", "plan_optimality", "instruction_adherence", *SCALES))
"""Tasks whose classes, as declared, go from one end to the other."""
_SCORE = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_TURN = re.compile(r"none|[0-9]{1,6}")
"""What conflation_turn says: the one task whose verdict is neither a class nor a score."""
EXAMPLES = 3
EXCERPT_CHARS = 160


class Both(Struct, frozen=True, kw_only=True):
    """One thing that both judged."""

    session_id: str
    turn: int | None
    """From 0; None: the whole session."""
    a: str
    b: str
    score_a: float | None = None
    score_b: float | None = None
    text: str | None = None
    """The message."""


class OfClass(Struct, frozen=True):
    """One class, with the second labeller's word taken as the truth."""

    n: int
    """How often the second gave it."""
    predicted: int = field(name="said")
    """How often the first did."""
    precision: float | None
    recall: float | None
    f1: float | None


class Example(Struct, frozen=True):
    """A message of a pattern, secrets masked. The turn is counted from 1."""

    session: str
    turn: int | None
    excerpt: str | None


class Pattern(Struct, frozen=True):
    """What the first called `a` and the second `b`."""

    a: str
    b: str
    n: int
    share: float
    """Of the things both judged."""
    examples: list[Example]


class Scores(Struct, frozen=True):
    """Two labellers' scores of the same things."""

    n: int
    icc: float | None
    """ICC(2,1): absolute agreement."""
    spearman: float | None
    mean_difference: float
    """The first's less the second's."""


class WeightedBack(Struct, frozen=True):
    """What a stratified sample says of all that it was drawn from: each thing counted as often as its `weight`."""

    things: float
    agreement: float
    chance: float
    kappa: float | None


class Comparison(Struct, kw_only=True):
    """What came of comparing. Coefficients are None where they are not defined; so are all figures of classes where
    the task's verdict is a score of many values."""

    task: str
    a: str
    b: str
    n: int
    sessions: int
    agreement: float | None = None
    chance: float | None = None
    kappa: Estimate | None = None
    """Cohen's, with an interval by drawing sessions anew."""
    weighted_kappa: float | None = None
    """With quadratic weights, where the classes have an order."""
    ac1: float | None = None
    """Gwet's, which a frequent class does not press down."""
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    """Rows: the first; columns: the second."""
    per_class: dict[str, OfClass] = field(default_factory=dict)
    scores: Scores | None = None
    patterns: list[Pattern] = field(default_factory=list)
    """Disagreements, the most frequent first."""
    left_out: dict[str, int] = field(default_factory=dict)
    """What is not among the n, by reason."""
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
    alpha: float | None
    """Krippendorff's for names, over those things; None where it is not defined, and for scores of many values."""
    pairs: list[Comparison]
    """Each two of them, on what both labelled."""


def compare(task: Task, a: str, b: str, both: Sequence[Both]) -> Comparison:
    """Compares what `a` and `b` said of the same things."""
    comparison = Comparison(task=task.name, a=a, b=b, n=len(both), sessions=len({pair.session_id for pair in both}))
    scored = [(pair.score_a, pair.score_b) for pair in both if pair.score_a is not None and pair.score_b is not None]
    score_pairs = [(x, y) for x, y in scored if x is not None and y is not None]
    if not task.values and score_pairs:
        apart = fsum(x - y for x, y in score_pairs) / len(score_pairs)
        comparison.scores = Scores(len(score_pairs), icc(score_pairs), spearman(score_pairs), apart)
    if task.name != _CONTINUOUS:
        _of_classes(
            comparison, task, classes(task) or sorted({name for pair in both for name in (pair.a, pair.b)}), both
        )
    return comparison


def alpha_of(task: Task, things: Sequence[Sequence[str]]) -> float | None:
    """Krippendorff's alpha where the verdicts are classes: each thing as the labels it has."""
    return None if task.name == _CONTINUOUS else alpha(things)


def weighted_back(things: Sequence[tuple[str, str, float]]) -> WeightedBack | None:
    """The figures over (first's label, second's, weight); None of nothing."""
    first, second = defaultdict[str, float](float), defaultdict[str, float](float)
    for a, b, weight in things:
        first[a] += weight
        second[b] += weight
    whole = fsum(weight for _, _, weight in things)
    if not whole:
        return None
    same = fsum(weight for a, b, weight in things if a == b) / whole
    chance = fsum(first[name] * second[name] for name in first.keys() & second.keys()) / whole**2
    alone = len(first) == len(second) == 1 and first.keys() == second.keys()
    return WeightedBack(whole, same, chance, None if alone else (same - chance) / (1 - chance))


def classes(task: Task) -> tuple[str, ...]:
    """What a task's verdict may be; empty where it is any number."""
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


def _of_classes(comparison: Comparison, task: Task, labels: Sequence[str], both: Sequence[Both]) -> None:
    pairs = [(pair.a, pair.b) for pair in both]
    measured = agreement(pairs, labels)
    if measured is None:
        return
    comparison.agreement, comparison.chance, comparison.confusion = (
        measured.agreement,
        measured.chance,
        measured.confusion,
    )
    comparison.kappa = kappa_estimate((pair.session_id, pair.a, pair.b) for pair in both)
    comparison.ac1 = ac1(pairs, len(labels))
    if task.name in _ORDERED:
        comparison.weighted_kappa = weighted_kappa(pairs, labels)
    comparison.per_class = {name: _of_class(name, measured.confusion) for name in labels}
    comparison.patterns = _patterns(both)


def _of_class(name: str, confusion: dict[str, dict[str, int]]) -> OfClass:
    hits = confusion[name][name]
    predicted, n = sum(confusion[name].values()), sum(row[name] for row in confusion.values())
    return OfClass(
        n,
        predicted,
        hits / predicted if predicted else None,
        hits / n if n else None,
        2 * hits / (predicted + n) if predicted + n else None,
    )


def _patterns(both: Sequence[Both]) -> list[Pattern]:
    apart: dict[tuple[str, str], list[Both]] = {}
    for example in both:
        if example.a != example.b:
            apart.setdefault((example.a, example.b), []).append(example)
    ordered = sorted(apart.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [Pattern(a, b, len(pairs), len(pairs) / len(both), _examples(pairs)) for (a, b), pairs in ordered]


def _examples(pairs: list[Both]) -> list[Example]:
    """A few, spread over the sessions: from beginning to end of what there is."""
    step = max(1, len(pairs) // EXAMPLES)
    return [
        Example(pair.session_id, None if pair.turn is None else pair.turn + 1, _excerpt(pair.text))
        for pair in pairs[::step][:EXAMPLES]
    ]


def _excerpt(text: str | None) -> str | None:
    """Masked before it is cut: half a secret is no longer recognised as one."""
    if text is None:
        return None
    line = " ".join(redacted(text).split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"
