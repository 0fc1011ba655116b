"""A shard on disk: a folder of Parquet files, one a table, there whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from agentsignals.catalog import Result
from agentsignals.errors import StoreError
from agentsignals.model import Absent, Artifact, Checkpoint, Edit, Event, Label, Session, Step, ToolCall, Turn
from agentsignals.model.attempt import Attempt
from agentsignals.store import labels, tables
from agentsignals.store.tables import AttemptRow, SignalRow

FOLDER = "shards"
_TEXTS = frozenset(("text", "arguments", "command", "value", "detail", "facts"))
_FOUND_BY = ["session_id", "artifact_id", "signal"]
_NUMBERS = frozenset((bool, int, float))
_OF_A_SESSION = frozenset(("session", "attempt", "region"))
_LEVEL = 1
"""zstd level: over this corpus 3 takes 1.3 times as long for 10 % fewer bytes (docs/decisions/003)."""


def write(  # noqa: PLR0913  (one call, in `ingest.shard`: all that a shard is made of)
    root: Path,
    name: str,
    sessions: list[Session],
    artifacts: list[Artifact],
    rows: list[SignalRow],
    attempts: list[AttemptRow],
) -> list[dict[str, Any]]:
    """Writes a shard under a temporary name and renames it; gives the counted columns of its sessions."""
    counted = [tables.totals(s) for s in sessions]
    draft = root / FOLDER / f".tmp-{name}-{os.getpid()}"
    with _writing(root):
        draft.mkdir(parents=True, exist_ok=True)
        try:
            _save(draft, "artifacts", tables.plain_table(tables.ARTIFACTS, artifacts))
            _save(draft, "sessions", tables.session_table(sessions, counted))
            for table in tables.TABLES.values():
                _save(draft, table.name, tables.table_of(table, sessions))
            _save(draft, "attempts", tables.plain_table(tables.ATTEMPTS, attempts))
            _save(draft, "signals", tables.plain_table(tables.SIGNALS, rows))
            _into_place(draft, root / FOLDER / name)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return counted


def without(root: Path, name: str, new_name: str, gone: set[str], gone_artifacts: set[str]) -> None:
    """A copy of a shard under another name, without some sessions and artifacts."""
    draft = root / FOLDER / f".tmp-{new_name}-{os.getpid()}"
    with _writing(root):
        draft.mkdir(parents=True, exist_ok=True)
        for table in tables.NAMES:
            found = pq.read_table(root / FOLDER / name / f"{table}.parquet")
            column, values = ("artifact_id", gone_artifacts) if table == "artifacts" else ("session_id", gone)
            kept = [v not in values for v in found.column(column).to_pylist()]
            _save(draft, table, found.filter(pa.array(kept, pa.bool_())))
        _into_place(draft, root / FOLDER / new_name)


def remove(root: Path, name: str) -> None:
    """Deletes a shard that nothing refers to any more."""
    shutil.rmtree(root / FOLDER / name, ignore_errors=True)


def write_signals(folder: Path, rows: list[SignalRow], attempts: list[AttemptRow] | None = None) -> None:
    """Replaces a shard's values (or the store's values across sessions), each table in one rename."""
    _replace(folder, "signals", tables.plain_table(tables.SIGNALS, rows))
    if attempts is not None:
        _replace(folder, "attempts", tables.plain_table(tables.ATTEMPTS, attempts))


def _replace(folder: Path, name: str, table: pa.Table) -> None:
    with _writing(folder.parent):
        draft = folder / f".{name}.{os.getpid()}.parquet"
        pq.write_table(table, draft, compression="zstd", compression_level=_LEVEL)
        draft.replace(folder / f"{name}.parquet")


def read_table(root: Path, name: str, table: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """The rows of one table of one shard."""
    path = root / FOLDER / name / f"{table}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            return list(file.read(columns).to_pylist())
    except (OSError, pa.ArrowInvalid) as problem:
        raise StoreError(f"{path} can't be read: {problem}.", "Delete the store and analyze again.") from problem


def read_header(root: Path, name: str, columns: list[str]) -> list[dict[str, Any]]:
    """Some columns of a shard's sessions, times in microseconds."""
    return list(_as_ints(pq.read_table(root / FOLDER / name / "sessions.parquet", columns=columns)))


def read_values(root: Path, name: str, paths: set[str]) -> list[dict[str, Any]]:
    """The session-level values of a shard, of these signals."""
    columns = ["session_id", "turn", "signal", "value", "absent", "absent_detail"]
    return [r for r in read_table(root, name, "signals", columns) if r["turn"] is None and r["signal"] in paths]


def first_prompts(root: Path, name: str) -> dict[str, str]:
    """The first human turn of each session of a shard that has one."""
    rows = read_table(root, name, "turns", ["session_id", "turn", "text"])
    return {r["session_id"]: r["text"] for r in rows if r["turn"] == 0}


