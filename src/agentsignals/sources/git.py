"""Checkpoint transcripts inside Git: `git:PATH_OR_URL[#REF]`, every layout Entire has used
(design/formats.md#entire)."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from agentsignals.errors import SourceError
from agentsignals.git import objects
from agentsignals.sources import RawFile, Source, Unreadable, checkpoints, path_of, sound, uri_of
from agentsignals.sources.checkpoints import Place
from agentsignals.sources.git_clone import fetched, is_address, owner_and_name

_LOOKED_FOR = (
    "Looked for the branch entire/checkpoints/v1 and refs under refs/entire/checkpoints, which a plain clone doesn't"
    " bring (git fetch origin 'refs/entire/*:refs/entire/*'). Another ref can be named: git:PATH_OR_URL#REF."
)
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Repository(Struct, frozen=True, kw_only=True):
    """An opened repository: where its objects are, what to call it, what of it was asked for."""

    spec: str
    git_dir: str
    name: str
    """Its folder or its address: what artifacts are named by."""
    repo_hint: str
    ref: str
    trouble: Unreadable | None = None


class _CheckpointFile(Struct, frozen=True):
    """A file of a checkpoint: its content in one or more blobs."""

    ref: str
    place: Place
    oids: tuple[str, ...]


class _Named(Struct):
    session_id: str | None = None


def accepts(spec: str) -> bool:
    return spec.startswith("git:")


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """The transcripts and metadata of every checkpoint, each blob once. SourceError when there is no checkpoint."""
    try:
        repository = _opened(spec)
        files, damaged = _listed(repository, _chosen(repository))
    except objects.GitError as failed:
        raise SourceError(f"{spec!r} can't be read: {failed}.", "Try `git fsck` in that repository.") from None
    if not files and not damaged:
        raise SourceError(f"{_shown(repository)} holds no checkpoint of a coding session.", _LOOKED_FOR)
    return itertools.chain([repository.trouble] if repository.trouble else (), damaged, _files(repository, files))


def read(files: list[RawFile], limit: int | None) -> Iterator[bytes | Unreadable]:
    for container, group in itertools.groupby(files, key=lambda f: f.container):
        held, git_dir = list(group), path_of(container)
        pieces = objects.contents(git_dir, [oid for f in held for oid in f.key.split()], limit)
        for file in held:
            parts = list(itertools.islice(pieces, len(file.key.split())))
            whole = [p for p in parts if p is not None]
            if len(whole) < len(parts):
                yield Unreadable(file.uri, file.spec, "missing_blob")
            else:
                joined = b"\n".join(whole)  # Entire cuts a long transcript at line ends and drops that newline
                yield joined if limit is None else joined[:limit]


def _opened(spec: str) -> Repository:
    asked = spec if spec.startswith("git://") else spec[len("git:") :]
    if not asked or asked.startswith("-"):
        raise SourceError(f"{spec!r} names no repository.", "Write git:PATH_OR_URL or git:PATH_OR_URL#REF.")
    if shutil.which("git") is None:
        raise SourceError("The program git is not installed.", "Install git: it reads checkpoint branches.")
    if is_address(asked):
        address, _, ref = asked.partition("#")
        git_dir, trouble = fetched(address, ref, spec)
        return Repository(
            spec=spec,
            git_dir=git_dir,
            name=address,
            repo_hint=owner_and_name(address) or address,
            ref=ref,
            trouble=trouble,
        )
    path, ref = _path_and_ref(asked)
    located = objects.locate(path)
    if located is None:
        raise SourceError(
            f"{str(path)!r} is no Git repository.", "Name a repository's folder, or its https or ssh address."
        )
    git_dir, folder = located
    address = objects.origin(git_dir) or ""
    return Repository(
        spec=spec,
        git_dir=git_dir,
        name=folder,
        repo_hint=owner_and_name(address) or Path(folder).name.removesuffix(".git"),
        ref=ref,
    )


def _path_and_ref(asked: str) -> tuple[Path, str]:
    """A folder's own name may hold a `#`."""
    path = Path(asked).expanduser()
    if path.exists() or "#" not in asked:
        return path.absolute(), ""
    name, _, ref = asked.rpartition("#")
    return Path(name).expanduser().absolute(), ref


