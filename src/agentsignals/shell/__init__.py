"""What a shell command does: read, search, test, build, version control, write, or just run; and which files it writes.

A path with a variable, glob or substitution in it is not resolved and not reported.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from msgspec import Struct

from agentsignals.model import EditOp, ShellKind
from agentsignals.shell.kinds import DIRECT, ENTERS, KINDS, Kind, kind_of, leading_words
from agentsignals.shell.tokens import PATCH, Simple, simple_commands
from agentsignals.shell.writes import UNRESOLVED, WRITERS, names, operands, patched_files, script_files, written_by

_SHELLS = names("bash sh zsh dash ksh pwsh powershell")
_RUNS_TEXT = re.compile(r"-(?:[a-z]*c|-?command)$", re.IGNORECASE).match
_PATTERN_FIRST = names("rg grep egrep fgrep zgrep ag ack select-string")
_PATTERN_GIVEN = names("-e -f --regexp --file --files")
_NAMES_NO_FILE = names("find fd fdfind which whereis locate")
_EDITORS = names("sed gsed")
_FILTERS = names("awk gawk mawk jq yq")
_SEARCH_VALUED = names("-A -B -C -m -e -f -g -t -T --glob --type --regexp --max-count --context -I")
_READ_VALUED = names("-n -c -F -v -d --lines --bytes -totalcount -tail -head")


class Command(Struct, frozen=True):
    """What a command does, the one file it is about (None when there is none, or several), and the files it writes."""

    kind: ShellKind
    path: str | None
    writes: tuple[tuple[str, EditOp], ...]


@lru_cache(maxsize=4096)
def parse(command: str) -> Command:
    """The whole reading of a command line, `bash -c '…'` included."""
    reading = _Reading()
    if PATCH in command:
        reading.wrote(patched_files(command))
    for simple in simple_commands(command):
        reading.take(simple)
    return reading.summary()


_Source = tuple[str | None, Callable[[list[str], str], list[str]], list[str], str]
"""Something that was read or searched: in which folder, and how its files are found in which words of which command."""


class _Reading:
    """The simple commands of a line taken one after the other; `folders` are the working folders, one a subshell."""

    __slots__ = ("depth", "folders", "kinds", "sources", "substituted", "writes")

    def __init__(self) -> None:
        self.kinds: dict[ShellKind, None] = {}
        self.substituted: ShellKind | None = None
        """What the first substitution does."""
        self.sources: list[_Source] = []
        self.writes: dict[str, EditOp] = {}
        self.folders: list[str | None] = [""]
        self.depth = 0

    def take(self, simple: Simple) -> None:
        words, targets, depth, substituted = simple
        if depth != self.depth:
            self.descend(depth)
        if targets:
            self.did("write", substituted)
            self.wrote([(target, "modify") for target in targets if not UNRESOLVED(target)])
        if not words:
            return
        name = words[0]
        kind = KINDS.get(name)
        if kind is None:
            kind, name, words = self.looked_into(words, substituted)
        if not kind:
            if name in ENTERS:
                self.enter(words)
            return
        if substituted:
            self.did(kind, True)
        else:
            self.kinds[kind] = None
        if kind == "read":
            self.sources.append((self.folders[-1], _files_read, words, name))
        elif kind == "search":
            self.sources.append((self.folders[-1], _files_searched, words, name))
        elif name in WRITERS and (writes := written_by(words, name)):
            self.wrote(writes)

    def looked_into(self, words: list[str], substituted: bool) -> tuple[Kind, str, list[str]]:
        """Of a command whose first word does not say it all: what it is for, its name, its words from the name on."""
        direct = DIRECT.get(words[0])
        if direct is not None:
            return direct(words), words[0], words
        words = leading_words(words)
        name = program(words[0]) if words else ""
        if not words or (name in _SHELLS and self.nested(words, substituted)):
            return "", "", words
        return kind_of(words, name), name, words

    def descend(self, depth: int) -> None:
        """Into subshells, which begin in the folder of the line around them, or out of them."""
        while len(self.folders) <= depth:
            self.folders.append(self.folders[-1])
        del self.folders[depth + 1 :]
        self.depth = depth

    def did(self, kind: ShellKind, substituted: bool) -> None:
        """`cd $(git rev-parse …)` is no version control: of what a substitution runs only tests and builds count."""
        if not substituted or kind in ("test", "build"):
            self.kinds[kind] = None
        else:
            self.substituted = self.substituted or kind

    def enter(self, words: list[str]) -> None:
        """A folder that is not known (`cd "$DIR"`, `cd -`) makes the relative paths after it unknown too."""
        arguments = words[1:] if len(words) == 2 and words[1][:1] != "-" else operands(words)
        here = self.folders[-1]
        if len(arguments) == 1 and words[0] != "popd" and not UNRESOLVED(arguments[0]) and arguments[0][0] != "~":
            path = _forward(arguments[0])
            self.folders[-1] = path if _is_absolute(path) else (None if here is None else posixpath.join(here, path))
        else:
            self.folders[-1] = None

    def nested(self, words: list[str], substituted: bool) -> bool:
        """`bash -lc 'TEXT'`."""
        for n, word in enumerate(words[1:-1], 1):
            if _RUNS_TEXT(word):
                inner = parse(words[n + 1])
                self.did(inner.kind, substituted)
                self.wrote(inner.writes)
                if inner.path is not None and inner.kind in ("read", "search"):
                    self.sources.append((self.folders[-1], _themselves, [inner.path], ""))
                return True
            if not word.startswith("-"):
                return False
        return False

    def wrote(self, writes: Iterable[tuple[str, EditOp]]) -> None:
        for path, op in writes:
            joined = _joined(self.folders[-1], path)
            if joined is not None and self.writes.get(joined) in (None, "modify"):
                self.writes[joined] = op

    def summary(self) -> Command:
        """Order of design/signals.md#tool-classes: test, build, vcs, then a writer is no reader, then what comes
        first."""
        kinds, writes = self.kinds, self.writes
        kind: ShellKind = next(iter(kinds), self.substituted or "run")
        if "test" in kinds:
            kind = "test"
        elif "build" in kinds:
            kind = "build"
        elif "vcs" in kinds:
            kind = "vcs"
        elif "write" in kinds or writes:
            kind = "write"
        path: str | None = None
        if kind in ("read", "search"):
            path = self.source()
        elif kind == "write" and len(writes) == 1:
            path = next(iter(writes))
        return Command(kind, path, tuple(writes.items()) if writes else ())

    def source(self) -> str | None:
        """The one file that was read or searched; None when it is none, or several."""
        resolved: str | None = None
        for folder, files_of, words, name in self.sources:
            for path in files_of(words, name):
                joined = _joined(folder, path)
                if joined is None or joined == resolved:
                    continue
                if resolved is not None:
                    return None
                resolved = joined
        return resolved


def program(word: str) -> str:
    """The name of a program: no folder, no `.exe`, PowerShell's cmdlets in lower case."""
    if word.isalnum():
        return word
    name = word[max(word.rfind("/"), word.rfind("\\")) + 1 :]
    if name.endswith((".exe", ".cmd", ".bat", ".EXE")):
        name = name[:-4]
    return name.lower() if "-" in name and name[:1].isupper() else name


