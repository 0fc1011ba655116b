"""Changes: which files of the repository are different, and by how many lines.

In a product session the log of edits says so. In an eval the difference between start and end does, where the harness
or the patch tells it: the two are never pooled.
"""

from __future__ import annotations

from typing import Any

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.model.attempt import Attempt, PatchedFile, paths_of
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


@signal(
    "behavior.bash_mediated_edits",
    type="bool",
    unit="flag",
    context="both",
    level="attempt",
    version=3,
    origin="Agent Signals",
    harness=True,
    pitfalls="Only the pure case is true; edit tools and shell writes together are false with `mixed`.",
    why="Such patches leave no diff at call time: a cluster of its own.",
)
def bash_mediated_edits(view: SessionView, why: Evidence, edit_calls: int, touched_files: list[str]) -> Measured:
    """Whether files of the repository changed without any call to an edit tool: through the shell alone."""
    writes = [c for c in view.calls if c.shell_kind == "write"]
    why.support(writes, "shell write")
    why.counter(view.edit_calls, "edit tool")
    why.rule("no edit calls, and touched files")
    attempt = view.session.attempt
    touched = any(view.in_repo(path) for path in touched_files)
    if attempt is not None:
        why.support([*attempt.saying("summary"), *attempt.saying("patch")])
        if not attempt.has_transcript:
            return Measured(edit_calls == 0 and touched, {"shell_write_calls": None, "mixed": None})
    detail = {"shell_write_calls": len(writes), "mixed": edit_calls > 0 and bool(writes)}
    return Measured(edit_calls == 0 and touched, detail)


@signal(
    "behavior.touched_files[]",
    type="list[str]",
    unit="repo-relative path",
    context="both",
    level="attempt",
    version=3,
    origin="Agent Signals",
    harness=True,
    pitfalls="A log of writes: an edit undone later stays, where an eval harness reports the net diff (method harness"
    " or patch): never pool the two. Sorted, so the first element is not the first edit. Paths out of the shell are"
    " read off the command's text.",
)
def touched_files(view: SessionView, why: Evidence) -> Measured | Absent:
    """Files that successful edit calls changed or shell commands say they write; absolute outside the repository. In an
    eval the files that differ in the end, where harness or patch says so."""
    attempt = view.session.attempt
    if attempt is not None and (recorded := _net_files(view, attempt, why)) is not None:
        return recorded
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
    version=3,
    origin="Agent Signals",
    priority="P1",
    harness=True,
    pitfalls="Sums every edit, so rework counts each time; reformatting inflates it. Compare within one method only"
    " (harness: lines of each file's diff as the harness counts them; patch: lines added and removed in the end).",
)
def diff_lines(view: SessionView, why: Evidence) -> Measured | Absent:
    """Lines added plus lines removed by all successful edits of the repository's files (method edit_log). In an eval
    those of the net diff, where harness or patch says so."""
    attempt = view.session.attempt
    if attempt is not None and (recorded := _net_lines(view, attempt, why)) is not None:
        return recorded
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


def _net_files(view: SessionView, attempt: Attempt, why: Evidence) -> Measured | Absent | None:
    """The files that differ at the end of the attempt; None where only its edits tell."""
    listed = attempt.summary.touched_files if attempt.summary is not None else None
    patched = _submitted(view, attempt)
    if listed is None and patched is None:
        return None if attempt.has_transcript else Absent("missing_artifact", "stdout")
    in_patch = paths_of(patched)
    files = {_plain(path) for path, _ in listed} if listed is not None else in_patch
    why.support(attempt.saying("summary" if listed is not None else "patch"))
    detail: dict[str, Any] = {"method": "harness" if listed is not None else "patch"}
    if listed is not None and patched is not None and files != in_patch:
        detail.update(conflict=True, patch=sorted(in_patch))
    if attempt.has_transcript:
        detail["edit_log_only"] = sorted({e.path for e in view.edits} - files)
    return Measured(sorted(files), detail)


def _net_lines(view: SessionView, attempt: Attempt, why: Evidence) -> Measured | Absent | None:
    """The lines of the net diff; None where only the edits tell."""
    listed = attempt.summary.touched_files if attempt.summary is not None else None
    if listed is not None:
        why.support(attempt.saying("summary"))
        return Measured(sum([n for _, n in listed]), {"method": "harness"})
    patched = _submitted(view, attempt)
    if patched is None:
        return None if attempt.has_transcript else Absent("missing_artifact", "stdout")
    why.support(attempt.saying("patch"))
    added, removed = sum([f.added for f in patched]), sum([f.removed for f in patched])
    binary = [f.path for f in patched if f.binary]
    return Measured(added + removed, {"method": "patch", "added": added, "removed": removed, "binary": binary})


def _submitted(view: SessionView, attempt: Attempt) -> list[PatchedFile] | None:
    """The files of the patch; None for an empty one of an attempt that edited: handing in nothing is no proof that
    nothing changed."""
    return attempt.patch if attempt.patch or not view.repo_edits else None


def _plain(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")
