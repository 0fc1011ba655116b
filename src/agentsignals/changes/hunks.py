"""Changed lines: hunks with their context trimmed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, structs

from agentsignals.model import Roles, decode_roles

_AT = re.compile(r" -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

REWRITTEN = 0.8
"""Share of a file's lines: more than these changed at once close all its regions (design/signals.md#regions)."""


class Hunk(Struct, gc=False, kw_only=True):
    """One changed place. Lines are 1-based, in the file as it is after the call; None where the trace has none."""

    start_line: int | None = None
    end_line: int | None = None
    added: int | None = None
    removed: int | None = None
    old_start: int | None = None
    whole_file: bool = False


def trimmed(old_start: int, new_start: int, lines: Sequence[str]) -> Hunk | None:
    """The changed core of a unified-diff hunk (` `, `+`, `-` prefixed lines); None when nothing changed.

    A deletion-only hunk has start_line = end_line = the line after the deletion (design/signals.md#regions).
    """
    return changed(old_start, new_start, marks_of(lines))


def changed(old_start: int, new_start: int, marks: str) -> Hunk | None:
    """The same, of the first characters of the lines."""
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
    """The first character of each line of a diff; a line without any is context, its blank lost on the way."""
    return "".join([line[:1] or " " for line in lines])


def unified(diff: str) -> list[Hunk]:
    """The changed places of the unified diff of one file; what comes before the first `@@` is passed over."""
    hunks: list[Hunk] = []
    for place in ("\n" + diff.removesuffix("\n")).split("\n@@")[1:]:
        at, *lines = place.split("\n")
        match = _AT.match(at)
        hunk = trimmed(*_starts(match), marks_of(lines)) if match else None
        if hunk is not None:
            hunks.append(hunk)
    return hunks


def _starts(at: re.Match[str]) -> tuple[int, int]:
    """First old and new line of a hunk. An empty side names the line before it: its first line would be the next."""
    old, n_old, new, n_new = at.groups()
    return int(old) + (n_old == "0"), int(new) + (n_new == "0")


def created(content: str) -> Hunk:
    """A whole new file of these lines."""
    n = count_lines(content)
    return Hunk(start_line=1, end_line=max(n, 1), added=n, removed=0, old_start=1, whole_file=True)


def inserted(text: str, line: int | None) -> Hunk:
    """A text that came in behind so many lines of the file; sizes only when nobody knows behind which."""
    n = count_lines(text)
    if line is None:
        return Hunk(added=n, removed=0)
    return Hunk(start_line=line + 1, end_line=line + max(n, 1), added=n, removed=0, old_start=line + 1)


def of_whole_file(hunks: Iterable[Hunk]) -> list[Hunk]:
    """The same places, of a file that was made, deleted or rewritten."""
    return [structs.replace(hunk, whole_file=True) for hunk in hunks]


def rewrites(hunks: Iterable[Hunk], content: str) -> bool:
    """Whether so much of a file that now has this content was changed at once that it is another."""
    return sum(hunk.added or 0 for hunk in hunks) > REWRITTEN * count_lines(content)


