"""Values computed anew from the rows of a store, and which of them are others than before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from agentsignals.catalog import measure
from agentsignals.embedding import Vectors
from agentsignals.errors import StoreError
from agentsignals.ingest.store_vectors import prepare
from agentsignals.model import Absent
from agentsignals.store import Store, shards, table_files
from agentsignals.store.damage import FOLDER
from agentsignals.store.manifest import FileEntry, SessionEntry
from agentsignals.views.session import SessionView

_COLUMNS = ["signal", "session_id", "turn", "value", "absent", "absent_detail", "detail"]
Values = Counter[tuple[object, ...]]


def measure_shard(
    store: Store, name: str, now: dict[str, int], vectors: Vectors | Absent, held: list[SessionEntry | FileEntry]
) -> tuple[int, Counter[str]]:
    """Computes the values of a shard's sessions and puts a copy with them in its place; gives the number of sessions,
    and by signal how many values are others."""
    rows, attempts = [], []
    count = 0
    for session in shards.read_sessions(store.folder, name):
        view = SessionView(session)
        prepare(vectors, view)
        results = measure(view, {"vectors": vectors})
        rows += shards.signal_rows(session, results)
        attempts += shards.attempt_rows(session, results)
        count += 1
    entry, new_name = store.manifest.shards[name], store.next_name(name)
    tables = shards.measured_anew(store.folder, name, new_name, entry.tables, rows, attempts)
    before, after = (_values(store.folder / FOLDER / each / "signals.parquet") for each in (name, new_name))
    store.put_in_place(name, new_name, held, tables)
    entry.signals = dict(now)
    store.manifest.history_of = ""
    store.save()
    return count, changed(before, after)


def values_across(store: Store) -> Values:
    """The values across sessions as they stand in the store."""
    across = store.manifest.across
    return _values(store.folder / across.file) if across is not None else Counter()


def changed(before: Values, after: Values) -> Counter[str]:
    """By signal, how many values are new, gone or others."""
    came, went = Counter[str](), Counter[str]()
    for counted, more, less in ((came, after, before), (went, before, after)):
        for row, n in (more - less).items():
            counted[str(row[0])] += n
    return came | went


def _values(path: Path) -> Values:
    try:
        columns = table_files.read(path, _COLUMNS).to_pydict()
    except StoreError:  # damaged or gone: all that is computed in its place is new
        return Counter()
    return Counter(zip(*(columns[name] for name in _COLUMNS), strict=True))
