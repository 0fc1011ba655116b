"""Runs an agent's commands in a copy of a repository: programs may run programs, and see nothing but the copy.

Bubblewrap only: what keeps called code in (no process may be started) would keep every build and test from running.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from agentsignals.errors import SandboxError
from agentsignals.lab.sandbox import bubblewrap, filters, process, starting
from agentsignals.lab.sandbox.capability import WHOLE, choose, rlimits
from agentsignals.lab.sandbox.outcome import FailureKind, Limits, Ran
from agentsignals.lab.sandbox.process_group import ProcessGroup

PLACE = "/checkout"
"""Where the copy is, for what runs in it."""

LIMITS = Limits(cpu_s=120, wall_s=180.0, memory_bytes=2 << 30, file_bytes=64 << 20, open_files=256)
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
"""Programs and their libraries. Not /etc: users, hosts and keys are nobody's business."""

PATH = "/usr/local/bin:/usr/bin:/bin"

STOPPED: dict[process.Stopped, FailureKind] = {"wall": "timeout", "output": "output", "results": "protocol"}


def run_in_checkout(
    folder: Path,
    argv: Sequence[str],
    limits: Limits = LIMITS,
    readable: Sequence[Path] = (),
    env: dict[str, str] | None = None,
) -> Ran:
    """Runs one command in the strict sandbox, on a copy that may be spoilt: the command can change all of it.

    Args:
        folder: the copy; the command finds it as `/checkout` and as its working folder.
        argv: the program, by its path or name, and its arguments; no shell sees them.
        limits: CPU time, memory and file size hold for each process, the rest for all together.
        readable: further files and folders, where they also are outside; never what holds expected answers.
        env: variables beside HOME, PATH, LANG and TMPDIR.

    Raises:
        SandboxError: there is no bubblewrap here, no such folder, or the process could not be locked.
    """
    _, layers = choose("strict", allow_weak=False)
    if not folder.is_dir() or not argv:
        raise SandboxError(f"There is nothing to run in {folder}.", "A copy of a repository, and a command.")
    with ProcessGroup.of(limits.processes) or nullcontext() as group:
        start = process.Start(
            [*(group.joining() if group else ()), *_wrapper(folder, readable, limits), "--", *starting.command()],
            starting.environment("/tmp"),  # noqa: S108 - a file system of its own
            keep_output=limits.output_bytes,
            until_exit=True,
        )
        ended = process.run(start, lambda pipe: _request(pipe, layers, list(argv), limits, env or {}), limits)
    first = starting.said_first(ended)
    on = [name for name, missing in first["ready"].items() if not missing]
    on += ["bubblewrap", *(["cgroup"] if group else ["nproc"] if os.getuid() else [])]
    stopped = STOPPED[ended.stopped] if ended.stopped else None
    return Ran(
        None if stopped else ended.exit_code,
        stopped,
        "strict",
        tuple(on),
        round(ended.wall_s, 4),
        ended.output.decode("utf-8", "replace"),
        ended.printed > len(ended.output),
    )


def _request(
    pipe: int, layers: tuple[str, ...], argv: list[str], limits: Limits, env: dict[str, str]
) -> dict[str, Any]:
    # Counted in the namespace of users, so of these processes only; root is bound by the control group instead.
    most = {**rlimits(limits), "RLIMIT_NPROC": limits.processes}
    locks = {
        "rlimits": most,
        "die_with_parent": 0,
        "capabilities": None,
        "seccomp": filters.building(platform.machine()),
    }
    locks = {name: told for name, told in locks.items() if name in layers}
    required = [name for name in WHOLE["strict"] if name in locks]
    whole = {"PATH": PATH, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", **env}  # noqa: S108
    return starting.request(pipe, locks, required, argv=argv, env=whole)


def _wrapper(folder: Path, readable: Sequence[Path], limits: Limits) -> list[str]:
    return [
        bubblewrap.program() or "bwrap",
        *bubblewrap.APART,
        *bubblewrap.in_memory(limits.disk_bytes),
        *bubblewrap.read_only(SYSTEM),
        *bubblewrap.python(SYSTEM),
        *("--dev", "/dev", "--proc", "/proc"),
        *bubblewrap.read_only(str(path) for path in readable),
        *("--bind", str(folder.resolve()), PLACE, "--chdir", PLACE),
    ]
