"""The beginning of a file, decoded as far as it goes. Formats recognise their files by it."""

import re
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Any

import msgspec

from agentsignals.formats.records import Lenient, after_space
from agentsignals.model.lazy import once, release_pages

HEAD_BYTES = 64 * 1024
"""Bytes of a file that are read to recognise it (design/formats.md#recognition)."""
MAX_RECORDS = 12
LINES_BYTES = 16 * 1024 * 1024
"""Bytes that are read at most of a file of long records."""

_UNREADABLE = (ValueError, RecursionError)
_decode = msgspec.json.Decoder().decode
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*[\"}]|\[\s*(?:[\[{]\s*[\[{\"\]}]|[\"\]]))")


class Head:
    """The first 64 KiB of a file. Each property is decoded once, on demand."""

    def __init__(self, data: bytes, path: str = "", complete: bool = False) -> None:
        self.data = data
        self.path = path
        self.complete = complete
        """`data` is the whole file."""

    @once
    def text(self) -> str:
        return self.data.decode("utf-8", "replace").lstrip("\ufeff")

    @once
    def records(self) -> list[dict[str, Any]]:
        """The JSON objects of the first lines, if the file is JSON Lines. Lines that don't parse are left out."""
        start = self.data.lstrip(b"\xef\xbb\xbf \t\r\n")
        lines = start.split(b"\n", 2 * MAX_RECORDS)
        if lines[0].strip() in (b"{", b"["):
            return []  # a document printed over many lines
        if not self.complete or len(lines) > 2 * MAX_RECORDS:
            lines.pop()  # cut by the window, or the rest of the file
        objects: list[dict[str, Any]] = []
        for line in lines:
            value = _object(line)
            if value is not None:
                objects.append(value)
                if len(objects) == MAX_RECORDS:
                    break
        return objects

    @once
    def is_lines(self) -> bool:
        """The first line is a JSON object by itself: the file is JSON Lines, or a one-line document."""
        start = self.data.lstrip(b"\xef\xbb\xbf \t\r\n")
        if start[:1] != b"{":
            return False
        return bool(self.records) or _object(start.split(b"\n", 1)[0]) is not None

    @once
    def document(self) -> dict[str, Any]:
        """The leading keys of a document. The key of a value that the window cuts maps to `CUT`. For JSON Lines, the
        first record."""
        if self.records:
            return self.records[0]
        if self.complete:
            whole = _object(self.data.lstrip(b"\xef\xbb\xbf \t\r\n"))
            if whole is not None:
                return whole
        text = self.text
        at = after_space(text, 0)
        keys: dict[str, Any] = {}
        if text[at : at + 1] != "{":
            return keys
        at = after_space(text, at + 1)
        while text[at : at + 1] == '"':
            try:
                key, at = Lenient().value(text, at)
            except _UNREADABLE:
                break
            at = after_space(text, at)
            if text[at : at + 1] != ":":
                break
            at = after_space(text, at + 1)
            if not self.complete and text[at : at + 1] == "[":
                keys[key] = CUT  # a list in a longer file: too much to decode for what follows it
                break
            try:
                keys[key], at = Lenient().value(text, at)
            except _UNREADABLE:
                keys[key] = CUT
                break
            at = after_space(text, at)
            if text[at : at + 1] != ",":
                break
            at = after_space(text, at + 1)
        return keys

    @once
    def items(self) -> list[dict[str, Any]]:
        """The first objects of a document that is a list."""
        if self.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"[":
            return []
        items = Lenient().items(self.text, after_space(self.text, 0) + 1)
        return list(islice(takewhile(lambda item: isinstance(item, dict), items), MAX_RECORDS))

    @once
    def looks_like_json(self) -> bool:
        """The content begins as a JSON object or list does."""
        return _JSON_START.match(self.data) is not None


def head_of(data: bytes, path: str = "") -> Head:
    """Return the head of a whole file. If its first record is longer than the window, it has all of that record and the
    next; of a document it has every key. So it is in recognition."""
    head = Head(bytes(data[:HEAD_BYTES]), path, len(data) <= HEAD_BYTES)
    if head.complete or head.records or not head.looks_like_json:
        return head
    short = outline(data)
    release_pages(data)
    if short is not None:
        return Head(short, path, True)
    first = data.find(b"\n", 0, LINES_BYTES)
    if first < 0:
        return head
    window = bytes(data[: max(first, data.find(b"\n", first + 1, LINES_BYTES)) + 1])
    return Head(window, path, len(window) == len(data))


LONGEST_VALUE = 2048
"""Bytes of a value that an outline keeps as it is."""
_raw_object, _raw = msgspec.json.Decoder(dict[str, msgspec.Raw]), msgspec.json.Decoder(msgspec.Raw)
_BREAKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{},]', re.S)
"""Brackets and commas of JSON, and the texts that may hold some."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def outline(data: bytes) -> bytes | None:
    """Return a document with all its keys, in whatever order and however long, and with long values shortened: texts
    to nothing, lists to their first items. None if it is no whole document.

    A value that is passed over costs what it takes to find its end.
    """
    whole = memoryview(data)
    try:
        return _outline(whole[3:] if data[:3] == _BYTE_ORDER_MARK else whole)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _outline(value: memoryview) -> bytes:
    if len(value) <= LONGEST_VALUE:
        return bytes(value).replace(b"\n", b" ")  # no text of JSON holds one: it is a document of one line
    if bytes(value[:64]).lstrip()[:1] == b"{":
        fields = _raw_object.decode(value)
        inner = (msgspec.json.encode(key) + b":" + _outline(memoryview(raw)) for key, raw in fields.items())
        return b"{" + b",".join(inner) + b"}"
    if bytes(value[:64]).lstrip()[:1] == b"[":
        _raw.decode(value)
        return b"[" + b",".join(map(_outline, islice(_items(value), MAX_RECORDS))) + b"]"
    return b'""'


def _items(value: memoryview) -> Iterator[memoryview]:
    """Yield the items of a list one by one: all of them decoded take more than its bytes."""
    depth = start = 0
    for mark in _BREAKS.finditer(value):
        sign = mark[0]
        depth += (sign in (b"[", b"{")) - (sign in (b"]", b"}"))
        is_end = depth == 1 and sign == b","
        if (is_end or not depth) and bytes(value[start : mark.start()]).strip():
            yield value[start : mark.start()]
        if is_end or (depth == 1 and not start):
            start = mark.end()


class _Cut:
    """Stands for a value that begins in the window and ends after it."""

    def __repr__(self) -> str:
        return "CUT"


CUT = _Cut()


def _object(line: bytes) -> dict[str, Any] | None:
    """Decode the JSON object of a line, however sloppy. None if it is something else."""
    if line[:1] != b"{" and line.lstrip()[:1] != b"{":
        return None
    try:
        value = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            text = line.decode("utf-8", "replace").strip()
            value, end = Lenient().value(text)
            if end < len(text):
                return None
        except _UNREADABLE:
            return None
    return value if isinstance(value, dict) else None
