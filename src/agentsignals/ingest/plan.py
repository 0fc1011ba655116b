"""The plan of a run: new and changed files, grouped with the files that belong to the same sessions, in shards.

Files that share a key (a session id; the first record of a forked history) form a group. A group is always read whole,
so that snapshots are merged and forks count once, in whatever order they were found.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.errors import AgentSignalsError, AmbiguousFormat
from agentsignals.formats import (
    ANSWERS,
    ASKS,
    MAX_DOCUMENT_BYTES,
    OUTCOME_TABLE,
    Claim,
    Format,
    by_name,
    claimed_by,
    first_fields,
    format_named,
    identify,
    is_state,
    unread_file,
    version_of_all,
)
from agentsignals.formats.records import HEAD_BYTES, LINES_BYTES, MAX_RECORDS, Head, outline
from agentsignals.formats.rows import NO_CONVERSATIONS, columns_note, header_of, is_packed, schema_of
from agentsignals.model.lazy import deferred_pattern
from agentsignals.model.prices import own_prices
from agentsignals.sources import (
    DATABASE_MAGIC,
    RawFile,
    Unreadable,
    dataset_name,
    error_text,
    max_unpacked_bytes,
    nonblocking,
    open_source,
    origin_of,
    path_of,
    read,
    reason_of,
    uri_of,
)
from agentsignals.sources import by_name as source_named
from agentsignals.sources.local import deleted_files
from agentsignals.store.index import ArtifactEntry, FileKind, FileStamp, Manifest, artifact_id, files_of_namesakes

# Files and groups

READ_AGAIN = -2
"""Parser version of a file that the next run reads again: something was left out on request, or failed for a reason
outside its bytes."""
ABOUT_CONTENT = frozenset(
    (
        *("empty_file", "blank_file", "unrecognised", "archive", "database", "not_a_trace", "ambiguous_format"),
        "git_lfs_pointer",
        *("agent_not_read", "not_sessions", "other_export", NO_CONVERSATIONS, "bad_parquet"),
        *("bad_gzip", "cut_gzip", "bad_bzip2", "cut_bzip2", "bad_xz", "cut_xz", "bad_zstd", "cut_zstd"),
    )
)
"""Reasons not to read a file that depend on its bytes alone: while these are unchanged, so is the answer."""
_PASSING = frozenset(
    (
        *("no_permission", "file_gone", "download_failed", "unreadable", "changed_while_read", "database_locked"),
        *("internal_error", "worker_died", "out_of_memory"),
    )
)

MAX_ID_CHARS = 200
"""Longer ids are cut: an id is in each row of its session, and agents write 36 characters."""
_UNFIT = deferred_pattern("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that no id may have: control characters, marks of direction, halves of surrogate pairs."""


class RecognisedArtifact(Struct, frozen=True, kw_only=True):
    """A file and the format that reads it; no format when it can't be read as a trace."""

    file: RawFile
    format: str | None
    keys: tuple[str, ...]
    reason: str = ""
    """Why it can't be read: `unrecognised`, `empty_file`, `not_text`, `no_permission` …"""
    detail: str = ""
    """The error, or what else is known beyond the reason."""
    lent: bool = False
    """True where it belongs to another group too, and is accounted for there."""
    named_trials: frozenset[str] = frozenset()
    """For a file that lends: the names of all trials with files of their own."""
    trials_below: frozenset[str] = frozenset()
    """For a file that lends or judges: names of the trials below its folder (`formats.Input`)."""
    judges: str = ""
    """For a file that judges: the folder whose trials it is about."""
    head: str = ""
    """Hash of its beginning (`ArtifactEntry.head`)."""

    @property
    def trials(self) -> frozenset[str] | None:
        """Names of trials for the format (`formats.Input`)."""
        return None if self.lent else self.named_trials


class FileGroup(Struct, frozen=True):
    """Files that are read together."""

    name: str
    files: tuple[RecognisedArtifact, ...]
    kept: tuple[tuple[str, str], ...] = ()
    """Sessions of files that are gone, each with its shard. They stay unless one of the files here tells more."""

    @property
    def bytes(self) -> int:
        return sum(m.file.bytes for m in self.files)


