"""Traces in a data set on the Hugging Face Hub: `hub:OWNER/NAME[@REVISION][#PATTERN]`.

Files are fetched while they are listed, and kept. A second run needs no network, and content that several data sets
share is fetched once. Without a pattern transcripts are fetched; tables only if no other file begins as a transcript
does, since a table beside transcripts repeats them. A table that is passed over is named.

Fetched files lie as huggingface_hub lays them out: a folder a data set, `snapshots/<commit>/<path>` linking to
`blobs/<content id>`. This module alone loads huggingface_hub, which waits as a server asks (`Retry-After`), resumes
broken downloads and uses the token of `hf auth login`. Only names of data sets, files and search words leave this
machine.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals import private_files
from agentsignals.errors import SourceError, install_command
from agentsignals.formats import begins_transcript, profiles
from agentsignals.formats.records import HEAD_BYTES
from agentsignals.sources import (
    CARD,
    SUFFIXES,
    RawFile,
    Source,
    Unreadable,
    by_name,
    cache_folder,
    prefetched,
    repository_folder,
)

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class DatasetFile(Struct, frozen=True):
    """A file of a data set. `oid` identifies its content: Git's id, or the SHA-256 of a large file."""

    path: str
    bytes: int
    oid: str


class Listing(Struct):
    name: str
    """`owner/name`."""
    revision: str
    """The branch, tag or commit that was asked for."""
    commit: str
    files: list[DatasetFile] = field(default_factory=list)


def is_safe(path: str) -> bool:
    """Return whether a path stays inside its data set on any machine. Paths are chosen by whoever uploaded them."""
    parts = path.split("/")
    return bool(path) and not any(p in ("", ".", "..") or ":" in p or "\\" in p or "\0" in p for p in parts)


def cached_file(name: str, commit: str, held: DatasetFile) -> Path | None:
    """Return where a file lies on this machine, or None if it was not fetched yet."""
    if not is_safe(held.path):
        return None
    repository = repository_folder(name)
    here = repository / "snapshots" / commit / held.path
    if here.is_file():
        return here
    if not _OID.fullmatch(held.oid):
        return None
    same = repository / "blobs" / held.oid
    if same.is_file():
        return same
    return next((p for p in cache_folder().glob(f"datasets--*/blobs/{held.oid}") if p.is_file()), None)


TRACES = "format:agent-traces"
"""Tag of data sets whose files the Hub recognises as agent traces."""

_QUIETLY = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1"}
_EXPANDED = [
    *("cardData", "createdAt", "downloads", "gated", "lastModified", "likes", "mainSize", "sha", "siblings", "tags")
]


