"""Mends a store: reads again what was damaged, where its sources are there, and puts aside what can't be mended."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from agentsignals.errors import AgentSignalsError
from agentsignals.ingest import pipeline
from agentsignals.sources.local import deleted_files
from agentsignals.store import Store, files, place
from agentsignals.store import files as lock
from agentsignals.store import findings_cache as kept_findings
from agentsignals.store import fulltext as index
from agentsignals.store import index as parts
from agentsignals.store import sidecars as label_files
from agentsignals.store import sidecars as repositories
from agentsignals.store.index import FOLDER, NAME, local_files, only_in
from agentsignals.store.query import rows

_SHOWN = 20


class Repaired(Struct):
    """What was done, in lines."""

    mended: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """What nothing can bring back."""
    aside: list[Path] = field(default_factory=list)
    """Where the remains lie."""


def repair(folder: Path | str | None) -> Repaired:
    """Mends the store in a folder. StoreError when there is none, or it can't be written."""
    Store(folder)  # refuses what is none, before anything is made
    done = Repaired()
    root = place(folder)
    with lock.locked(root):
        store = Store(folder, write=True)
        done.mended += [line for line in store.warnings if line.startswith("its index")]
        _distrust(store)
        specs = _specs(store)
    if any(d.shard for d in store.damage):
        _read_again(folder, specs, done)
    with lock.locked(root):
        store = Store(folder, write=True)
        _give_up(store, done)
        done.aside += [p for path in store.strays() if (p := files.put_aside(root, path)) is not None]
    _parts(root, done)
    pipeline.measure(folder)
    return done


def _distrust(store: Store) -> None:
    """Finds what only a comparison of all bytes shows, and has it seen from now on."""
    store.look(thorough=True)
    if any(d.table and not d.shard for d in store.damage):
        store.manifest.history_of = ""
    store.save()
    with parts.changing(store.folder) as held:
        held.distrust({d.key for d in store.damage if d.key})


def _specs(store: Store) -> list[str]:
    """The sources elsewhere than on this machine that damaged shards were read from."""
    broken = {d.shard for d in store.damage if d.shard}
    return sorted({e.spec for e in store.manifest.files.values() if e.shard in broken and e.source != "local"})


def _read_again(folder: Path | str | None, specs: list[str], done: Repaired) -> None:
    for wanted in [[], *([spec] for spec in specs)]:
        try:
            summary = pipeline.ingest(wanted, folder)
        except AgentSignalsError as problem:
            done.lost.append(f"{wanted[0] if wanted else 'the sources on this machine'}: {problem.message}")
            continue
        if summary.restored_sessions:
            done.mended.append(f"{summary.restored_sessions:,} sessions were read again from their sources")


def _give_up(store: Store, done: Repaired) -> None:
    """Takes shards that can't be made whole out of the store: what remains of them lies aside."""
    manifest = store.manifest
    for name in sorted({d.shard for d in store.damage if d.shard and d.table != "signals"}):
        sessions = sorted(s for s, e in manifest.sessions.items() if e.shard == name)
        for session_id in sessions:
            del manifest.sessions[session_id]
        for uri in [u for u, e in manifest.files.items() if e.shard == name]:
            del manifest.files[uri]
        del manifest.shards[name]
        manifest.history_of = ""
        store.save()
        if sessions:
            shown = ", ".join(sessions[:_SHOWN]) + (" …" if len(sessions) > _SHOWN else "")
            done.lost.append(f"{len(sessions):,} sessions, their sources are gone: {shown}")
        moved = files.put_aside(store.folder, store.folder / FOLDER / name)
        done.aside += [moved] if moved else []


def _parts(root: Path, done: Repaired) -> None:
    """Strikes damaged labels and tables of repositories off; who made them makes them again."""
    with parts.changing(root) as held:
        broken = list(held.damage())
        for d in broken:
            moved = files.put_aside(root, root / d.place)
            done.aside += [moved] if moved else []
            held.forget(d.key)
            done.lost.append(f"{d.key}: {d.lacks.replace('are missing', 'are lost')}; {_again(d.key)}")
        held.save()
    repositories.forget_notes(root, {d.key.split("/")[1] for d in broken if d.key.startswith("repos/")})
    if any(d.key.startswith("labels/") for d in broken):
        repositories.forget_notes(root, None)


def _again(key: str) -> str:
    if key.startswith("repos/"):
        return "run `collect`, `attribute` and `scan` of that repository again"
    return "run what gave them again (`label`, `annotate`, `collect`, `attribute`, `scan`, `topics`)"


# Sessions that the store is to hold no longer.


class Forgotten(Struct, kw_only=True):
    """What was taken out of the store."""

    sessions: list[str]
    still_there: list[str] = field(default_factory=list)
    """Their files that are there, which the next run over them reads again."""


def forget(
    store_folder: Path | str | None = None,
    sessions: Iterable[str] = (),
    *,
    deleted: bool = False,
    wait_s: float = lock.WAIT_S,
) -> Forgotten:
    """Takes sessions out of the store, with their rows, values and labels made here, and their ids out of what is kept
    of repositories. UnknownSession for what is none.

    `deleted`: also those whose files are gone. Former states are removed by the first run an hour later.
    """
    store = Store(store_folder)
    with lock.locked(store.folder, wait_s=wait_s):
        store = Store(store_folder, write=True)
        manifest = store.manifest
        wanted = {store.resolve(session_id) for session_id in sessions}
        if deleted:
            wanted |= only_in(manifest, deleted_files(local_files(manifest)))
        if not wanted:
            return Forgotten(sessions=[])
        left = {entry.family for session_id, entry in manifest.sessions.items() if session_id not in wanted}
        families = {manifest.sessions[session_id].family for session_id in wanted} - left
        files = {uri for uri, entry in manifest.files.items() if entry.shard and entry.family in families}
        local = files & local_files(manifest)
        there = sorted(local - deleted_files(local))
        store.drop(wanted, files)
        for uri in files:
            del manifest.files[uri]
        manifest.code = manifest.history_of = ""
        store.save()
        label_files.forget(store.folder, wanted)
        repositories.forget_repositories(store.folder, wanted)
        kept_findings.forget(store.folder)
        index.sweep(store.folder)
    pipeline.measure(store.folder, wait_s=wait_s)
    return Forgotten(sessions=sorted(wanted), still_there=there)


# Which versions of each agent wrote what the store holds.

_MET = (
    "SELECT format, coalesce(agent_version, '') AS version, count(*) AS n FROM sessions GROUP BY ALL"
    " ORDER BY format, n DESC, version"
)


def versions_met(folder: Path | str | None) -> dict[str, dict[str, int]]:
    """Sessions by format and the agent's version, those of most sessions first; an empty version where none is said,
    nothing where there is no store."""
    if not (place(folder) / NAME).exists():
        return {}
    met: dict[str, dict[str, int]] = {}
    for name, version, n in rows(Store(folder), _MET)[1]:
        met.setdefault(name, {})[version] = n
    return met
