"""Filters of system calls, as programs of classic BPF that the sandboxed process loads into the kernel.

An instruction is (code, jump if true, jump if false, operand); what a program sees is `struct seccomp_data`. Each rule
is a block that ends in a verdict, so no jump is longer than its block. Source: seccomp(2), linux/filter.h.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from agentsignals_lab.sandbox.inside.locks import OWN_PID
from agentsignals_lab.sandbox.syscalls import ARCHITECTURES, BY_ARGUMENT, COMPUTING, NEWEST, numbers

Instruction = tuple[int, int, int, int]
Program = list[Instruction]

LOAD, EQUAL, GREATER, ANY_BIT, AND, VERDICT = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
KILL: Instruction = (VERDICT, 0, 0, 0x80000000)
ALLOW: Instruction = (VERDICT, 0, 0, 0x7FFF0000)
REFUSE: Instruction = (VERDICT, 0, 0, 0x00050000 | errno.EPERM)
UNKNOWN: Instruction = (VERDICT, 0, 0, 0x00050000 | errno.ENOSYS)

CLONE_THREAD = 0x00010000
CLONE_NEW = 0x7E020000 | 0x80
"""Any namespace: cgroup, uts, ipc, user, pid, net, mount, time."""

PRCTL_NAMES = (15, 16)
"""Set and get a thread's name. Not what would undo a lock, such as the signal at the parent's death."""

FCNTL_HARMLESS = (0, 1, 2, 3, 4, 5, 6, 7, 1030)
"""Duplicates, flags and locks. Not F_SETOWN and F_SETSIG, by which the kernel sends signals to others."""

IOCTL_HARMLESS = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS (isatty), FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""

AF_UNIX, SOCK_STREAM, SOCK_TYPE_MASK = 1, 1, 0xF
SET_BITS = 0o7000
"""Setuid, setgid, sticky. Without O_CREAT the C library passes no mode, which is 0."""


def computing(machine: str) -> Program:
    """Lets a Python compute: no process, no program, no socket, no signal to others, no change of rights."""
    allowed, special = numbers(COMPUTING, machine), numbers(BY_ARGUMENT, machine)
    rules: dict[int, Program] = {number: [ALLOW] for number in allowed.values()}
    for name, flags in (("open", 1), ("openat", 2)):
        if name in allowed:
            rules[allowed[name]] = [*_no_bit(flags + 1, SET_BITS), ALLOW]
    rules |= {
        special["clone"]: [*_some_bit(0, CLONE_THREAD), *_no_bit(0, CLONE_NEW), ALLOW],
        special["clone3"]: [UNKNOWN],  # its flags are out of a filter's sight; the C library falls back to clone
        special["prctl"]: [*_one_of(0, PRCTL_NAMES), ALLOW],
        special["fcntl"]: [*_one_of(1, FCNTL_HARMLESS), ALLOW],
        special["ioctl"]: [*_one_of(1, IOCTL_HARMLESS), ALLOW],
        special["kill"]: [*_one_of(0, (OWN_PID,)), ALLOW],
        special["tgkill"]: [*_one_of(0, (OWN_PID,)), ALLOW],
        # Streams only: a datagram socket of a pair could still send to any other socket by its address.
        special["socketpair"]: [*_one_of(0, (AF_UNIX,)), *_one_of(1, (SOCK_STREAM,), SOCK_TYPE_MASK), ALLOW],
        special["sendto"]: [*_null(4), ALLOW],
        special["prlimit64"]: [*_one_of(0, (0,)), *_null(2), ALLOW],
    }
    return _program(machine, rules, REFUSE)


def _program(machine: str, rules: dict[int, Program], otherwise: Instruction) -> Program:
    program: Program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine].audit), KILL, (LOAD, 0, 0, 0)]
    for number, block in sorted(rules.items()):
        program += [(EQUAL, 0, len(block), number), *block]
    return [*program, (GREATER, 0, 1, NEWEST), UNKNOWN, otherwise]


def _low(argument: int) -> Instruction:
    return LOAD, 0, 0, 16 + 8 * argument


def _one_of(argument: int, values: Iterable[int], mask: int | None = None) -> Program:
    """Goes on when the argument's low half, under a mask, is one of these; refuses else."""
    values = list(values)
    masked: Program = [] if mask is None else [(AND, 0, 0, mask)]
    return [_low(argument), *masked, *((EQUAL, len(values) - n, 0, v) for n, v in enumerate(values)), REFUSE]


def _some_bit(argument: int, bits: int) -> Program:
    return [_low(argument), (ANY_BIT, 1, 0, bits), REFUSE]


def _no_bit(argument: int, bits: int) -> Program:
    return [_low(argument), (ANY_BIT, 0, 1, bits), REFUSE]


def _null(argument: int) -> Program:
    _, _, _, low = _low(argument)
    return [(LOAD, 0, 0, low), (EQUAL, 1, 0, 0), REFUSE, (LOAD, 0, 0, low + 4), (EQUAL, 1, 0, 0), REFUSE]
