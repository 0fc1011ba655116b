"""Which session a person means: by its id, by the beginning of it, or by the file that holds it."""

from __future__ import annotations

from pathlib import PurePath

from agentsignals.errors import UnknownSession
from agentsignals.store.manifest import Manifest

_KEY = "session:"


def full_id(manifest: Manifest, name: str, place: str) -> str:
    """The id of the session named by it, by a unique beginning of it, or by its log: the address or the end of it, the
    file's name, or a unique beginning of the name. UnknownSession otherwise; `place` is the store's, for its words.
    """
    if name in manifest.sessions:
        return name
    near = [i for i in manifest.sessions if i.startswith(name)] if name else []
    if not near and name:
        near = _of_files(manifest, name)
    if len(near) == 1:
        return near[0]
    if near:
        raise UnknownSession(f"{name!r} names {len(near)} sessions.", f"For example {', '.join(near[:3])}.")
    raise UnknownSession(f"There is no session {name!r} in {place}.", "`agentsignals sessions` lists them.")


def _of_files(manifest: Manifest, name: str) -> list[str]:
    """The sessions of the files that are named so: those the files themselves name, else those of their families."""
    files = [entry for uri, entry in manifest.files.items() if entry.shard and _is_named(uri, name)]
    ids = {key.removeprefix(_KEY) for entry in files for key in entry.keys if key.startswith(_KEY)}
    families = {entry.family for entry in files}
    return sorted(ids & manifest.sessions.keys()) or sorted(
        i for i, entry in manifest.sessions.items() if entry.family in families
    )


def _is_named(uri: str, name: str) -> bool:
    return uri == name or uri.endswith(f"/{name.removeprefix('./')}") or PurePath(uri).name.startswith(name)
