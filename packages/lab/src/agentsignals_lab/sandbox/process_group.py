"""A control group that holds at most so many processes, where this machine lets us make one (mostly: as root).

Source: cgroups(7); version 1 has a tree of its own for `pids`, version 2 one tree for all.
"""

from __future__ import annotations

import contextlib
import os
import time
from itertools import count
from pathlib import Path

from agentsignals_lab.sandbox import python_paths

TREES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
OVERHEAD = 2
"""Bubblewrap's own processes."""

REMOVAL_S = 2.0
_numbers = count()

JOIN = "import os,sys\nopen(sys.argv[1],'w').write(str(os.getpid()))\nos.execv(sys.argv[2],sys.argv[2:])"
"""Goes into the group and becomes the rest of the command, so that no process of it was ever outside."""


class ProcessGroup:
    """One group, removed on leaving; by then all in it have been killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, most: int) -> ProcessGroup | None:
        """A new group for so many processes; None where none can be made."""
        for tree in TREES:
            folder = tree / f"agentsignals-{os.getpid()}-{next(_numbers)}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                (folder / "pids.max").write_text(str(most + OVERHEAD), "ascii")
                return cls(folder)
            except OSError:  # a tree without this controller
                with contextlib.suppress(OSError):
                    folder.rmdir()
        return None

    def joining(self) -> list[str]:
        """Return the words to put before a command so that it runs in the group."""
        return [python_paths.executable(), "-I", "-S", "-c", JOIN, str(self.folder / "cgroup.procs")]

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        deadline = time.monotonic() + REMOVAL_S
        while True:
            try:
                self.folder.rmdir()
                return
            except OSError:  # the killed are not all gone yet
                if time.monotonic() > deadline:
                    return
                time.sleep(0.01)
