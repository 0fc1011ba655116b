"""Starts the runs that a search asks for, one after the other, until it has no more."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

from agentsignals.errors import TuningError
from agentsignals.store.lock import locked
from agentsignals.tuning.history import Run
from agentsignals.tuning.search import SILENT, Search

_GRACE_S = 5.0
"""Between asking a command to end and ending it."""
_LAST_CHARS = 300
_LOCK = ".search.lock"


def drive(search: Search, began: Callable[[Run], None] = lambda run: None) -> None:
    """Runs the search to its end. Ctrl-C ends the command under way and keeps what was run before.

    TuningError where the command can't be started, or leaves nothing to read again and again; StoreError where another
    program drives this search.
    """
    search.folder.mkdir(parents=True, exist_ok=True)
    with locked(search.folder, _LOCK, wait_s=0):
        search.look()  # another program may have driven it meanwhile
        for lost in [run for run in search.runs if run.state == "running"]:
            search.interrupted(lost)  # of a program that is gone
        if ended := [past for past in search.runs if past.state == "ended"]:
            search.read(ended)  # the last one's reading may have been broken off
        silent = 0
        while (run := search.ask()) is not None:
            began(run)
            result = search.tell(run, *_ran(search, run))
            silent = 0 if result.outcomes else silent + 1
            ever = any(earlier.outcomes for earlier in search.results.values())
            if silent >= (2 * SILENT if ever else SILENT):
                raise TuningError(
                    f"The last {silent} runs left no outcome: {'; '.join(result.without)}. {_last_words(search, run)}",
                    f"Look into {search.place(run)}; the same command goes on from here.",
                )


def _ran(search: Search, run: Run) -> tuple[int | None, float]:
    """Runs the command; its exit code, None where it ran into its time limit, and how long it took."""
    plan, place = search.plan, search.place(run)
    output = search.output(run)
    argv = plan.argv(run.treatment, run.task, output)
    variables = {**os.environ, **plan.variables(run.treatment, run.task, output)}
    (place / "output").mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (place / "stdout.jsonl").open("wb") as out, (place / "stderr.txt").open("wb") as err:
        try:
            process = subprocess.Popen(  # noqa: S603  (the words of the person's plan, and no shell)
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=variables, start_new_session=True
            )
        except OSError as problem:
            search.interrupted(run)
            raise TuningError(
                f"{argv[0]!r} can't be started: {problem.strerror}.", "The plan's command begins with a program."
            ) from problem
        try:
            code: int | None = process.wait(plan.timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            code = None
        except BaseException:  # Ctrl-C: what the command began is not left running
            _end(process)
            search.interrupted(run, time.monotonic() - began)
            raise
    return code, time.monotonic() - began


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command with all that it has started."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, ending)
            process.wait(_GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _last_words(search: Search, run: Run) -> str:
    text = (search.place(run) / "stderr.txt").read_bytes()[-4 * _LAST_CHARS :].decode("utf-8", "replace").strip()
    return (
        f"It ended with {run.exit_code}, saying: {text[-_LAST_CHARS:]}" if text else f"It ended with {run.exit_code}."
    )
