"""Which lines an edit removed and added, read off the arguments of the call: what its structured result leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from agentsignals.edits.texts import EditText, edit_texts

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
