"""The records of a file, each accounted for: decoded, repaired, or counted as skipped with a reason.

Formats recognise a file by its head, the beginning decoded as far as it goes.
"""

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import cache
from itertools import chain, islice, takewhile
from math import isfinite
from typing import Any, TypeVar, overload

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.bounds import refuse, spelled_number
from agentsignals.model import Artifact, from_iso
from agentsignals.model import lazy as mapped
from agentsignals.model.lazy import deferred_pattern, once, release_pages

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is skipped and counted. No agent writes one, and decoding it could take all memory."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of a decoder for bytes it can't read: no JSON, no UTF-8, brackets nested a thousand deep."""

MAX_DOCUMENT_BYTES = 128 * 1024 * 1024
"""A larger document is skipped and counted. It can only be decoded whole, at several times its size in memory."""

_SURROGATE = deferred_pattern(r"\\u[dD][89a-fA-F]")
_MOST_DIGITS = 20
"""Digits of a whole number with its sign. 64 bits have no more."""

_STRIDE_BYTES = 512
_DIGITS, _LONG_NUMBER = re.compile(rb"[0-9]{8}"), re.compile(rb"(?=[0-9]{8})")
"""A number of 4,301 digits, which no decoder accepts (the limit of Python and of msgspec), shows as eight digits among
every 512th byte."""

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
Decode = Callable[[memoryview | bytes], T]


@cache
def decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type. It is built once."""
    return msgspec.json.Decoder(type_)


@overload
def decoded(raw: object, type_: type[T]) -> T | None: ...
@overload
def decoded(raw: object, type_: Any) -> Any: ...
def decoded(raw: Any, type_: Any) -> Any:
    """Decode a part of a record: JSON as bytes or text. None if it is absent, can't be read or has another shape."""
    if not raw:
        return None
    try:
        return decoder(type_).decode(raw)
    except msgspec.ValidationError:
        odd: list[str] = []
        try:
            part = fitted(msgspec.json.decode(raw), decoder(type_).decode, odd)
        except UNREADABLE:
            return None
        return None if odd else part  # nothing is left out where nothing counts it
    except (*UNREADABLE, TypeError):  # a TypeError: neither bytes nor text
        return None


def inside(value: object, *names: str) -> Any:
    """Return the value at a path of names in nested dicts. None if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def as_text(value: object) -> str:
    """Return a value that is usually a string as text; nothing for None."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def string(value: object) -> str | None:
    """Return a text that is not empty, and None for anything else."""
    return value or None if isinstance(value, str) else None


