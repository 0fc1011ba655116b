"""What a run has to read: new and changed files, joined with the files that belong to the same sessions.

Files that share a key (a session id; the first record of a history that was forked) form a family. A family is always
read whole, so that snapshots unite and forks count once, whatever order they were found in.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals import sources as exclusions
from agentsignals.errors import AgentSignalsError, AmbiguousFormat
from agentsignals.formats import (
    ANSWERS,
    ASKS,
    LOOKED_BY,
    Claim,
    Format,
    by_name,
    claimed_by,
    first_fields,
    format_named,
    formats,
    identify,
    stranger,
)
from agentsignals.formats.head import HEAD_BYTES, LINES_BYTES, MAX_RECORDS, Head
from agentsignals.model import Session
from agentsignals.sources import RawFile, Unreadable, error_text, open_source, path_of, read, uri_of
from agentsignals.sources.contents import max_unpacked_bytes, nonblocking
from agentsignals.sources.databases import MAGIC as DATABASES_MAGIC
from agentsignals.store.index import FileEntry, Manifest

# Files that are read together, and what the index remembers of each.

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


# Where files of eval runs belong: to the trial in whose folder they lie, or to every trial below theirs.
#
# What a file says of its place is kept among its keys, so that the index remembers it: `root:DIR` (it is part of
# the trial in DIR; joins), `gathers:DIR` (whatever sessions lie below are the trial's), `lends:DIR` (trials below
# may need it), `everywhere:DIR` (all that is known of trials below may), `companion:` (it means nothing by itself).

_ROOT, _GATHERS, _LENDS, _COMPANION = "root:", "gathers:", "lends:", "companion:"
_EVERYWHERE = "everywhere:"
_RUN = "run:"
"""What a trial goes by (`Attempt.goes_by`)."""


def keys_of(claim: Claim, file: RawFile) -> list[str]:
    """What a claim says of the file's place."""
    keys = [f"{_ROOT}{claim.root}"] if claim.root else []
    if claim.root and claim.gathers:
        keys.append(f"{_GATHERS}{claim.root}")
    if claim.lends:
        keys.append(f"{_LENDS}{claim.lends}")
    if claim.everywhere:
        keys.append(f"{_EVERYWHERE}{_named_folder(file)}")
    if claim.companion:
        keys.append(_COMPANION)
    return keys


def _named_folder(file: RawFile) -> str:
    """The folder that was named to be read and holds the file; where none was, that in which the file lies."""
    folder = posixpath.dirname(file.uri)
    named = uri_of(os.path.abspath(os.path.expanduser(file.spec)))  # noqa: PTH100, PTH111  (as files are listed)
    return named if file.source == "local" and _inside(folder, named) else folder


class Places:
    """The trial folders that are known: from files just recognised and from those in the store."""

    def __init__(self, members: list[Member], manifest: Manifest, looked_at: set[str]) -> None:
        self._manifest = manifest
        self._fresh = looked_at
        new = set(_marked((k for m in members for k in m.keys), _ROOT))
        others = (e.keys for uri, e in manifest.files.items() if uri not in self._fresh)
        old_keys = [k for keys in others for k in keys if k.startswith((_ROOT, _GATHERS))]
        old = set(_marked(old_keys, _ROOT))
        self._roots = new | old
        self._new = new - old
        self._gathering = {d for m in members for d in _marked(m.keys, _GATHERS)} | set(_marked(old_keys, _GATHERS))
        self._lending = {d for m in members for mark in (_LENDS, _EVERYWHERE) for d in _marked(m.keys, mark)}

    def other_files(self, seen: list[str]) -> list[RawFile]:
        """Files that were no traces when they were first seen, and may be companions of a trial found since."""
        files = []
        for uri in seen if self._new else ():
            entry = self._manifest.files.get(uri)
            if entry is not None and not entry.keys and uri not in self._fresh and _holder(uri, self._new):
                files.append(member_of(uri, entry).file)
        return files

    def placed(self, member: Member) -> Member:
        """The member with the trial it lies in among its keys; without any key when it is a companion of nothing."""
        if not member.keys:
            return member
        if not self._roots:
            return _without_companion(member, alone=_COMPANION in member.keys)
        uri, keys = member.file.uri, list(member.keys)
        if _COMPANION in keys:
            home = _holder(uri, self._roots)
            lends = any(_inside(root, d) for d in _marked(keys, _LENDS) for root in self._roots)
            if home is None and not lends:
                return _without_companion(member, alone=True)
            if home is not None and not lends:
                keys.append(f"{_ROOT}{home}")
        elif member.format is not None and not _is_lender(keys):
            keys += [f"{_ROOT}{d}" for d in _above(posixpath.dirname(uri)) if d in self._gathering]
        kept = [k for k in dict.fromkeys(keys) if k != _COMPANION]
        return msgspec.structs.replace(member, keys=tuple(kept or [f"file:{uri}"]))

    def drawn_in(self) -> list[Member]:
        """Files in the store whose place has changed: a new trial gathers them, or something new is lent to them."""
        placed_members = []
        gathering = self._gathering & self._new
        for uri, entry in self._manifest.files.items() if gathering or self._lending else ():
            if uri in self._fresh or entry.format is None:
                continue
            in_trial = any(k.startswith((_ROOT, _LENDS)) for k in entry.keys)
            if _holder(uri, gathering) or (in_trial and _holder(uri, self._lending)):
                placed_members.append(self.placed(member_of(uri, entry)))
        return placed_members


