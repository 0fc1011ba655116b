"""An agent's own copy of a repository, kept as names and texts: an action can reach nothing but these.

Files are written out only to apply a diff, to compare, and to run tests, each time into a fresh folder that is thrown
away: what code under test does to its folder never comes back.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from agentsignals_lab import sandbox
from agentsignals_lab.coding_tasks.repository import TESTS, lay_out
from agentsignals_lab.evaluation.patches import LIMITS, Runner, apply_patch
from agentsignals_lab.repo_agent.difference import difference
from agentsignals_lab.repo_agent.protocol import Action
from agentsignals_lab.sandbox import Limits, Ran

MOST_CHARS = 500_000
"""Most characters of all files together."""
_LONGEST_PATH = 200
_MOST_FOUND = 50
_LONGEST_LINE = 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TOOK = re.compile(r"^(Ran \d+ tests?) in [\d.]+s$", re.MULTILINE)

Status = Literal["ok", "error", "refused"]


class Seen(Struct, frozen=True, kw_only=True):
    """Result of an action."""

    text: str
    """Text shown to the agent."""
    status: Status = "ok"
    """`error`: could not be done as asked; `refused`: reaches for what is not the agent's."""
    patch: str = ""
    """Changes as a unified diff."""
    exit_code: int | None = None
    """Exit code of a test run that came to its end."""
    passed: bool | None = None
    """True if its tests passed, as they stand in the copy; None where none were run."""
    wall_time_s: float = 0.0


class _Wrong(Exception):
    """An action that can't be done; what the agent is told."""

    def __init__(self, text: str, status: Status = "error") -> None:
        super().__init__(text)
        self.text, self.status = text, status


