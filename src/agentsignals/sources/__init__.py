"""Sources list the files of a place and read their bytes. A source knows no format.

To add one: a module with a `SOURCE = Source(...)`. The first source that accepts a specification opens it.
"""

import errno
import mmap
import os
import re
import sys
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import AgentSignalsError, SourceError, UnknownSource, is_out_of_memory
from agentsignals.formats import homes
from agentsignals.model.lazy import deferred_pattern
from agentsignals.model.registry import Registry, did_you_mean

if TYPE_CHECKING:
    from concurrent.futures import Future


class RawFile(Struct, frozen=True, kw_only=True):
    """A listed file, with all that any process needs to read it."""

    uri: str
    """Permanent name of the file: the artifact's path in the store."""
    source: str
    """Name of the source that reads it."""
    spec: str
    """The specification that the person gave."""
    bytes: int
    stamp: int | None
    """Modification time in nanoseconds. None if the address itself names the content, as a Git blob's does."""
    container: str = ""
    """The path of its repository or the uri of its database; empty for a plain file."""
    key: str = ""
    """Its name in the container: a blob id, a path, a session's id."""
    session_hint: str | None = None
    repo_hint: str | None = None


def cache_folder() -> Path:
    """Return the folder of fetched files, below the platform's cache folder."""
    import platformdirs  # noqa: PLC0415  (a worker that reads what was fetched is told where)

    return Path(platformdirs.user_cache_dir("agentsignals")) / "hub"


def repository_folder(name: str) -> Path:
    """Return the folder of a data set in the cache of fetched files."""
    return cache_folder() / f"datasets--{name.replace('/', '--')}"


CARD = "README.md"
"""The card of a data set, at its top."""


class Origin(Struct, frozen=True):
    """The data set that a file is of: its name, its commit, and the part of it. One that was saved to disk has neither
    name nor commit."""

    dataset: str | None
    revision: str | None
    config: str | None
    split: str | None


_SPLITS = "dataset_dict.json"
"""Lies beside the folders of splits that `datasets` saved to disk."""
_IN_CACHE = deferred_pattern(r"/datasets--((?:(?!--)[^/])+)--([^/]+)/snapshots/([0-9a-f]{7,64})/(.+)")
_IN_HUB = deferred_pattern(r"([^/@]+)/([^@]+)@([0-9a-f]{7,64}):(.+)", re.DOTALL)
_SHARD = deferred_pattern(r"(.+?)[-_.]\d{5}-of-\d{5}")
_SPLIT = deferred_pattern(r"(?:^|[-_.])(train|test|validation|valid|val|dev|eval)(?:[-_.]|$)")


def origin_of(file: RawFile) -> Origin | None:
    """Return the data set that a file is of, by its place on the Hub or in a cache of the Hub's. None elsewhere.

    The card's `configs` tell configuration and split; without them names of files and folders do, as on the Hub.
    """
    found = _IN_HUB.fullmatch(file.container) if file.source == "hub" else _IN_CACHE.search(file.uri)
    if found is None:
        if file.source != "local" or not file.uri.endswith(".arrow"):
            return None
        folder = Path(path_of(file.uri)).parent
        return Origin(None, None, None, folder.name) if (folder.parent / _SPLITS).exists() else None
    owner, name, commit, path = found.groups()
    cached = repository_folder(f"{owner}/{name}") / "snapshots" / commit
    top = cached if file.source == "hub" else Path(path_of(file.uri).removesuffix(path))
    for config, split, pattern in _configs_of(top / CARD):
        if fnmatchcase(path, pattern) or path.startswith(f"{pattern.rstrip('/')}/"):
            return Origin(f"{owner}/{name}", commit, config, split)
    *folders, stem = path.split("/")
    shard, word = _SHARD.match(stem), _SPLIT.search(stem)
    split = shard[1] if shard is not None and shard[1] != "data" else word[1] if word is not None else None
    named = [folder for folder in folders if folder != "data"]
    if split is None and named and (word := _SPLIT.fullmatch(named[-1])) is not None:
        split = word[1]
        named.pop()
    return Origin(f"{owner}/{name}", commit, "/".join(named) or None, split)


