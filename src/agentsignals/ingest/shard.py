"""Reads one shard: files to sessions to values to a folder in the store. Runs in a worker; returns small facts."""

from __future__ import annotations

import gc
import hashlib
import posixpath
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.embedding import DEFAULT, counting_vectors
from agentsignals.errors import AgentSignalsError
from agentsignals.formats import Input, Reading, by_name, refuse, skip, unknown_fields
from agentsignals.ingest.attempts import assemble, once
from agentsignals.ingest.corpus_signals import brief_of
from agentsignals.ingest.plan import READ_AGAIN, Family, Member, entry_of, shard_name, sound_id, versions_of
from agentsignals.model import Absent, Artifact, Attempt, Checkpoint, Label, Session, prices
from agentsignals.model import lazy as mapped
from agentsignals.signals.catalog import INTERNAL_ERROR, Result, catalogue, measure
from agentsignals.sources import Unreadable, error_text, expect, read, storable_text
from agentsignals.store import artifact_id, shards, tables
from agentsignals.store import parquet as arrow_tables
from agentsignals.store import sidecars as label_files
from agentsignals.store.index import FIGURES, FileEntry, SessionEntry, ShardEntry
from agentsignals.store.parquet import SignalRows, signal_rows
from agentsignals.store.tables import AttemptRow
from agentsignals.views.session import SessionView

# Prices and measures the sessions of a shard, and accounts for each that is set aside.

_OURS = frozenset((INTERNAL_ERROR, "worker_died"))
"""Reasons that are a defect here, or may be one: shown with the file's name and the error."""


class Rows(Struct):
    """A session with all that is to be written of it."""

    family: str
    session: Session
    signals: SignalRows
    attempts: list[AttemptRow]


class Account(Struct):
    """Says of each file and session that is set aside why."""

    entry: ShardEntry
    embedder: str
    labels: dict[str, list[Label]]
    """Those made here, by session."""
    artifacts: dict[str, list[Artifact]] = field(default_factory=dict)
    """By family."""
    errors: dict[str, str] = field(default_factory=dict)
    """Of this program, by artifact."""

    def takes(self, family: str, artifacts: list[Artifact]) -> None:
        """The files of a family, read or not."""
        self.artifacts[family] = artifacts
        for artifact in artifacts:
            if not _OURS.isdisjoint(artifact.skipped_reasons):
                self.errors.setdefault(artifact.artifact_id, artifact.note or "")

    def each_id_once(self, sessions: list[tuple[str, Session]], written: set[str]) -> list[tuple[str, Session]]:
        """In order of id, without those `written` before; of one id in files that share no key, the fullest."""
        kept: dict[str, tuple[str, Session]] = {}
        for family, session in sorted(sessions, key=lambda p: (p[1].session_id, -len(p[1].events), p[0])):
            first = kept.setdefault(session.session_id, (family, session))[1]
            if first is not session or session.session_id in written:
                refuse(self._artifact(family, session), "session_id_of_another")
        return [pair for session_id, pair in kept.items() if session_id not in written]

    def measured(self, family: str, session: Session) -> Rows | None:
        """The session's rows; None, accounted for, when it is too odd to be priced or measured."""
        try:
            prices.apply(session)
            from_trace = session.labels
            session.labels = from_trace + self.labels.get(session.session_id, [])
            view = SessionView(session)
            results = measure(view, {"vectors": counting_vectors(self.embedder)})
            view.forget()
            session.labels = from_trace  # those made here have their own file
            signals, attempts = signal_rows(session, results), shards.attempt_rows(session, results)
            rows = Rows(family, session, signals, attempts)
        except AgentSignalsError:
            raise
        except Exception as problem:  # noqa: BLE001  (kept by name and shown: the other sessions are measured)
            self.failed(family, session, f"measuring: {error_text(problem)}")
            return None
        self._count_errors(results)
        return rows

    def failed(self, family: str, session: Session, why: str) -> None:
        """A session that an error of ours costs."""
        artifact = self._artifact(family, session)
        skip(artifact, INTERNAL_ERROR)
        self.errors[artifact.artifact_id] = why

    def _artifact(self, family: str, session: Session) -> Artifact:
        held = self.artifacts[family]
        return next((a for a in held if a.artifact_id == session.artifact_id), held[0])

    def _count_errors(self, results: list[Result]) -> None:
        for result in [r for r in results if type(r.value) is Absent and r.value.detail.startswith(INTERNAL_ERROR)]:
            what = storable_text(f"{result.signal.path}: {result.value.detail}")[:300]
            self.entry.internal_errors[what] = self.entry.internal_errors.get(what, 0) + 1


# Finds the few things of many that something can't be done with, so that the others don't pay for them.

T = TypeVar("T")
R = TypeVar("R")


