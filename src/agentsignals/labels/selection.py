"""Which messages or sessions of a store a run is about, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from agentsignals.labels.repositories import NO_REPOSITORY, places, repositories
from agentsignals.labels.task import Task
from agentsignals.labels.transcript import Mask, tokens
from agentsignals.labels.units import NotAsked, Unit, plain, units
from agentsignals.redaction import Redactor
from agentsignals.store import Store
from agentsignals.store.pseudonym_key import pseudonym_key
from agentsignals.store.query import rows

EVAL = "eval_session"
"""Why an eval run is not asked about: nobody speaks in it, and nobody's person is judged by it."""


class Selection:
    """Sessions that meet an SQL condition over `sessions`; of them at most `limit` units."""

    def __init__(self, where: str = "true", limit: int | None = None, *, redact: bool = False) -> None:
        self._where, self._limit = where, limit
        self._redactor = Redactor(pseudonym_key()) if redact else None
        self.total: int | None = None
        """How many units there are, known once `units` began."""

    @property
    def redacted(self) -> dict[str, int]:
        """What was masked so far, by kind."""
        return dict(self._redactor.counts) if self._redactor else {}

    def units(self, store: Store, task: Task, window: int, only: set[str] | None = None) -> Iterator[Unit | NotAsked]:
        """The units in order of shard and session, and what is not asked about. `only`: of these sessions."""
        contexts = self._sessions(store)
        evals = sorted(name for name, context in contexts.items() if context == "eval")
        wanted = {name for name, context in contexts.items() if context != "eval"}
        mask = self._redactor.text if self._redactor else plain
        if task.level == "repository":
            yield from self._repositories(store, wanted, evals, mask)
            return
        if only is None:
            self.total = self._counted(store, task, wanted) + len(evals)
            yield from (NotAsked(name, None, EVAL) for name in evals)
        room = window - tokens(task.prompt) - 8 * task.answer_tokens  # an answer may grow so far when it is cut
        n_units = 0
        for session in store.read(wanted if only is None else wanted & only):
            for unit in units(task, session, max(room, window // 4), mask):
                if isinstance(unit, Unit):
                    if only is None and n_units == self._limit:
                        return
                    n_units += 1
                yield unit

    def _repositories(self, store: Store, wanted: set[str], evals: list[str], mask: Mask) -> Iterator[Unit | NotAsked]:
        by_place = places(store, wanted)
        nowhere = by_place.pop(None, [])
        self.total = min(len(by_place), self._limit or len(by_place)) + len(nowhere) + len(evals)
        yield from (NotAsked(name, None, EVAL) for name in evals)
        yield from (NotAsked(name, None, NO_REPOSITORY) for name in nowhere)
        yield from repositories(store, {place: of for place, of in by_place.items() if place}, self._limit, mask)

    def _sessions(self, store: Store) -> dict[str, str]:
        asked = f"SELECT session_id, context FROM sessions WHERE ({self._where})"  # noqa: S608  (the person's own SQL)
        return {str(name): str(context) for name, context in rows(store, asked)[1]}

    def _counted(self, store: Store, task: Task, wanted: set[str]) -> int:
        if task.level == "session":
            n = len(wanted)
        else:
            n = sum(entry.n_turns or 0 for name, entry in store.manifest.sessions.items() if name in wanted)
        return n if self._limit is None else min(n, self._limit)
