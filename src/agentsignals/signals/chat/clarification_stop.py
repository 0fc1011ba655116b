"""Whether the agent stops and asks instead of guessing."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent, ToolCall, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.questions import closing_question
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import other_language


@signal(
    "chat.agent_clarification_stop",
    basis="heuristic",
    type="bool",
    unit="flag",
    level="turn",
    origin="swe-chat",
    priority="P1",
    why="The agent stops and asks instead of guessing.",
    pitfalls="SWE-chat counts asking tools alone (`how` is tool): 1.1 to 2.6 percent of turns. Questions in text come"
    " on top; some of them only keep the talk going.",
)
def agent_clarification_stop(view: SessionView, why: Evidence) -> list[Measured | Absent]:
    """Whether the response asks the person by tool, or changes nothing and ends in a question that is no offer."""
    asking: dict[int | None, ToolCall] = {}
    for call in view.calls:
        if call.class_ == "ask":
            asking.setdefault(call.turn, call)
    changed = {e.turn for e in view.edits}
    return [_stop(view, turn, asking.get(turn.turn), turn.turn in changed, why) for turn in view.turns]


def _stop(view: SessionView, turn: Turn, call: ToolCall | None, changed: bool, why: Evidence) -> Measured | Absent:
    response = view.responses[turn.turn]
    if not response:
        return Absent("not_applicable", "no_response")
    if call is not None:
        why.support([call])
        return Measured(True, {"how": "tool"})
    if not changed and (other := other_language(view.prose)) is not None:
        return other
    closing = None if changed else closing_question(view, response)
    if closing is None:
        return Measured(False)
    why.matches(view.prose.matches([closing]))
    return Measured(True, {"how": "question"})