def isolate(things: Sequence[T], attempt: Callable[[Sequence[T]], R]) -> tuple[R, list[tuple[T, str]]]:
    """What `attempt` gives for all of them, or for all it does not fail on; and each of the others with its error.

    Halves are tried, halves of these, and then what went well together. What the machine or the request is to blame
    for (an AgentSignalsError) is raised, and so is a failure over nothing at all.
    """
    try:
        return attempt(things), []
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (hostile data finds every kind; each is kept by its name and shown)
        why = error_text(problem)
    fine, set_aside = _parted(things, attempt, why)
    return attempt(fine), set_aside


def _parted(
    things: Sequence[T], attempt: Callable[[Sequence[T]], Any], why: str
) -> tuple[Sequence[T], list[tuple[T, str]]]:
    """Those that go well together, and the others; of things on which `attempt` fails for that reason."""
    if len(things) <= 1:
        return [], [(thing, why) for thing in things]
    fine: list[T] = []
    set_aside: list[tuple[T, str]] = []
    middle = len(things) // 2
    for half in (things[:middle], things[middle:]):
        failure = _failure(half, attempt)
        good, bad = (half, []) if failure is None else _parted(half, attempt, failure)
        set_aside += bad
        together = _failure([*fine, *good], attempt) if fine and good else None
        if together is None:
            fine += good
        else:
            set_aside += [(thing, together) for thing in good]
    return fine, set_aside


def _failure(things: Sequence[T], attempt: Callable[[Sequence[T]], Any]) -> str | None:
    try:
        attempt(things)
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (as above)
        return error_text(problem)
    return None


# Files that hold nothing but the beginning of another: earlier snapshots of a log that only grows.

_BEGINNING_BYTES = 64
"""Files that differ in these are compared no further: a session may have thousands, a file a message."""


def without_prefixes(inputs: list[Input]) -> list[Input]:
    """Without files that a larger one of the family begins with: cumulative snapshots hold nothing of their own."""
    kept: list[Input] = []
    alike: dict[bytes, list[Input]] = {}
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.path)):
        begins = bytes(source.data[:_BEGINNING_BYTES])
        near = alike.setdefault(begins, []) if len(begins) == _BEGINNING_BYTES else kept
        holder = next((k for k in near if _begins(k.data, source.data)), None)
        if holder is None:
            kept.append(source)
            if near is not kept:
                near.append(source)
        else:
            source.artifact.note = f"prefix of {holder.artifact.artifact_id}"
    return sorted(kept, key=lambda i: i.artifact.path)


def _begins(whole: bytes, part: bytes) -> bool:
    n = len(part)
    return n > 0 and whole[: min(n, 256)] == part[:256] and memoryview(whole)[:n] == memoryview(part)


class Task(Struct, frozen=True, kw_only=True):
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
    shard_bytes: int = 64 * 1024 * 1024
    """Raw bytes a shard aims at; a larger family is read in pieces, where its format can be."""
    deaths: int = 0
    """How often a worker died over this one family."""


_DIED = "a worker died over it, twice: killed, or out of memory"
_MOST_DEATHS = 2
"""A worker may die of something else (another program takes all memory), so a family is tried again, once."""


class Report(Struct, kw_only=True):
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
    """Keys that no file was known by before it was read: other files may have them too."""


class _Work(Struct):
    """What one family gives."""

    sessions: list[Session] = field(default_factory=list)
    artifacts: list[tuple[Member, Artifact]] = field(default_factory=list)
    is_piece: bool = False
    """More of the family may come."""
    keys: set[str] = field(default_factory=set)
    unknown_fields: dict[str, list[str]] = field(default_factory=dict)
    """By artifact, where there are any."""


_PIECES = 8
"""A family that is read in pieces has at most an eighth of a shard in memory: characters that are measured and written
together, each of which takes up to eight bytes with what is made of it."""
_SESSION_CHARS = 4_096  # what it weighs without any: its rows of signals


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
        arrow_tables.give_back()  # else a worker grows with the shards it read: 117 to 136 MB in place of 156 to 234
        if collects:
            gc.enable()


def _read_shard(task: Task) -> Report:
    root = Path(task.root)
    entry = ShardEntry(signals=signal_versions(), embedder=task.embedder, labels=label_files.fingerprint(root))
    account = Account(entry, task.embedder, label_files.read(root))
    with shards.Draft(root, task.name) as draft:
        made = _Shard(
            task=task, report=Report(name=task.name, entry=entry, sessions={}, files={}), account=account, draft=draft
        )
        expect([m.file for f in task.families for m in f.members if m.format is not None])
        for family in task.families:
            for work in _works(family, task):
                made.take(family.name, work)
        report = made.finish()
    report.entry.tables = draft.parts
    brief_of(root, task.name, keep=True)  # here, where what it takes goes with the worker
    return report


