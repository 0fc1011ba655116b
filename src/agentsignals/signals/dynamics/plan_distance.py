"""How far the last plan is from the first."""

from __future__ import annotations

from itertools import pairwise

from agentsignals.catalog import Measured, signal
from agentsignals.embedding.lexical import split_words
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.plan import MOST_STEPS, Plan, plans
from agentsignals.views.plan_distance import Edges, distance
from agentsignals.views.session import SessionView

SAME_STEP = 0.5
"""F1 of the sets of words of two steps from which on they are one (design/signals.md#plans)."""


@signal(
    "dynamics.plan_ged",
    type="float",
    unit="normalised GED",
    origin="Agent Signals",
    source="derived",
    priority="P2",
    why="A plan that is another in the end says that the task was not understood when it began.",
    pitfalls="Plans in prose and to-do lists of one plan differ in words: see `sources`. RECAP compares plans of two"
    " writers and has no threshold. A second task in the same session brings a plan of its own.",
)
def plan_ged(view: SessionView, why: Evidence) -> Measured | Absent:
    """Graph edit distance of the session's first and last plan, out of taking one apart and building the other anew: 0
    the same steps in the same order, 1 nothing in common."""
    versions = plans(view)
    if not versions:
        return Absent("not_applicable", "no_plan")
    first, last = versions[0], versions[-1]
    why.support([first.call], "first plan:")
    if len(versions) == 1:
        why.rule("only one plan state: 0")
        return Measured(0.0, {"single_plan": True, "raw": 0, "steps": [_size(first)], "sources": [first.source]})
    why.support([last.call], "last plan:")
    alike = [[_same(a, b) for b in _words(last)] for a in _words(first)]
    apart = distance(alike, _size(last), _edges(first), _edges(last))
    steps_alike = sum(any(row) for row in alike)
    why.rule(
        f"{apart.edits} changes of steps and of their order out of {apart.largest}; steps of one word set"
        f" (F1 >= {SAME_STEP}) are the same: {steps_alike} of {_size(first)}"
    )
    detail = {
        "raw": apart.edits,
        "num": apart.edits,
        "den": apart.largest,
        "method": "exact" if apart.exact else "upper_bound",
        "states": len(versions),
        "steps": [_size(first), _size(last)],
        "sources": [first.source, last.source],
        "confidence": "high" if first.source == last.source else "low",
    }
    return Measured(apart.edits / apart.largest, detail)


def _size(plan: Plan) -> int:
    return min(len(plan.steps), MOST_STEPS)


def _words(plan: Plan) -> list[frozenset[str]]:
    return [frozenset(split_words(step)) for step in plan.steps[:MOST_STEPS]]


def _same(first: frozenset[str], other: frozenset[str]) -> bool:
    return first == other or 2 * len(first & other) >= SAME_STEP * (len(first) + len(other))


def _edges(plan: Plan) -> Edges:
    kept = range(_size(plan))
    return set(pairwise(kept)) | {(a, b) for a, b in plan.after if a in kept and b in kept}
