"""A shard on disk: a folder of Parquet files, one a table, there whole or not at all."""

from __future__ import annotations

import io
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.model import Absent, Attempt, Checkpoint, Edit, Event, Label, Session, Step, ToolCall, Turn
from agentsignals.signals.catalog import Result
from agentsignals.store import disk, parquet, sidecars, tables
from agentsignals.store.disk import StoredFile
from agentsignals.store.index import FIGURES, GONE_FILE, RETIRED, Manifest, SessionEntry, ShardEntry
from agentsignals.store.parquet import SignalRows, signal_table
from agentsignals.store.tables import AttemptRow
from agentsignals.views.usage import session_bill

if TYPE_CHECKING:
    from agentsignals.store import Store

FOLDER = "shards"
DRAFT = ".tmp-"
"""Prefix of folders that are still being written."""
_TEXTS = frozenset(("text", "arguments", "command", "value", "detail", "facts"))
_VALUE = ["session_id", "signal", "value", "absent", "absent_detail"]
_FOUND_BY = ["session_id", "artifact_id", "signal"]
_ROW_GROUP = 131_072
AT_ONCE = 32_768
"""Rows in memory at once, where files are combined."""
_PIECE_ROWS = 2_048
"""Rows of a long session in memory at once, as columns."""
_FEW = 8
"""More sessions are written together, else each would be a row group of its own."""
_LEVEL = 1
"""zstd level: over this corpus level 3 takes 1.3 times as long for 10 % fewer bytes (docs/decisions/003)."""


class ShardRows(Struct):
    tables: dict[str, pa.Table]
    counted: list[dict[str, Any]]
    """Counted columns of the sessions, in their order."""
    pieces: Iterable[tuple[str, pa.Table]] = ()
    """Tables of long sessions, some rows at a time: as objects, as columns and as bytes at once they would take several
    times the memory."""


def shard_rows(sessions: list[Session], rows: Sequence[SignalRows], attempts: list[AttemptRow]) -> ShardRows:
    """Return sessions with their values as rows of the tables."""
    counted = [tables.totals(s) for s in sessions]
    made = {"sessions": parquet.session_table(sessions, counted)}
    pieces: Iterable[tuple[str, pa.Table]] = ()
    if sum(len(session.events) for session in sessions) > AT_ONCE and len(sessions) <= _FEW:
        for _ in _pieces(sessions):  # what can't be a row is found before anything is written
            pass
        pieces = _pieces(sessions)
    else:
        made |= {table.name: parquet.child_table(table, sessions) for table in tables.TABLES.values()}
    bills = []
    for session, figures in zip(sessions, counted, strict=True):
        is_subagents = session.parent_session_id is not None and figures["n_prompts"] == 0
        bills.append(session_bill(session, is_priced=figures["cost_usd"] is not None, is_subagents=is_subagents))
    for table, of in ((tables.CHARGES, "charges"), (tables.REPEATED_CALLS, "repeats"), (tables.CACHE_LOSSES, "losses")):
        made[table.name] = parquet.plain_table(table, [row for bill in bills for row in getattr(bill, of)])
    made["attempts"] = parquet.plain_table(tables.ATTEMPTS, attempts)
    made["signals"] = signal_table(rows)
    return ShardRows(made, counted, pieces)


def _pieces(sessions: list[Session]) -> Iterator[tuple[str, pa.Table]]:
    for table in tables.TABLES.values():
        for session in sessions:
            rows = table.rows(session) if table.rows else []
            for at in range(0, max(len(rows), 1), _PIECE_ROWS):
                part = rows[at : at + _PIECE_ROWS]
                yield table.name, parquet.labelled_rows_table(table, [session.session_id] * len(part), part)


def live_rows(rows: pa.Table, table: str, entry: ShardEntry) -> pa.Table:
    """Return the rows of a shard's table without those of sessions and artifacts that left it."""
    column, gone = ("artifact_id", entry.gone_artifacts) if table == "artifacts" else ("session_id", entry.gone)
    return parquet.without_values(rows, column, gone) if gone else rows


def copy_with_values(  # noqa: PLR0913  (one call, in `pipeline`: a shard, its copy, and the copy's values)
    root: Path,
    name: str,
    new_name: str,
    parts: dict[str, StoredFile],
    rows: Sequence[SignalRows],
    attempts: list[AttemptRow],
) -> dict[str, StoredFile]:
    """Copy a shard under another name with other values. Its other tables are hard links to the same files."""
    with Draft(root, new_name) as draft:
        for table, part in parts.items():
            if table.partition(".")[0] not in ("signals", "attempts"):
                draft.share(root / FOLDER / name / f"{table}.parquet", table, part)
        draft.add({"attempts": parquet.plain_table(tables.ATTEMPTS, attempts)})
        draft.add({"signals": signal_table(rows)})
    return draft.parts