@cache
def _configs_of(card: Path) -> list[tuple[str | None, str | None, str]]:
    """Return configuration, split and pattern of files, as a data set's card lists them."""
    import yaml  # noqa: PLC0415  (for data sets alone)

    found: list[tuple[str | None, str | None, str]] = []
    with suppress(OSError, yaml.YAMLError, RecursionError, ValueError):  # no card, or none that says it
        _, begin, rest = card.read_text("utf-8", "replace").partition("---\n")
        told = yaml.safe_load(rest.partition("\n---")[0]) if begin else None
        for config in told.get("configs") or () if isinstance(told, dict) else ():
            files = config.get("data_files") if isinstance(config, dict) else None
            for one in files if isinstance(files, list) else [files]:
                part = one if isinstance(one, dict) else {"path": one}
                paths = part.get("path")
                for path in paths if isinstance(paths, list) else [paths]:
                    if isinstance(path, str):
                        names = (config.get("config_name"), part.get("split"))
                        found.append((*(n if isinstance(n, str) else None for n in names), path))  # type: ignore[arg-type]
    return found


class Unreadable(Struct, frozen=True):
    """A file that exists and can't be read, or should exist and doesn't. It is counted, and never ends a run."""

    uri: str
    spec: str
    reason: str
    detail: str = ""
    """More than the reason says: the error of a source that failed, or how much was not read."""
    part: bytes = b""
    """The bytes that could be read."""


def internal_error(uri: str, spec: str, problem: Exception) -> Unreadable:
    """Count a file on which a source failed by a defect, or for want of memory, with the error's text."""
    why = error_text(problem)
    return Unreadable(uri, spec, reason_of(why), why)


OUT_OF_MEMORY = "out of memory"
"""Words in the text of an error that is no defect: there was too little memory."""


def error_text(problem: BaseException) -> str:
    """Return an error as one line that can be stored and shown."""
    text = storable_text(" ".join(f"{type(problem).__name__}: {problem}".split()))[:300]
    return f"{OUT_OF_MEMORY}: {text}" if is_out_of_memory(problem) else text


def reason_of(error: str) -> str:
    """Return the reason to skip a file over which an error came, given as `error_text`."""
    return "out_of_memory" if error.startswith(OUT_OF_MEMORY) else "internal_error"


def storable_text(text: str) -> str:
    """Escape lone surrogates, so that any file can hold the text. A byte of a name that is not UTF-8 becomes
    `\\xff`."""
    return text if text.isascii() else _SURROGATE.sub(_escaped, text)


def uri_of(path: str) -> str:
    """Return the uri of an absolute path: the path itself if it is UTF-8, else escaped, with `//` before the last name.

    No absolute path holds `//`, so no two files share a uri. `path_of` is the inverse.
    """
    if path.isascii() or _SURROGATE.search(path) is None:
        return path
    folder, _, name = path.replace("\\", "\\\\").rpartition("/")
    return f"{storable_text(folder)}//{storable_text(name)}"


def row_uri(uri: str, key: str) -> str | None:
    """Return the uri of a session in a database, such as `/home/me/opencode.db///ses_1`. None if no file or terminal
    can hold the key."""
    return f"{uri}{_IN_DATABASE}{key}" if 0 < len(key) <= _MOST_KEY_CHARS and key.isprintable() else None


def key_of(uri: str) -> str | None:
    """Return the key that a `row_uri` ends with, or None for a file's uri."""
    return uri.partition(_IN_DATABASE)[2] or None


def path_of(uri: str) -> str:
    """Return the path of a `uri_of`, or of a `row_uri`'s database."""
    if "//" not in uri[1:]:
        return uri
    uri = uri.partition(_IN_DATABASE)[0]
    if "//" not in uri[1:]:
        return uri
    folder, _, name = uri.rpartition("//")
    return _ESCAPE.sub(lambda m: chr(0xDC00 + int(m[1], 16)) if m[1] else "\\", f"{folder}/{name}")


_IN_DATABASE, _MOST_KEY_CHARS = "///", 200
_SURROGATE = deferred_pattern("[\ud800-\udfff]")
_ESCAPE = deferred_pattern(r"\\(?:\\|x([0-9a-f]{2}))")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


class Source(Struct, frozen=True):
    """A kind of place that files are read from."""

    name: str
    accepts: Callable[[str], bool]
    find: Callable[[str], Iterator[RawFile | Unreadable]]
    read: Callable[[list[RawFile], int | None], Iterator[bytes | Unreadable]]
    """Return the bytes of files of this source in order, at most so many of each if a number is given."""
    expect: Callable[[list[RawFile]], None] = lambda _: None
    """Announce the files that will be read whole next, in order, so that a remote source can fetch them ahead."""
    place: Callable[[RawFile], Path | str] = lambda _: "elsewhere"
    """Return where a file lies on this machine as a file of its own, or the reason why it does not."""


