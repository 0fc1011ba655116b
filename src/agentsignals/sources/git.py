"""Checkpoint transcripts that Entire keeps in Git: `git:PATH_OR_URL[#REF]` (design/formats.md#entire).

Three layouts of refs and paths have been used:

sharded  branch entire/checkpoints/v1 (before: entire/sessions), refs/entire/checkpoints/v1, v2/main, v2/full/*:
         <2>/<rest of the id>/metadata.json, <2>/<rest>/<n>/{metadata.json, full.jsonl | raw_transcript, …}
rooted   refs/entire/checkpoints/<2>/<id>: the checkpoint is the root of the tree
shadow   branches entire/<commit>-<hash>: the working tree, and .entire/metadata/<session>/full.jsonl
"""

import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import platformdirs
from msgspec import Struct
from msgspec.structs import replace

from agentsignals import private_files
from agentsignals.changes import git as objects
from agentsignals.changes.git import GitError
from agentsignals.errors import SourceError
from agentsignals.formats.entire import undated_session_id
from agentsignals.formats.records import decoded, inside, string
from agentsignals.sources import RawFile, Source, Unreadable, path_of, storable_text, uri_of

Kind = Literal["transcript", "compact", "metadata", "task"]

_V1 = "entire/(?:checkpoints|sessions)(?:/v1)?"
_V2 = "entire/checkpoints/v2/(?:main|full/[^/]+)"
_LAYOUTS = (
    ("sharded", re.compile(rf"refs/(?:heads/|remotes/(?:.+/)?)?(?:{_V1}|{_V2})")),
    ("rooted", re.compile(r"refs/(?:remotes/(?:.+/)?)?entire/checkpoints/[0-9a-zA-Z]{2}/([0-9a-f]{12}|[0-9A-Z]{26})")),
    ("shadow", re.compile(r"refs/(?:heads/|remotes/(?:.+/)?)entire/[0-9a-f]{7,40}(?:-[0-9a-zA-Z]+)?")),
)

_ID = "(?P<id>[0-9a-f]{2}/[0-9a-f]{10}|[0-9A-Z]{2}/[0-9A-Z]{24})"
_TASK = r"(?P<task>tasks/[^/]+/)?"
_FILE = (
    r"(?P<name>metadata\.json|(?:checkpoint|task)\.json|agent-[^/]+\.jsonl"
    r"|(?P<base>full\.jsonl|full\.log|raw_transcript|transcript\.jsonl)(?:\.(?P<chunk>\d{3,}))?)"
)
_PATHS = {
    "sharded": re.compile(rf"{_ID}/(?:(?P<n>\d+)/)?{_TASK}{_FILE}", re.DOTALL),
    "rooted": re.compile(rf"(?:(?P<n>\d+)/)?{_TASK}{_FILE}", re.DOTALL),
    "shadow": re.compile(rf"\.entire/metadata/(?P<session>[^/]+)/{_TASK}{_FILE}", re.DOTALL),
}
_FOLDERS = {
    "sharded": re.compile(rf"(?:[0-9a-zA-Z]{{2}}|{_ID}(?:/\d+)?(?:/tasks(?:/[^/]+)?)?)/", re.DOTALL),
    "rooted": re.compile(r"(?:\d+/)?(?:tasks/(?:[^/]+/)?)?", re.DOTALL),
    "shadow": re.compile(r"\.entire/(?:metadata/(?:[^/]+/(?:tasks/(?:[^/]+/)?)?)?)?", re.DOTALL),
}


class CheckpointPath(Struct, frozen=True, kw_only=True):
    """The parts of a path inside a ref."""

    kind: Kind
    checkpoint: str
    """Checkpoint id; empty on a shadow branch."""
    n: str
    """Number of the session in the checkpoint; empty for files of the checkpoint as a whole."""
    whole: str
    """Path of the file of which this is all or a chunk."""
    chunk: int = 0
    session: str | None = None
    """Session id, if the path names it."""


def checkpoint_layout(ref: str) -> tuple[str, str] | None:
    """Return the layout of a ref and the id of the checkpoint it holds. None if the ref holds no checkpoints."""
    for name, shape in _LAYOUTS:
        match = shape.fullmatch(ref)
        if match:
            return name, match[1] if name == "rooted" else ""
    return None


