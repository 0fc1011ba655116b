"""Read an opened file: decompressed if its first bytes say gzip, bzip2, xz or Zstandard; memory-mapped if it is
large."""

from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct

from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Unreadable

if TYPE_CHECKING:
    from concurrent.futures import Future

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
    """A compression format."""

    name: str
    unpacker: Callable[[], Any]
    """Make a decompressor of one stream with `decompress(bytes, most)`, `eof` and `unused_data`, as in `bz2` and
    `lzma`."""
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
    """Write at most `most` + 1 bytes to `out`. Return why it ended early, if it did, and the count of compressed bytes
    left."""
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
