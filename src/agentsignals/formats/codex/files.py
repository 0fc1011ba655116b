"""The rollouts of one family: snapshots of a session united, and what forks copied of each other counted once."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from agentsignals.formats import Input, Reading
from agentsignals.formats.codex.decode import DECODER, by_shape, decode, kind_of, tally
from agentsignals.formats.codex.records import SessionMeta, Task, TurnContext
from agentsignals.formats.codex.session import Reader, parent_of
from agentsignals.formats.records import all_lines, saw
from agentsignals.formats.uniting import by_session
from agentsignals.model import Session
from agentsignals.model.times import logged_iso, logged_ms

_BURST_US = 2_000_000
"""A fork copies its parent's history in one go; records this much later than the first are its own."""


def read(inputs: list[Input]) -> Reading:
    """Snapshots of a session are united; history that a fork copied counts for the parent, if the parent is there."""
    sessions = by_session(inputs, _File)
    firsts = _first_own({session_id: files[0] for session_id, files in sessions.items()})
    return Reading([_session(session_id, files, firsts[session_id]) for session_id, files in sessions.items()])


class _File:
    """The records of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.numbers, self.records = all_lines(source.data, source.artifact, DECODER, decode)
        self.shapes = by_shape(self.records)
        for kind, times in tally(self.shapes).items():
            saw(source.artifact, kind, times)
        headers = [
            record.payload for record in self.shapes.get(SessionMeta, ()) if isinstance(record.payload, SessionMeta)
        ]
        self.meta = headers[0] if headers else None
        named = self.meta.id if self.meta is not None else ""
        self.session_id = named or source.session_hint or source.artifact.artifact_id
        parents = [h.id for h in headers if h.id and h.id != self.session_id]
        if self.meta is not None and self.meta.forked_from_id:
            parents.insert(0, self.meta.forked_from_id)
        self.parents = set(parents)
        self.parent = (parent_of(self.meta) if self.meta is not None else None) or next(iter(parents), None)
        first = next((record.timestamp for record in self.records if record.timestamp), "")
        # Of two snapshots that begin together the longer comes first, so that most of a session points into one file.
        self.order = (first, -len(self.records), source.artifact.sha256, source.artifact.artifact_id)

    @cached_property
    def copied(self) -> int:
        """How many records at the top were copied from other sessions."""
        if self.meta is None or not self.parents:
            return 0
        begins = self.begins(self.session_id)
        if begins is not None:
            return begins
        first = logged_iso(self.records[0].timestamp)
        for n, record in enumerate(self.records):
            at = logged_iso(record.timestamp)
            if at is not None and first is not None and at > first + _BURST_US:
                return n
        return len(self.records)

    def begins(self, session_id: str) -> int | None:
        """Where the turns of a session begin, its own or an ancestor's: what is copied is older than the session."""
        began = _minted(session_id)
        if began is not None:
            for n, record in enumerate(self.records):
                if isinstance(record.payload, Task | TurnContext) and _is_since(record.payload, began):
                    return n
        return None

    def left_out(self, first_own: str | None) -> int:
        """How many leading records count elsewhere, when those of session `first_own` are the first that count here."""
        if first_own is None:
            return 0
        return self.copied if first_own == self.session_id else min(self.begins(first_own) or 0, self.copied)


def _first_own(sessions: dict[str, _File]) -> dict[str, str | None]:
    """By session, whose turns are the first to count for it: its own, where the history it copied is here itself.

    Of forks whose parent is missing, the one that copied most of it keeps the copy, and with it what the parent had
    copied from a session that is missing too (None: everything).
    """
    first_own: dict[str, str | None] = {session_id: session_id for session_id in sessions}
    keepers: dict[str, _File] = {}
    for session_id, file in sessions.items():
        parent = file.parent
        if parent is not None and parent not in sessions and file.copied:
            best = keepers.get(parent)
            if best is None or file.copied > best.copied:
                keepers[parent] = file
                first_own[session_id] = parent if file.parents & sessions.keys() else None
                if best is not None:
                    first_own[best.session_id] = best.session_id
    return first_own


def _session(session_id: str, files: list[_File], first_own: str | None) -> Session:
    first = files[0]
    session = first.source.session(session_id, "codex", "codex")
    session.parent_session_id = first.parent
    left_out = [file.left_out(first_own) for file in files]
    shapes = first.shapes
    if len(files) > 1 or any(left_out):
        shapes = by_shape([record for file, n in zip(files, left_out, strict=True) for record in file.records[n:]])
    reader = Reader(session, first.meta, shapes, inherits=bool(first.parents))
    several = len(files) > 1
    seen: set[tuple[str | None, str, int]] = set()
    for file, copied in zip(files, left_out, strict=True):
        reader.builder.artifact_id = file.source.artifact.artifact_id
        nth: Counter[tuple[str | None, str]] = Counter()
        for n, (number, record) in enumerate(zip(file.numbers, file.records, strict=True)):
            if n < copied and n > 0:
                saw(file.source.artifact, "repeated")
                if file is first:
                    reader.copied(record)
                continue
            if several:
                key = (record.timestamp, kind_of(record))
                nth[key] += 1
                if (*key, nth[key]) in seen:
                    saw(file.source.artifact, "repeated")
                    continue
                seen.add((*key, nth[key]))
            reader.take(number, record)
    return reader.finish()


def _minted(uuid: str) -> int | None:
    """When a version 7 UUID was made, in microseconds UTC; None for another id."""
    digits = uuid.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return int(digits[:12], 16) * 1000
    except ValueError:
        return None


def _is_since(body: Task | TurnContext, began: int) -> bool:
    """Whether a turn is as young as a session: by its id, or by when it says it began."""
    minted = _minted(body.turn_id or "")
    if minted is not None:
        return minted >= began
    started = logged_ms(body.started_at * 1000) if isinstance(body, Task) and body.started_at is not None else None
    return started is not None and started >= began - began % 1_000_000
