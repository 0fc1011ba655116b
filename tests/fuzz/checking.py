"""Ingests a folder of spoilt files beside good neighbours, and says what is wrong with what came out."""

from __future__ import annotations

import gc
import json
import math
import shutil
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from agentsignals.formats.bounds import MOST_TOKENS, MOST_USD, REASONS
from agentsignals.ingest import pipeline
from agentsignals.model import EARLIEST, EPOCH, LATEST
from agentsignals.signals.catalog import catalogue
from agentsignals.store import Store
from agentsignals.store.tables import NAMES
from tests.claude import Log

_EARLIEST, _LATEST = (EPOCH.replace(tzinfo=None) + timedelta(microseconds=at) for at in (EARLIEST, LATEST))
NEIGHBOURS = ("neighbour-a", "neighbour-b")
_PRINTED = frozenset(("subq-eval", "subq-eval-log"))
"""What a program printed, whatever its name: lines of it are records only where they say something."""
CPU_SECONDS = 20.0
"""For a folder of some hundred small files, which takes about one."""

Files = dict[str, bytes]
"""Files by their place below the folder that is ingested."""
Rows = dict[str, list[str]]


class Hang(BaseException):
    """It took longer than it may. No `except Exception` between keeps it."""


def neighbours() -> Files:
    """Good sessions in two formats, and one years later: what is censored at a store's end is not by the others."""
    log, last = Log(NEIGHBOURS[0], cwd="/work/neighbour"), Log("the-last", cwd="/work/last")
    log.user("please fix the pump")
    log.ran("Read", "1\tdef pump(): ...", file_path="/work/neighbour/pump.py")
    log.say("it is fixed")
    log.user("no, that's wrong, it still fails")
    last.wait(3e8)
    last.user("good night")
    metrics = {"prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.01}
    steps = [
        {"step_id": 1, "timestamp": "2026-03-01T10:00:00Z", "source": "user", "message": "go on"},
        {"step_id": 2, "timestamp": "2026-03-01T10:00:05Z", "source": "agent", "message": "ok", "metrics": metrics},
    ]
    whole = {"schema_version": "ATIF-v1.4", "session_id": NEIGHBOURS[1], "agent": {"name": "a", "version": "1"}}
    return {
        "good/a/session.jsonl": log.data(),
        "good/b/run.trajectory.json": json.dumps({**whole, "steps": steps}).encode(),
        "good/c/last.jsonl": last.data(),
    }


def rows_alone(folder: Path) -> Rows:
    """The rows of the neighbours where nobody is beside them. `folder` is emptied, and the same for every check: ids
    of trials come of their place."""
    with _ingested({}, folder) as (_, store):
        return _rows(store)


def failures(files: Files, alone: Rows, folder: Path) -> list[str]:
    """What is wrong after these files were ingested together with the neighbours; nothing, as a rule."""
    try:
        with _ingested(files, folder) as (summary, store):
            problems = [f"a signal fails: {told}" for told in summary.internal_errors]
            problems += [*_unaccounted(store, folder / "in"), *_unsound(store)]
            changed = [table for table, rows in _rows(store).items() if rows != alone[table]]
            return problems + [f"a neighbour's {table} changed" for table in changed]
    except (Exception, Hang):  # noqa: BLE001  (whatever is raised is what this looks for)
        return [f"ingest fails: {traceback.format_exc(limit=-6).strip()}"]


@contextmanager
def _ingested(files: Files, folder: Path) -> Iterator[tuple[pipeline.Summary, Store]]:
    source, store = folder / "in", folder / "store"
    for place in (source, store):
        shutil.rmtree(place, ignore_errors=True)
    write(source, {**neighbours(), **files})
    with _limited():
        summary = pipeline.ingest([str(source)], store, jobs=1)
    yield summary, Store(store)


def write(folder: Path, files: Files) -> None:
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def _rows(store: Store) -> Rows:
    """The neighbours' rows of every table, without the values that depend on other sessions."""
    across = {path for path, one in catalogue().items() if one.scope != "session"}
    found: Rows = {}
    for table in NAMES:
        if table == "artifacts":
            continue
        rows = [row for row in _table(store, table) if row["session_id"] in NEIGHBOURS]
        kept = [{k: v for k, v in r.items() if k != "artifact_id"} for r in rows if r.get("signal") not in across]
        found[table] = sorted(json.dumps(row, default=str, sort_keys=True) for row in kept)
    return found


def _unaccounted(store: Store, source: Path) -> list[str]:
    """Files without a word about them, and those whose records are neither of a kind that was read nor skipped."""
    problems: list[str] = []
    seen = set(store.manifest.files)
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        if not any(uri == str(path) or uri.startswith(f"{path}#") or uri.startswith(f"{path}!") for uri in seen):
            problems.append(f"{path.relative_to(source)} is not accounted for")
    for row in (r for r in _table(store, "artifacts") if r["format"] is not None):
        reasons, kinds = json.loads(row["skipped_reasons"]), json.loads(row["record_kinds"])
        skipped = sum(n for reason, n in reasons.items() if reason not in REASONS)
        read = sum(n for kind, n in kinds.items() if kind != "repeated")
        told = f"{Path(row['path']).name} ({row['format']}): {row['records']} records, {read} read, {skipped} skipped"
        if skipped != row["skipped"] or read + skipped != row["records"] or min((0, *kinds.values())) < 0:
            problems.append(told)
        path = Path(row["path"])
        if path.suffix == ".jsonl" and row["format"] not in _PRINTED and path.is_file() and row["note"] is None:
            lines = sum(1 for line in path.read_bytes().split(b"\n") if line.strip(b" \t\r\xef\xbb\xbf"))
            if lines > row["records"]:
                problems.append(f"{told}, of {lines} lines")
    return problems


def _unsound(store: Store) -> Iterator[str]:
    """Numbers that poison sums, times out of range, values that are no JSON."""
    for table in NAMES:
        for row in _table(store, table):
            for name, value in row.items():
                if not _is_sound(name, value):
                    yield f"{table}.{name} is {value!r:.80}"


def _is_sound(name: str, value: Any) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if "tokens" in name and isinstance(value, int):
        return 0 <= value <= 1000 * MOST_TOKENS
    if "cost_usd" in name and isinstance(value, float):
        return 0 <= value <= 1000 * MOST_USD
    if isinstance(value, datetime):
        return _EARLIEST <= value <= _LATEST
    if isinstance(value, str) and name in ("facts", "knobs"):
        try:
            json.loads(value, parse_constant=_no_json)
        except (ValueError, RecursionError):
            return False
    return True


def _no_json(name: str) -> None:
    raise ValueError(name)


def _table(store: Store, name: str) -> list[dict[str, Any]]:
    files = (store.folder / "shards" / shard / f"{name}.parquet" for shard in store.manifest.shards)
    return [row for file in files for row in pq.read_table(file).to_pylist()]


class _limited:  # noqa: N801  (reads as a phrase: `with _limited()`)
    """Raises `Hang` where the work takes more of the processor than it may."""

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGPROF, self._stop)
        gc.disable()  # what is raised in a callback of the collector is lost, and the alarm with it
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)
        gc.enable()

    def _stop(self, *_: object) -> None:
        raise Hang(f"more than {CPU_SECONDS:g} s of the processor")
