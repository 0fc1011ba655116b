"""Rows of tables, from their bytes: Parquet, Arrow, JSON Lines, JSON lists, CSV. The one reader of rows.

Tables are other people's: they are read some rows at a time, and what is damaged or huge costs its rows alone.
"""

import csv
import io
import mmap
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input
from agentsignals.formats.columns import IN_FIELD, first_rows_of
from agentsignals.formats.documents import each, is_list
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import HEAD_BYTES, MAX_LINE_BYTES, head_of, lines
from agentsignals.model import Artifact

PARQUET = b"PAR1"
_ARROW_FILE, _ARROW_STREAM = b"ARROW1\0\0", b"\xff\xff\xff\xff"
"""First bytes of Arrow's file format, and of its stream, in which `datasets` saves to disk."""
GROUP_BYTES_MAX = 4 * 1024**3
"""Decompressed bytes of one row group. Rows of a larger group are counted, not read. A usual group
is a thirtieth of that or less (parquet.apache.org/docs/file-format/configurations)."""
_BATCH_ROWS = 1_024
_BATCH_BYTES = 64 * 1024 * 1024
"""Decompressed bytes at a time, with rows of their group's mean size."""


_ODD_VALUE = (ValueError, OverflowError, IndexError, SystemError)
"""Text that is no UTF-8, a date beyond all calendars, an index beyond its dictionary."""


class Lost(Struct, frozen=True):
    """Consecutive rows that could not be read, and why."""

    rows: int
    reason: str


Row = Mapping[str, Any] | Lost


def is_packed(data: bytes) -> bool:
    """Return whether a file is a table in Parquet or Arrow."""
    return bytes(data[:8]).startswith((PARQUET, _ARROW_FILE, _ARROW_STREAM))


def schema_of(data: bytes) -> Any:
    """Return the schema of a Parquet or Arrow file, of which the beginning is enough for Arrow, and beginning and
    footer for Parquet. None if it can't be read."""
    import pyarrow as pa  # noqa: PLC0415  (for tables only)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        if data[:4] == PARQUET:
            schema = pq.read_schema(pa.BufferReader(pa.py_buffer(data)))
        else:
            with _arrow_stream(data) as stream:
                schema = stream.schema
        return schema if all(isinstance(name, str) for name in schema.names) else None
    except (pa.ArrowException, OSError, ValueError):  # a name that is no UTF-8 is a ValueError
        return None


NO_CONVERSATIONS = "no_conversation_column"
"""The reason to skip a table. Its note names the columns."""
UNREAD_CONVERSATIONS = "conversations_not_read"
"""The reason why a table's outcomes alone are read: its note names the column of an unknown form."""
NAMED = frozenset((NO_CONVERSATIONS, UNREAD_CONVERSATIONS))
"""Reasons that are told with the note of their table."""
_SHOWN_COLUMNS = 12


def columns_note(names: Iterable[str]) -> str:
    """Describe a table that is not read by the names of its columns."""
    shown = [name for name in names if name.isprintable()]
    more = ", …" if len(shown) > _SHOWN_COLUMNS else ""
    return f"table with the columns {', '.join(shown[:_SHOWN_COLUMNS])}{more}"


def _arrow_stream(data: bytes) -> Any:
    """Open an Arrow stream, also that which lies within a file of Arrow's file format."""
    import pyarrow as pa  # noqa: PLC0415

    start = len(_ARROW_FILE) if data[: len(_ARROW_FILE)] == _ARROW_FILE else 0
    return pa.ipc.open_stream(pa.py_buffer(memoryview(data)[start:]))


def packed_rows(
    data: bytes, wanted: Collection[str], longest: int | None = None, nested: bool = False
) -> Iterator[tuple[int, Row]]:
    """Yield rows of Parquet or Arrow by number from 1, with the wanted columns.

    A text longer than `longest` becomes None. Lists and objects are read on request only: a few kilobytes can hold
    gigabytes of them.
    """
    at = 1
    for batch in _arrow_batches(data) if data[:4] != PARQUET else _parquet_batches(data, wanted, nested):
        if isinstance(batch, Lost):
            yield at, batch
            at += batch.rows
            continue
        held = [f.name for f in batch.schema if f.name in wanted and (nested or not _is_nested(f.type))]
        names = list(dict.fromkeys(held))
        columns = [batch.column(batch.schema.names.index(name)) for name in names]
        try:
            values = [_values(column, longest) for column in columns]
        except _ODD_VALUE:  # it costs its row
            for n in range(batch.num_rows):
                try:
                    row = [_values(_decoded(column.slice(n, 1)), longest)[0] for column in columns]
                    yield at + n, dict(zip(names, row, strict=True))
                except _ODD_VALUE:
                    yield at + n, Lost(1, "bad_shape")
        else:
            for n in range(batch.num_rows):
                yield at + n, {name: column[n] for name, column in zip(names, values, strict=True)}
        at += batch.num_rows