def read_sessions(root: Path, name: str, only: str | None = None) -> Iterator[Session]:
    """The sessions of a shard, with all their rows and the labels made here; or the one of that id."""
    where = [("session_id", "=", only)] if only is not None else None
    rows: dict[str, dict[str, list[Any]]] = {}
    folder = root / FOLDER / name
    for table in tables.TABLES.values():
        struct = _STRUCTS[table.name]
        by_session: dict[str, list[Any]] = {}
        for row in _as_ints(pq.read_table(folder / f"{table.name}.parquet", filters=where)):
            session_id = row.pop("session_id")
            by_session.setdefault(session_id, []).append(msgspec.convert(row, struct, strict=False))
        rows[table.name] = by_session
    made_here = labels.read(root, only)
    header = {f.name for f in msgspec.structs.fields(Session)} - set(tables.TABLES)
    known = pq.read_table(folder / "attempts.parquet", columns=["session_id", "facts"], filters=where).to_pylist()
    attempts = {r["session_id"]: msgspec.json.decode(r["facts"], type=Attempt) for r in known}
    for row in _as_ints(pq.read_table(folder / "sessions.parquet", filters=where)):
        session_id = row["session_id"]
        facts: dict[str, Any] = {k: v for k, v in row.items() if k in header}
        own = {t: by.get(session_id, []) for t, by in rows.items()}
        own["labels"] += made_here.get(session_id, [])
        yield Session(**facts | own | {"attempt": attempts.get(session_id)})


def read_rows(path: Path, where: Any = None) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, times in microseconds. `where` as pyarrow's filters."""
    try:
        yield from _as_ints(pq.read_table(path, filters=where))
    except (OSError, pa.ArrowInvalid) as problem:
        raise StoreError(f"{path} can't be read: {problem}.", "Delete it and label again.") from problem


def _as_ints(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows with times as the model has them: microseconds."""
    for n, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(n, column.name, table.column(n).cast(pa.int64()))
    yield from table.to_pylist()


_STRUCTS: dict[str, Any] = {
    "turns": Turn,
    "steps": Step,
    "events": Event,
    "tool_calls": ToolCall,
    "edits": Edit,
    "checkpoints": Checkpoint,
    "labels": Label,
}


def signal_rows(session: Session | None, results: list[Result]) -> list[SignalRow]:
    """Computed values in the long form: of a session, of an eval run's attempt, or (None) of the whole store."""
    encode = msgspec.json.encode
    attempt = session.attempt if session is not None else None
    whole = "attempt" if attempt is not None else "session"
    trial_id = attempt.trial_id if attempt is not None else None
    index = attempt.attempt_index if attempt is not None else None
    session_id = session.session_id if session is not None else None
    rows: list[SignalRow] = []
    for result in results:
        one, value = result.signal, result.value
        level = whole if one.level in _OF_A_SESSION else one.level
        absent = type(value) is Absent
        rows.append(
            SignalRow(
                "turn" if result.turn is not None else level,
                session_id,
                trial_id,
                index,
                result.turn,
                one.path,
                None if absent else encode(value).decode(),
                float(value) if type(value) in _NUMBERS else None,
                value.reason if absent else None,
                (value.detail or None) if absent else None,
                one.version,
                encode(result.detail).decode() if result.detail else None,
            )
        )
    return rows


def attempt_rows(session: Session, results: list[Result]) -> list[AttemptRow]:
    """The row of an eval session in the table of attempts; none for any other session."""
    attempt = session.attempt
    if attempt is None:
        return []
    values = {r.signal.name: r.value for r in results if r.turn is None and type(r.value) is not Absent}
    cap = values.get("attempt1_tool_cap" if attempt.attempt_index == 0 else "retry_tool_cap")
    known: dict[str, Any] = {
        **values,
        "effective_tool_cap": cap,
        "session_id": session.session_id,
        "knobs": msgspec.json.encode(attempt.knobs).decode(),
        "facts": msgspec.json.encode(attempt).decode(),
        "harness_input_tokens": attempt.input_tokens,
        "harness_output_tokens": attempt.output_tokens,
        "harness_cache_read_tokens": attempt.cache_read_tokens,
        "harness_cost_usd": attempt.cost_usd,
    }
    row: dict[str, Any] = {
        n: known[n] if n in known else getattr(attempt, n, None) for n in AttemptRow.__struct_fields__
    }
    return [AttemptRow(**row)]


def _save(folder: Path, name: str, table: pa.Table) -> None:
    coded = [f.name for f in table.schema if f.type == pa.string() and f.name not in _TEXTS]
    pq.write_table(
        table,
        folder / f"{name}.parquet",
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=coded,
        write_statistics=_FOUND_BY,  # what a reader skips row groups by; the rest is never asked for
        row_group_size=131_072,
    )


def _into_place(draft: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    draft.rename(target)


class _writing:  # noqa: N801  (reads as a phrase: `with _writing(root)`)
    """Says what happened to the disk as a StoreError, whoever noticed it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, OSError):
            said = problem.strerror or str(problem)
            raise StoreError(
                f"The store {self._root} can't be written: {said}.",
                "Free some space, or name another folder with --store.",
            ) from problem
