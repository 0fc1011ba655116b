"""What the agent asks the person: for leave, for a choice, for what it needs to know."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent, Event, ToolCall, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import asked, kind_of, other_language
from agentsignals.words.prose import Span
from agentsignals.words.text import lowered

CLOSING_CHARS = 300
"""The last characters of a message, where a question is one to the person
(design/signals.md#questions-to-the-person)."""
_APPROVED_BY_PERSON = frozenset(
    ("ExitPlanMode", "exit_plan_mode", "ExitSpecMode", "plan_exit", "CreatePlan", "plannotator_submit_plan")
)
"""Calls that show a plan and wait for leave to follow it."""
_LOOKING = frozenset(("read", "search", "plan", "ask"))


_NO_CLARIFYING = frozenset(("confirmation", "offer"))


class _Asked(Struct):
    """A question of an asking tool."""

    question: Any = None


class _Arguments(Struct):
    """The arguments of an asking tool: one question or several."""

    question: Any = None
    questions: list[_Asked] = field(default_factory=list)


_decode = msgspec.json.Decoder(_Arguments).decode


def _questions_of(call: ToolCall) -> list[str]:
    try:
        arguments = _decode(call.arguments)
    except msgspec.DecodeError:
        return []  # arguments cut off or of another shape ask nothing that could be read
    return [text for text in (arguments.question, *(q.question for q in arguments.questions)) if isinstance(text, str)]


def _wants_leave(call: ToolCall) -> bool:
    if call.name in _APPROVED_BY_PERSON:
        return True
    texts = map(lowered, _questions_of(call)) if call.class_ == "ask" else ()
    return any(kind_of(text) == "confirmation" for text in texts)


@signal(
    "user.confirmation_requests",
    type="int",
    unit="requests",
    origin="Agent Signals",
    source="regex",
    priority="P1",
    why="Right on a risky step, noise on a trivial one.",
    pitfalls="Permission dialogs of the client are not the agent's. Of 33 read, 33 asked for leave. English only.",
)
def confirmation_requests(view: SessionView, why: Evidence) -> Measured | Absent:
    """Messages in which the agent asks for leave ("Should I …?"), plans shown for approval, such questions by tool."""
    if (other := other_language(view.prose)) is not None:
        return other
    spans = view.prose.spans(asked)
    by_kind: dict[str, dict[object, Span]] = {}
    for span in spans:
        event = view.prose.event(span)
        by_kind.setdefault(span.name, {}).setdefault(
            ("step", event.step) if event.step is not None else event.seq, span
        )
    confirming = by_kind.get("confirmation", {})
    calls = [c for c in view.calls if c.class_ in ("plan", "ask") and _wants_leave(c)]
    why.matches(view.prose.matches(confirming.values()))
    why.support(calls, "asked by tool:")
    detail = {
        "by_text": len(confirming),
        "by_tool": len(calls),
        "preference_questions": len(by_kind.get("preference", ())),
    }
    return Measured(len(confirming) + len(calls), detail)


@signal(
    "anticipation.clarification_sought",
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
    closing = None if any(c.class_ not in _LOOKING for c in calls) else _closing_question(view, view.responses[0])
    if closing is None:
        why.counter(calls)
        return Measured(False, {"strict": False})
    why.matches(view.prose.matches([closing]))
    return Measured(True, {"how": "question", "strict": not calls})


@signal(
    "chat.agent_clarification_stop",
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
    closing = None if changed else _closing_question(view, response)
    if closing is None:
        return Measured(False)
    why.matches(view.prose.matches([closing]))
    return Measured(True, {"how": "question"})


def _closing_question(view: SessionView, response: list[Event]) -> Span | None:
    """The last question near the end of a response's last message that neither asks for leave nor is a mere offer."""
    last = next((e for e in reversed(response) if e.kind == "text" and e.text), None)
    if last is None:
        return None
    prose = view.prose
    questions = [s for s in prose.spans(asked) if prose.event(s) is last and s.name not in _NO_CLARIFYING]
    end = prose.end_of(last)
    return questions[-1] if questions and end - questions[-1].end <= CLOSING_CHARS else None
