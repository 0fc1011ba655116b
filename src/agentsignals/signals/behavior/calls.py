"""Behaviour: what the agent did, in what order, to which files."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Literal

from msgspec import field

from agentsignals.catalog import Measured, Row, ratio, signal
from agentsignals.model import Absent, CallStatus, ToolCall
from agentsignals.model.attempt import Attempt
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

_CHANGING = frozenset(("edit", "shell_write"))


@signal(
    "behavior.turn_count",
    type="int",
    unit="steps",
    context="both",
    level="attempt",
    version=2,
    origin="Agent Signals",
    harness=True,
    pitfalls="Conflates task difficulty with efficiency; compare only within a task. Not the same thing as user turns.",
)
def turn_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Model API calls on the main thread, each message id once; subagent and synthetic messages excluded. In an eval
    what the harness counted, where it says so."""
    attempt = view.session.attempt
    if attempt is not None and (recorded := _recorded(attempt, why, "turns", len(view.steps))) is not None:
        return recorded
    why.support(view.steps)
    return Measured(len(view.steps))


@signal(
    "behavior.tool_call_count",
    type="int",
    unit="tool_calls",
    context="both",
    level="attempt",
    version=2,
    origin="Agent Signals",
    harness=True,
    pitfalls="A read and an edit weigh the same; always publish with the class mix of behavior.tool_sequence.",
)
def tool_call_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Tool calls on the main thread, each call once; unanswered and rejected ones included. In an eval what the harness
    counted, where it says so."""
    attempt = view.session.attempt
    if attempt is not None and (recorded := _recorded(attempt, why, "tool_calls", len(view.calls))) is not None:
        return recorded
    why.support(view.calls)
    why.rule("every tool call of the main thread")
    return Measured(len(view.calls), {"subagent_calls": len(view.subagent_calls), "rejected": len(view.rejected)})


@signal(
    "behavior.edit_calls",
    type="int",
    unit="tool_calls",
    context="both",
    level="attempt",
    version=2,
    origin="Agent Signals",
    harness=True,
    pitfalls="Blind to files changed through the shell: see behavior.bash_mediated_edits.",
    why="Says more about the work done than all tool calls together do.",
)
def edit_calls(view: SessionView, why: Evidence) -> Measured | Absent:
    """Calls to edit tools on the main thread, failed and rejected ones included; `succeeded` counts the others. In an
    eval what the harness counted, where it says so."""
    attempt = view.session.attempt
    if attempt is not None and (recorded := _recorded(attempt, why, "edit_calls", len(view.edit_calls))) is not None:
        return recorded
    why.support(view.edit_calls)
    why.rule("calls of class edit, out of all tool calls of the main thread")
    return Measured(len(view.edit_calls), {"succeeded": len([c for c in view.edit_calls if c.status == "ok"])})


class Called(Row):
    """A call in the sequence."""

    i: int
    name: str
    class_: str = field(name="class")
    file: str | None
    status: CallStatus


@signal(
    "behavior.tool_sequence[]",
    type="list[obj]",
    unit="ordered calls",
    context="both",
    level="attempt",
    origin="Agent Signals",
    high_value=True,
    pitfalls="Names differ between agents, so n-grams across agents use class.",
    why="The order tells styles apart: read then edit, shell after shell (stuck), edit then test (checks its work).",
)
def tool_sequence(view: SessionView, why: Evidence) -> Measured:
    """Main-thread tool calls in transcript order: number, name, class, file, status."""
    why.support(view.calls)
    why.rule("every tool call of the main thread, in order")
    classes = view.classes
    pairs = Counter(pairwise(classes))
    sequence = [
        Called(i, c.name, k, c.path, c.status) for i, (c, k) in enumerate(zip(view.calls, classes, strict=True))
    ]
    return Measured(sequence, {"class_bigrams": {f"{a}>{b}": n for (a, b), n in pairs.items()}})


@signal(
    "behavior.files_searched_before_edit",
    type="int",
    unit="files",
    context="both",
    level="attempt",
    origin="Agent Signals",
    pitfalls="Both extremes are bad. What a search of a whole folder finds does not count. Without an edit the whole"
    " session counts and the value is `censored`."
    " The same figure as behavior.files_read_before_edit on every eval run of the project's corpus.",
    why="How thoroughly the place was located before the first change; 0 is a blind patch.",
)
def files_searched_before_edit(view: SessionView, why: Evidence) -> Measured:
    """Different files of the repository that a read or a search named as its target before the first change."""
    return _looked_at(view, why, ("read", "search"))


@signal(
    "behavior.files_read_before_edit",
    type="int",
    unit="files",
    context="both",
    level="attempt",
    origin="Agent Signals",
    pitfalls="Claude Code refuses to edit an unread file, so 0 is rare there by construction.",
)
def files_read_before_edit(view: SessionView, why: Evidence) -> Measured:
    """Different files of the repository read, by a read tool or a shell reader, before the first change."""
    measured = _looked_at(view, why, ("read",))
    before = view.calls[: view.first_edit_index]
    measured.detail["shell_reads"] = len([c for c in before if c.class_ == "read" and c.command is not None])
    return measured


@signal(
    "behavior.edit_to_read_ratio",
    type="float",
    unit="ratio",
    context="both",
    level="attempt",
    origin="Agent Signals",
    pitfalls="High is decisive, low is exploring or stuck; only relative to the same agent.",
)
def edit_to_read_ratio(view: SessionView, why: Evidence) -> Measured | Absent:
    """Edits, shell writes included, for each read."""
    changed = [c for c, k in zip(view.calls, view.classes, strict=True) if k in _CHANGING]
    reads = [c for c in view.calls if c.class_ == "read"]
    why.support(changed)
    why.denominator(reads)
    return ratio(len(changed), len(reads))


def _looked_at(view: SessionView, why: Evidence, classes: tuple[str, ...]) -> Measured:
    """How many files of the repository calls of these classes were about before the first change, each once."""
    first = view.first_edit_index
    first_by_path: dict[str, ToolCall] = {}
    outside = 0
    for call, path in view.looked_at:
        if path in first_by_path or call.class_ not in classes:
            continue
        if view.in_repo(path):
            first_by_path[path] = call
        else:
            outside += 1
    why.support(first_by_path.values())
    if first is None:
        why.rule("nothing was changed: the whole session counts")
    else:
        why.counter([view.calls[first]], "first change")
    return Measured(len(first_by_path), {"censored": first is None, "outside": outside})


def _recorded(
    attempt: Attempt, why: Evidence, field: Literal["turns", "tool_calls", "edit_calls"], counted: int
) -> Measured | Absent | None:
    """What the harness counted, beside what the transcript shows; None where the transcript alone tells."""
    count = getattr(attempt.summary, field, None)
    if count is None:
        return None if attempt.has_transcript else Absent("missing_artifact", "stdout")
    why.support(attempt.saying("summary"))
    why.rule("as the harness counted it")
    if not attempt.has_transcript:
        return Measured(count, {"method": "harness"})
    return Measured(count, {"method": "harness", "jsonl_count": counted, "conflict": count != counted})
