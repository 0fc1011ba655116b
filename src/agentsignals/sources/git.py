"""Where Entire keeps what it records (design/formats.md#entire): which refs hold checkpoints, and what their paths
hold.

sharded  branch entire/checkpoints/v1 (before: entire/sessions), refs/entire/checkpoints/v1, v2/main, v2/full/*:
         <2>/<rest of the id>/metadata.json, <2>/<rest>/<n>/{metadata.json, full.jsonl | raw_transcript, …}
rooted   refs/entire/checkpoints/<2>/<id>: the checkpoint is the root of the tree
shadow   branches entire/<commit>-<hash>: the working tree, and .entire/metadata/<session>/full.jsonl
"""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
import platformdirs
from msgspec import Struct

from agentsignals.changes import git as objects
from agentsignals.changes.git import GitError
from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Source, Unreadable, path_of, sound, uri_of

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
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}-(?=.)")


class Place(Struct, frozen=True, kw_only=True):
    """What a path inside a ref is."""

    kind: Kind
    checkpoint: str
    """Id of the checkpoint; nothing on a shadow branch."""
    n: str
    """Which of its sessions; nothing for what belongs to the checkpoint as a whole."""
    whole: str
    """The path of the file that this is, or is a piece of."""
    chunk: int = 0
    session: str | None = None
    """The session id, where the path itself says it."""


def checkpoint_layout(ref: str) -> tuple[str, str] | None:
    """How a ref keeps checkpoints, and the id of the one it holds; None when it holds none."""
    for name, shape in _LAYOUTS:
        match = shape.fullmatch(ref)
        if match:
            return name, match[1] if name == "rooted" else ""
    return None


def any_layout(folder: str) -> bool:
    """Whether a folder is worth entering in a ref of which nothing is known."""
    return any(shape.fullmatch(folder) for shape in _FOLDERS.values())


def folders(name: str) -> Callable[[str], bool]:
    """Whether a folder (with its closing slash) of such a layout can hold a file that counts."""
    shape = _FOLDERS[name]
    return lambda folder: shape.fullmatch(folder) is not None


def place(name: str, path: str, held: str = "") -> Place | None:
    """What the file at `path` is; `held` is the checkpoint that the ref itself names."""
    match = _PATHS[name].fullmatch(path)
    if match is None:
        return None
    part = match.groupdict()
    kind = _kind(part["name"], part["base"], part["task"])
    if kind is None:
        return None
    whole = path[: match.start("chunk") - 1] if part["chunk"] else path
    checkpoint = (part.get("id") or "").replace("/", "") or held
    session = without_date(part["session"]) if part.get("session") else None
    return Place(
        kind=kind,
        checkpoint=checkpoint,
        n=part.get("n") or "",
        whole=whole,
        chunk=int(part["chunk"] or 0),
        session=session,
    )


def without_date(session_id: str) -> str:
    """The agent's own session id: before February 2026 Entire put the day in front of it."""
    return _DATE.sub("", session_id, count=1)


def _kind(name: str, base: str | None, task: str | None) -> Kind | None:
    if task:
        if name in ("checkpoint.json", "task.json"):
            return "task"
        return "transcript" if name.startswith("agent-") else None
    if base == "transcript.jsonl":
        return "compact"
    if base:
        return "transcript"
    return "metadata" if name == "metadata.json" else None


# A repository behind an address: its checkpoint refs are kept in a bare repository of ours, brought up to date.
#
# Only those refs are fetched, at their tips: the code and its history stay where they are.

