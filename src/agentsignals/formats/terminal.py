"""Read what an agent printed to a terminal: the records in a recording (asciinema), a pane or a log.

A terminal shows more than the agent's stream: shell lines come before and after it, escape codes among it, and a pane
breaks each record at its width. Records are JSON objects that begin a line; no string in them holds a line break, so
every break inside of one is the terminal's.
"""

import re
from bisect import bisect_right
from typing import Any, NamedTuple

import msgspec

from agentsignals.formats.harbor import is_recording
from agentsignals.formats.records import HEAD_BYTES, UNREADABLE, Head

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()*+][A-Z0-9]|[ -~])"
    r"|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Codes of a terminal. JSON writes control characters as escapes of its own, so none of these is a record's."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_BEGINS = re.compile(r'\{\s*"')
_MOST_CHARS = 16 * 1024 * 1024
"""Length of a record at most."""
_MOST_PASSES = 8
"""Lines that begin like a record and hold none cost a look at what follows: together no more than this often at all of
the text."""
_OUTPUT = "o"
_decode = msgspec.json.Decoder().decode


class Printed(NamedTuple):
    """Records of a terminal as JSON Lines, and the line of the file at which each begins."""

    data: bytes
    lines: list[int]


def printed(data: memoryview | bytes) -> Printed | None:
    """Return the records that a terminal shows, or None where it shows none."""
    whole = bytes(data)
    if b'{"' not in whole:
        return None
    text, marks = _shown(whole)
    clean, shifts = _without_codes(text)
    joined: list[str] = []
    starts: list[int] = []
    begins: list[int] = []
    at = length = 0
    for line in clean.split("\n"):
        joined.append(line)
        starts.append(length)
        begins.append(at)
        at, length = at + len(line) + 1, length + len(line)
    shown = "".join(joined)
    ends = {*starts, length}
    records: list[str] = []
    lines: list[int] = []
    behind = 0
    left = _MOST_PASSES * length
    for start, began, line in zip(starts, begins, joined, strict=True):
        if start < behind or _BEGINS.match(line) is None:
            continue
        end = _end_of(shown, start)
        while end is not None and end not in ends and shown[end : end + 1] == " ":
            end += 1
        if end is None or end not in ends or not _is_object(shown[start:end]):
            left -= (min(length, start + _MOST_CHARS) if end is None else end) - start
            if left < 0:
                break
            continue
        behind = end
        records.append(shown[start:end])
        place = bisect_right(shifts, (began, length + len(clean))) - 1
        offset = began + shifts[place][1] if place >= 0 else began
        lines.append(marks[bisect_right(marks, (offset, 2**62)) - 1][1])
    return Printed("\n".join([*records, ""]).encode("utf-8", "replace"), lines) if records else None


def _shown(data: bytes) -> tuple[str, list[tuple[int, int]]]:
    """Return what a terminal showed, and the line of the file by offset in that."""
    raw = data.decode("utf-8", "replace").lstrip("\ufeff")
    rows = raw.split("\n")
    if not is_recording(Head(data[:HEAD_BYTES], "", len(data) <= HEAD_BYTES)):
        marks, at = [], 0
        for number, row in enumerate(rows, 1):
            marks.append((at, number))
            at += len(row) + 1
        return raw, marks
    pieces: list[str] = []
    marks, at = [(0, 1)], 0
    for number, row in enumerate(rows[1:], 2):
        try:
            event: Any = _decode(row)
        except UNREADABLE:
            continue
        if isinstance(event, list) and len(event) == 3 and event[1] == _OUTPUT and isinstance(event[2], str):
            marks.append((at, number))
            pieces.append(event[2])
            at += len(event[2])
    return "".join(pieces), marks


def _without_codes(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text without a terminal's codes, and how much was cut before each offset."""
    pieces: list[str] = []
    shifts: list[tuple[int, int]] = []
    at = cut = 0
    for code in _ESCAPES.finditer(text):
        pieces.append(text[at : code.start()])
        at, cut = code.end(), cut + code.end() - code.start()
        shifts.append((at - cut, cut))
    pieces.append(text[at:])
    return "".join(pieces), shifts


def _end_of(text: str, start: int) -> int | None:
    """Return the end of the object that begins there."""
    depth = 0
    for token in _TOKEN.finditer(text, start, start + _MOST_CHARS):
        sign = token.group()
        if sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _is_object(text: str) -> bool:
    try:
        return isinstance(_decode(text), dict)
    except UNREADABLE:
        return False
