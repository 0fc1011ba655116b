"""`python -m agentsignals`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FEW_CIRCLES = 200_000
"""New objects before the garbage collector runs. There are hardly any reference cycles here. At the default of 700 it
walks all imports again and again, at 100,000 once more in each process: 90 ms of a cold run of 98 MB
(docs/decisions/006)."""


class ArrowAlone:
    """Finder that hides NumPy while pyarrow begins in a verb that reads traces. pyarrow loads NumPy, where it is there,
    to convert columns to its arrays. Reading asks for none, and NumPy is a third of what a run over a new line loads.
    """

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        is_compiled = name.startswith(("pyarrow.lib", "pyarrow._"))
        if not is_compiled or "numpy" in sys.modules or "agentsignals.cli.analyze" not in sys.modules:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.create_module = _without_numpy(loader.create_module)
            loader.exec_module = _without_numpy(loader.exec_module)
        return spec


def _without_numpy(load: Any) -> Any:
    def loaded(about: Any) -> Any:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # Python's own word for "not installed"
        try:
            return load(about)
        finally:
            del sys.modules["numpy"]

    return loaded


def run() -> None:
    """Run the console script. The process exits without cleaning up: taking the interpreter down costs more than a warm
    run, and DuckDB reports its own leaks on the way."""
    gc.set_threshold(FEW_CIRCLES)
    # NumPy's threads wait for each other by spinning, which costs more than they give on our small matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.meta_path.insert(0, ArrowAlone())
    try:
        from agentsignals.cli import main  # noqa: PLC0415  (who interrupts us as we load is told so in words, too)

        code = main()
    except KeyboardInterrupt:
        print("agentsignals: interrupted.", file=sys.stderr)
        code = 130
    with contextlib.suppress(BrokenPipeError):  # the reader went away with the last words: nobody is left to tell
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
