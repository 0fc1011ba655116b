"""Documents: files that hold one JSON document a session, and several files or snapshots of one session."""

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast, overload

from msgspec import Raw, Struct

from agentsignals.formats import Input, records
from agentsignals.formats.records import (
    HEAD_BYTES,
    MAX_DOCUMENT_BYTES,
    UNREADABLE,
    Decode,
    Lenient,
    after_space,
    document,
    read_before,
    repaired,
    saw,
)
from agentsignals.model import Artifact
from agentsignals.model import lazy as mapped

T = TypeVar("T")

REDACTED = "REDACTED"
"""A collector writes this over an id that it took for a secret (design/formats.md#entire). It is not unique."""

_LIST = re.compile(rb"[\xef\xbb\xbf\s]{0,64}\[\s{0,64}\{")


class Part(Struct, gc=False):
    """A part of a message: a text, or something attached, which is not decoded."""

    type: str = ""
    text: str | None = None


class Snapshot(Struct, Generic[T]):
    """A file's account of a session at the time it was written."""

    source: Input
    document: T
    session_id: str
    messages: int


def largest(snapshots: Iterable[Snapshot[T]]) -> list[Snapshot[T]]:
    """Return the fullest snapshot of each session: most messages, then most bytes. Note the others as superseded."""

    def fullness(snapshot: Snapshot[T]) -> tuple[int, int, str, str]:
        artifact = snapshot.source.artifact
        return snapshot.messages, len(snapshot.source.data), artifact.sha256, artifact.artifact_id

    best: dict[str, Snapshot[T]] = {}
    for snapshot in sorted(snapshots, key=fullness, reverse=True):
        kept = best.setdefault(snapshot.session_id, snapshot)
        if kept is not snapshot:
            snapshot.source.artifact.note = f"superseded by {kept.source.artifact.artifact_id}"
            saw_again(snapshot.source.artifact)
    return [best[session_id] for session_id in sorted(best)]


def saw_again(artifact: Artifact) -> None:
    """Count every record of a file as repeated: a fuller file holds them too."""
    artifact.record_kinds["repeated"] = artifact.records - artifact.skipped


def read(source: Input, decode: Decode[T], key: str) -> T | None:
    """Return the document of a file. One that breaks off gives the records of its list `key` before the break."""
    whole = document(source.data, source.artifact, decode)
    if whole is not None:
        saw(source.artifact, "document")
        return whole
    if len(source.data) > MAX_DOCUMENT_BYTES:
        return None
    lenient = Lenient()
    rest = _salvaged(lenient.text(bytes(source.data)), key, lenient)
    try:
        salvaged = decode(json.dumps(rest, ensure_ascii=False).encode("utf-8", "replace")) if rest else None
    except UNREADABLE:
        return None
    lenient.account(source.artifact)
    return salvaged


