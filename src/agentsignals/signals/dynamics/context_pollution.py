"""How far the talk moves from what was asked for first.

Distances are 1 - cosine of an embedder's vectors, on the scale of that embedder's profile: 0 as near as an answer is to
its own question, 1 as far as a stranger's session (design/signals.md#context-pollution).
"""

from __future__ import annotations

from itertools import pairwise

from agentsignals.catalog import Measured, signal
from agentsignals.embedding import Vectors
from agentsignals.embedding.first_request import DIGITS, cosine_distance, request_vectors
from agentsignals.embedding.passages import WINDOW_TURNS, Passages
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

CP_MODERATE = 0.2
"""The inventory's own cut; Kemple's bands are 0.10, 0.25 and 0.45."""
CP_SEVERE = 0.45
SHARP_RISE = 0.3
SHARP_UNTIL_TURN = 2
"""A rise that steep and that early is a new subject, not a drift (design/signals.md#failure-mode)."""
_BANDS = ((2, "started_wrong"), (4, "early"), (10, "mid_session"), (15, "late_mid"))
"""Where the drift set in: up to that turn; 3-4 and 11-15, which the seed leaves open, have names of their own."""


@signal(
    "dynamics.cp_curve[]",
    type="list[float]",
    unit="CP per user turn",
    origin="Agent Signals",
    source="embedding",
    priority="P1",
    why="Shows when, and how fast, the talk left what was asked for first.",
    pitfalls="A distance of topics, no failure: half of the real sessions take up a second task. Values of two"
    " embedders are never comparable.",
)
def cp_curve(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """For each human turn how far the exchanges up to it (it and the two before, the request left out) are from the
    session's first request, 0 to 1 on the embedder's scale; null before it, and where there is nothing to compare."""
    passages = view.made(Passages)
    compared = request_vectors(view, vectors, passages)
    if isinstance(compared, Absent):
        return compared
    vectors, anchor, request = compared
    after = range(anchor.turn + 1, len(view.turns))
    windows = vectors.of_joined(passages.window(n, anchor) for n in after)
    distances = [None] * anchor.turn + [0.0] + [cosine_distance(request, window) for window in windows]
    profile = vectors.profile
    curve = [None if d is None else round(profile.pollution(d), DIGITS) for d in distances]
    why.support([anchor], "compared with every window:")
    for turn, value, distance in zip(view.turns, curve, distances, strict=True):
        if turn.turn > anchor.turn:
            why.denominator([turn], f"turn {turn.turn}: CP {value}, distance {distance}; the window ends with")
    why.rule(
        f"CP = (distance - {profile.aligned}) / ({profile.unrelated} - {profile.aligned}) cut to 0..1, the scale of"
        f" {vectors.embedder.id} ({profile.origin});"
        f" distance = 1 - cosine(request, turns N-{WINDOW_TURNS - 1}..N without it)"
    )
    detail = {**vectors.provenance, "confidence": vectors.confidence, "anchor_turn": anchor.turn, "raw": distances}
    return Measured(curve, {**detail, "shape": _shape(curve)})


def _shape(curve: list[float | None]) -> str | None:
    """`sharp`, `gradual` or `flat` (design/signals.md#failure-mode); None when no turn has a value."""
    points = [(n, v) for n, v in enumerate(curve) if v is not None]
    if not points:
        return None
    if max(v for _, v in points) <= CP_MODERATE:
        return "flat"
    rises = ((n, v - before) for (_, before), (n, v) in pairwise(points))
    sharp = any(n <= SHARP_UNTIL_TURN and rise >= SHARP_RISE for n, rise in rises)
    return "sharp" if sharp else "gradual"


@signal(
    "dynamics.max_cp",
    type="float",
    unit="CP",
    origin="Agent Signals",
    source="embedding",
    priority="P1",
    high_value=True,
    why="How far the talk got from what was asked for first.",
    pitfalls="Up to 0.20 aligned, above moderate, above 0.45 severe: on the calibrated scale only. Kemple's own bands"
    " are 0.10, 0.25 and 0.45.",
)
def max_cp(view: SessionView, why: Evidence, cp_curve: list[float | None] | Absent) -> Measured | Absent:
    """The largest value of the session's context pollution curve."""
    if isinstance(cp_curve, Absent):
        return cp_curve
    distances = [(v, -n) for n, v in enumerate(cp_curve) if v is not None]
    if len(distances) < 2:  # the request itself is always 0
        return Absent("not_computable", "no_text")
    most, at = max(distances)
    why.support([view.turns[-at]], f"CP {most}, the first of the largest, in the window ending with")
    band = "aligned" if most <= CP_MODERATE else "moderate" if most <= CP_SEVERE else "severe"
    why.rule(f"the largest of the curve; > {CP_MODERATE} moderate, > {CP_SEVERE} severe")
    return Measured(most, {"turn": -at, "band": band})


@signal(
    "dynamics.drift_onset_turn",
    type="int",
    unit="turn index",
    origin="Agent Signals",
    source="embedding",
    priority="P1",
    why="Early: it started wrong. Late: it wore off.",
    pitfalls="A single aside triggers it; `sustained` asks for two turns in a row.",
)
def drift_onset_turn(view: SessionView, why: Evidence, cp_curve: list[float | None] | Absent) -> Measured | Absent:
    """The first turn (0-based) whose context pollution is above 0.20."""
    if isinstance(cp_curve, Absent):
        return cp_curve
    away = [n for n, v in enumerate(cp_curve) if v is not None and v > CP_MODERATE]
    why.rule(f"first turn with CP > {CP_MODERATE}")
    if not away:
        return Absent("none_found", "never_above")
    onset = away[0]
    why.support([view.turns[onset]], f"CP {cp_curve[onset]} in the window ending with")
    sustained = next((n for n in away if n + 1 in away), None)
    band = next((name for last, name in _BANDS if onset <= last), "late")
    return Measured(onset, {"band": band, "sustained": sustained})
