"""Which files and folders a person's words name. Time is linear in the text, whatever is pasted into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_IN_PATHS = bytes(n if chr(n).isalnum() or chr(n) in "._-/" else ord(" ") for n in range(128)).ljust(256)
_DEEPEST = 40
"""A path of more folders is nobody's."""


class Mentions:
    """The names of files and folders in some texts. Names are compared as written; a folder that is named holds all
    that lies in it, the folder of a file that is named only what lies beside that file.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._beside: set[str] = set()
        self.words = frozenset("\n".join(texts).encode("ascii", "replace").translate(_IN_PATHS).decode().split())
        """The words of the texts, as names of files and folders have them."""
        self.marked = [word for word in self.words if "." in word or "/" in word]
        """Those with a mark that only such names have."""
        for word in self.marked:
            if "/" in word:
                self._path(word)
            else:
                self._files.add(word.strip("."))

    def _path(self, word: str) -> None:
        path = word.removeprefix("./").rstrip(".")
        head, _, name = path.strip("/").rpartition("/")
        if path.count("/") > _DEEPEST:
            return
        if path.endswith("/") or "." not in name:
            self._folders.update(_endings(path.strip("/")))
        if not path.endswith("/"):
            self._files.add(name)
            self._beside.update(_endings(head))

    def file(self, path: str) -> bool:
        """Whether the file is named, with or without its folders."""
        return path.rpartition("/")[2] in self._files

    def place(self, path: str) -> bool:
        """Whether the file, a folder it lies in, or another file of its folder is named."""
        folder = path.rpartition("/")[0]
        if self.file(path) or folder in self._beside:
            return True
        if folder.count("/") > _DEEPEST or not self._folders:
            return False
        return any(not self._folders.isdisjoint(_endings(above)) for above in _above(folder))


def _endings(folder: str) -> Iterator[str]:
    """The folder as it may be called from anywhere above it: a/b/c, b/c, c."""
    while folder:
        yield folder
        folder = folder.partition("/")[2]


def _above(folder: str) -> Iterator[str]:
    """The folder and those it lies in: a/b/c, a/b, a."""
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