def _files_read(words: list[str], name: str) -> list[str]:
    """All operands of a reader are files, its script or filter excepted."""
    if name in _EDITORS:
        arguments = script_files(words)
    else:
        arguments = operands(words, _READ_VALUED)
        if name in _FILTERS:
            arguments = [] if "--arg" in words else arguments[1:]
    return [w for w in arguments if not UNRESOLVED(w) and w[0] != "+" and not w.isdigit()]


def _files_searched(words: list[str], name: str) -> list[str]:
    """Of a search only the operands with an extension: the others are folders."""
    if name in _NAMES_NO_FILE:
        return []
    arguments = operands(words, _SEARCH_VALUED)
    if name in _PATTERN_FIRST and _PATTERN_GIVEN.isdisjoint(words):
        arguments = arguments[1:]
    return [w for w in arguments if "." in w and not UNRESOLVED(w) and posixpath.splitext(w)[1]]


def _themselves(words: list[str], name: str) -> list[str]:
    return words


def _joined(folder: str | None, path: str) -> str | None:
    """The path seen from where the line began; None when that is not known."""
    path = _forward(path)
    if path[-1:] == "/":
        path = path.rstrip("/") or "/"
    if folder == "" or path[:1] == "~" or _is_absolute(path):
        return posixpath.normpath(path) if "./" in path or "//" in path else path
    return None if folder is None else posixpath.normpath(posixpath.join(folder, path))


def _forward(path: str) -> str:
    return path.replace("\\", "/") if "\\" in path else path


def _is_absolute(path: str) -> bool:
    return path[:1] == "/" or path[1:3] == ":/"
