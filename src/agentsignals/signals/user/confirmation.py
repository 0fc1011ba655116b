"""What the agent asks leave for."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent, ToolCall
from agentsignals.model.roles import decoded
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import asked, kind_of, other_language
from agentsignals.words.prose import Span
from agentsignals.words.text import lowered


def _questions_of(call: ToolCall) -> list[str]:
    roles = decoded(call.argument_roles)
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return []  # arguments cut off or of another shape ask nothing that could be read
    several = arguments.get(roles.questions)
    asked_for = [arguments, *(several if isinstance(several, list) else ())]
    texts = [question.get(roles.question) for question in asked_for if isinstance(question, dict)]
    return [text for text in texts if isinstance(text, str)]


def _wants_leave(call: ToolCall) -> bool:
    if call.purpose == "plan_handoff":
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