SOURCES = Registry[Source]("source", "agentsignals.sources", "SOURCE", lambda unit: isinstance(unit, Source))


@cache
def by_name(name: str) -> Source:
    return SOURCES.inside[name].load() if name in SOURCES.inside else SOURCES.get(name)


def _in_turn() -> Iterator[Source]:
    """Yield paths first, which need no other source, and sources of other packages last, which are only then loaded."""
    yield from map(by_name, sorted(SOURCES.inside, key=lambda name: name != "local"))
    yield from (source for name, source in SOURCES.all().items() if name not in SOURCES.inside)


def open_source(spec: str) -> Iterator[RawFile | Unreadable]:
    """List the files of a specification: a path, an agent, `git:…`, `hub:…`, `s3:…`. SourceError if it is none."""
    for source in _in_turn():
        if _accepts(source, spec):
            return _listed(source.find(spec), spec)
    near = did_you_mean(spec, homes())
    raise UnknownSource(
        f"{spec!r} is not a file, folder, agent or address.",
        f"{near} Name a file, a folder, git:PATH_OR_URL[#REF], hub:OWNER/NAME, s3://BUCKET/PREFIX, or an agent:"
        f" {', '.join(homes())}.".lstrip(),
    )


def _accepts(source: Source, spec: str) -> bool:
    try:
        return source.accepts(spec)
    except Exception as problem:  # (another package's; it is named, and the other sources are asked)
        if source.name in SOURCES.inside:
            raise
        SOURCES.leave_out(SOURCES.places[source.name], f"asked for {spec!r}: {error_text(problem)}")
        return False


def _listed(files: Iterator[RawFile | Unreadable], spec: str) -> Iterator[RawFile | Unreadable]:
    """List a source's files. If it fails midway, the rest of this specification is counted and the run goes on."""
    try:
        for file in files:
            is_plain = type(file) is RawFile and not (file.session_hint or file.repo_hint) and file.spec.isascii()
            yield file if is_plain else _sound(file)
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (kept by name and shown: whatever it is, the other sources are read)
        yield internal_error(storable_text(spec), storable_text(spec), problem)


def _sound(file: RawFile | Unreadable) -> RawFile | Unreadable:
    if isinstance(file, Unreadable):
        return replace(file, uri=storable_text(file.uri), spec=storable_text(file.spec))
    hints = [None if hint is None else storable_text(hint) for hint in (file.session_hint, file.repo_hint)]
    return replace(file, spec=storable_text(file.spec), session_hint=hints[0], repo_hint=hints[1])


def expect(files: list[RawFile]) -> None:
    """Announce to their sources the files that will be read whole next, in this order."""
    for name in dict.fromkeys(f.source for f in files):
        by_name(name).expect([f for f in files if f.source == name])


def read(files: list[RawFile], limit: int | None = None) -> Iterator[bytes | Unreadable]:
    """Return the bytes of files of one source, in order. A file on which the source fails costs only itself."""
    at = 0
    while at < len(files):
        try:
            for data in by_name(files[0].source).read(files[at:], limit):
                at += 1
                yield data
            return
        except AgentSignalsError:
            raise
        except Exception as problem:  # noqa: BLE001  (kept by name and shown: whatever it is, the others are read)
            at += 1
            yield internal_error(files[at - 1].uri, files[at - 1].spec, problem)


def read_exclusions(path: str) -> frozenset[str]:
    """Read a list of data sets, repositories and sessions to leave out, one name a line. `#` begins a remark.
    SourceError if the file can't be read."""
    try:
        lines = Path(path).expanduser().read_text("utf-8", "replace").splitlines()
    except OSError as problem:
        raise SourceError(
            f"{path!r} can't be read: {problem.strerror}.", "Name a readable text file with one name per line."
        ) from None
    entries = (f" {line}".split(" #", 1)[0].strip() for line in lines)
    return frozenset(name for line in entries if line for name in (line, dataset_name(line)))


def dataset_name(spec: str) -> str:
    """Return OWNER/NAME of `hub:OWNER/NAME@REVISION#PATTERN`, and anything else unchanged."""
    return spec[4:].partition("#")[0].partition("@")[0] if spec.startswith("hub:") else spec


# The content of an opened file: decompressed if its first bytes say gzip, bzip2, xz or Zstandard; memory-mapped if it
# is large.

