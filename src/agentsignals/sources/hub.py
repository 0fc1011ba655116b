"""Traces in a data set on the Hugging Face Hub: `hub:OWNER/NAME[@REVISION][#PATTERN]`.

Files are fetched while they are listed, and kept: a second run needs no network, and a content that several data sets
hold is fetched once. Without a pattern the transcripts are fetched; tables only where there are no transcripts, since
a table beside them says the same again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Source, Unreadable, by_name, hub_cache, hub_datasets, stumbled
from agentsignals.sources.hub_cache import Held, Listing
from agentsignals.sources.hub_datasets import FetchError
from agentsignals.sources.packed import SUFFIXES
from agentsignals.sources.prefetch import prefetched

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
    listing, of_now = hub_datasets.listing(wanted.name, wanted.revision)
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
        transcripts = taken_out(table, hub_cache.rows(held.oid))
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
        here = hub_cache.file(listing.name, listing.commit, held)
        if here is not None:
            return here
        if gone:
            return gone[0]
        try:
            return hub_datasets.fetch(listing.name, listing.commit, held)
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
            return hub_datasets.fetch(name, commit, held)
        from agentsignals.sources.parquet_rows import path_of, taken_out  # noqa: PLC0415

        folder = hub_cache.rows(oid)
        here = path_of(folder, int(row))
        if not here.is_file():
            taken_out(hub_datasets.fetch(name, commit, held), folder, again=True)
        return here
    except FetchError as problem:
        return problem.reason
    except SourceError:
        return "not_downloaded"
    except (OSError, ValueError):
        return "bad_parquet"


SOURCE = Source("hub", accepts, find, read)
