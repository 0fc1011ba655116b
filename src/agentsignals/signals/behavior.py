"""The agent's actions, their order, and the files they concern."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from msgspec import field

from agentsignals.model import Absent, Attempt, CallStatus, Edit, PatchedFile, ToolCall, patched_paths
from agentsignals.signals import Measured, Row, ratio, signals_with
from agentsignals.views.session import Evidence, SessionView

signal = signals_with(context="both", level="attempt", harness=True, origin="Agent Signals")

_CHANGING = frozenset(("edit", "shell_write"))


@signal("behavior.turn_count", "int", "steps", version=2)
def turn_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Model API calls, rows of `steps` with thread main: each message id once, no synthetic messages. In an eval what
    the harness counted, where it says so.

    Pitfalls: Conflates task difficulty with efficiency; compare only within a task. Not the same thing as user turns.
    """
    if (recorded := _recorded(view, why, "turns", len(view.steps))) is not None:
        return recorded
    why.support(view.steps)
    return Measured(len(view.steps))


@signal("behavior.tool_call_count", "int", "tool_calls", version=2)
def tool_call_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Rows of `tool_calls` with thread main, unanswered and rejected ones included. In an eval what the harness
    counted, where it says so.

    Pitfalls: A read and an edit weigh the same; always publish with the class mix of behavior.tool_sequence.
    """
    if (recorded := _recorded(view, why, "tool_calls", len(view.calls))) is not None:
        return recorded
    why.support(view.calls)
    why.rule("every tool call of the main thread")
    return Measured(len(view.calls), {"subagent_calls": len(view.subagent_calls), "rejected": len(view.rejected)})


@signal("behavior.edit_calls", "int", "tool_calls", version=2)
def edit_calls(view: SessionView, why: Evidence) -> Measured | Absent:
    """Main-thread calls of class edit, whatever their status; `succeeded` counts those with status ok. In an eval what
    the harness counted, where it says so.

    Pitfalls: Blind to files changed through the shell: see behavior.bash_mediated_edits.
    Why: Describes the work better than the number of tool calls.
    """
    if (recorded := _recorded(view, why, "edit_calls", len(view.edit_calls))) is not None:
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


@signal("behavior.tool_sequence[]", "list[obj]", "ordered calls", high_value=True, harness=False)
def tool_sequence(view: SessionView, why: Evidence) -> Measured:
    """Main-thread tool calls in transcript order: number, name, class, file, status.

    Rows of `tool_calls` with thread main by `seq`. Keys: i (from 0), name, class (the fine class), file (`path`),
    status.

    Pitfalls: Names differ between agents, so n-grams across agents use class.
    Why: The order tells styles apart: read then edit, shell after shell (stuck), edit then test (checks its work).
    """
    why.support(view.calls)
    why.rule("every tool call of the main thread, in order")
    classes = view.classes
    pairs = Counter(pairwise(classes))
    sequence = [
        Called(i, c.name, k, c.path, c.status) for i, (c, k) in enumerate(zip(view.calls, classes, strict=True))
    ]
    return Measured(sequence, {"class_bigrams": {f"{a}>{b}": n for (a, b), n in pairs.items()}})


@signal("behavior.files_searched_before_edit", "int", "files", harness=False)
def files_searched_before_edit(view: SessionView, why: Evidence) -> Measured:
    """Distinct repository files that a read or search targeted before the first change: as
    behavior.files_read_before_edit, over calls of class read or search.

    Pitfalls: Both extremes are bad. What a search of a whole folder finds does not count. Without an edit the whole
    session counts and the value is `censored`. The same figure as behavior.files_read_before_edit on every eval run of
    the project's corpus.
    Why: Shows how thoroughly the code was located before the first change; 0 is a blind patch.
    """
    return _looked_at(view, why, ("read", "search"))


@signal("behavior.files_read_before_edit", "int", "files", harness=False)
def files_read_before_edit(view: SessionView, why: Evidence) -> Measured:
    """Distinct repository files read, by tool or shell, before the first change.

    Main-thread calls of class read before the first change (all calls where nothing was changed), each different target
    file in the repository once; failed reads count. Commands that print several files have no target and do not count.

    Pitfalls: Claude Code refuses to edit an unread file, so 0 is rare there by construction.
    """
    measured = _looked_at(view, why, ("read",))
    before = view.calls[: view.first_edit_index]
    measured.detail["shell_reads"] = len([c for c in before if c.class_ == "read" and c.command is not None])
    return measured


@signal("behavior.edit_to_read_ratio", "float", "ratio", harness=False)
def edit_to_read_ratio(view: SessionView, why: Evidence) -> Measured | Absent:
    """Main-thread calls of fine class edit or shell_write, failed ones included, over those of class read, which
    commands that print files have, too.

    Pitfalls: High is decisive, low is exploring or stuck; only relative to the same agent.
    """
    changed = [c for c, k in zip(view.calls, view.classes, strict=True) if k in _CHANGING]
    reads = [c for c in view.calls if c.class_ == "read"]
    why.support(changed)
    why.denominator(reads)
    return ratio(len(changed), len(reads))


def _looked_at(view: SessionView, why: Evidence, classes: tuple[str, ...]) -> Measured:
    """Count the files of the repository that calls of these classes were about before the first change, each once."""
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


def _recorded(view: SessionView, why: Evidence, field: str, counted: int) -> Measured | Absent | None:
    """Return the harness's count, with the transcript's in the detail; None where only the transcript has one."""
    attempt = view.session.attempt
    count = None if attempt is None else getattr(attempt.summary, field, None)
    if attempt is None or count is None:
        return None if attempt is None or attempt.has_transcript else Absent("missing_artifact", "stdout")
    why.support(attempt.saying("summary"))
    why.rule("as the harness counted it")
    if not attempt.has_transcript:
        return Measured(count, {"method": "harness"})
    return Measured(count, {"method": "harness", "jsonl_count": counted, "conflict": count != counted})


# Changed files and lines: in a product session from the log of edits, in an eval from the difference between start and
# end, where the harness or the patch has it. The two are never pooled.


@signal("behavior.bash_mediated_edits", "bool", "flag", version=4)
def bash_mediated_edits(view: SessionView, why: Evidence, edit_calls: int, touched_files: list[str]) -> Measured:
    """True if the shell changed a repository file that no edit tool changed.

    True where behavior.touched_files[] has a file of the repository that no row of `edits` with via = 'edit_tool'
    has. `pure`: no call of class edit at all. Of an eval attempt without a conversation only `pure` is known, and
    is the value.

    Pitfalls: `pure` where no edit tool was called at all. A command that writes through a program (`node -e`, a fixing
    linter) is not known as a write, so its files are missing in a product session.
    Why: Such changes have no diff in the log, so attribution and review can miss them.
    """
    touched = [path for path in touched_files if view.in_repo(path)]
    pure = edit_calls == 0 and bool(touched)
    attempt = view.session.attempt
    if attempt is not None:
        why.support([*attempt.saying("summary"), *attempt.saying("patch")])
        if not attempt.has_transcript:
            return Measured(pure, {"shell_write_calls": None, "pure": pure})
    by_tool = {edit.path for edit in view.edits if edit.via == "edit_tool"}
    files = [path for path in touched if path not in by_tool]
    writes = [c for c in view.calls if c.shell_kind == "write"]
    why.support(writes, "shell write")
    why.counter(view.edit_calls, "edit tool")
    why.rule(f"touched files without those of edit calls that succeeded: {len(files)}")
    return Measured(bool(files), {"shell_write_calls": len(writes), "files": len(files), "pure": pure})


@signal("behavior.touched_files[]", "list[str]", "repo-relative path", version=3)
def touched_files(view: SessionView, why: Evidence) -> Measured | Absent:
    """Files changed: different `path` of the main thread's `edits`, sorted; absolute outside the repository. In an eval
    the files that differ in the end, where harness or patch says so.

    Pitfalls: A log of writes: an edit undone later stays, where an eval harness reports the net diff (method harness or
    patch): never pool the two. Sorted, so the first element is not the first edit. Paths out of the shell are read off
    the command's text.
    """
    attempt = view.session.attempt
    if attempt is not None:
        # The files that differ at the end of the attempt, where harness or patch has them.
        listed = attempt.summary.touched_files if attempt.summary is not None else None
        patched = _submitted(view, attempt)
        if listed is None and patched is None and not attempt.has_transcript:
            return Absent("missing_artifact", "stdout")
        if listed is not None or patched is not None:
            files = in_patch = patched_paths(patched)
            if listed is not None:
                files = frozenset(path.replace("\\", "/").removeprefix("./") for path, _ in listed)
            why.support(attempt.saying("summary" if listed is not None else "patch"))
            detail: dict[str, Any] = {"method": "harness" if listed is not None else "patch"}
            if listed is not None and patched is not None and files != in_patch:
                detail.update(conflict=True, patch=sorted(in_patch))
            if attempt.has_transcript:
                detail["edit_log_only"] = sorted({e.path for e in view.edits} - files)
            return Measured(sorted(files), detail)
    why.support(view.edits)
    why.rule("paths of edit calls that succeeded, and of files that shell commands write")
    by_tool = {e.path for e in view.edits if e.via == "edit_tool"}
    paths = sorted({e.path for e in view.edits})
    outside, shell_only = len([path for path in paths if not view.in_repo(path)]), len(paths) - len(by_tool)
    confidence = "medium" if shell_only else "high"
    return Measured(paths, {"outside": outside, "shell_only": shell_only, "confidence": confidence})


@signal("behavior.diff_lines", "int", "lines", version=3, priority="P1")
def diff_lines(view: SessionView, why: Evidence) -> Measured | Absent:
    """`added` + `removed`, summed over the main thread's `edits` of the repository's files (method edit_log). In an
    eval those of the net diff, where harness or patch says so.

    Rows without line counts are left out; absent where no row has any, 0 without an edit.

    Pitfalls: Sums every edit, so rework counts each time; reformatting inflates it. Compare within one method only
    (harness: lines of each file's diff as the harness counts them; patch: lines added and removed in the end).
    """
    attempt = view.session.attempt
    if attempt is not None:
        # The lines of the net diff, where harness or patch has them.
        listed = attempt.summary.touched_files if attempt.summary is not None else None
        patched = _submitted(view, attempt)
        if listed is not None:
            why.support(attempt.saying("summary"))
            return Measured(sum([n for _, n in listed]), {"method": "harness"})
        if patched is not None:
            why.support(attempt.saying("patch"))
            added, removed = sum([f.added for f in patched]), sum([f.removed for f in patched])
            binary = [f.path for f in patched if f.binary]
            return Measured(added + removed, {"method": "patch", "added": added, "removed": removed, "binary": binary})
        if not attempt.has_transcript:
            return Absent("missing_artifact", "stdout")
    edits = view.repo_edits
    counted = [e for e in edits if e.added is not None or e.removed is not None]
    unknown = len(edits) - len(counted)
    why.support(counted)
    why.rule("lines added + lines removed, over the edits of the repository's files")
    why.counter((e for e in edits if e.added is None and e.removed is None), "lines unknown")
    if unknown and not counted:
        return Absent("missing_field", "line_counts")
    added, removed = sum([e.added or 0 for e in counted]), sum([e.removed or 0 for e in counted])
    detail = {"method": "edit_log", "added": added, "removed": removed, "edits_without_lines": unknown}
    return Measured(added + removed, detail)


def _submitted(view: SessionView, attempt: Attempt) -> list[PatchedFile] | None:
    """Return the files of the patch; None for an empty one of an attempt that edited, which proves nothing."""
    return attempt.patch if attempt.patch or not view.repo_edits else None


@signal("behavior.localization_mode", "obj", "labels", hindsight="the verdict", context="eval", source="harness",
        priority="P1")  # fmt: skip
def localization_mode(view: SessionView, why: Evidence, files_searched_before_edit: int | Absent) -> Measured | Absent:
    """The controller's label for how the attempt located the code: `attempt1_mode`, `trial_recovery_mode`,
    `final_failure_mode`; `mode` is the one for this attempt.

    Of `localization` in the attempt's facts: attempt1Mode, trialRecoveryMode, finalFailureMode; absent without it.

    Pitfalls: The controller's view in its own words, not the agent's; `localization_class` is this project's. No value
    on the project's corpus.
    """
    attempt = view.session.attempt
    if attempt is None or attempt.localization is None:
        return Absent("missing_artifact", "harbor_result")
    why.support(attempt.saying("localization"))
    logged = attempt.localization.get
    first, retry, last = logged("attempt1Mode"), logged("trialRecoveryMode"), logged("finalFailureMode")
    detail: dict[str, Any] = {"mode": retry if attempt.attempt_index else first}
    if attempt.gold_patch is not None and attempt.has_transcript:
        detail["localization_class"] = _class(view, patched_paths(attempt.gold_patch), files_searched_before_edit)
    return Measured({"attempt1_mode": first, "trial_recovery_mode": retry, "final_failure_mode": last}, detail)


@signal("behavior.localized_correct_file", "bool", "flag", high_value=True, hindsight="the gold patch", context="eval")
def localized_correct_file(
    view: SessionView, why: Evidence, files_searched_before_edit: int | Absent, touched_files: list[str] | Absent
) -> Measured | Absent:
    """Whether the first file that the attempt changed, of those there before it, is one that the gold patch changes.

    True where the first row of the main thread's `edits` of files of the repository whose file the attempt had not
    created, or that the gold patch changes, too, has a file of the gold patch. False where all changed files are new
    ones. Without such rows behavior.touched_files[] must name one file that the patch does not create.

    Pitfalls: With method single_touched the one file of the net diff stands for the first edit. A list of touched files
    is in no order: its first element is not the first edit.
    Why: Tells a wrong place from a wrong fix: the commonest failure is the wrong place.
    """
    attempt = view.session.attempt
    if attempt is None or attempt.gold_patch is None:
        return Absent("missing_artifact", "gold_patch")
    gold = patched_paths(attempt.gold_patch)
    why.denominator(attempt.saying("gold_patch"), "gold:")
    edits = view.repo_edits
    if not edits:
        # No order of edits is known: the one file that differs in the end stands for the first edit.
        if isinstance(touched_files, Absent):
            return Absent("missing_artifact", "session_jsonl")
        if not touched_files:
            return Absent("not_applicable", "no_edit")
        new = {f.path for f in attempt.patch or () if f.op == "create"}
        old = [path for path in touched_files if path not in new or _is_in(path, gold)]
        if len(old) > 1:
            return Absent("not_computable", "order_unknown")
        why.support([*attempt.saying("summary"), *attempt.saying("patch")])
        file = old[0] if old else None
        return Measured(file is not None and _is_in(file, gold), {"method": "single_touched", "file": file})
    first = _first(edits, gold)
    why.support([first] if first is not None else edits, "first change:" if first is not None else "new file:")
    detail = {
        "method": "edit_order",
        "file": first.path if first is not None else None,
        "localization_class": _class(view, gold, files_searched_before_edit),
    }
    return Measured(first is not None and _is_in(first.path, gold), detail)


def _first(edits: list[Edit], gold: frozenset[str]) -> Edit | None:
    """Return the first change of a file that existed before the attempt, or that the gold patch creates too."""
    new: set[str] = set()
    for edit in edits:
        if edit.op == "create":
            new.add(edit.path)
        if edit.path not in new or _is_in(edit.path, gold):
            return edit
    return None


def _class(view: SessionView, gold: frozenset[str], searched: int | Absent) -> str:
    """Return hit_first, hit_late, wrong_file, blind_edit or no_edit (design/signals.md#localisation)."""
    edits = view.repo_edits
    if not edits:
        return "no_edit"
    if searched == 0:
        return "blind_edit"
    first = _first(edits, gold)
    if first is not None and _is_in(first.path, gold):
        return "hit_first"
    return "hit_late" if any(_is_in(e.path, gold) for e in edits) else "wrong_file"


def _is_in(path: str, gold: frozenset[str]) -> bool:
    """Return whether the gold patch changes the file. A path is absolute where the repository's folder is unknown."""
    return path in gold or (path.startswith("/") and any(path.endswith("/" + g) for g in gold))
