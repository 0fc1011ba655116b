"""The command that starts the inside, and whether it gets so far."""

from __future__ import annotations

from typing import Any

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import process, python_paths
from agentsignals_lab.sandbox.inside import wire
from agentsignals_lab.sandbox.outcome import Limits

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


def command() -> list[str]:
    """Starts the inside; it reads a request from its standard input."""
    return [python_paths.executable(), *FLAGS, "-c", BOOT, *python_paths.inside()[:2]]


def environment(home: str) -> dict[str, str]:
    """All that is in it."""
    return {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home}


def request(pipe: int, locks: dict[str, Any], required: list[str], **rest: Any) -> dict[str, Any]:
    """Return the request to the inside. With neither source, argv nor talk it only locks itself in."""
    return {
        "pipe": pipe,
        "locks": locks,
        "required": required,
        "argv": None,
        "env": None,
        "source": None,
        "function": "",
        "inputs": [],
        "lay_out": None,
        "talk": None,
        **rest,
    }


def said_first(ended: process.Ended) -> dict[str, Any]:
    """`ready`: each lock with what it lacked, and `cpu_s` so far. It was said before untrusted code could run.

    Raises SandboxError when a required lock is not on, or nothing was said.
    """
    try:
        frame = wire.loads(ended.frames.partition(b"\n")[0])
    except wire.Refused:
        frame = {}
    if "ready" in frame:
        return dict(frame)
    reasons = frame.get("not_ready", {})
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason) or ended.head.strip()[-500:]
    raise SandboxError(
        f"The sandbox could not be closed, so nothing was run: {why or 'its process did not start'}.",
        "agentsignals_lab.sandbox.capabilities() tells what this machine has.",
    )


def probed(locks: dict[str, Any], wrapper: tuple[str, ...]) -> dict[str, str]:
    """Starts the inside under a wrapper, if any, with these locks, and says what each lacked. Raises SandboxError."""
    start = process.Start(argv=[*wrapper, *command()], env=environment("/"))
    ended = process.run(start, lambda pipe: request(pipe, locks, []), Limits())
    ready: dict[str, str] = said_first(ended)["ready"]
    return ready
