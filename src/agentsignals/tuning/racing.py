"""Which candidates are out of the race (design/tuning.md#racing)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentsignals.tuning.effects import Effects
from agentsignals.tuning.plan import Candidate

HOPELESS = 0.05
"""A candidate is out where the model gives it a smaller probability of being better than the one of which most is
expected."""


class Drop(Struct, frozen=True):
    """Why a candidate is out."""

    leader: Candidate
    probability: float
    """That it is better than the leader, after all."""


def dropped(effects: Effects, candidates: Sequence[Candidate]) -> dict[Candidate, Drop]:
    """Those of the candidates with outcomes that are hopeless. What is seen later may bring one back."""
    if not candidates:
        return {}
    leader = max(candidates, key=effects.estimate)
    chances = {candidate: effects.better(candidate, leader) for candidate in candidates if candidate != leader}
    return {candidate: Drop(leader, chance) for candidate, chance in chances.items() if chance < HOPELESS}
