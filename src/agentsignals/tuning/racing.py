"""Which candidates are out of the race (design/tuning.md#racing).

Two candidates are held against each other on the tasks that both have run, in the order of tasks that all go by. Where
just one of them solved a task, it has won it. Were the loser as good, each won task would be a fair coin at worst, and
the evidence against that, a ratio of likelihoods averaged over all worse coins, is a betting game's capital: it
reaches 1 / a with a probability of a at most, however often one looks (Ville 1939).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

from msgspec import Struct

from agentsignals.stats.paired import Arm
from agentsignals.tuning.plan import Candidate

ERROR = 0.10
"""The probability that the best candidate is dropped, over a whole search, is at most this."""


class Drop(Struct, frozen=True, kw_only=True):
    """Why a candidate is out."""

    by: Candidate
    """The candidate that it lost to."""
    lost: int
    won: int


def evidence(lost: int, won: int) -> float:
    """How many times likelier so many lost tasks are if the loser is worse than if it is as good.

    The mean of (2p)^lost (2 - 2p)^won over p from 1/2 to 1, in closed form: a sum of binomial coefficients.
    """
    n = lost + won
    return sum(comb(n + 1, k) for k in range(lost + 1)) / ((n + 1) * comb(n, lost))


def dropped(arms: Mapping[Candidate, Arm], start: Candidate, n_candidates: int) -> dict[Candidate, Drop]:
    """Those that are hopeless, among the candidates with outcomes. Half of ERROR is for losing to the default
    (`start`), the other half is shared by all the others: a bound for each opponent that the best one may have
    (Bonferroni)."""
    out: dict[Candidate, Drop] = {}
    for candidate, arm in arms.items():
        for other, opposite in arms.items():
            share = 1 if other == start else max(1, n_candidates - 2)
            lost, won = _record(arm, opposite)
            if other != candidate and evidence(lost, won) >= 2 * share / ERROR:
                out[candidate] = Drop(by=other, lost=lost, won=won)
                break
    return out


def _record(arm: Arm, opposite: Arm) -> tuple[int, int]:
    gaps = [
        sum(arm[task]) / len(arm[task]) - sum(opposite[task]) / len(opposite[task]) for task in arm.keys() & opposite
    ]
    return sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
