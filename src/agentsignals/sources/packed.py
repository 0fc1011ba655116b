"""Packed files, known by their first bytes whatever their names are: gzip, bzip2, xz, Zstandard; several parts too."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable
from typing import IO, Any, cast

from msgspec import Struct

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
