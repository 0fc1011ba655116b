"""Anticipation: whether the agent understood what was wanted before it was told more."""

from __future__ import annotations

import posixpath

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView, target_file


@signal(
    "anticipation.first_tool_precision",
    type="bool",
    unit="flag",
    context="both",
    version=2,
    origin="Agent Signals",
    pitfalls="A test file or a document read first and never edited is a miss, though the area may be right: `same_dir`"
    " is the softer question.",
    why="Tells understanding the task from guessing around.",
)
def first_tool_precision(view: SessionView, why: Evidence, touched_files: list[str]) -> Measured | Absent:
    """Whether the first file of the repository that a read, search or edit call was about was changed in the end."""
    touched = [path for path in touched_files if view.in_repo(path)]
    if not touched:
        return Absent("not_applicable", "no_edit")
    paths = {*touched, *(c.path for c in view.calls if c.path is not None)}
    for call in view.calls:
        path = target_file(call)
        if path is not None and view.in_repo(path) and not _is_folder(path, paths):  # failed calls are not let off
            break
    else:
        return Absent("not_applicable", "no_substantive_call")
    why.support([call], "first substantive call")
    why.denominator(view.repo_edits, "edits")
    folder = posixpath.dirname(path)
    same_dir = any(posixpath.dirname(p) == folder for p in touched)
    return Measured(path in touched, {"file": path, "class": call.class_, "same_dir": same_dir})


def _is_folder(path: str, paths: set[str]) -> bool:
    """Whether other paths of the session lie below it: some tools list folders with the call that shows files."""
    return any(other.startswith(path + "/") for other in paths)
