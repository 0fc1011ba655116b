"""Evaluation of a patch to a repository: applied to a fresh copy without tests, and asked by the task's own tests.

The patched code runs in the sandbox's strict tier, the tests out here (see `judging`). What still reaches for the test
run is told beside the verdict.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.coding_tasks.repository import RepositoryTask, lay_out
from agentsignals_lab.evaluation.forging import forging_hints
from agentsignals_lab.evaluation.judging import Judged, Tests
from agentsignals_lab.sandbox import Limits, Ran, Tier, printable

EVALUATOR = "2"
"""`1` ran the tests beside the code, and believed what was printed."""

LIMITS = Limits(cpu_s=20, wall_s=30.0)
"""Limits of the code in one test, and of an agent's own test runs; the reference solutions take under a second."""
_MOST_BYTES = 1_000_000
_APPLY_SECONDS = 20
_LONGEST_ERROR = 500
_NO_SETTINGS = {
    "GIT_DIR": os.devnull,
    "HOME": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
}
"""A folder with a HEAD, objects, refs and a config is a repository to Git, which runs the programs that config names.
No file of the patched folder may say what Git does."""
_CHANGED = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_MULTIPLIES = re.compile(r"^(?:copy from |GIT binary patch)", re.MULTILINE)
"""Headers that make gigabytes of a small patch."""

Runner = Callable[[Path, Sequence[str], Limits], Ran]
"""Runs a command in a folder."""


class PatchVerdict(Struct, frozen=True, kw_only=True):
    """Outcome of a patch. Passes are False, not None, where the patch does not apply: that is the patch's fault."""

    evaluator: str = EVALUATOR
    task: str
    applies: bool
    visible_pass: bool
    hidden_pass: bool
    """The hidden tests are tried where the visible ones pass."""
    task_pass: bool
    error: str
    """Why it does not pass: the first test that failed, and how."""
    changed: tuple[str, ...]
    """The files that the patch names, or changes in any other way."""
    tests_changed: tuple[str, ...]
    """Changed tests among them; the task's own are what is run."""
    forging: tuple[str, ...]
    """Actions, contents or names that reach for the test run itself. To be read by a person."""
    tier: Tier | None
    wall_s: float = 0.0


def evaluate_patch(task: RepositoryTask, patch: str, limits: Limits = LIMITS) -> PatchVerdict:
    """Applies a patch (a unified diff) to the task's repository, and runs the visible tests, then the hidden ones.

    Args:
        limits: of the code's process in each test.

    Raises:
        SandboxError: this machine can't lock the code in.
        LabError: there is no Git, or the task's tests are not as many as it says.
    """
    named = [name for name in _CHANGED.findall(patch) if name != "/dev/null"]
    suites = [_tests(task, task.visible, task.n_visible), _tests(task, task.hidden, task.n_hidden)]
    judged: list[list[Judged]] = []
    with tempfile.TemporaryDirectory(prefix="agentsignals-repository-") as place:
        folder = Path(place)
        lay_out(task.files, folder)
        why = apply_patch(patch, folder)
        after = {} if why else _files(folder)
        why = why or ("the patch makes links, which are not followed" if None in after.values() else "")
        if not why:
            shutil.rmtree(folder / "tests", ignore_errors=True)
            for suite in suites:
                if all(test.passed for test in chain(*judged)):
                    judged.append(suite.judge(folder, limits))
    before = {name: text.encode() for name, text in task.files.items()}
    if after:
        named += [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    changed = tuple(dict.fromkeys(named))
    tried = list(chain(*judged))
    passes = [len(judged) > n and all(test.passed for test in judged[n]) for n in range(len(suites))]
    seen = dict.fromkeys(test.forged for test in tried if test.forged)
    return PatchVerdict(
        task=task.key,
        applies=not why,
        visible_pass=passes[0],
        hidden_pass=passes[1],
        task_pass=all(passes),
        error=why or next((test.why for test in tried if not test.passed), ""),
        changed=changed,
        tests_changed=tuple(name for name in changed if name.startswith("tests/")),
        forging=(*seen, *forging_hints(before, after)),
        tier=next((test.ran.tier for test in tried), None),
        wall_s=sum(test.ran.wall_s for test in tried),
    )


def _tests(task: RepositoryTask, files: dict[str, str], n: int) -> Tests:
    packages = {name.partition("/")[0].removesuffix(".py") for name in task.files if not name.startswith("tests/")}
    tests = Tests(files, frozenset(packages))
    if len(tests.cases) != n:
        raise LabError(f"{task.key} has {len(tests.cases)} tests where it says {n}.", "Count them again.")
    return tests


def _files(folder: Path) -> dict[str, bytes | None]:
    """Return the contents of each file of a folder; None for a link."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: None if path.is_symlink() else path.read_bytes()
        for name, path in paths.items()
        if path.is_symlink() or path.is_file()
    }


def apply_patch(patch: str, folder: Path) -> str:
    """Applies a unified diff in a folder. Why that can't be, with all left as it was; empty when it was done."""
    if not patch.strip():
        return "there is no patch"
    data = patch.encode("utf-8", "replace")
    if len(data) > _MOST_BYTES:
        return f"the patch has over {_MOST_BYTES:,} bytes"
    if _MULTIPLIES.search(patch):
        return "the patch copies files or holds packed bytes; changes of texts are taken"
    git = shutil.which("git")
    if git is None:
        raise LabError("There is no git to apply a patch with.", "Install Git.")
    data = data if data.endswith(b"\n") else data + b"\n"
    # Models miscount the lines of a hunk. Recounting may misread a patch of several files, so it comes second.
    first = _git_apply(git, data, folder, ())
    return first and _git_apply(git, data, folder, ("--recount",)) and first


def _git_apply(git: str, data: bytes, folder: Path, more: tuple[str, ...]) -> str:
    """Why the patch does not apply; empty when it was. One that does not leaves everything as it is."""
    try:
        done = subprocess.run(  # noqa: S603  (fixed words; the patch goes in as data, and git keeps it inside the folder)
            [git, "apply", "--whitespace=nowarn", *more, "-"],
            input=data,
            cwd=folder,
            env=_NO_SETTINGS,
            capture_output=True,
            timeout=_APPLY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"applying took over {_APPLY_SECONDS} s"
    problem = printable(done.stderr.decode("utf-8", "replace").strip(), _LONGEST_ERROR)
    return "" if done.returncode == 0 else f"does not apply: {problem}"