MOST_FILES = 4
"""Files of a shard's values: whoever asks for values that none of so many holds gets all in one file with theirs."""


def add_values(root: Path, name: str, tables: dict[str, StoredFile], rows: Sequence[SignalRows]) -> None:
    """Write values of a shard's sessions into a further file, and note it among its tables. A file of that name that is
    not among them is of a run that was killed."""
    table = f"signals.{sum(held.partition('.')[0] == 'signals' for held in tables) + 1}"
    values = signal_table(rows)
    path, data = root / FOLDER / name / f"{table}.parquet", parquet.encode(values, **_layout(values.schema))
    try:
        disk.write_atomically(path, data)
        tables[table] = parquet.stored_file(path, data, values.num_rows)
    except OSError as problem:
        raise disk.cannot_write(root, problem) from problem


def write_corpus_values(root: Path, file: str, parts: Iterable[pa.Table]) -> StoredFile:
    """Write values across sessions under an unused name."""
    schema, rows = parquet.SCHEMAS["signals"], 0
    sink = pa.BufferOutputStream()
    writer = parquet.parquet_writer(sink, schema, **_layout(schema))
    for table in combine_batches(parts):
        writer.write_table(table)
        rows += table.num_rows
    writer.close()
    data = memoryview(sink.getvalue())
    try:
        disk.write_atomically(root / file, data)
        return parquet.stored_file(root / file, data, rows, file)
    except OSError as problem:
        raise disk.cannot_write(root, problem) from problem


