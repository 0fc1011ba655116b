"""A store on an object store (`s3://BUCKET/PREFIX`) and its local copy.

    PREFIX/head        the commit: every file by path, with digest, length and time; swapped last
    PREFIX/blobs/…     the files by digest: written once, never changed
    PREFIX/lease       who writes: an object that a run makes, renews and removes

Opening fetches the head and the files that this machine lacks. A writer changes the local copy, under its lock and the
lease. At the end new files are uploaded, and the head is replaced on condition that it is still the one that was
fetched. A run that dies leaves the former state on all other machines; the next run here continues with its local copy.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals import network, private_files
from agentsignals.errors import StoreError
from agentsignals.store import disk, index
from agentsignals.store.index import RETIRED

LEASE_S = 60.0
"""Seconds after which an unrenewed lease may be taken over. A healthy run renews it three times in this."""
_LOOK_EVERY_S = 1.0
_NAME = "lease"
_HELD_BY_ANOTHER = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "412", "409"))


def is_condition_failed(problem: Exception) -> bool:
    """Return True when a write was refused because its condition did not hold."""
    return network.s3_error_code(problem) in _HELD_BY_ANOTHER


@contextmanager
def hold_lease(bucket: str, prefix: str, wait_s: float, waiting: Callable[[], None]) -> Iterator[None]:
    """Let one program in at a time, on whatever machine. StoreError when another is there after `wait_s`. `waiting` is
    called once when there is one to wait for.

    A run that died leaves its lease: after `LEASE_S` by the server's clock the next run takes it over. Who lost it
    can't swap the head, because the commit's condition fails.
    """
    place = {"Bucket": bucket, "Key": f"{prefix}{_NAME}"}
    client = network.s3_client()
    mark = _taken(client, place, time.monotonic() + wait_s, waiting)
    done = threading.Event()

    def renew() -> None:
        """Renew the lease while it is this run's. `mark` is emptied when it was lost."""
        while not done.wait(LEASE_S / 3):
            try:
                mark[:] = [_put(client, place, {"IfMatch": mark[0]})]
            except network.s3_errors() as problem:
                if is_condition_failed(problem) or network.s3_skip_reason(problem) == "file_gone":
                    mark.clear()
                    return

    keeper = threading.Thread(target=renew, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join()
        if mark:
            with suppress(*network.s3_errors()):  # it runs out by itself
                client.delete_object(**place)


def _taken(client: Any, place: dict[str, str], until: float, waiting: Callable[[], None]) -> list[str]:
    """Take the lock of a remote store, waiting for its holder. A lock that nobody renewed is taken over."""
    condition: dict[str, str] = {"IfNoneMatch": "*"}
    waits = False
    while True:
        try:
            return [_put(client, place, condition)]
        except network.s3_errors() as problem:
            if not is_condition_failed(problem) and network.s3_skip_reason(problem) != "file_gone":
                raise
        condition = {"IfNoneMatch": "*"}
        try:
            answer = client.get_object(**place)
            holder = answer["Body"].read().decode("utf-8", "replace").partition(",")[0]
        except network.s3_errors() as problem:
            if network.s3_skip_reason(problem) == "file_gone":
                continue
            raise
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        if (now - answer["LastModified"]).total_seconds() > LEASE_S:
            condition = {"IfMatch": answer["ETag"]}
            continue
        if time.monotonic() >= until:
            raise StoreError(
                f"Another run ({holder}) is writing the store"
                f" s3://{place['Bucket']}/{place['Key'].rpartition('/')[0]}.",
                "Wait for it, or use another store with --store.",
            )
        if not waits:
            waits = True
            waiting()
        time.sleep(_LOOK_EVERY_S)


def _put(client: Any, place: dict[str, str], condition: dict[str, str]) -> str:
    who = f"process {os.getpid()} on {socket.gethostname()}, {time.time_ns()}"
    etag: str = client.put_object(**place, Body=who.encode(), **condition)["ETag"]
    return etag


_ASIDE = "aside"
_LISTS = (index.INDEX_FILE, "parts.")
"""Prefixes of files that name others. They are fetched last, and replaced without being set aside."""
_VERSION = 1


class _Entry(Struct, array_like=True, frozen=True):
    digest: str
    bytes: int
    stamp: int
    """Modification time in ns since 1970 UTC, by which the index knows the file."""


class _Head(Struct):
    schema_version: int = _VERSION
    number: int = 0
    files: dict[str, _Entry] = field(default_factory=dict)
    dropped: dict[str, float] = field(default_factory=dict)
    """Blobs that no file uses any more, and since when (s since 1970 UTC): a reader may still fetch them."""


class _State(Struct):
    address: str
    etag: str = ""
    """ETag of the head; empty where there is none yet."""
    head: _Head = field(default_factory=_Head)


_STATE = ".remote.json"
"""File in the local copy with the address, and the head that it was fetched from or became."""
CHECKPOINT_S = 60.0
"""Seconds between commits of a long run: at most that much is lost with the machine."""
_writing: dict[Path, float] = {}
"""Local copies of which this process has the lease, and when they were last committed."""


def local_copy(address: str, *, create: bool = False) -> Path:
    """Fetch a remote store and return the folder of its local copy. UsageError for an invalid address. StoreError when
    it can't be fetched, or does not exist and `create` is False."""
    bucket, prefix = network.s3_address(address)
    import platformdirs  # noqa: PLC0415  (only for such a store)

    server = network.s3_client().meta.endpoint_url
    mark = disk.digest(f"{server}\0{bucket}\0{prefix.rstrip('/')}".encode())
    root = Path(platformdirs.user_cache_dir("agentsignals")) / "stores" / mark
    disk.remote_stores[root] = disk.RemoteHooks(committing, checkpoint)
    if root in _writing:
        return root
    try:
        private_files.own_folder(root)
        if not (root / _STATE).exists():
            state = _State(f"{network.S3_SCHEME}{bucket}/{prefix.rstrip('/')}")
            disk.write_atomically(root / _STATE, msgspec.json.encode(state))
    except OSError as problem:
        raise disk.cannot_write(root, problem) from problem
    with disk.free_of_runs(root) as is_free:
        if is_free:  # else a run of this machine writes there, and nobody else can elsewhere
            LocalCopy(root).pull()
    if not create and not LocalCopy(root).state.etag and not (root / index.INDEX_FILE).exists():
        raise StoreError(f"There is no store in {address}.", "Run `agentsignals analyze SOURCE` first.")
    return root


@contextmanager
def committing(root: Path, wait_s: float, waiting: Callable[[], None]) -> Iterator[None]:
    """Commit at the end what is changed in the folder meanwhile, or nothing when that raises. StoreError when another
    run has the lease, or committed something in between."""
    if root in _writing:
        yield
        return
    copy = LocalCopy(root)
    with copy.reaching(), hold_lease(copy.bucket, copy.prefix, wait_s, waiting):
        copy.pull()
        _writing[root] = time.monotonic()
        try:
            yield
        finally:
            del _writing[root]
        LocalCopy(root).push()


def checkpoint(root: Path) -> None:
    """Commit now, when the last commit is long ago and this process is the writer."""
    if time.monotonic() - _writing.get(root, math.inf) > CHECKPOINT_S:
        LocalCopy(root).push()
        _writing[root] = time.monotonic()


class LocalCopy:
    """The local copy of a remote store. StoreError when the file that names the store is gone or garbled."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            self.state = msgspec.json.decode((root / _STATE).read_bytes(), type=_State)
        except (OSError, msgspec.DecodeError) as problem:
            raise StoreError(f"{root / _STATE} can't be read.", f"Remove {root}; it is downloaded again.") from problem
        self.bucket, prefix = network.s3_address(self.state.address)
        self.prefix = f"{prefix}/" if prefix else ""

    def pull(self) -> None:
        """Make the folder what the store is now. Local changes that were never committed stay as long as nobody else
        committed anything; afterwards they are set aside."""
        root = self.root
        try:
            with self.reaching():
                fetched = self._fetched_head()
                if fetched is None:
                    return
                etag, head = fetched
                here = self._on_disk()
                expected = {path: (e.bytes, e.stamp) for path, e in self.state.head.files.items()}
                wanted = [path for path, e in head.files.items() if here.get(path) != (e.bytes, e.stamp)]
                for path in here.keys() - (head.files.keys() - wanted):
                    if expected.get(path) != here[path] and "/" in path and not path.endswith(RETIRED):
                        disk.set_aside(root, root / path)  # what is not in a folder can be made again
                for is_list in (False, True):
                    some = [path for path in wanted if path.startswith(_LISTS) == is_list]
                    _each(lambda path: self._fetch(path, head.files[path]), some)
                for path in here.keys() - head.files.keys():
                    (root / path).unlink(missing_ok=True)
                    with suppress(OSError):  # there is more in it
                        (root / path).parent.rmdir()
                self._remember(etag, head)
        except OSError as problem:
            raise disk.cannot_write(root, problem) from problem

    def push(self) -> None:
        """Upload what is new in the folder, then swap the head."""
        before, here = self.state.head.files, self._on_disk()
        if here == {path: (e.bytes, e.stamp) for path, e in before.items()}:
            return
        there = {e.digest for e in before.values()}
        made: dict[str, _Entry] = {}

        def upload(path: str) -> None:
            data = (self.root / path).read_bytes()
            entry = made[path] = _Entry(disk.digest(data), len(data), here[path][1])
            if entry.digest not in there:
                network.s3_client().put_object(**self._place(f"blobs/{entry.digest}"), Body=data)

        is_same = {p: p in before and (before[p].bytes, before[p].stamp) == seen for p, seen in here.items()}
        _each(upload, (path for path in here if not is_same[path]))
        entries = {path: before[path] if is_same[path] else made[path] for path in sorted(here)}
        live, now = {e.digest for e in entries.values()}, time.time()
        dropped = {d: self.state.head.dropped.get(d, now) for d in (there | self.state.head.dropped.keys()) - live}
        old = [d for d, since in dropped.items() if now - since > disk.KEEP_S]
        kept = {d: since for d, since in dropped.items() if d not in old}
        head = _Head(number=self.state.head.number + 1, files=entries, dropped=kept)
        self._remember(self._swap_head(head), head)
        _each(lambda digest: network.s3_client().delete_object(**self._place(f"blobs/{digest}")), old)

    def _swap_head(self, head: _Head) -> str:
        """Replace the head, on condition that it is the one that was fetched. Return its ETag."""
        state, put = self.state, network.s3_client().put_object
        condition = {"IfMatch": state.etag} if state.etag else {"IfNoneMatch": "*"}
        try:
            etag: str = put(**self._place("head"), Body=msgspec.json.encode(head), **condition)["ETag"]
        except network.s3_errors() as problem:
            if not is_condition_failed(problem) and network.s3_skip_reason(problem) != "file_gone":
                raise
            raise StoreError(
                f"Another run wrote the store {state.address} in the meantime, so this run saved nothing.",
                "Run again.",
            ) from problem
        if state.etag:
            return etag
        # Where the server ignores conditions, two runs would lose each other's data.
        probe = self._place("head.probe")
        put(**probe, Body=b"")
        try:
            put(**probe, Body=b"", IfNoneMatch="*")
        except network.s3_errors() as problem:
            if is_condition_failed(problem):
                network.s3_client().delete_object(**probe)
                return etag
            raise
        raise StoreError(
            f"The server of {state.address} ignores If-None-Match, so two runs could overwrite each other's work.",
            "Name a folder with --store, or another server.",
        )

    def _fetched_head(self) -> tuple[str, _Head] | None:
        """Return the head with its ETag; None where it is the one known here, or there is none."""
        address, etag = self.state.address, self.state.etag
        try:
            answer = network.s3_client().get_object(**self._place("head"), **({"IfNoneMatch": etag} if etag else {}))
        except network.s3_errors() as problem:
            if network.s3_error_code(problem) in ("304", "NotModified", "NoSuchKey", "404"):
                return None
            raise
        with closing(answer["Body"]) as body:
            try:
                head = msgspec.json.decode(body.read(), type=_Head)
            except msgspec.DecodeError as problem:
                raise StoreError(
                    f"{address}/head is corrupt: {problem}.", "Choose another store with --store s3://BUCKET/PREFIX."
                ) from problem
        if head.schema_version > _VERSION:
            raise StoreError(
                f"The store {address} was written by a newer agentsignals.", "Use a newer version of agentsignals."
            )
        return answer["ETag"], head

    def _fetch(self, path: str, entry: _Entry) -> None:
        """Fetch a file of the store, checked against its digest; a name outside of a store is refused."""
        address, target = self.state.address, self.root / path
        # Below the folder and not hidden, as `_on_disk` returns them.
        *folders, name = path.split("/")
        is_hidden = any(not f or f.startswith(".") for f in folders) or (name.startswith(".") and name != RETIRED)
        if is_hidden or not name or "\\" in path or not path.isprintable():
            raise StoreError(
                f"The store {address} lists a file that does not belong in a store: {path!r}.",
                "Choose another store with --store s3://BUCKET/PREFIX.",
            )
        with closing(network.s3_client().get_object(**self._place(f"blobs/{entry.digest}"))["Body"]) as body:
            data = body.read()
        if disk.digest(data) != entry.digest:
            raise StoreError(f"{address}/blobs/{entry.digest} is damaged.", "Use another store with --store.")
        private_files.make_folder(target.parent)
        draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        private_files.write(draft, data)
        if path == index.INDEX_FILE:  # what a run that died here left behind belongs to another index
            (self.root / index.JOURNAL_FILE).unlink(missing_ok=True)
        os.utime(draft, ns=(entry.stamp, entry.stamp))
        draft.replace(target)

    def _on_disk(self) -> dict[str, tuple[int, int]]:
        """Return length and time of every file of the store, without drafts, locks and what was set aside."""
        seen: dict[str, tuple[int, int]] = {}
        for folder, inside, names in os.walk(self.root):
            at = Path(folder).relative_to(self.root).as_posix()
            inside[:] = [n for n in inside if not n.startswith(".") and (at, n) != (".", _ASIDE)]
            for name in names:
                if name == RETIRED or not (name.startswith(".") or name == index.JOURNAL_FILE):
                    status = (Path(folder) / name).stat()
                    seen[name if at == "." else f"{at}/{name}"] = status.st_size, status.st_mtime_ns
        return seen

    def _place(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": f"{self.prefix}{name}"}

    def _remember(self, etag: str, head: _Head) -> None:
        self.state = _State(self.state.address, etag, head)
        disk.write_atomically(self.root / _STATE, msgspec.json.encode(self.state))

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Turn errors of the network into StoreErrors."""
        try:
            yield
        except network.s3_errors() as problem:
            raise StoreError(
                f"The store {self.state.address} can't be reached: {network.s3_error_code(problem)}.",
                "Check the AWS_* variables (region, endpoint, credentials). Finished work is kept for the next run.",
            ) from problem


def _each(do: Callable[[str], object], items: Iterable[str]) -> None:
    with ThreadPoolExecutor(network.S3_CONNECTIONS) as pool:
        for _ in pool.map(do, items):
            pass
