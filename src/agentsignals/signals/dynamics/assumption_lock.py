"""Whether the agent held on to an assumption that the person had corrected."""

from __future__ import annotations

from itertools import pairwise

from agentsignals.catalog import Measured, signal
from agentsignals.embedding import Vectors
from agentsignals.embedding.passages import Passages
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import acceptance, corrections, failure_report

WITHIN_TURNS = 3
MOVED = 0.05
"""A smaller change of nearness is no movement (design/signals.md#locked-assumptions)."""
SAME_REGIONS = 0.5


@signal(
    "dynamics.assumption_lock_turn",
    basis="heuristic",
    type="int",
    unit="turn index",
    origin="Agent Signals",
    source="derived",
    priority="P2",
    why="The person says it again, and the agent goes on as before.",
    pitfalls="Rests on corrections found by pattern, a third of those a reader finds. The drop of 30 % the seed cites"
    " is from chat agents. `confidence` is low with an embedder that counts words."
    " One value on the project's corpus.",
)
def assumption_lock_turn(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """The first turn (0-based) with a correction or failure report that is followed by another within three turns,
    without the answers in between having come nearer to it, or an acceptance lying between."""
    if len(view.turns) < 3:
        return Absent("not_applicable", "few_turns")
    complaints = {t.turn: _complaint(t.text, t.kind) for t in view.turns[1:]}
    corrected = [n for n, words in complaints.items() if words]
    why.denominator([view.turns[n] for n in corrected], "correction or failure report:")
    why.rule(f"a second complaint within {WITHIN_TURNS} turns, no acceptance between, nearness moved less than {MOVED}")
    for first, second in _pairs(view, corrected):
        moved, detail = _moved(view, vectors, first, second)
        if moved is not None and not moved:
            why.support([view.turns[first], view.turns[second]], f"turns {first} and {second}:")
            return Measured(first, {"second_turn": second, "confidence": "low", **detail})
    return Absent("none_found", f"{len(corrected)} corrections")


def _complaint(text: str, kind: str) -> bool:
    return bool(corrections(text, kind)) or failure_report(text, kind) is not None


def _pairs(view: SessionView, corrected: list[int]) -> list[tuple[int, int]]:
    """Each complaint with the next one, when it is near and nothing was accepted in between."""
    return [
        (first, second)
        for first, second in pairwise(corrected)
        if second - first <= WITHIN_TURNS
        and not any(acceptance(t.text, t.kind) for t in view.turns[first + 1 : second])
    ]


def _moved(
    view: SessionView, vectors: Vectors | Absent, first: int, second: int
) -> tuple[bool | None, dict[str, object]]:
    """Whether the answers moved between two complaints, and how that was told; None when it can't be."""
    if isinstance(vectors, Absent):
        return _moved_elsewhere(view, first, second), {"method": "region"}
    passages = view.made(Passages)
    words, before, after = vectors.of(
        [passages.prompt(view.turns[first]), passages.answer(first - 1), passages.answer(second - 1)]
    )
    near_before, near_after = words.cosine(before), words.cosine(after)
    if near_before is None or near_after is None:
        return None, {}
    # Not cut to 0..1: beyond the ends of the scale, where short complaints lie, it would hide every movement.
    step = vectors.profile.unclipped(1 - near_before) - vectors.profile.unclipped(1 - near_after)
    return abs(step) >= MOVED, {**vectors.provenance, "moved": round(step, 4)}


def _moved_elsewhere(view: SessionView, first: int, second: int) -> bool | None:
    """Whether the answers between edit other places than the one before; None when one of them edits nothing."""
    regions = view.made(_regions_by_turn)
    before = regions.get(first - 1, set())
    between = set[int]().union(*(regions.get(turn, set()) for turn in range(first, second)))
    if not before or not between:
        return None
    return len(before & between) / len(before | between) < SAME_REGIONS


def _regions_by_turn(view: SessionView) -> dict[int | None, set[int]]:
    """The numbers of the regions that each turn edits."""
    regions: dict[int | None, set[int]] = {}
    for n, region in enumerate(view.regions):
        for edit in region.edits:
            regions.setdefault(edit.turn, set()).add(n)
    return regions
