"""Which lines an edit removed and added, read off the arguments of the call: what its structured result leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

TRIVIAL_CHARS = 3
"""Lines no longer than this (brackets, `end`) come and go without meaning (signals.yaml, region_edit_convergence)."""

_PAIRS = (("old_string", "new_string"), ("oldText", "newText"), ("old_str", "new_str"), ("oldString", "newString"))
_PATCHES = ("patch", "patchText", "input", "diff")
_REMOVED = re.compile(r"\n-(?!--)(.*)")
_ADDED = re.compile(r"\n\+(?!\+\+)(.*)")


class Changed(NamedTuple):
    """Lines without their indentation, trivial ones left out."""

    removed: frozenset[str]
    added: frozenset[str]


NOTHING = Changed(frozenset(), frozenset())


def changed_lines(arguments: str) -> Changed:
    """The lines that a call with these arguments (JSON) changes; nothing when they don't say."""
    try:
        given = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        given = arguments
    removed: set[str] = set()
    added: set[str] = set()
    for old, new in _texts(given):
        before, after = _lines(old), _lines(new)
        removed |= before - after
        added |= after - before
    return Changed(_telling(removed), _telling(added)) if removed or added else NOTHING


def _texts(given: Any) -> Iterator[tuple[str, str]]:
    """Old and new text of each replacement in the arguments."""
    if isinstance(given, str):
        yield _sides(given)
        return
    if not isinstance(given, dict):
        return
    for old, new in _PAIRS:
        if old in given and new in given and isinstance(given[old], str) and isinstance(given[new], str):
            yield given[old], given[new]
    for name in _PATCHES:
        if name in given and isinstance(given[name], str):
            yield _sides(given[name])
    edits = given.get("edits")
    if isinstance(edits, list):
        for one in edits:
            yield from _texts(one)


def _sides(patch: str) -> tuple[str, str]:
    patch = "\n" + patch
    return "\n".join(_REMOVED.findall(patch)), "\n".join(_ADDED.findall(patch))


def _lines(text: str) -> set[str]:
    return set(map(str.strip, text.split("\n")))


def _telling(lines: set[str]) -> frozenset[str]:
    """Without the trivial lines: left out at the end, when most lines have proved to be unchanged."""
    return frozenset([line for line in lines if len(line) > TRIVIAL_CHARS])
