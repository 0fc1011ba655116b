"""Reads one shard: files to sessions to values to a folder in the store. Runs in a worker; returns small facts."""

from __future__ import annotations

import gc
import hashlib
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.catalog import catalogue
from agentsignals.embedding import DEFAULT
from agentsignals.formats import Input, Reading, formats, skip
from agentsignals.ingest.account import Account, Rows
from agentsignals.ingest.across import Gist
from agentsignals.ingest.attempts import assemble, once
from agentsignals.ingest.family import READ_AGAIN, Family, Member, entry_of, shard_name, sound_id
from agentsignals.ingest.isolate import isolate
from agentsignals.model import Artifact, Checkpoint, Session
from agentsignals.model.attempt import Attempt
from agentsignals.sources import Unreadable, read
from agentsignals.store import artifact_id, labels, shards
from agentsignals.store.manifest import FileEntry, SessionEntry, ShardEntry


class Task(Struct, frozen=True):
    """One shard to read."""

    root: str
    name: str
    families: list[Family]
    embedder: str = DEFAULT
    """What compares texts while reading; an embedder with a model has its turn afterwards, in `measure`."""
    exclude: frozenset[str] = frozenset()
    """Sessions to leave out."""
    run: int = 0
    """The run that reads it, for the names of shards."""
    deaths: int = 0
    """How often a worker died over this one family."""


_DIED = "a worker died over it, twice: killed, or out of memory"
_MOST_DEATHS = 2
"""A worker may die of something else (another program takes all memory), so a family is tried again, once."""


class Report(Struct):
    """What a shard came to."""

    name: str
    entry: ShardEntry
    sessions: dict[str, SessionEntry]
    files: dict[str, FileEntry]
    bytes: int = 0
    parsed: int = 0
    """Files that were opened and decoded."""
    excluded: int = 0
    """Sessions left out as asked."""
    surprises: set[str] = field(default_factory=set)
    """Keys of sessions that no file was known to be of: other files may tell of them too."""
    gists: list[Gist] = field(default_factory=list)
    """What the second pass needs of the sessions."""


class _Work(Struct):
    """What one family gives."""

    sessions: list[Session] = field(default_factory=list)
    artifacts: list[tuple[Member, Artifact]] = field(default_factory=list)


def smaller(task: Task) -> list[Task]:
    """What to do in the place of a task that ended its worker: its halves; one family again, then only its account."""
    if task.deaths > _MOST_DEATHS:
        return []
    middle = len(task.families) // 2
    if not middle:
        return [replace(task, deaths=task.deaths + 1)]
    halves = (task.families[:middle], task.families[middle:])
    return [replace(task, families=half, name=shard_name(half, task.run)) for half in halves]


def read_shard(task: Task) -> Report:
    """Reads, measures and writes one shard. Doing it twice gives the same folder."""
    collects = gc.isenabled()
    gc.disable()  # a shard's objects all live until it is written; the collector would only walk them
    try:
        return _read_shard(task)
    finally:
        if collects:
            gc.enable()


def _read_shard(task: Task) -> Report:
    root = Path(task.root)
    entry = ShardEntry(signals=signal_versions(), embedder=task.embedder, labels=labels.fingerprint(root))
    report = Report(task.name, entry, {}, {})
    account = Account(report.entry, task.embedder, labels.read(root))
    works: dict[str, _Work] = {}
    again: set[str] = set()
    sessions: list[tuple[str, Session]] = []
    for family in task.families:
        work = works[family.name] = _read_family(family, task.deaths)
        kept = [s for s in work.sessions if s.session_id not in task.exclude] if task.exclude else work.sessions
        if len(kept) < len(work.sessions):
            report.excluded += len(work.sessions) - len(kept)
            again.add(family.name)
        sessions += [(family.name, s) for s in kept]
        account.takes(family.name, [a for _, a in work.artifacts])
    rows = [r for name, s in account.each_id_once(sessions) if (r := account.measured(name, s)) is not None]
    artifacts = sorted((a for w in works.values() for _, a in w.artifacts), key=lambda a: a.artifact_id)

    def write(rows: Sequence[Rows]) -> list[dict[str, Any]]:
        signals, attempts = [s for r in rows for s in r.signals], [a for r in rows for a in r.attempts]
        written = shards.write(root, task.name, [r.session for r in rows], artifacts, signals, attempts)
        report.entry.tables = written.tables
        return written.counted

    counted, unwritten = isolate(rows, write)
    if unwritten:
        for row, why in unwritten:
            account.failed(row.family, row.session, f"writing: {why}")
        rows = [r for r in rows if all(r is not u for u, _ in unwritten)]
        counted = write(rows)  # the artifacts now say what is missing
    for row, figures in zip(rows, counted, strict=True):
        report.sessions[row.session.session_id] = session_entry(task.name, row.family, row.session.context, figures)
        report.gists.append(row.gist)
    for name, work in works.items():
        for member, artifact in work.artifacts:
            report.bytes += artifact.bytes
            report.parsed += member.format is not None
            report.files[member.file.uri] = entry_of(
                member, name, task.name, artifact.skipped_reasons, account.errors.get(artifact.artifact_id, "")
            )
            if name in again:
                report.files[member.file.uri].parser = READ_AGAIN
        keys = {key for member, _ in work.artifacts for key in member.keys}
        for key in {f"session:{s.session_id}" for s in work.sessions} - keys:
            report.surprises.add(key)
            for member, _ in work.artifacts:
                report.files[member.file.uri].keys.append(key)
    return report


