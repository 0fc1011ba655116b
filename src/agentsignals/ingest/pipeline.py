"""The flow, stage by stage: sources -> plan -> shards -> values across sessions. The only file that joins them.

Interrupting is safe: each shard is committed when it is done, and the next run reads only what is missing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from agentsignals.errors import SourceError
from agentsignals.formats import unread_homes
from agentsignals.ingest import plan as planning
from agentsignals.ingest.family import READ_AGAIN, is_current, shard_name
from agentsignals.ingest.summary import Summary, summary_of
from agentsignals.sources.local import found_homes, places
from agentsignals.store import Store, label_files, lock, place
from agentsignals.store.code_stamp import code_stamp, extended
from agentsignals.store.manifest import FileEntry, share_texts

if TYPE_CHECKING:
    from agentsignals.ingest.family import Family
    from agentsignals.ingest.shard import Report


_MOST_COMMITS = 16
"""Written beside the index, until it is written whole again: a run over one shard adds two."""


class Progress(Protocol):
    """Told how far a run is. `total` is None while it is not known."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Says nothing."""


class _Way(Struct, frozen=True):
    """How shards are read: by how many workers, of which engine, telling whom, without which sessions."""

    jobs: int
    engine: str
    progress: Progress
    exclude: frozenset[str]
    shard_bytes: int


def default_sources() -> list[str]:
    """The agents whose folders are on this machine. SourceError when there is none."""
    agents = sorted(found_homes())
    if not agents:
        unread = [f"{name} ({paths[0]})" for name, patterns in unread_homes().items() if (paths := places(patterns))]
        others = f" Known, and not read yet: {', '.join(unread)}." if unread else ""
        raise SourceError(
            "No session folder of an agent that is read was found on this machine.",
            f"Name a file or folder to analyze; `agentsignals doctor` lists where each agent's would be.{others}",
        )
    return agents


def default_jobs() -> int:
    """One worker a core, at most 8: reading traces soon waits for the disk."""
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def ingested(  # noqa: PLR0913  (each is a choice of the person at the command line)
    specs: Iterable[str],
    store_folder: Path | str | None = None,
    *,
    jobs: int | None = None,
    force_format: str | None = None,
    engine: str = "local",
    shard_bytes: int = planning.SHARD_BYTES,
    embedder: str | None = None,
    exclude: frozenset[str] = frozenset(),
    progress: Progress = silent,
    wait_s: float = lock.WAIT_S,
) -> tuple[Summary, Store]:
    """Reads sources into the store, and computes the signals of the sessions that changed. What was damaged in the
    store is read again, where its sources are still on this machine. Gives the store as it is then, too.

    `jobs`: worker processes. `force_format`: read every file as this format. `shard_bytes`: raw bytes a shard aims at;
    more means fewer files and more memory. `embedder`: what compares texts, the store's from now on. `exclude`: data
    sets of the Hub (`owner/name`) and sessions to leave out. `progress` is told how far the run is. `wait_s`: how long
    to wait for another run on the same store; StoreError afterwards.
    """
    with lock.locked(place(store_folder, create=True), wait_s=wait_s, waiting=_waiting(progress)):
        store = Store(store_folder, write=True)
        broken = _to_read_again(store)
        missing = {s for s, e in store.manifest.sessions.items() if e.shard in broken}
        same_code = store.manifest.code == code_stamp()
        _choose(store, embedder)
        tick = partial(progress, "looking", total=None)
        way = _Way(jobs or default_jobs(), engine, progress, exclude, shard_bytes)
        plan = planning.make(
            specs, store.manifest, force_format, tick, shard_bytes, same_code, exclude, broken, way.jobs
        )
        parsed, excluded = _read(store, plan, way)
        is_much = len(plan.shards) != 1 or bool(broken)
        plan.shards.clear()  # what they name was read: half as much as the index
        if broken:
            store.look()
        _finish(store, plan.other_files, is_much)
    summary = summary_of(store, set(plan.seen))
    broken = _to_read_again(store)
    lost = {s for s, e in store.manifest.sessions.items() if e.shard in broken}
    summary.restored_sessions, summary.lost_sessions = len(missing - lost), sorted(lost)
    summary.parsed = parsed
    summary.unchanged = plan.unchanged
    summary.excluded_sessions, summary.excluded_sources = excluded, plan.excluded_sources
    return summary, store


def ingest(specs: Iterable[str], store_folder: Path | str | None = None, **options: Any) -> Summary:
    """What `ingested` read and what the store holds of it. Options are of `ingested`."""
    return ingested(specs, store_folder, **options)[0]


