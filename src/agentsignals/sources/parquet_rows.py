"""Transcripts that lie in the rows of a Parquet file, a session a row: taken out once, kept as compressed files.

Two layouts are known, by what the columns hold and not by what they are called:

text      a column of JSON Lines or JSON documents (the Hub's viewer calls it `trace`)
messages  a column of lists of messages, each with a role (`messages`, `conversation` …): written as a conversation
          in the Hub's simple format (STS)

Tables are other people's: they are read a few rows at a time, and what is damaged or huge costs the rows of its group.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from agentsignals import private_files

PROBED_ROWS = 8
"""Rows that are read to find the column of transcripts."""
GROUP_BYTES_MAX = 4 * 1024**3
"""Decompressed bytes of the read columns in one row group. Rows of a larger group are counted, not read. A usual group
is a thirtieth of that or less (parquet.apache.org/docs/file-format/configurations)."""
_BATCH_ROWS = 64
_BATCH_BYTES = 64 * 1024 * 1024
"""Decompressed bytes at a time, with rows of their group's mean size."""
_READ_AHEAD_BYTES = 1024 * 1024
_NOTHING: tuple[object, ...] = (None, "", b"", [])
_INDEX = "table.json"
_IDS = ("session_id", "sessionId", "conversation_id", "trace_id", "id")
_SHORTEST_ID = 8
"""A shorter id names a row, not a session: two data sets would share it."""
_HARNESSES = ("harness", "agent")
_ROLES = ("role", "from")
_WORDS = ("content", "value", "text")


class Row(Struct, frozen=True):
    """A transcript with its row number and length."""

    n: int
    bytes: int
    session_id: str | None = None


class LostRows(Struct, frozen=True):
    """Consecutive rows from the `n`th on that could not be read."""

    n: int
    rows: int
    reason: str


class Transcripts(Struct):
    """The transcripts of a table. `has_column` says whether any column holds transcripts."""

    has_column: bool = False
    rows: list[Row] = []
    lost: list[LostRows] = []


class Layout(Struct, frozen=True):
    """The columns of a table that transcripts are read from."""

    column: str
    kind: str
    session_id: str | None
    harness: str | None
    model: str | None


def extract_transcripts(table: Path, folder: Path, again: bool = False) -> Transcripts:
    """Extract the transcripts of a table into files of a folder, once. `again`: some of them got lost.

    OSError or ValueError if the whole table is damaged or the disk refuses.
    """
    index = folder / _INDEX
    if again or not index.is_file():
        draft = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        private_files.make_folder(draft)
        try:
            private_files.write(draft / _INDEX, msgspec.json.encode(_written(table, draft)))
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return msgspec.json.decode(index.read_bytes(), type=Transcripts)


def row_path(folder: Path, n: int) -> Path:
    """Return the file of a row's transcript."""
    return folder / f"{n}.gz"


def _written(table: Path, folder: Path) -> Transcripts:
    try:
        file = pq.ParquetFile(table, buffer_size=_READ_AHEAD_BYTES, pre_buffer=False)
    except pa.ArrowException as problem:
        raise ValueError(str(problem)) from problem
    with file:
        # The layout is that of the first readable rows.
        lost: list[LostRows] = []
        layout = None
        for _, batch in _batches(file, None, PROBED_ROWS):
            if not isinstance(batch, LostRows):
                layout = _layout_of(batch)
                break
            lost.append(batch)
        if layout is None:
            return Transcripts(lost=lost)
        transcripts = Transcripts(has_column=True)
        for row in _rows(file, layout, folder):
            if isinstance(row, LostRows):
                transcripts.lost.append(row)
            else:
                transcripts.rows.append(row)
        return transcripts


def _rows(file: pq.ParquetFile, layout: Layout, folder: Path) -> Iterator[Row | LostRows]:
    wanted = [c for c in (layout.column, layout.session_id, layout.harness, layout.model) if c]
    for n, batch in _batches(file, list(dict.fromkeys(wanted)), _BATCH_ROWS):
        if isinstance(batch, LostRows):
            yield batch
            continue
        for at in range(batch.num_rows):
            row: dict[str, Any] = {}
            try:
                (row,) = batch.slice(at, 1).to_pylist()
                data = _text(row, layout, n + at).encode("utf-8", "replace")
            except (ValueError, TypeError, RecursionError, OverflowError):
                data = b""
            if data or not row or row[layout.column] not in _NOTHING:  # an empty file stands for an odd row: counted
                private_files.write(row_path(folder, n + at), gzip.compress(data, 1, mtime=0))
                yield Row(n + at, len(data), _id(row, layout))


