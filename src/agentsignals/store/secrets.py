"""Input of masking: secrets found in a store's texts, and the key of this machine's pseudonyms.

Secrets are collected so that each is masked wherever it occurs without its context.

A pass over all texts is slow, so the store keeps which rows give a secret away, never the secret: a later run reads
only these rows again. The file can be thrown away.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from secrets import token_bytes, token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.model.lazy import without_threads
from agentsignals.redaction import Redactor
from agentsignals.redaction.personal import KEY_BYTES
from agentsignals.redaction.values import KnownSecrets, is_searched
from agentsignals.store import disk
from agentsignals.store.disk import files_and_times
from agentsignals.store.index import SHARDS_FOLDER

if TYPE_CHECKING:
    from agentsignals.store import Store

FILE = "secret_rows.json"
_COLUMNS = {
    "sessions": ("title", "cwd", "branch", "model", "agent_version", "repo"),
    "events": ("text",),
    "tool_calls": ("arguments", "command", "path", "name"),
    "artifacts": ("path",),
    "checkpoints": ("branch",),
    "attempts": ("facts", "knobs", "exit_status"),
    "labels": ("reason", "value"),
}
"""Columns that quote traces. Others derive from these."""
_IDS = {
    "sessions": ("session_id", "parent_session_id", "artifact_id", "trial_id"),
    "steps": ("message_id",),
    "tool_calls": ("call_id",),
    "checkpoints": ("checkpoint_id",),
    "attempts": ("task_id", "run_id"),
}
"""Columns of ids that an agent or a harness drew."""
_Rows = dict[str, dict[str, list[int]]]
"""Rows that give a secret away, by table and column."""


class _Kept(Struct):
    code: str = ""
    """State of the code that looked for secrets."""
    shards: dict[str, _Rows] = field(default_factory=dict)
    """By a mark of the shard's content."""


_in_memory: dict[str, tuple[_Rows, frozenset[str]]] = {}
"""Rows and secrets of shards that this process has looked through, by mark."""
_built: dict[frozenset[str], KnownSecrets] = {}
"""The last that was asked for."""
_one_at_a_time = Lock()
Progress = Callable[[str, int, int], object]
_Collected = tuple[str, _Rows, frozenset[str]]
Each = Callable[[Callable[[str], _Collected], Sequence[str]], Iterable[_Collected]]


def known_secrets(
    store: Store,
    shards: Collection[str] | None = None,
    progress: Progress = lambda *_: None,
    each: Each = map,
) -> KnownSecrets:
    """Return the secrets of all sessions of a store, or of some shards. New shards are looked through first, by `each`:
    it yields a function's results over shards, in any order."""
    with _one_at_a_time:
        kept = _read(store.folder)
        marks = {name: _mark(store, name) for name in store.readable_shards() if shards is None or name in shards}
        new = [name for name, mark in marks.items() if mark not in _in_memory and mark not in kept.shards]
        for name, mark in marks.items():
            if mark not in _in_memory and mark in kept.shards:
                _in_memory[mark] = _collected(store, kept.shards[mark], name)[1:]
        sizes = {n: sum(part.bytes for part in store.manifest.shards[n].tables.values()) for n in new}
        done = 0
        if new:
            progress("collecting secrets", done, sum(sizes.values()))
        try:
            for name, given_away, secrets in each(partial(_collected, store, None), new):
                _in_memory[marks[name]] = given_away, secrets
                done += sizes[name]
                progress("collecting secrets", done, sum(sizes.values()))
        finally:  # whoever interrupts it begins where it ended
            if done:
                live = {_mark(store, name) for name in store.manifest.shards}
                found = {mark: rows for mark, (rows, _) in _in_memory.items() if mark in live}
                held = _Kept(_code(), {mark: kept.shards[mark] for mark in kept.shards.keys() & live} | found)
                with suppress(OSError):  # who can't write here collects them in each run
                    disk.write_atomically(store.folder / FILE, msgspec.json.encode(held))
        all_secrets = frozenset(secret for mark in marks.values() for secret in _in_memory[mark][1])
        if all_secrets not in _built:
            _built.clear()
            _built[all_secrets] = KnownSecrets(all_secrets)
        return _built[all_secrets]


def record_ids(store: Store, sessions: Collection[str]) -> set[str]:
    """Return the ids of these sessions' records: of calls, messages, checkpoints, files and runs. They look random."""
    from agentsignals.store.query import rows  # noqa: PLC0415  (DuckDB is loaded when something is asked)

    columns = [(table, column) for table, names in _IDS.items() for column in names]
    asked = " UNION ALL ".join(f"SELECT session_id, {column} AS id FROM {table}" for table, column in columns)  # noqa: S608  (names of ours)
    query = f"SELECT DISTINCT id FROM ({asked}) WHERE id IS NOT NULL AND list_contains(?, session_id)"  # noqa: S608  (as above)
    return {str(row[0]) for row in rows(store, query, values=[sorted(sessions)])[1]}


