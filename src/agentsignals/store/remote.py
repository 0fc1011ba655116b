"""A store on an object store (`s3://BUCKET/PREFIX`): a folder on this machine, and what it was when last committed.

    PREFIX/head        the commit: every file of the store by path, with digest, length and time; swapped last
    PREFIX/blobs/…     the files by their digest: written once, never changed
    PREFIX/lease       who writes (`lease`)

Whoever opens the store fetches the head, and of its files those that this machine lacks. Whoever writes does it in
the folder, under the folder's lock and the lease; at the end new files are uploaded, and then the head is replaced on
the condition that it is still the one that was fetched. So a run that dies leaves the state before, on every other
machine; in this folder what it had done, which the next run goes on with.
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

from agentsignals import network
from agentsignals.errors import StoreError
from agentsignals.store import files, index
from agentsignals.store import files as lock
from agentsignals.store.index import RETIRED

# One writer at a time on an object store: an object that a run makes, renews and removes.
#
# A run that died leaves it: nobody renews it, and after `LEASE_S` by the server's own clock the next run takes it
# over. Whoever lost it this way can still not swap the index, which the commit's condition sees to (`remote`).

LEASE_S = 60.0
"""A run that is well renews its lease three times in this."""
_LOOK_EVERY_S = 1.0
_NAME = "lease"
_HELD_BY_ANOTHER = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "412", "409"))


def is_refused(problem: Exception) -> bool:
    """Whether a write was refused because what is there is not what its condition says."""
    return network.s3_error_code(problem) in _HELD_BY_ANOTHER


@contextmanager
def leased(bucket: str, prefix: str, wait_s: float, waiting: Callable[[], None]) -> Iterator[None]:
    """Only one program comes in at a time, on whatever machine. StoreError when another is there after `wait_s`;
    `waiting` is called once when there is one to wait for.
    """
    place = {"Bucket": bucket, "Key": f"{prefix}{_NAME}"}
    client = network.s3_client()
    mark = _taken(client, place, time.monotonic() + wait_s, waiting)
    done = threading.Event()
    keeper = threading.Thread(target=_renew, args=(client, place, mark, done), daemon=True)
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
    """Makes the object; gives its ETag, alone in a list."""
    condition: dict[str, str] = {"IfNoneMatch": "*"}
    waits = False
    while True:
        try:
            return [_put(client, place, condition)]
        except network.s3_errors() as problem:
            if not is_refused(problem) and network.s3_skip_reason(problem) != "file_gone":
                raise
        etag, holder, age_s = _seen(client, place)
        condition = {"IfMatch": etag} if etag and age_s > LEASE_S else {"IfNoneMatch": "*"}
        if not etag or age_s > LEASE_S:
            continue
        if time.monotonic() >= until:
            raise StoreError(
                f"Another run ({holder}) is writing the store s3://{place['Bucket']}/{place['Key'].rpartition('/')[0]}.",
                "Wait for it, or name another store.",
            )
        if not waits:
            waits = True
            waiting()
        time.sleep(_LOOK_EVERY_S)


def _put(client: Any, place: dict[str, str], condition: dict[str, str]) -> str:
    who = f"process {os.getpid()} on {socket.gethostname()}, {time.time_ns()}"
    etag: str = client.put_object(**place, Body=who.encode(), **condition)["ETag"]
    return etag


def _seen(client: Any, place: dict[str, str]) -> tuple[str, str, float]:
    """The ETag of the object, who made it and how long ago; nothing of one that is gone."""
    try:
        answer = client.get_object(**place)
        holder = answer["Body"].read().decode("utf-8", "replace").partition(",")[0]
    except network.s3_errors() as problem:
        if network.s3_skip_reason(problem) == "file_gone":
            return "", "", 0.0
        raise
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    now = parsedate_to_datetime(date) if date else datetime.now(UTC)
    return answer["ETag"], holder, (now - answer["LastModified"]).total_seconds()


def _renew(client: Any, place: dict[str, str], mark: list[str], done: threading.Event) -> None:
    """Makes the object anew while it is still this run's; `mark` is emptied when it is not any more."""
    while not done.wait(LEASE_S / 3):
        try:
            mark[:] = [_put(client, place, {"IfMatch": mark[0]})]
        except network.s3_errors() as problem:
            if is_refused(problem) or network.s3_skip_reason(problem) == "file_gone":
                mark.clear()
                return


