"""Behaviour: what the agent did, in what order, to which files."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from msgspec import field

from agentsignals.catalog import Measured, Row, ratio, signal
from agentsignals.derived import SessionView
from agentsignals.evidence import Evidence
from agentsignals.model import Absent, CallStatus, ToolCall

_CHANGING = frozenset(("edit", "shell_write"))


@signal(
    "behavior.turn_count",
    type="int",
    unit="steps",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="Conflates task difficulty with efficiency; compare only within a task. Not the same thing as user turns.",
)
def turn_count(view: SessionView, why: Evidence) -> int:
    """Model API calls on the main thread, each message id once; subagent and synthetic messages excluded."""
    why.support(view.steps)
    return len(view.steps)


@signal(
    "behavior.tool_call_count",
    type="int",
    unit="tool_calls",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="A read and an edit weigh the same; always publish with the class mix of behavior.tool_sequence.",
)
def tool_call_count(view: SessionView, why: Evidence) -> Measured:
    """Tool calls on the main thread, each call once; unanswered and rejected ones included."""
    why.support(view.calls)
    why.rule("every tool call of the main thread")
    return Measured(len(view.calls), {"subagent_calls": len(view.subagent_calls), "rejected": len(view.rejected)})


@signal(
    "behavior.edit_calls",
    type="int",
    unit="tool_calls",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="Blind to files changed through the shell: see behavior.bash_mediated_edits.",
    why="Says more about the work done than all tool calls together do.",
)
def edit_calls(view: SessionView, why: Evidence) -> Measured:
    """Calls to edit tools on the main thread, failed and rejected ones included; `succeeded` counts the others."""
    why.support(view.edit_calls)
    why.rule("calls of class edit, out of all tool calls of the main thread")
    return Measured(len(view.edit_calls), {"succeeded": len([c for c in view.edit_calls if c.status == "ok"])})


@signal(
    "behavior.bash_mediated_edits",
    type="bool",
    unit="flag",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="Only the pure case is true; edit tools and shell writes together are false with `mixed`.",
    why="Such patches leave no diff at call time: a cluster of its own.",
)
def bash_mediated_edits(view: SessionView, why: Evidence, edit_calls: int, touched_files: list[str]) -> Measured:
    """Whether files of the repository changed without any call to an edit tool: through the shell alone."""
    writes = [c for c in view.calls if c.shell_kind == "write"]
    why.support(writes, "shell write")
    why.counter(view.edit_calls, "edit tool")
    why.rule("no edit calls, and touched files")
    touched = any(view.in_repo(path) for path in touched_files)
    detail = {"shell_write_calls": len(writes), "mixed": edit_calls > 0 and bool(writes)}
    return Measured(edit_calls == 0 and touched, detail)


@signal(
    "behavior.touched_files[]",
    type="list[str]",
    unit="repo-relative path",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="A log of writes: an edit undone later stays, where an eval harness reports the net diff. Sorted, so the"
    " first element is not the first edit. Paths out of the shell are read off the command's text.",
)
def touched_files(view: SessionView, why: Evidence) -> Measured:
    """Files that successful edit calls changed or shell commands say they write; absolute outside the repository."""
    why.support(view.edits)
    why.rule("paths of edit calls that succeeded, and of files that shell commands write")
    by_tool = {e.path for e in view.edits if e.via == "edit_tool"}
    paths = sorted({e.path for e in view.edits})
    return Measured(
        paths,
        {
            "outside": len([path for path in paths if not view.in_repo(path)]),
            "shell_only": len(paths) - len(by_tool),
            "confidence": "high" if len(paths) == len(by_tool) else "medium",
        },
    )


@signal(
    "behavior.diff_lines",
    type="int",
    unit="lines",
    context="both",
    level="attempt",
    origin="seed 003",
    priority="P1",
    pitfalls="Sums every edit, so rework counts each time; reformatting inflates it. Compare within one method only.",
)
def diff_lines(view: SessionView, why: Evidence) -> Measured | Absent:
    """Lines added plus lines removed by all successful edits of the repository's files (method edit_log)."""
    edits = view.repo_edits
    known = [e for e in edits if e.added is not None or e.removed is not None]
    unknown = len(edits) - len(known)
    why.support(known)
    why.rule("lines added + lines removed, over the edits of the repository's files")
    why.counter((e for e in edits if e.added is None and e.removed is None), "lines unknown")
    if unknown and not known:
        return Absent("missing_field", "line_counts")
    added, removed = sum([e.added or 0 for e in known]), sum([e.removed or 0 for e in known])
    detail = {"method": "edit_log", "added": added, "removed": removed, "edits_without_lines": unknown}
    return Measured(added + removed, detail)


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
    origin="seed 003",
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
    origin="seed 003",
    pitfalls="Both extremes are bad. What a search of a whole folder finds does not count. Without an edit the whole"
    " session counts and the value is `censored`.",
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
    origin="seed 003",
    pitfalls="Claude Code refuses to edit an unread file, so 0 is rare there by construction.",
)
def files_read_before_edit(view: SessionView, why: Evidence) -> Measured:
    """Different files of the repository read, by a read tool or a shell reader, before the first change."""
    found = _looked_at(view, why, ("read",))
    before = view.calls[: view.first_edit_index]
    found.detail["shell_reads"] = len([c for c in before if c.class_ == "read" and c.command is not None])
    return found


@signal(
    "behavior.edit_to_read_ratio",
    type="float",
    unit="ratio",
    context="both",
    level="attempt",
    origin="seed 003",
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
    found: dict[str, ToolCall] = {}
    outside = 0
    for call, path in view.looked_at:
        if path in found or call.class_ not in classes:
            continue
        if view.in_repo(path):
            found[path] = call
        else:
            outside += 1
    why.support(found.values())
    if first is None:
        why.rule("nothing was changed: the whole session counts")
    else:
        why.counter([view.calls[first]], "first change")
    return Measured(len(found), {"censored": first is None, "outside": outside})
