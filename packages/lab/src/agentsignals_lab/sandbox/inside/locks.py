"""The locks a process puts on itself before it runs code it does not trust. None of them can be taken off again.

Each takes what it needs as plain data made outside and raises OSError (or says why) when this machine does not have it.
Everything goes through the C library, for Python has no words for it. Sources: capabilities(7), seccomp(2),
and the kernel's uapi headers.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
OWN_PID = -1
"""Stands in a filter for the process's id, which nobody knows before it runs."""


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _c() -> ctypes.CDLL:
    if _libc is None:
        raise OSError(f"{sys.platform} has no such thing")
    return _libc


def _prctl(option: int, *arguments: Any) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    _checked(_c().prctl(option, *(ctypes.c_ulong(a) if isinstance(a, int) else a for a in padded)))


def limit(limits: dict[str, int]) -> None:
    """Resource limits by their name in `resource`."""
    import resource  # noqa: PLC0415 - not on Windows, where the reason is to be told like any other

    for name, most in limits.items():
        # The second is one more, so that a process over its CPU time is told (and known) by SIGXCPU first.
        hard = most + 1 if name == "RLIMIT_CPU" else most
        resource.setrlimit(getattr(resource, name), (most, hard))


def die_with_parent(parent: int) -> None:
    """Killed when whoever started us dies, also when that happened already. `parent` 0: in a namespace of its own."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def capabilities(_: Any) -> None:
    """Root without root's powers; and never any more than now."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _checked(_c().capset(header, (ctypes.c_uint32 * 6)()))


def seccomp(instructions: list[list[int]]) -> None:
    """A filter of system calls, as the instructions (code, jump if true, if false, operand) of classic BPF."""
    pid = os.getpid()
    rows = [_Instruction(code, jt, jf, pid if k == OWN_PID else k) for code, jt, jf, k in instructions]
    program = _Program(len(rows), (_Instruction * len(rows))(*rows))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.cast(ctypes.byref(program), ctypes.c_void_p))


LOCKS: dict[str, Callable[[Any], None]] = {
    "rlimits": limit,
    "die_with_parent": die_with_parent,
    "capabilities": capabilities,
    "seccomp": seccomp,
}
"""In the order they must be applied: each later one forbids what an earlier one needs."""


def apply(wanted: dict[str, Any]) -> dict[str, str]:
    """Applies these locks and says of each why it could not be applied; empty: it was."""
    reasons = {}
    for name, lock in LOCKS.items():
        if name in wanted:
            try:
                lock(wanted[name])
                reasons[name] = ""
            except (OSError, ValueError, ImportError, AttributeError) as error:
                reasons[name] = str(error) or type(error).__name__
    return reasons
