"""What locks a process in: bubblewrap's arguments, locks that the process puts on itself, and whether they are here.

A file system of what is needed and nothing else, no network, ids and processes of its own; then resource limits, no
powers of root, and a filter of system calls. Source: bwrap(1), 0.8.
"""

from __future__ import annotations

import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import filters, process
from agentsignals_lab.sandbox.inside import wire
from agentsignals_lab.sandbox.outcome import Limits
from agentsignals_lab.sandbox.syscalls import ARCHITECTURES

TIER = "strict"
"""The one way that model-written code runs, as manifests and rows name it."""
APART = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
HOME = "/tmp"  # noqa: S108 - inside, a file system of its own

PACKAGES = ("site-packages", "dist-packages")
DATA = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale", "/dev/urandom")
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")

FLAGS = ("-P", "-s", "-S", "-B")
"""No script's folder, no user's and no installed packages, no bytecode written. Not -I, which would also ignore the
one setting we make: a hash seed, so that the order of a set is the same on every run."""
BOOT = (
    "import sys,types\n"
    "for name,folder in zip(('agentsignals_lab','agentsignals_lab.sandbox'),sys.argv[1:]):\n"
    " module=sys.modules[name]=types.ModuleType(name);module.__path__=[folder]\n"
    "from agentsignals_lab.sandbox.inside.main import main\n"
    "main()"
)
"""Imports the inside without the packages around it, which need libraries that are not to be readable."""


@cache
def missing() -> str:
    """Return why this machine has no sandbox; empty: it has. Tried once in the life of this process."""
    if sys.platform != "linux" or platform.machine() not in ARCHITECTURES:
        return f"there is none for {sys.platform} on {platform.machine()}"
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    try:
        run(Limits(), source=None)
    except SandboxError as error:
        return error.message
    return ""


def require() -> None:
    """Raises SandboxError where there is no sandbox: nothing is run in less."""
    if why := missing():
        raise SandboxError(
            f"Model-written code runs in bubblewrap only, and {why}.",
            "Install it (apt install bubblewrap), and allow user namespaces: docs/sandbox.md.",
        )


def run(limits: Limits, **code: Any) -> process.Ended:
    """Runs the inside under bubblewrap with some code. SandboxError when a lock is not on: nothing was run then."""
    here = Path(__file__).resolve().parent
    argv = [*computing(limits), "--", executable(), *FLAGS, "-c", BOOT, str(here.parent), str(here)]
    env = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "HOME": HOME, "TMPDIR": HOME}
    ended = process.run(argv, env, lambda pipe: {"pipe": pipe, "locks": locks(limits), **code}, limits)
    try:
        frame = wire.loads(ended.frames.partition(b"\n")[0])  # said before the code could run
    except wire.Refused:
        frame = {}
    if "ready" not in frame:
        reasons = frame.get("not_ready", {})
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or ended.printed.strip()[-500:]
        raise SandboxError(
            f"The sandbox could not be closed, so nothing was run: {why or 'its process did not start'}.",
            "See docs/sandbox.md for what it needs.",
        )
    return ended


def locks(limits: Limits) -> dict[str, Any]:
    """Return what the process puts on itself, by name; bubblewrap takes its capabilities, and ends it with us."""
    return {
        "rlimits": {
            "RLIMIT_CPU": limits.cpu_s,
            "RLIMIT_AS": limits.memory_bytes,
            "RLIMIT_FSIZE": limits.file_bytes,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_CORE": 0,
        },
        "seccomp": filters.computing(platform.machine()),
    }


def computing(limits: Limits) -> list[str]:
    """A bare Python, devices, and a small folder in memory.

    That folder comes before what may lie in the real one, such as this package. The seal comes last: the root and the
    devices are file systems in memory, too, as large as half of the machine's.
    """
    begun = [shutil.which("bwrap") or "bwrap", *APART, "--size", str(limits.disk_bytes), "--tmpfs", HOME]
    return [*begun, *_python(), "--dev", "/dev", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]


@cache
def executable() -> str:
    """The interpreter itself, outside of any virtual environment."""
    return str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())


def _python() -> list[str]:
    """A bare Python, where it also is outside, and the inside of this package; without any installed package, and
    without the rest of this one, which knows what is expected."""
    library = Path(sysconfig.get_path("stdlib")).resolve()
    system = [Path(root) for root in (*LIBRARIES, "/usr/local/lib", "/usr/local/lib64")]
    installed = [library / name for name in PACKAGES]
    installed += [path for root in system for name in PACKAGES for path in root.glob(f"python3*/{name}")]
    of_machine = f"{platform.machine()}-linux-gnu"
    folders = [str(library), *(str(p) for root in LIBRARIES if (p := Path(root) / of_machine).is_dir())]
    loose = [root for root in map(Path, LIBRARIES) if root.is_dir()] + [Path(sys.base_prefix).resolve() / "lib"]
    files = sorted({str(file) for folder in loose for file in folder.glob("*.so*") if file.is_file()})
    here = Path(__file__).resolve().parent
    hidden = [*dict.fromkeys(str(path.resolve()) for path in installed if path.is_dir()), str(here.parent)]
    return [
        *_read_only(folders),
        *(word for folder in hidden for word in ("--tmpfs", folder)),
        *_read_only([str(here / "inside")]),
        *(word for folder in hidden for word in ("--remount-ro", folder)),
        *_read_only([executable(), *files, *DATA]),
    ]


def _read_only(paths: Iterable[str]) -> list[str]:
    """These paths, where they are there."""
    return [argument for path in paths for argument in ("--ro-bind-try", path, path)]
