"""What was brought here from the Hub: listings and files in a folder of ours. Reads the disk only.

The files lie as huggingface_hub lays them out: a folder a data set, `snapshots/<commit>/<path>`, each a link to
`blobs/<id of the content>`. So a file that several data sets hold is there once it was fetched from any of them.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.errors import SourceError
from agentsignals.formats import profiles
from agentsignals.sources import RawFile, Source, Unreadable, by_name, stumbled
from agentsignals.sources.contents import SUFFIXES, prefetched

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


# Data sets on the Hugging Face Hub: which there are, what files they hold, and fetching them.
#
# The only place that loads huggingface_hub. It waits as a server asks (`Retry-After`), goes on with a file whose
# connection broke where it broke, and uses the token of `hf auth login`, if there is one. What leaves this machine
# are names of data sets, files and search words.

TRACES = "format:agent-traces"
"""The tag of data sets whose files the Hub recognises as traces of agents (agent-traces)."""

_QUIETLY = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
}
_EXPANDED = [
    "cardData",
    "createdAt",
    "downloads",
    "gated",
    "lastModified",
    "likes",
    "mainSize",
    "sha",
    "siblings",
    "tags",
]


class FetchError(Exception):
    """A file did not come. `reason` is the word to count it by; `offline`: nor will the next one."""

    def __init__(self, reason: str, offline: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offline = offline


class DataSet(Struct, kw_only=True):
    """A data set as the Hub lists it."""

    name: str
    commit: str | None
    bytes: int | None
    """Size of its main branch; None when the Hub does not say."""
    licence: str | None
    tags: list[str]
    files: list[str]
    downloads: int | None
    likes: int | None
    modified: str | None
    gated: bool
    duplicate_of: str | None = None
    """Another data set of the list that holds files of the same names."""
    harnesses: list[str] = field(default_factory=list)


@cache
def _hub() -> Any:
    for name, value in _QUIETLY.items():
        os.environ.setdefault(name, value)
    try:
        import huggingface_hub  # noqa: PLC0415  (half a second to load)
    except ImportError as problem:
        raise SourceError(
            "The package huggingface_hub is not installed.", "Install it: pip install 'agentsignals[hub]'."
        ) from problem
    return huggingface_hub


def _endpoint() -> str | None:
    """Another Hub than the public one, where the person has one."""
    return os.environ.get("HF_ENDPOINT") or None


@cache
def _failures() -> tuple[type[Exception], ...]:
    """What the package raises: its own errors, those of the HTTP client below it, and an answer that is no JSON."""
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError  # noqa: PLC0415

    clients = [c for c in HfHubHTTPError.__mro__ if c.__name__ in ("HTTPError", "RequestException")]
    return (*clients, EntryNotFoundError, OSError, ValueError, KeyError)


def is_offline() -> bool:
    """Whether the person told all Hub programs to stay off the network."""
    setting = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return setting.strip().upper() in ("1", "ON", "YES", "TRUE")


def dataset_listing(name: str, revision: str) -> tuple[Listing, bool]:
    """The files of a data set, and whether they are those of now.

    When the Hub can't be asked, those of the last time serve. SourceError when there are none, or the Hub refuses.
    """
    cached = load(name, revision)
    if cached is not None and (is_offline() or is_commit(revision)):
        return cached, True
    if is_offline():
        raise SourceError(f"{name!r} was never fetched, and HF_HUB_OFFLINE is set.", "Run once with a network.")
    api = _hub().HfApi(endpoint=_endpoint())
    try:
        commit = str(api.dataset_info(name, revision=revision, expand=["sha"]).sha)
        files = [_held(f) for f in api.list_repo_tree(name, recursive=True, revision=commit, repo_type="dataset")]
    except _failures() as problem:
        refusal = _refusal(name, revision, problem)
        if refusal is not None:
            raise refusal from problem
        if cached is not None:
            return cached, False
        raise SourceError(f"{name!r} can't be listed: {_first_line(problem)}.", _HINT) from problem
    fresh = Listing(name, revision, commit, [f for f in files if f is not None])
    try:
        save(fresh)
    except OSError as problem:
        raise SourceError(f"{folder()} can't be written: {problem.strerror}.", "Free some space there.") from problem
    return fresh, True


def fetch_dataset(name: str, commit: str, held: Held) -> Path:
    """The file, brought here when it isn't yet. FetchError when it does not come."""
    here = file(name, commit, held)
    if here is not None:
        return here
    if not is_safe(held.path):
        raise FetchError("unsafe_path", offline=False)
    if is_offline():
        raise FetchError("not_downloaded", offline=True)
    hub = _hub()
    try:
        where = hub.hf_hub_download(
            name, held.path, repo_type="dataset", revision=commit, cache_dir=folder(), endpoint=_endpoint()
        )
    except _failures() as problem:
        status = _status(problem)
        if status in (401, 403):
            raise FetchError("no_permission", offline=False) from problem
        if status == 404:
            raise FetchError("file_gone", offline=False) from problem
        raise FetchError("download_failed", offline=status in (None, 429)) from problem
    return Path(where)


