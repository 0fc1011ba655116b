"""The untrusted process: locks itself in, then runs the code, and answers one line a call. Standard library only.

Whatever the code does to this process, to `json`, to builtins or to the pipe, it can only say values, and it knows
none that is expected. So nothing here needs to be safe from it; the reader of the pipe does.

Values cross as text: plain data only, by exact type, of limited size and depth. A value that is not one of these types
is refused, whatever it says of itself: a subclass could lie about its length, its text or what it equals. Types that
JSON lacks are objects of one tag: `{"tuple": [1, 2]}`.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

# -- values as text

MOST_DEPTH = 64
MOST_ITEMS = 100_000
MOST_CHARS = 1_000_000
"""Characters of strings, bytes and digits in one value."""

MOST_INT_BITS = 14_000
"""4215 digits: below Python's own limit (4300), so that any value that came through can be printed."""

MOST_EQUAL_HASHES = 64
"""Numbers can be chosen to collide; a set or mapping of them would cost us the square of its size."""

MAPPINGS = (dict, Counter, OrderedDict, defaultdict)
"""All of these compare as a dict does, and arrive as one."""

_TAGS: dict[type, str] = {list: "", tuple: "tuple", set: "set", frozenset: "frozenset"}


class Refused(Exception):
    """This value does not pass: `kind` is `not_plain`, `too_large` or `protocol`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Encoder:
    """One value on its way out."""

    def __init__(self) -> None:
        self.items_left = MOST_ITEMS
        self.chars_left = MOST_CHARS

    def form(self, value: Any, depth: int = 0) -> Any:
        """The value in types JSON knows. Raises Refused."""
        self.items_left -= 1
        if self.items_left < 0:
            raise Refused("too_large", f"more than {MOST_ITEMS} items")
        if depth > MOST_DEPTH:
            raise Refused("too_large", f"nested deeper than {MOST_DEPTH}")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind in _TAGS:
            inner = [self.form(item, depth + 1) for item in value]
            return {_TAGS[kind]: inner} if _TAGS[kind] else inner
        if kind in MAPPINGS:
            pairs = dict.items(value)
            return {"dict": [[self.form(k, depth + 1), self.form(v, depth + 1)] for k, v in pairs]}
        return self._scalar(value, kind)

    def _scalar(self, value: Any, kind: type) -> Any:
        if kind is int:
            if value.bit_length() > MOST_INT_BITS:
                raise Refused("too_large", f"an integer of {value.bit_length()} bits, more than {MOST_INT_BITS}")
            self._spend(value.bit_length() // 3)
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is str:
            self._spend(len(value))
            return value
        if kind is bytes or kind is bytearray:
            self._spend(2 * len(value))
            return {kind.__name__: value.hex()}
        if kind is complex:
            return {"complex": [repr(value.real), repr(value.imag)]}
        raise Refused("not_plain", f"a value of type {name_of(kind)} is no plain data")

    def _spend(self, chars: int) -> None:
        self.chars_left -= chars
        if self.chars_left < 0:
            raise Refused("too_large", f"more than {MOST_CHARS} characters")


_OF_TEXT: dict[str, Callable[[str], Any]] = {"float": float, "bytes": bytes.fromhex, "bytearray": bytearray.fromhex}
_OF_MEMBERS: dict[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def encode(value: Any) -> Any:
    """The value in types JSON knows. Raises Refused when it is no plain data, or too large."""
    return Encoder().form(value)


def decode(form: Any, depth: int = 0) -> Any:
    """The value that `encode` was given. Raises Refused when nothing would have been written so."""
    kind = type(form)
    if form is None or kind in (bool, int, float, str):
        return form
    if depth > MOST_DEPTH:
        raise Refused("protocol", f"nested deeper than {MOST_DEPTH}")
    if kind is list:
        return [decode(item, depth + 1) for item in form]
    if kind is not dict or len(form) != 1:
        raise Refused("protocol", "an object without its one tag")
    [(tag, inner)] = form.items()
    try:
        return _tagged(tag, inner, depth)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused("protocol", f"not a {tag[:20]}: {type(error).__name__}") from None


def _tagged(tag: str, inner: Any, depth: int) -> Any:
    if tag in _OF_TEXT:
        if type(inner) is not str:
            raise TypeError(tag)
        return _OF_TEXT[tag](inner)
    if type(inner) is not list:
        raise TypeError(tag)
    if tag == "complex":
        real, imaginary = inner
        return complex(float(real), float(imaginary))
    if tag == "dict":
        pairs = [(decode(k, depth + 1), decode(v, depth + 1)) for k, v in inner]
        _spread([k for k, _ in pairs])
        return dict(pairs)
    if tag not in _OF_MEMBERS:
        raise Refused("protocol", f"unknown tag {tag[:20]}")
    members = [decode(item, depth + 1) for item in inner]
    if tag != "tuple":
        _spread(members)
    return _OF_MEMBERS[tag](members)


def _spread(keys: list[Any]) -> None:
    # Texts are hashed with a secret of the process, so counting hashes as texts can't be attacked itself.
    equal = Counter(str(hash(key)) for key in keys)
    if equal and max(equal.values()) > MOST_EQUAL_HASHES:
        raise Refused("protocol", "keys chosen to collide")


def loads(line: bytes) -> Any:
    """A line as JSON. Raises Refused when it is none, or so nested or so long a number that Python gives up."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused("protocol", f"not JSON: {type(error).__name__}") from None


