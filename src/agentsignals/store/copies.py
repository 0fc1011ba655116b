"""The store's tables as plain Parquet files, of all sessions or of some, masked if requested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.store import parquet, sidecars, tables
from agentsignals.store.shards import live_rows

if TYPE_CHECKING:
    from agentsignals.store import Store

Mask = Callable[[str, int], str]
"""Masks a text; the number says how often it occurs."""
_PEOPLE = frozenset(("author",))
"""Columns of people's names, which no pattern recognises: empty wherever texts are masked."""


_PRINTS = ("user.edited_line_prints",)
"""Signals that are hashes of unmasked texts: who guesses a line could check it."""


def write_tables(store: Store, folder: Path, ids: set[str], mask: Mask | None = None) -> dict[str, int]:
    """Write one file a table into a folder and return the rows of each. A shard of a table is in memory at a time.

    For a selection of sessions, values of the whole store, and artifacts and commits of other sessions, are left out.
    StoreError when a shard can't be read; OSError when the folder can't be written.
    """
    store.refresh()
    store.require()
    whole = ids >= set(store.manifest.sessions)
    wanted = pa.array(sorted(ids), pa.string())
    kept = None if whole else _artifacts(store, wanted)
    counted = {}
    for name in (*tables.NAMES, *tables.OF_REPOSITORIES):
        schema = parquet.SCHEMAS[name]
        counted[name] = 0
        private_files.create(folder / f"{name}.parquet")
        with pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd") as writer:
            paths = store.files(name)
            if name in tables.OF_REPOSITORIES:
                paths = store.without_damaged(sidecars.repository_files(store.folder, name))
            for path in paths:
                if (part := _read(store, path)) is None:
                    continue
                if (entry := store.manifest.shards.get(path.parent.name)) is not None:
                    part = live_rows(part, name, entry)
                table = parquet.with_current_columns(part, schema)
                rows = table if whole else _chosen(table, wanted, kept)
                rows = mask_table(rows, mask) if mask else rows
                counted[name] += rows.num_rows
                if rows.num_rows:
                    writer.write_table(rows)
    return counted


def _read(store: Store, path: Path, columns: list[str] | None = None) -> pa.Table | None:
    """Rows of a file; None, with a warning, where only reading it showed that it is damaged."""
    try:
        return parquet.read(path, columns)
    except StoreError:
        if not store.check_files(thorough=True) and not store.damage:
            raise
        return None


def _artifacts(store: Store, wanted: pa.Array) -> pa.Array:
    ids: set[str] = set()
    for path in store.files("events"):
        table = _read(store, path, ["session_id", "artifact_id"])
        if table is None:
            continue
        chosen = table.filter(pc.is_in(table.column("session_id"), wanted))
        ids.update(chosen.column("artifact_id").unique().to_pylist())
    return pa.array(sorted(i for i in ids if i is not None), pa.string())


def _chosen(table: pa.Table, wanted: pa.Array, artifacts: pa.Array | None) -> pa.Table:
    if "session_ids" in table.schema.names:
        ids_wanted = set(wanted.to_pylist())  # the others are not named
        at = table.schema.get_field_index("session_ids")
        kept = [[i for i in ids or () if i in ids_wanted] for ids in table.column(at).to_pylist()]
        field = table.schema.field(at)
        return table.set_column(at, field, pa.array(kept, field.type)).filter(pa.array([bool(ids) for ids in kept]))
    if "session_id" not in table.schema.names:
        if "artifact_id" not in table.schema.names:  # nobody knows which session it is of
            return table.slice(0, 0)
        return table.filter(pc.is_in(table.column("artifact_id"), artifacts))
    return table.filter(pc.is_in(table.column("session_id"), wanted))


def mask_table(table: pa.Table, mask: Mask) -> pa.Table:
    """Mask every text of every column, each distinct text once. Hashes of unmasked texts are removed."""
    if "signal" in table.schema.names:
        table = table.filter(pc.invert(pc.is_in(table.column("signal"), pa.array(_PRINTS))))
    for n, field in enumerate(table.schema):
        if field.name in _PEOPLE:
            table = table.set_column(n, field, pa.nulls(table.num_rows, field.type))
        elif field.type == pa.string():
            table = table.set_column(n, field, _masked_column(table.column(n), mask))
        elif field.type == pa.list_(pa.string()):
            rows = [v if v is None else [mask(i, 1) for i in v] for v in table.column(n).to_pylist()]
            table = table.set_column(n, field, pa.array(rows, field.type))
    return table


def _masked_column(column: pa.ChunkedArray, mask: Mask) -> pa.Array:
    counted: Any = column.combine_chunks().value_counts()
    of = {
        text: mask(text, times)
        for text, times in zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
        if text is not None
    }
    if all(text is masked or text == masked for text, masked in of.items()):
        return column
    return pa.array([None if v is None else of[v] for v in column.to_pylist()], pa.string())
