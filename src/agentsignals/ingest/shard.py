"""Reads one shard: files to sessions to values to a folder in the store. Runs in a worker."""

from __future__ import annotations

import gc
import hashlib
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.errors import AgentSignalsError, StoreError
from agentsignals.formats import Input, by_name, maker_of, skip, unknown_fields
from agentsignals.formats.documents import saw_again
from agentsignals.formats.rows import NAMED
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.ingest.corpus_signals import shard_sites
from agentsignals.ingest.engine import is_heard, tell
from agentsignals.ingest.identity import (
    OF_ANOTHER_NOTE,
    Told,
    add_note,
    batches_of,
    by_session,
    checkpoints_of,
    give_id,
    give_ids,
    id_beside,
    mark_of,
    prefix_note,
    read_apart,
    repeated,
    without_copies,
)
from agentsignals.ingest.plan import (
    LONGEST_VERSION,
    READ_AGAIN,
    FileGroup,
    RecognisedArtifact,
    index_entry,
    printable_id,
    shard_name,
)
from agentsignals.model import MAIN, Absent, Artifact, Session, columnar, prices
from agentsignals.model import lazy as mapped
from agentsignals.signals.catalog import FIRST, INTERNAL_ERROR, Result, catalogue, measure
from agentsignals.sources import (
    OUT_OF_MEMORY,
    Unreadable,
    error_text,
    expect,
    origin_of,
    read,
    reason_of,
    storable_text,
)
from agentsignals.store import artifact_id, parquet, shards, sidecars, tables
from agentsignals.store.index import FIGURES, ArtifactEntry, SessionEntry, ShardEntry
from agentsignals.store.parquet import SignalRows, signal_rows
from agentsignals.store.tables import AttemptRow
from agentsignals.views.session import SessionView
from agentsignals.views.usage import cost_of, is_lower_bound
from agentsignals.words.vectors import DEFAULT

_OURS = frozenset((INTERNAL_ERROR, "worker_died", "out_of_memory"))
"""Reasons that are a defect of ours, or of too little memory: shown with the file's name and the error."""


class MeasuredSession(Struct):
    group: str
    session: Session
    signals: SignalRows
    attempts: list[AttemptRow]


_TOLD_EVERY_S = 0.25


class SoFar(Struct, kw_only=True):
    """Sums over the sessions that were read so far: those of one shard, or of all."""

    shard: str = ""
    bytes: int = 0
    """Raw bytes of their files."""
    sessions: int = 0
    prompts: int = 0
    tool_calls: int = 0
    cost_usd: float = 0.0
    unpriced_sessions: int = 0
    lower_bounds: int = 0
    """Sessions whose cost is a lower bound."""


def count_errors(errors: dict[str, int], results: list[Result]) -> None:
    """Count the signals that raised an exception, by what it was."""
    for result in [r for r in results if type(r.value) is Absent and r.value.detail.startswith(INTERNAL_ERROR)]:
        what = storable_text(f"{result.signal.path}: {result.value.detail}")[:300]
        errors[what] = errors.get(what, 0) + 1


T = TypeVar("T")
R = TypeVar("R")


def isolate(things: Sequence[T], attempt: Callable[[Sequence[T]], R]) -> tuple[R, list[tuple[T, str]]]:
    """Return what `attempt` makes of all things it does not fail on, and the others, each with its error.

    Halves are tried, halves of these, and then what went well together. An AgentSignalsError (the machine or the
    request is to blame) is raised, and so is a failure over no things at all.
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
    """Split things into those that go well together and those that fail."""
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


_BEGINNING_BYTES = 64
"""Files that differ in these bytes are not compared further: a session may have thousands of files."""


def without_prefixes(inputs: list[Input]) -> list[Input]:
    """Leave out files that are the beginning of a larger one in the group: cumulative snapshots add nothing."""
    kept: list[Input] = []
    alike: dict[bytes, list[Input]] = {}
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.path)):
        begins = bytes(source.data[:_BEGINNING_BYTES])
        near = alike.setdefault(begins, []) if len(begins) == _BEGINNING_BYTES else kept
        part, n = source.data, len(source.data)
        # The first bytes are compared alone, since most files differ there; a view compares the rest without a copy.
        holders = (k for k in near if n and k.data[: min(n, 256)] == part[:256])
        holder = next((k for k in holders if memoryview(k.data)[:n] == memoryview(part)), None)
        if holder is None:
            kept.append(source)
            if near is not kept:
                near.append(source)
        else:
            source.artifact.note = prefix_note(holder.artifact)
    return sorted(kept, key=lambda i: i.artifact.path)


class ShardTask(Struct, frozen=True, kw_only=True):
    """One shard to read."""

    root: str
    name: str
    groups: list[FileGroup]
    embedder: str = DEFAULT
    """The store's embedder. No signal that is computed here compares texts."""
    exclude: frozenset[str] = frozenset()
    """Sessions to leave out."""
    run: int = 0
    """Number of the run, for names of shards."""
    shard_bytes: int = 64 * 1024 * 1024
    """Raw bytes of a shard. A larger group is read in pieces where its format allows it."""
    own_prices: bytes = b""
    """The person's own price file."""
    deaths: int = 0
    """Number of workers that died over this one group."""


