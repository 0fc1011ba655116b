"""Prices and measures the sessions of a shard, and accounts for each that is set aside."""

from __future__ import annotations

from msgspec import Struct, field

from agentsignals import prices
from agentsignals.catalog import INTERNAL_ERROR, Result, measure
from agentsignals.embedding import light
from agentsignals.errors import AgentSignalsError
from agentsignals.formats import refuse, skip
from agentsignals.model import Absent, Artifact, Label, Session
from agentsignals.sources import error_text, sound
from agentsignals.store import shards
from agentsignals.store.manifest import ShardEntry
from agentsignals.store.signal_rows import SignalRows, signal_rows
from agentsignals.store.tables import AttemptRow
from agentsignals.views.session import SessionView

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
            results = measure(view, {"vectors": light(self.embedder)})
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
            what = sound(f"{result.signal.path}: {result.value.detail}")[:300]
            self.entry.internal_errors[what] = self.entry.internal_errors.get(what, 0) + 1
