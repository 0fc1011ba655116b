"""What a patch to a repository is worth: applied to a fresh copy, tested in the sandbox's strict tier.

The tests run beside the code they test, as tests of repositories do. Code that is out to forge their outcome can: that
is looked for in the patch, and told beside the verdict.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.lab import sandbox
from agentsignals.lab.sandbox import Limits, Ran, Tier
from agentsignals.lab.tasks.repository import TESTS, RepositoryTask, lay_out

LIMITS = Limits(cpu_s=20, wall_s=30.0)
"""Of a test run; the reference solutions take under a second."""
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
_FORGING = re.compile(
    r"^\+.*(?:_exit\b|sys\.exit|\bunittest\b|\bpytest\b|\batexit\b|sys\.(?:modules|stdout|stderr|settrace)|_getframe)",
    re.MULTILINE,
)
_RUN_BY_ITSELF = frozenset(("sitecustomize.py", "usercustomize.py", "conftest.py", "unittest.py"))
_SUMMARY = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)

Runner = Callable[[Path, Sequence[str], Limits], Ran]


class PatchVerdict(Struct, frozen=True, kw_only=True):
    """What came of a patch. Passes are False, not None, where the patch does not apply: that is the patch's fault."""

    evaluator: str = "1"
    task: str
    applies: bool
    visible_pass: bool
    hidden_pass: bool
    task_pass: bool
    error: str
    """Why it does not pass: the last of what the first failing run said."""
    changed: tuple[str, ...]
    """The files that the patch names."""
    tests_changed: tuple[str, ...]
    """Those of them among the tests; ours are laid over them again."""
    forging: tuple[str, ...]
    """Lines added, or files named, that reach for the test run itself. To be read by a person."""
    tier: Tier | None
    wall_s: float = 0.0


def evaluate_patch(
    task: RepositoryTask, patch: str, run: Runner | None = None, limits: Limits = LIMITS
) -> PatchVerdict:
    """Applies a patch (a unified diff) to the task's repository, runs the visible tests, then visible and hidden ones
    in another copy.

    Args:
        run: runs a command in a folder; the sandbox's strict tier.

    Raises:
        SandboxError: this machine can't lock the tests in.
        LabError: there is no Git.
    """
    run = run or _in_sandbox
    changed = tuple(dict.fromkeys(name for name in _CHANGED.findall(patch) if name != "/dev/null"))
    tests = tuple(name for name in changed if name.startswith("tests/"))
    why, ran = "", []
    for files in ({}, task.hidden):
        with tempfile.TemporaryDirectory(prefix="agentsignals-repository-") as place:
            folder = Path(place)
            why = why or _prepare(task, patch, folder, files)
            ran.append(run(folder, TESTS, limits) if not why else None)
    wanted = (task.n_visible, task.n_visible + task.n_hidden)
    passed = [one is not None and _passes(one, n) for one, n in zip(ran, wanted, strict=True)]
    failed = next((one for one, passes in zip(ran, passed, strict=True) if one is not None and not passes), None)
    return PatchVerdict(
        task=task.key,
        applies=not why,
        visible_pass=passed[0],
        hidden_pass=passed[1],
        task_pass=all(passed),
        error=why or (_said(failed) if failed else ""),
        changed=changed,
        tests_changed=tests,
        forging=tuple(found.group()[:200] for found in _FORGING.finditer(patch))
        + tuple(name for name in changed if name.rpartition("/")[2] in _RUN_BY_ITSELF),
        tier=next((one.tier for one in ran if one), None),
        wall_s=sum(one.wall_s for one in ran if one),
    )


def _in_sandbox(folder: Path, argv: Sequence[str], limits: Limits) -> Ran:
    return sandbox.run_in_checkout(folder, list(argv), limits=limits)


def _prepare(task: RepositoryTask, patch: str, folder: Path, more: dict[str, str]) -> str:
    """The repository with the patch, its own tests as they were, and `more`. Why that can't be; empty when it can."""
    lay_out(task.files, folder)
    why = apply_patch(patch, folder)
    if why:
        return why
    if any(path.is_symlink() for path in folder.rglob("*")):
        return "the patch makes links, which are not followed"
    try:
        lay_out({name: text for name, text in task.files.items() if name.startswith("tests/")} | more, folder)
    except OSError as problem:
        return f"the tests can't be laid over the patch: {problem.strerror}"
    return ""


def apply_patch(patch: str, folder: Path) -> str:
    """Applies a unified diff in a folder. Why that can't be, with all left as it was; empty when it was done."""
    if not patch.strip():
        return "there is no patch"
    data = patch.encode("utf-8", "replace")
    if len(data) > _MOST_BYTES:
        return f"the patch has over {_MOST_BYTES:,} bytes"
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
    said = done.stderr.decode("utf-8", "replace").strip()
    return "" if done.returncode == 0 else f"does not apply: {said[:_LONGEST_ERROR]}"


def _passes(ran: Ran, n: int) -> bool:
    """Whether all went well, and as many tests were run as there are."""
    counted = [int(count) for count in _SUMMARY.findall(ran.output)]
    return ran.exit_code == 0 and counted == [n]


def _said(ran: Ran) -> str:
    return f"{ran.stopped}: {ran.output[-_LONGEST_ERROR:]}" if ran.stopped else ran.output[-_LONGEST_ERROR:].strip()