def as_list(value: object) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def lines(
    data: bytes, artifact: Artifact, decode: Decode[T], offsets: "array[int] | None" = None
) -> Iterator[tuple[int, T]]:
    """Yield the records of JSON Lines, each with its line number from 1.

    A line may hold several objects. A line that is not JSON is skipped as `bad_json` (`cut_line`: a last line without
    its newline). JSON of another shape than `decode` wants is skipped as `bad_shape`. `offsets` gets the first and the
    last byte of each record; twice 0 for one that had to be repaired.
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
            mapped.release_pages(data)
            released = at
        if stop - start > MAX_LINE_BYTES:
            artifact.records += 1
            skip(artifact, "line_too_long")
            continue
        try:
            record = _decoded_record(view[start:stop], artifact, decode)
        except UNREADABLE:
            raw = bytes(view[start:stop]).strip()
            if raw:
                for repaired_record in _repaired_records(raw, artifact, decode, "bad_json" if whole else "cut_line"):
                    if offsets is not None:
                        offsets.extend((0, 0))
                    yield number, repaired_record
            continue
        artifact.records += 1
        if offsets is not None:
            offsets.extend((start, stop))
        yield number, record


LARGE_BYTES = 16 * 1024 * 1024
"""Of a larger file of JSON Lines not all records are held decoded."""
_BLOCK_BYTES = 256 * 1024


class Records(Sequence[T]):
    """The records of a large file, decoded a block at a time when they are asked for. Kept are their offsets, and those
    that had to be repaired."""

    def __init__(self, data: bytes, artifact: Artifact, decode: Decode[T], look: Callable[[Sequence[T]], None]) -> None:
        self._data, self._decode, self._artifact = data, decode, read_before(artifact)
        self._offsets, self.numbers = array("Q"), array("Q")
        self._repaired: dict[int, T] = {}
        block: list[T] = []
        size = 0
        for number, record in lines(data, artifact, decode, self._offsets):
            if not self._offsets[-1]:
                self._repaired[len(self.numbers)] = record
            self.numbers.append(number)
            block.append(record)
            size += self._offsets[-1] - self._offsets[-2]
            if size > _BLOCK_BYTES:
                look(block)
                block, size = [], 0
        look(block)
        self._divide()

    def _divide(self) -> None:
        self._block_starts, self._blocks, self._bytes_since_release = array("Q", (0,)), dict[int, list[T]](), 0
        size = 0
        for n in range(len(self.numbers)):
            size += self._offsets[2 * n + 1] - self._offsets[2 * n]
            if size > _BLOCK_BYTES:
                self._block_starts.append(n + 1)
                size = 0

    def part(self, chosen: Sequence[int]) -> "Records[T]":
        """Return some of the records."""
        part = copy(self)
        part.numbers = array("Q", [self.numbers[n] for n in chosen])
        part._offsets = array("Q", [at for n in chosen for at in self._offsets[2 * n : 2 * n + 2]])
        part._repaired = {at: self._repaired[n] for at, n in enumerate(chosen) if n in self._repaired}
        part._divide()
        return part

    def _decoded_block(self, which: int) -> list[T]:
        """Return a block's records. Those next to the last stay decoded; mapped pages are released at intervals."""
        block = self._blocks.get(which)
        if block is None:
            first = self._block_starts[which]
            end = self._block_starts[which + 1] if which + 1 < len(self._block_starts) else len(self.numbers)
            view = memoryview(self._data)
            block = [
                _decoded_record(view[start:stop], self._artifact, self._decode) if stop else self._repaired[n]
                for n, start, stop in zip(
                    range(first, end),
                    self._offsets[2 * first : 2 * end : 2],
                    self._offsets[2 * first + 1 : 2 * end : 2],
                    strict=True,
                )
            ]  # fmt: skip
            self._bytes_since_release += _BLOCK_BYTES
            if self._bytes_since_release >= mapped.EVERY_BYTES:
                mapped.release_pages(self._data)
                self._bytes_since_release = 0
            self._blocks = {k: held for k, held in self._blocks.items() if abs(k - which) <= 1} | {which: block}
        return block

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(map(self._decoded_block, range(len(self._block_starts))))

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return [self[n] for n in range(*at.indices(len(self)))]
        which = bisect_right(self._block_starts, at) - 1
        return self._decoded_block(which)[at - self._block_starts[which]]


def all_lines(
    data: bytes, artifact: Artifact, decoder: msgspec.json.Decoder[T], decode: Decode[T]
) -> tuple[Sequence[int], list[T]]:
    """Return the line numbers and the records of JSON Lines. Files in which every line is a record decode in one go.

    `decode` reads files in which something is odd. It may understand more than `decoder`.
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


def some_lines(
    data: bytes,
    artifact: Artifact,
    decoder: msgspec.json.Decoder[T],
    decode: Decode[T],
    look: Callable[[Sequence[T]], None],
) -> tuple[Sequence[int], Sequence[T]]:
    """Do what `all_lines` does, but decode the records of a large file only when they are asked for. `look` is given
    all of them once, some at a time."""
    if len(data) > LARGE_BYTES:
        records = Records(data, artifact, decode, look)
        return records.numbers, records
    numbers, every = all_lines(data, artifact, decoder, decode)
    look(every)
    return numbers, every


def _line_count(data: bytes) -> int:
    """Count lines by `find`, many times faster than `count`. 0 if a line is empty, as a torn write leaves."""
    count = before = 0
    while at := data.find(b"\n", before) + 1:
        if at == before + 1:
            return 0
        count, before = count + 1, at
    return count + (data[-1:] != b"\n")


def document(data: bytes, artifact: Artifact, decode: Decode[T]) -> T | None:
    """Return the JSON document of a file. None if it can't be read; the reason is counted."""
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    if len(data) > MAX_DOCUMENT_BYTES:
        artifact.records += 1
        skip(artifact, "document_too_large")
        return None
    try:
        record = _decoded_record(data, artifact, decode)
    except UNREADABLE:
        records = list(_repaired_records(bytes(data).strip(), artifact, decode, "cut_document"))
        for _ in records[1:]:
            skip(artifact, "beside_document")
        return records[0] if records else None
    artifact.records += 1
    return record


