"""From a store to what studies are given: their queries, run once each on one connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Protocol

from agentsignals.analysis.study import Context, Inputs, Row, Versions
from agentsignals.store import Store
from agentsignals.store.manifest import SCHEMA_VERSION, contexts, main_context
from agentsignals.store.query import Connection, answered, execute, names_of

_LONGEST_ENDING = 12


class Asking(Protocol):
    """What asks the store: a study, or the question of a finding."""

    @property
    def queries(self) -> Mapping[str, str]:
        """SQL by the name that the rows get."""

    @property
    def context(self) -> Context:
        """Whose sessions it is about."""


class Reader:
    """Runs the queries of these studies: equal ones once, their rows kept until the last study has had them.

    A study sees the sessions of its context only. `context`: that of the studies which take either; without one,
    people's sessions when the store holds any. `labeller`: whose labels studies of labels take; without one, of those
    there are the one with most.
    """

    def __init__(
        self, store: Store, studies: Sequence[Asking], context: str | None = None, labeller: str | None = None
    ) -> None:
        self._store = store
        self._labeller = labeller or ""
        self._contexts = contexts(store.manifest)
        self.context = context or main_context(store.manifest)
        self._connections: dict[str | None, Connection] = {}
        self._awaited = Counter((sql, self._of(study)) for study in studies for sql in study.queries.values())
        self._kept: dict[tuple[str, str], list[Row]] = {}
        self._no_traces = _endings(uri for uri, entry in store.manifest.files.items() if not entry.shard)
        self.versions = Versions(
            SCHEMA_VERSION,
            {r["signal"]: r["v"] for r in self._rows("SELECT signal, max(version) AS v FROM signals GROUP BY signal")},
            tuple(
                r["cost_source"]
                for r in self._rows("SELECT DISTINCT cost_source FROM steps WHERE cost_source IS NOT NULL ORDER BY 1")
            ),
        )

    def inputs(self, study: Asking) -> Inputs:
        """What a study is given."""
        context = self._of(study)
        rows = {name: self._rows(sql, context) for name, sql in study.queries.items()}
        return Inputs(rows, self.versions, self._no_traces, context, self._labeller)

    def _of(self, study: Asking) -> str:
        """The context a study's rows are of; empty where nothing need be left out."""
        if study.context == "both":
            return ""
        wanted = self.context if study.context == "either" else study.context
        return wanted if self._contexts - {wanted} else ""

    def _rows(self, sql: str, context: str = "") -> list[Row]:
        rows = self._kept.pop((sql, context), None)
        if rows is None:
            rows = answered(self._store, partial(_rows_of, sql), context or None, self._connections)
        self._awaited[sql, context] -= 1
        if self._awaited[sql, context] > 0:
            self._kept[sql, context] = rows
        return rows


def _rows_of(sql: str, connection: Connection) -> list[Row]:
    asked = execute(connection, sql)
    names = names_of(asked)
    return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]


def _endings(uris: Iterable[str]) -> dict[str, int]:
    endings = (PurePosixPath(uri).suffix.lower() for uri in uris)
    return dict(Counter(e if len(e) <= _LONGEST_ENDING else "" for e in endings))
