"""Files that are read together, and what the index remembers of each."""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from agentsignals.formats import LOOKED_BY, format_named, formats
from agentsignals.sources import RawFile
from agentsignals.store.manifest import FileEntry

READ_AGAIN = -2
"""Stands for the parser of a file of which something was left out as asked, or for a reason that does not lie in its
bytes: the next run reads it anew."""
ABOUT_CONTENT = frozenset(
    (
        *("empty_file", "blank_file", "unrecognised", "archive", "database", "not_a_trace", "ambiguous_format"),
        "git_lfs_pointer",
        *("agent_not_read", "not_sessions", "other_export"),
        *("bad_gzip", "cut_gzip", "bad_bzip2", "cut_bzip2", "bad_xz", "cut_xz", "bad_zstd", "cut_zstd"),
    )
)
"""Why a file is not read that lies in its bytes: as long as they don't change, neither does the answer."""
_PASSING = frozenset(
    (
        *("no_permission", "file_gone", "download_failed", "unreadable", "changed_while_read", "database_locked"),
        *("internal_error", "worker_died"),
    )
)

MAX_ID_CHARS = 200
"""A longer id is cut: it stands in each row of its session, and agents write 36 characters."""
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What no id has that a person can read and type: control characters, marks of direction, halves of surrogate pairs."""


class Member(Struct, frozen=True, kw_only=True):
    """A file and what reads it; no format when it can't be read as a trace."""

    file: RawFile
    format: str | None
    keys: tuple[str, ...]
    reason: str = ""
    """Why it can't: `unrecognised`, `empty_file`, `not_text`, `no_permission` …"""
    detail: str = ""
    """What is to be known beyond the reason: the error."""
    lent: bool = False
    """It belongs to another family too and is accounted for there."""
    named_trials: frozenset[str] = frozenset()
    """Of a file that lends: what all trials go by that have files of their own."""
    head: str = ""
    """As `FileEntry` has it."""

    @property
    def trials(self) -> frozenset[str] | None:
        """As a format is told (`formats.Input`)."""
        return None if self.lent else self.named_trials


class Family(Struct, frozen=True):
    """Files read together."""

    name: str
    members: tuple[Member, ...]

    @property
    def bytes(self) -> int:
        return sum(m.file.bytes for m in self.members)


def sound_id(text: str) -> str:
    """An id (or a key made of one) that every table, file and terminal can hold; another for each other text."""
    if len(text) <= MAX_ID_CHARS and (text.isprintable() or _UNFIT.search(text) is None):
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{_UNFIT.sub('�', text[: MAX_ID_CHARS // 2])}~{digest}"


def shard_name(families: list[Family], run: int) -> str:
    """Names a shard by the run that makes it and what it is made from: none ever has the name of an earlier one."""
    sources = "|".join(f"{m.file.uri}:{m.file.bytes}:{m.file.stamp}:{m.file.key}" for f in families for m in f.members)
    return f"{run:06d}-{hashlib.blake2b(sources.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def is_current(entry: FileEntry) -> bool:
    """Whether a file would be read today as it was read then."""
    return entry.parser == parser_version(entry.format)


def parser_version(name: str | None) -> int:
    """The version of the parser that reads a file of that format now; for unclaimed files, of all parsers."""
    if name is None:
        return (sum(f.version for f in formats().values()) + LOOKED_BY) * 100 + len(formats())
    return -1 if (named := format_named(name)) is None else named.version


def entry_of(
    member: Member, family: str, shard: str, skipped: dict[str, int] | None = None, error: str = ""
) -> FileEntry:
    """The manifest's entry for a file just read."""
    f = member.file
    counted = skipped if skipped is not None else {member.reason: 1}
    was_there = f.stamp is not None or f.key
    parser = READ_AGAIN if was_there and not _PASSING.isdisjoint(counted) else parser_version(member.format)
    return FileEntry(
        source=f.source,
        spec=f.spec,
        bytes=f.bytes,
        stamp=f.stamp,
        container=f.container,
        key=f.key,
        session_hint=f.session_hint,
        repo_hint=f.repo_hint,
        format=member.format,
        parser=parser,
        family=family,
        keys=list(member.keys),
        shard=shard,
        skipped=counted,
        error=error,
        note=member.detail if member.format is None and not error else "",
        head=member.head,
    )


def member_of(uri: str, e: FileEntry) -> Member:
    """A file as it was when it was last read."""
    file = RawFile(
        uri=uri,
        source=e.source,
        spec=e.spec,
        bytes=e.bytes,
        stamp=e.stamp,
        container=e.container,
        key=e.key,
        session_hint=e.session_hint,
        repo_hint=e.repo_hint,
    )
    reason = "" if e.format else next(iter(e.skipped), "unrecognised")
    return Member(file=file, format=e.format, keys=tuple(e.keys), reason=reason, detail=e.note, head=e.head)