def _batches(
    file: pq.ParquetFile, columns: list[str] | None, most_rows: int
) -> Iterator[tuple[int, pa.RecordBatch | LostRows]]:
    """Yield batches with the number of their first row, and LostRows for the rest of a damaged or too large group."""
    first = 0
    for group in range(file.metadata.num_row_groups):
        about = file.metadata.row_group(group)
        at, stop = first, first + about.num_rows
        first = stop
        inside = [about.column(n) for n in range(about.num_columns)]
        if columns is not None:
            inside = [c for c in inside if any(f"{c.path_in_schema}.".startswith(f"{name}.") for name in columns)]
        size = sum(c.total_uncompressed_size for c in inside)
        if size > GROUP_BYTES_MAX:
            yield at, LostRows(at, stop - at, "row_group_too_large")
            continue
        rows = max(1, min(most_rows, about.num_rows * _BATCH_BYTES // max(1, size)))
        try:
            for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=columns):
                yield at, batch
                at += batch.num_rows
        except (pa.ArrowException, OSError):  # reading fails with either; what is written fails outside of this
            yield at, LostRows(at, stop - at, "bad_parquet")


def _layout_of(head: pa.RecordBatch) -> Layout | None:
    """Return the largest column in which all rows are transcripts."""
    best: tuple[int, str, str] | None = None
    for name in head.schema.names:
        try:
            values = [v for v in head.column(name).to_pylist() if v is not None and v not in ("", b"")]
        except (ValueError, OverflowError):  # text that is no UTF-8, a date beyond all calendars
            continue
        kind = "messages" if all(map(_messages, values)) else "text" if all(map(_is_records, values)) else None
        if values and kind is not None:
            size = (sum(len(_as_text(v)) for v in values), name, kind)
            best = max(best, size) if best is not None else size
    if best is None:
        return None
    strings = [f.name for f in head.schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    named = {k: next((n for n in names if n in strings and n != best[1]), None) for k, names in _NAMED.items()}
    return Layout(best[1], best[2], named["session_id"], named["harness"], named["model"])


_NAMED = {"session_id": _IDS, "harness": _HARNESSES, "model": ("model",)}


def _is_records(value: Any) -> bool:
    """Return whether a value is JSON Lines of objects with a type, or one long JSON object."""
    text = _as_text(value) if isinstance(value, str | bytes) else ""
    first = text.lstrip("\ufeff \t\r\n").split("\n", 1)[0].strip()
    try:
        parsed = json.loads(first)
    except (ValueError, RecursionError):
        return first == "{" and text.rstrip().endswith("}")
    return isinstance(parsed, dict) and any(k in parsed for k in _SAYS_WHAT)


_SAYS_WHAT = ("type", "role", "steps", "messages", "trajectory", "schema_version", "sessionId", "info")


def _messages(value: Any) -> list[dict[str, Any]]:
    """Return the messages of a list, or of its JSON text; none if it is something else."""
    if isinstance(value, str | bytes) and _as_text(value).lstrip()[:1] == "[":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    if not isinstance(value, list) or not value:
        return []
    messages: list[dict[str, Any]] = []
    for item in value:
        message = item
        if isinstance(item, str):  # the Hub's JSON columns hold the text of an object
            with suppress(ValueError, RecursionError):
                message = json.loads(item)
        if not isinstance(message, dict) or not any(role in message for role in _ROLES):
            return []
        messages.append(message)
    return messages


def _text(row: dict[str, Any], layout: Layout, n: int) -> str:
    value = row[layout.column]
    if value is None:
        return ""
    if layout.kind == "text":
        return _as_text(value)
    messages = _messages(value)
    if not messages:
        return ""
    header = {"type": "session", "harness": _word(row.get(layout.harness or "")) or "unknown", "id": _id(row, layout)}
    model = _word(row.get(layout.model or ""))
    lines = [_without_nones(header), *({"type": "message", "message": _message(m, model)} for m in messages)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


_SAME_ROLE = {"human": "user", "gpt": "assistant", "function": "tool", "observation": "tool", "developer": "system"}


def _message(message: dict[str, Any], model: str | None) -> dict[str, Any]:
    role = str(next((message[r] for r in _ROLES if message.get(r)), ""))
    role = _SAME_ROLE.get(role, role)
    words = next((message[w] for w in _WORDS if message.get(w)), "")
    calls = []
    for call in message.get("tool_calls") or message.get("toolCalls") or ():
        if isinstance(call, dict):
            function = call["function"] if isinstance(call.get("function"), dict) else call
            given = function.get("arguments")
            arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
            called = {"name": str(function.get("name") or ""), "arguments": arguments}
            calls.append({"id": _word(call.get("id")) or "", "function": called})
    return _without_nones(
        {
            "role": role,
            "content": words if isinstance(words, str | list) else json.dumps(words, ensure_ascii=False),
            "reasoningContent": _word(message.get("reasoning_content") or message.get("reasoningContent")),
            "toolCalls": calls or None,
            "toolCallId": _word(message.get("tool_call_id") or message.get("toolCallId")),
            "timestamp": message.get("timestamp"),
            "model": (_word(message.get("model")) or model) if role == "assistant" else None,
        }
    )


def _without_nones(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if v is not None}


def _id(row: dict[str, Any], layout: Layout) -> str | None:
    session_id = _word(row.get(layout.session_id or ""))
    return session_id if session_id is not None and len(session_id) >= _SHORTEST_ID else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
