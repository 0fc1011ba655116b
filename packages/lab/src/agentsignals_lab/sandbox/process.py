"""Starts the untrusted process, reads its two pipes, and ends it: whatever it does, this returns."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Literal

from agentsignals import private_files
from agentsignals.errors import SandboxError
from msgspec import Struct

from agentsignals_lab.sandbox.outcome import Limits

START_S = 20.0
"""Until the process says it has locked itself in. A machine that needs longer has a problem of its own."""

TICK_S = 0.25
EXIT_GRACE_S = 1.0
DONE = b'{"done": true}\n'
CHUNK = 1 << 16
HEAD_CHARS = 4000
KEPT_BYTES = 4 * HEAD_CHARS
"""Of what it printed: UTF-8 takes at most four a character."""

Stopped = Literal["", "wall", "output", "results"]
"""Why we ended it."""


class Ended(Struct, kw_only=True):
    """A process that is gone: what it said, and how it went. `status` as wait() gives it; `stopped`: by us, and why."""

    frames: bytes = b""
    output: bytes = b""
    printed: int = 0
    begun: bool = False
    done: bool = False
    stopped: Stopped = ""
    status: int = 0
    wall_s: float = 0.0

    @property
    def exit_code(self) -> int:
        """Exit code of a process that ended by itself; minus the signal of one that was killed."""
        return os.waitstatus_to_exitcode(self.status)

    @property
    def head(self) -> str:
        """The first of what it printed."""
        return self.output.decode("utf-8", "replace")[:HEAD_CHARS]


class Watched:
    """One running process with its pipes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ended = Ended()
        self._frames = bytearray()
        self._output = bytearray()
        self._results_open = True

    def watch(self, results: int, output: int) -> None:
        """Until it is done, has closed its pipe of results, or took too much."""
        deadline = time.monotonic() + START_S
        started = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(results, selectors.EVENT_READ, self._more_frames)
            selector.register(output, selectors.EVENT_READ, self._more_output)
            while self._results_open and not self.ended.done and not self.ended.stopped:
                now = time.monotonic()
                if now >= deadline:
                    self.ended.stopped = "wall"
                    break
                for key, _ in selector.select(min(TICK_S, deadline - now)):
                    if not key.data(key.fd):
                        selector.unregister(key.fd)
                if not self.ended.begun and b"\n" in self._frames:
                    self.ended.begun = True
                    started = time.monotonic()
                    deadline = started + self.limits.wall_s
        self.ended.wall_s = time.monotonic() - started

    def close(self, output: int) -> Ended:
        """Takes what is left of the output, and gives everything."""
        os.set_blocking(output, False)
        with contextlib.suppress(BlockingIOError):
            while len(self._output) < KEPT_BYTES and self._more_output(output):
                pass
        self.ended.frames, self.ended.output = bytes(self._frames), bytes(self._output)
        return self.ended

    def _more_frames(self, pipe: int) -> bool:
        chunk = os.read(pipe, CHUNK)
        self._frames += chunk
        self._results_open = bool(chunk)
        self.ended.done = self._frames.endswith(DONE)
        if len(self._frames) > self.limits.result_bytes:
            self.ended.stopped = "results"
        return bool(chunk)

    def _more_output(self, pipe: int) -> bool:
        chunk = os.read(pipe, CHUNK)
        self.ended.printed += len(chunk)
        self._output += chunk[: max(0, KEPT_BYTES - len(self._output))]
        if self.ended.printed > self.limits.output_bytes and not self.ended.done:
            self.ended.stopped = "output"
        return bool(chunk)


class Start(Struct, frozen=True, kw_only=True):
    """Start of a process: no shell sees `argv`, `env` is the whole environment."""

    argv: Sequence[str]
    env: dict[str, str]


def run(start: Start, request: Callable[[int], object], limits: Limits) -> Ended:
    """Runs the program of the inside, and leaves nothing of it.

    Args:
        request: what the inside reads first, as JSON, given the number of its pipe for answers.

    Raises:
        SandboxError: the program is not there or can't be started.
    """
    results_read, results_write = os.pipe()
    output_read, output_write = os.pipe()
    watched = Watched(limits)
    try:
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(request(results_write)).encode())
            file.seek(0)
            process = _started(start, file.fileno(), output_write, results_write)
        try:
            os.close(results_write)
            os.close(output_write)
            results_write = output_write = -1
            watched.watch(results_read, output_read)
            if not watched.ended.stopped:
                _wait_a_little(process.pid)
        finally:
            _end(process, watched.ended)
        return watched.close(output_read)
    finally:
        for pipe in (results_read, output_read, results_write, output_write):
            if pipe >= 0:
                os.close(pipe)


def _started(start: Start, request: int, output: int, results: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - our own program, no shell
            start.argv,
            stdin=request,
            stdout=output,
            stderr=output,
            env=start.env,
            pass_fds=(results,),
            start_new_session=True,
            umask=private_files.persons_umask(),  # its tests find the modes they expect
        )
    except OSError as error:
        raise SandboxError(
            f"{start.argv[0]} can't be started: {error}", "See the sandbox's page in the manual."
        ) from error


def _wait_a_little(pid: int) -> None:
    """For a process that is done, or closed its pipe, which most do by ending; only then is its CPU time known."""
    deadline = time.monotonic() + EXIT_GRACE_S
    while hasattr(os, "waitid") and time.monotonic() < deadline:  # macOS has none
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.002)


def _end(process: subprocess.Popen[bytes], ended: Ended) -> None:
    # Before the wait: while it is not waited for, its id (and so its group's) can't be somebody else's.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    _, ended.status = os.waitpid(process.pid, 0)
    process.returncode = ended.exit_code
