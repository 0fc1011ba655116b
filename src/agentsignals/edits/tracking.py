"""Follows edited line ranges of a file through later edits (design/signals.md#regions).

Line numbers of different moments are not comparable; a region is, because every edit above it moves it along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct, field

from agentsignals.model import Edit

GAP_LINES = 3
"""A hunk so near a region, or nearer, edits that region again."""

WHOLE_TREE = "."
"""The path of an edit that resets all files at once (`git restore .`)."""


_Item = TypeVar("_Item")
_GONE = frozenset(("delete", "rename"))
_CALL = attrgetter("seq", "path")
_PLACE = attrgetter("seq", "path", "hunk")


class Region(Struct, eq=False):
    """A line range and the edits that made it, in time order. `start` and `end` are as the file is at the end."""

    path: str
    start: int | None
    end: int | None
    edits: list[Edit] = field(default_factory=list)

    @property
    def n_calls(self) -> int:
        """How many calls edited it; hunks of one call never edit each other again."""
        return len({e.seq for e in self.edits})


def track(edits: Iterable[Edit]) -> list[Region]:
    """The regions of these edits (in order of time), by the time of their first edit and then by place."""
    live: dict[str, list[Region]] = {}
    done: list[Region] = []
    for path, hunks in _by_call_and_file(edits):
        if path == WHOLE_TREE:
            done += [r for regions in live.values() for r in regions]
            live.clear()
        here = live.get(path)
        if here is None:
            here = live[path] = []
        if _is_anew(hunks):
            # What was followed so far is gone; a new file is not yet a place that somebody came back to.
            done += here
            here.clear()
            done += [Region(path, e.start_line, e.end_line, [e]) for e in hunks]
            continue
        if len(hunks) > 1:
            # From the bottom up, so that the place of each hunk before the call still holds when its turn comes.
            hunks.sort(key=_old_start, reverse=True)
        for edit in hunks:
            if edit.old_start is None or edit.start_line is None:
                done.append(Region(path, edit.start_line, edit.end_line, [edit]))
            else:
                _apply(edit, edit.old_start, here)
    done += [r for regions in live.values() for r in regions]
    return _sorted(done, [_PLACE(r.edits[0]) for r in done])


def records(regions: Iterable[Region]) -> Iterable[tuple[int, Edit]]:
    """(number of the region, edit) for every edit, in order of time."""
    found = [(n, edit) for n, region in enumerate(regions) for edit in region.edits]
    return _sorted(found, [_PLACE(edit) for _, edit in found])


def _sorted(items: list[_Item], keys: list[Any]) -> list[_Item]:
    """The items in the order of their keys, made beforehand: a function that makes each takes as long again."""
    return [items[n] for n in sorted(range(len(items)), key=keys.__getitem__)]


def _by_call_and_file(edits: Iterable[Edit]) -> Iterator[tuple[str, list[Edit]]]:
    """The hunks of each call, file by file: one call may change several, and the hunks of one must come together."""
    seq, path, hunks = -1, "", list[Edit]()
    for edit in sorted(edits, key=_CALL):
        if edit.seq != seq or edit.path != path:
            if hunks:
                yield path, hunks
            seq, path, hunks = edit.seq, edit.path, []
        hunks.append(edit)
    if hunks:
        yield path, hunks


def _is_anew(hunks: list[Edit]) -> bool:
    for e in hunks:  # noqa: SIM110  (`any` takes twice as long)
        if e.whole_file or e.op in _GONE:
            return True
    return False


def _old_start(edit: Edit) -> int:
    return edit.old_start or 0


def _apply(edit: Edit, at: int, live: list[Region]) -> None:
    """One hunk: joins the regions it touches, moves those below it."""
    n_old, n_new = extents(edit)
    shift = n_new - n_old
    below = at + n_old
    near = (below - 1 if n_old > 0 else at) + GAP_LINES
    above = at - GAP_LINES
    joined: list[Region] = []
    for region in live:
        start, end = region.start or 0, region.end or 0
        if end >= above and start <= near and region.edits[-1].seq < edit.seq:
            joined.append(region)
        elif shift and start >= below:
            region.start, region.end = start + shift, end + shift
        elif shift and end >= below:
            region.end = end + shift  # an earlier hunk of this call edited a region that also spans this place
    last_new = at + n_new - 1 if n_new > 0 else at
    if not joined:
        live.append(Region(edit.path, at, last_new, [edit]))
        return
    kept = joined[0]
    kept.start = min([at, *[r.start or 0 for r in joined]])
    kept.end = max([last_new, *[(r.end or 0) + (shift if (r.end or 0) >= at else 0) for r in joined]])
    if len(joined) > 1:
        kept.edits = sorted((e for r in joined for e in r.edits), key=lambda e: (e.seq, e.hunk))
        for region in joined[1:]:
            live.remove(region)
    kept.edits.append(edit)


def extents(edit: Edit) -> tuple[int, int]:
    """Lines of the hunk before and after; unchanged lines between two changes of one hunk count in both."""
    added, removed = edit.added or 0, edit.removed or 0
    start, end = edit.start_line or 0, edit.end_line or 0
    # start_line = end_line stands for no line at all when the hunk only deletes.
    n_new = 0 if not added and start == end else end - start + 1
    return n_new - added + removed, n_new
