"""Data sets on the Hugging Face Hub: which there are, what files they hold, and fetching them.

The only place that loads huggingface_hub. It waits as a server asks (`Retry-After`), goes on with a file whose
connection broke where it broke, and uses the token of `hf auth login`, if there is one. What leaves this machine are
names of data sets, files and search words.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentsignals.errors import SourceError
from agentsignals.sources import hub_cache
from agentsignals.sources.hub_cache import Held, Listing

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


def listing(name: str, revision: str) -> tuple[Listing, bool]:
    """The files of a data set, and whether they are those of now.

    When the Hub can't be asked, those of the last time serve. SourceError when there are none, or the Hub refuses.
    """
    cached = hub_cache.load(name, revision)
    if cached is not None and (is_offline() or hub_cache.is_commit(revision)):
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
        hub_cache.save(fresh)
    except OSError as problem:
        raise SourceError(
            f"{hub_cache.folder()} can't be written: {problem.strerror}.", "Free some space there."
        ) from problem
    return fresh, True


def fetch(name: str, commit: str, held: Held) -> Path:
    """The file, brought here when it isn't yet. FetchError when it does not come."""
    here = hub_cache.file(name, commit, held)
    if here is not None:
        return here
    if not hub_cache.is_safe(held.path):
        raise FetchError("unsafe_path", offline=False)
    if is_offline():
        raise FetchError("not_downloaded", offline=True)
    hub = _hub()
    try:
        where = hub.hf_hub_download(
            name, held.path, repo_type="dataset", revision=commit, cache_dir=hub_cache.folder(), endpoint=_endpoint()
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