_NAME: Any = type.__dict__["__name__"]


def name_of(kind: type) -> str:
    """The type's own name; its metaclass is not asked, it may lie or never return."""
    return str(_NAME.__get__(kind))[:200]


# -- locks: none of them can be taken off again. Each takes what it needs as plain data made outside, and raises OSError
# where this machine does not have it. Sources: seccomp(2), the kernel's uapi headers

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
OWN_PID = -1
"""Stands in a filter for the process's id, which nobody knows before it runs."""


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def limit(limits: dict[str, int]) -> None:
    """Resource limits by their name in `resource`."""
    import resource  # noqa: PLC0415 - not on Windows, where the reason is to be told like any other

    for name, most in limits.items():
        # The second is one more, so that a process over its CPU time is told (and known) by SIGXCPU first.
        hard = most + 1 if name == "RLIMIT_CPU" else most
        resource.setrlimit(getattr(resource, name), (most, hard))


def seccomp(instructions: list[list[int]]) -> None:
    """A filter of system calls, as the instructions (code, jump if true, if false, operand) of classic BPF."""
    libc, pid = ctypes.CDLL(None, use_errno=True), os.getpid()
    rows = [_Instruction(code, jt, jf, pid if k == OWN_PID else k) for code, jt, jf, k in instructions]
    program = _Program(len(rows), (_Instruction * len(rows))(*rows))
    filtered = (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.cast(ctypes.byref(program), ctypes.c_void_p), 0, 0)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), filtered):
        if libc.prctl(*(ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments)) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def apply(wanted: dict[str, Any]) -> dict[str, str]:
    """Applies these locks and says why one could not be applied; empty: all are on."""
    reasons = {}
    # In this order: each later one forbids what an earlier one needs.
    locks: dict[str, Callable[[Any], None]] = {"rlimits": limit, "seccomp": seccomp}
    for name, lock in locks.items():
        if name in wanted:
            try:
                lock(wanted[name])
            except (OSError, ValueError, ImportError, AttributeError) as error:
                reasons[name] = str(error) or type(error).__name__
    return reasons


# -- the code

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

    if reasons := apply(request["locks"]):
        send({"not_ready": reasons})
        return
    send({"ready": True})
    for stream in (1, 2):
        os.dup2(null, stream)  # what the code prints is nobody's business
    os.close(null)
    if request["source"] is not None:
        called, failed = _load(request["source"], request["function"])
        if failed is not None or called is None:
            send({"load": failed})
        else:
            for n, argument in enumerate([decode(form) for form in request["inputs"]]):
                send({"at": n, **_call(called, argument)})
    send({"done": True})
    os._exit(0)


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
        return {"value": encode(called(*arguments))}
    except Refused as error:
        return {"failed": {"kind": error.kind, "type": "", "message": error.message, "line": None}}
    except BaseException as error:  # noqa: BLE001 - SystemExit too is an answer
        return {"failed": _failure(error)}


def _failure(error: BaseException) -> dict[str, Any]:
    kind = "memory" if type(error) is MemoryError else "raised"
    line = error.lineno if isinstance(error, SyntaxError) else None
    line = line if type(line) is int else _line(error.__traceback__)
    return {"kind": kind, "type": name_of(type(error)), "message": _message(error), "line": line}


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
