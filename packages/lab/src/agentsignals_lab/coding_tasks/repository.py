"""Repository tasks: small programs with a bug, an issue that tells of it, visible tests and hidden ones. The four of
this package are in `repositories.toml`; their visible tests do not settle the bug."""

from __future__ import annotations

import tomllib
from difflib import unified_diff
from pathlib import Path, PurePosixPath

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

TESTS = ("python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
"""Runs the tests of a repository, in its folder."""


class RepositoryTask(Struct, frozen=True, kw_only=True):
    """A repository to mend. Paths are relative, with `/`."""

    id: str
    version: int = 1
    issue: str
    """The report of the bug, in words."""
    files: dict[str, str]
    """The repository as it is handed out, visible tests included; those pass or show the bug."""
    fixed: dict[str, str]
    """The files that the reference solution changes, as it leaves them."""
    hidden: dict[str, str]
    """Test files: they see the repository's packages from outside (`lab.evaluation.judging`), so they compare plain
    values, and raise Python's own exceptions or none. All of them must pass."""
    n_visible: int
    """Number of tests in the handed-out repository."""
    n_hidden: int

    @property
    def key(self) -> str:
        """Names the task and its version."""
        return f"repository/{self.id}@{self.version}"

    @property
    def visible(self) -> dict[str, str]:
        """The test files that are shown, as they were handed out."""
        return {name: text for name, text in self.files.items() if name.startswith("tests/")}


TASKS: tuple[RepositoryTask, ...] = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("repositories.toml").read_text("utf-8"))["task"], tuple[RepositoryTask, ...]
)


def repository_task(name: str) -> RepositoryTask:
    """The task of that id. LabError when there is none."""
    for task in TASKS:
        if task.id == name:
            return task
    raise LabError(f"There is no repository task {name!r}.", f"There are {', '.join(task.id for task in TASKS)}.")


def lay_out(files: dict[str, str], folder: Path) -> None:
    """Writes files below a folder. LabError for a path that leaves it, or that leads through a link."""
    for name, text in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise LabError(f"{name} leaves the repository.", "Paths are relative to it.")
        target = folder / path
        if any(place.is_symlink() for place in (target, *target.parents) if place.is_relative_to(folder)):
            raise LabError(f"{name} is, or lies behind, a link.", "Links are not followed.")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


def reference_patch(task: RepositoryTask) -> str:
    """The reference solution as a unified diff, as `git apply` takes it."""
    parts: list[str] = []
    for name, fixed in task.fixed.items():
        before = task.files[name].splitlines(keepends=True)
        parts += unified_diff(before, fixed.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(parts)
