"""Signals that nearly tell the outcome by themselves: more likely a copy of it than what brought it about."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import fsum

from msgspec import Struct

from agentsignals.analysis.drivers.contrasts import Judged
from agentsignals.stats.estimates import SEED

FEWEST = 10
"""Solved, and failed, attempts below which chance alone comes near a copy."""
SUSPICIOUS_AUC = ((20, 0.9), (FEWEST, 0.95))
"""From so many of each on: no trait of a run that was measured before its verdict tells outcomes so well
(design/statistics.md#drivers)."""
_BINS = 12


class NearCopy(Struct, frozen=True):
    """A signal that is set aside because it tells solved from failed attempts almost by itself."""

    signal: str
    auc: float
    how: str
    """By its size, by which values it has (with being absent as one), or within tasks."""
    n: int


def enough(attempts: Sequence[Judged]) -> bool:
    """Whether so many solved and failed that a near copy can be told from chance."""
    solved = sum(a.solved for a in attempts)
    return min(solved, len(attempts) - solved) >= FEWEST


def near_copy(signal: str, attempts: Sequence[Judged], values: Mapping[str, float]) -> NearCopy | None:
    """The signal as a near copy of the outcome; None where it is none, or too few attempts say so."""
    measured = [a for a in attempts if a.session_id in values]
    ways: list[tuple[float, str, int]] = []
    if enough(measured):
        size = auc([values[a.session_id] for a in measured], [a.solved for a in measured])
        ways.append((max(size, 1 - size), "by its size", len(measured)))
        if (within := _within_tasks(measured, values)) is not None:
            ways.append((max(within, 1 - within), "by its size within tasks", len(measured)))
    if enough(attempts):
        ways.append(
            (auc(_rates(attempts, values), [a.solved for a in attempts]), "by which values it has", len(attempts))
        )
    top = max(ways, default=None)
    return NearCopy(signal, *top) if top is not None and top[0] >= _suspicious(attempts) else None


def _suspicious(attempts: Sequence[Judged]) -> float:
    solved = sum(a.solved for a in attempts)
    least = min(solved, len(attempts) - solved)
    return next((bound for n, bound in SUSPICIOUS_AUC if least >= n), 1.0)


def auc(scores: Sequence[float], solved: Sequence[bool]) -> float:
    """The share of pairs of a solved and a failed attempt in which the solved one scores higher; ties are halves. There
    must be one of each."""
    failed = sorted(s for s, good in zip(scores, solved, strict=True) if not good)
    won = [
        (bisect_left(failed, s) + bisect_right(failed, s)) / 2 for s, good in zip(scores, solved, strict=True) if good
    ]
    return fsum(won) / (len(won) * len(failed))


def _within_tasks(measured: Sequence[Judged], values: Mapping[str, float]) -> float | None:
    """The same of pairs of one task, all pairs alike; None of fewer than ten tasks with a pair."""
    by_task: dict[str, list[Judged]] = defaultdict(list)
    for attempt in measured:
        by_task[attempt.task].append(attempt)
    mixed = [group for group in by_task.values() if len({a.solved for a in group}) > 1]
    if len(mixed) < FEWEST:
        return None
    shares = [auc([values[a.session_id] for a in group], [a.solved for a in group]) for group in mixed]
    return fsum(shares) / len(shares)


def _rates(attempts: Sequence[Judged], values: Mapping[str, float]) -> list[float]:
    """For each attempt how often others with its value (one of up to twelve, or ranges; absent is one) were solved,
    counted over the other half of the tasks: no attempt's score has its own outcome in it."""
    ascending = sorted(set(values.values()))
    edges = ascending if len(ascending) <= _BINS else [
        ascending[len(ascending) * n // _BINS] for n in range(_BINS)
    ]  # fmt: skip
    bins = {s: bisect_right(edges, v) for s, v in values.items()}
    names = sorted({a.task for a in attempts})
    random.Random(SEED).shuffle(names)  # noqa: S311  (draws, no secret; names in order may alternate as outcomes do)
    half = {task: n % 2 for n, task in enumerate(names)}
    counts: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for a in attempts:
        cell = counts[half[a.task], bins.get(a.session_id, 0)]
        cell[0] += a.solved
        cell[1] += 1
    base = sum(a.solved for a in attempts) / len(attempts)
    scores = []
    for a in attempts:
        solved, n = counts.get((1 - half[a.task], bins.get(a.session_id, 0)), (0, 0))
        scores.append((solved + base) / (n + 1))
    return scores
