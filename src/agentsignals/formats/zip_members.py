"""Members of a ZIP archive as bytes, each by itself and bounded in size. Archives may be cut.

The standard library reads the directory; a member is inflated here, because a declared size is only a claim, and
because Python reads zstd members from 3.14 on only.
"""

import io
import mmap
import struct
import zipfile
import zlib
from collections.abc import Iterator

from msgspec import Struct

from agentsignals.formats.records import MAX_DOCUMENT_BYTES

MAGIC = b"PK\x03\x04"
MAX_ARCHIVE_BYTES = 4 * 1024 * 1024 * 1024
"""Bytes that all members together may inflate to. The rest is counted as skipped. A deflated byte can become 1,032."""

_LOCAL = struct.Struct("<4s5H3I2H")
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_ENCRYPTED, _SIZES_FOLLOW = 0x1, 0x8
_WIDE = 0xFFFFFFFF
"""Marks a size that is stored in 64 bits elsewhere."""


class Member(Struct, frozen=True, gc=False):
    """The position of a member's bytes in the archive."""

    name: str
    method: int
    encrypted: bool
    start: int
    """Offset of its compressed bytes."""
    size: int
    """Number of its compressed bytes."""
    crc: int


class MemberError(Exception):
    """A member can't be read. The reason is a word to count it under."""


class Contents:
    """The bytes of an archive's members, one at a time; together no more than `MAX_ARCHIVE_BYTES`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = MAX_ARCHIVE_BYTES

    def of(self, member: Member) -> bytes:
        """Return the member's content. MemberError says why there is none."""
        if self._left <= 0:
            raise MemberError("archive_too_large")
        inflated = content(self._data, member, min(MAX_DOCUMENT_BYTES, self._left))
        self._left -= len(inflated)
        return inflated


def members(data: bytes) -> tuple[list[Member], bool]:
    """Return the members, each name once (the last of that name), and whether the archive's directory was there.

    Without a directory, as when a log was cut, they are those whose headers stand one behind the other from the start.
    """
    try:
        with zipfile.ZipFile(data if isinstance(data, mmap.mmap) else io.BytesIO(data)) as archive:
            infos = list(archive.NameToInfo.values())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError, IndexError):
        return list({m.name: m for m in _in_order(data)}.values()), False
    return [
        _placed(data, i.header_offset, i.filename, i.compress_size, i.CRC)
        or Member(i.filename, _STORED, False, len(data), max(i.compress_size, 1), i.CRC)  # nowhere: told when read
        for i in infos
        if not i.is_dir()
    ], True


def first(data: bytes) -> Member | None:
    """Return the member that an archive begins with. None if these bytes begin as no archive."""
    return next(_in_order(data), None)


def content(data: bytes, member: Member, limit: int) -> bytes:
    """Return a member's bytes, at most `limit` of them. MemberError says why there are none."""
    raw = bytes(data[member.start : member.start + member.size])
    if member.encrypted:
        raise MemberError("encrypted_member")
    if len(raw) < member.size:
        raise MemberError("cut_member")
    inflated = _inflated(raw, member.method, limit)
    if len(inflated) > limit:
        raise MemberError("member_too_large")
    if zlib.crc32(inflated) != member.crc:
        raise MemberError("bad_checksum")
    return inflated


def beginning(data: bytes, member: Member, limit: int) -> bytes:
    """Return as much of a member as these bytes of the archive hold. Nothing if it can't be read."""
    try:
        return _inflated(bytes(data[member.start : member.start + member.size]), member.method, limit)[:limit]
    except MemberError:
        return b""


def _inflated(raw: bytes, method: int, limit: int) -> bytes:
    """Inflate up to one byte more than `limit`."""
    if method == _STORED:
        return raw[: limit + 1]
    try:
        if method == _DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, limit + 1)
        if method == _ZSTD:
            import pyarrow as pa  # noqa: PLC0415  (loaded where such a log is read; it is there for the store)

            with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as stream:
                return bytes(stream.read(limit + 1))
    except (zlib.error, OSError) as problem:
        raise MemberError("bad_compression") from problem
    raise MemberError("unknown_compression")


def _in_order(data: bytes) -> Iterator[Member]:
    at = 0
    while bytes(data[at : at + 4]) == MAGIC and at + _LOCAL.size <= len(data):
        fields = _LOCAL.unpack(bytes(data[at : at + _LOCAL.size]))
        flags, size, n_name = fields[2], fields[7], fields[9]
        start = at + _LOCAL.size
        name = bytes(data[start : start + n_name]).decode("utf-8", "replace")
        if flags & _SIZES_FOLLOW or size == _WIDE:
            return  # where it ends is told behind it, or in a directory that is gone
        member = _placed(data, at, name, size, fields[6])
        if member is None:
            return
        if not name.endswith("/"):
            yield member
        at = member.start + size


def _placed(data: bytes, at: int, name: str, size: int, crc: int) -> Member | None:
    head = bytes(data[at : at + _LOCAL.size]) if at >= 0 else b""
    if len(head) < _LOCAL.size or head[:4] != MAGIC:
        return None
    fields = _LOCAL.unpack(head)
    start = at + _LOCAL.size + fields[9] + fields[10]
    return Member(name, fields[3], bool(fields[2] & _ENCRYPTED), start, size, crc)