_HEAD = "head"
_ASIDE = "aside"
_LISTS = ("manifest.", "parts.")
"""Begin the names of files that name others: fetched when these are here, and replaced without being put aside."""
_VERSION = 1


class _Entry(Struct, array_like=True, frozen=True):
    digest: str
    bytes: int
    stamp: int
    """Modification time in ns since 1970 UTC, which the index knows the file by."""


class _Head(Struct):
    schema_version: int = _VERSION
    number: int = 0
    files: dict[str, _Entry] = field(default_factory=dict)
    dropped: dict[str, float] = field(default_factory=dict)
    """Blobs that no file is any more, and when that was seen, in s since 1970 UTC: a reader may still fetch them."""


class _State(Struct):
    address: str
    etag: str = ""
    """Of the head; empty where there is none yet."""
    head: _Head = field(default_factory=_Head)


_STATE = ".remote.json"
"""In the folder: where it belongs, and the head that it was fetched from or became."""
CHECKPOINT_S = 60.0
"""A run that dies with its machine loses what it did since the last commit."""
_writing: dict[Path, float] = {}
"""Folders that this process has the lease of, and when they were committed last."""


def folder_of(address: str, *, create: bool = False) -> Path:
    """The folder that stands for a store here, as the store is now. UsageError for what is no address, StoreError when
    it can't be fetched, or is not there; `create` makes the folder of one that is to be.
    """
    bucket, prefix = network.s3_address(address)
    import platformdirs  # noqa: PLC0415  (only for such a store)

    server = network.s3_client().meta.endpoint_url
    mark = files.digest(f"{server}\0{bucket}\0{prefix.rstrip('/')}".encode())
    root = Path(platformdirs.user_cache_dir("agentsignals")) / "stores" / mark
    lock.elsewhere[root] = lock.Elsewhere(committed, checkpoint)
    if root in _writing:
        return root
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not (root / _STATE).exists():
            _remember(root, _State(f"{network.S3_SCHEME}{bucket}/{prefix.rstrip('/')}"))
    except OSError as problem:
        raise files.cannot_write(root, problem) from problem
    with lock.tried(root) as is_free:
        if is_free:  # else a run of this machine writes there, and nobody else can elsewhere
            _pull(root)
    if not create and not _state(root).etag and not (root / index.NAME).exists():
        raise StoreError(f"There is no store in {address}.", "Run `agentsignals analyze SOURCE` first.")
    return root


@contextmanager
def committed(root: Path, wait_s: float, waiting: Callable[[], None]) -> Iterator[None]:
    """What is changed in the folder meanwhile is committed at the end; nothing of it when that is an error. StoreError
    when another run has the lease, or committed something in between.
    """
    if root in _writing:
        yield
        return
    bucket, prefix = _place(_state(root))
    try:
        with leased(bucket, prefix, wait_s, waiting):
            _pull(root)
            _writing[root] = time.monotonic()
            try:
                yield
            finally:
                del _writing[root]
            _push(root)
    except network.s3_errors() as problem:
        raise _failed(root, problem) from problem


def checkpoint(root: Path) -> None:
    """Commits what is there so far, when the last commit was long ago and this process is the writer."""
    if time.monotonic() - _writing.get(root, math.inf) > CHECKPOINT_S:
        _push(root)
        _writing[root] = time.monotonic()