def with_lent(families: list[Family], pool: dict[str, Member], manifest: Manifest) -> list[Family]:
    """The families, those of trials with the files lent to them; a lender is accounted for in a family of its own."""
    lenders: dict[str, list[Member]] = {}
    everywhere: dict[str, list[Member]] = {}
    lending = {uri for uri, e in manifest.files.items() for k in e.keys if k.startswith((_LENDS, _EVERYWHERE))}
    others = (member_of(uri, e) for uri, e in manifest.files.items() if uri in lending and uri not in pool)
    for member in (*pool.values(), *others):
        for folder in _marked(member.keys, _LENDS):
            lenders.setdefault(folder, []).append(member)
        for folder in _marked(member.keys, _EVERYWHERE):
            everywhere.setdefault(folder, []).append(member)
    if not lenders and not everywhere:
        return families
    every = [m.keys for m in pool.values()] + [e.keys for uri, e in manifest.files.items() if uri not in pool]
    named = frozenset(n for keys in every if not any(_marked(keys, _LENDS)) for n in _marked(keys, _RUN))
    aware = (Family(f.name, tuple(_aware(m, named) for m in f.members)) for f in families)
    return [_with_lent(f, lenders, everywhere) for f in aware]


def _is_lender(keys: Iterable[str]) -> bool:
    return any(key.startswith((_LENDS, _EVERYWHERE)) for key in keys)


def of_new_trials(members: Iterable[Member], manifest: Manifest) -> list[Member]:
    """The lenders in the store, where trials with a name have come: what a summary alone told of them, files of their
    own may tell now."""
    new = {k for m in members for k in m.keys if k.startswith(_RUN)}
    if not new or not new.difference(k for e in manifest.files.values() for k in e.keys):
        return []
    fresh = {m.file.uri for m in members}
    lending = (u for u, e in manifest.files.items() if u not in fresh and any(_marked(e.keys, _LENDS)))
    return [member_of(uri, manifest.files[uri]) for uri in lending]


def _aware(member: Member, named: frozenset[str]) -> Member:
    is_lender = any(_marked(member.keys, _LENDS))
    return msgspec.structs.replace(member, named_trials=named) if is_lender else member


def _with_lent(family: Family, lenders: dict[str, list[Member]], everywhere: dict[str, list[Member]]) -> Family:
    """What lends to trials may tell of some itself: what lends everywhere, which tells of none, lends to it, too."""
    roots = {d for m in family.members for d in _marked(m.keys, _ROOT)}
    telling = roots | {d for m in family.members for d in _marked(m.keys, _LENDS)}
    uris = {m.file.uri for m in family.members}
    lent = [
        m
        for places, lending in ((roots, lenders), (telling, everywhere))
        for folder in sorted({f for place in places for f in _above(place) if f in lending})
        for m in lending[folder]
        if m.file.uri not in uris
    ]
    if not lent:
        return family
    return Family(family.name, (*family.members, *(msgspec.structs.replace(m, lent=True) for m in lent)))


def _without_companion(member: Member, alone: bool) -> Member:
    """A companion of nothing is no trace at all."""
    return msgspec.structs.replace(member, format=None, keys=(), reason="not_a_trace") if alone else member


