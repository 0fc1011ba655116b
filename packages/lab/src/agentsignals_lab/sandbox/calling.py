"""Calls a function of untrusted source: inputs go in, values come out, and the comparing is done outside."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import bubblewrap, launch, process
from agentsignals_lab.sandbox.capability import WHOLE, capabilities, choose, locks
from agentsignals_lab.sandbox.inside import wire
from agentsignals_lab.sandbox.outcome import Failed, FailureKind, Limits, Outcome, Result, Returned, Tier
from agentsignals_lab.sandbox.removal import remove_folder

STOPPED: dict[process.Stopped, tuple[FailureKind, str]] = {
    "wall": ("timeout", "took longer than {0.wall_s:g} s"),
    "output": ("output", "printed more than {0.output_bytes} bytes"),
    "results": ("protocol", "answered more than {0.result_bytes} bytes"),
    "disk": ("disk", "wrote more than {0.disk_bytes} bytes or {0.disk_files} files"),
}
FROM_INSIDE = frozenset(get_args(FailureKind)) - {"timeout", "killed", "exited", "output", "disk", "not_reached"}
"""The kinds a process may say of itself."""

NOT_REACHED = Failed("not_reached", "an earlier call ended the process", where="process")
IN_MEMORY = "/tmp"  # noqa: S108 - inside bubblewrap, a file system of its own


def call(  # noqa: PLR0913 - what to run, on what, under which rules
    source: str,
    function: str,
    inputs: Sequence[tuple[Any, ...]],
    limits: Limits | None = None,
    tier: Tier = "default",
    allow_weak: bool = False,
) -> Outcome:
    """Loads untrusted source in a process of its own and calls one of its functions with each of the inputs.

    Args:
        source: a whole Python module; imports of the standard library work.
        function: its name.
        inputs: the arguments of each call, plain data. Never what is expected: compare with `same` here, outside.
        limits: for all calls together.
        tier: what locks the process in.
        allow_weak: run also where this machine has less than the tier asks for. Resource limits alone keep no code from
            reading, writing, or talking to anybody.

    Raises:
        SandboxError: the tier is not to be had here, the inputs are no plain data, or the process could not be locked.
    """
    limits = limits or Limits()
    used, layers = choose(tier, allow_weak)
    try:
        forms = [wire.encode(tuple(arguments)) for arguments in inputs]
    except wire.Refused as refused:
        raise SandboxError(f"An input can't be handed over: {refused.message}.", "Inputs are plain data.") from None
    code = {"source": source, "function": function, "inputs": forms}
    folder = Path(tempfile.mkdtemp(prefix="agentsignals-sandbox-"))
    try:
        ended = _run(code, limits, used, layers, folder)
    finally:
        remove_folder(folder)
    return _read(ended, len(forms), limits, used)


def _run(code: dict[str, Any], limits: Limits, tier: Tier, layers: tuple[str, ...], folder: Path) -> process.Ended:
    strict = tier == "strict"
    home = IN_MEMORY if strict else str(folder)
    abi, parent = capabilities().landlock_abi, 0 if strict else os.getpid()
    wanted = locks(limits, layers, abi=abi, folder=home, parent=parent)
    required = [name for name in WHOLE[tier] if name in wanted]
    wrapper = [*bubblewrap.computing(limits), "--"] if strict else []
    start = process.Start(
        argv=[*wrapper, *launch.command()],
        env=launch.environment(home),
        folder=folder,
        check=partial(process.stopped_by_disk, folder, limits),
    )
    return process.run(start, lambda pipe: launch.request(pipe, wanted, required, **code), limits)


def _read(ended: process.Ended, n: int, limits: Limits, tier: Tier) -> Outcome:
    first = launch.said_first(ended)
    on = tuple(name for name, missing in first["ready"].items() if not missing)
    failure, results = _answers(ended.frames.split(b"\n")[1:-1], n)
    if failure is None and len(results) < n:
        results.append(_why(ended, limits, tier))
        results += [NOT_REACHED] * (n - len(results))
    return Outcome(
        results=tuple(results) if failure is None else (failure,) * n,
        failure=failure,
        tier=tier,
        layers=(*on, "bubblewrap") if tier == "strict" else on,
        wall_s=round(ended.wall_s, 4),
        cpu_s=_cpu_s(ended, float(first["cpu_s"]), tier),
        output=ended.head,
    )


def _cpu_s(ended: process.Ended, before: float, tier: Tier) -> float | None:
    if tier != "strict":
        return round(max(0.0, ended.cpu_s - before), 4)
    # Bubblewrap keeps to itself what its children used.
    match = re.search(rb'\n\{"cpu_s": ([0-9.]{1,20})\}\n\{"done": true\}\n$', ended.frames)
    try:
        return round(max(0.0, float(match[1]) - before), 4) if match else None
    except ValueError:
        return None


def _answers(lines: list[bytes], n: int) -> tuple[Failed | None, list[Result]]:
    """Return the failure that kept everything from being run, and the answers there are. Code that tampers with the
    pipe has none."""
    results: list[Result] = []
    try:
        for line in lines:
            frame = wire.loads(line)
            if type(frame) is not dict:
                raise wire.Refused("protocol", "an answer of no known kind")
            if set(frame) == {"cpu_s"}:
                break  # the last word; what may follow it is not read
            if "load" in frame and not results:
                return _failed(frame["load"], "load"), []
            results.append(_result(frame, len(results), n))
    except wire.Refused as refused:
        return Failed("protocol", refused.message, where="process"), []
    return None, results


def _result(frame: Any, at: int, n: int) -> Result:
    if type(frame.get("at")) is not int or frame["at"] != at or at >= n:
        raise wire.Refused("protocol", "answers out of order")
    if "failed" in frame:
        return _failed(frame["failed"], "call")
    if "value" not in frame:
        raise wire.Refused("protocol", "an answer without a value")
    return Returned(wire.decode(frame["value"]))


def _failed(frame: Any, where: Any) -> Failed:
    """Its texts may be forged, and may hold anything."""
    if type(frame) is not dict or frame.get("kind") not in FROM_INSIDE:
        raise wire.Refused("protocol", "a failure of no known kind")
    line = frame.get("line")
    return Failed(
        frame["kind"],
        printable(frame.get("message"), 500),
        printable(frame.get("type"), 200),
        where,
        line if type(line) is int and 0 < line < 1 << 31 else None,
    )


def printable(value: Any, most_chars: int) -> str:
    """Text that untrusted code chose: cut, and whatever a terminal may act on, or no file takes, written out."""
    if type(value) is not str:
        return ""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in value[:most_chars])


def _why(ended: process.Ended, limits: Limits, tier: Tier) -> Failed:
    """Return the reason why the process ended in the middle of a call."""
    if ended.stopped:
        kind, message = STOPPED[ended.stopped]
        return Failed(kind, message.format(limits), where="process")
    code = ended.exit_code
    if tier == "strict" and code > 128:
        code = 128 - code  # as bubblewrap tells a signal
    used_s = ended.wall_s if tier == "strict" else ended.cpu_s
    if code < 0 and (-code == signal.SIGXCPU or (-code == signal.SIGKILL and used_s >= limits.cpu_s)):
        return Failed("timeout", f"took more than {limits.cpu_s} s of CPU time", where="process")
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return Failed("killed", f"ended by {name}", where="process")
    return Failed("exited", f"left with code {code} before it answered", where="process")