_DIED = f"a worker died over it, twice: killed, or {OUT_OF_MEMORY} (free some, or raise ulimit -v)"
_MOST_DEATHS = 2
"""A worker may die because another program takes all memory, so a group is tried a second time."""


class ShardReport(Struct, kw_only=True):
    """Index entries and counts of a shard that was read."""

    name: str
    entry: ShardEntry
    sessions: dict[str, SessionEntry]
    files: dict[str, ArtifactEntry]
    bytes: int = 0
    parsed: int = 0
    """Files that were opened and decoded."""
    excluded: int = 0
    """Sessions left out on request."""
    late_keys: set[str] = field(default_factory=set)
    """Keys that became known by reading: other files may have them too."""


class GroupContent(Struct):
    sessions: list[Session] = field(default_factory=list)
    artifacts: list[tuple[RecognisedArtifact, Artifact]] = field(default_factory=list)
    is_piece: bool = False
    """More of the group may come."""
    keys: set[str] = field(default_factory=set)
    unknown_fields: dict[str, list[str]] = field(default_factory=dict)
    """Unknown fields by artifact, where there are any."""


_PIECES = 8
"""A group that is read in pieces has at most an eighth of a shard's characters in memory. Each takes up to eight bytes
with what is made of it."""
_SESSION_CHARS = 4_096  # what it weighs without any: its rows of signals


MOST_FILES = 50_000
"""A session in more files is not read: each takes 4 KB of memory, however short it is. No agent writes so many."""


def split_task(task: ShardTask) -> list[ShardTask]:
    """Return the tasks that replace one that killed its worker: halves; a single group once more, then its account."""
    if task.deaths > _MOST_DEATHS:
        return []
    middle = len(task.groups) // 2
    if not middle:
        return [replace(task, deaths=task.deaths + 1)]
    halves = (task.groups[:middle], task.groups[middle:])
    return [replace(task, groups=half, name=shard_name(half, task.run)) for half in halves]


def read_shard(task: ShardTask) -> ShardReport:
    """Read, measure and write one shard. Doing it twice gives the same folder."""
    if task.own_prices != prices.own_prices().text:
        prices.use_own_prices(task.own_prices)
    collects = gc.isenabled()
    gc.disable()  # a shard's objects all live until it is written; the collector would only walk them
    root = Path(task.root)
    try:
        with shards.Draft(root, task.name) as draft:
            made = ShardWriter(task, draft)
            expect([m.file for f in task.groups for m in f.files if m.format is not None])
            for group in task.groups:
                for content in _read_group(group, task):
                    made.take(group.name, content)
            report = made.finish()
        report.entry.tables = draft.parts
        values = root / shards.FOLDER / task.name / "signals.parquet"
        shard_sites(root, task.name, [values], keep=True)  # here, where what it takes goes with the worker
        return report
    finally:
        parquet.release_memory()  # else a worker grows with the shards it read: 117 to 136 MB in place of 156 to 234
        if collects:
            gc.enable()
            if any(group.bytes > columnar.LARGE_BYTES for group in task.groups):
                gc.collect()  # the classes of its rows


