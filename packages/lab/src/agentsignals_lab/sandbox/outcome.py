"""Limits and outcome of a sandboxed run."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

FailureKind = Literal[
    "syntax",
    "missing_function",
    "raised",
    "memory",
    "timeout",
    "killed",
    "exited",
    "not_plain",
    "too_large",
    "protocol",
    "not_reached",
]
"""`raised` an exception; `timeout` of wall or CPU time; `killed` by a signal (a crash); `exited` without an answer;
`not_plain` answered with an object that is no data, `too_large` with too much
of it; `protocol` broke the pipe of answers; `not_reached` an earlier call ended the process."""


class Limits(Struct, frozen=True, gc=False, kw_only=True):
    """Limits of one run. Wall time counts from when the code starts, not from when the process does."""

    cpu_s: int = 2
    wall_s: float = 5.0
    memory_bytes: int = 512 << 20
    file_bytes: int = 1 << 20
    disk_bytes: int = 16 << 20
    open_files: int = 32
    result_bytes: int = 4 << 20


class Returned(Struct, frozen=True):
    """The function gave this value: plain data, rebuilt on our side. It may hold any character, see `shown`."""

    value: Any


class Failed(Struct, frozen=True, gc=False):
    """No value. `where`: while the source was loaded, in the call, or the process. `line` is the source's own."""

    kind: FailureKind
    message: str = ""
    type: str = ""
    where: Literal["load", "call", "process"] = "call"
    line: int | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.type or self.kind, self.message) if part)


Result = Returned | Failed


class Outcome(Struct, frozen=True):
    """One process's answers: as many results as there were inputs, in their order."""

    results: tuple[Result, ...]
    wall_s: float
    """Seconds of the code alone."""
