"""Solved against failed attempts of one task: which of the two had more of a signal (design/statistics.md#drivers).

Within a stratum (a task under one treatment; or a task, with each treatment's mean taken off) every solved attempt is
held against every failed one. Pure and deterministic.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import fsum
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.stats.estimates import FEWEST_CLUSTERS, share_interval
from agentsignals.stats.paired import sign_flip

Within = Literal["treatment", "task"]
"""What the attempts of a pair share: task and treatment, or the task alone."""
_ROUNDS, _STILL = 200, 1e-9


class Judged(Struct, frozen=True, gc=False, kw_only=True):
    """A first attempt whose outcome is known."""

    session_id: str
    task: str
    treatment: str
    solved: bool


class Contrast(Struct, frozen=True, kw_only=True):
    """A signal at solved and failed attempts of the same task. What it shows is a correlation."""

    signal: str
    superiority: float | None
    """How often a solved attempt had more of it than a failed one of its stratum, ties counting half: 0.5 where
    neither goes with the other (probability of superiority, Grissom 1994). None without a pair."""
    low: float | None = None
    high: float | None = None
    """At 95 percent, over tasks; None under six."""
    p: float | None = None
    """Two-sided, by flips of whole tasks."""
    q: float | None = None
    """The same, adjusted for the number of signals (Benjamini and Hochberg); None where a signal has no p."""
    tasks: int = 0
    """Those with a pair."""
    solved: int = 0
    failed: int = 0
    """Attempts in a pair."""
    solved_median: float | None = None
    failed_median: float | None = None
    absent: int = 0
    """Attempts without a value of it."""
    same_as: tuple[str, ...] = ()
    moves_with: dict[str, float] = {}
    """Signals that rise and fall with it within strata, with the correlation: which of them it is, data can't tell."""

    @property
    def goes_with(self) -> str:
        """`success` or `failure`, as its share of pairs says."""
        return "success" if (self.superiority or 0) > 1 / 2 else "failure"


def stratum(attempt: Judged, within: Within) -> str:
    return f"{attempt.task}\r{attempt.treatment}" if within == "treatment" else attempt.task


def mixed_tasks(attempts: Sequence[Judged], within: Within) -> int:
    """Tasks with a stratum in which something was solved and something failed."""
    seen: dict[str, set[bool]] = defaultdict(set)
    task_of: dict[str, str] = {}
    for attempt in attempts:
        name = stratum(attempt, within)
        seen[name].add(attempt.solved)
        task_of[name] = attempt.task
    return len({task_of[name] for name, outcomes in seen.items() if len(outcomes) > 1})


def contrast(signal: str, attempts: Sequence[Judged], values: Mapping[str, float], within: Within) -> Contrast:
    """The contrast of one signal, without q. `values` by session; attempts without one are counted, not guessed."""
    measured = [a for a in attempts if a.session_id in values]
    compared = values if within == "treatment" else adjusted(measured, values)
    strata: dict[str, list[Judged]] = defaultdict(list)
    for attempt in measured:
        strata[stratum(attempt, within)].append(attempt)
    by_task: dict[str, list[tuple[float, float]]] = defaultdict(list)
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for group in strata.values():
        sides = {kind: [a.session_id for a in group if a.solved is kind] for kind in (True, False)}
        if not (sides[True] and sides[False]):
            continue
        won = _wins([compared[s] for s in sides[True]], sorted(compared[s] for s in sides[False]))
        # Pairs grow with the square of attempts, what they tell does not (van Elteren 1960).
        weight = 1 / len(group)
        by_task[group[0].task].append((won * weight, len(sides[True]) * len(sides[False]) * weight))
        for kind, sessions in sides.items():
            pairs[kind] += [values[s] for s in sessions]
    sums = [(fsum([k for k, _ in parts]), fsum([n for _, n in parts])) for parts in by_task.values()]
    absent = len(attempts) - len(measured)
    if not sums:
        return Contrast(signal=signal, superiority=None, absent=absent)
    enough = len(sums) >= FEWEST_CLUSTERS
    interval = share_interval(sums) if enough else None
    return Contrast(
        signal=signal,
        superiority=fsum([k for k, _ in sums]) / fsum([n for _, n in sums]),
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        p=sign_flip([k - n / 2 for k, n in sums]) if enough else None,
        tasks=len(sums),
        solved=len(pairs[True]),
        failed=len(pairs[False]),
        solved_median=median(pairs[True]),
        failed_median=median(pairs[False]),
        absent=absent,
    )


def _wins(solved: Sequence[float], failed: Sequence[float]) -> float:
    """Pairs in which the solved one had more; ties are halves. `failed` ascends."""
    return fsum((bisect_left(failed, v) + bisect_right(failed, v)) / 2 for v in solved)


def adjusted(attempts: Sequence[Judged], values: Mapping[str, float]) -> dict[str, float]:
    """The values' ranks, 0 to 1, less the means of their task and of their treatment (two-way fixed effects, by turns).

    Ranks, so that a few huge values say no more than others; rounded, so that what was equal is so again.
    """
    ascending = sorted(values[a.session_id] for a in attempts)
    last = max(1, len(ascending) - 1)
    current = [
        (bisect_left(ascending, v) + bisect_right(ascending, v) - 1) / 2 / last
        for v in (values[a.session_id] for a in attempts)
    ]
    groupings = [[a.task for a in attempts], [a.treatment for a in attempts]]
    for _ in range(_ROUNDS):
        moved = 0.0
        for keys in groupings:
            sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
            for key, value in zip(keys, current, strict=True):
                sums[key][0] += value
                sums[key][1] += 1
            means = {key: total / n for key, (total, n) in sums.items()}
            moved = max(moved, *(abs(mean) for mean in means.values())) if means else 0.0
            current = [value - means[key] for key, value in zip(keys, current, strict=True)]
        if moved < _STILL:
            break
    return {a.session_id: round(value, 7) for a, value in zip(attempts, current, strict=True)}


def centred(attempts: Sequence[Judged], values: Mapping[str, float], within: Within) -> dict[str, float]:
    """Values as they are compared, less their stratum's mean rank, of attempts that are not alone in their stratum:
    what correlations within strata are made of."""
    measured = [a for a in attempts if a.session_id in values]
    if within == "treatment":
        measured = [replace(a, task=stratum(a, within), treatment="") for a in measured]
    size = Counter(a.task for a in measured)
    ranks = adjusted(measured, values)
    return {a.session_id: ranks[a.session_id] for a in measured if size[a.task] > 1}
