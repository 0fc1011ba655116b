"""Line ranges that were edited, and edited again. Only the repository's files: a plan or scratch file is no code."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from agentsignals.changes.hunks import NOTHING, Changed, Region, changed_by, changed_lines, records
from agentsignals.model import Absent, Edit, ToolCall, to_iso
from agentsignals.model.lazy import once
from agentsignals.signals import Measured, Row, signals_with
from agentsignals.views.calls import command_texts
from agentsignals.views.session import Evidence, SessionView

signal = signals_with(source="derived", origin="Agent Signals")

OSCILLATES_AT = 2 / 3
STEADY_REL = 0.5
READDED_SHARE = 0.5
LOOKED_BACK_CALLS = 200
"""Removals longer ago are not compared: the work would grow with the square of a region's edits."""


class Edited(Row):
    """A changed place; lines as the file was right after the edit."""

    file: str
    start_line: int | None
    end_line: int | None
    turn_index: int | None
    timestamp: str | None
    added: int | None
    removed: int | None
    event_id: int
    region_id: str


@signal("user.region_edit_history[]", "list[obj]", "records", level="region", source="session")
def region_edit_history(view: SessionView, why: Evidence) -> Measured:
    """Each row of the main thread's `edits` of files of the repository, with the region it belongs to; lines as the
    file was right after it.

    Keys: file, start_line, end_line, turn_index, timestamp, added, removed, event_id (`seq`), region_id. A region is a
    range of lines that is followed through later edits; an edit of a later call at most three lines from it belongs to
    it. Regions are r0, r1 ... by first edit. Writing a whole file, deleting or renaming it ends its regions; such an
    edit, and one without line numbers, is a region of its own.

    Pitfalls: Line numbers of different moments are not comparable: use region_id.
    Why: The basis of all figures about edits of the same region; a file is too coarse.
    """
    why.support(view.repo_edits)
    events = view.session.events
    unplaced = len([1 for e in view.repo_edits if e.start_line is None])
    history = [
        Edited(e.path, e.start_line, e.end_line, e.turn, to_iso(events[e.seq].timestamp), e.added, e.removed, e.seq,
               f"r{region}")
        for region, e in records(view.regions)
    ]  # fmt: skip
    return Measured(history, {"regions": len(view.regions), **({"lines_unknown": unplaced} if unplaced else {})})