class FetchError(Exception):
    """A file could not be fetched. `reason` counts it; `offline` says that the next one would fail too."""

    def __init__(self, reason: str, offline: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offline = offline


class DataSet(Struct, kw_only=True):
    """A data set as the Hub lists it."""

    name: str
    commit: str | None
    bytes: int | None
    """Size of its main branch, or None if the Hub does not say."""
    licence: str | None
    tags: list[str]
    files: list[str]
    downloads: int | None
    likes: int | None
    modified: str | None
    gated: bool
    duplicate_of: str | None = None
    """Another listed data set with files of the same names."""
    harnesses: list[str] = field(default_factory=list)


@cache
def _hub() -> Any:
    for name, value in _QUIETLY.items():
        os.environ.setdefault(name, value)
    try:
        import huggingface_hub  # noqa: PLC0415  (half a second to load)
    except ImportError as problem:
        raise SourceError(
            "The package huggingface_hub is not installed.", f"Install it: {install_command('hub')}"
        ) from problem
    return huggingface_hub


@cache
def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of huggingface_hub, of the HTTP client below it, and of answers that are not JSON."""
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError  # noqa: PLC0415

    clients = [c for c in HfHubHTTPError.__mro__ if c.__name__ in ("HTTPError", "RequestException")]
    return (*clients, EntryNotFoundError, OSError, ValueError, KeyError)


def is_offline() -> bool:
    """Return whether the person told Hub programs to stay off the network."""
    setting = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return setting.strip().upper() in ("1", "ON", "YES", "TRUE")


def dataset_listing(name: str, revision: str) -> tuple[Listing, bool]:
    """Return the files of a data set, and whether the listing is current.

    If the Hub can't be asked, the last listing serves. SourceError if there is none, or if the Hub refuses.
    """
    kept = cache_folder() / "listings" / repository_folder(name).name / f"{quote(revision, safe='')}.json"
    cached: Listing | None = None
    with suppress(OSError, msgspec.DecodeError):
        cached = msgspec.json.decode(kept.read_bytes(), type=Listing)
    if cached is not None and (is_offline() or _OID.fullmatch(revision)):
        return cached, True
    if is_offline():
        raise SourceError(f"The dataset {name!r} is not downloaded, and HF_HUB_OFFLINE is set.", "Unset it.")
    api = _hub().HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
    try:
        commit = str(api.dataset_info(name, revision=revision, expand=["sha"]).sha)
        entries = list(api.list_repo_tree(name, recursive=True, revision=commit, repo_type="dataset"))
        files = [
            DatasetFile(str(e.path), int(e.size), str(e.lfs.sha256 if e.lfs is not None else e.blob_id))
            for e in entries
            if hasattr(e, "blob_id")  # a folder has none
        ]
    except _failures() as problem:
        if type(problem).__name__ == "RevisionNotFoundError":
            raise SourceError(
                f"The dataset {name!r} has no revision {revision!r}.", "Name a branch, a tag or a commit."
            ) from problem
        if _status(problem) in (401, 403, 404):
            raise SourceError(
                f"There is no dataset {name!r} on the Hub, or you have no access.",
                "Check the name. For a private or gated dataset accept its terms and run `hf auth login`.",
            ) from problem
        if cached is not None:
            return cached, False
        raise SourceError(f"The dataset {name!r} can't be listed: {_first_line(problem)}.", _HINT) from problem
    fresh = Listing(name, revision, commit, files)
    try:
        private_files.make_folder(kept.parent)
        draft = kept.with_name(f".{kept.name}.{os.getpid()}.tmp")
        private_files.write(draft, msgspec.json.encode(fresh))
        draft.replace(kept)
    except OSError as problem:
        raise SourceError(
            f"The download cache {cache_folder()} can't be written: {problem.strerror}.", "Free some space there."
        ) from problem
    return fresh, True


def fetch_file(name: str, commit: str, held: DatasetFile) -> Path:
    """Return a file's place, after fetching it if needed. FetchError if it can't be fetched."""
    here = cached_file(name, commit, held)
    if here is not None:
        return here
    if not is_safe(held.path):
        raise FetchError("unsafe_path", offline=False)
    if is_offline():
        raise FetchError("not_downloaded", offline=True)
    hub = _hub()
    try:
        private_files.own_folder(cache_folder())
        where = hub.hf_hub_download(
            name,
            held.path,
            repo_type="dataset",
            revision=commit,
            cache_dir=cache_folder(),
            endpoint=os.environ.get("HF_ENDPOINT") or None,
        )
    except _failures() as problem:
        status = _status(problem)
        if status in (401, 403):
            raise FetchError("no_permission", offline=False) from problem
        if status == 404:
            raise FetchError("file_gone", offline=False) from problem
        raise FetchError("download_failed", offline=status in (None, 429)) from problem
    return Path(where)


def search_datasets(tags: list[str], words: str | None = None, owner: str | None = None) -> Iterator[DataSet]:
    """Yield data sets with all these tags, most downloaded first. SourceError if the Hub can't be asked."""
    if is_offline():
        raise SourceError("HF_HUB_OFFLINE is set, so the Hub cannot be searched.", "Unset HF_HUB_OFFLINE.")
    api = _hub().HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
    try:
        for info in api.list_datasets(filter=tags, search=words, author=owner, sort="downloads", expand=_EXPANDED):
            yield _data_set(info)
    except _failures() as problem:
        raise SourceError(f"The Hub can't be searched: {_first_line(problem)}.", _HINT) from problem


_HINT = "Check the network, and HF_ENDPOINT if you set it."


def _data_set(info: Any) -> DataSet:
    tags = [str(t) for t in info.tags or []]
    card = info.card_data.to_dict() if info.card_data is not None else {}
    size, stated = getattr(info, "main_size", None), card.get("license")
    licences = (t.removeprefix("license:") for t in tags if t.startswith("license:"))
    listed = ", ".join(map(str, stated)) if isinstance(stated, list) else stated
    return DataSet(
        name=str(info.id),
        commit=info.sha,
        bytes=size if isinstance(size, int) else None,
        licence=listed if isinstance(listed, str) and listed else next(licences, None),
        tags=tags,
        files=sorted(str(s.rfilename) for s in info.siblings or []),
        downloads=info.downloads,
        likes=info.likes,
        modified=info.last_modified.isoformat() if info.last_modified is not None else None,
        gated=bool(info.gated),
    )


def _status(problem: BaseException | None) -> int | None:
    """Return the HTTP status, or None if no server answered. The package may wrap the answer in an error of its own."""
    while problem is not None:
        status = getattr(getattr(problem, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
        problem = problem.__cause__
    return None


def _first_line(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    first_line = lines[0] if lines else type(problem).__name__
    return "".join(c if c.isprintable() else " " for c in first_line)[:200].rstrip(".")


TRACE_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".traj", ".eval", *SUFFIXES)
FEWEST_FILES = 2
_NAMED_BY_ID = re.compile(r"[0-9a-f]{8}|\d{4}-\d\d-\d\d")
"""File names that two data sets do not share by chance, unlike `train.parquet`."""


def with_agents_and_duplicates(data_sets: Iterable[DataSet]) -> list[DataSet]:
    """Fill in the agents of each data set, and which data set holds the same files.

    Files count as the same if their names are equal and contain a session's id or date; their content is compared
    when they are read. The first of equal data sets, which is the most downloaded, counts as the original.
    """
    first: dict[frozenset[str], str] = {}
    listed = list(data_sets)
    for data_set in listed:
        data_set.harnesses = harnesses(data_set)
        names = frozenset(n for p in traces_of(data_set) if _NAMED_BY_ID.search(n := PurePosixPath(p).name))
        if len(names) >= FEWEST_FILES:
            original = first.setdefault(names, data_set.name)
            data_set.duplicate_of = original if original != data_set.name else None
    return listed


def harnesses(data_set: DataSet) -> list[str]:
    """Return the agents that tags or folders name."""
    words = {t.lower().removeprefix("harness:").removeprefix("agent:") for t in data_set.tags}
    words |= {part.lower() for path in data_set.files for part in PurePosixPath(path).parts[:-1]}
    agents = {name: p.agent for p in profiles() for name in (p.agent, *p.aliases)}
    return sorted({agents.get(word, word) for word in words} & {*agents.values()})


def traces_of(data_set: DataSet) -> list[str]:
    """Return the files that may hold traces, by their names."""
    return [p for p in data_set.files if p.endswith(TRACE_SUFFIXES)]


MAIN = "main"
_SPEC = re.compile(r"hub:(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^#\s]+))?(?:#(?P<pattern>.+))?", re.DOTALL)
_LINES = (*(f"{name}{packed}" for name in (".jsonl", ".ndjson") for packed in ("", *SUFFIXES)), ".traj", ".eval")
_DOCUMENTS = tuple(f".json{packed}" for packed in ("", *SUFFIXES))
_TABLES = (".parquet", ".arrow", *(f"{name}{packed}" for name in (".csv", ".tsv") for packed in ("", *SUFFIXES)))
_AT_ONCE = 4
"""Downloads at a time. The Hub answers more with 429 (design/labels.md#hub)."""
_AHEAD = 16
_NOT_FETCHED = "-"
"""First character of the key of a file that is no transcript by its name: it is counted and not fetched."""
_NO_TRACE = b"\0"


class HubSpec(Struct, frozen=True):
    spec: str
    name: str
    revision: str
    pattern: str | None


def accepts(spec: str) -> bool:
    return spec.startswith("hub:")


def parse_spec(spec: str) -> HubSpec:
    """Parse a specification. SourceError if it is malformed."""
    parts = _SPEC.fullmatch(spec)
    if parts is None or ".." in (parts["revision"] or ""):
        raise SourceError(f"{spec!r} is not a dataset.", "Write hub:OWNER/NAME, hub:OWNER/NAME@REVISION#PATTERN.")
    return HubSpec(spec, parts["name"], parts["revision"] or MAIN, parts["pattern"])


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """List the files of a data set and fetch them. SourceError if there is none, or nothing in it is a trace."""
    wanted = parse_spec(spec)
    listing, of_now = dataset_listing(wanted.name, wanted.revision)
    files = sorted(listing.files, key=lambda f: f.path)
    if wanted.pattern is not None:
        fetched, others = [f for f in files if fnmatchcase(f.path, wanted.pattern)], []
    else:
        fetched = [f for f in files if f.path.endswith((*_LINES, *_DOCUMENTS, *_TABLES))]
        others = [f for f in files if not f.path.endswith((*_LINES, *_DOCUMENTS, *_TABLES))]
    if not fetched:
        pattern = f" like {wanted.pattern!r}" if wanted.pattern else " that may hold traces"
        shown = ", ".join(f.path for f in listing.files[:6]) or "nothing"
        raise SourceError(f"The dataset {wanted.name!r} contains no file{pattern}.", f"It contains {shown}.")
    trouble = [] if of_now else [Unreadable(f"hub:{wanted.name}@{wanted.revision}", spec, "fetch_failed")]
    passed = (_raw(wanted, listing, f, f"{_NOT_FETCHED}{f.oid}", f.bytes) for f in others)
    return itertools.chain(trouble, passed, _files(wanted, listing, fetched))


def folder_of(spec: str, patterns: Iterable[str]) -> Path:
    """Return a folder with the files of a data set that match one of these patterns, fetched. SourceError if the data
    set can't be listed or a file can't be fetched."""
    wanted = parse_spec(spec)
    listing, _ = dataset_listing(wanted.name, wanted.revision)
    folder = repository_folder(listing.name) / "snapshots" / listing.commit
    named = [pattern for pattern in patterns if ".." not in pattern]
    chosen = [f for f in listing.files if any(PurePosixPath(f.path).match(pattern) for pattern in named)]
    for held, here in _fetched(listing, [f for f in chosen if is_safe(f.path)]):
        if isinstance(here, str):
            raise SourceError(f"{held.path} of {wanted.name} can't be fetched: {here.replace('_', ' ')}.", _HINT)
        if not (link := folder / held.path).exists():  # the content lies in another data set
            private_files.make_folder(link.parent)
            link.symlink_to(here)
    private_files.make_folder(folder)
    return folder


def read(files: list[RawFile], limit: int | None) -> Iterator[bytes | Unreadable]:
    for file in files:
        if file.key.startswith(_NOT_FETCHED):
            yield _NO_TRACE
            continue
        here = place(file)
        if isinstance(here, str):
            yield Unreadable(file.uri, file.spec, here)
            continue
        data = _content(here, file, limit)
        yield replace(data, uri=file.uri, spec=file.spec) if isinstance(data, Unreadable) else data


def _content(here: Path, file: RawFile, limit: int | None) -> bytes | Unreadable:
    held = RawFile(uri=str(here), source="local", spec=file.spec, bytes=file.bytes, stamp=None)
    return next(by_name("local").read([held], limit))


def _files(wanted: HubSpec, listing: Listing, chosen: list[DatasetFile]) -> Iterator[RawFile | Unreadable]:
    """Fetch files: all that a pattern chooses; else tables after the others, unless these hold transcripts."""
    tables = [f for f in chosen if wanted.pattern is None and f.path.endswith(_TABLES)]
    if any(f.path.endswith(_TABLES) for f in chosen):  # the card says which configurations and splits they are
        list(_fetched(listing, [f for f in listing.files if f.path == CARD]))
    has_transcripts = False
    for part in ([f for f in chosen if not tables or not f.path.endswith(_TABLES)], tables):
        if part is tables and has_transcripts:
            for held in tables:
                uri = _uri(wanted, held.path)
                yield Unreadable(uri, wanted.spec, "beside_transcripts", f"a table of {held.bytes:,} bytes")
            return
        for held, here in _fetched(listing, part):
            if isinstance(here, str):
                yield Unreadable(_uri(wanted, held.path), wanted.spec, here)
                continue
            file = _raw(wanted, listing, held, held.oid, held.bytes)
            if tables and not has_transcripts:
                data = _content(here, file, HEAD_BYTES)
                has_transcripts = isinstance(data, bytes) and begins_transcript(data, held.path)
            yield file


def _raw(wanted: HubSpec, listing: Listing, held: DatasetFile, key: str, size: int) -> RawFile:
    return RawFile(
        uri=_uri(wanted, held.path), source="hub", spec=wanted.spec, bytes=size, stamp=None, key=key,
        container=f"{listing.name}@{listing.commit}:{held.path}",
    )  # fmt: skip


def _uri(wanted: HubSpec, path: str) -> str:
    """Name a file by the revision asked for, so that a later commit's copy of it is the same file."""
    text = f"hub:{wanted.name}@{wanted.revision}:{path}"
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _fetched(listing: Listing, chosen: list[DatasetFile]) -> Iterator[tuple[DatasetFile, Path | str]]:
    """Yield each file with its place, or the reason why it was not fetched. After a network error none is tried."""
    gone: list[str] = []

    def fetch(held: DatasetFile) -> Path | str:
        here = cached_file(listing.name, listing.commit, held)
        if here is not None:
            return here
        if gone:
            return gone[0]
        try:
            return fetch_file(listing.name, listing.commit, held)
        except FetchError as problem:
            if problem.offline:
                gone.append(problem.reason)
            return problem.reason

    return zip(chosen, prefetched(fetch, chosen, _AT_ONCE, _AHEAD), strict=True)


def place(file: RawFile) -> Path | str:
    """Return where a file lies, fetching it again if the cache was emptied, or the reason why it can't be had."""
    if "#" in file.key:  # a row of a table, as earlier versions listed them
        return "file_gone"
    location, _, path = file.container.partition(":")
    name, _, commit = location.partition("@")
    try:
        return fetch_file(name, commit, DatasetFile(path, file.bytes, file.key))
    except FetchError as problem:
        return problem.reason
    except SourceError:
        return "not_downloaded"


SOURCE = Source("hub", accepts, find, read, place=place)
