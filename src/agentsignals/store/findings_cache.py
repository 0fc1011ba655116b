"""Cache of a store's findings and spending, as files beside its shards; the table `findings` reads the former.

A file's name has a hash of all that the answers follow from, so a stale one is never read. It can be thrown away.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
from msgspec import Struct

from agentsignals.errors import StoreError
from agentsignals.store import disk, sidecars
from agentsignals.store.index import RETIRED, code_stamp
from agentsignals.store.index import SHARDS_FOLDER as SHARDS

if TYPE_CHECKING:
    from agentsignals.store import Store

FEW = 0.02
"""Share of files that may be new or changed while earlier findings are still shown. In a store of a thousand sessions
findings are recomputed every twentieth prompt."""
KINDS = ("findings", "spending")
_OF = ".files"
_PROCESS = f"{os.getpid()} {time.time_ns()}"


def cache_file(store: Store, context: str, kind: str = "findings") -> Path:
    """Return the file of a context's answers of a kind. Where part of the store is of other code, or other packages
    add units, only this process uses it."""
    # Without the files of values that were computed on demand: findings do not rest on them.
    tables = {
        name: {table: file for table, file in shard.tables.items() if "." not in table}
        for name, shard in store.manifest.shards.items()
    }
    mark = _mark(_surroundings(store), tables, store.manifest.places)
    return store.folder / f"{kind}.{mark}.{context}.json"


def _surroundings(store: Store) -> list[object]:
    """State that findings follow from besides the sessions."""
    code = code_stamp()
    return [
        code,
        "" if store.manifest.code == code else _PROCESS,
        dict(sidecars.SidecarList(store.folder).live()),
        [str(damage) for damage in store.damage],
        sorted({(shard.embedder, shard.labels) for shard in store.manifest.shards.values()}),
    ]


def _mark(*state: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(state), digest_size=12).hexdigest()


class _Files(Struct):
    """State of the files that findings were computed from."""

    surroundings: str
    files: set[int]
    """A mark of each trace as it was read."""


def _files(store: Store) -> _Files:
    marks = {
        crc32(uri.encode("utf-8", "surrogateescape")) << 32 | crc32(b"%d|%d|%d" % (e.bytes, e.stamp or 0, e.parser))
        for uri, e in store.manifest.stamps().items()
        if e.is_trace
    }
    return _Files(_mark(_surroundings(store)), marks)


def read(store: Store, context: str, kind: str = "findings") -> bytes | None:
    """Return the cached answers of a context; None where nobody computed them, or the store is limited to some
    sessions."""
    if store.only is not None:
        return None
    try:
        return cache_file(store, context, kind).read_bytes()
    except OSError:
        return None


def recent(store: Store, context: str) -> tuple[bytes, int] | None:
    """Return earlier findings of a context and how many files changed since. None where there are none, more than `FEW`
    of the files changed, one is gone, or anything else differs."""
    if store.only is not None:
        return None
    formers = [f for f in store.folder.glob(f"findings.*.{context}.json") if f.with_suffix(_OF).exists()]
    try:
        former = max(formers, key=lambda file: file.stat().st_mtime_ns)
        then = msgspec.msgpack.decode(former.with_suffix(_OF).read_bytes(), type=_Files)
        made = former.read_bytes()
    except (OSError, ValueError):  # none; or removed, or damaged
        return None
    now = _files(store)
    changed, gone = len(now.files - then.files), len(then.files - now.files)
    is_near = now.surroundings == then.surroundings and changed <= FEW * len(now.files) and gone <= changed
    return (made, changed) if is_near else None


def write(store: Store, context: str, made: bytes, kind: str = "findings") -> None:
    """Cache a context's answers, where the folder can be written. Older findings are removed after an hour, older
    sums of spending at once: a status line may ask every second. Answers of a
    store that was replaced meanwhile are not kept: sessions may have been forgotten."""
    if store.only is not None:
        return
    kept = cache_file(store, context, kind)
    with suppress(OSError, StoreError):
        # A shard of this store was replaced since it was opened. Reading the index again would double its memory.
        folders = (store.folder / SHARDS / name for name, shard in store.manifest.shards.items() if shard.tables)
        if any(disk.has_entry(folder, RETIRED) or not folder.exists() for folder in folders):
            return
        if kind == "findings":  # which are still shown where few files changed
            disk.write_atomically(kept.with_suffix(_OF), msgspec.msgpack.encode(_files(store)))
        disk.write_atomically(kept, made)
        for former in store.folder.glob(f"{kind}.*.{context}.*"):
            if former.stem != kept.stem and (kind == "spending" or disk.is_expired(former)):
                former.unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Remove all cached answers: they name sessions."""
    for kept in (path for kind in KINDS for path in folder.glob(f"{kind}.*")):
        kept.unlink(missing_ok=True)