def _decoded(column: Any) -> Any:
    """Return a column with the values of its own rows alone, and not of all its dictionary."""
    import pyarrow as pa  # noqa: PLC0415

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_nested(type_: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_nested(type_))


def _parquet_batches(data: bytes, wanted: Collection[str], nested: bool) -> Iterator[Any]:
    """Yield a Parquet file's rows in batches; damaged or too large row groups are counted as lost."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    buffer = pa.BufferReader(pa.py_buffer(data))
    try:
        metadata = pq.read_metadata(buffer)
        schema = [metadata.schema.column(n) for n in range(len(metadata.schema))]
        # A value that a dictionary holds once is made once, however many rows have it.
        texts = [
            c.path
            for c in schema
            if c.physical_type == "BYTE_ARRAY" and c.logical_type.type in ("STRING", "NONE") and c.path in wanted
        ]
        opened = pq.ParquetFile(buffer, metadata=metadata, read_dictionary=texts, pre_buffer=False)
    except (pa.ArrowException, OSError, ValueError, KeyError):
        yield Lost(1, "bad_parquet")
        return
    with opened as file:
        fields = {field.name for field in file.schema_arrow if nested or not _is_nested(field.type)}
        names = dict.fromkeys(file.schema_arrow.names)
        columns = [name for name in names if name in wanted and name in fields]
        for group in range(file.metadata.num_row_groups):
            about = file.metadata.row_group(group)
            left = about.num_rows
            size = about.total_byte_size  # of all columns: asking a damaged one ends the process (pyarrow 21)
            if size > GROUP_BYTES_MAX:
                yield Lost(left, "row_group_too_large")
                continue
            at_once = max(1, min(_BATCH_ROWS, left * _BATCH_BYTES // max(1, size)))
            try:
                for batch in file.iter_batches(batch_size=at_once, row_groups=[group], columns=columns):
                    left -= batch.num_rows
                    yield batch
            except (pa.ArrowException, OSError, ValueError, OverflowError):
                yield Lost(left, "bad_parquet")


def _arrow_batches(data: bytes) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415

    try:
        with _arrow_stream(data) as stream:
            for batch in stream:
                try:
                    batch.validate(full=True)  # else a damaged offset would end the process
                except pa.ArrowException:
                    yield Lost(batch.num_rows, "bad_arrow")
                    continue
                for at in range(0, batch.num_rows, _BATCH_ROWS):
                    yield batch.slice(at, _BATCH_ROWS)
    except (pa.ArrowException, OSError, ValueError):
        yield Lost(1, "bad_arrow")


def _values(column: Any, longest: int | None) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(column.type):
        values = column.dictionary.to_pylist()
        values = [v if longest is None or not isinstance(v, str) or len(v) <= longest else None for v in values]
        places = column.indices.to_pylist()
        if any(n is not None and not 0 <= n < len(values) for n in places):
            raise ValueError("an index beyond its dictionary")
        return [None if n is None else values[n] for n in places]
    return list(column.to_pylist())


# -- tables in text

_SEPARATORS = ",\t;"
_FIRST_ROWS = 12


def first_rows(text: str, complete: bool) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the header and some rows of a possible table, without rows if most are not as wide as the header."""
    line = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=line.count)
    if separator not in line:
        return [], []
    body = [row for _, row in islice(csv_rows(text.encode("utf-8", "replace")), _FIRST_ROWS + 1)]
    if not complete and len(body) <= _FIRST_ROWS:
        body = body[:-1]  # cut by the window
    whole = [dict(row) for row in body[:_FIRST_ROWS] if not isinstance(row, Lost)]
    return header_of(text), whole if 2 * len(whole) > len(body[:_FIRST_ROWS]) else []


def header_of(text: str) -> list[str]:
    """Return the names in the first line, or none if it is no header."""
    line = text.partition("\n")[0].rstrip("\r")
    try:
        return next(csv.reader([line], delimiter=max(_SEPARATORS, key=line.count)), [])
    except csv.Error:
        return []


