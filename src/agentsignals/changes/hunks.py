"""Changed lines: hunks with their context trimmed, and the texts of edit tools.

Regions are ranges of a file's lines, which move when lines above them come and go. They lie in blocks, and a whole
block is moved by one number: a change costs what its own block holds and a step for each other block (a session edits
one file ten thousand times).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field, structs

from agentsignals.model import Edit, Roles, decode_roles
from agentsignals.model.lazy import deferred_pattern

_AT = deferred_pattern(r" -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

REWRITTEN = 0.8
"""Share of a file's lines. If more change at once, all its regions close (design/signals.md#regions)."""


class Hunk(Struct, gc=False, kw_only=True):
    """A changed place. Lines count from 1, in the file after the call. None: the trace has none."""

    start_line: int | None = None
    end_line: int | None = None
    added: int | None = None
    removed: int | None = None
    old_start: int | None = None
    whole_file: bool = False


def trimmed(old_start: int, new_start: int, lines: Sequence[str]) -> Hunk | None:
    """Return the changed core of a unified-diff hunk (` `, `+`, `-` prefixed lines). None if nothing changed.

    A deletion-only hunk has start_line = end_line = the line after the deletion (design/signals.md#regions).
    """
    return changed(old_start, new_start, marks_of(lines))


def changed(old_start: int, new_start: int, marks: str) -> Hunk | None:
    """Return the changed core of a hunk, given the first characters of its lines."""
    added, removed = marks.count("+"), marks.count("-")
    if not added and not removed:
        return None
    plus, minus = marks.find("+"), marks.find("-")
    first = min(plus, minus) if min(plus, minus) >= 0 else max(plus, minus)
    last = max(marks.rfind("+"), marks.rfind("-"))
    old_before = first - marks.count("\\", 0, first)
    core_new = last + 1 - first - removed - marks.count("\\", first, last)
    start = new_start + old_before
    return Hunk(
        start_line=start,
        end_line=start + max(core_new, 1) - 1,
        added=added,
        removed=removed,
        old_start=old_start + old_before,
    )


def marks_of(lines: Sequence[str]) -> str:
    """Return the first character of each line of a diff. A line without any is context that lost its blank."""
    return "".join([line[:1] or " " for line in lines])


def unified(diff: str) -> list[Hunk]:
    """Return the changed places of the unified diff of one file. Lines before the first `@@` are left out."""
    hunks: list[Hunk] = []
    for place in ("\n" + diff.removesuffix("\n")).split("\n@@")[1:]:
        at, *lines = place.split("\n")
        if match := _AT.match(at):
            old, n_old, new, n_new = match.groups()
            # An empty side names the line before it: its first line would be the next.
            hunk = trimmed(int(old) + (n_old == "0"), int(new) + (n_new == "0"), marks_of(lines))
            if hunk is not None:
                hunks.append(hunk)
    return hunks


def created(content: str) -> Hunk:
    n = count_lines(content)
    return Hunk(start_line=1, end_line=max(n, 1), added=n, removed=0, old_start=1, whole_file=True)


def inserted(text: str, line: int | None) -> Hunk:
    """Return a hunk for a text inserted after a line of the file. None: the line is not known."""
    n = count_lines(text)
    if line is None:
        return Hunk(added=n, removed=0)
    return Hunk(start_line=line + 1, end_line=line + max(n, 1), added=n, removed=0, old_start=line + 1)


def of_whole_file(hunks: Iterable[Hunk]) -> list[Hunk]:
    """Return the hunks as those of a file that was made, deleted or rewritten."""
    return [structs.replace(hunk, whole_file=True) for hunk in hunks]


def rewrites(hunks: Iterable[Hunk], content: str) -> bool:
    """Return whether so much of a file with this content was changed at once that it is another file."""
    return sum(hunk.added or 0 for hunk in hunks) > REWRITTEN * count_lines(content)


def count_lines(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def replaced(old: str, new: str) -> Hunk:
    """Return a hunk for a replaced text: sizes only, without common first and last lines."""
    before, after = old.split("\n"), new.split("\n")
    same = sum(_same_ends(before, after))
    return Hunk(added=len(after) - same, removed=len(before) - same)


def _same_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    return head, next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)


MOST_COMPARED_LINES = 1_000
"""Lines in which two texts differ that are compared. More may take seconds, and count as one change."""


