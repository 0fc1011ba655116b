"""The records of a file, each accounted for: decoded, recovered, or counted as skipped with a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any, TypeVar

import msgspec

from agentsignals.formats.bounds import refuse
from agentsignals.model import Artifact
from agentsignals.model import lazy as mapped

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is skipped and counted: no agent writes one, and decoding it could take all memory."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes it can't read: no JSON, no UTF-8, brackets nested a thousand deep."""

MAX_DOCUMENT_BYTES = 128 * 1024 * 1024
"""A larger document is skipped and counted: it can only be decoded whole, at several times its size."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_MOST_DIGITS = 20
"""Of a whole number with its sign: 64 bits have no more."""

_STRIDE_BYTES = 512
_DIGITS, _LONG_NUMBER = re.compile(rb"[0-9]{8}"), re.compile(rb"(?=[0-9]{8})")
"""Every 512th byte of 4301 digits, the fewest that no decoder takes for a whole number, where one may be read later
(Python's limit, and msgspec's): eight of them."""

T = TypeVar("T")
Decode = Callable[[memoryview | bytes], T]


def lines(data: bytes, artifact: Artifact, decode: Decode[T]) -> Iterator[tuple[int, T]]:
    """Each record of JSON Lines with its 1-based line number.

    A line holding several objects gives each of them; a line that is not JSON is skipped as `bad_json` (`cut_line` for
    a last line without its newline); valid JSON of another shape than `decode` wants is skipped as `bad_shape`.
    """
    view = memoryview(data)
    end = len(data)
    at = 3 if data[:3] == b"\xef\xbb\xbf" else 0
    number = released = 0
    while at < end:
        stop = data.find(b"\n", at)
        whole = stop >= 0
        if not whole:
            stop = end
        number += 1
        start, at = at, stop + 1
        if at - released >= mapped.EVERY_BYTES:
            mapped.release(data)
            released = at
        if stop - start > MAX_LINE_BYTES:
            artifact.records += 1
            skip(artifact, "line_too_long")
            continue
        try:
            record = _decoded(view[start:stop], artifact, decode)
        except UNREADABLE:
            raw = bytes(view[start:stop]).strip()
            if raw:
                for recovered in _recovered(raw, artifact, decode, "bad_json" if whole else "cut_line"):
                    yield number, recovered
            continue
        artifact.records += 1
        yield number, record


def all_lines(
    data: bytes, artifact: Artifact, decoder: msgspec.json.Decoder[T], decode: Decode[T]
) -> tuple[Sequence[int], list[T]]:
    """The same as two lists, numbers and records; decoded in one go when every line is a record, which is the rule.

    `decode` is for files in which something is odd, and may understand more than `decoder`.
    """
    if len(data) <= MAX_LINE_BYTES and not _has_long_number(memoryview(data)):
        try:
            records = decoder.decode_lines(data)
        except UNREADABLE:
            records = []
        if records and len(records) == _line_count(data):
            artifact.records += len(records)
            return range(1, len(records) + 1), records
    numbered = list(lines(data, artifact, decode))
    return [number for number, _ in numbered], [record for _, record in numbered]


def _line_count(data: bytes) -> int:
    """By `find`, many times faster than `count` for one byte. 0 when a line is empty: a torn write leaves one."""
    count = before = 0
    while at := data.find(b"\n", before) + 1:
        if at == before + 1:
            return 0
        count, before = count + 1, at
    return count + (data[-1:] != b"\n")


def document(data: bytes, artifact: Artifact, decode: Decode[T]) -> T | None:
    """The one JSON document of a file; None, with the reason counted, when it can't be read."""
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    if len(data) > MAX_DOCUMENT_BYTES:
        artifact.records += 1
        skip(artifact, "document_too_large")
        return None
    try:
        record = _decoded(data, artifact, decode)
    except UNREADABLE:
        recovered = list(_recovered(bytes(data).strip(), artifact, decode, "cut_document"))
        for _ in recovered[1:]:
            skip(artifact, "beside_document")
        return recovered[0] if recovered else None
    artifact.records += 1
    return record


