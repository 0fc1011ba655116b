"""What tools gave back: how large it was, and which errors it told of."""

from __future__ import annotations

from collections import Counter

from agentsignals.catalog import Measured, Row, signal
from agentsignals.model import Absent, ToolCall
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import FAILURES_UNSAID, SessionView

_SIBLING = ("<tool_use_error>Sibling tool call", "<tool_use_error>Cancelled: parallel tool call")


class ToolErrors(Row):
    """Errors of one class that one tool gave, and how many results it gave at all."""

    tool: str
    error_class: str
    n: int
    n_results: int


@signal(
    "user.tool_errors_by_type[]",
    type="list[obj]",
    unit="counts",
    origin="Agent Signals",
    priority="P1",
    version=2,
    pitfalls="`sibling_cancelled` is no failure of that call: another call made beside it failed. Calls that a person"
    " refused or stopped are not listed.",
    why="A wrong path, a stale edit and a red test call for different remedies.",
)
def tool_errors_by_type(view: SessionView, why: Evidence) -> list[ToolErrors] | Absent:
    """Failed main-thread calls for each tool and class of error, most first; n_results counts the tool's results."""
    if not view.says_failures:
        return FAILURES_UNSAID
    cancelled = [c for c in view.by_status.get("cancelled", ()) if view.result_text(c).startswith(_SIBLING)]
    why.support(view.errors)
    why.counter(cancelled, "cancelled with another call:")
    why.denominator(view.answered)
    if not view.errors and not cancelled:
        return []
    errors = Counter([(c.name, c.error_class or "other") for c in view.errors])
    errors.update([(c.name, "sibling_cancelled") for c in cancelled])
    results = Counter([c.name for c in (*view.answered, *cancelled)])
    rows = [ToolErrors(tool, class_, n, results[tool]) for (tool, class_), n in errors.items()]
    return sorted(rows, key=lambda row: (-row.n, row.tool, row.error_class))


@signal(
    "user.tool_result_sizes[]",
    type="list[int]",
    unit="tokens",
    origin="Agent Signals",
    priority="P1",
    pitfalls="An estimate of text alone: a picture counts as nothing. A hosted search whose findings are not logged is"
    " left out (`unlogged`).",
    why="Read with the context growth curve: which results filled the window.",
)
def tool_result_sizes(view: SessionView, why: Evidence) -> Measured:
    """Size of each main-thread tool result in order of the results: characters / 4, rounded up."""
    answered = [c for c in view.calls if c.result_seq is not None]
    sized = [c for c in answered if c.result_tokens is not None]
    sized.sort(key=_result_place)
    why.support(sized)
    unlogged = len(answered) - len(sized)
    return Measured([c.result_tokens for c in sized], {"unlogged": unlogged} if unlogged else {})


def _result_place(call: ToolCall) -> int:
    return call.result_seq or 0