def session_entry(shard: str, family: str, context: str, figures: dict[str, Any]) -> SessionEntry:
    """The manifest's entry for a session."""
    f = figures
    return SessionEntry(
        shard, family, context, f["n_turns"], f["n_tool_calls"], f["n_edits"], f["input_tokens"], f["output_tokens"],
        f["cache_read_tokens"], f["cache_write_tokens"], f["cost_usd"],
    )  # fmt: skip


def signal_versions() -> dict[str, int]:
    """The signals of one session, and their versions now."""
    return {s.path: s.version for s in catalogue().values() if s.scope == "session"}


def across_versions() -> dict[str, int]:
    """The signals across sessions, and their versions now."""
    return {s.path: s.version for s in catalogue().values() if s.scope != "session"}


def _read_family(family: Family, deaths: int = 0) -> _Work:
    """What a family gives, without the files that something goes wrong with."""
    if deaths >= _MOST_DEATHS:
        return _Work(
            artifacts=[(m, _artifact(m, _unread(m, "worker_died", _DIED))) for m in family.members if not m.lent]
        )
    work, set_aside = isolate(family.members, _read_together)
    for member, why in set_aside:
        if not member.lent:
            unread = _unread(member, "internal_error", f"reading {member.format}: {why}")
            work.artifacts.append((member, _artifact(member, unread)))
    return work


def _unread(member: Member, reason: str, detail: str = "") -> Unreadable:
    return Unreadable(member.file.uri, member.file.spec, reason, detail)


def _read_together(members: Sequence[Member]) -> _Work:
    work = _Work()
    inputs: dict[str, list[Input]] = {}
    known: dict[str, Artifact] = {}
    parts: list[Attempt] = []
    for member, data in zip(members, _contents(members), strict=True):
        artifact = _artifact(member, data)
        known[artifact.artifact_id] = artifact
        if not member.lent:
            work.artifacts.append((member, artifact))
        held = data.part if isinstance(data, Unreadable) else data
        if member.format is not None and (held or not isinstance(data, Unreadable)):
            inputs.setdefault(member.format, []).append(
                Input(held, artifact, member.file.session_hint, member.file.repo_hint, member.lent)
            )
    checkpoints: dict[str, list[Checkpoint]] = {}
    hints: dict[str, str] = {}
    for name in sorted(inputs, key=lambda n: formats()[n].agent != ""):  # collectors first: they name what has no id
        given = _without_prefixes(inputs[name]) if formats()[name].snapshots else inputs[name]
        for one in given:
            if one.session_hint is None:
                one.session_hint = hints.get(posixpath.dirname(one.artifact.path))
        reading = formats()[name].read(given)
        _take(reading, work, checkpoints)
        parts += reading.attempts
        if len(reading.checkpoints) == 1 and not reading.sessions:
            hints.update({posixpath.dirname(i.artifact.path): next(iter(reading.checkpoints)) for i in given})
    work.sessions = assemble(work.sessions, parts, known) if parts else once(work.sessions, known)
    for session in work.sessions:
        session.checkpoints = sorted(checkpoints.get(session.session_id, []), key=lambda c: c.checkpoint_id)
        session.session_id = sound_id(session.session_id) or session.artifact_id
        session.parent_session_id = sound_id(session.parent_session_id) if session.parent_session_id else None
    return work


def _take(reading: Reading, work: _Work, checkpoints: dict[str, list[Checkpoint]]) -> None:
    work.sessions += reading.sessions
    for session_id, found in reading.checkpoints.items():
        known = checkpoints.setdefault(session_id, [])
        known += [c for c in found if c not in known]


def _contents(members: Sequence[Member]) -> list[bytes | Unreadable]:
    """The bytes of a family's files, in their order; what can't be read says why."""
    contents: dict[str, bytes | Unreadable] = {
        m.file.uri: _unread(m, m.reason, m.detail) for m in members if m.format is None
    }
    for source in dict.fromkeys(m.file.source for m in members if m.format is not None):
        files = [m.file for m in members if m.file.source == source and m.format is not None]
        contents.update(zip((f.uri for f in files), read(files), strict=True))
    return [contents[m.file.uri] for m in members]


def _artifact(member: Member, data: bytes | Unreadable) -> Artifact:
    file = member.file
    held = data.part if isinstance(data, Unreadable) else data
    artifact = Artifact(
        artifact_id(file.uri),
        file.spec,
        file.uri,
        member.format,
        hashlib.sha256(held).hexdigest() if held or not isinstance(data, Unreadable) else "",
        len(held) if held or not isinstance(data, Unreadable) else file.bytes,
        file.stamp,
    )
    if isinstance(data, Unreadable):
        skip(artifact, data.reason)
        artifact.note = data.detail or None
    return artifact


def _without_prefixes(inputs: list[Input]) -> list[Input]:
    """Without files that a larger one of the family begins with: cumulative snapshots hold nothing of their own."""
    kept: list[Input] = []
    for one in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.path)):
        holder = next((k for k in kept if _begins(k.data, one.data)), None)
        if holder is None:
            kept.append(one)
        else:
            one.artifact.note = f"prefix of {holder.artifact.artifact_id}"
    return sorted(kept, key=lambda i: i.artifact.path)


def _begins(whole: bytes, part: bytes) -> bool:
    n = len(part)
    return n > 0 and whole[: min(n, 256)] == part[:256] and memoryview(whole)[:n] == memoryview(part)