class _Shard(Struct, kw_only=True):
    """A shard in the making. Sessions are measured and written in order of id: all at the end, save of families that
    are too large for that.
    """

    task: Task
    report: Report
    account: Account
    draft: shards.Draft
    works: dict[str, _Work] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    keys_of: dict[str, set[str]] = field(default_factory=dict)
    """The keys of the sessions in each family, and of what else it was seen to belong to."""
    waiting: list[tuple[str, Session]] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    """Of agents, by artifact."""

    def take(self, family: str, work: _Work) -> None:
        """What was read of a family: everything, or a piece."""
        if family not in self.works:
            self.works[family] = work
            self.account.takes(family, [a for _, a in work.artifacts])
        ids = [f"session:{s.session_id}" for s in work.sessions]
        self.keys_of.setdefault(family, set()).update(ids, work.keys)
        exclude = self.task.exclude
        kept = [s for s in work.sessions if s.session_id not in exclude] if exclude else work.sessions
        if len(kept) < len(work.sessions):
            self.report.excluded += len(work.sessions) - len(kept)
            self.again.add(family)
        self.waiting += [(family, s) for s in kept]
        self.versions |= versions_of(kept)
        work.sessions = []
        if work.is_piece:
            self._write()

    def finish(self) -> Report:
        """The rest of the sessions, and the account of the files."""
        self._write()
        report, errors = self.report, self.account.errors
        for name, work in self.works.items():
            self.account.takes(name, [a for _, a in work.artifacts])  # again: a later piece may have gone wrong
            unforeseen = self.keys_of[name] - {key for member, _ in work.artifacts for key in member.keys}
            report.surprises |= unforeseen
            for member, artifact in work.artifacts:
                report.bytes += artifact.bytes
                report.parsed += member.format is not None
                error = errors.get(artifact.artifact_id, "")
                entry = entry_of(member, name, report.name, artifact.skipped_reasons, error)
                entry.keys += sorted(unforeseen)
                entry.version = self.versions.get(artifact.artifact_id, "")
                entry.unknown_fields = work.unknown_fields.get(artifact.artifact_id, [])
                if name in self.again:
                    entry.parser = READ_AGAIN
                report.files[member.file.uri] = entry
        artifacts = [a for w in self.works.values() for _, a in w.artifacts]
        artifacts.sort(key=lambda a: a.artifact_id)
        self.draft.add({"artifacts": arrow_tables.plain_table(tables.ARTIFACTS, artifacts)})
        return report

    def _write(self) -> None:
        """Measures and writes the sessions that wait."""
        account, report = self.account, self.report
        here = account.each_id_once(self.waiting, self.written)
        self.waiting = []
        if not here and self.written:
            return
        rows = [r for name, s in here if (r := account.measured(name, s)) is not None]
        made, unwritten = isolate(rows, _tabled)
        for row, why in unwritten:
            account.failed(row.family, row.session, f"writing: {why}")
        rows = [r for r in rows if all(r is not u for u, _ in unwritten)]
        self.draft.add(made.tables)
        for row, figures in zip(rows, made.counted, strict=True):
            entry = session_entry(report.name, row.family, row.session.context, figures)
            report.sessions[row.session.session_id] = entry
            self.written.add(row.session.session_id)


def _tabled(rows: Sequence[Rows]) -> shards.Rows:
    signals, attempts = [r.signals for r in rows], [a for r in rows for a in r.attempts]
    return shards.rows_of([r.session for r in rows], signals, attempts)


def session_entry(shard: str, family: str, context: str, figures: dict[str, Any]) -> SessionEntry:
    """The manifest's entry for a session."""
    shown = {name: figures[name] for name in FIGURES}
    return SessionEntry(shard=shard, family=family, context=context, **shown)


def signal_versions() -> dict[str, int]:
    """The signals of one session, and their versions now."""
    return {s.path: s.version for s in catalogue().values() if s.scope == "session"}


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


