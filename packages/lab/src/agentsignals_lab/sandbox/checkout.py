"""Runs an agent's commands in a copy of a repository: programs may run programs, and see nothing but the copy.

Bubblewrap only: what keeps called code in (no process may be started) would keep every build and test from running.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import bubblewrap, filters, launch, process
from agentsignals_lab.sandbox.capability import WHOLE, choose, rlimits
from agentsignals_lab.sandbox.outcome import FailureKind, Limits, Ran
from agentsignals_lab.sandbox.process_group import ProcessGroup
from agentsignals_lab.sandbox.working_copy import WorkingCopy

LIMITS = Limits(
    cpu_s=120,
    wall_s=180.0,
    memory_bytes=2 << 30,
    file_bytes=64 << 20,
    disk_bytes=256 << 20,
    disk_files=20_000,
    open_files=256,
)
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
"""Programs and their libraries. Not /etc: users, hosts and keys are nobody's business."""

PATH = "/usr/local/bin:/usr/bin:/bin"

STOPPED: dict[process.Stopped, FailureKind] = {
    "wall": "timeout",
    "output": "output",
    "results": "protocol",
    "disk": "disk",
}


def run_in_checkout(
    folder: Path,
    argv: Sequence[str],
    limits: Limits = LIMITS,
    readable: Sequence[Path] = (),
    env: dict[str, str] | None = None,
) -> Ran:
    """Runs one command in the strict sandbox, on a copy in memory; the folder then holds what the command left there.

    What comes back are plain files and folders with plain permissions, and links that stay inside. With more than the
    limits of disk, or stopped for it, nothing comes back.

    Args:
        folder: the checkout; the command finds its copy as `/checkout` and as its working folder.
        argv: the program, by its path or name, and its arguments; no shell sees them.
        limits: CPU time, memory and file size hold for each process, the rest for all together.
        readable: further files and folders, where they also are outside; never what holds expected answers.
        env: variables beside HOME, PATH, LANG and TMPDIR.

    Raises:
        SandboxError: there is no bubblewrap here, no such folder, or the process could not be locked.
    """
    if not argv:
        raise SandboxError(f"There is nothing to run in {folder}.", "A copy of a repository, and a command.")
    with Checkout(folder, limits, readable) as checkout:
        whole = {"PATH": PATH, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}  # noqa: S108
        return checkout.run(take_back=True, argv=list(argv), env={**whole, **(env or {})})


class Checkout:
    """One run of the sandbox on a copy of a folder."""

    def __init__(self, folder: Path, limits: Limits, readable: Sequence[Path] = ()) -> None:
        _, self._layers = choose("strict", allow_weak=False)
        if not folder.is_dir():
            raise SandboxError(f"There is nothing to run in {folder}.", "A copy of a repository, and a command.")
        self._limits, self._readable = limits, readable
        self._copy = WorkingCopy(folder, limits)

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        self._copy.close()

    def run(
        self,
        *,
        take_back: bool = False,
        started: Callable[[int], None] = lambda pid: None,
        check: process.Check = lambda: "",
        passed: tuple[int, ...] = (),
        **what: Any,
    ) -> Ran:
        """Starts the inside with `what` it is to do, and waits for its end. Raises SandboxError."""
        limits, copy = self._limits, self._copy
        with ProcessGroup.of(limits.processes) or nullcontext() as group:
            start = process.Start(
                argv=[*(group.joining() if group else ()), *self._wrapper(), "--", *launch.command()],
                env=launch.environment("/tmp"),  # noqa: S108 - a file system of its own
                keep_output=limits.output_bytes,
                until_exit=True,
                passed=(copy.passed, *passed),
                check=lambda: copy.check() or check(),
            )
            ended = process.run(start, lambda pipe: self._request(pipe, what), limits, started)
        first = launch.said_first(ended)
        why = ended.stopped or (copy.take_back() if take_back else "")
        stopped = STOPPED.get(why)
        on = [name for name, missing in first["ready"].items() if not missing]
        on += ["bubblewrap", *(["cgroup"] if group else ["nproc"] if os.getuid() else [])]
        return Ran(
            exit_code=None if stopped else ended.exit_code,
            stopped=stopped,
            tier="strict",
            layers=tuple(on),
            wall_s=round(ended.wall_s, 4),
            output=ended.output.decode("utf-8", "replace"),
            output_is_cut=ended.printed > len(ended.output),
            left_out=dict(copy.left_out),
        )

    def _request(self, pipe: int, what: dict[str, Any]) -> dict[str, Any]:
        # Counted in the namespace of users, so of these processes only; root is bound by the control group instead.
        most = {**rlimits(self._limits), "RLIMIT_NPROC": self._limits.processes}
        locks = {
            "rlimits": most,
            "die_with_parent": 0,
            "capabilities": None,
            "seccomp": filters.building(platform.machine()),
        }
        locks = {name: lock for name, lock in locks.items() if name in self._layers}
        required = [name for name in WHOLE["strict"] if name in locks]
        return launch.request(pipe, locks, required, lay_out=self._copy.request(), **what)

    def _wrapper(self) -> list[str]:
        return [
            bubblewrap.program() or "bwrap",
            *bubblewrap.APART,
            *bubblewrap.in_memory(self._limits.disk_bytes),
            *bubblewrap.read_only(SYSTEM),
            *bubblewrap.python(SYSTEM),
            *("--dev", "/dev", "--proc", "/proc"),
            *bubblewrap.read_only(str(path) for path in self._readable),
            *self._copy.mounts(),
        ]