def between(before: str, after: str) -> list[Hunk]:
    """Return the changed places between two texts of a file."""
    old, new = before.splitlines(), after.splitlines()
    first, same = _same_ends(old, new)
    old, new = old[first : len(old) - same], new[first : len(new) - same]
    if max(len(old), len(new)) > MOST_COMPARED_LINES:
        places = [("replace", 0, len(old), 0, len(new))]
    else:
        places = [place for place in SequenceMatcher(None, old, new).get_opcodes() if place[0] != "equal"]
    return [
        hunk
        for _, a, b, c, d in places
        if (hunk := changed(first + a + 1, first + c + 1, "-" * (b - a) + "+" * (d - c))) is not None
    ]


# -- texts of an edit tool, read from the arguments of the call by the roles that the agent's profile gives them


class EditText(Struct, gc=False, kw_only=True):
    """A change that a call asks for."""

    kind: Literal["replace", "whole", "insert", "append", "part", "patch"]
    """A `part` is inserted at a place that is not known. The `new` of a `patch` is the patch."""
    new: str
    old: str = ""
    """The text that `new` replaces. Empty if there was none: some edit tools also make files."""
    everywhere: bool = False
    line: int = 0
    """Number of lines before an inserted text."""
    creates: bool = False
    """The call says that it makes the file."""


def edit_texts(arguments: str, argument_roles: str | None) -> list[EditText]:
    """Return the changes that a call asks for, in order. None if its tool is no edit tool, or they can't be read.

    Arguments that are one text, or no JSON, are a patch.
    """
    if argument_roles is None:
        return []
    try:
        passed = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        passed = arguments
    if isinstance(passed, str):
        return [EditText(kind="patch", new=passed)] if passed else []
    return list(_texts(passed, decode_roles(argument_roles))) if isinstance(passed, dict) else []


def _texts(arguments: dict[str, Any], roles: Roles) -> Iterator[EditText]:
    """Yield the texts that one call's arguments put into a file, by the roles of its tool's arguments."""
    patch = _first(arguments, roles.patch)
    if patch is not None:
        pairs = list(_searched(patch))
        yield from pairs or [EditText(kind="patch", new=patch)]
        return
    for name in roles.several:
        edits = arguments.get(name)
        if edits := [edits] if isinstance(edits, dict) else edits if isinstance(edits, list) else []:
            for edit in edits:
                if isinstance(edit, dict) and name not in edit:
                    yield from _texts(edit, roles)
            return
    deed = arguments.get(roles.deed) if roles.deed else None
    whole = _first(arguments, roles.whole)
    part = _first(arguments, roles.part)
    for before, after in roles.replace if deed != "create" else ():
        old, new = arguments.get(before), arguments.get(after)
        if isinstance(old, str) and isinstance(new, str):
            everywhere = any(arguments.get(name) is True for name in roles.everywhere)
            yield EditText(kind="replace", new=new, old=old, everywhere=everywhere)
            return
        if part is None and isinstance(new, str):
            part = new
    line = next((n for name in roles.line if isinstance(n := arguments.get(name), int)), None) if roles.line else None
    if part is not None and line is not None:
        yield EditText(kind="insert", new=part, line=line)
    elif (text := whole if whole is not None else part) is not None and deed == "append":
        yield EditText(kind="append", new=text)
    elif whole is not None:
        yield EditText(kind="whole", new=whole, creates=deed == "create")
    elif part is not None:
        yield EditText(kind="part", new=part)


_MARKS = deferred_pattern(r"(?:[-<]{5,9} (SEARCH)>?|(={5,9})|[+>]{5,9} (REPLACE)>?)[ \t]*")
_PLACE = deferred_pattern(r":(?:start|end)_line:|-{5,9}\Z")


def _searched(patch: str) -> Iterator[EditText]:
    """Yield pairs of texts between marks, as Aider, Cline and Roo Code have models write them."""
    old: list[str] | None = None
    new: list[str] | None = None
    for line in patch.split("\n") if " SEARCH" in patch else ():
        mark = _MARKS.fullmatch(line)
        if mark is not None and mark[1]:
            old, new = [], None
        elif mark is not None and mark[2] and old is not None and new is None:
            new = []
        elif mark is not None and mark[3] and old is not None and new is not None:
            yield EditText(kind="replace", new="\n".join(new), old="\n".join(old))
            old = new = None
        elif new is not None:
            new.append(line)
        elif old is not None and (old or not _PLACE.match(line)):  # where it begins, as Roo Code's say, is no text
            old.append(line)


