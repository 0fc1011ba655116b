"""What has been run, line by line in a file of the search's folder: what a search that was broken off goes on from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from agentsignals.errors import StoreError, UsageError
from agentsignals.tuning.plan import Plan, Value

NAME = "search.jsonl"
Phase = Literal["search", "held_out"]
State = Literal["running", "ended", "interrupted"]


class Run(Struct, kw_only=True):
    """A run of the command."""

    number: int
    phase: Phase
    treatment: dict[str, Value]
    task: str
    state: State = "running"
    exit_code: int | None = None
    """None of a run that has not ended, or ran into its time limit."""
    wall_time_s: float = 0.0


class _Begun(Struct, tag="begun"):
    plan: str
    """Its digest."""


class _Asked(Struct, tag="asked"):
    run: Run


class _Ended(Struct, tag="ended", kw_only=True):
    number: int
    state: State
    exit_code: int | None
    wall_time_s: float


_Line = _Begun | _Asked | _Ended


class History:
    """The runs of a search's folder. UsageError where another plan was begun there."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.path = folder / NAME
        self.runs: list[Run] = []
        for line in self._lines():
            if isinstance(line, _Begun) and line.plan != plan.digest():
                raise UsageError(
                    f"{folder} holds the search of another plan.",
                    "Name another folder with --out; only the budget may change within a search.",
                )
            if isinstance(line, _Asked):
                self.runs.append(line.run)
            elif isinstance(line, _Ended) and 0 < line.number <= len(self.runs):
                run = self.runs[line.number - 1]
                run.state, run.exit_code, run.wall_time_s = line.state, line.exit_code, line.wall_time_s
        self._begun = plan.digest()

    def asked(self, run: Run) -> None:
        """Keeps that a run is begun."""
        if not self.path.exists():
            self._write(_Begun(self._begun))
        self._write(_Asked(run))
        self.runs.append(run)

    def ended(self, run: Run) -> None:
        """Keeps how a run has ended."""
        line = _Ended(number=run.number, state=run.state, exit_code=run.exit_code, wall_time_s=run.wall_time_s)
        self._write(line)

    def _write(self, line: _Line) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)  # what a crash has torn
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise StoreError(f"{self.path} can't be written: {problem.strerror}.", "Name another --out.") from problem

    def _lines(self) -> Iterator[_Line]:
        """A last line that is not whole is no line: a crash has torn it, or it is just being written."""
        if not self.path.exists():
            return
        decoder = msgspec.json.Decoder(_Line)
        *lines, _ = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as problem:
                raise StoreError(
                    f"Line {number} of {self.path} is none of a search: {problem}", "Name another --out."
                ) from problem
