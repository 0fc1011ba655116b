"""What was brought here from the Hub: listings and files in a folder of ours. Reads the disk only.

The files lie as huggingface_hub lays them out: a folder a data set, `snapshots/<commit>/<path>`, each a link to
`blobs/<id of the content>`. So a file that several data sets hold is there once it was fetched from any of them.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Held(Struct, frozen=True):
    """A file of a data set. `oid` names its content: Git's id, or the SHA-256 of a large file."""

    path: str
    bytes: int
    oid: str


class Listing(Struct):
    """The files of a data set at a commit."""

    name: str
    """`owner/name`."""
    revision: str
    """What was asked for: a branch, a tag, a commit."""
    commit: str
    files: list[Held] = field(default_factory=list)


def folder() -> Path:
    """Where it is kept: below the platform's folder for caches."""
    import platformdirs  # noqa: PLC0415  (a worker that reads what was fetched is told where)

    return Path(platformdirs.user_cache_dir("agentsignals")) / "hub"


def is_commit(revision: str) -> bool:
    """Whether it names a state that can't change any more."""
    return _OID.fullmatch(revision) is not None


def is_safe(path: str) -> bool:
    """Whether a path stays inside its data set on any machine: names come from whoever made it."""
    parts = path.split("/")
    return bool(path) and not any(p in ("", ".", "..") or ":" in p or "\\" in p or "\0" in p for p in parts)


def save(listing: Listing) -> None:
    """Keeps a listing, for the time without a network. OSError when the disk refuses."""
    target = _listing_path(listing.name, listing.revision)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    draft.write_bytes(msgspec.json.encode(listing))
    draft.replace(target)


def load(name: str, revision: str) -> Listing | None:
    """The listing of the last time; None when there is none, or it can't be read."""
    try:
        return msgspec.json.decode(_listing_path(name, revision).read_bytes(), type=Listing)
    except (OSError, msgspec.DecodeError):
        return None


def file(name: str, commit: str, held: Held) -> Path | None:
    """Where a file lies here; None when it was not fetched yet."""
    if not is_safe(held.path):
        return None
    repository = folder() / _repository(name)
    here = repository / "snapshots" / commit / held.path
    if here.is_file():
        return here
    if not _OID.fullmatch(held.oid):
        return None
    same = repository / "blobs" / held.oid
    if same.is_file():
        return same
    return next((p for p in folder().glob(f"datasets--*/blobs/{held.oid}") if p.is_file()), None)


def rows(oid: str) -> Path:
    """The folder for the transcripts taken out of a table of that content."""
    safe = oid if _OID.fullmatch(oid) else hashlib.sha256(oid.encode()).hexdigest()
    return folder() / "rows" / safe


def _repository(name: str) -> str:
    return "--".join(["datasets", *name.split("/")])


def _listing_path(name: str, revision: str) -> Path:
    return folder() / "listings" / _repository(name) / f"{quote(revision, safe='')}.json"
