"""Changed lines: hunks with their context trimmed, and files that shell commands write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agentsignals.model import Edit, EditOp, ToolCall

_AT = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Hunk(Struct, gc=False):
    """One changed place. Lines are 1-based, in the file as it is after the call; None where the trace has none."""

    start_line: int | None = None
    end_line: int | None = None
    added: int | None = None
    removed: int | None = None
    old_start: int | None = None
    whole_file: bool = False


def trimmed(old_start: int, new_start: int, lines: Sequence[str]) -> Hunk | None:
    """The changed core of a unified-diff hunk (` `, `+`, `-` prefixed lines); None when nothing changed.

    A deletion-only hunk has start_line = end_line = the line after the deletion (signals.yaml, region_edit_history).
    """
    first = last = -1
    added = removed = old_before = 0
    for n, line in enumerate(lines):
        mark = line[:1]
        if mark == "+":
            added += 1
        elif mark == "-":
            removed += 1
        else:
            if first < 0 and mark != "\\":
                old_before += 1
            continue
        if first < 0:
            first = n
        last = n
    if first < 0:
        return None
    core_new = sum(1 for line in lines[first : last + 1] if line[:1] not in ("-", "\\"))
    start = new_start + old_before
    return Hunk(start, start + max(core_new, 1) - 1, added, removed, old_start + old_before)


def unified(diff: str) -> list[Hunk]:
    """The changed places of the unified diff of one file; what comes before the first `@@` is passed over."""
    hunks: list[Hunk] = []
    starts: tuple[int, int] | None = None
    lines: list[str] = []
    for line in [*diff.removesuffix("\n").split("\n"), "@@"]:
        if not line.startswith("@@"):
            lines.append(line)
            continue
        hunk = trimmed(*starts, lines) if starts is not None else None
        if hunk is not None:
            hunks.append(hunk)
        found = _AT.match(line)
        starts = _starts(found) if found else None
        lines = []
    return hunks


def _starts(at: re.Match[str]) -> tuple[int, int]:
    """First old and new line of a hunk. An empty side names the line before it: its first line would be the next."""
    old, n_old, new, n_new = at.groups()
    return int(old) + (n_old == "0"), int(new) + (n_new == "0")


def created(content: str) -> Hunk:
    """A whole new file of these lines."""
    n = count_lines(content)
    return Hunk(1, max(n, 1), n, 0, 1, True)


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


def shell_edits(call: ToolCall, writes: Iterable[tuple[str, EditOp]]) -> list[Edit]:
    """The files a shell command writes, one whole-file record each: lines unknown, so regions of the file close."""
    return [
        Edit(call.seq, call.turn, call.thread, call.call_id, path, op, "shell", n, whole_file=True)
        for n, (path, op) in enumerate(writes)
    ]