def combine_batches(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine tables until they have as many rows as a row group."""
    waiting: list[pa.Table] = []
    n = 0
    for table in parts:
        waiting.append(table)
        n += table.num_rows
        if n >= AT_ONCE:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting, n = [], 0
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def read_table(root: Path, name: str, table: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    return list(parquet.read(root / FOLDER / name / f"{table}.parquet", columns).to_pylist())


def read_header(
    root: Path, name: str, columns: list[str], only: set[str] | None = None, gone: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return some columns of a shard's sessions but for those `gone`, or of `only` these; times in microseconds.
    `session_id` must be among the columns."""
    table = parquet.read(root / FOLDER / name / "sessions.parquet", columns)
    if gone:
        table = parquet.without_values(table, "session_id", gone)
    if only is not None:
        table = parquet.filter_rows(table, parquet.is_in(table["session_id"], sorted(only)))
    return list(parquet.rows_of(table))


def read_values(
    files: Iterable[Path], paths: set[str], only: set[str] | None = None
) -> Iterator[tuple[str, str, str | None, str | None, str | None]]:
    """Yield session-level values of these signals in the files of a shard, of all its sessions or `only` these:
    session, signal, value as JSON, reason and detail of an absent one."""
    for path in files:
        for table in parquet.read_batches(path, [*_VALUE, "turn"], ["session_id", "signal"]):
            kept = parquet.logical_and(parquet.is_null(table["turn"]), parquet.is_in(table["signal"], sorted(paths)))
            if only is not None:
                kept = parquet.logical_and(kept, parquet.is_in(table["session_id"], sorted(only)))
            rows = parquet.filter_rows(table.select(_VALUE), kept)
            plain = (parquet.cast(rows[name], pa.string()) for name in _VALUE)  # a dictionary's are Python's one by one
            yield from zip(*(column.to_pylist() for column in plain), strict=True)


def first_prompts(root: Path, name: str, gone: Collection[str] = ()) -> dict[str, str]:
    """Return the first human turn of each session of a shard that has one, but for those `gone`."""
    prompts: dict[str, str] = {}
    for turns in parquet.read_batches(root / FOLDER / name / "turns.parquet", ["session_id", "turn", "text"]):
        first = parquet.filter_rows(turns, parquet.equals(turns["turn"], 0))
        prompts.update(zip(first["session_id"].to_pylist(), first["text"].to_pylist(), strict=True))
    for session_id in gone:
        prompts.pop(session_id, None)
    return prompts


def read_sessions(root: Path, name: str, only: str | None = None, gone: Collection[str] = ()) -> Iterator[Session]:
    """Yield the sessions of a shard but for those `gone`, or the one of that id, with all their rows and the labels
    made here. StoreError, at once, when a table can't be read."""
    rows: dict[str, dict[str, list[Any]]] = {}
    folder = root / FOLDER / name
    for table in tables.TABLES.values():
        struct = _STRUCTS[table.name]
        by_session: dict[str, list[Any]] = {}
        path = folder / f"{table.name}.parquet"
        try:
            for row in parquet.read_rows(path, only=only):
                session_id = row.pop("session_id")
                by_session.setdefault(session_id, []).append(msgspec.convert(row, struct, strict=False))
        except msgspec.ValidationError as problem:  # of an older version, or of nobody's
            raise parquet.unreadable(path, problem) from problem
        rows[table.name] = by_session
    facts = parquet.read(folder / "attempts.parquet", ["session_id", "facts"], only).to_pylist()
    attempts = {r["session_id"]: msgspec.json.decode(r["facts"], type=Attempt) for r in facts}
    left = frozenset(gone)
    heads = [row for row in parquet.read_rows(folder / "sessions.parquet", only=only) if row["session_id"] not in left]
    labels = sidecars.read_labels(root, only)
    header = {f.name for f in msgspec.structs.fields(Session)} - set(tables.TABLES)

    def sessions() -> Iterator[Session]:
        for row in heads:
            session_id = row["session_id"]
            session_facts: dict[str, Any] = {k: v for k, v in row.items() if k in header and v is not None}
            parts = {t: by.get(session_id, []) for t, by in rows.items()}
            parts["labels"] += labels.get(session_id, [])
            yield Session(**session_facts | parts | {"attempt": attempts.get(session_id)})

    return sessions()


_STRUCTS: dict[str, Any] = {
    "turns": Turn,
    "steps": Step,
    "events": Event,
    "tool_calls": ToolCall,
    "edits": Edit,
    "checkpoints": Checkpoint,
    "labels": Label,
}


_EVIDENCE = ("agent_started", "agent_acted", "verifier_started", "tests_passed", "tests_failed")
"""Details of `verification.outcome` that are columns."""


def attempt_rows(session: Session, results: list[Result]) -> list[AttemptRow]:
    """Return the row of an eval session in the table `attempts`; none for any other session."""
    attempt = session.attempt
    if attempt is None:
        return []
    values = {r.signal.name: r.value for r in results if r.turn is None and type(r.value) is not Absent}
    cap = values.get("attempt1_tool_cap" if attempt.attempt_index == 0 else "retry_tool_cap")
    judged = next((r.detail for r in results if r.signal.name == "outcome" and r.turn is None and r.detail), {})
    columns: dict[str, Any] = {
        **values,
        "reward": values.get("reward"),  # what was recorded and judges nothing is in `facts` alone
        "outcome_reason": judged.get("reason"),
        "outcome_shown_by": judged.get("shown_by"),
        **{name: judged.get(name) for name in _EVIDENCE},
        "effective_tool_cap": cap,
        "session_id": session.session_id,
        "knobs": msgspec.json.encode(attempt.knobs).decode(),
        "facts": msgspec.json.encode(attempt).decode(),
        "harness_input_tokens": attempt.input_tokens,
        "harness_output_tokens": attempt.output_tokens,
        "harness_cache_read_tokens": attempt.cache_read_tokens,
        "harness_cost_usd": attempt.cost_usd,
        "harness_other_input_tokens": attempt.other_input_tokens,
        "harness_other_output_tokens": attempt.other_output_tokens,
        "harness_other_cost_usd": attempt.other_cost_usd,
    }
    row: dict[str, Any] = {
        n: columns[n] if n in columns else getattr(attempt, n, None) for n in AttemptRow.__struct_fields__
    }
    return [AttemptRow(**row)]


def _layout(schema: pa.Schema) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": _LEVEL,
        "use_dictionary": [f.name for f in schema if f.type == pa.string() and f.name not in _TEXTS],
        "write_statistics": _FOUND_BY,  # what a reader skips row groups by; the rest is never asked for
    }