MAGIC_BYTES = 10
"""First bytes of a file that are enough to tell its compression."""
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of compressed files, for lists that give names alone."""
_ARCHIVES = (b"PK\x03\x04", b"PAR1")
"""ZIP and Parquet files, which formats and sources decompress themselves."""
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Flags that keep the opening of a pipe from waiting for a writer."""
_PIECE = 16 * 1024
_XZ_MEMORY = 128 * 1024 * 1024
"""Memory limit of decompression. `xz -9` asks for half of it; a file made to harm, for gigabytes."""
_MOST_TIMES = 1032
"""Largest expansion of a byte by deflate (zlib's technical notes). The other formats have no bound."""


class Compression(Struct, frozen=True):
    name: str
    unpacker: Callable[[], Any]
    """Make a decompressor of one stream: `decompress(bytes, most)`, `eof` and `unused_data`, as in `bz2`, `lzma`."""
    deflates: bool = False


def nonblocking(path: str, flags: int) -> int:
    """Open a file without waiting: pass this to `open` as its opener."""
    return os.open(path, flags | _WITHOUT_WAITING)


def compression_of(head: bytes) -> Compression | None:
    """Return the compression of a file that begins with these bytes, or None."""
    if head.startswith(b"\x1f\x8b"):
        return Compression("gzip", lambda: zlib.decompressobj(wbits=31), deflates=True)
    if head.startswith(b"BZh") and head[3:4] in b"123456789" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return Compression("bzip2", _bzip2)
    if head.startswith(b"\xfd7zXZ\0"):
        return Compression("xz", _xz)
    return Compression("zstd", lambda: None) if head.startswith(b"\x28\xb5\x2f\xfd") else None


def max_unpacked_bytes(path: str, size: int) -> int:
    """Return the largest size that a file may have in memory, which is its own if it is not compressed."""
    try:
        with open(path, "rb", buffering=0, opener=nonblocking) as file:
            head = file.read(MAGIC_BYTES)
    except OSError:  # told when it is read
        return size
    way = compression_of(head)
    if way is None and not head.startswith(_ARCHIVES):
        return size
    return size * _MOST_TIMES if way is None or way.deflates else sys.maxsize


def decompress(way: Compression, packed: IO[bytes], size: int, out: IO[bytes], most: int) -> tuple[str, int]:
    """Write at most `most` + 1 bytes to `out`. Return why it ended early, if so, and the compressed bytes left."""
    if way.name == "zstd":
        return _unzstd(packed, size, out, most)
    unpacker, piece, at, made = None, b"", 0, 0
    while at < size:
        piece = piece or packed.read(min(_PIECE, size - at))
        if not piece:
            return "changed_while_read", size - at
        if unpacker is None:
            if not piece.strip(b"\0"):  # what is padded with zeros is whole (gzip(1))
                at, piece = at + len(piece), b""
                continue
            unpacker = way.unpacker()
        try:
            unpacked = unpacker.decompress(piece, most - made + 1)
        except Exception:  # noqa: BLE001  (zlib.error, LZMAError, OSError, EOFError: each way has its own)
            return f"bad_{way.name}", size - at
        made += out.write(unpacked)
        if made > most:
            return "unpacked_too_large", size - at
        rest = unpacker.unused_data if unpacker.eof else getattr(unpacker, "unconsumed_tail", b"")
        at, piece = at + len(piece) - len(rest), rest
        if unpacker.eof:
            unpacker = None
    return (f"cut_{way.name}" if unpacker is not None else ""), 0


def _unzstd(packed: IO[bytes], size: int, out: IO[bytes], most: int) -> tuple[str, int]:
    """Do what `decompress` does, with pyarrow: Python reads Zstandard only from 3.14 on."""
    import pyarrow as pa  # noqa: PLC0415  (loaded where such a file is read; it is there for the store)

    made, at_once, before = 0, _PIECE, cast("Any", None)
    stream = pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd")
    while made <= most:
        try:
            piece = stream.read(min(at_once, most - made + 1))
        except OSError as problem:
            reason = "cut_zstd" if "runcated" in str(problem) else "bad_zstd"
            if before is not None:
                return reason, max(0, size - packed.tell())
            # What was unpacked of this piece is lost with it: the place is gone to again, and read byte by byte.
            packed.seek(0)
            before = stream  # a stream that is forgotten closes the file
            stream, at_once, again = pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd"), 1, made
            while again:
                again -= len(stream.read(min(_PIECE, again)))
            continue
        if not piece:
            return "", 0
        made += out.write(piece)
    return "unpacked_too_large", max(0, size - packed.tell())


