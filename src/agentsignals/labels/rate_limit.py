"""How fast a server is asked: so many calls a minute, and a pause for all when it says that it is too much."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pace:
    """Shared by all who ask one server."""

    def __init__(self, per_minute: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._apart_s = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0.0
        self.stopped = threading.Event()
        """Set when nobody shall ask any more: ends every wait."""
        self.paused_s = 0.0

    def wait(self) -> bool:
        """Returns when the caller may ask; False when it shall not any more."""
        while not self.stopped.is_set():
            with self._lock:
                left = self._next - self._clock()
                if left <= 0:
                    self._next = max(self._next, self._clock()) + self._apart_s if self._apart_s else self._next
                    return True
            self.stopped.wait(left)
        return False

    def pause(self, seconds: float) -> None:
        """Nobody asks for so long from now."""
        with self._lock:
            until = self._clock() + seconds
            if until > self._next:
                self.paused_s += until - max(self._next, self._clock())
                self._next = until
