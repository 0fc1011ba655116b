"""`python -m agentsignals`."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from agentsignals.errors import address_space_limit, out_of_memory, too_little

FEW_CIRCLES = 200_000
"""New objects before the garbage collector runs. There are hardly any reference cycles here. At the default of 700 it
walks all imports again and again, at 100,000 once more in each process: 90 ms of a cold run of 98 MB
(docs/decisions/006)."""

LITTLE_BYTES = 4 * 1024**3
"""Below such a limit of the address space, packages in C and C++ crash or exit where they get no memory."""
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS")
_M_ARENA_MAX, _PR_SET_PDEATHSIG = -8, 1


class HiddenPackages:
    """Finder that hides packages while others begin that do without them.

    pyarrow loads NumPy and cloudpickle, where they are there, to convert columns and to pickle. Reading asks for
    neither, and NumPy is a third of what a run over a new line loads. msgspec takes from typing_extensions what Python
    has, for a tenth of a run over nothing new.
    """

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        hiding: tuple[str, ...] = ()
        if name.startswith(("pyarrow.lib", "pyarrow._")) and "agentsignals.cli.analyze" in sys.modules:
            hiding = ("numpy", "cloudpickle")
        elif name == "msgspec._utils":
            hiding = ("typing_extensions",)
        hiding = tuple(package for package in hiding if package not in sys.modules)
        spec = PathFinder.find_spec(name, path, target) if hiding else None
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.create_module = _without(hiding, loader.create_module)
            loader.exec_module = _without(hiding, loader.exec_module)
        return spec


def _without(hiding: tuple[str, ...], load: Any) -> Any:
    def loaded(about: Any) -> Any:
        sys.modules.update(dict.fromkeys(hiding))  # type: ignore[arg-type]  # Python's own word for "not installed"
        try:
            return load(about)
        finally:
            for package in hiding:
                del sys.modules[package]

    return loaded


def run() -> None:
    """Run the console script. The process exits without cleaning up: taking the interpreter down costs more than a warm
    run, and DuckDB reports its own leaks on the way."""
    limit = address_space_limit()
    ended = _outlive_crashes(limit) if limit is not None and limit < LITTLE_BYTES and hasattr(os, "fork") else -1
    gc.set_threshold(FEW_CIRCLES)
    # NumPy's threads wait for each other by spinning, which costs more than they give on our small matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.meta_path.insert(0, HiddenPackages())
    try:
        from agentsignals.cli import main  # noqa: PLC0415  (who interrupts us as we load is told so in words, too)

        code = main()
    except KeyboardInterrupt:
        print("agentsignals: interrupted.", file=sys.stderr)
        code = 130
    except Exception as problem:
        code = _without_memory(problem)
        if not code:
            raise
    finally:
        if ended >= 0:
            os.write(ended, b".")
    with contextlib.suppress(BrokenPipeError):  # the reader went away with the last words: nobody is left to tell
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _without_memory(problem: Exception) -> int:
    """Say that there was so little memory that not even the command line, or the words of its error, could be loaded,
    and return the exit code; 0 where something else is wrong."""
    try:
        told = out_of_memory(problem)
        if told is None:
            return 0
        print(f"agentsignals: {told.message}\n  {told.hint}", file=sys.stderr)
    except MemoryError:
        os.write(2, b"agentsignals: there is no memory left, not even for words.\n")
        os._exit(1)  # under a limit the process that waits has memory, and says the rest
    return told.exit_code


def _outlive_crashes(limit: int) -> int:
    """Return in a copy of this process: a file to write to when it ends by itself. This process waits for the copy,
    says why it crashed, and ends as it did."""
    to_read, to_write = os.pipe()
    program, copy = os.getpid(), os.fork()
    if not copy:
        with contextlib.suppress(ImportError, OSError, AttributeError):  # Linux with glibc
            import ctypes  # noqa: PLC0415

            library = ctypes.CDLL(None)
            library.mallopt(_M_ARENA_MAX, 1)  # else each thread reserves 64 MB
            library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != program:
                os._exit(1)
        return to_write
    for name in ("SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), lambda number, _: os.kill(copy, number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
    _, status = os.waitpid(copy, 0)
    code = os.waitstatus_to_exitcode(status)
    os.set_blocking(to_read, False)  # workers that outlive the copy for a moment hold the other end
    with contextlib.suppress(BlockingIOError):
        if os.read(to_read, 1):
            os._exit(code if code >= 0 else 1)
    if code >= 0 or code in [-getattr(signal, name) for name in _CRASHES]:
        told = too_little(limit, limit, "a package crashed where it got no memory")
        print(f"agentsignals: {told.message}\n  {told.hint}", file=sys.stderr, flush=True)
        os._exit(1)
    with contextlib.suppress(OSError):  # ended by a signal: so does this process, for whoever waits for it
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(1)


if __name__ == "__main__":
    run()
