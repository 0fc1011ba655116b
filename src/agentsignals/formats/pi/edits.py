"""What Pi's `edit` and `write` changed: from the diff in the result's details, else from the arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from agentsignals.edits.hunks import Hunk, changed, marks_of, unified
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edit_arguments import record_arguments
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import ToolCall

_NUMBERED = re.compile(r"[+-] *(\d+)(?: |$)")


class Details(Struct, gc=False):
    diff: str | None = None
    patch: str | None = None


_details = msgspec.json.Decoder(Details).decode


def record(builder: SessionBuilder, call: ToolCall, details: Raw, touched: set[str]) -> None:
    """The change a successful call made. `touched` holds the paths this session has read or changed before."""
    hunks = _from_details(details) if details else []
    if hunks:
        builder.edit(call, None, "modify", hunks)
    else:
        record_arguments(builder, call, touched)


def _from_details(raw: Raw) -> list[Hunk]:
    """`patch` is a unified diff (newer); `diff` numbers every line (all versions)."""
    try:
        details = _details(raw)
    except UNREADABLE:
        return []
    hunks = unified(details.patch) if details.patch else []
    return hunks or (list(_of_numbered(details.diff)) if details.diff else [])


def _of_numbered(diff: str) -> Iterator[Hunk]:
    """Lines `-  32 text`, `+  32 text`, ` 33 text` in runs set apart by `...`.

    A `+` line has its new number, a `-` line its old one; the number in the other file follows from the lines added and
    removed so far. Context lines are only counted: the first versions number them wrongly after a gap.
    """
    shift = 0
    for run in _runs(diff.split("\n")):
        marks = marks_of(run)
        starts = _starts(run, shift)
        hunk = changed(*starts, marks) if starts is not None else None
        if hunk is not None:
            yield hunk
        shift += marks.count("+") - marks.count("-")


def _runs(lines: list[str]) -> Iterator[list[str]]:
    begin = 0
    for n, line in enumerate(lines):
        if not line or ("..." in line and line[1:].lstrip(" ").startswith("...")):
            yield lines[begin:n]
            begin = n + 1
    yield lines[begin:]


def _starts(run: list[str], shift: int) -> tuple[int, int] | None:
    """First old and new line of a run, off its first changed line that has a number; None when there is none."""
    for n, line in enumerate(run):
        match = _NUMBERED.match(line)
        if match is not None:
            first = int(match.group(1)) - n
            return (first - shift, first) if line[0] == "+" else (first, first + shift)
    return None
