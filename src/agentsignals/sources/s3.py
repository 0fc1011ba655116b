"""Traces in an object store that speaks S3: `s3://BUCKET[/PREFIX]`.

A file is known by its size, time and ETag, as the list of the bucket gives them: what did not change costs no request
of its own. Why botocore: design/sources.md#object-stores.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import IO, Any

from agentsignals import network as object_store
from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Source, Unreadable, sound
from agentsignals.sources.contents import IN_MEMORY, contents, no_space, prefetched
from agentsignals.sources.local import SKIPPED_FOLDERS

_PIECE = 1024 * 1024
_TRIES = 3
"""An answer may break off in the middle, which the client's own tries do not cover."""
_HEADS_AHEAD = 64
_WHOLE_AHEAD, _BYTES_AHEAD = 16, 64 * 1024 * 1024
"""What is held at most that nobody asked for yet."""
_EMPTY_RANGE = "InvalidRange"


def accepts(spec: str) -> bool:
    return spec.startswith(object_store.SCHEME)


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """The objects under a prefix, in order of key: the one of that name, and all below it as below a folder. UsageError
    for what is no address, SourceError when the bucket can't be listed or holds nothing there.
    """
    bucket, prefix = object_store.address(spec)
    listed = _listed(bucket, prefix, spec)
    try:
        first = next(listed)
    except StopIteration:
        raise SourceError(f"{spec!r} holds no object.", "Look for its prefix with `aws s3 ls`.") from None
    except object_store.errors() as problem:
        raise SourceError(
            f"{spec!r} can't be listed: {object_store.code(problem)}.",
            "Look at the bucket's name, AWS_* variables (region, endpoint, credentials) and what they may list.",
        ) from problem
    return _as_far_as_it_goes(first, listed, spec)


def _as_far_as_it_goes(first: RawFile, listed: Iterator[RawFile], spec: str) -> Iterator[RawFile | Unreadable]:
    yield first
    try:
        yield from listed
    except object_store.errors() as problem:
        yield Unreadable(
            sound(spec), sound(spec), object_store.reason(problem), f"listing broke off: {object_store.code(problem)}"
        )


def _listed(bucket: str, prefix: str, spec: str) -> Iterator[RawFile]:
    pages = object_store.client().get_paginator("list_objects_v2")
    whole = [] if not prefix or prefix.endswith("/") else [prefix]
    for key in whole:  # an object of that very name comes before all below it, but others come between
        for page in pages.paginate(Bucket=bucket, Prefix=key, PaginationConfig={"MaxItems": 1}):
            yield from (_file(bucket, o, spec) for o in page.get("Contents", ()) if o["Key"] == key)
    for page in pages.paginate(Bucket=bucket, Prefix=f"{prefix}/" if whole else prefix):
        for held in page.get("Contents", ()):
            key = held["Key"]
            is_folder = key.endswith("/") and not held["Size"]
            if not is_folder and SKIPPED_FOLDERS.isdisjoint(key[len(prefix) :].split("/")[:-1]):
                yield _file(bucket, held, spec)


def _file(bucket: str, held: dict[str, Any], spec: str) -> RawFile:
    place = f"{bucket}/{held['Key']}"
    return RawFile(
        uri=object_store.SCHEME + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in place),
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
    return prefetched(partial(_contents, limit=limit), files, object_store.AT_ONCE, _HEADS_AHEAD)


class _Ahead:
    """Whole objects that were said to be read next, some of them on their way: families are read one after the other,
    and each would wait for an answer of its own.
    """

    def __init__(self) -> None:
        self._next: deque[RawFile] = deque()
        self._coming: dict[str, Future[bytes | Unreadable]] = {}
        self._bytes = 0
        self._pool: ThreadPoolExecutor | None = None

    def expect(self, files: list[RawFile]) -> None:
        """In this order; what was expected before is forgotten."""
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
            self._pool = self._pool or ThreadPoolExecutor(object_store.AT_ONCE)
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
    except object_store.errors() as problem:
        return Unreadable(file.uri, file.spec, object_store.reason(problem), object_store.code(problem))
    except OSError as problem:  # of the copy: the network's are among those above
        raise no_space(file.uri, problem) from problem


def _fetch(file: RawFile, limit: int | None, copy: IO[bytes]) -> None:
    """Writes an object's bytes, or its first ones, to a file."""
    bucket, _, key = file.container.partition("/")
    wanted = {} if limit is None or not file.bytes else {"Range": f"bytes=0-{limit - 1}"}
    for left in reversed(range(_TRIES)):
        try:
            with closing(object_store.client().get_object(Bucket=bucket, Key=key, **wanted)["Body"]) as body:
                for piece in body.iter_chunks(_PIECE):
                    copy.write(piece)
            return
        except object_store.errors() as problem:
            if object_store.code(problem) == _EMPTY_RANGE:  # it was emptied since it was listed
                return
            if not left or object_store.reason(problem) != "download_failed":
                raise
            copy.seek(0)
            copy.truncate()


SOURCE = Source("s3", accepts, find, read, _ahead.expect)