def skip(artifact: Artifact, reason: str) -> None:
    """Count a record that could not be used."""
    artifact.skipped += 1
    artifact.skipped_reasons[reason] = artifact.skipped_reasons.get(reason, 0) + 1


def read_before(artifact: Artifact) -> Artifact:
    """Return an artifact for a second pass over a file whose records are counted already."""
    return msgspec.structs.replace(artifact, skipped_reasons={}, record_kinds={})


def saw(artifact: Artifact, kind: str, times: int = 1) -> None:
    """Count records of a kind that were read."""
    artifact.record_kinds[kind] = artifact.record_kinds.get(kind, 0) + times


_RECORD = deferred_pattern(r'(?<=[^\s:,\[])\{"')
"""The beginning of an object that is no part of another."""
_SPACE = deferred_pattern(r"[\s\ufeff]*")


def after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


class Lenient:
    """Reads JSON as far as it goes, with values that JSON has no place for. `odd` lists what became of them."""

    def __init__(self) -> None:
        self.odd: list[str] = []
        self._decoder = json.JSONDecoder(
            strict=False, parse_constant=self._no_number, parse_float=self._float, parse_int=self._int
        )

    def text(self, raw: bytes) -> str:
        """Decode UTF-8, with a replacement for what is none."""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.odd.append("unsound_text")
            return raw.decode("utf-8", "replace")

    def value(self, text: str, at: int = 0) -> tuple[Any, int]:
        """Return the value that begins at `at`, and where it ends. ValueError or RecursionError if there is none."""
        value, end = self._decoder.raw_decode(text, at)
        if _SURROGATE.search(text, at, end):
            again = json.dumps(value, ensure_ascii=False)
            try:
                again.encode()
            except UnicodeEncodeError:
                self.odd.append("unsound_text")
                value = json.loads(again.encode("utf-8", "replace"))
        return value, end

    def items(self, text: str, at: int) -> Iterator[Any]:
        """Yield the items of a list whose first one begins at `at` or after it, up to one that can't be read."""
        at = after_space(text, at)
        while at < len(text) and text[at] != "]":
            try:
                item, at = self.value(text, at)
            except (ValueError, RecursionError):
                return
            yield item
            at = after_space(text, after_space(text, at) + 1)  # over the comma

    def account(self, artifact: Artifact) -> None:
        """Count what was odd in records that were read after all."""
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


def repaired(raw: bytes, artifact: Artifact, decode: Decode[T]) -> T | None:
    """Decode a value without its odd values, which are counted. None if that fails too."""
    lenient = Lenient()
    try:
        value, _ = lenient.value(lenient.text(raw))
        record = fitted(value, decode, lenient.odd)
    except (ValueError, *UNREADABLE):
        return None
    lenient.account(artifact)
    return record


def _decoded_record(data: memoryview | bytes, artifact: Artifact, decode: Decode[T]) -> T:
    """Decode one record. A number too long for any decoder is taken out here and counted, also if only a part that is
    decoded later holds it: there it would cost the whole part."""
    record = repaired(bytes(data), artifact, decode) if _has_long_number(memoryview(data)) else None
    return decode(data) if record is None else record


