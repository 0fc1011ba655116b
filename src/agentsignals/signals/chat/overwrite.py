"""What the agent writes and takes away again itself: lines that no survival count can find (SWE-chat)."""

from __future__ import annotations

from collections.abc import Iterable

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.edits.line_ranges import Range, Ranges
from agentsignals.edits.tracking import WHOLE_TREE, extents
from agentsignals.model import Absent, Edit
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


@signal(
    "chat.agent_self_overwrite_share",
    type="float",
    unit="ratio",
    origin="SWE-chat",
    source="derived",
    priority="P2",
    pitfalls="Follows line numbers, not words: within a hunk of several changes the agent's lines are taken to lie"
    " evenly. A file changed through the shell is followed no further (`unfollowed_lines`).",
    why="Explains lines that did not survive though no person threw them away.",
)
def agent_self_overwrite_share(view: SessionView, why: Evidence) -> Measured | Absent:
    """Lines the agent added and later removed itself in the same session / lines it added."""
    if not view.repo_edits:
        return Absent("not_applicable", "no_edit")
    written = _Written()
    for edit in sorted(view.repo_edits, key=_bottom_up):
        written.edit(edit)
    why.support(written.overwriting, "removes lines of the agent:")
    why.denominator([e for e in view.repo_edits if e.added])
    if not written.added and written.unknown:
        return Absent("missing_field", "line_counts")
    detail = {"edits_without_lines": written.unknown, "unfollowed_lines": round(written.unfollowed)}
    return ratio(round(written.lost, 3), written.added, method="line_map", **detail)


class _WrittenLines(Range):
    """Lines of a file, and how many of these are the agent's."""

    lines: float


class _Written:
    """Which lines of each file are the agent's by now."""

    def __init__(self) -> None:
        self.added = 0
        self.lost = 0.0
        self.unfollowed = 0.0
        self.unknown = 0
        self.overwriting: list[Edit] = []
        self._by_path: dict[str, Ranges[_WrittenLines]] = {}

    def edit(self, edit: Edit) -> None:
        """The hunks of one call must come from the bottom up: their `old_start` is from before the call."""
        path = edit.path
        if path == WHOLE_TREE:
            for written_path in tuple(self._by_path):
                self._forget(written_path)
            return
        if edit.op == "delete":
            self._lose(edit, _lines(self._by_path.pop(path, ())))
            return
        if edit.added is None:
            self.unknown += 1
            self._forget(path)
            return
        self.added += edit.added
        at = 1 if edit.whole_file else edit.old_start
        if at is None or edit.start_line is None or edit.removed is None:
            self._forget(path)
            if edit.whole_file and edit.start_line is not None and edit.added:
                self._by_path[path] = Ranges()
                self._by_path[path].add(_WrittenLines(1, edit.added, float(edit.added)))
        else:
            self._change(edit, at)

    def _change(self, edit: Edit, at: int) -> None:
        n_old, n_new = extents(edit)
        below, moved, within = at + n_old, n_new - n_old, 0.0
        here = self._by_path.setdefault(edit.path, Ranges())
        cut = here.take(at, below - 1)
        here.move(below, moved)
        for span in cut:
            first, last = span.start, span.end
            each = span.lines / (last - first + 1)
            n_above, n_below = max(at - first, 0), max(last - below + 1, 0)
            if n_above:
                here.add(_WrittenLines(first, at - 1, each * n_above))
            if n_below:
                here.add(_WrittenLines(last + moved - n_below + 1, last + moved, each * n_below))
            within += span.lines - each * (n_above + n_below)
        lost = min(within, edit.removed or 0)
        self._lose(edit, lost)
        if n_new > 0:
            here.add(_WrittenLines(at, at + n_new - 1, (edit.added or 0) + within - lost))

    def _lose(self, edit: Edit, lines: float) -> None:
        if lines > 0:
            self.lost += lines
            self.overwriting.append(edit)

    def _forget(self, path: str) -> None:
        self.unfollowed += _lines(self._by_path.pop(path, ()))


def _bottom_up(edit: Edit) -> tuple[int, str, int]:
    return edit.seq, edit.path, -(edit.old_start or 0)


def _lines(spans: Iterable[_WrittenLines]) -> float:
    return sum([span.lines for span in spans])
