"""The locks a process puts on itself before it runs code it does not trust. None of them can be taken off again.

Each takes what it needs as plain data made outside and raises OSError (or says why) when this machine does not have it.
The filter goes through the C library, for Python has no words for it. Sources: seccomp(2), the kernel's uapi headers.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

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


LOCKS: dict[str, Callable[[Any], None]] = {"rlimits": limit, "seccomp": seccomp}
"""In the order they must be applied: each later one forbids what an earlier one needs."""


def apply(wanted: dict[str, Any]) -> dict[str, str]:
    """Applies these locks and says why one could not be applied; empty: all are on."""
    reasons = {}
    for name, lock in LOCKS.items():
        if name in wanted:
            try:
                lock(wanted[name])
            except (OSError, ValueError, ImportError, AttributeError) as error:
                reasons[name] = str(error) or type(error).__name__
    return reasons
