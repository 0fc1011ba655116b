"""Traces in an S3 object store: `s3://BUCKET[/PREFIX]`.

The bucket's listing gives a file's size, time and ETag, so unchanged files cost no request. Why botocore:
design/sources.md#object-stores.
"""

import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import IO, Any

from agentsignals import network
from agentsignals.errors import SourceError
from agentsignals.sources import (
    IN_MEMORY,
    RawFile,
    Source,
    Unreadable,
    contents,
    no_space_error,
    prefetched,
    storable_text,
)
from agentsignals.sources.local import SKIPPED_FOLDERS

_PIECE = 1024 * 1024
_TRIES = 3
"""Requests for one object. The client's own retries do not cover an answer that breaks off in the middle."""
_HEADS_AHEAD = 64
_WHOLE_AHEAD, _BYTES_AHEAD = 16, 64 * 1024 * 1024
"""Objects, and their bytes, that are fetched ahead at most."""


def accepts(spec: str) -> bool:
    return spec.startswith(network.S3_SCHEME)


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """List the object of that key and all objects below it, in order of key.

    UsageError if `spec` is no address. SourceError if the bucket can't be listed or holds nothing there.
    """
    bucket, prefix = network.s3_address(spec)
    listed = _listed(bucket, prefix, spec)
    try:
        first = next(listed)
    except StopIteration:
        raise SourceError(f"There is no file under {spec!r}.", "Find its prefix with `aws s3 ls`.") from None
    except network.s3_errors() as problem:
        raise SourceError(
            f"{spec!r} can't be listed: {network.s3_error_code(problem)}.",
            "Check the bucket's name, the AWS_* variables (region, endpoint, credentials) and their permission to"
            " list.",
        ) from problem

    def files() -> Iterator[RawFile | Unreadable]:
        yield first
        try:
            yield from listed
        except network.s3_errors() as problem:
            detail = f"listing stopped: {network.s3_error_code(problem)}"
            yield Unreadable(storable_text(spec), storable_text(spec), network.s3_skip_reason(problem), detail)

    return files()


def _listed(bucket: str, prefix: str, spec: str) -> Iterator[RawFile]:
    """Yield the objects of a prefix: one of that very name, and all below it as a folder."""
    pages = network.s3_client().get_paginator("list_objects_v2")
    folder = prefix
    if prefix and not prefix.endswith("/"):
        # An object of that very name comes before all below it, but others sort between the two.
        for page in pages.paginate(Bucket=bucket, Prefix=prefix, PaginationConfig={"MaxItems": 1}):
            yield from (_file(bucket, o, spec) for o in page.get("Contents", ()) if o["Key"] == prefix)
        folder = f"{prefix}/"
    for page in pages.paginate(Bucket=bucket, Prefix=folder):
        for held in page.get("Contents", ()):
            key = held["Key"]
            is_folder = key.endswith("/") and not held["Size"]
            if not is_folder and SKIPPED_FOLDERS.isdisjoint(key[len(prefix) :].split("/")[:-1]):
                yield _file(bucket, held, spec)


def _file(bucket: str, held: dict[str, Any], spec: str) -> RawFile:
    place = f"{bucket}/{held['Key']}"
    return RawFile(
        uri=network.S3_SCHEME + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in place),
        source="s3",
        spec=spec,
        bytes=held["Size"],
        stamp=int(held["LastModified"].timestamp()) * 1_000_000_000,
        container=place,
        key=held.get("ETag", ""),
    )


def read(files: list[RawFile], limit: int | None) -> Iterator[bytes | Unreadable]:
    if limit is None:
        return map(_ahead.take, files)
    return prefetched(partial(_contents, limit=limit), files, network.S3_CONNECTIONS, _HEADS_AHEAD)


class _Ahead:
    """Fetch whole objects before they are asked for. Groups of files are read one after the other, and each would
    wait for an answer of its own."""

    def __init__(self) -> None:
        self._next: deque[RawFile] = deque()
        self._coming: dict[str, Future[bytes | Unreadable]] = {}
        self._bytes = 0
        self._pool: ThreadPoolExecutor | None = None

    def expect(self, files: list[RawFile]) -> None:
        """Fetch these files in this order, and forget what was expected before."""
        for coming in self._coming.values():
            coming.cancel()
        self._next, self._coming, self._bytes = deque(files), {}, 0
        self._fill()

    def take(self, file: RawFile) -> bytes | Unreadable:
        coming = self._coming.pop(file.uri, None)
        if coming is not None:
            self._bytes -= file.bytes
        elif self._next and self._next[0].uri == file.uri:
            self._next.popleft()
        self._fill()
        return _contents(file, None) if coming is None else coming.result()

    def _fill(self) -> None:
        while self._next and len(self._coming) < _WHOLE_AHEAD and self._bytes + self._next[0].bytes <= _BYTES_AHEAD:
            self._pool = self._pool or ThreadPoolExecutor(network.S3_CONNECTIONS)
            file = self._next.popleft()
            self._coming[file.uri] = self._pool.submit(_contents, file, None)
            self._bytes += file.bytes
        if not self._next and not self._coming and self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


_ahead = _Ahead()


def _contents(file: RawFile, limit: int | None) -> bytes | Unreadable:
    try:
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
            _fetch(file, limit, copy)
            size = copy.tell()
            copy.seek(0)
            return contents(file, copy, size, limit)
    except network.s3_errors() as problem:
        return Unreadable(file.uri, file.spec, network.s3_skip_reason(problem), network.s3_error_code(problem))
    except OSError as problem:  # of the copy: the network's are among those above
        raise no_space_error(file.uri, problem) from problem


def _fetch(file: RawFile, limit: int | None, copy: IO[bytes]) -> None:
    """Write an object's bytes, or its first `limit` bytes, to `copy`."""
    bucket, _, key = file.container.partition("/")
    wanted = {} if limit is None or not file.bytes else {"Range": f"bytes=0-{limit - 1}"}
    for left in reversed(range(_TRIES)):
        try:
            with closing(network.s3_client().get_object(Bucket=bucket, Key=key, **wanted)["Body"]) as body:
                for piece in body.iter_chunks(_PIECE):
                    copy.write(piece)
            return
        except network.s3_errors() as problem:
            if network.s3_error_code(problem) == "InvalidRange":  # it was emptied since it was listed
                return
            if not left or network.s3_skip_reason(problem) != "download_failed":
                raise
            copy.seek(0)
            copy.truncate()


SOURCE = Source("s3", accepts, find, read, _ahead.expect)