def listed(tags: list[str], words: str | None = None, owner: str | None = None) -> Iterator[DataSet]:
    """Data sets that have all these tags, most downloaded first. SourceError when the Hub can't be asked."""
    if is_offline():
        raise SourceError("HF_HUB_OFFLINE is set, so the Hub can't be searched.", "Unset it.")
    api = _hub().HfApi(endpoint=_endpoint())
    try:
        for info in api.list_datasets(filter=tags, search=words, author=owner, sort="downloads", expand=_EXPANDED):
            yield _data_set(info)
    except _failures() as problem:
        raise SourceError(f"The Hub can't be searched: {_first_line(problem)}.", _HINT) from problem


_HINT = "Check the network, and HF_ENDPOINT if you set it."


def _held(entry: Any) -> Held | None:
    """A file of the tree; None for a folder."""
    if not hasattr(entry, "blob_id"):
        return None
    return Held(str(entry.path), int(entry.size), str(entry.lfs.sha256 if entry.lfs is not None else entry.blob_id))


def _data_set(info: Any) -> DataSet:
    tags = [str(t) for t in info.tags or []]
    card = info.card_data.to_dict() if info.card_data is not None else {}
    size = getattr(info, "main_size", None)
    return DataSet(
        name=str(info.id),
        commit=info.sha,
        bytes=size if isinstance(size, int) else None,
        licence=_licence(card.get("license"), tags),
        tags=tags,
        files=sorted(str(s.rfilename) for s in info.siblings or []),
        downloads=info.downloads,
        likes=info.likes,
        modified=info.last_modified.isoformat() if info.last_modified is not None else None,
        gated=bool(info.gated),
    )


def _licence(stated: object, tags: list[str]) -> str | None:
    if isinstance(stated, list) and stated:
        return ", ".join(str(s) for s in stated)
    if isinstance(stated, str) and stated:
        return stated
    return next((t.removeprefix("license:") for t in tags if t.startswith("license:")), None)


def _refusal(name: str, revision: str, problem: Exception) -> SourceError | None:
    """The error to raise when the Hub answered, and said no; None when it could not be asked."""
    status = _status(problem)
    if type(problem).__name__ == "RevisionNotFoundError":
        return SourceError(
            f"{name!r} has no revision {revision!r}.", "Name a branch, a tag or a commit: hub:OWNER/NAME@REV."
        )
    if status in (401, 403, 404):
        return SourceError(
            f"There is no data set {name!r} on the Hub, or it is not open to you.",
            "Check the name; for a private or gated one accept its terms on its page and run `hf auth login`.",
        )
    return None


def _status(problem: BaseException | None) -> int | None:
    """What the server answered; None when none did. The package may wrap the answer in an error of its own."""
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


# What a list of data sets tells of them: which agents they are of, and which hold the files of another.

TRACE_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".traj", ".eval", *SUFFIXES)
_WITHOUT_FORMAT = ("hermes", "aider")
FEWEST_FILES = 2
_NAMED_BY_ID = re.compile(r"[0-9a-f]{8}|\d{4}-\d\d-\d\d")
"""Names that two data sets would not share by chance, as they do `train.parquet`."""


def n_traces(data_set: DataSet) -> int:
    """Files that may hold traces, by their names."""
    return len(_traces(data_set))


def marked(data_sets: Iterable[DataSet]) -> list[DataSet]:
    """The data sets with their agents, and those uploaded again with the first that holds their files.

    The same names are the same files here, as long as they hold a session's id or its day; the content decides when
    they are read. Of equals the most downloaded is the first, as the Hub lists them.
    """
    first: dict[frozenset[str], str] = {}
    listed = list(data_sets)
    for data_set in listed:
        data_set.harnesses = harnesses(data_set)
        names = frozenset(n for p in _traces(data_set) if _NAMED_BY_ID.search(n := PurePosixPath(p).name))
        if len(names) >= FEWEST_FILES:
            original = first.setdefault(names, data_set.name)
            data_set.duplicate_of = original if original != data_set.name else None
    return listed


