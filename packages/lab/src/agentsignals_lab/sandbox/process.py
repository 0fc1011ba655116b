"""Starts the untrusted process, reads its pipe of answers, and ends it: whatever it does, this returns."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, Literal

from agentsignals import private_files
from agentsignals.errors import SandboxError
from msgspec import Struct

from agentsignals_lab.sandbox.outcome import Limits

START_S = 20.0
"""Until the process says it has locked itself in. A machine that needs longer has a problem of its own."""

EXIT_GRACE_S = 1.0
DONE = b'{"done": true}\n'
CHUNK = 1 << 16

Stopped = Literal["", "wall", "results"]
"""Why we ended it."""


class Ended(Struct, frozen=True):
    """A process that is gone."""

    frames: bytes
    """Its answers, a line each."""
    printed: str
    """Text printed before the code ran: why bubblewrap or Python did not start."""
    stopped: Stopped
    exit_code: int
    """Minus the signal of one that was killed."""
    wall_s: float


def run(argv: Sequence[str], env: dict[str, str], request: Callable[[int], object], limits: Limits) -> Ended:
    """Runs the program of the inside, and leaves nothing of it.

    Args:
        argv: no shell sees it.
        env: the whole environment.
        request: what the inside reads first, as JSON, given the number of its pipe for answers.

    Raises:
        SandboxError: the program is not there or can't be started.
    """
    results, inside = os.pipe()
    try:
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as printed:
            asked.write(json.dumps(request(inside)).encode())
            asked.seek(0)
            process = _started(argv, env, (asked, printed), inside)
            try:
                os.close(inside)
                inside = -1
                frames, stopped, wall_s = _watched(results, limits)
                if not stopped:
                    _wait_a_little(process.pid)
            finally:
                exit_code = _end(process)
            printed.seek(0)
            return Ended(frames, printed.read(CHUNK).decode("utf-8", "replace"), stopped, exit_code, wall_s)
    finally:
        os.close(results)
        if inside >= 0:
            os.close(inside)


def _started(
    argv: Sequence[str], env: dict[str, str], files: tuple[IO[bytes], IO[bytes]], results: int
) -> subprocess.Popen[Any]:
    asked, printed = files
    try:
        return subprocess.Popen(  # noqa: S603 - our own program, no shell
            argv,
            stdin=asked,
            stdout=printed,
            stderr=printed,
            env=env,
            pass_fds=(results,),
            start_new_session=True,
            umask=private_files.persons_umask(),  # its tests find the modes they expect
        )
    except OSError as error:
        raise SandboxError(f"{argv[0]} can't be started: {error}", "See docs/sandbox.md for what it needs.") from error


def _watched(results: int, limits: Limits) -> tuple[bytes, Stopped, float]:
    """Read answers until it is done, has closed its pipe, or took too much; and the seconds that its code had."""
    frames, begun, started = bytearray(), False, time.monotonic()
    deadline = started + START_S
    stopped: Stopped = ""
    poll = select.poll()
    poll.register(results, select.POLLIN)
    while not frames.endswith(DONE):
        if not poll.poll(1000 * max(0.0, deadline - time.monotonic())):
            stopped = "wall"
            break
        if not (chunk := os.read(results, CHUNK)):
            break
        frames += chunk
        if len(frames) > limits.result_bytes:
            stopped = "results"
            break
        if not begun and b"\n" in chunk:
            begun, started = True, time.monotonic()
            deadline = started + limits.wall_s
    return bytes(frames), stopped, time.monotonic() - started


def _wait_a_little(pid: int) -> None:
    """For a process that is done, or closed its pipe, which most do by ending; only then is its exit code its own."""
    deadline = time.monotonic() + EXIT_GRACE_S
    while hasattr(os, "waitid") and time.monotonic() < deadline:  # macOS has none
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.002)


def _end(process: subprocess.Popen[Any]) -> int:
    # Before the wait: while it is not waited for, its id (and so its group's) can't be somebody else's.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