def _has_long_number(view: memoryview) -> bool:
    if len(view) < 8 * _STRIDE_BYTES:
        return False
    strides = bytes(view[::_STRIDE_BYTES])
    if _DIGITS.search(strides) is None:
        return False
    starts = (hit.start() * _STRIDE_BYTES for hit in _LONG_NUMBER.finditer(strides))
    return any(bytes(view[at : at + 7 * _STRIDE_BYTES]).isdigit() for at in starts)


def _repaired_records(raw: bytes, artifact: Artifact, decode: Decode[T], broken: str) -> Iterator[T]:
    """Yield what a lenient reader makes of a record: several objects on one line, also after one that was cut or after
    zeros, lone surrogates, NaN."""
    lenient = Lenient()
    text = lenient.text(raw)
    at = 0
    while at < len(text):
        artifact.records += 1
        try:
            value, at = lenient.value(text, at)
        except (ValueError, RecursionError):
            skip(artifact, broken)
            lenient.odd.clear()
            at = len(text) if broken == "cut_document" else _next_record(lenient, text, at)
            continue
        try:
            record = fitted(value, decode, lenient.odd)
        except UNREADABLE:
            skip(artifact, "bad_shape")
            lenient.odd.clear()
        else:
            lenient.account(artifact)
            yield record
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1


def _next_record(lenient: Lenient, text: str, at: int) -> int:
    """Return where a record that can be read begins on a line after one that can't, or the end of the line."""
    starts = (hit.start() for hit in islice(_RECORD.finditer(text, at), _MOST_REPAIRS))
    for start in starts:
        with suppress(ValueError, RecursionError):
            lenient.value(text, start)
            return start
    return len(text)


# Values of another type than the format's. A second pass, for records that can't be decoded as they are.

ODD = "odd_value"
"""Reason for a value that is absent because it has another type than the format's."""
_MOST_REPAIRS = 64
_PROBLEM = deferred_pattern(
    r"(?:Expected `(?P<want>[^`]*)`, got `(?P<got>[^`]*)`|Object missing required field `(?P<missing>[^`]*)`"
    r"|(?P<other>.*?))"
    r"(?: - at `(?P<path>\$[^`]*)`)?"
)
_STEP = deferred_pattern(r"\.([^.\[\]]+)|\[([^\]]*)\]")
_IS_TIME = deferred_pattern(r"(?i:time|stamp|date|created|started|ended)|(?:\A|_)(?:ts|at)\Z|[a-z](?:At|Ms)\Z")
_IS_NAMED = deferred_pattern(r"(?:\A|_)(?:id|key)\Z|[a-z]I[dD]\Z|(?i:uuid|version)")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str, "int": int, "float": (int, float), "bool": bool, "null": type(None), "array": list, "object": dict,
}  # fmt: skip


def fitted(value: Any, decode: Decode[T], odd: list[str]) -> T:
    """Decode plain data whose values may have other types than the format's.

    A value is converted where its meaning is clear: `13.0` and `"13"` to a count, a time in any form, an id that is a
    number. Otherwise it is taken out, and with it the object that can't be without it; `odd` gets the reason for each.
    Raises the decoder's error if the whole record can't be without it.
    """
    given: dict[str, bool] = {}  # places of odd values: True where an empty text stands in for one
    for _ in range(_MOST_REPAIRS):
        try:
            return decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        except msgspec.ValidationError as problem:
            if not _mended(value, str(problem), given, odd):
                raise
    raise msgspec.ValidationError("Too many odd values")


def convert_leniently(value: Any, type_: type[S], artifact: Artifact) -> S:
    """Convert decoded JSON to a type. Values of another type are taken out and counted."""
    odd: list[str] = []
    decode: Decode[S] = decoder(type_).decode
    record = fitted(value, decode, odd)
    for reason in odd:
        refuse(artifact, reason)
    return record


def within(name: str, raw: Raw | bytes, decode: Decode[T]) -> T:
    """Decode a part of a record. An error names the place in the whole record."""
    try:
        return decode(raw)
    except msgspec.ValidationError as problem:
        text = str(problem)
        at = text.replace("`$", f"`$.{name}", 1) if "`$" in text else f"{text} - at `$.{name}`"
        raise msgspec.ValidationError(at) from None


