"""Which files and lines a unified diff changes, whoever printed it: `git diff`, `diff -u`, a verifier's log."""

from __future__ import annotations

import re

from agentsignals.model.attempt import PatchedFile, PatchOp

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_GIT = re.compile(r'diff --git (?:"?a/(.*?)"?) (?:"?b/(.*?)"?)$')
_STARTS = ("diff --git ", "--- ", "Index: ", "diff -")
_NULL = "/dev/null"


def looks_like_diff(text: str) -> bool:
    """Whether the text's first line begins a diff and a hunk, a mode or a binary file follows."""
    return text.lstrip("\ufeff\r\n ").startswith(_STARTS) and (
        "\n@@ -" in text or "\nnew file mode" in text or "\nBinary files" in text or "\nrename " in text
    )


def patched_files(text: str) -> list[PatchedFile]:
    """The files of a diff, in its order. Lines outside any file (a commit message, a log) are passed over."""
    files: list[PatchedFile] = []
    reader = _Reader(files)
    for line in text.split("\n"):
        reader.take(line)
    return files


class _Reader:
    """Takes a diff line by line. Inside a hunk the counts of its header say how long it lasts, so that a removed line
    that reads like a header is none."""

    def __init__(self, files: list[PatchedFile]) -> None:
        self._files = files
        self._file: PatchedFile | None = None
        self._old_left = self._new_left = 0
        self._old_name = ""

    def take(self, line: str) -> None:
        if self._old_left > 0 or self._new_left > 0:
            self._in_hunk(line)
        elif line.startswith("diff --git "):
            named = _GIT.match(line)
            self._begin(named[2] if named else "", "modify")
        elif line.startswith("--- "):
            self._old_name = _name(line[4:])
            if self._file is not None and self._file.hunks:
                self._file = None  # the next file of a diff that has no `diff` lines
        elif line.startswith("+++ "):
            self._named(_name(line[4:]))
        elif self._file is not None:
            self._of_file(line, self._file)

    def _begin(self, path: str, op: PatchOp) -> PatchedFile:
        self._file = PatchedFile(path=path, op=op, added=0, removed=0, hunks=[])
        self._files.append(self._file)
        self._old_name = ""
        return self._file

    def _named(self, new_name: str) -> None:
        file = self._file or self._begin(new_name if new_name != _NULL else self._old_name, "modify")
        if new_name == _NULL:
            file.op = "delete"
        elif self._old_name == _NULL:
            file.op = "create"
        if new_name != _NULL:
            file.path = new_name

    def _of_file(self, line: str, file: PatchedFile) -> None:
        hunk = _HUNK.match(line)
        if hunk:
            old, old_n, new, new_n = (int(g) if g is not None else 1 for g in hunk.groups())
            file.hunks.append((old, old_n, new, new_n))
            self._old_left, self._new_left = old_n, new_n
        elif line.startswith("new file mode"):
            file.op = "create"
        elif line.startswith("deleted file mode"):
            file.op = "delete"
        elif line.startswith("rename from "):
            file.op, file.old_path = "rename", line[12:].strip()
        elif line.startswith("rename to "):
            file.path = line[10:].strip()
        elif line.startswith(("Binary files", "GIT binary patch")):
            file.binary = True

    def _in_hunk(self, line: str) -> None:
        file = self._file
        if file is None or line[:1] == "\\":
            return
        if line[:1] == "+":
            file.added += 1
            self._new_left -= 1
        elif line[:1] == "-":
            file.removed += 1
            self._old_left -= 1
        elif line[:1] in (" ", ""):
            self._old_left -= 1
            self._new_left -= 1
        else:  # a hunk that is shorter than its header says: a cut or hand-made diff
            self._old_left = self._new_left = 0
            self.take(line)


def _name(header: str) -> str:
    """A path as a diff names it, without the time that `diff -u` adds and without the `a/` or `b/` of Git."""
    name = header.split("\t", 1)[0].strip().strip('"')
    return name if name == _NULL or name[:2] not in ("a/", "b/") else name[2:]
