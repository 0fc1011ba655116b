"""Values computed anew from the rows of a store, and which of them are others than before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from agentsignals.catalog import measure
from agentsignals.embedding import Vectors
from agentsignals.errors import StoreError
from agentsignals.ingest.store_vectors import prepare
from agentsignals.model import Absent
from agentsignals.store import Store, shards, table_files
from agentsignals.store.damage import FOLDER
from agentsignals.store.signal_rows import signal_rows
from agentsignals.views.session import SessionView

_COLUMNS = ["signal", "session_id", "turn", "value", "absent", "absent_detail", "detail"]
Values = Counter[tuple[object, ...]]


def measure_shard(
    store: Store,
    name: str,
    now: dict[str, int],
    vectors: Vectors | Absent,
    tell: Callable[[str], None] | None,
) -> tuple[int, Counter[str]]:
    """Computes the values of a shard's sessions and puts a copy with them in its place; gives the number of sessions,
    and by signal how many values are others."""
    rows, attempts = [], []
    count = 0
    for session in shards.read_sessions(store.folder, name):
        view = SessionView(session)
        prepare(vectors, view)
        results = measure(view, {"vectors": vectors})
        rows.append(signal_rows(session, results))
        attempts += shards.attempt_rows(session, results)
        count += 1
    entry, new_name = store.manifest.shards[name], store.next_name(name)
    tables = shards.measured_anew(store.folder, name, new_name, entry.tables, rows, attempts)
    before, after = (_values(store.folder / FOLDER / each / "signals.parquet") for each in (name, new_name))
    if before is None and tell is not None:
        tell(f"{FOLDER}/{name}/signals.parquet is damaged: its values are computed anew, and compared with none.")
    store.put_in_place(name, new_name, tables)
    entry.signals, entry.values = dict(now), ""
    store.manifest.history_of = ""
    store.commit()
    return count, changed(before, after)


def values_across(store: Store) -> Values | None:
    """The values across sessions as they stand in the store; None where they can't be read."""
    across = store.manifest.across
    return _values(store.folder / across.file) if across is not None else Counter()


def changed(before: Values | None, after: Values | None) -> Counter[str]:
    """By signal, how many values are new, gone or others; none where there is nothing to compare."""
    if before is None or after is None:
        return Counter()
    came, went = Counter[str](), Counter[str]()
    for counted, more, less in ((came, after, before), (went, before, after)):
        for row, n in (more - less).items():
            counted[str(row[0])] += n
    return came | went


def _values(path: Path) -> Values | None:
    try:
        columns = table_files.read(path, _COLUMNS).to_pydict()
    except StoreError:  # damaged or gone: what is computed in its place can't be compared
        return None
    return Counter(zip(*(columns[name] for name in _COLUMNS), strict=True))