def _first(arguments: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these arguments that is a text, or a list of words whose last one is."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, list) and value:
            value = value[-1]
        if isinstance(value, str):
            return value
    return None


# -- lines that an edit removed and added, which the structured result of a call leaves out

TRIVIAL_CHARS = 3
"""Lines up to this length (brackets, `end`) change without meaning (design/signals.md#regions)."""

_FILE = deferred_pattern(r"\n(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.*)")
_CHANGED = deferred_pattern(r"\n[+-](?!--|\+\+)(.*)")
_REMOVED = deferred_pattern(r"\n-(?!--)(.*)")
_ADDED = deferred_pattern(r"\n\+(?!\+\+)(.*)")


class Changed(NamedTuple):
    """Lines without their indentation and without trivial ones."""

    removed: frozenset[str]
    added: frozenset[str]


NOTHING = Changed(frozenset(), frozenset())


def changed_lines(arguments: str, argument_roles: str | None) -> Changed:
    return changed_by(edit_texts(arguments, argument_roles))


def changed_by(texts: Iterable[EditText]) -> Changed:
    """Return the lines that these texts replace."""
    removed: set[str] = set()
    added: set[str] = set()
    for text in texts:
        if text.kind in ("replace", "patch"):
            old, new = text.old, text.new
            if text.kind == "patch":
                patch = "\n" + text.new
                old, new = "\n".join(_REMOVED.findall(patch)), "\n".join(_ADDED.findall(patch))
            before, after = _lines(old), _lines(new)
            removed |= before - after
            added |= after - before
    return Changed(_telling(removed), _telling(added)) if removed or added else NOTHING


def lines_by_file(arguments: str, argument_roles: str | None) -> dict[str, set[str]]:
    """Return the lines that a call with these arguments (JSON) adds, replaces or removes, without their indentation,
    and all lines of a file written whole. By file for the files of a patch, as it names them; the others under "".
    """
    return lines_of(edit_texts(arguments, argument_roles))


def lines_of(texts: Iterable[EditText]) -> dict[str, set[str]]:
    """Return the lines that these texts add, replace or remove, by file."""
    by_file: dict[str, set[str]] = {"": set()}
    for text in texts:
        if text.kind == "patch":
            sections = _FILE.split("\n" + text.new)
            for path, section in zip(["", *sections[1::2]], sections[::2], strict=True):
                changed = _CHANGED.findall(section)
                if changed:
                    by_file.setdefault(path.strip(), set()).update(map(str.strip, changed))
        elif text.kind == "replace":
            kept, written = set(text.old.split("\n")), set(text.new.split("\n"))
            # Most lines of a large edit are context: those are never stripped.
            by_file[""] |= set(map(str.strip, kept - written)) ^ set(map(str.strip, written - kept))
        else:
            by_file[""] |= _lines(text.new)
    return by_file


def _lines(text: str) -> set[str]:
    return set(map(str.strip, text.split("\n")))


def _telling(lines: set[str]) -> frozenset[str]:
    return frozenset([line for line in lines if len(line) > TRIVIAL_CHARS])


# -- patch texts as models write them: `apply_patch` envelopes and unified diffs

_ADD, _UPDATE, _DELETE, _MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "
_OPENING: dict[str, Literal["create", "modify", "delete"]] = {_ADD: "create", _UPDATE: "modify", _DELETE: "delete"}


class PatchedFile(Struct):
    path: str
    op: Literal["create", "modify", "delete"]
    moved_to: str | None = None
    places: list[list[str]] = []
    """The lines of each place, marked ` `, `+` or `-`. Where in the file a place is, an envelope does not say."""

    @property
    def texts(self) -> list[tuple[str, str]]:
        """(text before, text after) of each place, context included; the whole text of a new file is one place."""
        pairs = []
        for place in self.places:
            old: list[str] = []
            new: list[str] = []
            for line in place:
                if line[:1] in ("-", " ") or (not line and (old or new)):
                    old.append(line[1:])
                if line[:1] in ("+", " ") or (not line and (old or new)):
                    new.append(line[1:])
            if old or new:
                pairs.append(("\n".join(old), "\n".join(new)))
        return pairs


def patched(patch: str, diffs: bool = False) -> list[PatchedFile]:
    """Return the files of an `apply_patch` text, in order; with `diffs` also those of a unified diff."""
    files: list[PatchedFile] = []
    lines = patch.split("\n")
    is_diff = diffs and not any(line.startswith(("*** Begin Patch", *_OPENING)) for line in lines)
    for line in lines:
        if is_diff and line.startswith("+++ "):
            files.append(PatchedFile(line[4:].strip().removeprefix("b/"), "modify", None, [[]]))
        elif not is_diff and (mark := next((m for m in _OPENING if line.startswith(m)), "")):
            files.append(PatchedFile(line[len(mark) :].strip(), _OPENING[mark], None, [[]]))
        elif not files or line.startswith(("--- ", "diff --git ", "index ") if is_diff else "*** "):
            if files and line.startswith(_MOVE):
                files[-1].moved_to = line[len(_MOVE) :].strip()
        elif line.startswith("@@"):
            files[-1].places.append([])
        else:
            files[-1].places[-1].append(line)
    return files


BLOCK = 256
"""A block of twice so many ranges is split. Near the square root of all ranges the cost is least."""


class Range(Struct, eq=False):
    start: int
    end: int


R = TypeVar("R", bound=Range)


class _Block(Struct, Generic[R], eq=False):
    """Ranges near each other. Their lines, and the bounds, are those before the block moved by `moved`."""

    ranges: list[R]
    moved: int = 0
    first: int = 0
    last: int = 0
    """The smallest and the largest start."""
    end: int = 0

    def bound(self) -> None:
        self.first = min([r.start for r in self.ranges])
        self.last = max([r.start for r in self.ranges])
        self.end = max([r.end for r in self.ranges])


class Ranges(Struct, Generic[R], eq=False):
    """The ranges of one file."""

    _blocks: list[_Block[R]] = field(default_factory=list)

    def add(self, line_range: R) -> None:
        """Add a range, with its lines in the file as it is now."""
        blocks = self._blocks
        if not blocks:
            blocks.append(_Block([line_range], 0, line_range.start, line_range.start, line_range.end))
            return
        at = 0
        for n, block in enumerate(blocks):
            if block.first + block.moved <= line_range.start:
                at = n
        block = blocks[at]
        line_range.start -= block.moved
        line_range.end -= block.moved
        block.ranges.append(line_range)
        block.first, block.last = min(block.first, line_range.start), max(block.last, line_range.start)
        block.end = max(block.end, line_range.end)
        if len(block.ranges) >= 2 * BLOCK:
            block.ranges.sort(key=lambda r: r.start)
            upper = _Block(block.ranges[BLOCK:], block.moved)
            del block.ranges[BLOCK:]
            block.bound()
            upper.bound()
            blocks.insert(at + 1, upper)

    def take(self, first: int, last: int) -> list[R]:
        """Remove the ranges with a line from `first` to `last`, and return them with their lines as they are now."""
        taken: list[R] = []
        emptied = False
        for block in self._blocks:
            low, high = first - block.moved, last - block.moved
            if block.end < low or block.first > high:
                continue
            here = [r for r in block.ranges if r.end >= low and r.start <= high]
            if not here:
                continue
            if len(here) == len(block.ranges):
                block.ranges = []
                emptied = True
            else:
                block.ranges = [r for r in block.ranges if r.end < low or r.start > high]
                block.bound()
            for line_range in here:
                line_range.start += block.moved
                line_range.end += block.moved
            taken += here
        if emptied:
            self._blocks = [b for b in self._blocks if b.ranges]
        return taken

    def move(self, first: int, by: int) -> None:
        """Move the ranges that begin at line `first` or below it."""
        for block in self._blocks:
            low = first - block.moved
            if block.first >= low:
                block.moved += by
            elif block.last >= low:
                for line_range in block.ranges:
                    if line_range.start >= low:
                        line_range.start += by
                        line_range.end += by
                block.bound()

    def __iter__(self) -> Iterator[R]:
        """Yield all ranges, with their lines as they are now. Nothing may be taken or added afterwards."""
        for block in self._blocks:
            for line_range in block.ranges:
                line_range.start += block.moved
                line_range.end += block.moved
                yield line_range
            block.moved = 0
            block.bound()


# -- regions: edited line ranges, followed through later edits (design/signals.md#regions)
# Line numbers at different times are not comparable. A region is, because every edit above moves it.

GAP_LINES = 3
"""A hunk at most this far from a region edits that region again."""

WHOLE_TREE = "."
"""The path of an edit that resets all files at once (`git restore .`)."""


_Item = TypeVar("_Item")
_GONE = frozenset(("delete", "rename"))
_CALL = attrgetter("seq", "path")
_HUNK_PLACE = attrgetter("seq", "path", "hunk")
_IN_FILE = attrgetter("seq", "hunk")


class Region(Struct, eq=False):
    """A line range and the edits that made it, in time order. `start` and `end` are as the file is at the end."""

    path: str
    start: int | None
    end: int | None
    edits: list[Edit] = field(default_factory=list)

    @property
    def n_calls(self) -> int:
        return len({e.seq for e in self.edits})


class _Followed(Range):
    """A region that is still followed."""

    edits: list[Edit]
    last_seq: int


def track(edits: Iterable[Edit]) -> list[Region]:
    """Return the regions of these edits (in order of time), by the time of their first edit and then by place."""
    live: dict[str, Ranges[_Followed]] = {}
    done: list[Region] = []
    for (_, path), group in groupby(sorted(edits, key=_CALL), key=_CALL):  # one call may change several files
        hunks = list(group)
        if path == WHOLE_TREE:
            for file, ranges in live.items():
                done += _regions(file, ranges)
            live.clear()
        if _is_anew(hunks):
            # What was followed so far is gone; a new file is not yet a place that somebody came back to.
            done += _regions(path, live.pop(path, ()))
            done += [Region(path, e.start_line, e.end_line, [e]) for e in hunks]
            continue
        here = live.get(path)
        if here is None:
            here = live[path] = Ranges()
        if len(hunks) > 1:
            # From the bottom up, so that the place of each hunk before the call still holds when its turn comes.
            hunks.sort(key=lambda edit: edit.old_start or 0, reverse=True)
        for edit in hunks:
            if edit.old_start is None or edit.start_line is None:
                done.append(Region(path, edit.start_line, edit.end_line, [edit]))
            else:
                _apply(edit, edit.old_start, here)
    for path, ranges in live.items():
        done += _regions(path, ranges)
    return _sorted(done, [_HUNK_PLACE(r.edits[0]) for r in done])


def _regions(path: str, followed: Iterable[_Followed]) -> list[Region]:
    return [Region(path, region.start, region.end, sorted(region.edits, key=_IN_FILE)) for region in followed]


def records(regions: Iterable[Region]) -> Iterable[tuple[int, Edit]]:
    """Return (number of the region, edit) for every edit, in order of time."""
    pairs = [(n, edit) for n, region in enumerate(regions) for edit in region.edits]
    return _sorted(pairs, [_HUNK_PLACE(edit) for _, edit in pairs])


def _sorted(items: list[_Item], keys: list[Any]) -> list[_Item]:
    """Sort items by keys that were made beforehand. A key function would take as long again."""
    return [items[n] for n in sorted(range(len(items)), key=keys.__getitem__)]


def _is_anew(hunks: list[Edit]) -> bool:
    for e in hunks:  # noqa: SIM110  (`any` takes twice as long)
        if e.whole_file or e.op in _GONE:
            return True
    return False


def _apply(edit: Edit, at: int, live: Ranges[_Followed]) -> None:
    """Apply a hunk: it joins the regions that it touches, and moves those below it."""
    n_old, n_new = extents(edit)
    shift = n_new - n_old
    below = at + n_old
    near = (below - 1 if n_old > 0 else at) + GAP_LINES
    last_new = at + n_new - 1 if n_new > 0 else at
    joined: list[_Followed] = []
    touched = live.take(at - GAP_LINES, max(near, below - 1))
    if shift:
        live.move(below, shift)
    for region in touched:
        if region.start <= near and region.last_seq < edit.seq:
            joined.append(region)
            continue
        if region.start >= below:
            region.start, region.end = region.start + shift, region.end + shift
        elif region.end >= below:
            region.end += shift  # an earlier hunk of this call edited a region that also spans this place
        live.add(region)
    if not joined:
        live.add(_Followed(at, last_new, [edit], edit.seq))
        return
    joined.sort(key=lambda r: -len(r.edits))
    kept = joined[0]
    kept.start = min([at, *[r.start for r in joined]])
    kept.end = max([last_new, *[r.end + (shift if r.end >= at else 0) for r in joined]])
    for region in joined[1:]:
        kept.edits += region.edits
    kept.edits.append(edit)
    kept.last_seq = edit.seq
    live.add(kept)


def extents(edit: Edit) -> tuple[int, int]:
    """Return the lines of a hunk before and after. Unchanged lines between two changes count in both."""
    added, removed = edit.added or 0, edit.removed or 0
    start, end = edit.start_line or 0, edit.end_line or 0
    # start_line = end_line stands for no line at all when the hunk only deletes.
    n_new = 0 if not added and start == end else end - start + 1
    return n_new - added + removed, n_new
