"""The untrusted process: locks itself in, then runs the code, and answers one line a call.

Whatever the code does to this process, to `json`, to builtins or to the pipe, it can only say values, and it knows
none that is expected. So nothing here needs to be safe from it; the reader of the pipe does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from agentsignals_lab.sandbox.inside import locks, wire

CANDIDATE = "<candidate>"
MOST_MESSAGE_CHARS = 500

Send = Callable[[dict[str, Any]], None]


def main() -> None:
    """Reads the request from standard input, answers on the pipe whose number it says."""
    request = json.loads(sys.stdin.buffer.read())
    pipe = request["pipe"]
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)

    def send(message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(pipe, line) :]

    if reasons := locks.apply(request["locks"]):
        send({"not_ready": reasons})
        return
    send({"ready": True})
    for stream in (1, 2):
        os.dup2(null, stream)  # what the code prints is nobody's business
    os.close(null)
    if request["source"] is not None:
        _answer(request["source"], request["function"], request["inputs"], send)
    send({"done": True})
    os._exit(0)


def _answer(source: str, function: str, inputs: list[Any], send: Send) -> None:
    called, failed = _load(source, function)
    if failed is not None or called is None:
        send({"load": failed})
        return
    for n, argument in enumerate([wire.decode(form) for form in inputs]):
        send({"at": n, **_call(called, argument)})


def _load(source: str, function: str) -> tuple[Callable[..., Any] | None, dict[str, Any] | None]:
    try:
        code = compile(source, CANDIDATE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return None, {**_failure(error), "kind": "syntax"}
    # A real module: dataclasses, pickle and type hints look their own module up.
    module = sys.modules["candidate"] = ModuleType("candidate")
    try:
        exec(code, module.__dict__)  # noqa: S102 - what this process is for
        called = module.__dict__.get(function)
    except BaseException as error:  # noqa: BLE001 - SystemExit too is an answer
        return None, _failure(error)
    if not callable(called):
        return None, {"kind": "missing_function", "type": "", "message": f"no function {function}", "line": None}
    return called, None


def _call(called: Callable[..., Any], arguments: tuple[Any, ...]) -> dict[str, Any]:
    try:
        return {"value": wire.encode(called(*arguments))}
    except wire.Refused as error:
        return {"failed": {"kind": error.kind, "type": "", "message": error.message, "line": None}}
    except BaseException as error:  # noqa: BLE001 - SystemExit too is an answer
        return {"failed": _failure(error)}


def _failure(error: BaseException) -> dict[str, Any]:
    kind = "memory" if type(error) is MemoryError else "raised"
    line = error.lineno if isinstance(error, SyntaxError) else None
    line = line if type(line) is int else _line(error.__traceback__)
    return {"kind": kind, "type": wire.name_of(type(error)), "message": _message(error), "line": line}


def _message(error: BaseException) -> str:
    try:
        text = str(error.msg) if isinstance(error, SyntaxError) else str(error)
        return str.__getitem__(text, slice(0, MOST_MESSAGE_CHARS))
    except BaseException:  # noqa: BLE001 - its own __str__ failed
        return ""


def _line(trace: TracebackType | None) -> int | None:
    """Return the line of the innermost frame in the candidate's own source."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == CANDIDATE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