def harnesses(data_set: DataSet) -> list[str]:
    """The agents that tags name, or folders."""
    words = {t.lower().removeprefix("harness:").removeprefix("agent:") for t in data_set.tags}
    words |= {part.lower() for path in data_set.files for part in PurePosixPath(path).parts[:-1]}
    agents = {name: p.agent for p in profiles() for name in (p.agent, *p.aliases)}
    return sorted({agents.get(word, word) for word in words} & {*agents.values(), *_WITHOUT_FORMAT})


def _traces(data_set: DataSet) -> list[str]:
    return [p for p in data_set.files if p.endswith(TRACE_SUFFIXES)]


# Traces in a data set on the Hugging Face Hub: `hub:OWNER/NAME[@REVISION][#PATTERN]`.
#
# Files are fetched while they are listed, and kept: a second run needs no network, and a content that several data
# sets hold is fetched once. Without a pattern the transcripts are fetched; tables only where there are no
# transcripts, since a table beside them says the same again.

MAIN = "main"
_SPEC = re.compile(r"hub:(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^#\s]+))?(?:#(?P<pattern>.+))?", re.DOTALL)
_LINES = (*(f"{name}{packed}" for name in (".jsonl", ".ndjson") for packed in ("", *SUFFIXES)), ".traj", ".eval")
_DOCUMENTS = tuple(f".json{packed}" for packed in ("", *SUFFIXES))
_TABLE = ".parquet"
_AT_ONCE = 4
"""Files on their way at a time: the Hub answers more with 429 (design/labels.md#hub)."""
_AHEAD = 16
_NOT_FETCHED = "-"
"""Begins the key of a file that is no transcript by its name: it is counted, and costs no network."""
_NO_TRACE = b"\0"


class Asked(Struct, frozen=True):
    """A specification taken apart."""

    spec: str
    name: str
    revision: str
    pattern: str | None


def accepts(spec: str) -> bool:
    return spec.startswith("hub:")


def asked(spec: str) -> Asked:
    """The parts of a specification. SourceError when it is none."""
    parts = _SPEC.fullmatch(spec)
    if parts is None or ".." in (parts["revision"] or ""):
        raise SourceError(f"{spec!r} names no data set.", "Write hub:OWNER/NAME, hub:OWNER/NAME@REVISION#PATTERN.")
    return Asked(spec, parts["name"], parts["revision"] or MAIN, parts["pattern"])


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """The files of a data set, fetched. SourceError when there is no such data set, or nothing in it is a trace."""
    wanted = asked(spec)
    listing, of_now = dataset_listing(wanted.name, wanted.revision)
    fetched, others = _chosen(listing, wanted.pattern)
    if not fetched:
        pattern = f" like {wanted.pattern!r}" if wanted.pattern else " that may hold traces"
        shown = ", ".join(f.path for f in listing.files[:6]) or "nothing"
        raise SourceError(f"{wanted.name!r} holds no file{pattern}.", f"It holds {shown}.")
    trouble = [] if of_now else [Unreadable(f"hub:{wanted.name}@{wanted.revision}", spec, "fetch_failed")]
    passed = (_raw(wanted, listing, f, f"{_NOT_FETCHED}{f.oid}", f.bytes) for f in others)
    return itertools.chain(trouble, passed, _files(wanted, listing, fetched))


def read(files: list[RawFile], limit: int | None) -> Iterator[bytes | Unreadable]:
    local = by_name("local")
    for file in files:
        if file.key.startswith(_NOT_FETCHED):
            yield _NO_TRACE
            continue
        here = _here(file)
        if isinstance(here, str):
            yield Unreadable(file.uri, file.spec, here)
            continue
        data = next(
            local.read([RawFile(uri=str(here), source="local", spec=file.spec, bytes=file.bytes, stamp=None)], limit)
        )
        yield replace(data, uri=file.uri, spec=file.spec) if isinstance(data, Unreadable) else data