def count_lines(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def replaced(old: str, new: str) -> Hunk:
    """An old/new string pair whose place in the file is not known: sizes only, common first and last lines left out."""
    before, after = old.split("\n"), new.split("\n")
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return Hunk(added=len(after) - head - tail, removed=len(before) - head - tail)


MOST_COMPARED_LINES = 1_000
"""Of the part in which two texts differ: to compare more may take seconds, and it counts as one change."""


def between(before: str, after: str) -> list[Hunk]:
    """The changed places of a file that was one text and is another."""
    old, new = before.splitlines(), after.splitlines()
    first = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - first
    same = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
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


# What a call of an edit tool was asked to write: read off its arguments, by the roles that its agent's profile
# gives them.


class EditText(Struct, gc=False, kw_only=True):
    """One change that a call asks for."""

    kind: Literal["replace", "whole", "insert", "append", "part", "patch"]
    """`part` comes in at a place that is not said; of a `patch`, `new` is the patch."""
    new: str
    old: str = ""
    """The text of the file that `new` takes the place of; empty: there was none, for agents whose edit tool also makes
    files."""
    everywhere: bool = False
    line: int = 0
    """Lines of the file before an inserted text."""
    creates: bool = False
    """Said to make the file anew."""


def edit_texts(arguments: str, argument_roles: str | None) -> list[EditText]:
    """The changes that a call asks for, in order; none when its tool is no edit tool, or they can't be read.

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
    patch = _first(arguments, roles.patch)
    if patch is not None:
        pairs = list(_searched(patch))
        yield from pairs or [EditText(kind="patch", new=patch)]
        return
    for name in roles.several:
        if edits := _listed(arguments.get(name)):
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


_MARKS = re.compile(r"(?:[-<]{5,9} (SEARCH)>?|(={5,9})|[+>]{5,9} (REPLACE)>?)[ \t]*")
_PLACE = re.compile(r":(?:start|end)_line:|-{5,9}\Z")


def _searched(patch: str) -> Iterator[EditText]:
    """Pairs of texts between marks, as Aider, Cline and Roo Code have models write them; none of another patch."""
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
    """The first of these arguments that is a text, or the words of a command whose last is."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, list) and value:
            value = value[-1]
        if isinstance(value, str):
            return value
    return None


def _listed(value: Any) -> list[Any]:
    """A list of edits; one alone may stand without a list."""
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


# Which lines an edit removed and added, read off the arguments of the call: what its structured result leaves out.

TRIVIAL_CHARS = 3
"""Lines no longer than this (brackets, `end`) come and go without meaning (design/signals.md#regions)."""

_FILE = re.compile(r"\n(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.*)")
_CHANGED = re.compile(r"\n[+-](?!--|\+\+)(.*)")
_REMOVED = re.compile(r"\n-(?!--)(.*)")
_ADDED = re.compile(r"\n\+(?!\+\+)(.*)")


class Changed(NamedTuple):
    """Lines without their indentation, trivial ones left out."""

    removed: frozenset[str]
    added: frozenset[str]


NOTHING = Changed(frozenset(), frozenset())


def changed_lines(arguments: str, argument_roles: str | None) -> Changed:
    """The lines that a call with these arguments (JSON) replaces; nothing when they don't say."""
    return changed_by(edit_texts(arguments, argument_roles))


def changed_by(texts: Iterable[EditText]) -> Changed:
    """The lines that these texts replace."""
    removed: set[str] = set()
    added: set[str] = set()
    for text in texts:
        if text.kind in ("replace", "patch"):
            old, new = _sides(text.new) if text.kind == "patch" else (text.old, text.new)
            before, after = _lines(old), _lines(new)
            removed |= before - after
            added |= after - before
    return Changed(_telling(removed), _telling(added)) if removed or added else NOTHING


def lines_by_file(arguments: str, argument_roles: str | None) -> dict[str, set[str]]:
    """The lines that a call with these arguments (JSON) adds, replaces or removes, without their indentation, and all
    lines of a file written whole. By file for the files of a patch, as it names them; the others under "".
    """
    return lines_of(edit_texts(arguments, argument_roles))


def lines_of(texts: Iterable[EditText]) -> dict[str, set[str]]:
    """The same of texts."""
    by_file: dict[str, set[str]] = {"": set()}
    for text in texts:
        if text.kind == "patch":
            _collect_patch(text.new, by_file)
        elif text.kind == "replace":
            kept, written = set(text.old.split("\n")), set(text.new.split("\n"))
            # Most lines of a large edit are context: those are never stripped.
            by_file[""] |= set(map(str.strip, kept - written)) ^ set(map(str.strip, written - kept))
        else:
            by_file[""] |= _lines(text.new)
    return by_file


def _collect_patch(patch: str, by_file: dict[str, set[str]]) -> None:
    sections = _FILE.split("\n" + patch)
    for path, section in zip(["", *sections[1::2]], sections[::2], strict=True):
        changed = _CHANGED.findall(section)
        if changed:
            by_file.setdefault(path.strip(), set()).update(map(str.strip, changed))


def _sides(patch: str) -> tuple[str, str]:
    patch = "\n" + patch
    return "\n".join(_REMOVED.findall(patch)), "\n".join(_ADDED.findall(patch))


def _lines(text: str) -> set[str]:
    return set(map(str.strip, text.split("\n")))


def _telling(lines: set[str]) -> frozenset[str]:
    """Without the trivial lines: left out at the end, when most lines have proved to be unchanged."""
    return frozenset([line for line in lines if len(line) > TRIVIAL_CHARS])