def skip(artifact: Artifact, reason: str) -> None:
    """One record could not be used; said in the artifact."""
    artifact.skipped += 1
    artifact.skipped_reasons[reason] = artifact.skipped_reasons.get(reason, 0) + 1


def read_before(artifact: Artifact) -> Artifact:
    """What accounts for the records of a file that is read a second time: they are in its artifact already."""
    return msgspec.structs.replace(artifact, skipped_reasons={}, record_kinds={})


def saw(artifact: Artifact, kind: str, times: int = 1) -> None:
    """A record of that kind was read, or so many."""
    artifact.record_kinds[kind] = artifact.record_kinds.get(kind, 0) + times


class Lenient:
    """Reads JSON as far as it can be read, with values that JSON has no place for; `odd` says what became of them."""

    def __init__(self) -> None:
        self.odd: list[str] = []
        self._decoder = json.JSONDecoder(
            strict=False, parse_constant=self._no_number, parse_float=self._float, parse_int=self._int
        )

    def text(self, raw: bytes) -> str:
        """The bytes as text."""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.odd.append("unsound_text")
            return raw.decode("utf-8", "replace")

    def value(self, text: str, at: int = 0) -> tuple[Any, int]:
        """The value that begins at `at`, and where it ends. ValueError or RecursionError when there is none."""
        value, end = self._decoder.raw_decode(text, at)
        if _SURROGATE.search(text, at, end):
            again = json.dumps(value, ensure_ascii=False)
            try:
                again.encode()
            except UnicodeEncodeError:
                self.odd.append("unsound_text")
                value = json.loads(again.encode("utf-8", "replace"))
        return value, end

    def account(self, artifact: Artifact) -> None:
        """Counts what was odd in records that were read after all."""
        for reason in self.odd:
            refuse(artifact, reason)
        self.odd.clear()

    def _no_number(self, _: str) -> Any:
        self.odd.append("impossible_number")

    def _float(self, digits: str) -> float | None:
        number = float(digits)
        return number if isfinite(number) else self._no_number(digits)

    def _int(self, digits: str) -> int | None:
        return int(digits) if len(digits) <= _MOST_DIGITS else self._no_number(digits)


def mended(raw: bytes, artifact: Artifact, decode: Decode[T]) -> T | None:
    """One value without what JSON has no place for, which is counted; None when it can't be read so either."""
    lenient = Lenient()
    try:
        value, _ = lenient.value(lenient.text(raw))
        record = decode(json.dumps(value, ensure_ascii=False).encode()) if lenient.odd else None
    except (ValueError, *UNREADABLE):
        return None
    lenient.account(artifact)
    return record


def _decoded(data: memoryview | bytes, artifact: Artifact, decode: Decode[T]) -> T:
    """One record. A number too long for any decoder is taken out and counted here, also where only a part that is
    decoded later holds it: there it would cost the whole part."""
    record = mended(bytes(data), artifact, decode) if _has_long_number(memoryview(data)) else None
    return decode(data) if record is None else record


def _has_long_number(view: memoryview) -> bool:
    """Whether there may be one: a text may have as many digits."""
    if len(view) < 8 * _STRIDE_BYTES:
        return False
    strides = bytes(view[::_STRIDE_BYTES])
    if _DIGITS.search(strides) is None:
        return False
    starts = (hit.start() * _STRIDE_BYTES for hit in _LONG_NUMBER.finditer(strides))
    return any(bytes(view[at : at + 7 * _STRIDE_BYTES]).isdigit() for at in starts)


def _recovered(raw: bytes, artifact: Artifact, decode: Decode[T], broken: str) -> Iterator[T]:
    """What a lenient reader makes of a record: several objects on one line, lone surrogates, NaN."""
    lenient = Lenient()
    text = lenient.text(raw)
    at = 0
    while at < len(text):
        artifact.records += 1
        try:
            value, at = lenient.value(text, at)
        except (ValueError, RecursionError):
            skip(artifact, broken)
            return
        try:
            record = decode(json.dumps(value, ensure_ascii=False).encode())
        except UNREADABLE:
            skip(artifact, "bad_shape")
            lenient.odd.clear()
        else:
            lenient.account(artifact)
            yield record
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
