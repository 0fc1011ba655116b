"""What lies around a sandbox for an attack to reach, and whether one has reached it."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from pathlib import Path
from typing import NamedTuple

from agentsignals_lab import sandbox

REACHED = "reached"


class Attack(NamedTuple):
    """Source that says "reached" (or leaves a trace outside) when it gets what it wants.

    `refused`: the exception types or kinds of failure of which one tells that it ran and was kept from it.
    `weak`: whether it gets it under resource limits alone: those that do prove that the attack is one.
    """

    name: str
    source: str
    refused: frozenset[str]
    weak: bool = False
    limits: sandbox.Limits = sandbox.Limits(wall_s=8.0)


class World:
    """A secret, a place to leave a mark, a server, and an expected answer that is told to nobody."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.mark = folder / "mark"
        self.secret = folder / "secret"
        self.secret.write_text("the secret", "utf-8")
        self.secret.chmod(0o600)
        # Joined at run time, so that no constant of this file holds it.
        self.expected = "-".join(["canary", str(os.getpid()), str(id(self))])
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._peers: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, peer = self._server.accept()
                connection.close()
                self._peers.put(peer)

    def close(self) -> None:
        """Stops listening."""
        self._server.close()

    def _was_called(self) -> bool:
        """Return whether anybody has connected since it was last asked. Connections are accepted in order, so all
        others are known once one of ours is."""
        with contextlib.closing(socket.create_connection(("127.0.0.1", self.port))) as ours:
            return len([*iter(lambda: self._peers.get(timeout=10), ours.getsockname())]) > 0

    def told(self, source: str) -> str:
        """The source with this world's places in it."""
        places = {
            "$MARK": self.mark,
            "$SECRET": self.secret,
            "$FOLDER": self.folder,
            "$PORT": self.port,
            "$PID": os.getpid(),
        }
        for name, value in places.items():
            source = source.replace(name, str(value))
        return source

    def attacked(self, attack: Attack) -> str:
        """What came of it: `reached`, or the type of the exception or kind of the failure that it ended with."""
        self.mark.unlink(missing_ok=True)
        outcome = sandbox.call(self.told(attack.source), "f", [(2,)], attack.limits)
        if "later" in attack.name:
            time.sleep(0.7)
        [result] = outcome.results
        if self.mark.exists() or self._was_called():
            return REACHED
        if isinstance(result, sandbox.Failed):
            return result.type or result.kind
        if sandbox.same(result.value, REACHED) or sandbox.same(result.value, self.expected):
            return REACHED
        return f"value {sandbox.shown(result.value, 60)}"