class ShardWriter:
    """A shard being made. Sessions are priced and measured, and written in order of id: all at the end, except for
    groups that are too large for that. Files and sessions that fail are set aside with their errors."""

    def __init__(self, task: ShardTask, draft: shards.Draft) -> None:
        root = Path(task.root)
        entry = ShardEntry(signals=first_versions(), embedder=task.embedder, labels=sidecars.labels_fingerprint(root))
        self._task, self._draft = task, draft
        self._report = ShardReport(name=task.name, entry=entry, sessions={}, files={})
        self._labels = sidecars.read_labels(root)
        self._contents: dict[str, GroupContent] = {}
        self._artifacts: dict[str, list[Artifact]] = {}
        """By group."""
        self._errors: dict[str, str] = {}
        """Errors of this program, by artifact."""
        self._read_again: set[str] = set()
        self._keys_of: dict[str, set[str]] = {}
        """Keys of each group that reading found, and those of its sessions that another group of this shard has too."""
        self._waiting: list[tuple[str, Session]] = []
        self._written: dict[str, str] = {}
        """Marks of the sessions written so far, by id."""
        self._versions: dict[str, str] = {}
        """Agent versions by artifact."""
        self._so_far, self._told_at = SoFar(shard=task.name), 0.0
        self._counted: set[str] = set()
        """Artifacts whose bytes are in the sums."""

    def take(self, group: str, content: GroupContent) -> None:
        if group not in self._contents:
            self._contents[group] = content
            self._register(group, content)
        self._keys_of.setdefault(group, set()).update(content.keys)
        exclude = self._task.exclude
        kept = [s for s in content.sessions if s.session_id not in exclude] if exclude else content.sessions
        if len(kept) < len(content.sessions):
            self._report.excluded += len(content.sessions) - len(kept)
            self._read_again.add(group)
        for session in kept:
            try:
                prices.apply(session, maker_of)
                if is_heard():
                    self._tell(session, self._artifact(group, session))
                self._waiting.append((group, session))
            except AgentSignalsError:
                raise
            except Exception as problem:  # noqa: BLE001  (kept by name and shown: the other sessions are priced)
                self._failed(group, session, error_text(problem), "pricing: ")
        # The first session of each file tells its version.
        self._versions |= {s.artifact_id: s.agent_version[:LONGEST_VERSION] for s in reversed(kept) if s.agent_version}
        content.sessions = []
        if content.is_piece:
            self._write()

    def finish(self) -> ShardReport:
        """Write the remaining sessions and the artifacts, and return the report."""
        self._write()
        report = self._report
        for name, content in self._contents.items():
            self._register(name, content)  # again: a later piece may have gone wrong
            unforeseen = self._keys_of[name] - {key for member, _ in content.artifacts for key in member.keys}
            report.late_keys |= unforeseen
            for member, artifact in content.artifacts:
                report.bytes += artifact.bytes
                report.parsed += member.format is not None
                error = self._errors.get(artifact.artifact_id, "")
                repeats = repeated(artifact)
                entry = index_entry(member, name, report.name, {**artifact.skipped_reasons, **repeats}, error)
                entry.keys += sorted(unforeseen)
                if not NAMED.isdisjoint(artifact.skipped_reasons):
                    entry.note = artifact.note or ""
                entry.version = self._versions.get(artifact.artifact_id, "")
                entry.unknown_fields = content.unknown_fields.get(artifact.artifact_id, [])
                if name in self._read_again:
                    entry.parser = READ_AGAIN
                report.files[member.file.uri] = entry
        artifacts = [a for w in self._contents.values() for _, a in w.artifacts]
        artifacts.sort(key=lambda a: a.artifact_id)
        self._draft.add({"artifacts": parquet.plain_table(tables.ARTIFACTS, artifacts)})
        return report

    def _register(self, group: str, content: GroupContent) -> None:
        self._artifacts[group] = [artifact for _, artifact in content.artifacts]
        for artifact in self._artifacts[group]:
            if not _OURS.isdisjoint(artifact.skipped_reasons):
                self._errors.setdefault(artifact.artifact_id, artifact.note or "")

    def _write(self) -> None:
        """Measure and write the waiting sessions."""
        here = self._unique_sessions()
        self._waiting = []
        if not here and self._written:
            return
        rows = [measured for group, session in here if (measured := self._measured(group, session)) is not None]

        def tabled(rows: Sequence[MeasuredSession]) -> shards.ShardRows:
            signals, attempts = [r.signals for r in rows], [a for r in rows for a in r.attempts]
            return shards.shard_rows([r.session for r in rows], signals, attempts)

        made, unwritten = isolate(rows, tabled)
        for row, why in unwritten:
            self._failed(row.group, row.session, why, "writing: ")
        rows = [r for r in rows if all(r is not u for u, _ in unwritten)]
        self._draft.add(made.tables)
        for table, piece in made.pieces:
            self._draft.add({table: piece})
        for row, figures in zip(rows, made.counted, strict=True):
            entry = session_entry(self._task.name, row.group, row.session.context, figures)
            self._report.sessions[row.session.session_id] = entry
            self._written[row.session.session_id] = mark_of(row.session)

    def _unique_sessions(self) -> list[tuple[str, Session]]:
        """Return the waiting sessions in order of id, each once: of copies the fullest. Different sessions of one id
        get ids of their own."""
        by_id: dict[str, list[tuple[str, Session]]] = {}
        for pair in self._waiting:
            by_id.setdefault(pair[1].session_id, []).append(pair)
        kept: dict[str, tuple[str, Session]] = {}
        for session_id, pairs in by_id.items():
            if len(pairs) == 1 and session_id not in self._written:
                kept[session_id] = pairs[0]
                continue
            groups = {id(session): group for group, session in pairs}
            first = self._written.get(session_id)
            holding = set(groups.values())
            if first is not None:
                holding.add(self._report.sessions[session_id].group)
            for group in holding if len(holding) > 1 else ():
                self._keys_of[group].add(f"session:{session_id}")
            for same in by_session([session for _, session in pairs]):
                mark = mark_of(same[0])
                name = session_id if first in (None, mark) else f"{session_id}~{mark}"
                first = first or mark
                same.sort(key=lambda s: (-len(s.events), groups[id(s)]))
                for session in same:
                    group = groups[id(session)]
                    artifact = self._artifact(group, session)
                    if name in kept or name in self._written:
                        add_note(artifact, f"its session {name} is in another file too")
                        saw_again(artifact)
                        continue
                    if name != session_id:
                        give_id(session, name, artifact)
                        if session_id in kept:
                            add_note(self._artifact(*kept[session_id]), f"{OF_ANOTHER_NOTE}{name}")
                    kept[name] = (group, session)
        return [kept[session_id] for session_id in sorted(kept)]

    def _measured(self, group: str, session: Session) -> MeasuredSession | None:
        """Measure a session. None, with the error recorded, when it can't be measured."""
        try:
            from_trace = session.labels
            session.labels = from_trace + self._labels.get(session.session_id, [])
            view = SessionView(session)
            results = measure(view, among=FIRST)
            view.forget()
            session.labels = from_trace  # those made here have their own file
            signals, attempts = signal_rows(session, results), shards.attempt_rows(session, results)
        except AgentSignalsError:
            raise
        except Exception as problem:  # noqa: BLE001  (kept by name and shown: the other sessions are measured)
            self._failed(group, session, error_text(problem), "measuring: ")
            return None
        count_errors(self._report.entry.internal_errors, results)
        return MeasuredSession(group, session, signals, attempts)

    def _tell(self, session: Session, artifact: Artifact) -> None:
        """Add a session to the sums, and tell them four times a second."""
        sums = self._so_far
        is_blind = session.attempt is not None and not session.attempt.has_transcript
        cost = None if is_blind else cost_of(session.steps)
        sums.sessions += 1
        sums.prompts += sum(turn.is_prompt for turn in session.turns)
        sums.tool_calls += sum(call.thread == MAIN for call in session.tool_calls)
        sums.cost_usd += cost or 0.0
        sums.unpriced_sessions += cost is None
        sums.lower_bounds += is_lower_bound(session)
        if artifact.artifact_id not in self._counted:
            self._counted.add(artifact.artifact_id)
            sums.bytes += artifact.bytes
        if monotonic() - self._told_at >= _TOLD_EVERY_S:
            self._told_at = monotonic()
            tell(sums)

    def _failed(self, group: str, session: Session, why: str, doing: str) -> None:
        """Record our own error over a session."""
        artifact = self._artifact(group, session)
        skip(artifact, reason_of(why))
        self._errors[artifact.artifact_id] = f"{doing}{why}"

    def _artifact(self, group: str, session: Session) -> Artifact:
        held = self._artifacts[group]
        return next((a for a in held if a.artifact_id == session.artifact_id), held[0])