def _works(family: Family, task: Task) -> Iterator[_Work]:
    """What a family gives; in pieces when it is large and its format can be read so."""
    names = {m.format for m in family.members}
    name = names.pop() if len(names) == 1 else None
    pieces, weight = (by_name(name).pieces, by_name(name).weight) if name is not None else (None, 1)
    is_small = family.bytes * weight <= task.shard_bytes
    if pieces is None or is_small or task.deaths or any(m.lent for m in family.members):
        yield _read_family(family, task.deaths)
    else:
        yield from _in_pieces(family, pieces, task.shard_bytes // _PIECES)


def _in_pieces(family: Family, pieces: Callable[[list[Input]], Iterator[Reading]], piece_chars: int) -> Iterator[_Work]:
    """The sessions of a large family as they come. What goes wrong on the way costs those behind it."""
    work = _Work(is_piece=True)
    inputs, held = _inputs(family.members, work)
    if inputs and by_name(inputs[0].artifact.format or "").snapshots:
        inputs = without_prefixes(inputs)
    chars = 0
    try:
        for reading in pieces(inputs):
            work.sessions += (made := _sound(assemble(reading.sessions, reading.attempts, held)))
            chars += sum(map(_chars, made))
            if chars >= piece_chars:
                yield work
                work, chars = _Work(is_piece=True), 0
                for source in inputs:
                    mapped.release(source.data)
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (kept by name and shown: what was read until then stays)
        for source in inputs:
            skip(source.artifact, "internal_error")
            source.artifact.note = f"reading {source.artifact.format}: {error_text(problem)}"
    yield work


def _chars(session: Session) -> int:
    words = sum([len(e.text) for e in session.events if e.text])
    return _SESSION_CHARS + words + sum([len(c.arguments) for c in session.tool_calls])


def _unread(member: Member, reason: str, detail: str = "") -> Unreadable:
    return Unreadable(member.file.uri, member.file.spec, reason, detail)


def _read_together(members: Sequence[Member]) -> _Work:
    work = _Work()
    every, artifacts = _inputs(members, work)
    inputs: dict[str, list[Input]] = {}
    for source in every:
        inputs.setdefault(source.artifact.format or "", []).append(source)
    parts: list[Attempt] = []
    checkpoints: dict[str, list[Checkpoint]] = {}
    hints: dict[str, str] = {}
    for name in sorted(inputs, key=lambda n: (by_name(n).is_own, n)):  # collectors first: they name what has no id
        batch = without_prefixes(inputs[name]) if by_name(name).snapshots else inputs[name]
        for source in batch:
            if source.session_hint is None:
                source.session_hint = hints.get(posixpath.dirname(source.artifact.path))
        reading = by_name(name).read(batch)
        _take(reading, work, checkpoints)
        parts += reading.attempts
        if len(reading.checkpoints) == 1 and not reading.sessions:
            hints.update({posixpath.dirname(i.artifact.path): next(iter(reading.checkpoints)) for i in batch})
    work.sessions = assemble(work.sessions, parts, artifacts) if parts else once(work.sessions, artifacts)
    for session in work.sessions:
        rows = checkpoints.get(session.session_id) or session.checkpoints
        session.checkpoints = sorted(rows, key=lambda c: c.checkpoint_id)
    _sound(work.sessions)
    return work


def _sound(sessions: list[Session]) -> list[Session]:
    """The sessions, with ids that can be written."""
    for session in sessions:
        session.session_id = sound_id(session.session_id) or session.artifact_id
        session.parent_session_id = sound_id(session.parent_session_id) if session.parent_session_id else None
    return sessions


def _inputs(members: Sequence[Member], work: _Work) -> tuple[list[Input], dict[str, Artifact]]:
    """The files for their formats, and their artifacts by id; `work` takes those that are accounted for here."""
    inputs: list[Input] = []
    artifacts: dict[str, Artifact] = {}
    for member, data in zip(members, _contents(members), strict=True):
        artifact = _artifact(member, data)
        artifacts[artifact.artifact_id] = artifact
        if not member.lent:
            work.artifacts.append((member, artifact))
        held = data.part if isinstance(data, Unreadable) else data
        if member.format is not None and (held or not isinstance(data, Unreadable)):
            inputs.append(Input(held, artifact, member.file.session_hint, member.file.repo_hint, member.trials))
            if not member.lent and (unknown := unknown_fields(member.format, held, artifact.sha256)):
                work.unknown_fields[artifact.artifact_id] = unknown
    return inputs, artifacts


def _take(reading: Reading, work: _Work, checkpoints: dict[str, list[Checkpoint]]) -> None:
    work.sessions += reading.sessions
    work.keys |= reading.keys
    for session_id, fresh in reading.checkpoints.items():
        kept = checkpoints.setdefault(session_id, [])
        kept += [c for c in fresh if c not in kept]


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
        artifact_id=artifact_id(file.uri),
        source=file.spec,
        path=file.uri,
        format=member.format,
        sha256=_sha256(held) if held or not isinstance(data, Unreadable) else "",
        bytes=len(held) if held or not isinstance(data, Unreadable) else file.bytes,
        mtime_ns=file.stamp,
    )
    if isinstance(data, Unreadable):
        skip(artifact, data.reason)
        artifact.note = data.detail or None
    return artifact


def _sha256(data: bytes) -> str:
    digest, view = hashlib.sha256(), memoryview(data)
    for at in range(0, len(data), mapped.EVERY_BYTES):
        digest.update(view[at : at + mapped.EVERY_BYTES])
        mapped.release(data)
    return digest.hexdigest()
