"""Mends a store: reads again what was damaged, where its sources are there, and puts aside what can't be mended."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from agentsignals.errors import AgentSignalsError
from agentsignals.ingest import pipeline
from agentsignals.store import Store, files, lock, parts, place, repositories
from agentsignals.store.damage import FOLDER

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
