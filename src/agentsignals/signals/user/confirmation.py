"""What the agent asks leave for."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent, ToolCall
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import asked, kind_of, other_language
from agentsignals.words.prose import Span
from agentsignals.words.text import lowered

_APPROVED_BY_PERSON = frozenset(
    ("ExitPlanMode", "exit_plan_mode", "ExitSpecMode", "plan_exit", "CreatePlan", "plannotator_submit_plan")
)
"""Calls that show a plan and wait for leave to follow it."""


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