@signal("user.region_re_edit_count", "int", "regions", priority="P1")
def region_re_edit_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Regions of user.region_edit_history[] with edits of two calls or more; hunks of one call never count as that.

    Absent without an edit, and where edit tools left no line numbers.

    Pitfalls: Repeated edits are not bad in themselves: see convergence.
    Why: Shows whether the same region was edited repeatedly.
    """
    if not view.repo_edits:
        return Absent("not_applicable", "no_edit")
    placed = [e for e in view.repo_edits if e.old_start is not None and e.start_line is not None]
    by_tool = any(e.via == "edit_tool" for e in view.repo_edits)
    if not placed and by_tool:
        return Absent("missing_field", "line_numbers")
    again = _edited_again(view)
    why.support([e for r in again for e in r.edits])
    why.denominator(view.repo_edits)
    return Measured(len(again), {"regions": len(view.regions), "lines_unknown": len(view.repo_edits) - len(placed)})


@signal(
    "user.region_edit_convergence[]", "list[str]", "labels", basis="heuristic", version=3, level="region", priority="P1"
)
def region_edit_convergence(view: SessionView, why: Evidence) -> Measured | Absent:
    """For each region edited again, by first edit: converging, oscillating, expanding or unchanged.

    Size of a call: its lines added and removed there. rel: the least-squares slope of the sizes times (calls - 1) over
    their mean. Below 0 converging, above 0 expanding, 0 unchanged. oscillating: four calls or more, |rel| < 0.5 and two
    thirds of the steps change sign; or a call adds half of the lines that one of the 200 calls before removed, and
    removes some that came since. Such lines are those of one side of the replaced texts and patches in the call's
    arguments (`argument_roles`), without outer blanks, of more than 3 characters.

    Pitfalls: Two edits of a place say little: half of all re-edited regions have no more.
    Why: Shrinking edits refine; oscillating edits suggest failure.
    """
    if not view.repo_edits:
        return Absent("not_applicable", "no_edit")
    numbers = {id(r): n for n, r in enumerate(view.regions)}
    changes = _Changes(view)
    labels: list[str] = []
    regions: list[dict[str, Any]] = []
    for region in _edited_again(view):
        by_call: dict[int, list[Edit]] = {}
        for edit in region.edits:
            by_call.setdefault(edit.seq, []).append(edit)
        sizes = [sum([(e.added or 0) + (e.removed or 0) for e in edits]) for edits in by_call.values()]
        rel = trend(sizes)
        label = "converging" if rel < 0 else "expanding" if rel > 0 else "unchanged"
        steps = [b - a for a, b in pairwise(sizes)] if len(sizes) >= 4 and abs(rel) < STEADY_REL else []
        turns = sum(1 for a, b in pairwise(steps) if a * b < 0)
        if (steps and turns >= OSCILLATES_AT * (len(steps) - 1)) or (
            _may_go_back(by_call) and _goes_back([changes[seq, region.path] for seq in by_call])
        ):
            label = "oscillating"
        why.support(region.edits, f"r{numbers[id(region)]} {label}:")
        labels.append(label)
        regions.append({"region_id": f"r{numbers[id(region)]}", "file": region.path, "sizes": sizes, "rel": rel})
    return Measured(labels, {"regions": regions})


def _edited_again(view: SessionView) -> list[Region]:
    return [r for r in view.regions if len(r.edits) > 1 and r.n_calls > 1]


class _Changes(dict[tuple[int, str], Changed]):
    """The lines of a file that a call changed, keyed by event number and path, read when first asked for. An edit
    tool's lines are those of all its files."""

    def __init__(self, view: SessionView) -> None:
        super().__init__()
        self._view = view

    def __missing__(self, place: tuple[int, str]) -> Changed:
        seq, path = place
        call = self._calls.get(seq)
        if call is None:
            changes = NOTHING
        elif seq in self._by_command:
            changes = changed_by(
                text for _, text in command_texts(call.command or "", (path,), has_failed=call.status == "error")
            )
        else:
            changes = changed_lines(call.arguments, call.argument_roles)
        self[place] = changes
        return changes

    @once
    def _by_command(self) -> set[int]:
        return {edit.seq for edit in self._view.repo_edits if edit.via == "shell"}

    @once
    def _calls(self) -> dict[int, ToolCall]:
        return {call.seq: call for call in self._view.calls}


def trend(sizes: list[int]) -> float:
    """Return the least-squares slope over the whole series, as a share of its mean; 0 when nothing changed."""
    n = len(sizes)
    total = sum(sizes)
    if n < 2 or not total:
        return 0.0
    middle = (n - 1) / 2
    slope = sum([(x - middle) * y for x, y in enumerate(sizes)]) / sum([(x - middle) ** 2 for x in range(n)])
    return round(slope * (n - 1) * n / total, 4)


def _may_go_back(by_call: dict[int, list[Edit]]) -> bool:
    """Return whether something was removed before a call that both adds and removes: a cheap test before the lines are
    read from the arguments."""
    removed_before = False
    for edits in by_call.values():
        removes = any(e.removed for e in edits)
        if removed_before and removes and any(e.added for e in edits):
            return True
        removed_before = removed_before or removes
    return False


def _goes_back(changes: list[Changed]) -> bool:
    """Return whether an edit restores half of what one of the 200 before removed, and removes what came since."""
    for later in range(1, len(changes)):
        since: set[str] = set()
        for earlier in range(later - 1, max(later - 1 - LOOKED_BACK_CALLS, -1), -1):
            since |= changes[earlier].added
            gone = changes[earlier].removed
            back = len(gone & changes[later].added)
            if gone and back >= READDED_SHARE * len(gone) and not changes[later].removed.isdisjoint(since):
                return True
    return False
