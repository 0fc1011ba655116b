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

from agentsignals.store import files as disk
from agentsignals.store import parts
from agentsignals.store.code_stamp import code_stamp
from agentsignals.store.manifest import contexts

if TYPE_CHECKING:
    from agentsignals.store import Store

_PATTERN = "findings.*.json"
_PROCESS = f"{os.getpid()} {time.time_ns()}"


def path(store: Store, context: str) -> Path:
    """The file of a context's findings. Where not all of the store is of this very code, or other packages add units,
    which its stamp does not know, no other process has it."""
    code = code_stamp()
    state = [
        code,
        "" if store.manifest.code == code else _PROCESS,
        store.manifest.shards,
        store.manifest.across,
        dict(parts.load(store.folder).live()),
        [str(damage) for damage in store.damage],
    ]
    mark = hashlib.blake2b(msgspec.json.encode(state), digest_size=12).hexdigest()
    return store.folder / f"findings.{mark}.{context}.json"


def read(store: Store, context: str) -> bytes | None:
    """A context's findings as they were kept; None where nobody computed them."""
    try:
        return path(store, context).read_bytes()
    except OSError:
        return None


def keep(store: Store, context: str, made: bytes) -> None:
    """Keeps a context's findings, where the folder can be written; those of former states go after an hour."""
    kept = path(store, context)
    with suppress(OSError):
        disk.replace(kept, made)
        for former in store.folder.glob(_PATTERN):
            if former.name != kept.name and disk.is_old(former):
                former.unlink(missing_ok=True)


def every_context(store: Store) -> list[bytes] | None:
    """Those of all contexts that the store has; None where those of one were not kept."""
    kept = [read(store, context) for context in sorted(contexts(store.manifest))]
    return [made for made in kept if made is not None] if None not in kept else None


def forget(folder: Path) -> None:
    """Removes them all: they name sessions."""
    for kept in folder.glob(_PATTERN):
        kept.unlink(missing_ok=True)
