"""Packed files, known by their first bytes whatever their names are: gzip, bzip2, xz, Zstandard; several parts too."""

from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, TypeVar, cast

from msgspec import Struct

from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Unreadable

MAGIC_BYTES = 10
"""So many of a file's first bytes tell how it is packed."""
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
"""How names of such files end, where only names are known: in lists of files elsewhere."""
_ARCHIVES = (b"PK\x03\x04", b"PAR1")
"""ZIP and Parquet, which formats and sources unpack themselves."""
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Opening a pipe that nobody writes to must not wait for a writer."""
_PIECE = 16 * 1024
_XZ_MEMORY = 128 * 1024 * 1024
"""What unpacking may take: `xz -9` asks for half of it, a file made to harm for gigabytes."""
_MOST_TIMES = 1032
"""What a byte becomes at most by deflate (zlib's technical notes); the others have no such bound."""


class Packing(Struct, frozen=True):
    """A way of packing."""

    name: str
    unpacker: Callable[[], Any]
    """Makes what unpacks one part: `decompress(bytes, most)`, `eof`, `unused_data`, as `bz2` and `lzma` have it."""
    deflates: bool = False


def without_waiting(path: str, flags: int) -> int:
    """Opens a file, as `open` asks its opener to."""
    return os.open(path, flags | _WITHOUT_WAITING)


def packing(head: bytes) -> Packing | None:
    """How a file that begins so is packed."""
    if head.startswith(b"\x1f\x8b"):
        return Packing("gzip", lambda: zlib.decompressobj(wbits=31), deflates=True)
    if head.startswith(b"BZh") and head[3:4] in b"123456789" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return Packing("bzip2", _bzip2)
    if head.startswith(b"\xfd7zXZ\0"):
        return Packing("xz", _xz)
    return Packing("zstd", lambda: None) if head.startswith(b"\x28\xb5\x2f\xfd") else None


def most_unpacked(path: str, size: int) -> int:
    """What a file may become in memory, in bytes; its own where it is not packed."""
    try:
        with open(path, "rb", buffering=0, opener=without_waiting) as file:
            head = file.read(MAGIC_BYTES)
    except OSError:  # told when it is read
        return size
    way = packing(head)
    if way is None and not head.startswith(_ARCHIVES):
        return size
    return size * _MOST_TIMES if way is None or way.deflates else sys.maxsize


def unpack(way: Packing, packed: IO[bytes], size: int, out: IO[bytes], most: int) -> tuple[str, int]:
    """Writes up to one byte more than `most`; why it ended before the end, if it did, and the bytes not unpacked."""
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
    """As `unpack`: Python has it from 3.14 on only."""
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


# The content of an opened file: unpacked where it is packed, mapped where it is large.

IN_MEMORY = 64 * 1024 * 1024
"""Larger files are mapped, not held: a file larger than memory costs no memory. What is mapped is a copy without a
name: to read a map of a file that its agent shortens ends the process."""
_UNPACKED_MAX = 1024 * 1024 * 1024
_COPIED_AT_ONCE = 1024 * 1024
OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
"""Errors that are no file's: the next one would meet them, too."""


def no_space(uri: str, problem: OSError) -> SourceError:
    """What a run ends with when this machine has no place for the copy of a file."""
    return SourceError(
        f"{uri!r} can't be read: {problem.strerror}.",
        f"Free some space in {tempfile.gettempdir()}, or name a larger folder in $TMPDIR.",
    )


def contents(file: RawFile, handle: IO[bytes], size: int, limit: int | None) -> bytes | Unreadable:
    """What a file of that many bytes holds; of a packed one what is in it. Its first bytes alone where a limit says so.
    OSError when it can't be read, or there is no space for a copy.
    """
    head = handle.read(MAGIC_BYTES if limit is None else limit)
    handle.seek(0)
    if way := packing(head):
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
            data = b"" if left else mapped(copy)
    return Unreadable(file.uri, file.spec, "changed_while_read", f"{left:,} bytes are gone") if left else data


def mapped(copy: IO[bytes]) -> bytes:
    """What stands in a file without a name, as long as anyone reads it."""
    copy.flush()
    # A map has what readers use of bytes: find, slices, len.
    return mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[return-value]


def _unpacked(file: RawFile, way: Packing, packed: IO[bytes], size: int, limit: int | None) -> bytes | Unreadable:
    """A packed file's content, as far as it goes: a cut one gives what it still holds."""
    most = limit if limit is not None else _UNPACKED_MAX
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as out:
        reason, left = unpack(way, packed, size, out, most)
        out.truncate(min(out.tell(), most))
        out.seek(0, os.SEEK_END)
        length = out.tell()
        if limit is None and length > IN_MEMORY:
            data = mapped(out)
        else:
            out.seek(0)
            data = out.read()
    if not reason or (data and limit is not None):
        return data
    return Unreadable(file.uri, file.spec, reason, f"{left:,} of {size:,} packed bytes were not read", data)


# Things that come from far, some at a time, in order.

T = TypeVar("T")
R = TypeVar("R")


def prefetched(fetch: Callable[[T], R], items: Iterable[T], at_once: int, ahead: int) -> Iterator[R]:
    """`fetch` of each item, in order: `at_once` are under way, and at most `ahead` held that nobody asked for yet."""
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
