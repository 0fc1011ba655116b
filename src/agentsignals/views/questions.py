"""The agent's questions to the person."""

from __future__ import annotations

from agentsignals.model import MAIN, RAN, Event, ToolCall
from agentsignals.views.session import OF_AGENT, SessionView
from agentsignals.words.agent_lexicon import asked
from agentsignals.words.prose import Span

CLOSING_CHARS = 300
"""The last characters of a message, where a question is one to the person
(design/signals.md#questions-to-the-person)."""
_NO_CLARIFYING = frozenset(("confirmation", "offer"))
_CARRIED_OUT = RAN | {"error"}


def closing_question(view: SessionView, response: list[Event]) -> Span | None:
    """The last question near the end of a response's last message that neither asks for leave nor is a mere offer."""
    last = next((e for e in reversed(response) if e.kind == "text" and e.text), None)
    if last is None:
        return None
    prose = view.prose
    questions = [s for s in prose.spans_at(last, asked) if s.name not in _NO_CLARIFYING]
    return questions[-1] if questions and prose.end_of(last) - questions[-1].end <= CLOSING_CHARS else None


def cut_short(view: SessionView, seq: int) -> list[Event | ToolCall]:
    """Interruptions and refusals after that event, less those after which the agent went on: it did otherwise. Calls of
    the same step were asked for together with a refused one, and answer nothing."""
    last = next((c for c in reversed(view.calls) if c.thread == MAIN and c.status in _CARRIED_OUT), None)
    both: list[Event | ToolCall] = [*view.interrupts, *view.rejected]
    rows = [row for row in both if row.seq > seq]
    if last is None:
        return rows
    return [row for row in rows if row.seq > last.seq or (row.step is not None and row.step == last.step)]


def plan_handed_on(view: SessionView) -> bool:
    """The session ends with a plan that was approved; the work on it is another session's."""
    last = view.calls[-1] if view.calls else None
    if last is None or last.purpose != "plan_handoff" or last.status != "ok" or last.result_seq is None:
        return False
    return not any(e.kind in OF_AGENT and e.seq > last.result_seq for e in view.events)