def _collected(store: Store, wanted: _Rows | None, shard: str) -> _Collected:
    """Return a shard's name, its rows that give secrets away, and the secrets. `wanted`: rows known to do so."""
    with without_threads():
        from agentsignals.store import parquet  # noqa: PLC0415  (pyarrow is loaded when something leaves)

    redactor, rows = Redactor(pseudonyms=False), _Rows()
    for table, columns in _COLUMNS.items():
        path = store.folder / SHARDS_FOLDER / shard / f"{table}.parquet"
        if table not in store.manifest.shards[shard].tables or (wanted is not None and table not in wanted):
            continue
        try:
            schema, n = parquet.SCHEMAS[table], 0
            asked = [name for name in columns if name in schema.names and (wanted is None or name in wanted[table])]
            chosen = {name: None if wanted is None else set(wanted[table][name]) for name in asked}
            for batch in parquet.read_batches(path, asked):
                for name in asked:
                    for at, text in _texts(batch[name], n, chosen[name]):
                        before = len(redactor.secrets)
                        redactor.text(text)
                        if len(redactor.secrets) > before:
                            rows.setdefault(table, {}).setdefault(name, []).append(at)
                n += batch.num_rows
        except StoreError:  # damage that only reading shows
            if not store.check_files(thorough=True):
                raise
    return shard, rows, frozenset(filter(is_searched, redactor.secrets))


def _texts(column: Any, first: int, rows: set[int] | None) -> list[tuple[int, str]]:
    """Return the texts of a column, or of some rows, with their rows. Equal texts are there once."""
    seen: dict[str, int] = {}
    for at, value in enumerate(column.to_pylist(), first):
        if value and (rows is None or at in rows):
            for text in (value,) if isinstance(value, str) else value if isinstance(value, list) else ():
                seen.setdefault(text, at)
    return [(at, text) for text, at in seen.items()]


def _mark(store: Store, shard: str) -> str:
    """Return a hash of the texts of a shard. A copy of a shard with other values has the same."""
    tables = store.manifest.shards[shard].tables
    content = [tables[name].digest for name in _COLUMNS if name in tables]
    return hashlib.blake2b("|".join(content if all(content) else [shard]).encode(), digest_size=16).hexdigest()


def _read(folder: Path) -> _Kept:
    try:
        kept = msgspec.json.decode((folder / FILE).read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):  # none, or damaged: it is made again
        return _Kept()
    return kept if kept.code == _code() else _Kept()


@cache
def _code() -> str:
    """Return a stamp of what looks for secrets. Another one means that all texts are looked through again, which takes
    twice as long as reading the traces: other code and installed packages have no part in it."""
    package, here = Path(__file__).parents[1], Path(__file__).stat()
    parts = [part for unit in ("redaction", "shell") for part in files_and_times(str(package / unit))]
    stamp = "|".join([*sorted(parts), f"{here.st_size}:{here.st_mtime_ns}"])
    return disk.digest(stamp.encode("utf-8", "surrogateescape"))


# The key of pseudonyms, made once for a user and kept where nobody else can read it. With it the same person has the
# same pseudonym in every run, so cached answers are found again. A copy of the file gives another machine the same
# pseudonyms. Whoever has the key can try names until one fits: never give it away.

KEY_FILE = "pseudonyms.key"
_one_key_at_a_time = Lock()


def pseudonym_key() -> bytes:
    """Return the machine's key, made where there is none. Where it can't be kept, it is for this process alone, and a
    warning says so."""
    with _one_key_at_a_time:
        return _kept_or_passing()


def key_file() -> Path:
    """Return the path of the key. OSError where the platform has no folder for user data."""
    import platformdirs  # noqa: PLC0415  (only when something is masked for others)

    folder = Path(platformdirs.user_data_dir("agentsignals", appauthor=False))
    if not folder.is_absolute():
        raise OSError(f"no home folder is known ({folder})")
    return folder / KEY_FILE


@cache
def _kept_or_passing() -> bytes:
    """Return the key of pseudonyms from its file, which is made once; where that fails, a key for this run."""
    try:
        # Key in this file, made where there is none. When two processes make one, the first one's counts.
        path = key_file()
        with suppress(FileNotFoundError):
            return _read_key(path)
        private_files.make_folder(path.parent)
        # Written whole before it has its name: nobody reads half a key, and none is left by a process that dies.
        made = path.with_name(f".{KEY_FILE}.{os.getpid()}.{token_hex(4)}")
        opened = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(opened, "wb") as file:
                file.write(token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(made, path)
        finally:
            made.unlink()
        return _read_key(path)
    except OSError as problem:
        import logging  # noqa: PLC0415  (no run needs it otherwise)

        logging.getLogger("agentsignals").warning(
            "agentsignals: pseudonyms are for this run only, the next run's differ: no key is kept, %r", str(problem)
        )
        return token_bytes(KEY_BYTES)


def _read_key(path: Path) -> bytes:
    """Key in a file, which is made unreadable for others."""
    with path.open("rb") as file:
        if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            with suppress(OSError):  # who mounts a key into a container that can't write says himself who reads it
                os.fchmod(file.fileno(), 0o600)
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise OSError(f"{path} does not hold a key of {KEY_BYTES} bytes; delete it to get a new one")
    return key