def sums_of(report: ShardReport) -> SoFar:
    entries = report.sessions.values()
    return SoFar(
        shard=report.name,
        bytes=report.bytes,
        sessions=len(entries),
        prompts=sum(e.n_prompts or 0 for e in entries),
        tool_calls=sum(e.n_tool_calls or 0 for e in entries),
        cost_usd=sum(e.cost_usd or 0.0 for e in entries),
        unpriced_sessions=sum(e.cost_usd is None for e in entries),
        lower_bounds=sum(e.visible_output_tokens is not None for e in entries),
    )


def added(shards: Iterable[SoFar]) -> SoFar:
    """Return the sums over several shards."""
    whole = SoFar()
    for sums in shards:
        for name in SoFar.__struct_fields__[1:]:
            setattr(whole, name, getattr(whole, name) + getattr(sums, name))
    return whole


def session_entry(shard: str, group: str, context: str, figures: dict[str, Any]) -> SessionEntry:
    shown = {name: figures[name] for name in FIGURES}
    return SessionEntry(shard=shard, group=group, context=context, **shown)


def signal_versions() -> dict[str, int]:
    return {s.path: s.version for s in catalogue().values() if s.scope == "session"}


def first_versions() -> dict[str, int]:
    """Return those of them that are computed when a session is read."""
    return {s.path: s.version for name in sorted(FIRST) if (s := catalogue()[name]).scope == "session"}


