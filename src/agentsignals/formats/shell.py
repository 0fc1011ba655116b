"""What a shell command does: read, search, test, build, version control, write, or just run; and which files it writes.

A path with a variable, glob or substitution in it is not resolved and not reported.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from msgspec import Struct

from agentsignals.formats.shell_kinds import KINDS, kind_of, leading_words
from agentsignals.formats.shell_words import Simple, simples
from agentsignals.formats.shell_writes import (
    UNRESOLVED,
    WRITERS,
    names,
    operands,
    patched_files,
    script_files,
    written_by,
)
from agentsignals.model import EditOp, ShellKind

_SHELLS = names("bash sh zsh dash ksh pwsh powershell")
_RUNS_TEXT = re.compile(r"-(?:[a-z]*c|-?command)$", re.IGNORECASE).match
_PATTERN_FIRST = names("rg grep egrep fgrep zgrep ag ack select-string")
_PATTERN_GIVEN = names("-e -f --regexp --file --files")
_NAMES_NO_FILE = names("find fd fdfind which whereis locate")
_SEARCH_VALUED = names("-A -B -C -m -e -f -g -t -T --glob --type --regexp --max-count --context -I")
_READ_VALUED = names("-n -c -F -v -d --lines --bytes -totalcount -tail -head")


class Command(Struct, frozen=True):
    """What a command does, the one file it is about (None when there is none, or several), and the files it writes."""

    kind: ShellKind
    path: str | None
    writes: tuple[tuple[str, EditOp], ...]


def classify(command: str) -> tuple[ShellKind, str | None]:
    """Kind of a command and the one file it is about."""
    parsed = parse(command)
    return parsed.kind, parsed.path


def written_paths(command: str) -> tuple[tuple[str, EditOp], ...]:
    """The files a command writes, as far as its text says, each with what happens to it."""
    return parse(command).writes


@lru_cache(maxsize=4096)
def parse(command: str) -> Command:
    """The whole reading of a command line, `bash -c '…'` included."""
    reading = _Reading()
    if "*** Begin Patch" in command:
        reading.wrote(patched_files(command))
    for simple in simples(command):
        reading.take(simple)
    return reading.summary()


class _Reading:
    """The simple commands of a line taken one after the other; `folders` are the working folders, one a subshell."""

    def __init__(self) -> None:
        self.kinds: set[ShellKind] = set()
        self.first: ShellKind | None = None
        self.first_substituted: ShellKind | None = None
        self.paths: dict[str, None] = {}
        self.writes: dict[str, EditOp] = {}
        self.folders: list[str | None] = [""]

    def take(self, simple: Simple) -> None:
        while len(self.folders) <= simple.depth:
            self.folders.append(self.folders[-1])
        del self.folders[simple.depth + 1 :]
        words = leading_words(simple.words)
        if simple.targets:
            self.did("write", simple)
            self.wrote([(target, "modify") for target in simple.targets if not UNRESOLVED(target)])
        if not words:
            return
        name = words[0]
        known = KINDS.get(name)
        if known is None:
            name = program(name)
            if name in ("cd", "pushd", "popd", "set-location"):
                self.enter(words)
                return
            if name in _SHELLS and self.nested(words, simple):
                return
            known = kind_of(words, name)
        if known == "":
            return
        self.did(known, simple)
        if name in WRITERS:
            self.wrote(written_by(words, name))
        if known == "read":
            self.about(_files_read(words, name))
        elif known == "search":
            self.about(_files_searched(words, name))

    def did(self, kind: ShellKind, simple: Simple) -> None:
        """`cd $(git rev-parse …)` is no version control: of what a substitution runs only tests and builds count."""
        if not simple.substituted:
            self.kinds.add(kind)
            self.first = self.first or kind
            return
        if kind in ("test", "build"):
            self.kinds.add(kind)
        self.first_substituted = self.first_substituted or kind

    def enter(self, words: list[str]) -> None:
        """A folder that is not known (`cd "$DIR"`, `cd -`) makes the relative paths after it unknown too."""
        given = operands(words)
        here = self.folders[-1]
        if len(given) == 1 and words[0] != "popd" and not UNRESOLVED(given[0]) and not given[0].startswith("~"):
            path = _forward(given[0])
            self.folders[-1] = path if _is_absolute(path) else (None if here is None else posixpath.join(here, path))
        else:
            self.folders[-1] = None

    def nested(self, words: list[str], simple: Simple) -> bool:
        """`bash -lc 'TEXT'`."""
        for n, word in enumerate(words[1:-1], 1):
            if _RUNS_TEXT(word):
                inner = parse(words[n + 1])
                self.did(inner.kind, simple)
                self.wrote(list(inner.writes))
                if inner.path is not None and inner.kind in ("read", "search"):
                    self.about([inner.path])
                return True
            if not word.startswith("-"):
                return False
        return False

    def about(self, paths: list[str]) -> None:
        for path in paths:
            joined = _joined(self.folders[-1], path)
            if joined is not None:
                self.paths[joined] = None

    def wrote(self, writes: list[tuple[str, EditOp]]) -> None:
        for path, op in writes:
            joined = _joined(self.folders[-1], path)
            if joined is not None and self.writes.get(joined) in (None, "modify"):
                self.writes[joined] = op

    def summary(self) -> Command:
        """Order of signals_notes section 3: test, build, vcs, then a writer is no reader, then what comes first."""
        kinds = self.kinds
        kind: ShellKind = self.first or self.first_substituted or "run"
        if "test" in kinds:
            kind = "test"
        elif "build" in kinds:
            kind = "build"
        elif "vcs" in kinds:
            kind = "vcs"
        elif "write" in kinds or self.writes:
            kind = "write"
        about: dict[str, EditOp] | dict[str, None] = {}
        if kind == "write":
            about = self.writes
        elif kind in ("read", "search"):
            about = self.paths
        return Command(kind, next(iter(about)) if len(about) == 1 else None, tuple(self.writes.items()))


def program(word: str) -> str:
    """The name of a program: no folder, no `.exe`, PowerShell's cmdlets in lower case."""
    name = word[max(word.rfind("/"), word.rfind("\\")) + 1 :]
    if name.endswith((".exe", ".cmd", ".bat", ".EXE")):
        name = name[:-4]
    return name.lower() if "-" in name and name[:1].isupper() else name


