"""Calls a function of untrusted source: inputs go in, values come out, and the comparing is done outside."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any, get_args

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import confinement, process
from agentsignals_lab.sandbox.inside import wire
from agentsignals_lab.sandbox.outcome import Failed, FailureKind, Limits, Outcome, Result, Returned

STOPPED: dict[process.Stopped, tuple[FailureKind, str]] = {
    "wall": ("timeout", "took longer than {0.wall_s:g} s"),
    "results": ("protocol", "answered more than {0.result_bytes} bytes"),
}
FROM_INSIDE = frozenset(get_args(FailureKind)) - {"timeout", "killed", "exited", "not_reached"}
"""The kinds a process may say of itself."""
NOT_REACHED = Failed("not_reached", "an earlier call ended the process", where="process")


def call(source: str, function: str, inputs: Sequence[tuple[Any, ...]], limits: Limits | None = None) -> Outcome:
    """Loads untrusted source in a process of its own and calls one of its functions with each of the inputs.

    Args:
        source: a whole Python module; imports of the standard library work.
        function: its name.
        inputs: the arguments of each call, plain data. Never what is expected: compare with `same` here, outside.
        limits: for all calls together.

    Raises:
        SandboxError: there is no sandbox here, the inputs are no plain data, or the process could not be locked.
    """
    limits = limits or Limits()
    confinement.require()
    try:
        forms = [wire.encode(tuple(arguments)) for arguments in inputs]
    except wire.Refused as refused:
        raise SandboxError(
            f"An input can't be handed over: {refused.message}.", "Give plain data: numbers, texts, lists, mappings."
        ) from None
    ended = confinement.run(limits, source=source, function=function, inputs=forms)
    results = _answers(ended.frames.split(b"\n")[1:-1], len(forms))
    if len(results) < len(forms):
        results.append(_why(ended, limits))
        results += [NOT_REACHED] * (len(forms) - len(results))
    return Outcome(tuple(results), round(ended.wall_s, 4))


def _answers(lines: list[bytes], n: int) -> list[Result]:
    """Return the answers there are; a failure for each where nothing could be run, or the code tampered with the
    pipe."""
    results: list[Result] = []
    try:
        for line in lines:
            frame = wire.loads(line)
            if type(frame) is not dict:
                raise wire.Refused("protocol", "an answer of no known kind")
            if "load" in frame and not results:
                return [_failed(frame["load"], "load")] * n
            if frame == {"done": True} and len(results) == n:
                break  # the last word; what may follow it is not read
            results.append(_result(frame, len(results), n))
    except wire.Refused as refused:
        return [Failed("protocol", refused.message, where="process")] * n
    return results


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


def _why(ended: process.Ended, limits: Limits) -> Failed:
    """Return the reason why the process ended in the middle of a call."""
    if ended.stopped:
        kind, message = STOPPED[ended.stopped]
        return Failed(kind, message.format(limits), where="process")
    code = ended.exit_code
    number = code - 128 if code > 128 else -code  # bubblewrap tells a signal as shells do
    if number == signal.SIGXCPU or (number == signal.SIGKILL and ended.wall_s >= limits.cpu_s):
        return Failed("timeout", f"took more than {limits.cpu_s} s of CPU time", where="process")
    if number > 0:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return Failed("killed", f"ended by {name}", where="process")
    return Failed("exited", f"left with code {code} before it answered", where="process")
