"""Filters of system calls, as programs of classic BPF that the sandboxed process loads into the kernel.

An instruction is (code, jump if true, jump if false, operand); what a program sees is `struct seccomp_data`. Each rule
is a block that ends in a verdict, so no jump is longer than its block. Sources: seccomp(2), linux/filter.h; for the
numbers of calls the kernel's `asm/unistd_64.h` (x86_64) and `asm-generic/unistd.h` (aarch64), which a test compares
where these headers are installed: `name x86_64 aarch64`, `-` where an architecture has none.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import NamedTuple

from agentsignals_lab.sandbox.inside import OWN_PID


class Architecture(NamedTuple):
    """`audit` is what a filter sees (`AUDIT_ARCH_*` of linux/audit.h), `column` where its numbers stand below."""

    audit: int
    column: int


ARCHITECTURES = {"x86_64": Architecture(0xC000003E, 1), "aarch64": Architecture(0xC00000B7, 2)}

COMPUTING = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, open 2 -, openat 257 56, close 3 57,
close_range 436 436, stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, lseek 8 62, access 21 -,
faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78, getcwd 79 17, chdir 80 49, getdents64 217 61,
unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38, renameat2 316 276, fsync 74 82, fdatasync 75 83,
ftruncate 77 46, flock 73 32, dup 32 23, dup2 33 -, dup3 292 24, pipe 22 -, pipe2 293 59, poll 7 -, ppoll 271 73,
select 23 -, pselect6 270 72, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22,
eventfd2 290 19, mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233, brk 12 214, futex 202 98,
set_robust_list 273 99, rseq 334 293, sched_yield 24 124, sched_getaffinity 204 123, membarrier 324 283, getpid 39 172,
getppid 110 173, gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177, getgroups 115 158,
getpgrp 111 -, getpgid 121 155, getsid 124 156, getresuid 118 148, getresgid 120 150, uname 63 160, sysinfo 99 179,
times 100 153, getrusage 98 165, getrlimit 97 163, clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115,
nanosleep 35 101, gettimeofday 96 169, time 201 -, getrandom 318 278, rt_sigaction 13 134, rt_sigprocmask 14 135,
rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132,
restart_syscall 219 128, pause 34 -, alarm 37 -, setitimer 38 103, getitimer 36 102, exit 60 93, exit_group 231 94,
getcpu 309 168, umask 95 166, shutdown 48 210, recvfrom 45 207, getsockopt 55 209
"""
"""System calls of a Python that computes, reads its library, and has threads and an event loop. All else is
refused, such as chmod, chown and utimes."""

BY_ARGUMENT = """
fcntl 72 25, ioctl 16 29, prctl 157 167, clone 56 220, clone3 435 435, kill 62 129, tgkill 234 131, socketpair 53 199,
sendto 44 206, prlimit64 302 261
"""
"""Let through in their harmless forms only, see `filters`."""

NEWEST = 470
"""Numbers above are of kernels later than this table; a program takes "not implemented" and does without."""


def numbers(table: str, machine: str) -> dict[str, int]:
    """The calls of a table by name, as this architecture numbers them."""
    column = ARCHITECTURES[machine].column
    rows = (row.split() for row in table.replace("\n", " ").split(","))
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


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
        special["clone"]: [_low(0), (ANY_BIT, 1, 0, CLONE_THREAD), REFUSE, *_no_bit(0, CLONE_NEW), ALLOW],
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
    program: Program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine].audit), KILL, (LOAD, 0, 0, 0)]
    for number, block in sorted(rules.items()):
        program += [(EQUAL, 0, len(block), number), *block]
    return [*program, (GREATER, 0, 1, NEWEST), UNKNOWN, REFUSE]


def _low(argument: int) -> Instruction:
    return LOAD, 0, 0, 16 + 8 * argument


def _one_of(argument: int, values: Iterable[int], mask: int | None = None) -> Program:
    """Goes on when the argument's low half, under a mask, is one of these; refuses else."""
    values = list(values)
    masked: Program = [] if mask is None else [(AND, 0, 0, mask)]
    return [_low(argument), *masked, *((EQUAL, len(values) - n, 0, v) for n, v in enumerate(values)), REFUSE]


def _no_bit(argument: int, bits: int) -> Program:
    return [_low(argument), (ANY_BIT, 0, 1, bits), REFUSE]


def _null(argument: int) -> Program:
    _, _, _, low = _low(argument)
    return [(LOAD, 0, 0, low), (EQUAL, 1, 0, 0), REFUSE, (LOAD, 0, 0, low + 4), (EQUAL, 1, 0, 0), REFUSE]