class Workspace:
    """The files of a copy as they now are."""

    def __init__(self, files: dict[str, str], run: Runner | None = None, limits: Limits = LIMITS) -> None:
        self.handed_out = dict(files)
        self.files = dict(files)
        self._run, self._limits = run or _in_sandbox, limits
        self._by_kind: dict[str, Callable[[Action], Seen]] = {
            "list": self._list,
            "read": self._read,
            "search": self._search,
            "replace": self._replace,
            "write": self._write,
            "patch": self._patch,
            "test": self._test,
            "submit": lambda _: Seen(text="Handed in."),
        }

    def do(self, action: Action) -> Seen:
        """Does what the agent wants, or says why not. SandboxError when tests can't be locked in on this machine."""
        try:
            return self._by_kind[action.kind](action)
        except _Wrong as problem:
            return Seen(text=problem.text, status=problem.status)

    def changes(self) -> str:
        """All changes so far as a unified diff."""
        return difference(self.handed_out, self.files)

    def changes_of_code(self) -> str:
        """Changes outside the tests: what is judged. Shown tests are laid over any patch again, and tests of the
        agent's own would be counted as if they were the task's."""
        tests = {name: text for name, text in self.handed_out.items() if is_test(name)}
        code = {name: text for name, text in self.files.items() if not is_test(name)}
        return difference(self.handed_out, tests | code)

    # -- actions -------------------------------------------------------------------------------------------------

    def _list(self, _: Action) -> Seen:
        return Seen(text="\n".join(sorted(self.files)))

    def _read(self, action: Action) -> Seen:
        lines = self._text(action.path).split("\n")
        if lines[-1] == "":
            lines.pop()
        first, last = action.lines or (1, len(lines))
        if not 1 <= first <= last and lines:
            raise _Wrong(f"{action.path} has lines 1 to {len(lines)}")
        numbered = "\n".join(f"{n:4} {line}" for n, line in enumerate(lines[first - 1 : last], first))
        return Seen(text=numbered or "(there is nothing)")

    def _search(self, action: Action) -> Seen:
        matches = [
            f"{name}:{n}: {line[:_LONGEST_LINE]}"
            for name, text in sorted(self.files.items())
            for n, line in enumerate(text.split("\n"), 1)
            if action.text in line
        ]
        more = [f"and {len(matches) - _MOST_FOUND} more"] if len(matches) > _MOST_FOUND else []
        return Seen(text="\n".join([*matches[:_MOST_FOUND], *more]) or "no line holds that")

    def _replace(self, action: Action) -> Seen:
        text = self._text(action.path)
        # The agent's lines all have an end; the last one of the file gets one, too.
        whole = text if text.endswith("\n") or not text else text + "\n"
        if not action.old:
            raise _Wrong("there are no old lines")
        at = ("\n" + whole).find("\n" + action.old)
        if at < 0:
            raise _Wrong(f"the old lines do not stand in {action.path}")
        if ("\n" + whole).find("\n" + action.old, at + 1) >= 0:
            raise _Wrong(f"the old lines stand in {action.path} more than once")
        made = whole[:at] + action.text + whole[at + len(action.old) :]
        return self._become({**self.files, _named(action.path): made})

    def _write(self, action: Action) -> Seen:
        name = _named(action.path)
        if any(path.startswith(f"{name}/") for path in self.files):
            raise _Wrong(f"{name} is a folder")
        parents = [parent.as_posix() for parent in PurePosixPath(name).parents]
        if file := next((parent for parent in parents if parent in self.files), None):
            raise _Wrong(f"{file} is a file, not a folder")
        return self._become({**self.files, name: action.text})

    def _patch(self, action: Action) -> Seen:
        with tempfile.TemporaryDirectory(prefix="agentsignals-patch-") as place:
            folder = Path(place)
            lay_out(self.files, folder)
            if why := apply_patch(action.text, folder):
                raise _Wrong(why)
            return self._become(_taken_up(folder))

    def _test(self, _: Action) -> Seen:
        with tempfile.TemporaryDirectory(prefix="agentsignals-tests-") as place:
            lay_out(self.files, Path(place))
            ran = self._run(Path(place), TESTS, self._limits)
        output = untimed(ran.output).strip()
        if ran.stopped:
            output = f"{output}\nstopped: {ran.stopped}".strip()
        passed = ran.exit_code == 0
        return Seen(text=output, exit_code=ran.exit_code, passed=passed, wall_time_s=ran.wall_s)

    # -- files ---------------------------------------------------------------------------------------------------

    def _text(self, path: str) -> str:
        name = _named(path)
        if name not in self.files:
            raise _Wrong(f"there is no file {name}")
        return self.files[name]

    def _become(self, files: dict[str, str]) -> Seen:
        if any("\0" in text for text in files.values()):
            raise _Wrong("a text must not hold the character 0")
        if sum(map(len, files.values())) > MOST_CHARS:
            raise _Wrong(f"the files together would have over {MOST_CHARS:,} characters")
        patch = difference(self.files, files)
        self.files = files
        return Seen(text="Done." if patch else "Nothing changed.", patch=patch)


def untimed(output: str) -> str:
    """Return the output of tests without durations, so that equal actions give equal chats."""
    return _TOOK.sub(r"\1", output)


def is_test(name: str) -> bool:
    """Return whether a file is one of the tests."""
    return name.startswith("tests/")


def _named(path: str) -> str:
    """The file's name in the repository. Refuses what would lie outside of it, and files that tell Git what to do."""
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts:
        raise _Wrong(f"{path[:_LONGEST_PATH]} leaves the repository", "refused")
    if any(part.lower().startswith(".git") for part in parts):
        raise _Wrong("Git's own files are not part of the repository", "refused")
    # Git gives names that are no text with stand-ins for their bytes; those can't be encoded.
    if not parts or _CONTROL.search(path) or len(path.encode("utf-8", "replace")) > _LONGEST_PATH or _bytes(path):
        raise _Wrong("that is no name of a file", "refused")
    return PurePosixPath(path).as_posix()


def _bytes(path: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in path)


def _taken_up(folder: Path) -> dict[str, str]:
    """The files of a folder that a diff was applied in. Links, and what is no text, are refused."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = _named(path.relative_to(folder).as_posix())
        if path.is_symlink():
            raise _Wrong(f"{name} would be a link, and links are not followed", "refused")
        if path.is_dir():
            continue
        try:
            files[name] = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as problem:
            raise _Wrong(f"{name} would not be text") from problem
    return files


def _in_sandbox(folder: Path, argv: Sequence[str], limits: Limits) -> Ran:
    return sandbox.run_in_checkout(folder, argv, limits=limits)
