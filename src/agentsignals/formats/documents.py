"""Formats whose file is one JSON document a session: read as far as it can be read, and only its last snapshot."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Raw, Struct

from agentsignals.formats import Input
from agentsignals.formats import records as recs
from agentsignals.formats.head import HEAD_BYTES
from agentsignals.formats.records import UNREADABLE, Decode, saw
from agentsignals.model import Artifact

T = TypeVar("T")

REDACTED = "REDACTED"
"""What a collector leaves of an id it took for a secret (design/formats.md#entire): names nothing, and is not
unique."""

_LIST = re.compile(rb"[\xef\xbb\xbf\s]{0,64}\[\s{0,64}\{")
_SPACE = re.compile(r"[\s\ufeff]*")


class Snapshot(Struct, Generic[T]):
    """What one file said about a session at the time it was written."""

    source: Input
    document: T
    session_id: str
    messages: int


def largest(snapshots: Iterable[Snapshot[T]]) -> list[Snapshot[T]]:
    """The fullest snapshot of each session: most messages, then most bytes. The others are noted as superseded."""
    best: dict[str, Snapshot[T]] = {}
    for snapshot in sorted(snapshots, key=_fullness, reverse=True):
        kept = best.setdefault(snapshot.session_id, snapshot)
        if kept is not snapshot:
            snapshot.source.artifact.note = f"superseded by {kept.source.artifact.artifact_id}"
            saw_again(snapshot.source.artifact)
    return [best[session_id] for session_id in sorted(best)]


def saw_again(artifact: Artifact) -> None:
    """Every record of the file stands in a fuller file too."""
    artifact.record_kinds["repeated"] = artifact.records - artifact.skipped


def read(source: Input, decode: Decode[T], key: str) -> T | None:
    """The document of a file. One that breaks off gives the records of its list `key` that came before the break."""
    document = recs.document(source.data, source.artifact, decode)
    if document is not None:
        saw(source.artifact, "document")
        return document
    if len(source.data) > recs.MAX_DOCUMENT_BYTES:
        return None
    lenient = recs.Lenient()
    rest = _salvaged(lenient.text(bytes(source.data)), key, lenient)
    try:
        salvaged = decode(json.dumps(rest, ensure_ascii=False).encode()) if rest else None
    except UNREADABLE:
        return None
    lenient.account(source.artifact)
    return salvaged


def is_list(data: bytes) -> bool:
    """Whether a file is one list of objects. Of JSON Lines, a first line that is another list is a broken record, and
    so is one that is a list of objects by itself."""
    if _LIST.match(data) is None:
        return False
    first, _, rest = bytes(data[:HEAD_BYTES]).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    return not (first.rstrip().endswith(b"]") and rest.lstrip()[:1] == b"{")


def tally(artifact: Artifact, group: str, types: list[str | None]) -> None:
    """Counts records of a group by type; None stands for one that could not be read."""
    artifact.records += len(types)
    for type_, n in Counter(types).items():
        if type_ is None:
            artifact.skipped += n
            artifact.skipped_reasons["bad_shape"] = artifact.skipped_reasons.get("bad_shape", 0) + n
        else:
            kind = f"{group}.{type_ or 'untyped'}"
            artifact.record_kinds[kind] = artifact.record_kinds.get(kind, 0) + n


def each(raws: list[Raw], decode: Decode[T], artifact: Artifact) -> list[T | None]:
    """Every record decoded by itself; None for one that is not what it should be.

    A value that JSON has no place for costs itself, counted in `artifact`, and not its record.
    """
    return [_decoded(raw, decode, artifact) for raw in raws]


def as_text(value: object) -> str:
    """A value that is usually a string, as text; nothing for None."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _fullness(snapshot: Snapshot[Any]) -> tuple[int, int, str, str]:
    artifact = snapshot.source.artifact
    return snapshot.messages, len(snapshot.source.data), artifact.sha256, artifact.artifact_id


def _decoded(raw: Raw, decode: Decode[T], artifact: Artifact) -> T | None:
    try:
        return decode(memoryview(raw))
    except UNREADABLE:
        return recs.mended(bytes(raw), artifact, decode)


def _salvaged(text: str, key: str, lenient: recs.Lenient) -> dict[str, Any] | None:
    """A whole document made of what a broken one still says; None when its list `key` holds nothing."""
    kept: dict[str, Any] = {}
    at = _space(text, 0)
    if text[at : at + 1] == "[":
        kept[key] = list(_items(text, at + 1, lenient))
        return kept if kept[key] else None
    if text[at : at + 1] != "{":
        return None
    at = _space(text, at + 1)
    try:
        while text[at : at + 1] == '"' and key not in kept:
            name, at = lenient.value(text, at)
            at = _space(text, _space(text, at) + 1)  # over the colon
            if name == key and text[at : at + 1] == "[":
                kept[key] = list(_items(text, at + 1, lenient))
            else:
                kept[name], at = lenient.value(text, at)
                at = _space(text, _space(text, at) + 1)  # over the comma
    except (ValueError, RecursionError):
        pass
    return kept if kept.get(key) else None


def _items(text: str, at: int, lenient: recs.Lenient) -> Iterator[Any]:
    at = _space(text, at)
    while at < len(text) and text[at] != "]":
        try:
            item, at = lenient.value(text, at)
        except (ValueError, RecursionError):
            return
        yield item
        at = _space(text, _space(text, at) + 1)


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


# Several files of one session, each a snapshot of it at another time: every record counts once.


class File(Protocol):
    """The records of one file."""

    source: Input
    session_id: str
    order: tuple[Any, ...]
    """Which of two files of a session is read first: its records are the ones that are pointed at."""


F = TypeVar("F", bound=File)
R = TypeVar("R")


def by_session(inputs: Iterable[Input], read: Callable[[Input], F]) -> dict[str, list[F]]:
    """The files of each session in order, the sessions in order of their first file."""
    sessions: dict[str, list[F]] = {}
    for file in sorted(map(read, inputs), key=lambda file: file.order):
        sessions.setdefault(file.session_id, []).append(file)
    return sessions


def once(
    files: Iterable[F], records: Callable[[F], Iterable[tuple[int, R]]], key: Callable[[R], str | None]
) -> Iterator[tuple[F, int, R]]:
    """The records of a session's files with their lines. One whose key an earlier one had is counted as repeated; one
    without a key can't be told from others."""
    seen: set[str] = set()
    for file in files:
        for number, record in records(file):
            name = key(record)
            if name is not None and name in seen:
                saw(file.source.artifact, "repeated")
                continue
            if name is not None:
                seen.add(name)
            yield file, number, record