def _files_read(words: list[str], name: str) -> list[str]:
    """All operands of a reader are files, its script or filter excepted."""
    if name in ("sed", "gsed"):
        given = script_files(words)
    else:
        given = operands(words, _READ_VALUED)
        if name in ("awk", "gawk", "mawk", "jq", "yq"):
            given = [] if "--arg" in words else given[1:]
    return [w for w in given if not UNRESOLVED(w) and w[:1] != "+" and not w.isdigit()]


def _files_searched(words: list[str], name: str) -> list[str]:
    """Of a search only the operands with an extension: the others are folders."""
    if name in _NAMES_NO_FILE:
        return []
    given = operands(words, _SEARCH_VALUED)
    if name in _PATTERN_FIRST and _PATTERN_GIVEN.isdisjoint(words):
        given = given[1:]
    return [w for w in given if not UNRESOLVED(w) and posixpath.splitext(w)[1]]


def _joined(folder: str | None, path: str) -> str | None:
    """The path seen from where the line began; None when that is not known."""
    path = _forward(path).rstrip("/") or "/"
    if _is_absolute(path) or path[:1] == "~" or folder == "":
        return posixpath.normpath(path) if "./" in path or "//" in path else path
    return None if folder is None else posixpath.normpath(posixpath.join(folder, path))


def _forward(path: str) -> str:
    return path.replace("\\", "/") if "\\" in path else path


def _is_absolute(path: str) -> bool:
    return path[:1] == "/" or path[1:3] == ":/"
