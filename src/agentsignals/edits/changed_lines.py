"""Which lines an edit removed and added, read off the arguments of the call: what its structured result leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

TRIVIAL_CHARS = 3
"""Lines no longer than this (brackets, `end`) come and go without meaning (design/signals.md#regions)."""

_PAIRS = (("old_string", "new_string"), ("oldText", "newText"), ("old_str", "new_str"), ("oldString", "newString"))
_PATCHES = ("patch", "patchText", "input", "diff")
_CONTENTS = ("content", "contents", "file_text", "new_source")
_FILE = re.compile(r"\n(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.*)")
_CHANGED = re.compile(r"\n[+-](?!--|\+\+)(.*)")
_REMOVED = re.compile(r"\n-(?!--)(.*)")
_ADDED = re.compile(r"\n\+(?!\+\+)(.*)")


class Changed(NamedTuple):
    """Lines without their indentation, trivial ones left out."""

    removed: frozenset[str]
    added: frozenset[str]


NOTHING = Changed(frozenset(), frozenset())


def changed_lines(arguments: str) -> Changed:
    """The lines that a call with these arguments (JSON) changes; nothing when they don't say."""
    decoded = _decoded(arguments)
    removed: set[str] = set()
    added: set[str] = set()
    for old, new in _texts(decoded):
        before, after = _lines(old), _lines(new)
        removed |= before - after
        added |= after - before
    return Changed(_telling(removed), _telling(added)) if removed or added else NOTHING


def _decoded(arguments: str) -> Any:
    """The arguments as data; as they are when they are no JSON, or nested deeper than anyone can read."""
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments


def lines_by_file(arguments: str) -> dict[str, set[str]]:
    """The lines that a call with these arguments (JSON) adds, replaces or removes, without their indentation, and all
    lines of a file written whole. By file for the files of a patch, as it names them; the others under "".
    """
    decoded = _decoded(arguments)
    by_file: dict[str, set[str]] = {"": set()}
    _collect(decoded, by_file)
    return by_file


def _collect(arguments: Any, by_file: dict[str, set[str]]) -> None:
    if isinstance(arguments, str):
        _collect_patch(arguments, by_file)
    if not isinstance(arguments, dict):
        return
    for old, new in _PAIRS:
        if isinstance(before := arguments.get(old), str) and isinstance(after := arguments.get(new), str):
            kept, written = set(before.split("\n")), set(after.split("\n"))
            # Most lines of a large edit are context: those are never stripped.
            by_file[""] |= set(map(str.strip, kept - written)) ^ set(map(str.strip, written - kept))
    for name in _CONTENTS:
        if isinstance(text := arguments.get(name), str):
            by_file[""] |= _lines(text)
    for name in _PATCHES:
        if isinstance(text := arguments.get(name), str):
            _collect_patch(text, by_file)
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else ():
        if isinstance(edit, dict) and "edits" not in edit:
            _collect(edit, by_file)


def _collect_patch(patch: str, by_file: dict[str, set[str]]) -> None:
    sections = _FILE.split("\n" + patch)
    for path, section in zip(["", *sections[1::2]], sections[::2], strict=True):
        changed = _CHANGED.findall(section)
        if changed:
            by_file.setdefault(path.strip(), set()).update(map(str.strip, changed))


def _texts(arguments: Any) -> Iterator[tuple[str, str]]:
    """Old and new text of each replacement in the arguments."""
    if isinstance(arguments, str):
        yield _sides(arguments)
        return
    if not isinstance(arguments, dict):
        return
    for old, new in _PAIRS:
        if (
            old in arguments
            and new in arguments
            and isinstance(arguments[old], str)
            and isinstance(arguments[new], str)
        ):
            yield arguments[old], arguments[new]
    for name in _PATCHES:
        if name in arguments and isinstance(arguments[name], str):
            yield _sides(arguments[name])
    edits = arguments.get("edits")
    if isinstance(edits, list):
        for edit in edits:
            yield from _texts(edit)


def _sides(patch: str) -> tuple[str, str]:
    patch = "\n" + patch
    return "\n".join(_REMOVED.findall(patch)), "\n".join(_ADDED.findall(patch))


def _lines(text: str) -> set[str]:
    return set(map(str.strip, text.split("\n")))


def _telling(lines: set[str]) -> frozenset[str]:
    """Without the trivial lines: left out at the end, when most lines have proved to be unchanged."""
    return frozenset([line for line in lines if len(line) > TRIVIAL_CHARS])
