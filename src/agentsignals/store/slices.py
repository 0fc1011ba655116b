"""A store asked over some of its shards at a time: what DuckDB holds in memory does not grow with the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentsignals.store.query import Connection


def slices(connection: Connection, table: str, most_rows: int) -> Iterator[Connection]:
    """The connection, or one after the other over some of the shards each, of no more rows of `table` together
    than that, or of one shard: for a question whose rows are each of one session, which lies in one shard. DuckDB
    then holds no more than a slice in memory."""
    files = connection.files.get(table, [])
    of_file = "SELECT file_name, num_rows FROM parquet_file_metadata($files)"
    counted = connection.database.execute(of_file, {"files": files}).fetchall() if len(files) > 1 else []
    if sum(n for _, n in counted) <= most_rows:
        yield connection
        return
    # A shard whose `table` can't be read has sessions all the same.
    rows_of = {_folder(file): 0 for file in connection.files.get("sessions", [])}
    rows_of |= {_folder(file): n for file, n in counted}
    shards: set[str] = set()
    rows = 0
    for shard, n in sorted(rows_of.items()):
        if shards and rows + n > most_rows:
            yield from connection.over(shards)
            shards, rows = set(), 0
        shards.add(shard)
        rows += n
    yield from connection.over(shards)


def _folder(file: str) -> str:
    return str(Path(file).parent)
