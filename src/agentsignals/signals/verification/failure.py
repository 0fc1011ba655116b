"""Why an attempt failed, and how near its patch came to the gold patch."""

from __future__ import annotations

from typing import Any, get_args

from msgspec.structs import asdict

from agentsignals.catalog import Measured, signal
from agentsignals.edits.localization import Level
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.failure import CLASSES, failure_of, located
from agentsignals.views.session import SessionView


@signal(
    "verification.failure_class",
    type="enum",
    unit="|".join(CLASSES),
    context="eval",
    level="attempt",
    origin="this project",
    source="harness",
    harness=True,
    high_value=True,
    basis="heuristic",
    pitfalls="The first rule that holds, of those whose evidence is recorded; `because` says which. A wrong place is"
    " one by the gold patch: a fix elsewhere that fixes a test is none.",
    why="What to mend differs: a budget, a prompt, the search for the place, the checks before the end.",
    hindsight="the verdict",
)
def failure_class(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """Why a failed attempt failed: one class of eleven, by ordered rules."""
    if view.session.attempt is None:
        return Absent("missing_artifact", "result_json")
    failure = failure_of(view, touched_files if isinstance(touched_files, list) else None)
    if failure is None:
        return Absent("not_applicable", "not_failed")
    why.support(failure.rows)
    why.rule(f"{failure.name}: {failure.because}")
    detail: dict[str, Any] = {"because": failure.because}
    if failure.rows:
        detail["seq"] = failure.rows[0].seq
    if failure.file is not None:
        detail["file"] = failure.file
    return Measured(failure.name, detail)


@signal(
    "verification.patch_localization",
    type="enum",
    unit="|".join(get_args(Level)),
    context="eval",
    level="attempt",
    origin="this project",
    harness=True,
    pitfalls="Against the gold patch, which is one fix of several. Functions are known where both diffs show them (the"
    " heading of a hunk may name the class alone); lines are compared by what stands on them.",
    why="Whether it failed to find the place, or to mend it.",
    hindsight="the gold patch",
)
def patch_localization(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """The finest place that the patch has in common with the gold patch: a line, a function, a file, or none."""
    attempt = view.session.attempt
    if attempt is None or not attempt.gold_patch:
        return Absent("missing_artifact", "gold_patch")
    if attempt.patch == []:
        return Absent("not_applicable", "no_patch")
    place = located(attempt, touched_files if isinstance(touched_files, list) else None)
    if place is None:
        return Absent("missing_artifact", "patch")
    why.support([*attempt.saying("patch"), *attempt.saying("gold_patch")])
    why.denominator(view.repo_edits)
    parts = {name: getattr(place, name) for name in ("files", "functions", "lines")}
    detail: dict[str, Any] = {name: asdict(part) for name, part in parts.items() if part is not None}
    return Measured(place.level, {**detail, "method": "patch" if attempt.patch else "edit_log"})