def _chosen(repository: Repository) -> list[tuple[str, str]]:
    """The refs to look into, with their ids: those that hold checkpoints by their name, or the one asked for."""
    ref = repository.ref
    if _OID.fullmatch(ref):
        return [(ref, ref)]
    refs = objects.refs(repository.git_dir)
    if not ref:
        return sorted(((name, oid) for name, oid in refs if checkpoints.layout(name)), key=_order)
    for prefix in ("", "refs/", "refs/heads/", "refs/remotes/", "refs/tags/"):
        wanted = f"{prefix}{ref}".rstrip("/")
        named = [(name, oid) for name, oid in refs if name == wanted or name.startswith(f"{wanted}/")]
        if named:
            return named
    raise SourceError(
        f"{_shown(repository)} has no ref {ref!r}.",
        f"It has {', '.join(sorted(name for name, _ in refs)[:8]) or 'none'}{' …' if len(refs) > 8 else ''}.",
    )


def _order(ref: tuple[str, str]) -> tuple[bool, str]:
    """What is here comes before what was here when the remote was last asked: the first path of a blob names it."""
    return ref[0].startswith("refs/remotes/"), ref[0]


def _listed(repository: Repository, chosen: list[tuple[str, str]]) -> tuple[list[_CheckpointFile], list[Unreadable]]:
    """Every file that counts, chunks put together, and the folders that can't be read."""
    roots: list[tuple[str, Callable[[str], bool]]] = []
    for name, oid in chosen:
        layout = checkpoints.layout(name)
        roots.append((oid, checkpoints.folders(layout[0]) if layout else checkpoints.any_layout))
    pieces: dict[tuple[int, str], list[tuple[Place, str]]] = {}
    damaged: list[Unreadable] = []
    for n, entries, lost in objects.walk(repository.git_dir, roots):
        if lost is not None:
            damaged.append(Unreadable(_uri(repository, chosen[n][0], lost), repository.spec, "missing_tree"))
        for entry in entries:
            placed = _place(chosen[n][0], entry.path)
            if placed is not None:
                pieces.setdefault((n, placed.whole), []).append((placed, entry.oid))
    files = []
    for n, whole in sorted(pieces):
        chunks = sorted(pieces[n, whole], key=lambda p: p[0].chunk)
        files.append(_CheckpointFile(chosen[n][0], chunks[0][0], tuple(oid for _, oid in chunks)))
    return files, damaged


def _place(ref: str, path: str) -> Place | None:
    layout = checkpoints.layout(ref)
    if layout:
        return checkpoints.place(layout[0], path, layout[1])
    guesses = (checkpoints.place(name, path) for name in ("sharded", "shadow", "rooted"))
    return next((g for g in guesses if g is not None), None)


def _files(repository: Repository, files: list[_CheckpointFile]) -> Iterator[RawFile | Unreadable]:
    sizes = objects.sizes(repository.git_dir, {oid for f in files for oid in f.oids})
    sessions = _sessions(repository, files, sizes)
    whole = [f.place for f in files if f.place.kind == "transcript" and all(oid in sizes for oid in f.oids)]
    full = {(place.checkpoint, place.n) for place in whole}
    seen: set[tuple[str, ...]] = set()
    for file in files:
        place = file.place
        # The compact copy says nothing that the full transcript doesn't: listed only where that one can't be had.
        if file.oids in seen or (place.kind == "compact" and (place.checkpoint, place.n) in full):
            continue
        seen.add(file.oids)
        uri = _uri(repository, file.ref, place.whole)
        if any(oid not in sizes for oid in file.oids):
            yield Unreadable(uri, repository.spec, "missing_blob")
            continue
        yield RawFile(
            uri=uri,
            source="git",
            spec=repository.spec,
            bytes=sum(sizes[oid] for oid in file.oids) + len(file.oids) - 1,
            stamp=None,
            container=uri_of(repository.git_dir),
            key=" ".join(file.oids),
            session_hint=place.session or sessions.get((place.checkpoint, place.n)),
            repo_hint=repository.repo_hint,
        )


def _sessions(
    repository: Repository, files: list[_CheckpointFile], sizes: dict[str, int]
) -> dict[tuple[str, str], str]:
    """The session id of each numbered folder of a checkpoint, as the metadata beside the transcript names it."""
    metadata = [f for f in files if f.place.kind == "metadata" and f.oids[0] in sizes]
    contents = objects.contents(repository.git_dir, [f.oids[0] for f in metadata])
    named: dict[tuple[str, str], str] = {}
    for file, content in zip(metadata, contents, strict=True):
        try:
            session_id = _named(content or b"{}").session_id
        except msgspec.DecodeError:
            continue
        if session_id:
            named.setdefault((file.place.checkpoint, file.place.n), checkpoints.without_date(session_id))
    return named


def _uri(repository: Repository, ref: str, path: str) -> str:
    text = sound(f"git:{repository.name}@{ref}:{path}")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _shown(repository: Repository) -> str:
    return repr(repository.name)


_named = msgspec.json.Decoder(_Named).decode

SOURCE = Source("git", accepts, find, read)
