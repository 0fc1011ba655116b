"""How far what was delivered is what was asked for."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.embedding import Vectors
from agentsignals.embedding.first_request import DIGITS, cosine_distance, request_vectors
from agentsignals.embedding.passages import Passages
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


@signal(
    "anticipation.goal_alignment_at_close",
    type="float",
    unit="similarity",
    origin="Agent Signals",
    source="embedding",
    priority="P3",
    version=2,
    why="Solid work on something else scores low.",
    pitfalls='Without a judge, words are compared: a close in other words ("done, all green") scores low though the'
    " goal is met, and a session that moved on to another task is measured by its first.",
)
def goal_alignment_at_close(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """How far what was delivered is what was asked, 0 to 1, as a judge scored it; without one, how near the agent's
    last words are to the session's first request on the embedder's scale."""
    judged = next((label for label in view.judgements("goal_alignment_at_close") if label.turn is None), None)
    if judged is not None and judged.number is not None:
        why.rule(f"{judged.labeller}: {judged.value}" + (f" ({judged.reason})" if judged.reason else ""))
        return Measured(judged.number, {"method": "judge", "labeller": judged.labeller, "reason": judged.reason})
    passages = view.made(Passages)
    compared = request_vectors(view, vectors, passages, min_turns=1)
    if isinstance(compared, Absent):
        return compared
    vectors, anchor, request = compared
    last = next((n for n in range(len(view.turns) - 1, anchor.turn - 1, -1) if passages.answer(n)), None)
    if last is None:
        return Absent("not_applicable", "no_answer")
    distance = cosine_distance(request, vectors.of([passages.answer(last)])[0])
    if distance is None:
        return Absent("not_computable", "no_words")
    why.support([anchor], "the request:")
    why.support(passages.answer_events(last)[:1], "the last answer, beginning:")
    why.rule(f"1 - calibrated distance {distance} of the two, the scale of {vectors.embedder.id}")
    detail = {
        **vectors.provenance,
        "confidence": "low",
        "anchor_turn": anchor.turn,
        "answer_turn": last,
        "raw": distance,
    }
    return Measured(round(1 - vectors.profile.pollution(distance), DIGITS), detail)
