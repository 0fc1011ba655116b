"""Whether the agent asks before it acts."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.questions import closing_question
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import other_language

_LOOKING = frozenset(("read", "search", "plan", "ask"))


@signal(
    "anticipation.clarification_sought",
    basis="heuristic",
    type="bool",
    unit="flag",
    origin="Agent Signals",
    priority="P1",
    why="Asking first is right on a vague prompt, and poor reading of a clear one.",
    pitfalls="Combine with anticipation.prompt_underspecification. An offer at the end (“Want me to …?”) is none.",
)
def clarification_sought(view: SessionView, why: Evidence) -> Measured | Absent:
    """Whether the first response asks before it acts: an asking tool first, or only looking and then a question."""
    if not view.turns or not view.responses[0]:
        return Absent("not_applicable", "no_response")
    calls = [c for c in view.calls if c.turn == view.turns[0].turn]
    why.rule("its first call asks, or it only reads, searches and plans and its last message ends in a question")
    if calls and calls[0].class_ == "ask":
        why.support(calls[:1], "first call:")
        return Measured(True, {"how": "tool", "strict": False})
    if (other := other_language(view.prose)) is not None:
        return other
    closing = None if any(c.class_ not in _LOOKING for c in calls) else closing_question(view, view.responses[0])
    if closing is None:
        why.counter(calls)
        return Measured(False, {"strict": False})
    why.matches(view.prose.matches([closing]))
    return Measured(True, {"how": "question", "strict": not calls})