def printable_id(text: str) -> str:
    """Return an id that every table, file and terminal can hold; different texts stay different."""
    if len(text) <= MAX_ID_CHARS and (text.isprintable() or _UNFIT.search(text) is None):
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{_UNFIT.sub('�', text[: MAX_ID_CHARS // 2])}~{digest}"


def shard_name(groups: list[FileGroup], run: int) -> str:
    """Name a shard by its run and its files, so that no two shards ever have one name."""
    sources = "|".join(f"{m.file.uri}:{m.file.bytes}:{m.file.stamp}:{m.file.key}" for f in groups for m in f.files)
    return f"{run:06d}-{hashlib.blake2b(sources.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def parser_version(name: str | None) -> int:
    """Return the version of the parser of a format; for unclaimed files, of all parsers together. It changes with the
    person's own prices, too: the costs of sessions are stored."""
    if name is None:
        return version_of_all()
    if (named := format_named(name)) is None:
        return -1
    return named.version + int.from_bytes(own_prices().digest) * _VERSIONS


_VERSIONS = 1_000_000
"""Versions of a format are fewer."""


def index_entry(
    member: RecognisedArtifact, group: str, shard: str, skipped: dict[str, int] | None = None, error: str = ""
) -> ArtifactEntry:
    """Return the index entry of a file just read."""
    file = member.file
    counted = skipped if skipped is not None else {member.reason: 1}
    was_there = file.stamp is not None or file.key
    parser = READ_AGAIN if was_there and not _PASSING.isdisjoint(counted) else parser_version(member.format)
    return ArtifactEntry(
        **_facts(file),
        format=member.format,
        parser=parser,
        group=group,
        keys=list(member.keys),
        shard=shard,
        skipped=counted,
        error=error,
        note=member.detail if member.format is None and not error else "",
        head=member.head,
    )


def artifact_of(uri: str, e: ArtifactEntry) -> RecognisedArtifact:
    """Return a file as it was when it was last read."""
    file, reason = RawFile(uri=uri, **_facts(e)), "" if e.format else next(iter(e.skipped), "unrecognised")
    return RecognisedArtifact(file=file, format=e.format, keys=tuple(e.keys), reason=reason, detail=e.note, head=e.head)


_FACTS = tuple(name for name in RawFile.__struct_fields__ if name != "uri")


def _facts(of: RawFile | ArtifactEntry) -> dict[str, Any]:
    return {name: getattr(of, name) for name in _FACTS}


# Files of eval runs

_ROOT, _GATHERS, _LENDS, _COMPANION = "root:", "gathers:", "lends:", "companion:"
_EVERYWHERE, _PREDICTS, _JUDGES, _TELLS = "everywhere:", "predicts:", "judges:", "tells:"
_NOT_JOINING = (_JUDGES, _TELLS)
_FORMER = "former:"
_RUN = "run:"
"""Prefix of a trial's name (`Attempt.goes_by`)."""


def trial_keys(claim: Claim, file: RawFile) -> list[str]:
    """Return the keys that a claim adds for the file's place among eval runs."""
    keys = [f"{_ROOT}{claim.root}"] if claim.root else []
    if claim.root and claim.gathers:
        keys.append(f"{_GATHERS}{claim.root}")
    if claim.lends:
        keys.append(f"{_LENDS}{claim.lends}")
        keys += [f"{_PREDICTS}{claim.lends}"] if claim.predicts else []
    if claim.judges:
        keys += [f"file:{file.uri}", f"{_JUDGES}{claim.judges}"]
    keys += [f"{_TELLS}{name}" for name in claim.tells]
    if claim.everywhere:
        # The folder that was named as a source and holds the file; else the folder of the file.
        folder = posixpath.dirname(file.uri)
        named = uri_of(os.path.abspath(os.path.expanduser(file.spec)))  # noqa: PTH100, PTH111  (as files are listed)
        is_inside = file.source == "local" and _inside(folder, named)
        keys.append(f"{_EVERYWHERE}{named if is_inside else folder}")
    if claim.companion:
        keys.append(_COMPANION)
    return keys


class TrialFolders:
    """Known folders of trials: from files just recognised, and from those in the store.

    A file's place is kept among its keys, so that the index remembers it: `root:DIR` (part of the trial in DIR; joins),
    `gathers:DIR` (sessions below are the trial's), `lends:DIR` (trials below may need it), `judges:DIR` (trials below
    may take their verdict from it), `everywhere:DIR` (everything about trials below may need it), `companion:` (it
    means nothing by itself).
    """

    def __init__(self, members: list[RecognisedArtifact], manifest: Manifest, looked_at: set[str]) -> None:
        self._manifest = manifest
        self._fresh = looked_at
        new = set(_marked((k for m in members for k in m.keys), _ROOT))
        others = manifest.keys_with_prefix(_ROOT, _GATHERS)
        old_keys = [key for uri, keys in others.items() if uri not in self._fresh for key in keys]
        old = set(_marked(old_keys, _ROOT))
        self._roots = new | old
        self._new = new - old
        self._gathering = {d for m in members for d in _marked(m.keys, _GATHERS)} | set(_marked(old_keys, _GATHERS))
        marks = (_LENDS, _JUDGES, _EVERYWHERE)
        self._lending = {d for m in members for mark in marks for d in _marked(m.keys, mark)}
        self._lending |= {posixpath.dirname(d) for m in members for d in _marked(m.keys, _JUDGES)}

    def other_files(self, seen: list[str]) -> list[RawFile]:
        """Return files that were no traces when first seen, and may be companions of a trial found since."""
        files = []
        for uri in seen if self._new else ():
            entry = self._manifest.files.get(uri)
            if entry is not None and not entry.keys and uri not in self._fresh and _holder(uri, self._new):
                files.append(artifact_of(uri, entry).file)
        return files

    def placed(self, member: RecognisedArtifact) -> RecognisedArtifact:
        """Add the trial it is in to a file's keys. A companion of nothing loses its keys."""
        if not member.keys:
            return member
        alone = replace(member, format=None, keys=(), reason="not_a_trace")
        if not self._roots:
            return alone if _COMPANION in member.keys else member
        uri, keys = member.file.uri, list(member.keys)
        if _COMPANION in keys:
            home = _holder(uri, self._roots)
            lends = any(_inside(root, d) for d in _marked(keys, _LENDS) for root in self._roots)
            if home is None and not lends:
                return alone
            if home is not None and not lends:
                keys.append(f"{_ROOT}{home}")
        elif member.format is not None and not any(key.startswith((_LENDS, _JUDGES, _EVERYWHERE)) for key in keys):
            keys += [f"{_ROOT}{d}" for d in _above(posixpath.dirname(uri)) if d in self._gathering]
        kept = [k for k in dict.fromkeys(keys) if k != _COMPANION]
        return replace(member, keys=tuple(kept or [f"file:{uri}"]))

    def drawn_in(self) -> list[RecognisedArtifact]:
        """Return files in the store whose place changed: a new trial gathers them, or something new is lent to them."""
        placed_members = []
        gathering = self._gathering & self._new
        for uri, entry in self._manifest.files.items() if gathering or self._lending else ():
            if uri in self._fresh or entry.format is None:
                continue
            in_trial = any(k.startswith((_ROOT, _LENDS, _JUDGES)) for k in entry.keys)
            if _holder(uri, gathering) or (in_trial and _holder(uri, self._lending)):
                placed_members.append(self.placed(artifact_of(uri, entry)))
        return placed_members


def add_lent_files(groups: list[FileGroup], pool: dict[str, RecognisedArtifact], manifest: Manifest) -> list[FileGroup]:
    """Add lent files to the groups of trials. A lender is accounted for in a group of its own."""
    marks = (_LENDS, _JUDGES, _EVERYWHERE)
    lending = manifest.keys_with_prefix(*marks)
    if not lending and not any(key.startswith(marks) for m in pool.values() for key in m.keys):
        return groups
    lenders: dict[str, list[RecognisedArtifact]] = {}
    everywhere: dict[str, list[RecognisedArtifact]] = {}
    others = (artifact_of(uri, e) for uri, e in manifest.files.known(lending).items() if uri not in pool)
    every = [m.keys for m in pool.values()] + [e.keys for uri, e in manifest.files.items() if uri not in pool]
    holding = {folder for keys in every for root in _marked(keys, _ROOT) for folder in _above(root)}
    for member in (*pool.values(), *others):
        for folder in _marked(member.keys, _LENDS):
            lenders.setdefault(folder, []).append(member)
        if (judged := _judged_by(member, holding)) is not None:
            lenders.setdefault(judged, []).append(replace(member, judges=judged))
        for folder in _marked(member.keys, _EVERYWHERE):
            everywhere.setdefault(folder, []).append(member)
    trials = [keys for keys in every if not any(_marked(keys, _LENDS))]
    named = frozenset(n for keys in trials for n in _marked(keys, _RUN))
    predicted = {f for keys in every for f in _marked(keys, _PREDICTS)}
    by_place = _named_by_place(trials, predicted) if len(predicted) > 1 else {}
    grouped = [[m.keys for m in group.files] for group in groups]
    below = _named_below([*grouped, *([e.keys] for uri, e in manifest.files.items() if uri not in pool)], set(lenders))
    result = []
    for group in groups:
        uris = {m.file.uri for m in group.files}
        roots = {d for m in group.files for d in _marked(m.keys, _ROOT)}
        telling = roots | {d for m in group.files for d in _marked(m.keys, _LENDS)}
        # Files that lend everywhere also go to those that lend to trials, because these may tell of trials themselves.
        lent = [
            replace(m, lent=True, trials_below=below.get(folder, frozenset()))
            for places, lending_there in ((roots, lenders), (telling, everywhere))
            for folder in sorted({f for place in places for f in _above(place) if f in lending_there})
            for m in lending_there[folder]
            if m.file.uri not in uris
        ]
        own = []
        for m in group.files:
            home = _judged_by(m, holding)
            place = home or next(_marked(m.keys, _LENDS), None)
            if place is None:
                own.append(m)
                continue
            there = next((by_place[f] for f in _marked(m.keys, _PREDICTS) if f in by_place), named)
            known = below.get(place, frozenset())
            own.append(replace(m, named_trials=there, trials_below=known, judges=home or ""))
        result.append(replace(group, files=(*own, *lent)))
    return result


def _judged_by(member: RecognisedArtifact, holding: set[str]) -> str | None:
    """Return the folder whose trials a file judges: its own; the one above where only that has trials (`holding`), and
    is among what was named. A run may keep its results in a folder beside its trajectories."""
    for folder in _marked(member.keys, _JUDGES):
        above, file = posixpath.dirname(folder), member.file
        if folder in holding or above not in holding or file.source != "local":
            return folder
        named = uri_of(os.path.abspath(os.path.expanduser(file.spec)))  # noqa: PTH100, PTH111  (as files are listed)
        return above if _inside(above, named) else folder
    return None


def _named_by_place(trials: Iterable[Iterable[str]], predicted: set[str]) -> dict[str, frozenset[str]]:
    """Return, by folder of predictions, the names of the trials that these may be of: those to which no other
    predictions lie nearer. A run that nobody judged may lie beside one of the same model that was judged."""
    above = {folder: list(_above(folder)) for folder in predicted}
    shared = {a for folders in above.values() for a in folders}
    names: dict[str, set[str]] = {}
    for keys in map(list, trials):
        for root in _marked(keys, _ROOT):
            nearest = next((f for f in _above(root) if f in shared), None)
            names.setdefault(nearest or "", set()).update(_marked(keys, _RUN))
    return {f: frozenset().union(*(names.get(a, ()) for a in (*folders, ""))) for f, folders in above.items()}


def _named_below(groups: Iterable[Iterable[Iterable[str]]], folders: set[str]) -> dict[str, frozenset[str]]:
    """Return, by folder, the names of the trials below it. A task that one trial alone has is a name, `/<task>`.

    Files of a group that tell of a task are of as many trials as they have roots; the others of one name are one trial.
    """
    names: dict[str, set[str]] = {}
    trials: dict[str, Counter[str]] = {}
    for group in groups:
        told: dict[str, dict[str, set[str]]] = {}
        for keys in map(list, group):
            own, runs = list(_marked(keys, _TELLS)), list(_marked(keys, _RUN))
            roots = list(_marked(keys, _ROOT)) if own or runs else ()
            for folder in {f for root in roots for f in _above(root) if f in folders}:
                names.setdefault(folder, set()).update(own, runs)
                for name in (*own, *runs):
                    tried = told.setdefault(folder, {}).setdefault(name.rpartition("/")[2], set())
                    tried.update(roots if own else ())
        for folder, tasks in told.items():
            trials.setdefault(folder, Counter()).update({task: len(tried) or 1 for task, tried in tasks.items()})
    return {
        folder: frozenset(
            (*(n for n in found if n[:1] != "/"), *(f"/{t}" for t, n in trials[folder].items() if n == 1))
        )
        for folder, found in names.items()
    }


def _marked(keys: Iterable[str], mark: str) -> Iterator[str]:
    for key in keys:
        if key.startswith(mark):
            yield key[len(mark) :]


def _holder(uri: str, folders: set[str]) -> str | None:
    """Return the deepest of these folders that holds the file."""
    return next((d for d in _above(posixpath.dirname(uri)) if d in folders), None) if folders else None


def _above(folder: str) -> Iterator[str]:
    while True:
        yield folder
        upper = posixpath.dirname(folder)
        if upper == folder or not upper:
            return
        folder = upper


def _inside(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(other + "/")


MAGIC = b"PAR1"
_END_BYTES = 8
_FOOTER_MOST = 16 * 1024 * 1024
"""Size of the footer of a table of a thousand columns in a thousand groups."""


def parquet_footer(file: RawFile) -> bytes | None:
    """Return the beginning and the footer of a Parquet file, without rows: a table may be longer than what is read to
    recognise it. None where it can't be read."""
    if isinstance(here := source_named(file.source).place(file), Path):
        try:
            with open(here, "rb", opener=nonblocking) as handle:
                if handle.read(len(MAGIC)) == MAGIC:  # else it is packed
                    size = handle.seek(-_END_BYTES, os.SEEK_END) + _END_BYTES
                    length = int.from_bytes(handle.read(4), "little") + _END_BYTES
                    if _END_BYTES < length <= min(size, _FOOTER_MOST):
                        handle.seek(-length, os.SEEK_END)
                        return MAGIC + handle.read(length)
        except OSError:  # told when it is read
            return None
    (whole,) = read([file])  # elsewhere there is no way to its end but the whole
    if isinstance(whole, Unreadable) or whole[: len(MAGIC)] != MAGIC:
        return None
    length = int.from_bytes(whole[-_END_BYTES : -len(MAGIC)], "little") + _END_BYTES
    return MAGIC + whole[-length:] if _END_BYTES < length <= min(len(whole), _FOOTER_MOST) else None


_LFS_POINTER = re.compile(
    rb"version https://(?:git-lfs|hawser)\.github\.com/spec/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*?size \d{1,19}(?:\n|\Z)"
)


# Recognising

_ARCHIVES = (b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07")
_TAR, _TAR_AT = b"ustar", 257
_OF_DATA_SET = "data_set:"
_TWIN = "twin:"
"""Prefix of a key made of the content: data sets are uploaded again, and files without session ids are equal then."""


def recognise(
    changed: list[RawFile], force: str | None, before: Mapping[str, ArtifactEntry]
) -> Iterator[RecognisedArtifact]:
    """Recognise files by their beginning. `before`: entries of files that this very code recognised earlier."""
    for source in dict.fromkeys(f.source for f in changed):
        files = [f for f in changed if f.source == source]
        for file, data in zip(files, read(files, HEAD_BYTES), strict=True):
            alone = RecognisedArtifact(file=file, format=None, keys=(f"file:{file.uri}",))
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
                yield replace(
                    alone, reason=reason_of(error_text(problem)), detail=f"recognising: {error_text(problem)}"
                )


_STATE = ("unrecognised", "not_a_trace", "database", "archive", "empty_file", "blank_file")
"""What an agent's own state may be, which needs no word."""


def _recognise(
    alone: RecognisedArtifact, data: bytes, force: str | None, before: ArtifactEntry | None
) -> RecognisedArtifact:
    """Return the format that a file's first bytes show, or why no format reads it."""
    file = alone.file
    head = Head(data, file.uri, len(data) < HEAD_BYTES)
    mark = "" if head.complete or force is not None else hashlib.blake2b(data, digest_size=8).hexdigest()
    if mark and before is not None and before.head == mark:  # a log that grew: its format alone is loaded
        named = by_name(before.format or "")
        if (claim := claimed_by(named, head)) is not None:
            return RecognisedArtifact(file=file, format=named.name, keys=_keys(named, claim, file), head=mark)
    if data.startswith(MAGIC) and not head.complete and (table := parquet_footer(file)) is not None:
        head = Head(table, file.uri, True)
    if _LFS_POINTER.match(data) is not None:
        return replace(alone, reason="git_lfs_pointer", detail="pointers in place of files")
    reason = _why_not(head)
    if reason in ("unrecognised", "archive", "not_a_trace") or force is not None:
        if (identified := _identified(head, file, force, last=head.complete)) is not None:
            mark = mark if head.data is data else ""
        elif not head.complete:
            identified, mark = _of_long_lines(head, file, force) or _identified(head, file, force), ""
        if identified is not None:
            return RecognisedArtifact(file=file, format=identified[0].name, keys=_keys(*identified, file), head=mark)
    if reason in _STATE and is_state(file.uri, reason == "empty_file"):
        return replace(alone, reason="not_a_trace", keys=())
    if is_packed(head.data) and (head.complete or not data.startswith(MAGIC)):
        schema = schema_of(head.data)
        if schema is not None and _is_of_a_store(schema.names):
            return replace(alone, reason="not_a_trace", keys=())
        if schema is not None:
            return replace(alone, reason=NO_CONVERSATIONS, detail=columns_note(schema.names))
        if data.startswith(MAGIC):
            return replace(alone, reason="bad_parquet")
    if reason in ("unrecognised", "not_a_trace") and (whose := unread_file(head)) is not None:
        return replace(alone, reason=whose.reason, detail=whose.note)
    if reason == "unrecognised":
        return replace(alone, reason=reason, detail=first_fields(head))
    if reason == "not_a_trace" and _CSV.search(file.uri) is not None and len(names := header_of(head.text)) > 1:
        return replace(alone, reason=NO_CONVERSATIONS, detail=columns_note(names))
    return replace(alone, reason=reason, keys=() if reason == "not_a_trace" else alone.keys)


_CSV = deferred_pattern(r"\.[ct]sv(?:\.\w{2,4})?\Z")
_FEWEST_COLUMNS, _MOSTLY = 5, 0.8


def _is_of_a_store(names: list[str]) -> bool:
    """Return whether a table is one of a store's, or of an export of it, of whatever version."""
    from agentsignals.store.tables import COLUMNS  # noqa: PLC0415  (for tables only)

    tables = (set(columns) for columns in COLUMNS.values())
    return len(names) >= _FEWEST_COLUMNS and any(len(own & set(names)) >= _MOSTLY * len(names) for own in tables)


def _of_long_lines(head: Head, file: RawFile, force: str | None) -> tuple[Format, Claim] | None:
    """Recognise a file whose first records are longer than a head: a first prompt may hold pictures. Of a document all
    keys are looked at."""
    if head.complete or not head.looks_like_json or len(head.records) >= MAX_RECORDS:
        return None
    (more,) = read([file], LINES_BYTES)
    if isinstance(more, Unreadable):
        return None
    if not head.records:
        whole: bytes | Unreadable = more
        is_printed = more.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0].strip() in (b"{", b"[")
        if len(more) < file.bytes <= MAX_DOCUMENT_BYTES and (is_printed or b"\n" not in more):
            (whole,) = read([file], MAX_DOCUMENT_BYTES)
        if not isinstance(whole, Unreadable) and (short := outline(whole)) is not None:
            return _identified(Head(short, file.uri, True), file, force)
    lines = more.split(b"\n", MAX_RECORDS)
    if len(lines) == 1 and len(more) >= LINES_BYTES:
        return None
    data = more if len(lines) <= MAX_RECORDS else b"\n".join((*lines[:-1], b""))
    return _identified(Head(data, file.uri, len(data) == len(more) < LINES_BYTES), file, force)


def _identified(head: Head, file: RawFile, force: str | None, last: bool = True) -> tuple[Format, Claim] | None:
    if force is None:
        return identify(head, last)
    forced = by_name(force)
    return forced, forced.claims(head) or Claim(keys=[f"file:{file.uri}"])


def _keys(trace_format: Format, claim: Claim, file: RawFile) -> tuple[str, ...]:
    named = (key.partition(":") for key in claim.keys)
    keys = [f"{kind}:{printable_id(name)}" for kind, _, name in named if name]  # an id that is empty is nobody's
    if file.source == "hub" and trace_format.snapshots:
        keys.append(f"{_TWIN}{file.key}")
    if trace_format.name == OUTCOME_TABLE and (origin := origin_of(file)) is not None and origin.dataset:
        keys.append(f"{_OF_DATA_SET}{origin.dataset}")  # its splits and commits may repeat rows
    if claim.by_folder:
        keys.append(f"beside:{posixpath.dirname(file.uri)}")
    keys += trial_keys(claim, file)
    if file.session_hint:
        keys.append(f"session:{printable_id(file.session_hint)}")
    return tuple(keys or [f"file:{file.uri}"])


def _why_not(head: Head) -> str:
    """Return the reason when no format claims a file."""
    if not head.data:
        return "empty_file"
    if not head.data[:512].strip(b"\xef\xbb\xbf \t\r\n"):
        return "blank_file"
    if head.data.startswith(DATABASE_MAGIC):
        return "database"
    if head.data.startswith(_ARCHIVES) or head.data[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "archive"
    return "unrecognised" if head.looks_like_json else "not_a_trace"


SHARD_BYTES = 64 * 1024 * 1024
"""Raw bytes of a shard: memory stays under 250 MB a worker (design/speed.md#shards), and a lost one loses little."""
SMALL_BYTES = 4 * 1024 * 1024
"""Up to this size files are read in this process: they need little memory, and a worker that is not forked takes 0.7 s
of CPU to start."""
_SEEN_A_TICK = 100
_AT_ONCE = 4096
"""Files that are recognised together: until then more than their index entry is kept."""
_FILE_BYTES = 32 * 1024
"""Memory of a file besides its bytes: its values and rows take some 45 KB of a worker until they are written."""


class Plan(Struct):
    """Shards to read, and the files that are not read."""

    shards: list[list[FileGroup]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """Every file of the run by uri, changed or not."""
    unchanged: int = 0
    excluded_sources: int = 0
    """Sources that a list excludes."""
    other_files: dict[str, ArtifactEntry] = field(default_factory=dict)
    """Index entries of files that are not read: no traces, or unreadable now while an earlier reading is kept."""


def make_plan(  # noqa: PLR0913  (one call, in `pipeline.ingest`)
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
    """Plan a run over these sources.

    `force`: format to use instead of recognising. `tick`: called with the number of files found. `same_code`: no parser
    can have changed since the files were read. `exclude`: data sets and sessions to leave out; files of these sessions
    are read again without them. `broken`: damaged shards; their files on this machine are read again, also when no
    source named here holds them. `jobs`: number of workers, which get about equal work.
    """
    plan, unchanged = Plan(), 0
    seen = plan.seen
    # Groups to read again although their files are unchanged: to remove a session, or to restore it.
    again = {e.group for e in manifest.sessions.known(exclude).values()} if exclude else set()
    if broken:
        again |= {e.group for e in manifest.files.where("shard", broken).values()}
    members: list[RecognisedArtifact] = []
    changed: dict[str, RawFile] = {}
    looked_at: set[str] = set()
    before = manifest.files if same_code and force is None else {}
    stamps = manifest.stamps()

    def take_changed() -> None:
        for member in recognise(list(changed.values()), force, before):
            _take(member, manifest, plan, members)
        looked_at.update(changed)
        changed.clear()

    for spec in specs:
        if exclude and dataset_name(spec) in exclude:
            plan.excluded_sources += 1
            continue
        for listed in open_source(spec):
            uri = listed.uri
            seen.append(uri)
            if not len(seen) % _SEEN_A_TICK:
                tick(len(seen))
            if isinstance(listed, RawFile):
                if (stamp := stamps.get(uri)) and _unchanged(listed, stamp, force, same_code, again):
                    unchanged += 1
                elif uri not in looked_at:
                    changed[uri] = listed
                    if len(changed) >= _AT_ONCE:
                        take_changed()
                continue
            file = RawFile(uri=uri, source="local", spec=listed.spec, bytes=0, stamp=None)
            keys = (f"file:{uri}",)
            unreadable = RecognisedArtifact(
                file=file, format=None, keys=keys, reason=listed.reason, detail=listed.detail
            )
            _take(unreadable, manifest, plan, members)
    plan.unchanged = unchanged
    if broken:
        changed |= {f.uri: f for f in _held_by(broken, manifest, set(plan.seen))}
    take_changed()
    if not members:  # nothing has its place among others
        return plan
    places = TrialFolders(members, manifest, looked_at)
    for member in recognise(places.other_files(plan.seen), force, before):
        _take(member, manifest, plan, members)
    members = [places.placed(m) for m in members] + places.drawn_in()
    for other in [m for m in members if not m.keys]:
        plan.other_files[other.file.uri] = index_entry(other, "", "")
    # Files that are as unreadable as last time are left out where their rows still say so.
    known = manifest.files.known(m.file.uri for m in members if not m.format)

    def is_same(member: RecognisedArtifact, entry: ArtifactEntry | None) -> bool:
        if member.format or entry is None or entry.shard in broken or entry.skipped != {member.reason: 1}:
            return False
        return bool(entry.error) or entry.note == member.detail

    due = [m for m in members if m.keys and not is_same(m, known.get(m.file.uri))]
    groups = _grouped(due, manifest)
    plan.shards = list(_packed(groups, shard_bytes, jobs))
    return plan


def _take(member: RecognisedArtifact, manifest: Manifest, plan: Plan, members: list[RecognisedArtifact]) -> None:
    """Add a file to those to read, or only remember it where it is no trace, as most files of a machine are."""
    entry = manifest.files.get(member.file.uri)
    if not (member.format or member.reason in ABOUT_CONTENT or entry is None or entry.format is None):
        # It can't be read now: the store keeps the earlier reading, counts that, and tries again next time.
        skipped = {**entry.skipped, member.reason: 1}
        plan.other_files[member.file.uri] = replace(entry, skipped=skipped, parser=READ_AGAIN)
    elif member.keys:
        members.append(member)
    else:
        plan.other_files[member.file.uri] = index_entry(member, "", "")


def regroup(manifest: Manifest, late_keys: set[str], shard_bytes: int = SHARD_BYTES) -> list[list[FileGroup]]:
    """Return shards of groups that turned out to tell of one session; a key of that session joins them."""
    names = {_name_and_side(key)[0] for key in late_keys}
    members: dict[str, RecognisedArtifact] = {}
    sides: dict[str, set[str]] = {}
    by_name: dict[str, dict[str, list[str]]] = {}
    keyed = manifest.files_with_keys(side + name for name in names for side in ("", ASKS, ANSWERS))
    entries = manifest.files.known(uri for uris in keyed.values() for uri in uris)
    for key, uris in keyed.items():
        name, side = _name_and_side(key)
        sides.setdefault(name, set()).add(side)
        for uri in uris:
            by_name.setdefault(name, {}).setdefault(entries[uri].group, []).append(uri)
    for name, by_group in by_name.items():
        if len(by_group) > 1 and len(sides[name] - {""}) != 1:
            for uri in (uri for uris in by_group.values() for uri in uris):
                member = members.get(uri) or artifact_of(uri, entries[uri])
                members[uri] = replace(member, keys=(*dict.fromkeys((*member.keys, name)),))
    return list(_packed(_grouped([members[uri] for uri in sorted(members)], manifest, are_there=False), shard_bytes))


def _name_and_side(key: str) -> tuple[str, str]:
    side = next((side for side in (ASKS, ANSWERS) if key.startswith(side)), "")
    return key[len(side) :], side


def worker_count(planned: list[list[FileGroup]], jobs: int) -> int:
    """Return the number of processes to read these shards. At least one unless all is small: a group that kills its
    process must not end the run."""
    files = [m.file for groups in planned for f in groups for m in f.files if m.format]  # others are not opened
    unpacked = (max_unpacked_bytes(path_of(f.uri), f.bytes) if f.source == "local" else f.bytes for f in files)
    is_small = sum(f.bytes for f in files) < SMALL_BYTES and sum(unpacked) < SHARD_BYTES
    return 0 if is_small and min(jobs, len(planned)) <= 1 else jobs


def _unchanged(file: RawFile, stamp: FileStamp, force: str | None, same_code: bool, again: set[str]) -> bool:
    """True where a file is as it was read. The size of an item in a container is a guess; its key or stamp counts."""
    if (
        stamp.stamp != file.stamp
        or (stamp.bytes != file.bytes and not file.container)
        or stamp.key != file.key
        or stamp.group in again
        or (force is not None and stamp.format != force)
    ):
        return False
    return same_code or stamp.parser == parser_version(stamp.format)


def _held_by(broken: frozenset[str], manifest: Manifest, seen: set[str]) -> Iterator[RawFile]:
    """Files of these shards that are on this machine and were not `seen`, as they are now."""
    for uri, e in manifest.files.where("shard", broken).items():
        if e.source == "local" and uri not in seen:
            try:
                now = Path(path_of(uri)).stat()
            except OSError:  # gone, as agents' files go: what was read from it stays lost, and is told
                continue
            file = artifact_of(uri, e).file
            yield file if e.container else replace(file, bytes=now.st_size, stamp=now.st_mtime_ns)


def _grouped(members: list[RecognisedArtifact], manifest: Manifest, are_there: bool = True) -> list[FileGroup]:
    """Members joined by key with each other and with the files already in the store. `are_there`: a source listed them
    just now; the store's own may be gone."""
    if not members:
        return []
    fresh = {m.file.uri: m for m in members}
    # When trials with a name are new, files of their own may tell what only a summary told: its lenders are read again.
    new = {key for m in members for key in m.keys if key.startswith((_RUN, _TELLS))}
    if new - manifest.files_with_keys(new).keys():
        lending = manifest.keys_with_prefix(_LENDS, _JUDGES).keys() - fresh.keys()
        members = [*members, *(artifact_of(uri, e) for uri, e in sorted(manifest.files.known(lending).items()))]
    pool, former = _connected(members, manifest)
    deleted = deleted_files(u for u, m in pool.items() if m.file.source == "local" and not (are_there and u in fresh))
    groups = (_of_files_there(group, deleted, manifest) for group in _joined(pool, former))
    return add_lent_files([group for group in groups if group is not None], pool, manifest)


def _connected(
    members: list[RecognisedArtifact], manifest: Manifest
) -> tuple[dict[str, RecognisedArtifact], dict[str, str]]:
    """Return members and all files of the store that keys connect with them, by address, and the group that files were
    in: those that were read together are again, for their sessions are in the store under the name of their group."""
    pool = {m.file.uri: m for m in members}
    together = manifest.files.where("group", {entry.group for entry in manifest.files.known(pool).values()} - {""})
    pool = {uri: artifact_of(uri, entry) for uri, entry in together.items()} | pool
    asked: set[str] = set()
    keys = {key for m in pool.values() for key in m.keys}
    while keys:
        asked |= keys
        holding: dict[str, list[str]] = {}
        for key, uris in manifest.files_with_keys({k for k in keys if not k.startswith(_NOT_JOINING)}).items():
            for uri in uris:
                holding.setdefault(uri, []).append(key)
        joined = {uri: artifact_of(uri, e) for uri, e in manifest.files.known(holding.keys() - pool.keys()).items()}
        joined = {uri: replace(m, keys=(*dict.fromkeys((*m.keys, *holding[uri])),)) for uri, m in joined.items()}
        pool |= joined
        keys = {key for m in joined.values() for key in m.keys} - asked
    return pool, {uri: entry.group for uri, entry in together.items()}


def _of_files_there(group: list[RecognisedArtifact], deleted: Set[str], manifest: Manifest) -> FileGroup | None:
    """Return a group without its deleted files. Sessions of theirs whose id other people's have too are kept.

    None when the largest is gone: agents delete their files, and the rest holds less than the store does. Files of
    sessions that are kept do not count.
    """
    gone, here = ([m for m in group if (m.file.uri in deleted) is is_gone] for is_gone in (True, False))
    artifacts = {artifact_id(m.file.uri) for m in gone}
    namesakes = files_of_namesakes(manifest, [m.file.uri for m in group]) if gone and here else {}
    held = {i: a for i, a in namesakes.items() if a in artifacts}
    gone = [m for m in gone if artifact_id(m.file.uri) not in held.values()]
    if not here or max(m.file.bytes for m in here) < max((m.file.bytes for m in gone), default=0):
        return None
    kept = manifest.sessions.known(held) if held else {}
    keys = {k for m in group for k in m.keys if not k.startswith(_NOT_JOINING)}
    name = min({e.group for e in kept.values()} or keys)  # so that those that are kept stay in it
    return FileGroup(name, tuple(here), tuple((i, e.shard) for i, e in kept.items()))


def _joined(pool: dict[str, RecognisedArtifact], former: Mapping[str, str]) -> list[list[RecognisedArtifact]]:
    """Group files that share keys or a `former` group, directly or through others (union-find)."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    joining = {uri: [k for k in m.keys if not k.startswith(_NOT_JOINING)] for uri, m in pool.items()}
    for uri, group in former.items():
        parent[root(joining[uri][0])] = root(f"{_FORMER}{group}")
    for first, *others in joining.values():
        for key in others:
            parent[root(key)] = root(first)
    groups: dict[str, list[RecognisedArtifact]] = {}
    for uri, member in pool.items():
        groups.setdefault(root(joining[uri][0]), []).append(member)
    return [sorted(g, key=lambda m: m.file.uri) for g in groups.values()]


def _packed(groups: list[FileGroup], shard_bytes: int, jobs: int = 1) -> Iterator[list[FileGroup]]:
    """Pack whole groups into about equal shards in order of name. The same files make the same shards for as many
    `jobs`, and no worker waits long for another's last one."""
    weights, plain = [], 0
    for group in groups:
        # A few bytes of a table may hold thousands of sessions, each with an index entry.
        in_memory = max((m.file.bytes * by_name(m.format).weight for m in group.files if m.format), default=0)
        on_disk = group.bytes + _FILE_BYTES * len(group.files)
        weights.append(max(on_disk, in_memory))
        plain += on_disk
    total = sum(weights)
    shards_n = max(-(-total // shard_bytes), min(jobs, plain // SMALL_BYTES))
    if shards_n > jobs:
        shards_n = -(-shards_n // jobs) * jobs
    begun: dict[int, list[FileGroup]] = {}
    before = 0
    for group, weight in sorted(zip(groups, weights, strict=True), key=lambda pair: pair[0].name):
        # Where its middle lies: none is cut, and no shard is larger than its share by more than half of its two ends.
        begun.setdefault((2 * before + weight) * shards_n // (2 * total), []).append(group)
        before += weight
    yield from begun.values()


# Versions and unknown fields

MOST = 20
"""Fields listed of one version."""
LONGEST_VERSION = 40
"""Characters kept of a version; a trace may say anything."""


class UnknownFields(Struct, kw_only=True):
    """Fields of one version of an agent that no file of its format had before."""

    format: str
    version: str
    """Version of the agent; empty where the files don't tell."""
    files: int
    fields: list[str]
    """Names in order, at most 20."""


def unknown_fields_by_version(kinds: Iterable[FileKind]) -> list[UnknownFields]:
    """Return the unknown fields of these files by format and version, most files first."""
    files: Counter[tuple[str, str]] = Counter()
    fields: dict[tuple[str, str], set[str]] = {}
    for kind in kinds:
        if kind.unknown_fields and kind.format is not None:
            files[kind.format, kind.version] += kind.files
            fields.setdefault((kind.format, kind.version), set()).update(kind.unknown_fields)
    return [
        UnknownFields(format=name, version=version, files=n, fields=sorted(fields[name, version])[:MOST])
        for (name, version), n in sorted(files.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def versions_by_format(kinds: Iterable[FileKind]) -> dict[str, dict[str, int]]:
    """Count files by format and version, in order of both."""
    met: Counter[tuple[str, str]] = Counter()
    for kind in kinds:
        if kind.version and kind.format is not None:
            met[kind.format, kind.version] += kind.files
    by_format: dict[str, dict[str, int]] = {}
    numbers = {version: [*map(int, re.findall(r"[0-9]{1,9}", version)[:6])] for _, version in met}
    for name, version in sorted(met, key=lambda pair: (pair[0], numbers[pair[1]], pair[1])):  # 0.9 before 0.10
        by_format.setdefault(name, {})[version] = met[name, version]
    return by_format
