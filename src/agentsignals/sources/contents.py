"""The content of an opened file: unpacked where it is packed, mapped where it is large."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from typing import IO

from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Unreadable
from agentsignals.sources.packed import MAGIC_BYTES, Packing, packing, unpack

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