def folder_filter(layout: str | None) -> Callable[[str], bool]:
    """Return a test of folders (with their closing slash) that may hold files in this layout; None: in any."""
    shapes = [_FOLDERS[layout]] if layout is not None else [*_FOLDERS.values()]
    return lambda folder: any(shape.fullmatch(folder) for shape in shapes)


def checkpoint_path(name: str, path: str, held: str = "") -> CheckpointPath | None:
    """Parse the path of a file; `held`: the checkpoint that the ref names. None if it is no file of a checkpoint."""
    match = _PATHS[name].fullmatch(path)
    if match is None:
        return None
    part = match.groupdict()
    kind: Kind = "transcript" if part["base"] else "metadata"
    if part["task"]:
        is_task = part["name"] in ("checkpoint.json", "task.json")
        if not is_task and not part["name"].startswith("agent-"):
            return None
        kind = "task" if is_task else "transcript"
    elif part["base"] == "transcript.jsonl":
        kind = "compact"
    elif not part["base"] and part["name"] != "metadata.json":
        return None
    return CheckpointPath(
        kind=kind,
        checkpoint=(part.get("id") or "").replace("/", "") or held,
        n=part.get("n") or "",
        whole=path[: match.start("chunk") - 1] if part["chunk"] else path,
        chunk=int(part["chunk"] or 0),
        session=undated_session_id(part["session"]) if part.get("session") else None,
    )


# A repository behind an address is fetched into a bare repository in the cache folder.