_PROTOCOLS = ("https", "ssh", "git", "file")
_CHECKPOINTS = ("refs/heads/entire/*", "refs/entire/*")
_WHOLE = ("refs/heads/*", "refs/entire/*", "refs/pull/*/head", "refs/notes/ai*")
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$))[^\s\x00-\x1f\x7f~^:?*\[\\.-][^\s\x00-\x1f\x7f~^:?*\[\\]*")
_SETTINGS = ("-c", "gc.auto=0", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")


def is_address(text: str) -> bool:
    """Whether this is an address rather than a path: `scheme://…` or `user@host:path`."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|:)|[\w.-]+@[\w.-]+:", text) is not None


def fetched(address: str, ref: str, spec: str) -> tuple[str, Unreadable | None]:
    """The Git folder that now holds the address's checkpoint refs (or `ref`).

    When the address doesn't answer, what was fetched before serves, and the second value says so; SourceError when
    there is nothing from before.
    """
    _check(address, ref)
    folder = _folder(address)
    is_cached = (folder / "HEAD").is_file()
    try:
        if not is_cached:
            folder.mkdir(parents=True, exist_ok=True)
            objects.run("init", "--quiet", "--bare", "--template=", "--", str(folder))
        _fetch(folder, address, ref)
    except GitError as failed:
        if not is_cached or not objects.refs(str(folder)):
            raise SourceError(f"{address!r} can't be read: {failed}.", _HINT) from None
        return str(folder), Unreadable(f"git:{address}", spec, "fetch_failed")
    return str(folder), None


def fetched_whole(address: str) -> tuple[str, bool]:
    """The Git folder that now holds the address's branches, pull requests and checkpoints with all their history.

    The second value: whether the address answered. When it doesn't, what was fetched before serves; SourceError when
    there is nothing from before.
    """
    _check(address, "")
    folder = _folder(f"{address} whole")
    is_cached = (folder / "HEAD").is_file()
    try:
        if not is_cached:
            folder.mkdir(parents=True, exist_ok=True)
            objects.run("init", "--quiet", "--bare", "--template=", "--", str(folder))
            objects.run(f"--git-dir={folder}", "config", "remote.origin.url", address)
        objects.run(
            *_SETTINGS,
            f"--git-dir={folder}",
            *("fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--", address),
            *(f"+{refs}:{refs}" for refs in _WHOLE),
            protocols=":".join(_PROTOCOLS),
        )
    except GitError as failed:
        if not is_cached or not objects.refs(str(folder)):
            raise SourceError(f"{address!r} can't be read: {failed}.", _HINT) from None
        return str(folder), False
    return str(folder), True


def owner_and_name(address: str) -> str | None:
    """`owner/name` of a repository's address; None when it names no host (a folder)."""
    match = re.fullmatch(r"(?:https?|ssh|git)://[^/]+/(?:.*/)?([^/]+/[^/]+?)(?:\.git)?/*", address) or re.fullmatch(
        r"[^/@]+@[^/:]+:(?:.*/)?([^/]+/[^/]+?)(?:\.git)?/*", address
    )
    return match[1] if match else None


_HINT = "Check the address and that `git ls-remote` can read it without asking for a password."


def _check(address: str, ref: str) -> None:
    if not address.startswith(tuple(f"{p}://" for p in _PROTOCOLS)):
        raise SourceError(
            f"{address!r} is no address that is opened: only {', '.join(_PROTOCOLS)}.",
            "Write user@host:owner/name as ssh://user@host/owner/name.",
        )
    parts = urlsplit(address)
    if parts.password is not None:
        raise SourceError(
            "The address holds a password, which would be kept with the data.",
            "Leave it out; git asks your credential helper for it.",
        )
    if (parts.hostname or "").startswith("-") or any(not c.isprintable() for c in address):
        raise SourceError(f"{address!r} is no address.", _HINT)
    if ref and not _REF.fullmatch(ref):
        raise SourceError(f"{ref!r} is no name of a ref.", "Name a branch, or a whole ref: refs/entire/checkpoints/v1.")


def _folder(address: str) -> Path:
    name = hashlib.sha256(address.encode()).hexdigest()[:24]
    return Path(platformdirs.user_cache_dir("agentsignals")) / "git" / name


def _fetch(folder: Path, address: str, ref: str) -> None:
    wanted = [f"+{name}:{name}" for name in _wanted(ref)]
    try:
        objects.run(
            *_SETTINGS,
            f"--git-dir={folder}",
            *("fetch", "--quiet", "--prune", "--no-tags", "--depth=1", "--no-write-fetch-head"),
            *("--", address, *wanted),
            protocols=":".join(_PROTOCOLS),
        )
    except GitError as failed:
        if str(failed):  # a shallow fetch fails without a word when the other side has no such ref
            raise


def _wanted(ref: str) -> list[str]:
    """Patterns, because a plain name that isn't there would fail the whole fetch."""
    if not ref or _OID.fullmatch(ref):
        return list(_CHECKPOINTS)
    if ref.startswith("refs/"):
        return [f"{ref}*"]
    return [f"refs/heads/{ref}*", f"refs/{ref}*", f"refs/tags/{ref}*"]


# Checkpoint transcripts inside Git: `git:PATH_OR_URL[#REF]`, every layout Entire has used
# (design/formats.md#entire).

_LOOKED_FOR = (
    "Looked for the branch entire/checkpoints/v1 and refs under refs/entire/checkpoints, which a plain clone doesn't"
    " bring (git fetch origin 'refs/entire/*:refs/entire/*'). Another ref can be named: git:PATH_OR_URL#REF."
)


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
        return sorted(((name, oid) for name, oid in refs if checkpoint_layout(name)), key=_order)
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
        layout = checkpoint_layout(name)
        roots.append((oid, folders(layout[0]) if layout else any_layout))
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
    layout = checkpoint_layout(ref)
    if layout:
        return place(layout[0], path, layout[1])
    guesses = (place(name, path) for name in ("sharded", "shadow", "rooted"))
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
            named.setdefault((file.place.checkpoint, file.place.n), without_date(session_id))
    return named


def _uri(repository: Repository, ref: str, path: str) -> str:
    text = sound(f"git:{repository.name}@{ref}:{path}")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _shown(repository: Repository) -> str:
    return repr(repository.name)


_named = msgspec.json.Decoder(_Named).decode

SOURCE = Source("git", accepts, find, read)