def _marked(keys: Iterable[str], mark: str) -> Iterator[str]:
    for key in keys:
        if key.startswith(mark):
            yield key[len(mark) :]


def _holder(uri: str, folders: set[str]) -> str | None:
    """The deepest of these folders that holds the file."""
    return next((d for d in _above(posixpath.dirname(uri)) if d in folders), None) if folders else None


def _above(folder: str) -> Iterator[str]:
    """The folder and those it lies in, the nearest first."""
    while True:
        yield folder
        upper = posixpath.dirname(folder)
        if upper == folder or not upper:
            return
        folder = upper


def _inside(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(other + "/")


# The end of a Parquet file, where its columns stand (parquet.apache.org/docs/file-format): a table may be longer
# than what is worth reading to recognise it.

MAGIC = b"PAR1"
_END_BYTES = 8
_FOOTER_MOST = 16 * 1024 * 1024
"""Of a table of a thousand columns in a thousand groups; as much is read of a file elsewhere."""


def columns_of(file: RawFile) -> bytes | None:
    """Bytes that begin and end as the file does, without its rows; None where they can't be had."""
    if file.source == "local" and not file.container:
        try:
            with open(path_of(file.uri), "rb", opener=nonblocking) as handle:
                return _footer(handle) or _whole(file)
        except OSError:  # told when it is read
            return None
    return _whole(file)


def _footer(handle: BinaryIO) -> bytes | None:
    if handle.read(len(MAGIC)) != MAGIC:
        return None  # it is packed
    size = handle.seek(-_END_BYTES, os.SEEK_END) + _END_BYTES
    length = int.from_bytes(handle.read(4), "little") + _END_BYTES
    if not _END_BYTES < length <= min(size, _FOOTER_MOST):
        return None
    handle.seek(-length, os.SEEK_END)
    return MAGIC + handle.read(length)


def _whole(file: RawFile) -> bytes | None:
    (whole,) = read([file]) if file.bytes <= _FOOTER_MOST else [b""]
    return None if isinstance(whole, Unreadable) else whole or None


# What Git has in place of a file that its large file storage keeps (github.com/git-lfs/git-lfs, docs/spec.md).

_POINTER = re.compile(
    rb"version https://(?:git-lfs|hawser)\.github\.com/spec/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*?size (\d{1,19})(?:\n|\Z)"
)


def pointed_at(data: bytes) -> str | None:
    """What a pointer stands for, and what fetches it; None of anything else."""
    match = _POINTER.match(data)
    if match is None:
        return None
    return f"a pointer of Git LFS to a file of {int(match[1]):,} bytes: run `git lfs pull` in its repository"


# What files are: the format that reads each, and what it belongs to, from its beginning alone.

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
    if data.startswith(MAGIC) and not head.complete and (table := columns_of(file)) is not None:
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
    keys += keys_of(claim, file)
    if file.session_hint:
        keys.append(f"session:{sound_id(file.session_hint)}")
    return tuple(keys or [f"file:{file.uri}"])


def _why_not(head: Head) -> str:
    """What a file is when no format claims it."""
    if not head.data:
        return "empty_file"
    if not head.data[:512].strip(b"\xef\xbb\xbf \t\r\n"):
        return "blank_file"
    if head.data.startswith(DATABASES_MAGIC):
        return "database"
    if head.data.startswith(_ARCHIVES) or head.data[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "archive"
    return "unrecognised" if head.looks_like_json else "not_a_trace"


SHARD_BYTES = 64 * 1024 * 1024
"""Raw bytes a shard aims at: memory stays under some 250 MB a worker (design/speed.md#shards), and a lost worker
loses little."""
SMALL_BYTES = 4 * 1024 * 1024
"""So much is read in this very process: what is that small takes no memory worth the name, and a worker that is no copy
of it (other systems, a program with threads) takes 0.7 s of CPU to start."""
_AT_ONCE = 4096
"""So many files are recognised before the next are listed: what is kept of a file until then is more than its entry."""
_FILE_BYTES = 32 * 1024
"""What a file weighs beside its bytes: its values and rows take some 45 KB of a worker until they are written."""


class Plan(Struct):
    """Shards to read, files left alone, and what was found that is no trace."""

    shards: list[list[Family]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """Every file of the run by uri, changed or not."""
    unchanged: int = 0
    excluded_sources: int = 0
    """Of the sources named, those that a list excludes."""
    other_files: dict[str, FileEntry] = field(default_factory=dict)
    """What else to remember of files: that they are no traces at all (not JSON), so that the next run costs a stat; or
    that what was read of them earlier can't be read now."""


def make(  # noqa: PLR0913  (one call, in `pipeline.ingest`)
    specs: Iterable[str],
    manifest: Manifest,
    force: str | None = None,
    tick: Callable[[int], None] = lambda _: None,
    shard_bytes: int = SHARD_BYTES,
    same_code: bool = False,
    exclude: frozenset[str] = frozenset(),
    broken: frozenset[str] = frozenset(),
    jobs: int = 1,
) -> Plan:
    """The plan of a run over these sources. `force` names a format instead of recognising it; `tick` is told how many
    files were found so far; `same_code` says that no parser can have changed since the files were read;
    `exclude` names data sets to leave out, and sessions, whose files are read again to be rid of them. `broken` names
    shards that were damaged: what they held is read again, also where it lies in none of these sources, but on this
    machine. `jobs`: so many will read, each about as much.
    """
    plan = Plan()
    again = _read_again(manifest, exclude, broken)
    members: list[Member] = []
    changed: dict[str, RawFile] = {}
    looked_at: set[str] = set()
    before = manifest.files if same_code and force is None else {}

    def recognise() -> None:
        for member in recognised(list(changed.values()), force, before):
            _take(member, manifest, plan, members)
        looked_at.update(changed)
        changed.clear()

    for spec in specs:
        if exclude and exclusions.dataset_name(spec) in exclude:
            plan.excluded_sources += 1
            continue
        for listed in open_source(spec):
            plan.seen.append(listed.uri)
            if isinstance(listed, Unreadable):
                _take(_unreadable(listed), manifest, plan, members)
            elif _unchanged(listed, manifest.files.get(listed.uri), force, same_code, again):
                plan.unchanged += 1
            elif listed.uri not in looked_at:
                changed[listed.uri] = listed
                if len(changed) >= _AT_ONCE:
                    recognise()
            tick(len(plan.seen))
    if broken:
        changed |= {f.uri: f for f in _held_by(broken, manifest, set(plan.seen))}
    recognise()
    if not members:  # nothing has its place among others
        return plan
    places = Places(members, manifest, looked_at)
    for member in recognised(places.other_files(plan.seen), force, before):
        _take(member, manifest, plan, members)
    members = [places.placed(m) for m in members] + places.drawn_in()
    for other in [m for m in members if not m.keys]:
        plan.other_files[other.file.uri] = entry_of(other, "", "")
    families = _families(_new([m for m in members if m.keys], manifest, broken), manifest)
    plan.shards = list(_packed(families, shard_bytes, jobs))
    return plan


def _read_again(manifest: Manifest, exclude: frozenset[str], broken: frozenset[str]) -> set[str]:
    """Families that are read again though their files are as they were: to be rid of a session, or to have it back."""
    again = {e.family for i, e in manifest.sessions.items() if i in exclude} if exclude else set()
    return again | ({e.family for e in manifest.files.values() if e.shard in broken} if broken else set())


def _take(member: Member, manifest: Manifest, plan: Plan, members: list[Member]) -> None:
    """Adds a file to those to read; of one that is no trace, as most files of a machine are, the entry alone stays."""
    if _kept(member, manifest, plan):
        return
    if member.keys:
        members.append(member)
    else:
        plan.other_files[member.file.uri] = entry_of(member, "", "")


def joined(manifest: Manifest, surprises: set[str], shard_bytes: int = SHARD_BYTES) -> list[list[Family]]:
    """Shards of the families that turned out to tell of one session, which a key of that session now joins."""
    names = {_name_and_side(key)[0] for key in surprises}
    sides: dict[str, set[str]] = {}
    by_name: dict[str, dict[str, list[str]]] = {}
    for uri, entry in manifest.files.items() if names else ():
        for name, side in map(_name_and_side, entry.keys):
            if name in names:
                sides.setdefault(name, set()).add(side)
                by_name.setdefault(name, {}).setdefault(entry.family, []).append(uri)
    members: dict[str, Member] = {}
    for name, by_family in by_name.items():
        if len(by_family) > 1 and len(sides[name] - {""}) != 1:
            for uri in (uri for uris in by_family.values() for uri in uris):
                member = members.get(uri) or member_of(uri, manifest.files[uri])
                members[uri] = replace(member, keys=(*member.keys, name))
    return list(_packed(_families([members[uri] for uri in sorted(members)], manifest), shard_bytes))


def _name_and_side(key: str) -> tuple[str, str]:
    """A key without the word for its side, and that word."""
    side = next((side for side in (ASKS, ANSWERS) if key.startswith(side)), "")
    return key[len(side) :], side


def workers(planned: list[list[Family]], jobs: int) -> int:
    """How many processes read these shards. One at least for all that is not small: a family that ends the process that
    reads it must not end the run.
    """
    files = [m.file for families in planned for f in families for m in f.members if m.format]  # others are not opened
    is_small = sum(f.bytes for f in files) < SMALL_BYTES and sum(map(_unpacked, files)) < SHARD_BYTES
    return 0 if is_small and min(jobs, len(planned)) <= 1 else jobs


def _unpacked(file: RawFile) -> int:
    """What a file may become in memory. What comes from elsewhere is looked at by no name: a worker reads it."""
    return max_unpacked_bytes(path_of(file.uri), file.bytes) if file.source == "local" else file.bytes


def _new(members: list[Member], manifest: Manifest, broken: frozenset[str]) -> list[Member]:
    """Leaves out files that are as unreadable as they were last time, and whose rows say so still."""
    entries = manifest.files
    before = {u: e for m in members if (e := entries.get(u := m.file.uri)) is not None and e.shard not in broken}

    def is_same(m: Member, e: FileEntry) -> bool:
        return e.skipped == {m.reason: 1} and (bool(e.error) or e.note == m.detail)

    return [m for m in members if m.format or m.file.uri not in before or not is_same(m, before[m.file.uri])]


def _kept(member: Member, manifest: Manifest, plan: Plan) -> bool:
    """Whether the store keeps what it has of a file that can't be read now: it counts it, and tries again next time."""
    entry = manifest.files.get(member.file.uri)
    if member.format is not None or member.reason in ABOUT_CONTENT or entry is None or entry.format is None:
        return False
    skipped = {**entry.skipped, member.reason: 1}
    plan.other_files[member.file.uri] = replace(entry, skipped=skipped, parser=READ_AGAIN)
    return True


def _unchanged(file: RawFile, entry: FileEntry | None, force: str | None, same_code: bool, again: set[str]) -> bool:
    """Whether a file is as it was read. How large what a container holds will be is a guess: its key or stamp says."""
    if (
        entry is None
        or entry.family in again
        or (entry.bytes != file.bytes and not file.container)
        or entry.stamp != file.stamp
        or entry.key != file.key
    ):
        return False
    if force is not None and entry.format != force:
        return False
    return same_code or is_current(entry)


def _held_by(broken: frozenset[str], manifest: Manifest, seen: set[str]) -> Iterator[RawFile]:
    """The files that these shards were read from and that are on this machine, as they are now, save those `seen`."""
    for uri, e in manifest.files.items():
        if e.shard in broken and e.source == "local" and uri not in seen:
            try:
                now = Path(path_of(uri)).stat()
            except OSError:  # gone, as agents' files go: what was read from it stays lost, and is told
                continue
            yield RawFile(
                uri=uri,
                source=e.source,
                spec=e.spec,
                bytes=e.bytes if e.container else now.st_size,
                stamp=e.stamp if e.container else now.st_mtime_ns,
                container=e.container,
                key=e.key,
                session_hint=e.session_hint,
                repo_hint=e.repo_hint,
            )


def _unreadable(listed: Unreadable) -> Member:
    file = RawFile(uri=listed.uri, source="local", spec=listed.spec, bytes=0, stamp=None)
    return Member(file=file, format=None, keys=(f"file:{listed.uri}",), reason=listed.reason, detail=listed.detail)


def _families(members: list[Member], manifest: Manifest) -> list[Family]:
    """Members joined by key with each other and with the files already in the store."""
    if not members:
        return []
    fresh = {m.file.uri: m for m in members}
    members = [*members, *of_new_trials(members, manifest)]
    pool = {m.file.uri: m for m in members}
    by_key: dict[str, list[str]] = {}
    others = {uri: entry for uri, entry in manifest.files.items() if uri not in fresh}
    known_by = {key for m in members for key in m.keys}
    if any(not known_by.isdisjoint(entry.keys) for entry in others.values()):  # else each is what it is by itself
        for uri, entry in others.items():
            for key in entry.keys:
                by_key.setdefault(key, []).append(uri)
    queue = list(members)
    while queue:
        for key in queue.pop().keys:
            for uri in by_key.pop(key, ()):
                if uri not in pool:
                    pool[uri] = member_of(uri, manifest.files[uri])
                    queue.append(pool[uri])
    groups = _joined(pool)
    families = [Family(min(k for m in group for k in m.keys), _still_there(group, fresh)) for group in groups]
    return with_lent([f for f in families if f.members], pool, manifest)


def _joined(pool: dict[str, Member]) -> list[list[Member]]:
    """Groups of members that share keys, directly or through others (union-find)."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for member in pool.values():
        for key in member.keys[1:]:
            parent[root(key)] = root(member.keys[0])
    groups: dict[str, list[Member]] = {}
    for member in pool.values():
        groups.setdefault(root(member.keys[0]), []).append(member)
    return [sorted(g, key=lambda m: m.file.uri) for g in groups.values()]


def _still_there(group: list[Member], fresh: dict[str, Member]) -> tuple[Member, ...]:
    """Without files that are gone. When the largest is gone the family stays as it was read: agents delete their files,
    and what remains holds less than the store does."""
    gone = [
        m
        for m in group
        if m.file.uri not in fresh and m.file.source == "local" and not os.path.lexists(path_of(m.file.uri))
    ]
    here = [m for m in group if m not in gone]
    if gone and here and max(m.file.bytes for m in gone) > max(m.file.bytes for m in here):
        return ()
    return tuple(here)


def _packed(families: list[Family], shard_bytes: int, jobs: int = 1) -> Iterator[list[Family]]:
    """Shards of whole families, about equally large and in order of name: the same files make the same shards for as
    many `jobs`, none of which waits long for another's last one.
    """
    weights = [family.bytes + _FILE_BYTES * len(family.members) for family in families]
    total = sum(weights)
    shards_n = max(-(-total // shard_bytes), min(jobs, total // SMALL_BYTES))
    if shards_n > jobs:
        shards_n = -(-shards_n // jobs) * jobs
    begun: dict[int, list[Family]] = {}
    before = 0
    for family, weight in sorted(zip(families, weights, strict=True), key=lambda pair: pair[0].name):
        # Where its middle lies: none is cut, and no shard is larger than its share by more than half of its two ends.
        begun.setdefault((2 * before + weight) * shards_n // (2 * total), []).append(family)
        before += weight
    yield from begun.values()


# Which versions of an agent wrote the files that were read, and what of theirs was never seen before.

MOST = 20
"""Names of fields that are kept of one version."""
LONGEST_VERSION = 40
"""Characters; a trace may say anything."""


class UnknownFields(Struct, kw_only=True):
    """Fields of one version of an agent that no file of its format had before."""

    format: str
    version: str
    """Empty where the files don't say it."""
    files: int
    fields: list[str]
    """In order of name, at most 20."""


def drift(entries: Iterable[FileEntry]) -> list[UnknownFields]:
    """The unknown fields of these files by format and version, those of most files first."""
    files: Counter[tuple[str, str]] = Counter()
    fields: dict[tuple[str, str], set[str]] = {}
    for e in entries:
        if e.unknown_fields and e.format is not None:
            files[e.format, e.version] += 1
            fields.setdefault((e.format, e.version), set()).update(e.unknown_fields)
    return [
        UnknownFields(format=name, version=version, files=n, fields=sorted(fields[name, version])[:MOST])
        for (name, version), n in sorted(files.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def versions(entries: Iterable[FileEntry]) -> dict[str, dict[str, int]]:
    """How many files by format and version, in order of both."""
    met = Counter((e.format, e.version) for e in entries if e.version and e.format is not None)
    by_format: dict[str, dict[str, int]] = {}
    for name, version in sorted(met, key=lambda pair: (pair[0] or "", in_order(pair[1]))):
        by_format.setdefault(name or "", {})[version] = met[name, version]
    return by_format


def versions_of(sessions: list[Session]) -> dict[str, str]:
    """The version that wrote each file (by artifact), as its first session says it."""
    return {s.artifact_id: s.agent_version[:LONGEST_VERSION] for s in reversed(sessions) if s.agent_version}


def in_order(version: str) -> tuple[list[int], str]:
    """What puts 0.9 before 0.10."""
    return [int(number) for number in re.findall(r"[0-9]{1,9}", version)[:6]], version