def _pull(root: Path) -> None:
    """Makes the folder what the store is now. What was written here and never committed is kept as long as nobody else
    committed anything; afterwards it is put aside.
    """
    state = _state(root)
    try:
        fetched = _fetched_head(state)
        if fetched is None:
            return
        etag, head = fetched
        here = _on_disk(root)
        expected = {path: (e.bytes, e.stamp) for path, e in state.head.files.items()}
        wanted = [path for path, e in head.files.items() if here.get(path) != (e.bytes, e.stamp)]
        for path in here.keys() - (head.files.keys() - wanted):
            if expected.get(path) != here[path] and "/" in path and not path.endswith(RETIRED):
                files.put_aside(root, root / path)  # what is not in a folder can be made again
        for is_list in (False, True):
            some = [path for path in wanted if path.startswith(_LISTS) == is_list]
            _each(lambda path: _fetch(root, path, head.files[path], state), some)
        for path in here.keys() - head.files.keys():
            (root / path).unlink(missing_ok=True)
            with suppress(OSError):  # there is more in it
                (root / path).parent.rmdir()
        _remember(root, _State(state.address, etag, head))
    except network.s3_errors() as problem:
        raise _failed(root, problem) from problem
    except OSError as problem:
        raise files.cannot_write(root, problem) from problem


def _push(root: Path) -> None:
    """Uploads what is new in the folder, then swaps the head."""
    state = _state(root)
    bucket, prefix = _place(state)
    before = state.head.files
    here = _on_disk(root)
    if here == {path: (e.bytes, e.stamp) for path, e in before.items()}:
        return
    there = {e.digest for e in before.values()}
    made: dict[str, _Entry] = {}

    def upload(path: str) -> None:
        data = (root / path).read_bytes()
        entry = made[path] = _Entry(files.digest(data), len(data), here[path][1])
        if entry.digest not in there:
            network.s3_client().put_object(Bucket=bucket, Key=f"{prefix}blobs/{entry.digest}", Body=data)

    is_same = {path: path in before and (before[path].bytes, before[path].stamp) == seen for path, seen in here.items()}
    _each(upload, (path for path in here if not is_same[path]))
    entries = {path: before[path] if is_same[path] else made[path] for path in sorted(here)}
    live, now = {e.digest for e in entries.values()}, time.time()
    dropped = {d: state.head.dropped.get(d, now) for d in (there | state.head.dropped.keys()) - live}
    old = [d for d, since in dropped.items() if now - since > files.KEEP_S]
    kept = {d: since for d, since in dropped.items() if d not in old}
    head = _Head(number=state.head.number + 1, files=entries, dropped=kept)
    _remember(root, _State(state.address, _swapped(state, head), head))
    _each(lambda digest: network.s3_client().delete_object(Bucket=bucket, Key=f"{prefix}blobs/{digest}"), old)


def _swapped(state: _State, head: _Head) -> str:
    """Puts the head in the place of the one that was fetched; gives its ETag."""
    bucket, prefix = _place(state)
    condition = {"IfMatch": state.etag} if state.etag else {"IfNoneMatch": "*"}
    put, data = network.s3_client().put_object, msgspec.json.encode(head)
    place = {"Bucket": bucket, "Key": f"{prefix}{_HEAD}"}
    try:
        etag: str = put(**place, Body=data, **condition)["ETag"]
    except network.s3_errors() as problem:
        if not is_refused(problem) and network.s3_skip_reason(problem) != "file_gone":
            raise
        raise StoreError(
            f"Another run wrote the store {state.address} meanwhile; nothing of this one was committed.",
            "Run again.",
        ) from problem
    if not state.etag:
        _look_whether_conditions_count(place, state.address)
    return etag


def _look_whether_conditions_count(place: dict[str, str], address: str) -> None:
    """StoreError where the server writes whatever the condition says: two runs would each lose what the other wrote."""
    place = {**place, "Key": f"{place['Key']}.probe"}
    put = network.s3_client().put_object
    put(**place, Body=b"")
    try:
        put(**place, Body=b"", IfNoneMatch="*")
    except network.s3_errors() as problem:
        if is_refused(problem):
            network.s3_client().delete_object(**place)
            return
        raise
    raise StoreError(
        f"The server of {address} takes no notice of conditions (If-None-Match), which keep two runs apart.",
        "Name a folder with --store, or another server.",
    )