_PROTOCOLS = ("https", "ssh", "git", "file")
_WHOLE = ("refs/heads/*", "refs/entire/*", "refs/pull/*/head", "refs/notes/ai*")
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$))[^\s\x00-\x1f\x7f~^:?*\[\\.-][^\s\x00-\x1f\x7f~^:?*\[\\]*")


def is_address(text: str) -> bool:
    """Return whether this is an address (`scheme://…` or `user@host:path`) and no path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|:)|[\w.-]+@[\w.-]+:", text) is not None


def fetch_checkpoints(address: str, ref: str, spec: str) -> tuple[str, Unreadable | None]:
    """Fetch an address's checkpoint refs (or `ref`) and return the Git folder that holds them.

    If the address doesn't answer, the earlier fetch serves and the second value says so. SourceError if there is
    none.
    """
    # Patterns: a plain name that does not exist would fail the whole fetch.
    if not ref or _OID.fullmatch(ref):
        wanted = ["refs/heads/entire/*", "refs/entire/*"]
    else:
        wanted = [f"{ref}*"] if ref.startswith("refs/") else [f"refs/{at}{ref}*" for at in ("heads/", "", "tags/")]
    # At their tips alone: the code and its history stay where they are.
    folder, answered = _fetched(address, ref, address, wanted, "--depth=1")
    return folder, None if answered else Unreadable(f"git:{address}", spec, "fetch_failed")


def fetch_repository(address: str) -> tuple[str, bool]:
    """Fetch an address's branches, pull requests and checkpoints with their history. Return the Git folder, and whether
    the address answered.

    If it doesn't answer, the earlier fetch serves. SourceError if there is none.
    """
    return _fetched(address, "", f"{address} whole", _WHOLE)


def owner_and_name(address: str) -> str | None:
    """Return `owner/name` of a repository's address, or None if it names no host."""
    match = re.fullmatch(r"(?:https?|ssh|git)://[^/]+/(?:.*/)?([^/]+/[^/]+?)(?:\.git)?/*", address) or re.fullmatch(
        r"[^/@]+@[^/:]+:(?:.*/)?([^/]+/[^/]+?)(?:\.git)?/*", address
    )
    return match[1] if match else None


_HINT = "Check the address and that `git ls-remote` can read it without asking for a password."


def _fetched(address: str, ref: str, cache_key: str, wanted: Sequence[str], *options: str) -> tuple[str, bool]:
    """Fetch wanted refs into the cache. Returns its folder, and whether the server answered; else it is as before."""
    if not address.startswith(tuple(f"{p}://" for p in _PROTOCOLS)):
        raise SourceError(
            f"The repository address {address!r} does not begin with {', '.join(f'{p}://' for p in _PROTOCOLS)}.",
            "For example, write user@host:owner/name as ssh://user@host/owner/name.",
        )
    parts = urlsplit(address)
    if parts.password is not None:
        raise SourceError(
            "The repository address contains a password, which would be stored with the data.",
            "Remove it; git asks your credential helper.",
        )
    if (parts.hostname or "").startswith("-") or any(not c.isprintable() for c in address):
        raise SourceError(f"{address!r} is not the address of a Git repository.", _HINT)
    if ref and not _REF.fullmatch(ref):
        raise SourceError(
            f"{ref!r} is not the name of a Git ref.", "Name a branch, or a whole ref: refs/entire/checkpoints/v1."
        )
    name = hashlib.sha256(cache_key.encode()).hexdigest()[:24]
    folder = Path(platformdirs.user_cache_dir("agentsignals")) / "git" / name
    is_cached = (folder / "HEAD").is_file()
    try:
        if not is_cached:
            private_files.own_folder(folder.parent)
            private_files.make_folder(folder)
            objects.run("init", "--quiet", "--bare", "--template=", "--", str(folder))
            if not options:
                objects.run(f"--git-dir={folder}", "config", "remote.origin.url", address)
        try:
            objects.run(
                *("-c", "gc.auto=0", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60"),
                f"--git-dir={folder}",
                *("fetch", "--quiet", "--prune", "--no-tags", *options, "--no-write-fetch-head", "--", address),
                *(f"+{refs}:{refs}" for refs in wanted),
                protocols=":".join(_PROTOCOLS),
            )
        except GitError as failed:
            if str(failed) or not options:  # a shallow fetch fails without a word if the remote has no such ref
                raise
    except GitError as failed:
        if not is_cached or not objects.refs(str(folder)):
            raise SourceError(f"The repository {address!r} can't be read: {failed}.", _HINT) from None
        return str(folder), False
    return str(folder), True


_LOOKED_FOR = (
    "Looked for the branch entire/checkpoints/v1 and refs under refs/entire/checkpoints, which a plain clone does not"
    " fetch (git fetch origin 'refs/entire/*:refs/entire/*'). Another ref can be named: git:PATH_OR_URL#REF."
)


class Repository(Struct, frozen=True, kw_only=True):
    """An opened repository and the ref that was asked for."""

    spec: str
    git_dir: str
    name: str
    """Its folder or address, by which artifacts are named."""
    repo_hint: str
    ref: str
    trouble: Unreadable | None = None


class _CheckpointFile(Struct, frozen=True):
    ref: str
    place: CheckpointPath
    oids: tuple[str, ...]


def accepts(spec: str) -> bool:
    return spec.startswith("git:")


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """List the transcripts and metadata of every checkpoint, each blob once. SourceError if there is no checkpoint."""
    try:
        repository = _opened(spec)
        files, damaged = _listed(repository, _chosen(repository))
    except objects.GitError as failed:
        raise SourceError(f"{spec!r} can't be read: {failed}.", "Try `git fsck` in that repository.") from None
    if not files and not damaged:
        raise SourceError(f"{repository.name!r} contains no checkpoint of a coding session.", _LOOKED_FOR)
    return itertools.chain([repository.trouble] if repository.trouble else (), damaged, _files(repository, files))


def holds_checkpoints(git_dir: str) -> bool:
    """Return whether a Git folder has refs of checkpoints. No program is run: most repositories have none."""
    folder = Path(git_dir)
    names: list[str] = []
    with suppress(OSError):  # a repository without packed refs
        packed = (folder / "packed-refs").read_text(encoding="utf-8", errors="replace")
        names = [line.partition(" ")[2] for line in packed.splitlines()]
    for place, _, files in os.walk(folder / "refs"):
        names += [(Path(place) / name).relative_to(folder).as_posix() for name in files]
    return any("entire/" in name and checkpoint_layout(name) for name in names)


def find_in(folder: str, spec: str) -> Iterator[RawFile | Unreadable]:
    """List the checkpoints of a repository that was found under a folder, as parts of that folder's specification."""
    try:
        found = find(f"git:{folder}")
    except SourceError as problem:
        yield Unreadable(uri_of(folder), spec, "unreadable", f"{problem.message} {problem.hint}")
        return
    for file in found:
        yield replace(file, spec=spec)


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
    """Open the repository of a specification, a folder or an address; SourceError where it is none."""
    asked = spec if spec.startswith("git://") else spec[len("git:") :]
    if not asked or asked.startswith("-"):
        raise SourceError(f"{spec!r} is not a repository.", "Write git:PATH_OR_URL or git:PATH_OR_URL#REF.")
    if shutil.which("git") is None:
        raise SourceError("The program git is not installed.", "Install git to read checkpoint branches.")
    if is_address(asked):
        address, _, ref = asked.partition("#")
        git_dir, trouble = fetch_checkpoints(address, ref, spec)
        return Repository(
            spec=spec,
            git_dir=git_dir,
            name=address,
            repo_hint=owner_and_name(address) or address,
            ref=ref,
            trouble=trouble,
        )
    path, ref = Path(asked).expanduser(), ""
    if "#" in asked and not path.exists():  # a folder's own name may hold a `#`
        name, _, ref = asked.rpartition("#")
        path = Path(name).expanduser()
    path = path.absolute()
    located = objects.locate(path)
    if located is None:
        raise SourceError(
            f"{str(path)!r} is not a Git repository.", "Name a repository's folder, or its https or ssh address."
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


def _chosen(repository: Repository) -> list[tuple[str, str]]:
    """Return the refs to read with their ids: the one asked for, or all that hold checkpoints by their name."""
    ref = repository.ref
    if _OID.fullmatch(ref):
        return [(ref, ref)]
    refs = objects.refs(repository.git_dir)
    if not ref:
        found = [ref for ref in refs if checkpoint_layout(ref[0])]
        return sorted(
            found, key=lambda ref: (ref[0].startswith("refs/remotes/"), ref[0])
        )  # the first path names a blob
    for prefix in ("", "refs/", "refs/heads/", "refs/remotes/", "refs/tags/"):
        wanted = f"{prefix}{ref}".rstrip("/")
        named = [(name, oid) for name, oid in refs if name == wanted or name.startswith(f"{wanted}/")]
        if named:
            return named
    raise SourceError(
        f"The repository {repository.name!r} has no branch or ref {ref!r}.",
        f"It has {', '.join(sorted(name for name, _ in refs)[:8]) or 'none'}{' …' if len(refs) > 8 else ''}.",
    )


def _listed(repository: Repository, chosen: list[tuple[str, str]]) -> tuple[list[_CheckpointFile], list[Unreadable]]:
    """Return all files of checkpoints with chunks joined, and the folders that can't be read."""
    roots: list[tuple[str, Callable[[str], bool]]] = []
    for name, oid in chosen:
        layout = checkpoint_layout(name)
        roots.append((oid, folder_filter(layout[0] if layout else None)))
    pieces: dict[tuple[int, str], list[tuple[CheckpointPath, str]]] = {}
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


def _place(ref: str, path: str) -> CheckpointPath | None:
    layout = checkpoint_layout(ref)
    if layout:
        return checkpoint_path(layout[0], path, layout[1])
    guesses = (checkpoint_path(name, path) for name in ("sharded", "shadow", "rooted"))
    return next((g for g in guesses if g is not None), None)


def _files(repository: Repository, files: list[_CheckpointFile]) -> Iterator[RawFile | Unreadable]:
    """Yield the files of checkpoints, each content once; those whose objects are missing are told as unreadable."""
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
    """Return the session id of each numbered folder of a checkpoint, from the metadata beside the transcript."""
    metadata = [f for f in files if f.place.kind == "metadata" and f.oids[0] in sizes]
    contents = objects.contents(repository.git_dir, [f.oids[0] for f in metadata])
    named: dict[tuple[str, str], str] = {}
    for file, content in zip(metadata, contents, strict=True):
        if session_id := string(inside(decoded(content, Any), "session_id")):
            named.setdefault((file.place.checkpoint, file.place.n), undated_session_id(session_id))
    return named


def _uri(repository: Repository, ref: str, path: str) -> str:
    text = storable_text(f"git:{repository.name}@{ref}:{path}")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


SOURCE = Source("git", accepts, find, read)
