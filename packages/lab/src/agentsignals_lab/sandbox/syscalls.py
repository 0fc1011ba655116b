"""Numbers of Linux system calls, and which of them a sandbox lets through.

Source: the kernel's `asm/unistd_64.h` (x86_64) and `asm-generic/unistd.h` (aarch64); a test compares them where these
headers are installed. `name x86_64 aarch64`, `-` where an architecture has none.
"""

from __future__ import annotations

from typing import NamedTuple


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
