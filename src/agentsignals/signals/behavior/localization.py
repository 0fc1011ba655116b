"""Localization: whether an eval attempt changed the right file first, and what its controller made of that."""

from __future__ import annotations

from typing import Any

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent, Edit
from agentsignals.model.attempt import Attempt, paths_of
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

_MODES = {
    "attempt1_mode": "attempt1Mode",
    "trial_recovery_mode": "trialRecoveryMode",
    "final_failure_mode": "finalFailureMode",
}


@signal(
    "behavior.localization_mode",
    type="obj",
    unit="labels",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="harness",
    priority="P1",
    harness=True,
    pitfalls="The controller's view in its own words, not the agent's; `localization_class` is this project's."
    " No value on the project's corpus.",
    hindsight="the verdict",
)
def localization_mode(view: SessionView, why: Evidence, files_searched_before_edit: int | Absent) -> Measured | Absent:
    """The controller's words for how the attempt was located: `attempt1_mode`, `trial_recovery_mode`,
    `final_failure_mode`; `mode` is the one for this attempt."""
    attempt = view.session.attempt
    if attempt is None or attempt.localization is None:
        return Absent("missing_artifact", "harbor_result")
    why.support(attempt.saying("localization"))
    modes = {name: attempt.localization.get(key) for name, key in _MODES.items()}
    detail: dict[str, Any] = {"mode": modes["trial_recovery_mode" if attempt.attempt_index else "attempt1_mode"]}
    if attempt.gold_patch is not None and attempt.has_transcript:
        detail["localization_class"] = _class(view, paths_of(attempt.gold_patch), files_searched_before_edit)
    return Measured(modes, detail)


@signal(
    "behavior.localized_correct_file",
    type="bool",
    unit="flag",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    harness=True,
    high_value=True,
    pitfalls="With method single_touched the one file of the net diff stands for the first edit. A list of touched"
    " files is in no order: its first element is not the first edit.",
    why="Tells a wrong place from a wrong fix: the commonest failure is the wrong place.",
    hindsight="the gold patch",
)
def localized_correct_file(
    view: SessionView, why: Evidence, files_searched_before_edit: int | Absent, touched_files: list[str] | Absent
) -> Measured | Absent:
    """Whether the first file that the attempt changed, of those there before it, is one that the gold patch changes."""
    attempt = view.session.attempt
    if attempt is None or attempt.gold_patch is None:
        return Absent("missing_artifact", "gold_patch")
    gold = paths_of(attempt.gold_patch)
    why.denominator(attempt.saying("gold_patch"), "gold:")
    edits = view.repo_edits
    if not edits:
        return _by_list(attempt, why, gold, touched_files)
    first = _first(edits, gold)
    why.support([first] if first is not None else edits, "first change:" if first is not None else "new file:")
    detail = {
        "method": "edit_order",
        "file": first.path if first is not None else None,
        "localization_class": _class(view, gold, files_searched_before_edit),
    }
    return Measured(first is not None and _is_in(first.path, gold), detail)


def _by_list(attempt: Attempt, why: Evidence, gold: frozenset[str], touched: list[str] | Absent) -> Measured | Absent:
    """The answer where no order of edits is known: from the one file that differs in the end."""
    if isinstance(touched, Absent):
        return Absent("missing_artifact", "session_jsonl")
    new = {f.path for f in attempt.patch or () if f.op == "create"}
    old = [path for path in touched if path not in new or _is_in(path, gold)]
    if not touched:
        return Absent("not_applicable", "no_edit")
    if len(old) > 1:
        return Absent("not_computable", "order_unknown")
    why.support([*attempt.saying("summary"), *attempt.saying("patch")])
    file = old[0] if old else None
    return Measured(file is not None and _is_in(file, gold), {"method": "single_touched", "file": file})


def _first(edits: list[Edit], gold: frozenset[str]) -> Edit | None:
    """The first change of a file that was there before the attempt, or that the gold patch makes too."""
    new: set[str] = set()
    for edit in edits:
        if edit.op == "create":
            new.add(edit.path)
        if edit.path not in new or _is_in(edit.path, gold):
            return edit
    return None


def _class(view: SessionView, gold: frozenset[str], searched: int | Absent) -> str:
    """hit_first, hit_late, wrong_file, blind_edit or no_edit (design/signals.md#localisation)."""
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
    """Whether the gold patch changes the file. Where nobody knows the repository's folder, a path may be absolute."""
    return path in gold or (path.startswith("/") and any(path.endswith("/" + g) for g in gold))
