"""The addresses at which one model answers. Each is asked so many things at a time; one that fails is set aside for a
while, longer each time, and gets a single call first when it comes back."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from agentsignals.errors import UsageError
from agentsignals.http_client import Busy, is_local, opener

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
_LOOKS_EVERY_S = 0.1
"""Whether one is back that was set aside, or nobody shall ask any more."""
_LOG = logging.getLogger("agentsignals.labels")


class ModelServer:
    """An address. UsageError where it is none."""

    def __init__(self, url: str) -> None:
        self.url = url.strip().rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is no address of a chat server.", "Say openai:MODEL@http://HOST:PORT/v1[,URL…].")
        self.leaves = not is_local(parts.hostname)
        self.is_openai = parts.hostname.endswith("openai.com")
        self.opener = opener(not self.leaves)
        self.under_way = self.calls = self.answers = self.times_aside = 0
        self.failures = 0
        """In a row."""
        self.away_until = -math.inf
        self.problem = ""

    def figures(self) -> dict[str, Any]:
        """What became of its calls."""
        aside = {"set_aside": self.times_aside, "last_problem": self.problem} if self.times_aside else {}
        return {"calls": self.calls, "answers": self.answers, **aside}


class ModelServers:
    """Whom to ask next: who has most slots free, and is not set aside while another is well."""

    def __init__(self, addresses: str, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.all = [ModelServer(url) for url in dict.fromkeys(addresses.split(","))]
        self.slots = slots
        self._clock = clock
        self._changed = threading.Condition()

    @contextmanager
    def slot(self, stopped: threading.Event) -> Iterator[ModelServer | None]:
        """A server with a slot free, waited for; None when nobody shall ask any more."""
        server = self._taken(stopped)
        try:
            yield server
        finally:
            if server is not None:
                with self._changed:
                    server.under_way -= 1
                    self._changed.notify()

    def answered(self, server: ModelServer) -> None:
        """It is well."""
        with self._changed:
            server.answers += 1
            server.failures, server.away_until = 0, -math.inf

    def set_aside(self, server: ModelServer, problem: Exception) -> bool:
        """A call to it failed. Whether others are well: they are asked meanwhile. What is no `Busy` lasts."""
        with self._changed:
            others = [other for other in self.all if other is not server and not self._is_away(other)]
            if not others:
                return False
            if not self._is_away(server):
                server.failures += 1
                server.times_aside += 1
                if server.times_aside == 1:
                    _LOG.warning("%s is set aside, its questions go to others: %s", server.url, problem)
            server.problem = str(problem)[:200]
            server.away_until = max(server.away_until, self._clock() + _wait_s(server.failures, problem))
            return True

    def _taken(self, stopped: threading.Event) -> ModelServer | None:
        with self._changed:
            while not stopped.is_set():
                well = [server for server in self.all if not self._is_away(server)]
                pool = well or [server for server in self.all if server.away_until < math.inf]
                free = [server for server in pool if server.under_way < (1 if server.failures and well else self.slots)]
                if free:
                    server = min(free, key=lambda server: server.under_way)
                    server.under_way += 1
                    server.calls += 1
                    return server
                self._changed.wait(_LOOKS_EVERY_S)
        return None

    def _is_away(self, server: ModelServer) -> bool:
        return server.away_until > self._clock()


def _wait_s(failures: int, problem: Exception) -> float:
    if not isinstance(problem, Busy):
        return math.inf
    if problem.timed_out:
        return LONGEST_WAIT_S
    grown = FIRST_WAIT_S * 2.0 ** min(failures - 1, 10)
    return min(LONGEST_WAIT_S, problem.wait_s if problem.wait_s is not None else grown)
