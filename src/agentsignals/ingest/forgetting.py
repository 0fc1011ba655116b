"""Sessions that the store is to hold no longer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from agentsignals.fulltext import index
from agentsignals.ingest import pipeline
from agentsignals.sources.local import deleted_files
from agentsignals.store import Store, kept_findings, label_files, lock, repositories
from agentsignals.store.manifest import local_files, only_in


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
        repositories.forget(store.folder, wanted)
        kept_findings.forget(store.folder)
        index.sweep(store.folder)
    pipeline.measure(store.folder, wait_s=wait_s)
    return Forgotten(sessions=sorted(wanted), still_there=there)