def _mended(value: Any, problem: str, given: dict[str, bool], odd: list[str]) -> bool:
    """Repair the value that a decoding error is about, or drop it. False where that is not possible."""
    match = _PROBLEM.fullmatch(problem)
    if match is None:
        return False
    path = match["path"] or "$"
    if (missing := match["missing"]) is not None:
        place = f"{path}.{missing}"
        if given.get(place) is None:
            return False  # it was never there: another record than the format's
        if given[place]:
            return _dropped(value, path, odd)
        given[place] = True
        for holder in _at(value, _STEP.findall(path)):
            if isinstance(holder, dict):
                holder.setdefault(missing, "")  # nobody's name, text or kind
        return True
    if path == "$":
        return False
    if given.get(path):  # an empty text does not do: the object can't be without the value
        return _dropped(value, path[: max(path.rfind("."), path.rfind("["))], odd)
    want, got = frozenset((match["want"] or "").split(" | ")), match["got"]
    *above, (name, _) = _STEP.findall(path)
    if not above and len(value) < 2:
        return False  # the record is nothing but this value
    changed = False
    for holder in _at(value, above):
        for key in reversed(_keys(holder, name)):
            # The error may be about this value: by its type, or by the value that it shows.
            if got is not None:
                is_meant = isinstance(holder[key], _TYPES.get(got, object)) and (
                    got == "bool" or not isinstance(holder[key], bool)
                )
            else:
                shown = (match["other"] or "").removeprefix("Invalid value ").removeprefix("Invalid enum value ")
                is_meant = shown in (match["other"] or "", repr(holder[key]), str(holder[key]))
            if is_meant:
                changed = True
                holder[key] = new = _converted(holder[key], want, name or str(key))
                if new is _OUT:
                    del holder[key]
                    odd.append(ODD)
                    given.setdefault(path, False)
    return changed


def _at(value: Any, steps: list[tuple[str, str]]) -> list[Any]:
    """Return all values at a path. A step into a list or a mapping names none of its items."""
    found = [value]
    for name, _ in steps:
        found = [holder[key] for holder in found for key in _keys(holder, name)]
    return found


def _keys(holder: Any, name: str) -> list[Any]:
    if name:
        return [name] if isinstance(holder, dict) and name in holder else []
    return list(holder) if isinstance(holder, dict) else list(range(len(holder))) if isinstance(holder, list) else []


_OUT = object()


def _converted(value: Any, want: frozenset[str], name: str) -> Any:
    """Return a value as one of the types that are wanted, and `_OUT` if it is not clear as which."""
    if isinstance(value, str):
        number = spelled_number(value)
        if "bool" in want and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        if want & {"int", "float"} and number is not None:
            return _of_number(number, want)
        if want & {"int", "float"} and _IS_TIME.search(name) and (at := from_iso(value)) is not None:
            return at // 1000
        if (want & {"array", "object"}) and value.lstrip()[:1] in ("[", "{"):
            try:
                held = json.loads(value)
            except (ValueError, RecursionError):
                return _OUT
            return held if ("array" if isinstance(held, list) else "object") in want else _OUT
        return _OUT
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _OUT
    if "str" in want and (_IS_TIME.search(name) or _IS_NAMED.search(name)):
        return str(int(value)) if value == value // 1 else str(value)
    return _of_number(value, want)


def _of_number(number: float, want: frozenset[str]) -> Any:
    if "int" in want and number == number // 1:
        return int(number)
    return float(number) if "float" in want else _OUT


def _dropped(value: Any, path: str, odd: list[str]) -> bool:
    """Take out the object at a path, since it lacks what it can't be without. Return False for the whole record."""
    if path == "$":
        return False
    *above, (name, _) = _STEP.findall(path)
    for holder in _at(value, above):
        for key in reversed(_keys(holder, name)):
            if isinstance(holder[key], dict):
                del holder[key]
                odd.append(ODD)
    return True


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
