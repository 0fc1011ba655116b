"""Reads one shard: files to sessions to values to a folder in the store. Runs in a worker; returns small facts."""

from __future__ import annotations

import gc
import hashlib
import posixpath
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentsignals import prices
from agentsignals.catalog import INTERNAL_ERROR, Result, catalogue, measure
from agentsignals.embedding import DEFAULT, light
from agentsignals.formats import Input, Reading, formats
from agentsignals.ingest.across import Gist, gist
from agentsignals.ingest.attempts import assemble, once
from agentsignals.ingest.family import READ_AGAIN, Family, Member, entry_of
from agentsignals.model import Absent, Artifact, Checkpoint, Session
from agentsignals.model.attempt import Attempt
from agentsignals.sources import Unreadable, read
from agentsignals.store import artifact_id, labels, shards
from agentsignals.store.manifest import FileEntry, SessionEntry, ShardEntry
from agentsignals.store.tables import AttemptRow, SignalRow
from agentsignals.views.session import SessionView


class Task(Struct, frozen=True):
    """One shard to read."""

    root: str
    name: str
    families: list[Family]
    embedder: str = DEFAULT
    """What compares texts while reading; an embedder with a model has its turn afterwards, in `measure`."""
    exclude: frozenset[str] = frozenset()
    """Sessions to leave out."""


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
    gists: list[Gist] = field(default_factory=list)
    """What the second pass needs of the sessions."""


class _Work(Struct):
    """What one family gives."""

    sessions: list[Session] = field(default_factory=list)
    artifacts: list[tuple[Member, Artifact]] = field(default_factory=list)


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
    sessions: list[tuple[str, Session]] = []
    artifacts: list[Artifact] = []
    for family in task.families:
        work = _read_family(family)
        kept = [s for s in work.sessions if s.session_id not in task.exclude] if task.exclude else work.sessions
        report.excluded += len(work.sessions) - len(kept)
        sessions += [(family.name, s) for s in kept]
        for member, artifact in work.artifacts:
            artifacts.append(artifact)
            report.bytes += artifact.bytes
            report.parsed += member.format is not None
            report.files[member.file.uri] = entry_of(member, family.name, task.name, artifact.skipped_reasons)
            if len(kept) < len(work.sessions):
                report.files[member.file.uri].parser = READ_AGAIN
    sessions.sort(key=lambda pair: pair[1].session_id)
    rows: list[SignalRow] = []
    attempts: list[AttemptRow] = []
    made_here = labels.read(root)
    for _, session in sessions:
        prices.apply(session)
        own = session.labels
        session.labels = own + made_here.get(session.session_id, [])
        results = measure(SessionView(session), {"vectors": light(task.embedder)})
        session.labels = own  # those made here have their own file
        _count_errors(results, report.entry)
        rows += shards.signal_rows(session, results)
        attempts += shards.attempt_rows(session, results)
        report.gists.append(gist(session, results))
    artifacts.sort(key=lambda a: a.artifact_id)
    counted = shards.write(root, task.name, [s for _, s in sessions], artifacts, rows, attempts)
    for (family_name, session), figures in zip(sessions, counted, strict=True):
        report.sessions[session.session_id] = session_entry(task.name, family_name, session.context, figures)
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


def _count_errors(results: list[Result], entry: ShardEntry) -> None:
    for result in results:
        value = result.value
        if type(value) is Absent and value.detail.startswith(INTERNAL_ERROR):
            told = f"{result.signal.path}: {value.detail}"
            entry.internal_errors[told] = entry.internal_errors.get(told, 0) + 1


def _read_family(family: Family) -> _Work:
    work = _Work()
    inputs: dict[str, list[Input]] = {}
    known: dict[str, Artifact] = {}
    parts: list[Attempt] = []
    for member, data in zip(family.members, _contents(family.members), strict=True):
        artifact = _artifact(member, data)
        known[artifact.artifact_id] = artifact
        if not member.lent:
            work.artifacts.append((member, artifact))
        if member.format is not None and not isinstance(data, Unreadable):
            inputs.setdefault(member.format, []).append(
                Input(data, artifact, member.file.session_hint, member.file.repo_hint, member.lent)
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
    return work


def _take(reading: Reading, work: _Work, checkpoints: dict[str, list[Checkpoint]]) -> None:
    work.sessions += reading.sessions
    for session_id, found in reading.checkpoints.items():
        known = checkpoints.setdefault(session_id, [])
        known += [c for c in found if c not in known]


def _contents(members: tuple[Member, ...]) -> list[bytes | Unreadable]:
    """The bytes of a family's files, in their order; what can't be read says why."""
    contents: dict[str, bytes | Unreadable] = {
        m.file.uri: Unreadable(m.file.uri, m.file.spec, m.reason) for m in members if m.format is None
    }
    for source in dict.fromkeys(m.file.source for m in members if m.format is not None):
        files = [m.file for m in members if m.file.source == source and m.format is not None]
        contents.update(zip((f.uri for f in files), read(files), strict=True))
    return [contents[m.file.uri] for m in members]


def _artifact(member: Member, data: bytes | Unreadable) -> Artifact:
    file = member.file
    known = isinstance(data, Unreadable)
    artifact = Artifact(
        artifact_id(file.uri),
        file.spec,
        file.uri,
        member.format,
        "" if isinstance(data, Unreadable) else hashlib.sha256(data).hexdigest(),
        file.bytes if isinstance(data, Unreadable) else len(data),
        file.stamp,
    )
    if known:
        artifact.skipped = 1
        artifact.skipped_reasons = {data.reason if isinstance(data, Unreadable) else member.reason: 1}
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