def _bzip2() -> Any:
    import bz2  # noqa: PLC0415  (a Python may be built without it; what it can't unpack is counted then)

    return bz2.BZ2Decompressor()


def _xz() -> Any:
    import lzma  # noqa: PLC0415  (as above)

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


IN_MEMORY = 16 * 1024 * 1024
"""Larger files are mapped from a copy without a name. Reading a map of the file itself would end the process if its
agent shortens it."""
_UNPACKED_MAX = 1024 * 1024 * 1024
_COPIED_AT_ONCE = 1024 * 1024
MACHINE_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
"""Errors of the machine, not of a file: the next file would meet them too."""


def no_space_error(uri: str, problem: OSError) -> SourceError:
    """Return the error that ends a run when this machine has no space for a copy of a file."""
    return SourceError(
        f"{uri!r} can't be read: {problem.strerror}.",
        f"Free some space in {tempfile.gettempdir()}, or name a larger folder in $TMPDIR.",
    )


def contents(file: RawFile, handle: IO[bytes], size: int, limit: int | None) -> bytes | Unreadable:
    """Return the decompressed content of a file of `size` bytes, or its first `limit` bytes. OSError if it can't be
    read or there is no space for a copy."""
    head = handle.read(MAGIC_BYTES if limit is None else limit)
    handle.seek(0)
    if way := compression_of(head):
        return _unpacked(file, way, handle, size, limit)
    if limit is not None:
        return head
    if size <= IN_MEMORY:
        data = handle.read(size)
        left = size - len(data)
    else:
        with tempfile.TemporaryFile() as copy:
            left = size
            while left and (piece := handle.read(min(left, _COPIED_AT_ONCE))):
                left -= copy.write(piece)
            data = b"" if left else memory_map(copy)
    return Unreadable(file.uri, file.spec, "changed_while_read", f"{left:,} bytes are gone") if left else data


def memory_map(copy: IO[bytes]) -> bytes:
    """Map a file without a name, for as long as anyone reads it."""
    copy.flush()
    # A map has what readers use of bytes: find, slices, len.
    return mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[return-value]


def _unpacked(file: RawFile, way: Compression, packed: IO[bytes], size: int, limit: int | None) -> bytes | Unreadable:
    """Return the content of a compressed file as far as it can be decompressed."""
    most = limit if limit is not None else _UNPACKED_MAX
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as out:
        reason, left = decompress(way, packed, size, out, most)
        out.truncate(min(out.tell(), most))
        out.seek(0, os.SEEK_END)
        length = out.tell()
        if limit is None and length > IN_MEMORY:
            data = memory_map(out)
        else:
            out.seek(0)
            data = out.read()
    if not reason or (data and limit is not None):
        return data
    return Unreadable(file.uri, file.spec, reason, f"{left:,} of {size:,} packed bytes were not read", data)


T = TypeVar("T")
R = TypeVar("R")


def prefetched(fetch: Callable[[T], R], items: Iterable[T], at_once: int, ahead: int) -> Iterator[R]:
    """Yield `fetch(item)` for each item in order, with `at_once` running and at most `ahead` results waiting."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (files of this machine are read without)

    with ThreadPoolExecutor(at_once) as pool:
        under_way: deque[Future[R]] = deque()
        try:
            for item in items:
                under_way.append(pool.submit(fetch, item))
                if len(under_way) > ahead:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for coming in under_way:
                coming.cancel()


# Databases, by their names and first bytes

DATABASE_MAGIC = b"SQLite format 3\0"
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""Names of agents' databases. Looking at first bytes alone would open every file."""
SIDECAR_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of files that belong to a database."""


def is_database(path: str) -> bool:
    """Return whether a file is an SQLite database, by its name and its first bytes."""
    return path.endswith(DATABASE_SUFFIXES) and database_head(path)[: len(DATABASE_MAGIC)] == DATABASE_MAGIC


def is_sidecar(path: str) -> bool:
    """Return whether a file belongs to a database next to it."""
    return path.endswith(SIDECAR_SUFFIXES) and is_database(path.rpartition("-")[0])


def database_head(path: str) -> bytes:
    """Return the first bytes of a file, up to those that tell of a write-ahead log."""
    try:
        with open(path, "rb", buffering=0, opener=nonblocking) as handle:
            return handle.read(20)
    except OSError:  # said when it is looked at as a file
        return b""
