"""How near each answer stays to what was asked for first."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.embedding import Vectors
from agentsignals.embedding.first_request import DIGITS, cosine_distance, request_vectors
from agentsignals.embedding.passages import Passages
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


@signal(
    "dynamics.intent_coherence_curve[]",
    type="list[float]",
    unit="coherence per response",
    origin="Agent Signals",
    source="embedding",
    priority="P1",
    why="A sudden drop is drift, a low plateau an answer to the wrong question.",
    pitfalls='Short answers ("done") are far from everything. The seed has a formula only, no path.',
)
def intent_coherence_curve(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """For each response how near the agent's visible words are to the session's first request, 0 to 1 on the embedder's
    scale; null for responses without words."""
    passages = view.made(Passages)
    compared = request_vectors(view, vectors, passages)
    if isinstance(compared, Absent):
        return compared
    vectors, anchor, request = compared
    answers = vectors.of(passages.answer(n) for n in range(anchor.turn, len(view.turns)))
    distances = [None] * anchor.turn + [cosine_distance(request, answer) for answer in answers]
    curve = [None if d is None else round(1 - vectors.profile.pollution(d), DIGITS) for d in distances]
    why.support([anchor], "compared with every answer:")
    for n, value in enumerate(curve):
        if value is not None:
            why.denominator(passages.answer_events(n)[:1], f"turn {n}: coherence {value}, answer beginning")
    why.rule(f"1 - calibrated distance of request and answer, the scale of {vectors.embedder.id}")
    detail = {**vectors.provenance, "confidence": vectors.confidence, "anchor_turn": anchor.turn, "raw": distances}
    return Measured(curve, detail)
