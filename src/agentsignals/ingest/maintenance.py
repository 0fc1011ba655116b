"""Repairs a store and removes sessions from it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from agentsignals.errors import AgentSignalsError
from agentsignals.ingest import pipeline
from agentsignals.sources.local import deleted_files
from agentsignals.store import Store, disk, fulltext, resolve_folder, shard_answers, sidecars
from agentsignals.store.index import (
    CHECKED_FILE,
    INDEX_FILE,
    SHARDS_FOLDER,
    artifact_id,
    files_of_namesakes,
    sessions_only_in,
)
from agentsignals.store.query import rows

_SHOWN = 20


class Repaired(Struct):
    """Repairs that were done, in lines."""

    mended: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Lines about data that nothing can restore."""
    aside: list[Path] = field(default_factory=list)
    """Where the remains are."""


def repair(folder: Path | str | None) -> Repaired:
    """Repair the store in a folder: read damaged shards again where their sources exist, and set aside what is lost.
    StoreError when there is none, or it can't be written."""
    Store(folder)  # refuses what is none, before anything is made
    done = Repaired()
    root = resolve_folder(folder)
    with disk.locked(root):
        (root / CHECKED_FILE).unlink(missing_ok=True)  # all of the index is looked at
        store = Store(folder, write=True)
        done.mended += [line for line in store.warnings if line.startswith("its index")]
        # Find damage that only a comparison of all bytes shows, and have it checked from now on.
        store.check_files(thorough=True)
        if any(d.table and not d.shard for d in store.damage):
            store.manifest.shards_changed()
        store.save()
        with sidecars.changing(store.folder) as held:
            held.distrust({d.key for d in store.damage if d.key})
        # Sources elsewhere than on this machine that damaged shards were read from.
        broken = {d.shard for d in store.damage if d.shard}
        files = store.manifest.files.where("shard", broken).values()
        specs = sorted({e.spec for e in files if e.source != "local"})
    if any(d.shard for d in store.damage):
        for wanted in [[], *([spec] for spec in specs)]:
            try:
                summary = pipeline.ingest(wanted, folder)
            except AgentSignalsError as problem:
                done.lost.append(f"{wanted[0] if wanted else 'the sources on this machine'}: {problem.message}")
                continue
            if summary.restored_sessions:
                done.mended.append(f"{summary.restored_sessions:,} sessions were read again from their sources")
    with disk.locked(root):
        store = Store(folder, write=True)
        # Remove shards from the store that can't be restored; their remains are set aside.
        manifest = store.manifest
        for name in sorted({d.shard for d in store.damage if d.shard and d.table != "signals"}):
            sessions = sorted(manifest.sessions.where("shard", [name]))
            for session_id in sessions:
                del manifest.sessions[session_id]
            for uri in manifest.files.where("shard", [name]):
                del manifest.files[uri]
            del manifest.shards[name]
            manifest.shards_changed()
            store.save()
            if sessions:
                shown = ", ".join(sessions[:_SHOWN]) + (" …" if len(sessions) > _SHOWN else "")
                done.lost.append(f"{len(sessions):,} sessions whose sources are missing: {shown}")
            moved = disk.set_aside(store.folder, store.folder / SHARDS_FOLDER / name)
            done.aside += [moved] if moved else []
        done.aside += [p for path in store.strays() if (p := disk.set_aside(root, path)) is not None]
    _parts(root, done)
    pipeline.measure(folder)
    return done


def _parts(root: Path, done: Repaired) -> None:
    """Remove damaged labels and repository tables from the list; whoever made them makes them again."""
    with sidecars.changing(root) as held:
        broken = list(held.damage())
        for d in broken:
            moved = disk.set_aside(root, root / d.place)
            done.aside += [moved] if moved else []
            held.forget(d.key)
            done.lost.append(f"{d.key}: {d.lacks.replace('are missing', 'are lost')}; {_again(d.key)}")
        held.save()
    sidecars.forget_notes(root, {d.key.split("/")[1] for d in broken if d.key.startswith("repos/")})
    if any(d.key.startswith("labels/") for d in broken):
        sidecars.forget_notes(root, None)


def _again(key: str) -> str:
    if key.startswith("repos/"):
        return "run `collect`, `attribute` and `scan` of that repository again"
    return "repeat the command that made them (`label`, `annotate`, `collect`, `attribute`, `scan`, `topics`)"


class Forgotten(Struct, kw_only=True):
    """Sessions that were removed."""

    sessions: list[str]
    still_there: list[str] = field(default_factory=list)
    """Their files that still exist; the next run over them reads them again."""


def forget(
    store_folder: Path | str | None = None,
    sessions: Iterable[str] = (),
    *,
    deleted: bool = False,
    wait_s: float = disk.WAIT_S,
) -> Forgotten:
    """Remove sessions with their rows, values and labels, and their ids from repository tables. UnknownSession for an
    unknown id.

    `deleted`: also sessions whose files are gone. Former states of the store are removed by the first run an hour
    later.
    """
    store = Store(store_folder)
    with disk.locked(store.folder, wait_s=wait_s):
        store = Store(store_folder, write=True)
        manifest = store.manifest
        wanted = {store.resolve(session_id) for session_id in sessions}
        gone = deleted_files(manifest.local_files()) if deleted else set()
        wanted |= sessions_only_in(manifest, gone)
        if not wanted:
            return Forgotten(sessions=[])
        groups = {entry.group for entry in manifest.sessions.known(wanted).values()}
        together = manifest.sessions.where("group", groups)
        groups -= {entry.group for session_id, entry in together.items() if session_id not in wanted}
        uris = {uri for uri, entry in manifest.files.where("group", groups).items() if entry.shard}
        own = {a for i, a in files_of_namesakes(manifest, gone).items() if i in wanted}
        uris |= {uri for uri in gone if artifact_id(uri) in own}
        local = uris & manifest.local_files()
        there = sorted(local - deleted_files(local))
        across = manifest.across_signals.keys()
        manifest.across = None  # which names the sessions
        store.drop(wanted, uris)
        manifest.code = ""
        manifest.shards_changed()
        store.save()
        sidecars.forget_labels(store.folder, wanted)
        sidecars.forget_in_repositories(store.folder, wanted)
        sidecars.clear_caches(store.folder)
        shard_answers.clear(store.folder)
        fulltext.sweep(store.folder)
    pipeline.measure(store.folder, wait_s=wait_s)
    if across:
        pipeline.compute(Store(store.folder), across)
    return Forgotten(sessions=sorted(wanted), still_there=there)


_MET = (
    "SELECT format, coalesce(agent_version, '') AS version, count(*) AS n FROM sessions GROUP BY ALL"
    " ORDER BY format, n DESC, version"
)


def agent_versions(folder: Path | str | None) -> dict[str, dict[str, int]]:
    """Return sessions by format and agent version, most first. The version is empty where none is known; the result is
    empty where there is no store."""
    if not (resolve_folder(folder) / INDEX_FILE).exists():
        return {}
    met: dict[str, dict[str, int]] = {}
    for name, version, n in rows(Store(folder), _MET)[1]:
        met.setdefault(name, {})[version] = n
    return met
