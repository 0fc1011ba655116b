"""How far what was delivered is what was asked for."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.embedding import Vectors
from agentsignals.embedding.first_request import DIGITS, cosine_distance, request_vectors
from agentsignals.embedding.passages import Passages
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.judgements import label_detail, session_label
from agentsignals.views.session import SessionView


@signal(
    "anticipation.goal_alignment_at_close",
    type="float",
    unit="similarity",
    origin="Agent Signals",
    source="llm_judge",
    priority="P3",
    version=3,
    status="needs a judge",
    why="Solid work on something else scores low.",
    pitfalls="A session that moved on to another task is measured by its first. How near the words are is"
    " anticipation.close_request_overlap, which is no judgement.",
)
def goal_alignment_at_close(view: SessionView, why: Evidence) -> Measured | Absent:
    """How far what was delivered is what was asked, 0 to 1, as a judge scored it."""
    label = session_label(view, why, "goal_alignment_at_close")
    if isinstance(label, Absent):
        return label
    if label.number is None:
        return Absent("parse_error", "label without a number")
    return Measured(label.number, {"method": "judge", **label_detail(label)})


@signal(
    "anticipation.close_request_overlap",
    type="float",
    unit="similarity",
    origin="agentsignals",
    source="embedding",
    priority="P3",
    why="Where the words are far apart, a look at the close is worth it.",
    pitfalls='An overlap of words, no verdict: a close in other words ("done, all green") scores low though the goal is'
    " met.",
)
def close_request_overlap(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """How near the agent's last words are to the session's first request, 0 to 1, on the embedder's scale."""
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
