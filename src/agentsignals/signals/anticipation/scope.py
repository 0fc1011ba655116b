"""Whether the work stayed where it was asked for: by the files and folders that the person names (offline methods)."""

from __future__ import annotations

import re
from typing import Any

from agentsignals.catalog import Measured, signal
from agentsignals.edits.tracking import WHOLE_TREE
from agentsignals.model import Absent, Edit, Label, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import acceptance, corrections, failure_report, rejection
from agentsignals.words.mentions import Mentions

SPREAD_FILES = 3
"""So many new files in new folders are more than a step aside (design/signals.md#scope)."""
NEW_TASK_TOKENS = 3
"""A shorter turn ("go on") asks for nothing new."""
_NOT_BY_HAND = re.compile(
    r"(?:^|/)(?:node_modules|dist|vendor|__generated__|__snapshots__|tmp|\.venv|__pycache__)/"
    r"|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|npm-shrinkwrap\.json|go\.sum|bun\.lockb|packages\.lock\.json)$"
    r"|\.lock$|\.min\.(?:js|css)$|\.(?:pb\.go|g\.dart|snap|log|tmp|bak|orig|map)$|_pb2(?:_grpc)?\.py$"
    r"|\.generated\.\w+$|_generated\.\w+$|(?:^|/)(?:scratch|tmp|temp)[^/]*$"
)
"""Lock files, generated files and scratch: nobody would ask for them."""


@signal(
    "anticipation.unrequested_files",
    basis="heuristic",
    type="obj",
    unit="files",
    origin="agentsignals",
    source="derived",
    priority="P2",
    why="The counts and the first turn behind anticipation.scope_drift.",
    pitfalls="A person who says what, not where, names no file: then nothing is known, not everything unrequested.",
)
def unrequested_files(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """Changed files (no generated, lock or scratch files) that no human turn names, nor their folder, nor another file
    in it: how many (n, of touched), and the first turn that changed one."""
    edits = view.made(_work)
    if not edits:
        return Absent("not_applicable", "no_edit")
    named = view.mentions
    unknown = {path for path in {e.path for e in edits} if not named.place(path)}
    unrequested = [e for e in edits if e.path in unknown]
    why.support(unrequested, "no turn names it:")
    why.counter((e for e in edits if e.path not in unknown), "named:")
    touched = len({e.path for e in edits})
    if len(unknown) == touched:
        return Absent("not_computable", "no_reference")
    return {"n": len(unknown), "touched": touched, "first_turn": unrequested[0].turn if unrequested else None}


@signal(
    "anticipation.conflation_turn",
    basis="heuristic",
    type="int",
    unit="turn index",
    origin="Agent Signals",
    source="derived",
    priority="P3",
    version=2,
    why="Early: the scope was misread. Late: its borders dissolved.",
    pitfalls="Without a judge's label (method files) told by folders alone, confidence low."
    " No value on the project's corpus.",
)
def conflation_turn(view: SessionView, why: Evidence) -> Measured | Absent:
    """The first response that goes beyond what was asked for, as a judge said; without one, the first after work began
    that changes three or more new files in folders neither worked in nor named before, on no new task."""
    judged = next((judgement for judgement in view.judgements("conflation_turn") if judgement.turn is None), None)
    if judged is not None:
        return _judged(judged, why)
    if len(view.turns) < 2:
        return Absent("not_applicable", "one_turn" if view.turns else "no_turn")
    why.rule(
        f"{SPREAD_FILES} new files in new folders, named by no turn so far, after a turn that asks for no new task"
    )
    folders: set[str] = set()
    files: set[str] = set()
    for n, edits in sorted(_by_turn(view).items()):
        new = {e.path for e in edits} - files
        spread = [path for path in new if _folder(path) not in folders]
        if files and len(spread) >= SPREAD_FILES and not _asks_anew(view.turns[n]):
            named = Mentions([t.text for t in view.turns[: n + 1]])
            unasked = {path for path in spread if not named.place(path)}
            if len(unasked) >= SPREAD_FILES:
                why.support([view.turns[n]])
                why.support([e for e in edits if e.path in unasked], "new folder:")
                return Measured(n, {"method": "files", "files": len(unasked), "confidence": "low"})
        files |= new
        folders |= {_folder(path) for path in new}
    return Absent("none_found", "method files")


def _judged(label: Label, why: Evidence) -> Measured | Absent:
    why.rule(f"{label.labeller}: {label.value}" + (f" ({label.reason})" if label.reason else ""))
    if label.number is None:
        return Absent("none_found", f"method judge, by {label.labeller}")
    return Measured(int(label.number), {"method": "judge", "labeller": label.labeller, "reason": label.reason})


def _work(view: SessionView) -> list[Edit]:
    left_out = {path for path in {e.path for e in view.repo_edits} if path == WHOLE_TREE or _NOT_BY_HAND.search(path)}
    return [e for e in view.repo_edits if e.path not in left_out] if left_out else view.repo_edits


def _by_turn(view: SessionView) -> dict[int, list[Edit]]:
    edits: dict[int, list[Edit]] = {}
    for edit in view.made(_work):
        edits.setdefault(edit.turn or 0, []).append(edit)
    return edits


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _asks_anew(turn: Turn) -> bool:
    """A new request: long enough for one, and neither objection to the work before nor leave to go on."""
    if turn.kind in ("rejection_feedback", "attachment"):
        return False
    return (turn.kind != "prompt" or turn.n_tokens >= NEW_TASK_TOKENS) and not any(
        reaction(turn.text, turn.kind) for reaction in (corrections, failure_report, rejection, acceptance)
    )