class Draft:
    """A shard's folder under a temporary name, written at once or session by session.

    When all is in it, it is flushed to the disk and renamed. Disk errors become StoreErrors.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._target = root, root / FOLDER / name
        self._folder = root / FOLDER / f"{DRAFT}{name}-{os.getpid()}"
        self._writers: dict[str, tuple[Any, _MarkedFile]] = {}
        self._rows: Counter[str] = Counter()
        self.parts: dict[str, StoredFile] = {}
        """The marks of the tables, when the draft is finished."""

    def add(self, made: dict[str, pa.Table]) -> None:
        """Append rows to tables."""
        for name, table in made.items():
            if name not in self._writers:
                file = _MarkedFile(self._folder / f"{name}.parquet")
                self._writers[name] = (parquet.parquet_writer(file, table.schema, **_layout(table.schema)), file)
            self._writers[name][0].write_table(table, _ROW_GROUP)
            self._rows[name] += table.num_rows

    def share(self, path: Path, table: str, part: StoredFile) -> None:
        """Take over a table of another shard unchanged."""
        target = self._folder / f"{table}.parquet"
        try:
            os.link(path, target)
        except OSError:  # a file system without links
            private_files.create(target)
            shutil.copyfile(path, target)
            copied = path.stat()
            os.utime(target, ns=(copied.st_atime_ns, copied.st_mtime_ns))
        self.parts[table] = part

    def __enter__(self) -> Draft:
        try:
            private_files.make_folder(self._folder)
        except OSError as problem:
            raise disk.cannot_write(self._root, problem) from problem
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        try:
            if problem is None:
                for name, (writer, file) in self._writers.items():
                    writer.close()
                    file.close()
                    stamp = (self._folder / f"{name}.parquet").stat().st_mtime_ns
                    self.parts[name] = StoredFile(file.length, self._rows[name], file.digest.hexdigest(), stamp)
                disk.flush([*self._folder.iterdir(), self._folder])
                if self._target.exists():  # a worker wrote it and died before it could say so: no index names it
                    shutil.rmtree(self._target)
                self._folder.rename(self._target)
                disk.flush([self._target.parent])
                return
        except OSError as refused:
            problem = refused
        for writer, file in self._writers.values():
            with suppress(OSError, ValueError, pa.ArrowException):  # what went wrong first is raised
                writer.close()
            with suppress(OSError):
                file.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(problem, OSError):
            raise disk.cannot_write(self._root, problem) from problem


class _MarkedFile(io.FileIO):
    """A new file that hashes and counts what is written to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb", opener=private_files.opener)
        self.length = 0
        self.digest = disk.Digest()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        at = 0
        while at < len(view):
            at += super().write(view[at:]) or 0
        self.digest.update(view)
        self.length += at
        return at


_LATER = ("visible_output_tokens", "n_prompts")
"""Columns that shards of older versions lack."""
_FIGURES = ("context", *(name for name in FIGURES if name not in _LATER))


def rebuild_index(root: Path) -> Manifest:
    """Rebuild the index from the shards; each table is read once to see that it is intact.

    A session found in two shards is of the younger, which was written last. Files are forgotten, so that the next run
    reads them again.
    """
    made = Manifest()
    folders = [p for p in (root / FOLDER).iterdir() if p.is_dir() and not p.name.startswith(DRAFT)]
    made.run = max((run_number(p.name) for p in folders), default=0)
    known_artifacts: set[str] = set()
    for folder in sorted(folders, key=lambda p: (-run_number(p.name), -p.stat().st_mtime_ns, p.name)):
        if (folder / RETIRED).exists():
            continue
        later = sorted(path.stem for path in folder.glob("signals.*.parquet"))
        name, parts = (
            folder.name,
            {table: parquet.examine(folder / f"{table}.parquet") for table in (*tables.NAMES, *later)},
        )
        rows = _rows(root, name, "sessions", ["session_id", *_FIGURES], parts)
        versions = {
            row["signal"]: row["version"]
            for table in ("signals", *later)
            for row in _rows(root, name, table, ["signal", "version"], parts)
        }
        newer = {
            column: dict(
                map(itemgetter("session_id", column), _rows(root, name, "sessions", ["session_id", column], {**parts}))
            )
            for column in _LATER
        }
        gone, gone_artifacts = set[str](), set[str]()
        with suppress(OSError, msgspec.DecodeError):  # none; or lost: a session is then that of the younger shard
            told = msgspec.json.decode((folder / GONE_FILE).read_bytes(), type=tuple[set[str], set[str]])
            gone, gone_artifacts = told
        artifacts = {r["artifact_id"] for r in _rows(root, name, "artifacts", ["artifact_id"], parts)}
        gone |= {r["session_id"] for r in rows} & set(made.sessions)
        if rows and gone.issuperset(r["session_id"] for r in rows):
            continue
        made.shards[name] = ShardEntry(
            signals=versions,
            tables=parts,
            gone=sorted(gone),
            gone_artifacts=sorted(gone_artifacts | (artifacts & known_artifacts)),
        )
        known_artifacts |= artifacts
        for row in rows:
            if row["session_id"] not in gone:
                figures = {k: row[k] for k in _FIGURES}
                figures |= {column: values.get(row["session_id"]) for column, values in newer.items()}
                group = f"session:{row['session_id']}"
                made.sessions[row["session_id"]] = SessionEntry(shard=name, group=group, **figures)
    for kind in ("places", "signals"):
        values = [(p, int(p.suffixes[0][1:])) for p in root.glob(f"{kind}.*.parquet") if p.suffixes[0][1:].isdigit()]
        if values:
            path, number = max(values, key=lambda pair: pair[1])
            file, made.run = parquet.examine(path, path.name), max(made.run, number)
            if kind == "places":
                made.places = file
            else:
                made.across = file
    return made


