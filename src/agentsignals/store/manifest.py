"""The store's index: which shards are live, what each file looked like when it was read, where each session lies.

It can be thrown away: `rebuilt` makes it again from the shards. It is read and written whole, in one rename.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct, field

from agentsignals.errors import StoreError

SCHEMA_VERSION = 2
"""Version of the tables' columns; a store of another version is read again from its sources."""
NAME = "manifest.json"


class FileEntry(Struct, array_like=True):
    """A file as it was when it was last read; enough to notice a change, and to read it again with its family."""

    source: str
    spec: str
    bytes: int
    stamp: int | None
    container: str
    key: str
    session_hint: str | None
    repo_hint: str | None
    format: str | None
    parser: int
    """Version of the parser that read it; 0 when no format claims it."""
    family: str
    keys: list[str]
    shard: str = ""
    """Where its artifact row lies; empty for a file that is no trace at all and has none."""
    skipped: dict[str, int] = {}
    error: str = ""
    """The error of this program that cost some of it or all; to be shown, so that no defect hides among the skipped."""


class SessionEntry(Struct, array_like=True):
    """Where a session lies, and the figures the summary shows."""

    shard: str
    family: str
    context: str
    n_turns: int | None
    n_tool_calls: int | None
    n_edits: int | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None


class ShardEntry(Struct):
    """A live shard, and the versions of the signals in it."""

    signals: dict[str, int] = field(default_factory=dict)
    embedder: str = ""
    """What compared texts for them, as named on the command line; empty when not known."""
    internal_errors: dict[str, int] = field(default_factory=dict)
    labels: str = ""
    """Fingerprint of the labels made here that its values were computed with."""


class Manifest(Struct):
    """The whole index."""

    schema_version: int = SCHEMA_VERSION
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    sessions: dict[str, SessionEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    code: str = ""
    """The code that read all files and computed all signals last; empty when some of it is older."""
    embedder: str = "words"
    """What compares texts in this store, as named on the command line."""
    history_of: str = ""
    """Fingerprint of the shards that the values across sessions were computed from; empty when they are stale."""


def load(root: Path) -> Manifest | None:
    """The manifest; None when there is none, or it was written by another version or cut short."""
    try:
        found = msgspec.json.decode((root / NAME).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        return None
    except OSError as problem:
        raise StoreError(f"The store {root} can't be read: {problem.strerror}.", "Check its permissions.") from problem
    return found if found.schema_version == SCHEMA_VERSION else None


def save(root: Path, manifest: Manifest) -> None:
    """Writes the manifest in one rename."""
    target, draft = root / NAME, root / f".{NAME}.{os.getpid()}.tmp"
    try:
        draft.write_bytes(msgspec.json.encode(manifest))
        draft.replace(target)
    except OSError as problem:
        draft.unlink(missing_ok=True)
        raise StoreError(
            f"The store {root} can't be written: {problem.strerror}.",
            "Free some space, or name another folder with --store.",
        ) from problem