def _read_whole_group(group: FileGroup, stored: list[Session], deaths: int = 0) -> GroupContent:
    """Read a group without the files that fail."""
    if deaths >= _MOST_DEATHS:
        return GroupContent(
            artifacts=[(m, _artifact(m, _unread(m, "worker_died", _DIED))) for m in group.files if not m.lent]
        )
    if len(group.files) > MOST_FILES:
        named = ((by_name(m.format).unit, m.file.uri) for m in group.files if m.format is not None)
        if len({unit(path) if unit is not None else path for unit, path in named}) == 1:
            return GroupContent(artifacts=[(m, _artifact(m, _unread(m, "too_many_files"))) for m in group.files])
    content, set_aside = isolate(group.files, partial(_read_files, stored=stored))
    for member, why in set_aside:
        if not member.lent:
            unread = _unread(member, reason_of(why), f"reading {member.format}: {why}")
            content.artifacts.append((member, _artifact(member, unread)))
    return content


def _read_group(group: FileGroup, task: ShardTask) -> Iterator[GroupContent]:
    """Read a group; in pieces when it is large and its format allows it."""
    names = {m.format for m in group.files}
    name = names.pop() if len(names) == 1 else None
    pieces, weight = (by_name(name).pieces, by_name(name).weight) if name is not None else (None, 1)
    is_small = group.bytes * weight <= task.shard_bytes
    stored: list[Session] = []
    for session_id, shard in group.kept:
        with suppress(StoreError):  # its shard is damaged: it stays, and is told as lost
            stored += shards.read_sessions(Path(task.root), shard, session_id)
    if pieces is None or is_small or task.deaths or any(m.lent for m in group.files):
        yield _read_whole_group(group, stored, task.deaths)
    else:
        # Read a large group piece by piece. An error costs what comes after it.
        piece_chars = task.shard_bytes // _PIECES
        content = GroupContent(is_piece=True)
        inputs, held = _inputs(group.files, content)
        if inputs and by_name(inputs[0].artifact.format or "").snapshots:
            inputs = without_prefixes(inputs)
        chars = 0
        keys = {artifact_id(m.file.uri): m.keys for m in group.files}
        try:
            batches = batches_of(by_name(name or ""), inputs, keys)
            for batch, reading in ((b, r) for b in batches for r in pieces(b.inputs)):
                for session in reading.sessions:
                    for rival in batch.rivals.get(session.session_id, ()):
                        add_note(held.get(session.artifact_id), f"{OF_ANOTHER_NOTE}{rival}")
                    new_id = batch.new_ids.get(session.session_id, session.session_id)
                    if (new_id := id_beside(stored, [session], new_id)) != session.session_id:
                        give_id(session, new_id, held.get(session.artifact_id), reading)
                fuller = {s.session_id: len(s.events) for s in stored}
                reading.sessions = [s for s in reading.sessions if len(s.events) >= fuller.get(s.session_id, 0)]
                content.sessions += (
                    made := _with_printable_ids(attach_attempts(reading.sessions, reading.attempts, held))
                )
                for session in made:
                    words = sum([len(e.text) for e in session.events if e.text])
                    chars += _SESSION_CHARS + words + sum([len(c.arguments) for c in session.tool_calls])
                if chars >= piece_chars:
                    yield content
                    content, chars = GroupContent(is_piece=True), 0
                    for source in inputs:
                        mapped.release_pages(source.data)
        except AgentSignalsError:
            raise
        except Exception as problem:  # noqa: BLE001  (kept by name and shown: what was read until then stays)
            for source in inputs:
                skip(source.artifact, reason_of(error_text(problem)))
                source.artifact.note = f"reading {source.artifact.format}: {error_text(problem)}"
        yield content


def _unread(member: RecognisedArtifact, reason: str, detail: str = "") -> Unreadable:
    return Unreadable(member.file.uri, member.file.spec, reason, detail)


