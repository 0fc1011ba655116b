"""Which files and lines a unified diff changes, whoever printed it: `git diff`, `diff -u`, a verifier's log."""

from __future__ import annotations

import hashlib
import re

from agentsignals.model.attempt import PatchedFile, PatchOp

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_GIT = re.compile(r'diff --git (?:"?a/(.*?)"?) (?:"?b/(.*?)"?)$')
_HEADING = re.compile(r"@@ -\S+ \+\S+ @@ ?(.*)")
_DEFINITION = re.compile(
    r"([ \t]*)"
    r"(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|static|async|unsafe|override|const)[ \t]+)*"
    r"(?:(?P<container>class|interface|struct|impl|trait|module|enum)|def|func|function\*?|fn)[ \t]+"
    r"(?:\([^)]*\)[ \t]*)?(?P<name>[A-Za-z_$][\w$]*)"
)
"""A line that begins a definition, in languages that say so by a word: others have no functions here."""
_STARTS = ("diff --git ", "--- ", "Index: ", "diff -")
_MEANINGLESS_CHARS = 8
"""Shorter lines (`else:`, `return`) tell no place (design/signals.md#regions)."""
_MOST_DIGESTS = 1_000
"""Of a file: a patch may replace whole generated files."""
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
    reader.end_run()
    return files


class _Reader:
    """Takes a diff line by line. Inside a hunk the counts of its header say how long it lasts, so that a removed line
    that reads like a header is none."""

    def __init__(self, files: list[PatchedFile]) -> None:
        self._files = files
        self._file: PatchedFile | None = None
        self._old_left = self._new_left = self._old_line = 0
        self._old_name = ""
        self._function, self._indent = "", -1
        """The function that the line lies in, as far as the hunk shows, and how far its first line is indented."""
        self._run = ""
        """Of the changed lines that follow each other: their signs, and a dot once one is not blank."""
        self._above = ""
        self._digests: list[str] = []

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
        self.end_run()
        self._file = PatchedFile(path=path, op=op, added=0, removed=0, hunks=[])
        self._files.append(self._file)
        self._old_name = ""
        return self._file

    def _named(self, new_name: str) -> None:
        old_name = self._old_name
        file = self._file or self._begin(new_name if new_name != _NULL else old_name, "modify")
        if new_name == _NULL:
            file.op = "delete"
        elif old_name == _NULL:
            file.op = "create"
        if new_name != _NULL:
            file.path = new_name

    def _of_file(self, line: str, file: PatchedFile) -> None:
        hunk = _HUNK.match(line)
        if hunk:
            old, old_n, new, new_n = (int(g) if g is not None else 1 for g in hunk.groups())
            heading = _HEADING.match(line)
            self.end_run()
            self._old_line, self._above = old if old_n else old + 1, ""
            self._function, self._indent = "", -1
            self._define(heading[1] if heading else "")
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
        if file.op != "create":
            self._place(line[:1], line[1:], file)
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

    def _place(self, sign: str, text: str, file: PatchedFile) -> None:
        """Notes where a run of changed lines lies: which lines of the file before, in which function."""
        self._define(text)
        if sign in ("+", "-"):
            if not self._run:
                self._begin_run(file)
            first, last, function = file.changes[-1]
            if sign == "-":
                # What only adds lies between two lines; what takes away or replaces is those lines.
                first, last = first if "-" in self._run else self._old_line, self._old_line
                self._note(text)
            if text.strip() and "." not in self._run:
                function = self._function
                self._run += "."
            self._run += sign if sign not in self._run else ""
            file.changes[-1] = first, last, function
        else:
            self.end_run(text)
        if sign != "+":
            self._old_line += 1
            self._above = text

    def _begin_run(self, file: PatchedFile) -> None:
        file.changes.append((self._old_line - 1, self._old_line, ""))
        self._digests = file.digests

    def end_run(self, below: str = "") -> None:
        """The run of changed lines is over. Of what only adds, the lines above and below it are its place."""
        if self._run and "-" not in self._run:
            self._note(self._above)
            self._note(below)
        self._run = ""

    def _note(self, text: str) -> None:
        if len(text.strip()) > _MEANINGLESS_CHARS and len(self._digests) < _MOST_DIGESTS:
            self._digests.append(hashlib.blake2b(text.strip().encode("utf-8", "replace"), digest_size=4).hexdigest())

    def _define(self, text: str) -> None:
        """Takes a line: it may begin a function, or stand outside the last. Of a class's lines the function is not
        known, for it may begin above the hunk."""
        begun = _DEFINITION.match(text)
        if begun:
            self._function, self._indent = "" if begun["container"] else begun["name"], len(begun[1])
        elif text.strip() and len(text) - len(text.lstrip()) <= self._indent and text.lstrip()[0] not in "){":
            self._function, self._indent = "", -1


def _name(header: str) -> str:
    """A path as a diff names it, without the time that `diff -u` adds and without the `a/` or `b/` of Git."""
    name = header.split("\t", 1)[0].strip().strip('"')
    return name if name == _NULL or name[:2] not in ("a/", "b/") else name[2:]