def run_number(name: str) -> int:
    """Return the run that wrote a shard, by its name."""
    number = name.partition("-")[0]
    return int(number) if number.isdigit() and len(number) < 10 else 0


def _rows(root: Path, name: str, table: str, columns: list[str], parts: dict[str, StoredFile]) -> list[dict[str, Any]]:
    """Rows of a table, none of one that is damaged or lacks these columns."""
    if parts[table].digest:
        try:
            return read_table(root, name, table, columns)
        except StoreError:
            parts[table] = StoredFile(0, 0, "", 0)
    return []


# Compaction: small shards are merged, so that a store that is updated after every prompt keeps few of them. They are
# in tiers by number of sessions: up to `FEW`, up to its square. `FEW` shards of a tier become one of the next, and
# larger ones stay. So a store has fewer than `FEW` shards a tier besides the large ones, and a session is copied once a
# tier.

FEW = 16
LARGE_BYTES = 1 << 20
"""Size from which a shard is left alone: 64 MB of traces make one to three."""
LARGE_SESSIONS = FEW * FEW
"""Sessions from which a shard is left alone, however small: it is read whole, at some 45 KB a session."""


def compact(store: Store) -> int:
    """Merge small shards where there are many, commit, and return how many were merged. Call it only while no worker
    writes."""
    went = 0
    for group in _small_shards(store):
        store.rewrite(*group)
        store.manifest.shards_changed()
        store.commit()
        went += len(group)
    whole = set(store.readable_shards())
    for name, entry in list(store.manifest.shards.items()):
        if name in whole and entry.gone and len(entry.gone) >= entry.n_sessions:
            store.rewrite(name)
            store.manifest.shards_changed()
            store.commit()
    return went


def merge(root: Path, entries: dict[str, ShardEntry], new_name: str, is_emptied: bool = False) -> ShardEntry:
    """Write the rows of shards into one under another name, without the sessions and artifacts that left them, and with
    the values that all of them have: others are computed when somebody asks. Return its entry.

    A damaged table is not read but keeps its index entry, so that it is missed there as well; except where no session
    is left (`is_emptied`) that could miss it.
    """
    signals = dict(sorted(set.intersection(*(set(entry.signals.items()) for entry in entries.values()))))
    with Draft(root, new_name) as draft:
        for table in tables.NAMES:
            sound: list[tuple[Path, ShardEntry]] = []
            for name, entry in entries.items():
                for held in (held for held in sorted(entry.tables) if held.partition(".")[0] == table):
                    path = root / FOLDER / name / f"{held}.parquet"
                    if not disk.what_is_wrong(str(path), entry.tables[held]):
                        sound.append((path, entry))
                    elif is_emptied and table != "artifacts":
                        draft.add({table: parquet.SCHEMAS[table].empty_table()})
                    else:
                        draft.parts[held] = entry.tables[held]
            batches = (live_rows(rows, table, entry) for path, entry in sound for rows in parquet.read_batches(path))
            if table == "signals":
                batches = (parquet.filter_rows(rows, parquet.is_in(rows["signal"], signals)) for rows in batches)
            for rows in combine_batches(parquet.with_current_columns(rows, parquet.SCHEMAS[table]) for rows in batches):
                draft.add({table: rows})
    errors: Counter[str] = Counter()
    for entry in entries.values():
        errors.update(entry.internal_errors)
    facts = {"signals": signals, "tables": draft.parts, "gone": [], "gone_artifacts": []}
    return msgspec.structs.replace(next(iter(entries.values())), internal_errors=dict(errors), **facts)


def _small_shards(store: Store) -> Iterator[list[str]]:
    """Small shards of one tier whose values were computed alike, in order of name."""
    tiers: dict[object, list[str]] = defaultdict(list)
    for name in store.readable_shards():
        entry = store.manifest.shards[name]
        n_bytes, sessions = sum(part.bytes for part in entry.tables.values()), entry.n_sessions
        if n_bytes < LARGE_BYTES and sessions < LARGE_SESSIONS:
            tier = 0
            while sessions >= FEW:
                tier, sessions = tier + 1, sessions // FEW
            tiers[tier, entry.embedder, entry.labels].append(name)
    for names in tiers.values():
        for at in range(0, len(names) - FEW + 1, FEW):
            yield names[at : at + FEW]
