"""A store of sessions made in a test, without a trace file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentsignals.ingest import pipeline
from agentsignals.ingest.shard import first_versions, session_entry, signal_versions
from agentsignals.model import Artifact, Session, prices
from agentsignals.questions.findings import Reader
from agentsignals.questions.question import Finding, Outcome
from agentsignals.questions.studies import study
from agentsignals.signals.catalog import FIRST, measure
from agentsignals.store import Store, shards, tables
from agentsignals.store.index import ShardEntry
from agentsignals.store.parquet import signal_rows
from agentsignals.store.query import rows as asked
from agentsignals.views.session import SessionView
from tests.build import write_shard
from tests.claude import Log


def with_log(folder: Path, n: int) -> Store:
    """The store in a folder after one more log, the n-th, was read."""
    log = Log(f"6f1d2c3b-0000-4000-8000-{n:012d}", cwd="/work/shop", version="2.2.0")
    log.user("mend it")
    log.say("done", model="claude-opus-4-6")
    (folder / f"{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(folder / f"{n}.jsonl")], folder / "store", jobs=1)
    return Store(folder / "store")


def store_of(folder: Path, *sessions: Session, artifacts: tuple[Artifact, ...] = (), first: bool = False) -> Store:
    """Writes and measures these sessions. `first`: with the signals alone that a run computes, as ingest would have."""
    store = Store(folder, create=True)
    rows, attempts = [], []
    for session in sessions:
        prices.apply(session)
        results = measure(SessionView(session), among=FIRST if first else None)
        rows.append(signal_rows(session, results))
        attempts += shards.attempt_rows(session, results)
    parts = write_shard(folder, sessions, artifacts, rows, attempts)
    versions = first_versions() if first else signal_versions()
    store.manifest.shards["one"] = ShardEntry(signals=versions, tables=parts)
    for session, figures in zip(sessions, map(tables.totals, sessions), strict=True):
        store.manifest.sessions[session.session_id] = session_entry("one", "f", session.context, figures)
    store.save()
    pipeline.measure(folder)
    return Store(folder)


def rows_of(store: Store | Path, query: str) -> list[dict[str, Any]]:
    """The rows of a query by the names of its columns."""
    names, found = asked(store if isinstance(store, Store) else Store(store), query)
    return [dict(zip(names, row, strict=True)) for row in found]


def outcome(store: Store, name: str) -> Outcome:
    """What one study finds in a store."""
    one = study(name)
    return one.run(Reader(store, [one]).inputs(one))


def findings(store: Store, name: str) -> dict[str, Finding]:
    """The findings of one study by id, without the study's name."""
    return {f.id.partition(".")[2]: f for f in outcome(store, name).findings}


def table(found: Outcome, name: str) -> dict[Any, list[Any]]:
    """The rows of a table by their first cell."""
    return {row[0]: row[1:] for made in found.tables if made.id == name for row in made.rows}


def chart(found: Outcome, name: str) -> list[dict[str, Any]]:
    """The marks of a chart."""
    return next((list(made.marks) for made in found.charts if made.id == name), [])
