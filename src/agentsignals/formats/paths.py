"""Paths as the catalogue wants them: relative to the repository, forward slashes, worktree prefix removed."""

from __future__ import annotations

import posixpath
import re

_WORKTREE = re.compile(r"^(?:\.worktrees|\.claude/worktrees|worktrees|\.git/worktrees)/[^/]+/")
_ABSOLUTE = re.compile(r"[/\\~@]|[A-Za-z]:[\\/]")
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")


class Paths:
    """The working folders of one session, and what they make of a path."""

    def __init__(self) -> None:
        self.current: str | None = None
        self._root: str | None = None
        self._cleaned: dict[str, str] = {}

    def enter(self, cwd: str) -> None:
        """The agent works in `cwd` now. The root is the first folder, or an ancestor of it visited later."""
        self.current = cwd
        folder = _slashes(cwd).rstrip("/")
        if self._root is None or self._root.startswith(folder + "/"):
            self._root = folder
            self._cleaned.clear()

    def clean(self, path: str, folder: str | None = None) -> str:
        """The path relative to the root; absolute when it lies outside; as given when already relative.

        `folder` is where the command ran, when that is known: a relative path is relative to it.
        """
        if folder and not _ABSOLUTE.match(path.strip()):
            path = posixpath.normpath(posixpath.join(_slashes(folder), path.strip()))
        known = self._cleaned.get(path)
        if known is None:
            known = self._cleaned[path] = self._clean(path)
        return known

    def _clean(self, path: str) -> str:
        given = _slashes(path.strip())
        if given.startswith("@"):
            given = given[1:]
        if self._root and given.startswith(self._root + "/"):
            given = given[len(self._root) + 1 :]
        elif self._root and given == self._root:
            return "."
        while given.startswith("./"):
            given = given[2:]
        return _WORKTREE.sub("", given) or "."


def _slashes(path: str) -> str:
    return path.replace("\\", "/") if _DRIVE.match(path) or path.startswith("\\\\") else path
