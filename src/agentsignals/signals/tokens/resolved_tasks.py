"""What a solved task costs, over all attempts in the store."""

from __future__ import annotations

import math
from typing import Any

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent

MOST_WITHOUT_COST = 0.05
"""Share of attempts without a cost above which a cost per solved task would be too low."""


@signal(
    "tokens.cost_per_resolved_task",
    type="float",
    unit="USD per task",
    context="both",
    level="corpus",
    version=2,
    origin="Agent Signals",
    priority="P1",
    grows_with_output=True,
    pitfalls="Over several `treatments` it compares nothing: `by_treatment` has each. Costs nobody recorded are missing"
    " from the sum (`n_missing`).",
    why="A cost without an outcome says nothing; a cost for each attempt is undefined where the reward is 0.",
)
def cost_per_resolved_task(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """What all attempts cost together / trials that some attempt solved."""
    if not attempt_result:
        return Absent("not_applicable", "no_attempts")
    missing = len([a for a in attempt_result if a["cost_usd"] is None])
    if missing > MOST_WITHOUT_COST * len(attempt_result):
        return Absent("dependency_null", f"tokens.cost_usd: {missing} of {len(attempt_result)} attempts")
    groups: dict[str, list[dict[str, Any]]] = {}
    for attempt in attempt_result:
        groups.setdefault(attempt["treatment"], []).append(attempt)
    rows = [{"treatment": name, **_cost_of_solving(group)} for name, group in sorted(groups.items())]
    whole = _cost_of_solving(attempt_result)
    if not whole["solved"]:
        return Absent("not_computable", "zero_denominator")
    num, den = whole["cost_usd"], whole["solved"]
    return ratio(num, den, n_missing=missing, treatments=len(groups), by_treatment=rows)


def _cost_of_solving(attempts: list[dict[str, Any]]) -> dict[str, Any]:
    cost = math.fsum([a["cost_usd"] or 0.0 for a in attempts])
    solved = len({a["trial"] for a in attempts if a["reward"] == 1})
    return {"cost_usd": cost, "solved": solved, "per_solved": cost / solved if solved else None, "n": len(attempts)}