def _chosen(listing: Listing, pattern: str | None) -> tuple[list[Held], list[Held]]:
    """The files to fetch, and those that are only counted."""
    files = sorted(listing.files, key=lambda f: f.path)
    if pattern is not None:
        return [f for f in files if fnmatchcase(f.path, pattern)], []
    has_lines = any(f.path.endswith(_LINES) for f in files)
    wanted = (*_LINES, *_DOCUMENTS) if has_lines else (*_LINES, *_DOCUMENTS, _TABLE)
    return [f for f in files if f.path.endswith(wanted)], [f for f in files if not f.path.endswith(wanted)]


def _files(wanted: Asked, listing: Listing, chosen: list[Held]) -> Iterator[RawFile | Unreadable]:
    for held, here in _fetched(listing, chosen):
        if isinstance(here, str):
            yield Unreadable(_uri(wanted, held.path), wanted.spec, here)
        elif held.path.endswith(_TABLE):
            yield from _rows(wanted, listing, held, here)
        else:
            yield _raw(wanted, listing, held, held.oid, held.bytes)


def _rows(wanted: Asked, listing: Listing, held: Held, table: Path) -> Iterator[RawFile | Unreadable]:
    """The transcripts of a table, each a file."""
    from agentsignals.sources.parquet_rows import taken_out  # noqa: PLC0415  (pyarrow is loaded for tables only)

    try:
        transcripts = taken_out(table, rows(held.oid))
    except (OSError, ValueError):
        yield Unreadable(_uri(wanted, held.path), wanted.spec, "bad_parquet")
        return
    except Exception as problem:  # noqa: BLE001  (kept by name and shown: the other files of the data set are listed)
        yield stumbled(_uri(wanted, held.path), wanted.spec, problem)
        return
    if not transcripts.rows and not transcripts.lost:
        reason = "empty_file" if transcripts.has_column else "no_transcript_column"
        yield Unreadable(_uri(wanted, held.path), wanted.spec, reason)
    for lost in transcripts.lost:
        uri = f"{_uri(wanted, held.path)}#{lost.n}-{lost.n + lost.rows - 1}"
        yield Unreadable(uri, wanted.spec, lost.reason, f"{lost.rows:,} rows were not read")
    for row in transcripts.rows:
        yield _raw(wanted, listing, held, f"{held.oid}#{row.n}", row.bytes, f"#{row.n}", row.session_id)


def _raw(  # noqa: PLR0913  (what a RawFile is made of)
    wanted: Asked, listing: Listing, held: Held, key: str, size: int, part: str = "", session_id: str | None = None
) -> RawFile:
    container = f"{listing.name}@{listing.commit}:{held.path}"
    uri = _uri(wanted, held.path) + part
    return RawFile(
        uri=uri,
        source="hub",
        spec=wanted.spec,
        bytes=size,
        stamp=None,
        container=container,
        key=key,
        session_hint=session_id,
    )


def _uri(wanted: Asked, path: str) -> str:
    """Names the file by the revision asked for, so that a later commit's copy of it is the same file."""
    text = f"hub:{wanted.name}@{wanted.revision}:{path}"
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _fetched(listing: Listing, chosen: list[Held]) -> Iterator[tuple[Held, Path | str]]:
    """Where each file lies now, in order; the reason where it did not come. Once the network is gone none is tried."""
    gone: list[str] = []

    def fetch(held: Held) -> Path | str:
        here = file(listing.name, listing.commit, held)
        if here is not None:
            return here
        if gone:
            return gone[0]
        try:
            return fetch_dataset(listing.name, listing.commit, held)
        except FetchError as problem:
            if problem.offline:
                gone.append(problem.reason)
            return problem.reason

    return zip(chosen, prefetched(fetch, chosen, _AT_ONCE, _AHEAD), strict=True)


def _here(file: RawFile) -> Path | str:
    """Where a file lies; fetched again when the cache was emptied since. The reason when it can't be had."""
    place, _, path = file.container.partition(":")
    name, _, commit = place.partition("@")
    oid, _, row = file.key.partition("#")
    held = Held(path, file.bytes, oid)
    try:
        if not row:
            return fetch_dataset(name, commit, held)
        from agentsignals.sources.parquet_rows import path_of, taken_out  # noqa: PLC0415

        folder = rows(oid)
        here = path_of(folder, int(row))
        if not here.is_file():
            taken_out(fetch_dataset(name, commit, held), folder, again=True)
        return here
    except FetchError as problem:
        return problem.reason
    except SourceError:
        return "not_downloaded"
    except (OSError, ValueError):
        return "bad_parquet"


SOURCE = Source("hub", accepts, find, read)
