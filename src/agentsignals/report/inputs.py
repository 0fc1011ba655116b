"""From a store to what studies are given: their queries, run once each on one connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from agentsignals.analysis.study import Inputs, Row, Study, Versions
from agentsignals.store import Store
from agentsignals.store.manifest import SCHEMA_VERSION
from agentsignals.store.query import connect, run

_LONGEST_ENDING = 12


class Reader:
    """Runs the queries of these studies: equal ones once, their rows kept until the last study has had them."""

    def __init__(self, store: Store, studies: Sequence[Study]) -> None:
        self._connection = connect(store)
        self._awaited = Counter(sql for one in studies for sql in one.queries.values())
        self._kept: dict[str, list[Row]] = {}
        self._no_traces = _endings(uri for uri, entry in store.manifest.files.items() if not entry.shard)
        self.versions = Versions(
            SCHEMA_VERSION,
            {r["signal"]: r["v"] for r in self._rows("SELECT signal, max(version) AS v FROM signals GROUP BY signal")},
            tuple(
                r["cost_source"]
                for r in self._rows("SELECT DISTINCT cost_source FROM steps WHERE cost_source IS NOT NULL ORDER BY 1")
            ),
        )

    def inputs(self, study: Study) -> Inputs:
        """What a study is given."""
        rows = {name: self._rows(sql) for name, sql in study.queries.items()}
        return Inputs(rows, self.versions, self._no_traces)

    def _rows(self, sql: str) -> list[Row]:
        rows = self._kept.pop(sql, None)
        if rows is None:
            relation = run(self._connection, sql)
            names = list(relation.columns)
            rows = [dict(zip(names, row, strict=True)) for row in relation.fetchall()]
        self._awaited[sql] -= 1
        if self._awaited[sql] > 0:
            self._kept[sql] = rows
        return rows


def _endings(uris: Iterable[str]) -> dict[str, int]:
    endings = (PurePosixPath(uri).suffix.lower() for uri in uris)
    return dict(Counter(e if len(e) <= _LONGEST_ENDING else "" for e in endings))