def or_list(type_: Callable[[list[Raw]], T]) -> Decode[T]:
    """Return a decoder of a document, or of the list that is its first field and stands alone."""

    def decode(data: memoryview | bytes) -> T:
        is_alone = bytes(data[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
        whole: Any = records.decoder(list[Raw] if is_alone else type_).decode(data)
        return type_(whole) if is_alone else whole

    return decode


def is_list(data: bytes) -> bool:
    """Return whether a file is one list of objects. JSON Lines may begin with a list, too, as a broken record."""
    if _LIST.match(data) is None:
        return False
    first, _, rest = bytes(data[:HEAD_BYTES]).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    return not (first.rstrip().endswith(b"]") and rest.lstrip()[:1] == b"{")


def tally(artifact: Artifact, group: str, types: Iterable[str | None]) -> None:
    """Count records of a group by type. None stands for one that could not be read."""
    for type_, n in Counter(types).items():
        artifact.records += n
        if type_ is None:
            artifact.skipped += n
            artifact.skipped_reasons["bad_shape"] = artifact.skipped_reasons.get("bad_shape", 0) + n
        else:
            saw(artifact, f"{group}.{type_ or 'untyped'}", n)


def each(raws: Iterable[Raw | memoryview], decode: Decode[T], artifact: Artifact) -> list[T | None]:
    """Decode every record by itself; None for one of another shape.

    A value that JSON has no place for is counted in `artifact`, and costs only itself.
    """
    records: list[T | None] = []
    for raw in raws:
        try:
            records.append(decode(memoryview(raw)))
        except UNREADABLE:
            records.append(repaired(bytes(raw), artifact, decode))
    return records


class Later(Sequence[T | None]):
    """The records of a large document, decoded whenever they are asked for. What is odd in them is counted once."""

    def __init__(
        self, data: bytes, raws: list[Raw], decode: Callable[[memoryview | bytes, Artifact], T], artifact: Artifact
    ) -> None:
        """Keep the places of the records in `data`, and empty `raws`, which take three times as much."""
        self._data, self._decode, self._artifact = data, decode, artifact
        self._looked_bytes = 0
        if not self._are_placed(raws):  # a document that was repaired
            self._data = b"".join(map(bytes, raws))
            self._are_placed(raws)
        raws.clear()

    def _are_placed(self, raws: list[Raw]) -> bool:
        self._starts, self._ends = array("I"), array("I")  # a document has fewer than 2 ** 32 bytes
        end = 0
        for text in map(bytes, raws):
            start = self._data.find(text, end)
            if start < 0:
                return False
            self._looked(start + len(text) - end)
            end = start + len(text)
            self._starts.append(start)
            self._ends.append(end)
        return True

    def _looked(self, n_bytes: int) -> None:
        self._looked_bytes += n_bytes
        if self._looked_bytes >= mapped.EVERY_BYTES:
            mapped.release_pages(self._data)
            self._looked_bytes = 0

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[T | None]:
        artifact, self._artifact = self._artifact, read_before(self._artifact)
        for n in range(len(self)):
            yield self._decoded(slice(n, n + 1), artifact)[0]

    @overload
    def __getitem__(self, at: int) -> T | None: ...
    @overload
    def __getitem__(self, at: slice) -> list[T | None]: ...
    def __getitem__(self, at: int | slice) -> T | list[T | None] | None:
        if isinstance(at, slice):
            return self._decoded(at, self._artifact)
        return self._decoded(slice(at, at + 1 or None), self._artifact)[0]

    def _decoded(self, at: slice, artifact: Artifact) -> list[T | None]:
        data = memoryview(self._data)
        places = list(zip(self._starts[at], self._ends[at], strict=True))
        self._looked(sum(end - start for start, end in places))
        raws = (data[start:end] for start, end in places)
        return each(raws, lambda raw: self._decode(raw, artifact) if raw else None, artifact)

    def __setitem__(self, at: int, nothing: None) -> None:
        """Take out a record."""
        self._ends[at] = self._starts[at]


Messages = list[T | None] | Later[T]
"""The messages of a document; None for one of another shape."""


def messages_of(
    data: memoryview | bytes,
    raws: list[Raw],
    decode: Callable[[memoryview | bytes, Artifact], T],
    artifact: Artifact,
) -> Messages[T]:
    """Return the messages of a document: those of a large one are not all held decoded."""
    if len(data) > records.LARGE_BYTES:
        return Later(cast("bytes", data), raws, decode, artifact)
    return each(raws, lambda raw: decode(raw, artifact), artifact)


def texts_of(content: Any) -> str:
    """Join the texts of a message, which is a string, parts with a `text`, or nothing."""
    return content if isinstance(content, str) else "\n".join(part.text for part in content or () if part.text)


def _salvaged(text: str, key: str, lenient: Lenient) -> dict[str, Any] | None:
    """Make a whole document of what a broken one still says. None if its list `key` holds nothing."""
    kept: dict[str, Any] = {}
    at = after_space(text, 0)
    if text[at : at + 1] == "[":
        kept[key] = list(lenient.items(text, at + 1))
        return kept if kept[key] else None
    if text[at : at + 1] != "{":
        return None
    at = after_space(text, at + 1)
    try:
        while text[at : at + 1] == '"' and key not in kept:
            name, at = lenient.value(text, at)
            at = after_space(text, after_space(text, at) + 1)  # over the colon
            if name == key and text[at : at + 1] == "[":
                kept[key] = list(lenient.items(text, at + 1))
            else:
                kept[name], at = lenient.value(text, at)
                at = after_space(text, after_space(text, at) + 1)  # over the comma
    except (ValueError, RecursionError):
        pass
    return kept if kept.get(key) else None


class File(Protocol):
    """The records of one of several files of a session."""

    source: Input
    session_id: str
    order: tuple[Any, ...]
    """Files of a session are read in this order. Of a repeated record the first one counts."""


F = TypeVar("F", bound=File)
R = TypeVar("R")


def by_session(inputs: Iterable[Input], read: Callable[[Input], F]) -> dict[str, list[F]]:
    """Return the files of each session in order; sessions are in order of their first file."""
    sessions: dict[str, list[F]] = {}
    for file in sorted(map(read, inputs), key=lambda file: file.order):
        sessions.setdefault(file.session_id, []).append(file)
    return sessions


def once(
    files: Iterable[F], records: Callable[[F], Iterable[tuple[int, R]]], key: Callable[[R], str | None]
) -> Iterator[tuple[F, int, R]]:
    """Yield the records of a session's files with their lines, each key once. Records without a key are all yielded."""
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
