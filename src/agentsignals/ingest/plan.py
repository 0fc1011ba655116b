"""What a run has to read: new and changed files, joined with the files that belong to the same sessions.

Files that share a key (a session id; the first record of a history that was forked) form a family. A family is always
read whole, so that snapshots unite and forks count once, whatever order they were found in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.formats import ANSWERS, ASKS
from agentsignals.ingest import runs
from agentsignals.ingest.family import (
    ABOUT_CONTENT,
    READ_AGAIN,
    Family,
    Member,
    entry_of,
    is_current,
    member_of,
)
from agentsignals.ingest.recognising import recognised
from agentsignals.sources import RawFile, Unreadable, exclusions, open_source, path_of
from agentsignals.sources.packed import most_unpacked
from agentsignals.store.manifest import FileEntry, Manifest

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
        if exclude and exclusions.place(spec) in exclude:
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
    places = runs.Places(members, manifest, looked_at)
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
    return most_unpacked(path_of(file.uri), file.bytes) if file.source == "local" else file.bytes


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
    members = [*members, *runs.of_new_trials(members, manifest)]
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
    return runs.with_lent([f for f in families if f.members], pool, manifest)


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
