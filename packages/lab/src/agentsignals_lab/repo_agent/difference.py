"""Difference of two states of a repository, as a unified diff that `git apply` takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from agentsignals.errors import LabError

from agentsignals_lab.coding_tasks.repository import lay_out

_SECONDS = 30
_HEADER = re.compile(r"^diff --git (.+)$", re.MULTILINE)
"""Lines of files begin with a sign, so that none is taken for a header."""
_SIDE = re.compile(r"(?<![^\"])[ab]/")
_SETTINGS = ("-c", "core.quotePath=false", "-c", "core.attributesFile=/dev/null")
_HOW = ("--no-index", "--no-prefix", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--text")


def difference(before: dict[str, str], after: dict[str, str]) -> str:
    """The diff from one set of files to another; empty when they are the same.

    Git makes it: a file of many like lines would cost Python's own differ minutes. LabError when there is no Git.
    """
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if not changed:
        return ""
    git = shutil.which("git")
    if git is None:
        raise LabError("There is no git to compare files with.", "Install Git.")
    with tempfile.TemporaryDirectory(prefix="agentsignals-difference-") as place:
        for side, files in (("a", before), ("b", after)):
            (Path(place) / side).mkdir()
            lay_out({name: files[name] for name in changed & files.keys()}, Path(place) / side)
        return _compared(git, place)


def _compared(git: str, place: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  (fixed words; names and contents are files in a folder of our own)
            [git, *_SETTINGS, "diff", *_HOW, "a", "b"],
            cwd=place,
            env={"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
                 "GIT_DIR": os.devnull, "HOME": os.devnull, "LC_ALL": "C"},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as problem:
        raise LabError(f"Comparing files took over {_SECONDS} s.", "Is the machine busy?") from problem
    if done.returncode not in (0, 1):
        raise LabError(f"git could not compare files: {done.stderr.decode('utf-8', 'replace')[:300]}", "Report it.")
    return _HEADER.sub(_both_sides, done.stdout.decode("utf-8", "replace"))


def _both_sides(header: re.Match[str]) -> str:
    """Return the header with both sides: Git names the one side of an added or deleted file twice."""
    names = header[1]
    half = len(names) // 2
    return f"diff --git {_SIDE.sub('a/', names[:half], count=1)} {_SIDE.sub('b/', names[half + 1 :], count=1)}"