def csv_rows(data: bytes) -> Iterator[tuple[int, Row]]:
    """Yield each row with the number of its last line; Lost if it is not as wide as the header. One row at a time: a
    file may be larger than memory."""
    text = _lines(data)
    first = next(text, "")
    header = header_of(first)
    reader = csv.reader(text, delimiter=max(_SEPARATORS, key=first.count))
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield reader.line_num + 1, Lost(1, "bad_shape")
            continue
        if row:
            whole = len(row) == len(header)
            yield reader.line_num + 1, dict(zip(header, row, strict=True)) if whole else Lost(1, "bad_shape")


def _lines(data: bytes) -> Iterator[str]:
    file = data if isinstance(data, mmap.mmap) else io.BytesIO(data)
    file.seek(0)
    encoding = "utf-8-sig"
    while line := file.readline():
        yield line.decode(encoding, "replace")
        encoding = "utf-8"


# -- any table

Table = tuple[list[str], Iterator[tuple[int, Row]]]
"""The names of the columns, and the rows by number, which is the line's if the table has lines."""
_LONGEST_FIELD = 128 * 1024
"""Characters of a field of CSV: the default of Python."""
_ROWS = re.compile(b'"(?:' + "|".join(IN_FIELD).encode() + rb')"\s*:')


class _Wrapped(Struct, gc=False):
    row: Raw = Raw()


class _Document(Struct, gc=False):
    rows: list[Raw] = []
    data: list[Raw] | Raw = []


_decode_row = msgspec.json.Decoder(dict[str, Any]).decode
_decode_wrapped = msgspec.json.Decoder(_Wrapped).decode
_decode_document = msgspec.json.Decoder(list[Raw] | _Document).decode


def table(
    source: Input,
    artifact: Artifact,
    wanted: Callable[[list[str]], Collection[str]],
    longest: int | None = None,
    nested: bool = False,
) -> Table:
    """Open a table. Its rows are counted in `artifact`. `wanted` chooses columns of packed tables by the names of
    all. Lists and objects are read if `nested`."""
    data = source.data
    if is_packed(data):
        schema = schema_of(data)
        if schema is None:
            damaged = "bad_parquet" if data[:4] == PARQUET else "bad_arrow"
            return [], _counted(artifact, iter([(1, Lost(1, damaged))]))
        names = [str(name) for name in schema.names]
        return names, _counted(artifact, packed_rows(data, wanted(names), longest, nested))
    head = head_of(data, source.artifact.path)
    if not head.looks_like_json:
        # A conversation is longer than a usual field; else a quote that nobody closes would swallow the rest.
        csv.field_size_limit(MAX_LINE_BYTES if nested else _LONGEST_FIELD)
        return header_of(head.text), _counted(artifact, csv_rows(data))
    names = list(next(iter(first_rows_of(head)), {}))
    begins = bytes(data[:HEAD_BYTES])
    is_document = begins.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].strip() == b"{" and b"\n{" not in begins
    if not is_list(data) and not is_document and not _is_wrapped(begins, names):
        return names, lines(data, artifact, _decode_row)
    return names, _listed(source, artifact)


def _is_wrapped(begins: bytes, names: list[str]) -> bool:
    """Return whether a file is `{"rows": [{"row": …}]}` or `{"data": [{…}]}`, which names the rows before any
    conversation."""
    rows = _ROWS.search(begins)
    first = re.search(rb'"(?:' + b"|".join(re.escape(name.encode()) for name in names) + rb')"\s*:', begins)
    return rows is not None and (first is None or not names or rows.start() < first.start())


def _listed(source: Input, artifact: Artifact) -> Iterator[tuple[int, Row]]:
    document = read_document(msgspec.structs.replace(source, artifact=artifact), _decode_document, "rows")
    raws = document or [] if not isinstance(document, _Document) else document.rows or document.data
    raws = raws if isinstance(raws, list) else []
    if isinstance(document, _Document) and not raws:
        raws = [Raw(bytes(source.data))]  # one row, printed over several lines
    artifact.records += len(raws) if document is not None else 0
    for number, raw in enumerate(raws, 1):
        wrapped = each([raw], _decode_wrapped, artifact)[0]
        (row,) = each([wrapped.row if wrapped is not None and wrapped.row else raw], _decode_row, artifact)
        yield number, Lost(1, "bad_shape") if row is None else row


def _counted(artifact: Artifact, rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    for at, row in rows:
        artifact.records += row.rows if isinstance(row, Lost) else 1
        yield at, row


def lose(artifact: Artifact, lost: Lost) -> None:
    """Count rows that could not be read."""
    artifact.skipped += lost.rows
    artifact.skipped_reasons[lost.reason] = artifact.skipped_reasons.get(lost.reason, 0) + lost.rows