def _fetched_head(state: _State) -> tuple[str, _Head] | None:
    """The head with its ETag; None where it is the one known here, or there is none."""
    bucket, prefix = _place(state)
    known_here = {"IfNoneMatch": state.etag} if state.etag else {}
    try:
        answer = network.s3_client().get_object(Bucket=bucket, Key=f"{prefix}{_HEAD}", **known_here)
    except network.s3_errors() as problem:
        if network.s3_error_code(problem) in ("304", "NotModified", "NoSuchKey", "404"):
            return None
        raise
    with closing(answer["Body"]) as body:
        try:
            head = msgspec.json.decode(body.read(), type=_Head)
        except msgspec.DecodeError as problem:
            raise StoreError(f"{state.address}/{_HEAD} is garbled: {problem}.", "Name another store.") from problem
    if head.schema_version > _VERSION:
        raise StoreError(f"The store {state.address} was written by a newer agentsignals.", "Use the newer program.")
    return answer["ETag"], head


def _fetch(root: Path, path: str, entry: _Entry, state: _State) -> None:
    bucket, prefix = _place(state)
    target = root / path
    if not _is_ours(path):
        raise StoreError(f"{state.address} names a file that no store has: {path!r}.", "Name another store.")
    with closing(network.s3_client().get_object(Bucket=bucket, Key=f"{prefix}blobs/{entry.digest}")["Body"]) as body:
        data = body.read()
    if files.digest(data) != entry.digest:
        raise StoreError(f"{state.address}/blobs/{entry.digest} holds something else.", "Analyze into another store.")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    draft.write_bytes(data)
    os.utime(draft, ns=(entry.stamp, entry.stamp))
    draft.replace(target)


def _is_ours(path: str) -> bool:
    """Whether a path is one of those that `_on_disk` gives: below the folder, and nothing that is hidden there."""
    *folders, name = path.split("/")
    is_hidden = any(not part or part.startswith(".") for part in folders) or (name.startswith(".") and name != RETIRED)
    return path.isprintable() and "\\" not in path and bool(name) and not is_hidden


def _on_disk(root: Path) -> dict[str, tuple[int, int]]:
    """Length and time of every file of the store; drafts, locks and what was put aside are none."""
    seen: dict[str, tuple[int, int]] = {}
    for folder, inside, names in os.walk(root):
        at = Path(folder).relative_to(root).as_posix()
        inside[:] = [n for n in inside if not n.startswith(".") and (at, n) != (".", _ASIDE)]
        for name in names:
            if not name.startswith(".") or name == RETIRED:
                status = (Path(folder) / name).stat()
                seen[name if at == "." else f"{at}/{name}"] = status.st_size, status.st_mtime_ns
    return seen


def _each(do: Callable[[str], object], items: Iterable[str]) -> None:
    with ThreadPoolExecutor(network.S3_CONNECTIONS) as pool:
        for _ in pool.map(do, items):
            pass


def _state(root: Path) -> _State:
    try:
        return msgspec.json.decode((root / _STATE).read_bytes(), type=_State)
    except (OSError, msgspec.DecodeError) as problem:
        raise StoreError(f"{root / _STATE} can't be read.", f"Remove {root}: it is fetched again.") from problem


def _remember(root: Path, state: _State) -> None:
    files.replace(root / _STATE, msgspec.json.encode(state))


def _place(state: _State) -> tuple[str, str]:
    """The bucket, and what all keys in it begin with."""
    bucket, prefix = network.s3_address(state.address)
    return bucket, f"{prefix}/" if prefix else ""


def _failed(root: Path, problem: Exception) -> StoreError:
    return StoreError(
        f"The store {_state(root).address} can't be reached: {network.s3_error_code(problem)}.",
        "Look at AWS_* variables (region, endpoint, credentials); what was done is kept for the next run.",
    )
