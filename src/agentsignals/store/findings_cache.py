"""The findings of a store as it now is, as files beside its shards: computed above it, they are its table `findings`.

A file's name holds all that it follows from, so it is of this very state or it is not read. It can be thrown away.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from agentsignals.errors import StoreError
from agentsignals.store import files as disk
from agentsignals.store import index as parts
from agentsignals.store.index import FOLDER as SHARDS
from agentsignals.store.index import RETIRED, code_stamp, contexts

if TYPE_CHECKING:
    from agentsignals.store import Store

FEW = 0.02
"""Of the files, so many may be new or others while what was said before is shown: with a session a prompt, a store of a
thousand is looked at anew every twentieth prompt, and what one session of fifty can change is said beside it."""
_PATTERN, _OF = "findings.*", ".files"
_MARK = 8
_PROCESS = f"{os.getpid()} {time.time_ns()}"


def path(store: Store, context: str) -> Path:
    """The file of a context's findings. Where not all of the store is of this very code, or other packages add units,
    which its stamp does not know, no other process has it."""
    mark = _mark(_surroundings(store), store.manifest.shards, store.manifest.across)
    return store.folder / f"findings.{mark}.{context}.json"


def _surroundings(store: Store) -> list[object]:
    """What the findings follow from beside the sessions."""
    code = code_stamp()
    return [
        code,
        "" if store.manifest.code == code else _PROCESS,
        dict(parts.load_parts(store.folder).live()),
        [str(damage) for damage in store.damage],
        sorted({(shard.embedder, shard.labels) for shard in store.manifest.shards.values()}),
    ]


def _mark(*state: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(state), digest_size=12).hexdigest()


class _Files(Struct):
    """What a state of the store was made of, beside its findings."""

    surroundings: str
    files: bytes
    """A mark of each trace as it was read, one behind the other."""


def _files(store: Store) -> _Files:
    marks = (
        hashlib.blake2b(f"{uri}|{e.bytes}|{e.stamp}|{e.parser}".encode("utf-8", "surrogateescape"), digest_size=_MARK)
        for uri, e in store.manifest.files.items()
        if e.shard
    )
    return _Files(_mark(_surroundings(store)), b"".join(mark.digest() for mark in marks))


def read(store: Store, context: str) -> bytes | None:
    """A context's findings as they were kept; None where nobody computed them."""
    try:
        return path(store, context).read_bytes()
    except OSError:
        return None


def shortly_before(store: Store, context: str) -> tuple[bytes, int] | None:
    """A context's findings before a few files changed, and how many these are. None where there are none, more files
    are new or others (`FEW` of all), one is gone, or anything else is another than then."""
    formers = [f for f in store.folder.glob(f"findings.*.{context}.json") if f.with_suffix(_OF).exists()]
    try:
        former = max(formers, key=lambda file: file.stat().st_mtime_ns)
        then = msgspec.msgpack.decode(former.with_suffix(_OF).read_bytes(), type=_Files)
        made = former.read_bytes()
    except (OSError, ValueError):  # none; or removed, or damaged
        return None
    now = _files(store)
    before, after = ({f.files[n : n + _MARK] for n in range(0, len(f.files), _MARK)} for f in (then, now))
    changed = len(after - before)
    is_near = now.surroundings == then.surroundings and changed <= FEW * len(after) and len(before - after) <= changed
    return (made, changed) if is_near else None


def keep(store: Store, context: str, made: bytes) -> None:
    """Keeps a context's findings, where the folder can be written; those of former states go after an hour. Not those
    of a state that was former when they were made: sessions may have been forgotten meanwhile."""
    kept = path(store, context)
    with suppress(OSError, StoreError):
        if _is_former(store):
            return
        disk.replace(kept.with_suffix(_OF), msgspec.msgpack.encode(_files(store)))
        disk.replace(kept, made)
        for former in store.folder.glob(_PATTERN):
            if former.stem != kept.stem and disk.is_old(former):
                former.unlink(missing_ok=True)


def _is_former(store: Store) -> bool:
    """Whether a shard that it holds was replaced since it was opened. The index is not read for it, which a large store
    would have in memory twice then."""
    folders = (store.folder / SHARDS / name for name, shard in store.manifest.shards.items() if shard.tables)
    return any(disk.holds(folder, RETIRED) or not folder.exists() for folder in folders)


def every_context(store: Store) -> list[bytes] | None:
    """Those of all contexts that the store has; None where those of one were not kept."""
    kept = [read(store, context) for context in sorted(contexts(store.manifest))]
    return [made for made in kept if made is not None] if None not in kept else None


def forget(folder: Path) -> None:
    """Removes them all: they name sessions."""
    for kept in folder.glob(_PATTERN):
        kept.unlink(missing_ok=True)
