"""One writer at a time on an object store: an object that a run makes, renews and removes.

A run that died leaves it: nobody renews it, and after `LEASE_S` by the server's own clock the next run takes it over.
Whoever lost it this way can still not swap the index, which the commit's condition sees to (`remote`).
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agentsignals import object_store
from agentsignals.errors import StoreError

LEASE_S = 60.0
"""A run that is well renews its lease three times in this."""
_LOOK_EVERY_S = 1.0
_NAME = "lease"
_HELD_BY_ANOTHER = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "412", "409"))


def is_refused(problem: Exception) -> bool:
    """Whether a write was refused because what is there is not what its condition says."""
    return object_store.code(problem) in _HELD_BY_ANOTHER


@contextmanager
def leased(bucket: str, prefix: str, wait_s: float, waiting: Callable[[], None]) -> Iterator[None]:
    """Only one program comes in at a time, on whatever machine. StoreError when another is there after `wait_s`;
    `waiting` is called once when there is one to wait for.
    """
    place = {"Bucket": bucket, "Key": f"{prefix}{_NAME}"}
    client = object_store.client()
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
            with suppress(*object_store.errors()):  # it runs out by itself
                client.delete_object(**place)


def _taken(client: Any, place: dict[str, str], until: float, waiting: Callable[[], None]) -> list[str]:
    """Makes the object; gives its ETag, alone in a list."""
    condition: dict[str, str] = {"IfNoneMatch": "*"}
    waits = False
    while True:
        try:
            return [_put(client, place, condition)]
        except object_store.errors() as problem:
            if not is_refused(problem) and object_store.reason(problem) != "file_gone":
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
    except object_store.errors() as problem:
        if object_store.reason(problem) == "file_gone":
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
        except object_store.errors() as problem:
            if is_refused(problem) or object_store.reason(problem) == "file_gone":
                mark.clear()
                return
