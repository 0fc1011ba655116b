"""What files are: the format that reads each, and what it belongs to, from its beginning alone."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator

from msgspec.structs import replace

from agentsignals.errors import AgentSignalsError, AmbiguousFormat
from agentsignals.formats import Claim, Format, by_name, claimed_by, first_fields, identify, stranger
from agentsignals.formats.head import HEAD_BYTES, LINES_BYTES, MAX_RECORDS, Head
from agentsignals.ingest import footers, runs
from agentsignals.ingest.family import Member, sound_id
from agentsignals.ingest.pointers import pointed_at
from agentsignals.sources import RawFile, Unreadable, error_text, read
from agentsignals.sources.databases import MAGIC
from agentsignals.store.manifest import FileEntry

_ARCHIVES = (b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07")
_TAR, _TAR_AT = b"ustar", 257
_TWIN = "twin:"
"""Begins the key of a content: data sets are uploaded again whole, and a file without a session id is the same then."""


def recognised(changed: list[RawFile], force: str | None, before: dict[str, FileEntry]) -> Iterator[Member]:
    """What these files are. `before`: what this very code recognised them as when they were read last."""
    for source in dict.fromkeys(f.source for f in changed):
        files = [f for f in changed if f.source == source]
        for file, data in zip(files, read(files, HEAD_BYTES), strict=True):
            alone = Member(file=file, format=None, keys=(f"file:{file.uri}",))
            if isinstance(data, Unreadable):
                yield replace(alone, reason=data.reason, detail=data.detail)
                continue
            try:
                yield _recognise(alone, data, force, before.get(file.uri))
            except AmbiguousFormat as problem:
                yield replace(alone, reason="ambiguous_format", detail=problem.message)
            except AgentSignalsError:
                raise
            except Exception as problem:  # noqa: BLE001  (kept by name and shown: the other files are read)
                yield replace(alone, reason="internal_error", detail=f"recognising: {error_text(problem)}")


def _recognise(alone: Member, data: bytes, force: str | None, before: FileEntry | None) -> Member:
    file = alone.file
    head = Head(data, file.uri, len(data) < HEAD_BYTES)
    mark = "" if head.complete or force is not None else hashlib.blake2b(data, digest_size=8).hexdigest()
    if mark and before is not None and before.head == mark:  # a log that grew: its format alone is loaded
        named = by_name(before.format or "")
        if (claim := claimed_by(named, head)) is not None:
            return Member(file=file, format=named.name, keys=_keys(named, claim, file), head=mark)
    if data.startswith(footers.MAGIC) and not head.complete and (table := footers.columns_of(file)) is not None:
        head = Head(table, file.uri, True)
    if (pointer := pointed_at(data)) is not None:
        return replace(alone, reason="git_lfs_pointer", detail=pointer)
    reason = _why_not(head)
    if reason in ("unrecognised", "archive", "not_a_trace") or force is not None:
        if (identified := _identified(head, file, force)) is not None:
            mark = mark if head.data is data else ""
        else:
            identified, mark = _of_long_lines(head, file, force), ""
        if identified is not None:
            return Member(file=file, format=identified[0].name, keys=_keys(*identified, file), head=mark)
    if reason in ("unrecognised", "not_a_trace") and (whose := stranger(head)) is not None:
        return replace(alone, reason=whose.reason, detail=whose.note)
    if reason == "unrecognised":
        return replace(alone, reason=reason, detail=first_fields(head))
    return replace(alone, reason=reason, keys=() if reason == "not_a_trace" else alone.keys)


def _of_long_lines(head: Head, file: RawFile, force: str | None) -> tuple[Format, Claim] | None:
    """By its first records, where one of them is longer than what is looked at: a first prompt may hold pictures."""
    if head.complete or not head.looks_like_json or len(head.records) >= MAX_RECORDS:
        return None
    (more,) = read([file], LINES_BYTES)
    if isinstance(more, Unreadable):
        return None
    lines = more.split(b"\n", MAX_RECORDS)
    if len(lines) == 1 and len(more) >= LINES_BYTES:
        return None
    data = more if len(lines) <= MAX_RECORDS else b"\n".join((*lines[:-1], b""))
    return _identified(Head(data, file.uri, len(data) == len(more) < LINES_BYTES), file, force)


def _identified(head: Head, file: RawFile, force: str | None) -> tuple[Format, Claim] | None:
    if force is None:
        return identify(head)
    forced = by_name(force)
    return forced, forced.claims(head) or Claim(keys=[f"file:{file.uri}"])


def _keys(trace_format: Format, claim: Claim, file: RawFile) -> tuple[str, ...]:
    named = (key.partition(":") for key in claim.keys)
    keys = [f"{kind}:{sound_id(name)}" for kind, _, name in named if name]  # an id that is empty is nobody's
    if file.source == "hub" and trace_format.snapshots:
        keys.append(f"{_TWIN}{file.key}")
    if claim.beside:
        keys.append(f"beside:{posixpath.dirname(file.uri)}")
    keys += runs.keys_of(claim, file)
    if file.session_hint:
        keys.append(f"session:{sound_id(file.session_hint)}")
    return tuple(keys or [f"file:{file.uri}"])


def _why_not(head: Head) -> str:
    """What a file is when no format claims it."""
    if not head.data:
        return "empty_file"
    if not head.data[:512].strip(b"\xef\xbb\xbf \t\r\n"):
        return "blank_file"
    if head.data.startswith(MAGIC):
        return "database"
    if head.data.startswith(_ARCHIVES) or head.data[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "archive"
    return "unrecognised" if head.looks_like_json else "not_a_trace"
