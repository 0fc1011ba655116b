"""Whether bytes are a table of results, and the rows of one that is Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

COLUMNS = frozenset(("instance_id", "resolved"))
"""What a table of results has."""
PARQUET = b"PAR1"
_FIRST = 2_048
_AT_ONCE = 1_024
_UNPACKED_MAX = 1024**3


def is_table(data: bytes) -> bool:
    """Of CSV by its first line, of Parquet by its schema, which stands at the end: of the whole file only."""
    if bytes(data[: len(PARQUET)]) == PARQUET:
        return frozenset(_names(data)) >= COLUMNS
    columns = bytes(data[:_FIRST]).partition(b"\n")[0].decode("utf-8-sig", "replace").split(",")
    return {name.strip().strip('"') for name in columns} >= COLUMNS


def _names(data: bytes) -> list[str]:
    import pyarrow as pa  # noqa: PLC0415  (for tables only)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return [str(name) for name in pq.read_schema(pa.BufferReader(data)).names]
    except (pa.ArrowException, OSError):
        return []


def parquet_rows(data: bytes, wanted: frozenset[str]) -> Iterator[tuple[int, dict[str, Any]] | str]:
    """The rows by number, of the columns that are wanted; of a group that can't be read why, once."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    with pq.ParquetFile(pa.BufferReader(data)) as file:
        columns = [name for name in file.schema_arrow.names if name in wanted]
        stop = 0
        for group in range(file.metadata.num_row_groups):
            about = file.metadata.row_group(group)
            at, stop = stop, stop + about.num_rows
            if about.total_byte_size > _UNPACKED_MAX:
                yield "row_group_too_large"
                continue
            try:
                for batch in file.iter_batches(batch_size=_AT_ONCE, row_groups=[group], columns=columns):
                    for row in batch.to_pylist():
                        at += 1
                        yield at, row
            except (pa.ArrowException, OSError, ValueError, OverflowError):
                yield "bad_parquet"
