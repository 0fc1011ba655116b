"""A store asked over some of its shards at a time: what DuckDB holds in memory does not grow with the store."""

from __future__ import annotations

from pathlib import Path

from agentsignals.store.query import Connection


def slices(connection: Connection, table: str, most_rows: int) -> list[Connection]:
    """The connection, or several over some of the shards each, of no more rows of `table` together than that, or of one
    shard: for a question whose rows are each of one session, which lies in one shard. Asked one after the other, DuckDB
    holds no more than a slice in memory."""
    files = connection.files.get(table, [])
    of_file = "SELECT file_name, num_rows FROM parquet_file_metadata($files)"
    counted = connection.database.execute(of_file, {"files": files}).fetchall() if len(files) > 1 else []
    if sum(n for _, n in counted) <= most_rows:
        return [connection]
    # A shard whose `table` can't be read has sessions all the same.
    rows_of = {_folder(file): 0 for file in connection.files.get("sessions", [])}
    rows_of |= {_folder(file): n for file, n in counted}
    made: list[Connection] = []
    shards: set[str] = set()
    rows = 0
    for shard, n in sorted(rows_of.items()):
        if shards and rows + n > most_rows:
            made.append(connection.over(shards))
            shards, rows = set(), 0
        shards.add(shard)
        rows += n
    return [*made, connection.over(shards)]


def _folder(file: str) -> str:
    return str(Path(file).parent)
