"""Anticipation: whether the agent understood what was wanted before it was told more."""

from __future__ import annotations

import posixpath

from agentsignals.catalog import Measured, signal
from agentsignals.derived import SessionView, target_file
from agentsignals.evidence import Evidence
from agentsignals.model import Absent


@signal(
    "anticipation.first_tool_precision",
    type="bool",
    unit="flag",
    context="both",
    origin="seed 003",
    pitfalls="A test file or a document read first and never edited is a miss, though the area may be right: `same_dir`"
    " is the softer question.",
    why="Tells understanding the task from guessing around.",
)
def first_tool_precision(view: SessionView, why: Evidence, touched_files: list[str]) -> Measured | Absent:
    """Whether the first file of the repository that a read, search or edit call was about was changed in the end."""
    touched = [path for path in touched_files if view.in_repo(path)]
    if not touched:
        return Absent("not_applicable", "no_edit")
    for call in view.calls:
        path = target_file(call)
        if path is not None and view.in_repo(path):  # failed calls are not let off
            break
    else:
        return Absent("not_applicable", "no_substantive_call")
    why.support([call], "first substantive call")
    why.denominator(view.repo_edits, "edits")
    folder = posixpath.dirname(path)
    same_dir = any(posixpath.dirname(p) == folder for p in touched)
    return Measured(path in touched, {"file": path, "class": call.class_, "same_dir": same_dir})