def analyzed(
    specs: Iterable[str] | str = (),
    store_folder: Path | str | None = None,
    *,
    tell: Callable[[str], None] | None = None,
    **options: Any,
) -> tuple[Summary, Store]:
    """The main job: `ingested` and measured. Without sources: the agents found on this machine."""
    wanted = [specs] if isinstance(specs, str) else list(specs)
    summary, store = ingested(wanted or default_sources(), store_folder, **options)
    if store.damage or not _is_measured(store):
        del store  # its index is as large as the one that is read next
        measure(store_folder, options.get("progress", silent), tell=tell, wait_s=options.get("wait_s", lock.WAIT_S))
        store = Store(store_folder)
    return summary, store


def analyze(specs: Iterable[str] | str = (), store_folder: Path | str | None = None, **options: Any) -> Summary:
    """What `analyzed` read. Options are of `analyzed` and `ingested`."""
    return analyzed(specs, store_folder, **options)[0]


def measure(
    store_folder: Path | str | None = None,
    progress: Progress = silent,
    *,
    embedder: str | None = None,
    tell: Callable[[str], None] | None = None,
    wait_s: float = lock.WAIT_S,
) -> dict[str, int]:
    """Computes the values whose signal is new or has a newer version, and those of labels made since; says how many
    `values` are others now, of how many `signals` (or those of another version), and how many `sessions` were measured.

    `embedder`: what compares texts, the store's from now on; where it is another, all values are computed anew. `tell`
    hears what goes where when it asks a server. `wait_s` as in `ingest`.
    """
    nothing = {"signals": 0, "sessions": 0, "values": 0}
    store = Store(store_folder)
    if embedder in (None, store.manifest.embedder) and not store.damage and _is_measured(store):
        return nothing
    folder = store.folder
    del store
    with lock.locked(folder, wait_s=wait_s, waiting=_waiting(progress)):
        store = Store(store_folder, write=True)
        _choose(store, embedder)
        return nothing if not store.damage and _is_measured(store) else _measure(store, progress, tell)


def _is_measured(store: Store) -> bool:
    """Whether all values are of this very code and of the labels and the embedder of now."""
    spec, labelled = store.manifest.embedder, label_files.fingerprint(store.folder)
    same_inputs = all(s.embedder == spec and s.labels == labelled for s in store.manifest.shards.values())
    return store.manifest.code == code_stamp() and bool(store.manifest.history_of) and same_inputs


def _measure(store: Store, progress: Progress, tell: Callable[[str], None] | None) -> dict[str, int]:
    from agentsignals.ingest import across, measuring  # noqa: PLC0415  (nothing of this is needed when all is known)
    from agentsignals.ingest import store_vectors as comparing  # noqa: PLC0415
    from agentsignals.ingest.shard import signal_versions  # noqa: PLC0415  (loads every signal)

    spec, labelled = store.manifest.embedder, label_files.fingerprint(store.folder)
    now, shards = signal_versions(), store.manifest.shards
    measurable = set(shards) - _to_read_again(store)
    without_values = {d.shard for d in store.damage if d.table == "signals"}
    stale = measurable & (_stale(store) | without_values)
    share_texts(store.manifest)
    renewed: set[str] = set()
    others: Counter[str] = Counter()
    sessions = 0
    if stale or "" in without_values or store.manifest.history_of != store.fingerprint(across.versions()):
        vectors = comparing.vectors_of(store, spec, tell)
        fitted = comparing.calibrated(store, vectors)
        if fitted is not vectors:
            stale = measurable  # no value of the old scale may stay beside those of the new
            for shard in shards.values():
                shard.embedder = ""
            store.save()
        for done, name in enumerate(sorted(stale)):
            progress("measuring", done, len(stale))
            versions = shards[name].signals
            renewed |= {p for p in {*now, *versions} if now.get(p) != versions.get(p)}
            shards[name].embedder, shards[name].labels = spec, labelled
            count, differing = measuring.measure_shard(store, name, now, fitted, tell)
            sessions += count
            others += differing
        if stale:
            store.look()
            store.sweep()
        store.manifest.history_of = ""
        progress("values across sessions", 0, None)
        values = measuring.values_across(store)
        _finish(store, {}, is_much=True)
        others += measuring.changed(values, measuring.values_across(store))
    if _is_of_this_code(store) and store.manifest.code != code_stamp():
        store.manifest.code = code_stamp()
        store.save()
    return {"signals": len(renewed | set(others)), "sessions": sessions, "values": others.total()}


def _stale(store: Store) -> set[str]:
    """The shards whose values are of other signals, another embedder or other labels than those of now."""
    from agentsignals.ingest.shard import signal_versions  # noqa: PLC0415  (loads every signal)

    due = (signal_versions(), store.manifest.embedder, label_files.fingerprint(store.folder))
    return {n for n, s in store.manifest.shards.items() if (s.signals, s.embedder, s.labels) != due}