def _read_files(members: Sequence[RecognisedArtifact], stored: Sequence[Session] = ()) -> GroupContent:
    """Read the files of one group by their formats and merge what several of them say of one session."""
    content = GroupContent()
    every, artifacts = _inputs(members, content)
    inputs: dict[str, list[Input]] = {}
    for source in every:
        inputs.setdefault(source.artifact.format or "", []).append(source)
    keys = {artifact_id(m.file.uri): m.keys for m in members}
    told: list[Told] = []
    hints: dict[str, str] = {}
    for name in sorted(inputs, key=lambda n: (by_name(n).is_own, n)):  # collectors first: they name what has no id
        batch = without_prefixes(inputs[name]) if by_name(name).snapshots else inputs[name]
        for source in batch:
            if source.session_hint is None:
                source.session_hint = hints.get(posixpath.dirname(source.artifact.path))
        for one in read_apart(by_name(name), batch, keys):
            told.append(one)
            reading = one.reading
            content.keys |= reading.keys
            if len(reading.checkpoints) == 1 and not reading.sessions:
                folders = {posixpath.dirname(i.artifact.path) for i in one.inputs}
                hints.update(dict.fromkeys(folders, next(iter(reading.checkpoints))))
    content.sessions = give_ids(told, artifacts, stored)
    checkpoints = checkpoints_of(told, content.sessions, artifacts)
    parts = [part for one in told for part in one.reading.attempts]
    content.sessions = (
        attach_attempts(content.sessions, parts, artifacts) if parts else without_copies(content.sessions, artifacts)
    )
    for session in content.sessions:
        if (own := id_beside(stored, [session], session.session_id)) != session.session_id:  # made of an attempt alone
            give_id(session, own, artifacts.get(session.artifact_id))
        rows = checkpoints.get(session.session_id) or session.checkpoints
        session.checkpoints = sorted(rows, key=lambda c: c.checkpoint_id)
    _with_printable_ids(content.sessions)
    return content


def _with_printable_ids(sessions: list[Session]) -> list[Session]:
    for session in sessions:
        session.session_id = printable_id(session.session_id) or session.artifact_id
        session.parent_session_id = printable_id(session.parent_session_id) if session.parent_session_id else None
    return sessions


def _inputs(members: Sequence[RecognisedArtifact], content: GroupContent) -> tuple[list[Input], dict[str, Artifact]]:
    """Return the files for their formats, and their artifacts by id; `content` takes those accounted for here."""
    inputs: list[Input] = []
    artifacts: dict[str, Artifact] = {}
    for member, data in zip(members, _contents(members), strict=True):
        artifact = _artifact(member, data)
        artifacts[artifact.artifact_id] = artifact
        if not member.lent:
            content.artifacts.append((member, artifact))
        held = data.part if isinstance(data, Unreadable) else data
        if member.format is not None and (held or not isinstance(data, Unreadable)):
            hints = (member.file.session_hint, member.file.repo_hint)
            inputs.append(Input(held, artifact, *hints, member.trials, member.trials_below, member.judges))
            if not member.lent and (unknown := unknown_fields(member.format, held, artifact.sha256)):
                content.unknown_fields[artifact.artifact_id] = unknown
    return inputs, artifacts


def _contents(members: Sequence[RecognisedArtifact]) -> list[bytes | Unreadable]:
    """Return the content of each file, or the reason why it can't be read."""
    contents: dict[str, bytes | Unreadable] = {
        m.file.uri: _unread(m, m.reason, m.detail) for m in members if m.format is None
    }
    for source in dict.fromkeys(m.file.source for m in members if m.format is not None):
        files = [m.file for m in members if m.file.source == source and m.format is not None]
        contents.update(zip((f.uri for f in files), read(files), strict=True))
    return [contents[m.file.uri] for m in members]


def _artifact(member: RecognisedArtifact, data: bytes | Unreadable) -> Artifact:
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
    if (origin := origin_of(file)) is not None:
        artifact.dataset, artifact.revision = origin.dataset, origin.revision
        artifact.config, artifact.split = origin.config, origin.split
    if isinstance(data, Unreadable):
        skip(artifact, data.reason)
        artifact.note = data.detail or None
    return artifact


def _sha256(data: bytes) -> str:
    digest, view = hashlib.sha256(), memoryview(data)
    for at in range(0, len(data), mapped.EVERY_BYTES):
        digest.update(view[at : at + mapped.EVERY_BYTES])
        mapped.release_pages(data)
    return digest.hexdigest()
