"""Ways to spoil a file. Each takes bytes and a source of chance, and gives other bytes."""

from __future__ import annotations

import copy
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

_MARK = "@raw:"
"""A string that begins so stands for the JSON text behind it, which `json.dumps` would not write."""
_DEEP = 3_000

ODD: tuple[Any, ...] = (
    None, True, False, "", "x", 0, -1, -20, 1.5, 2**31, 2**63, -(2**63), 10**30, 1e300, -1e300, 5e292, 1e308,
    f"{_MARK}NaN", f"{_MARK}Infinity", f"{_MARK}-Infinity", f"{_MARK}1e400", f"{_MARK}{'9' * 400}",
    f"{_MARK}-{'9' * 5000}", f"{_MARK}{'[' * _DEEP}{']' * _DEEP}", f"{_MARK}{'[' * 90}{']' * 90}",
    "\ud800", "a\udfffb", "a\x00b", "\x1b[31m", "\u202e", "9" * 400, "=1+1", "x" * 20_000, "../../etc/passwd", "/",
    "NaN", "1e308", "-5", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-13-45", "2026-01-01",
    "2026-01-01T00:00:00+99:99", "1970-01-01T00:00:00Z", "REDACTED", [], {}, [[]], [None], [{}], {"": None},
    ["text", 5, None], {"type": "gangway"}, [{"type": "gangway", "text": "x"}], [{"type": 5}],
)  # fmt: skip
_RECORDS = (b"[]", b"5", b'"x"', b"null", b"{}", b'{"type": "gangway"}', b"{", b"[[[[", b"\x00\x00", b"\xff\xfe{}")


def mutated(data: bytes, chance: Random) -> tuple[bytes, list[str]]:
    """The bytes spoilt in one to four ways, and which these were."""
    done: list[str] = []
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        way = chance.choice(_WAYS)
        data = way(data, chance)
        done.append(way.__name__)
    return data, done


# -- in the structure --------------------------------------------------------------------------------------------------


def spoil_values(data: bytes, chance: Random) -> bytes:
    """Values of another type, impossible ones, keys gone, renamed or twice, items gone, twice or strange."""

    def spoil(record: Any) -> Any:
        for _ in range(chance.choice((1, 1, 2, 5))):
            record = _apart(_spoilt(record, chance), record)
        return record

    return _over_records(data, chance, spoil)


def repeat_ids(data: bytes, chance: Random) -> bytes:
    """Two values under the same key become one: repeated ids, parents that go round in a circle."""

    def spoil(record: Any) -> Any:
        places = [(holder, key) for holder, key in _places(record) if "id" in str(key).lower() or "parent" in str(key)]
        if len(places) > 1:
            (into, to), (out_of, source) = chance.sample(places, 2)
            into[to] = out_of[source] if not isinstance(out_of[source], dict | list) else None
        return record

    return _over_records(data, chance, spoil)


def _over_records(data: bytes, chance: Random, spoil: Callable[[Any], Any]) -> bytes:
    """Spoils the document, some lines of it, or a member of an archive; what is no JSON stays as it is."""
    if data[:2] == b"PK":
        return _over_members(data, chance, spoil)
    try:
        return _dumped(spoil(json.loads(data)))
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
    for _ in range(chance.choice((1, 1, 2, 4))):
        n = chance.randrange(len(lines))
        try:
            lines[n] = _dumped(spoil(json.loads(lines[n])))
        except (ValueError, RecursionError):
            continue
    return b"\n".join(lines)


def _over_members(data: bytes, chance: Random, spoil: Callable[[Any], Any]) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, RuntimeError, EOFError):
        return data
    if not members:
        return data
    n = chance.randrange(len(members))
    members[n] = members[n][0], _over_records(members[n][1][:1_000_000], chance, spoil)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # no time of now
    return made.getvalue()


def _spoilt(given: Any, chance: Random) -> Any:
    record = copy.deepcopy(given)
    places = list(_places(record))
    if not places or chance.random() < 0.03:
        return chance.choice(ODD)
    holder, key = chance.choice(places)
    value = holder[key]
    way = chance.randrange(9)
    if way <= 3:
        holder[key] = chance.choice(ODD)
    elif way == 4:
        del holder[key]
    elif way == 5:
        holder[key] = chance.choice((str(value), [value], {"value": value}, [value, value], json.dumps(value)))
    elif way == 6 and isinstance(holder, dict):
        holder[chance.choice(("type", "id", "x" * 300, "", "\ud800", str(key).upper()))] = holder.pop(key)
    elif way == 7 and isinstance(value, list):
        value.insert(chance.randint(0, len(value)), chance.choice((*ODD, *value)))
    elif isinstance(value, list):
        chance.shuffle(value)
    else:
        other, its_key = chance.choice(places)
        holder[key], other[its_key] = other[its_key], value
    return record


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document that holds a value."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def _apart(record: Any, before: Any) -> Any:
    """The record with no list or object in two places; as it was before where one came to hold itself."""
    try:
        return json.loads(json.dumps(record))
    except (ValueError, RecursionError):
        return before


def _dumped(value: Any) -> bytes:
    text = json.dumps(value)
    at = text.find(f'"{_MARK}')
    while at >= 0:
        end = text.index('"', at + 1)
        text = text[:at] + text[at + len(_MARK) + 1 : end] + text[end + 1 :]
        at = text.find(f'"{_MARK}', at)
    return text.encode("utf-8", "replace")


# -- in the lines and bytes --------------------------------------------------------------------------------------------


def cut(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def cut_line(data: bytes, chance: Random) -> bytes:
    lines = data.split(b"\n")
    n = chance.randrange(len(lines))
    lines[n] = lines[n][: chance.randrange(len(lines[n]) + 1)]
    return b"\n".join(lines)


def join_lines(data: bytes, chance: Random) -> bytes:
    lines = data.split(b"\n")
    n = chance.randrange(len(lines))
    return b"\n".join([*lines[:n], b"".join(lines[n : n + 2]), *lines[n + 2 :]])


def move_lines(data: bytes, chance: Random) -> bytes:
    """A line gone, twice, or all in another order."""
    lines = data.split(b"\n")
    n = chance.randrange(len(lines))
    way = chance.randrange(3)
    if way == 0:
        del lines[n]
    elif way == 1:
        lines.insert(chance.randrange(len(lines) + 1), lines[n])
    else:
        chance.shuffle(lines)
    return b"\n".join(lines)


def insert_record(data: bytes, chance: Random) -> bytes:
    lines = data.split(b"\n")
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(_RECORDS))
    return b"\n".join(lines)


def flip_bytes(data: bytes, chance: Random) -> bytes:
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20))):
        if made:
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def insert_bytes(data: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    strange = (b"\x00", b"\xff\xfe", b"\xed\xa0\x80", chance.randbytes(12), b"\r", b'"', b"}")
    return data[:at] + chance.choice(strange) + data[at:]


def encode_otherwise(data: bytes, chance: Random) -> bytes:
    text = data.decode("utf-8", "replace")
    way = chance.choice(("utf-16", "utf-8-sig", "latin-1", "utf-32", "crlf"))
    return data.replace(b"\n", b"\r\n") if way == "crlf" else text.encode(way, "replace")


def repeat(data: bytes, chance: Random) -> bytes:
    return data * 2 if chance.random() < 0.5 else data + b"\n" + data


_WAYS = (
    *(spoil_values,) * 12, *(repeat_ids,) * 2, cut, cut_line, join_lines, move_lines, insert_record, flip_bytes,
    insert_bytes, encode_otherwise, repeat,
)  # fmt: skip