def _waiting(progress: Progress) -> Callable[[], None]:
    return partial(progress, "waiting for another run", 0, None)


def _choose(store: Store, embedder: str | None) -> None:
    """Makes this the store's embedder, when one was asked for. UsageError for what is none."""
    if embedder is None or embedder == store.manifest.embedder:
        return
    from agentsignals.embedding import parsed  # noqa: PLC0415

    parsed(embedder)
    store.manifest.embedder = embedder
    store.save()


def _to_read_again(store: Store) -> frozenset[str]:
    """The damaged shards whose sources are needed: values alone are computed anew from the rest."""
    return frozenset(d.shard for d in store.damage if d.shard and d.table != "signals")


def _read(store: Store, plan: planning.Plan, way: _Way) -> tuple[int, int]:
    """Reads the plan's shards and commits each as it comes. Gives the files decoded and the sessions left out."""
    if not plan.shards:
        return 0, 0
    with _without_threads():
        from agentsignals.ingest.engine import ENGINES  # noqa: PLC0415  (not needed when nothing changed)
        from agentsignals.ingest.shard import Task, read_shard, signal_versions, smaller  # noqa: PLC0415
        from agentsignals.ingest.store_vectors import while_reading  # noqa: PLC0415
        from agentsignals.store.compaction import compact  # noqa: PLC0415

    if len(plan.shards) > 1:
        share_texts(store.manifest)
    by = while_reading(store.manifest.embedder)
    store.manifest.run += 1
    run = store.manifest.run
    total = sum(f.bytes for families in plan.shards for f in families)
    done = parsed = excluded = 0
    way.progress("reading", 0, total)
    signal_versions()  # loads every signal: the values across sessions need them, and workers that are copies have them

    def read(planned: list[list[Family]]) -> Iterator[Report]:
        tasks = [
            Task(
                root=str(store.folder),
                name=shard_name(families, run),
                families=families,
                embedder=by,
                exclude=way.exclude,
                run=run,
                shard_bytes=way.shard_bytes,
            )
            for families in planned
        ]
        workers = planning.workers(planned, way.jobs)
        with closing(ENGINES.get(way.engine)().map(read_shard, tasks, workers, smaller)) as reports:
            for report in reports:
                store.add_shard(report.name, report.entry, report.sessions, report.files)
                yield report

    surprises: set[str] = set()
    try:
        for report in read(plan.shards):
            surprises |= report.surprises
            done += report.bytes
            parsed += report.parsed
            excluded += report.excluded
            way.progress("reading", done, total)
        for _ in read(planning.joined(store.manifest, surprises)):
            way.progress("reading", done, total)
        compact(store)
    finally:
        store.sweep()  # no worker is left; what one that was ended had begun is removed
    return parsed, excluded


@contextmanager
def _without_threads() -> Iterator[None]:
    """Where NumPy is installed, pyarrow loads it, and its OpenBLAS would begin threads: none while this lasts."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


def _finish(store: Store, other_files: dict[str, FileEntry], is_much: bool) -> None:
    """Values across sessions, when any session changed, and what else the index should remember. `is_much`: it is not
    one shard alone that changed."""
    manifest = store.manifest
    entries = manifest.files
    new_files = {u: e for u, e in other_files.items() if entries.get(u) != e}
    entries.update(new_files)
    if store.manifest.code and any(e.parser == READ_AGAIN for e in entries.values()):
        store.manifest.code = ""  # so that the next run looks at each file's own entry, which says to read it again
        store.save()
    if store.manifest.shards and not store.manifest.history_of:
        from agentsignals.ingest import across  # noqa: PLC0415  (only when something changed)
        from agentsignals.ingest.engine.beside import beside  # noqa: PLC0415
        from agentsignals.store.arrow_tables import give_back  # noqa: PLC0415

        measured = partial(across.measure_across, store)
        manifest.run, manifest.across, manifest.standings = beside(measured)() if is_much else measured()
        store.manifest.history_of = store.fingerprint(across.versions())
        is_told = store.manifest.code == code_stamp()  # by the run before: what this one read is of this code, too
        if not is_told and not store.damage and _is_of_this_code(store) and not _stale(store):
            store.manifest.code = code_stamp()  # nothing is left to measure: the index is not opened again for it
        if is_much or new_files or not is_told or manifest.commits >= _MOST_COMMITS:
            store.save()
        else:
            store.commit()
        give_back()
    elif new_files:
        store.save()


def _is_of_this_code(store: Store) -> bool:
    """Whether every file was read by this very code."""
    return all(is_current(e) for e in store.manifest.files.values()) and not extended()
