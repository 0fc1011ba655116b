"""Follows edited line ranges of a file through later edits (signals_notes section 11).

Line numbers of different moments are not comparable; a region is, because every edit above it moves it along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec import Struct, field

from agentsignals.model import Edit

GAP_LINES = 3
"""A hunk so near a region, or nearer, edits that region again."""

WHOLE_TREE = "."
"""The path of an edit that resets all files at once (`git restore .`)."""


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
    # One call may change several files; the hunks of one file must come together.
    in_order = sorted(edits, key=lambda e: (e.seq, e.path))
    for (_, path), hunks in groupby(in_order, key=lambda e: (e.seq, e.path)):
        of_call = list(hunks)
        if path == WHOLE_TREE:
            done += [r for regions in live.values() for r in regions]
            live.clear()
        here = live.setdefault(path, [])
        if any(e.whole_file or e.op in ("delete", "rename") for e in of_call):
            # What was followed so far is gone; a new file is not yet a place that somebody came back to.
            done += here
            here.clear()
            done += [Region(path, e.start_line, e.end_line, [e]) for e in of_call]
            continue
        # From the bottom up, so that the place of each hunk before the call still holds when its turn comes.
        for edit in sorted(of_call, key=lambda e: e.old_start or 0, reverse=True):
            if edit.old_start is None or edit.start_line is None:
                done.append(Region(path, edit.start_line, edit.end_line, [edit]))
            else:
                _apply(edit, edit.old_start, here)
    done += [r for regions in live.values() for r in regions]
    return sorted(done, key=lambda r: (r.edits[0].seq, r.edits[0].path, r.edits[0].hunk))


def records(regions: Iterable[Region]) -> Iterator[tuple[int, Edit]]:
    """(number of the region, edit) for every edit, in order of time."""
    of_edit = [(n, edit) for n, region in enumerate(regions) for edit in region.edits]
    return iter(sorted(of_edit, key=lambda pair: (pair[1].seq, pair[1].path, pair[1].hunk)))


def _apply(edit: Edit, at: int, live: list[Region]) -> None:
    """One hunk: joins the regions it touches, moves those below it."""
    n_old, n_new = _extents(edit)
    shift = n_new - n_old
    last_old = at + max(n_old, 1) - 1
    joined: list[Region] = []
    for region in live:
        start, end = region.start or 0, region.end or 0
        if region.edits[-1].seq < edit.seq and start <= last_old + GAP_LINES and end >= at - GAP_LINES:
            joined.append(region)
        elif start >= at + n_old:
            region.start, region.end = start + shift, end + shift
        elif end >= at + n_old:
            region.end = end + shift  # an earlier hunk of this call edited a region that also spans this place
    last_new = at + max(n_new, 1) - 1
    if not joined:
        live.append(Region(edit.path, at, last_new, [edit]))
        return
    kept = joined[0]
    kept.start = min(at, *(r.start or 0 for r in joined))
    kept.end = max(last_new, *((r.end or 0) + (shift if (r.end or 0) >= at else 0) for r in joined))
    kept.edits = sorted((e for r in joined for e in r.edits), key=lambda e: (e.seq, e.hunk))
    kept.edits.append(edit)
    for region in joined[1:]:
        live.remove(region)


def _extents(edit: Edit) -> tuple[int, int]:
    """Lines of the hunk before and after; unchanged lines between two changes of one hunk count in both."""
    added, removed = edit.added or 0, edit.removed or 0
    start, end = edit.start_line or 0, edit.end_line or 0
    # start_line = end_line stands for no line at all when the hunk only deletes.
    n_new = 0 if not added and start == end else end - start + 1
    return n_new - added + removed, n_new
