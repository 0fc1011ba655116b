"""Reads a shell command line: its kind (read, search, test, build, version control, write, run) and the files it
writes.

Paths with a variable, glob or substitution are not resolved and not reported.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct, structs

from agentsignals.model import ShellKind
from agentsignals.shell.arguments import (
    UNRESOLVED,
    WHOLE_TREE,
    Write,
    names,
    operands,
    program,
    scripts_and_files,
    shell_text,
)
from agentsignals.shell.kinds import DIRECT, ENTERS, KINDS, Kind, kind_of, leading_words
from agentsignals.shell.outputs import Output, printed
from agentsignals.shell.python import script
from agentsignals.shell.tokens import PATCH, Simple, Target, split
from agentsignals.shell.writes import WRITERS, diff_writes, patched_files, strip_of, written_by

_PATTERN_FIRST = names("rg grep egrep fgrep zgrep ag ack select-string")
_PATTERN_GIVEN = names("-e -f --regexp --file --files")
_NAMES_NO_FILE = names("find fd fdfind which whereis locate")
_EDITORS = names("sed gsed")
_FILTERS = names("awk gawk mawk jq yq")
_SEARCH_VALUED = names("-A -B -C -m -e -f -g -t -T --glob --type --regexp --max-count --context -I")
_READ_VALUED = names("-n -c -F -v -d --lines --bytes -totalcount -tail -head")


Reader = Literal["python", "shell", "patch"]
_READERS: dict[str, Reader] = {
    **dict.fromkeys(("python", "python2", "python3", "py", "python3.10", "python3.11", "python3.12"), "python"),
    **dict.fromkeys(("bash", "sh", "zsh", "dash"), "shell"),
    "patch": "patch",
}
_SELDOM_FAIL = names("cp mv rm touch sed gsed perl git truncate")
_PATCH_VALUED = names("-i -d -o -B -F -r --directory --exclude --include -W -X")
_BLOCKS = {**dict.fromkeys(("if", "for", "while", "until", "case"), 1), **dict.fromkeys(("fi", "done", "esac"), -1)}


class Command(Struct, frozen=True):
    """The kind of a command line, its file (None if there is none, or several), and the files it writes."""

    kind: ShellKind
    path: str | None
    writes: tuple[Write, ...]
    runs: tuple[tuple[Reader, str], ...] = ()
    """Files whose text it runs or applies. `writes_of` tells what such a text writes."""


@lru_cache(maxsize=4096)
def parse(command: str) -> Command:
    """Read a command line, also inside `bash -c '…'`."""
    reading = _Reading()
    if PATCH in command:
        reading.add_writes(patched_files(command))
    commands, ends, heredocs, inputs = split(command)
    for n, simple in enumerate(commands):
        reading.take(simple, heredocs.get(n), ends[n], inputs.get(n))
    return reading.summary()


def writes_of(reader: Reader, text: str) -> tuple[Write, ...]:
    """Return what a text writes that Python, a shell or `patch` reads."""
    if reader == "shell":
        return parse(text).writes
    if reader == "patch":
        return tuple(diff_writes(text))
    read = script(text)
    return (*read.writes, *(write for command in read.commands for write in parse(command).writes))


_Source = tuple[str | None, Callable[[list[str], str], list[str]], list[str], str]
"""A file that was read or searched: the folder, a function that finds files in words, the words and the command."""


class _Reading:
    """Reads the simple commands of a line in order. `folders` are the working folders, one for each subshell."""

    __slots__ = (
        "blocks", "depth", "folders", "is_safe", "kinds", "n_taken", "pipe", "runs", "sources", "stops", "substituted",
        "texts", "writes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.kinds: dict[ShellKind, None] = {}
        self.substituted: ShellKind | None = None
        """Kind of the first command inside a substitution."""
        self.sources: list[_Source] = []
        self.writes: list[tuple[int, Write]] = []
        """Writes with the number of their simple command."""
        self.texts: dict[str, str] = {}
        """Files written in this line whose whole text is known."""
        self.runs: list[tuple[Reader, str]] = []
        self.folders: list[str | None] = [""]
        self.depth = self.n_taken = self.blocks = 0
        self.pipe: tuple[list[str], str, str | None, Any] | None = None
        """The command that writes to the next one's pipe."""
        self.is_safe, self.stops = True, False
        """`is_safe`: no earlier command could have ended the line. `stops`: a failure ends it (`set -e`)."""

    def take(self, simple: Simple, heredoc: str | None, end: str, read: str | None) -> None:
        words, targets, depth, substituted = simple
        input_, self.pipe = self.pipe, None
        self.n_taken += 1
        if depth != self.depth:  # subshells begin in the folder of the line around them
            self.folders = [*self.folders, *[self.folders[-1]] * (depth + 1 - len(self.folders))][: depth + 1]
            self.depth = depth
        if targets:
            self.add_kind("write", substituted)
        if not words:
            if targets:
                self.redirect(targets, [""], "", heredoc, input_)
            return
        name = words[0]
        if name in _BLOCKS:
            self.blocks += _BLOCKS[name]
        kind = KINDS.get(name)
        if kind is None:
            kind, name, words = self.classify(words, substituted)
        if targets:
            self.redirect(targets, words, name, heredoc, input_)
        if end[:1] == "|" and end != "||":
            self.pipe = (words, name, heredoc, input_)
        if name in _READERS or (name == "git" and "apply" in words):
            self.run_script(_READERS.get(name, "patch"), words, heredoc, input_, read)
        if kind:
            if substituted:
                self.add_kind(kind, True)
            else:
                self.kinds[kind] = None
            if kind in _FILES_OF:
                self.sources.append((self.folders[-1], _FILES_OF[kind], words, name))
        if name == "tee" and (heredoc is not None or input_ is not None):
            output = self.output(words, "tee", heredoc, input_)
            for path in operands(words):
                if not UNRESOLVED(path) and not path.startswith("/dev/"):
                    self.write_output(path, output, appends="-a" in words or "--append" in words)
        elif kind and name in WRITERS and (writes := written_by(words, name)):
            self.add_writes(writes, surely=name in _SELDOM_FAIL)
        elif not kind:
            self.change_folder(words, name)
        # Does the next command run whatever this one did?
        if end == "&&" or (self.stops and end != "||" and end[:1] != "|"):
            self.is_safe = self.is_safe and not (kind and kind != "write")
        elif end == "||":
            self.is_safe = False
        elif end[:1] != "|":
            self.is_safe = True

    def output(self, words: list[str], name: str, heredoc: str | None, input_: Any) -> Output:
        return printed(words, name, heredoc, self.output(*input_) if input_ is not None else None)

    def redirect(self, targets: list[Target], words: list[str], name: str, heredoc: str | None, input_: Any) -> None:
        """Record the files that a command's output goes into."""
        for target in targets:
            if UNRESOLVED(target):
                continue
            output = (
                self.output(words, name, heredoc, input_) if target.mark[:1] != "2" else Output(None, "program", name)
            )
            self.write_output(target, output, appends=">>" in target.mark)

    def write_output(self, path: str, output: Output, appends: bool) -> None:
        how: Literal["", "append", "whole"] = "" if output.text is None else "append" if appends else "whole"
        self.add_writes(
            [Write(path=path, op="modify", how=how, new=output.text or "", origin=output.origin, source=output.source)],
            surely=True,
        )

    def run_script(self, reader: Reader, words: list[str], heredoc: str | None, input_: Any, read: str | None) -> None:
        """Read the script or patch that a command runs, from its arguments, a here-document, a pipe or a file."""
        text: str | None = None
        option = next((n for n, w in enumerate(words[:-1]) if w == "-c"), None)
        files = [w for w in operands(words, _PATCH_VALUED)[reader == "patch" and words[0] == "git" :] if w != "-"]
        files = [read] if read is not None else files
        if reader == "python" and option is not None:
            text = words[option + 1]
        elif heredoc is not None:
            text = heredoc
        elif input_ is not None and (not files or reader == "patch"):
            output = self.output(*input_)
            text = output.text
            if text is None and reader == "patch":
                self.add_writes([Write(path=f, op="modify", origin=output.origin, source=output.source) for f in files])
        elif files and not UNRESOLVED(files[0]):
            path = _joined(self.folders[-1], files[0])
            text = self.texts.get(path) if path is not None else None
            if text is None and path is not None:
                self.runs.append((reader, path))
        if text is None:
            return
        strip = strip_of(words)
        self.add_writes(diff_writes(text, strip) if reader == "patch" else writes_of(reader, text))

    def classify(self, words: list[str], substituted: bool) -> tuple[Kind, str, list[str]]:
        direct = DIRECT.get(words[0])
        if direct is not None:
            return direct(words), words[0], words
        words = leading_words(words)
        text = shell_text(words) if words else None
        if text is not None:  # `bash -lc 'TEXT'`
            inner = parse(text)
            self.add_kind(inner.kind, substituted)
            self.add_writes(inner.writes)
            if inner.path is not None and inner.kind in ("read", "search"):
                self.sources.append((self.folders[-1], lambda words, name: words, [inner.path], ""))
        if not words or text is not None:
            return "", "", words
        name = program(words[0])
        return kind_of(words, name), name, words

    def add_kind(self, kind: ShellKind, substituted: bool) -> None:
        """Record a kind. Inside a substitution only tests and builds count: `cd $(git rev-parse …)` is no version
        control."""
        if not substituted or kind in ("test", "build"):
            self.kinds[kind] = None
        else:
            self.substituted = self.substituted or kind

    def change_folder(self, words: list[str], name: str) -> None:
        """Change the folder. After an unknown one (`cd "$DIR"`, `cd -`) relative paths are unknown too."""
        if name not in ENTERS:
            self.stops = self.stops or (name == "set" and any(w[:1] == "-" and "e" in w for w in words[1:]))
            return
        arguments = words[1:] if len(words) == 2 and words[1][:1] != "-" else operands(words)
        here = self.folders[-1]
        if len(arguments) == 1 and words[0] != "popd" and not UNRESOLVED(arguments[0]) and arguments[0][0] != "~":
            path = _forward(arguments[0])
            self.folders[-1] = path if _is_absolute(path) else (None if here is None else posixpath.join(here, path))
        else:
            self.folders[-1] = None

    def add_writes(self, writes: Iterable[Write], surely: bool = False) -> None:
        """Record written files. After a `surely` written file the line continues whatever follows."""
        for write in writes:
            joined = _joined(self.folders[-1], write.path)
            if joined is None:
                continue
            changes: dict[str, Any] = {"path": joined, "is_sure": surely and self.is_safe and not self.blocks}
            if write.origin == "copied" and write.source is not None:
                source = _joined(self.folders[-1], write.source) if not UNRESOLVED(write.source) else None
                if source in self.texts:
                    changes |= {"how": "whole", "new": self.texts[source], "origin": "written", "source": None}
                else:
                    changes["source"] = source or write.source
            made = structs.replace(write, **changes)
            if made.how == "whole":
                self.texts[joined] = made.new
            elif made.how == "append" and joined in self.texts:
                self.texts[joined] += made.new
            else:
                self.texts.pop(joined, None)
            self.writes.append((self.n_taken, made))

    def final_writes(self) -> tuple[Write, ...]:
        """Return the writes: one of each file whose text is unknown, none of a file deleted at the end or of a
        restored stash."""
        at_last = {write.path: write for _, write in self.writes}
        stashed = {write.source for _, write in self.writes if write.path == WHOLE_TREE}
        kept: list[Write] = []
        silent: dict[str, int] = {}
        for n, write in self.writes:
            last = at_last[write.path]
            if (last.op == "delete" and write is not last) or (write.path == WHOLE_TREE and len(stashed) > 1):
                continue
            sure = write if not write.is_sure or n < self.n_taken else structs.replace(write, is_sure=False)
            if write.how:
                kept.append(sure)
            elif write.path not in silent:
                silent[write.path] = len(kept)
                kept.append(sure)
            elif kept[silent[write.path]].op == "modify":
                kept[silent[write.path]] = sure
        return tuple(kept)

    def summary(self) -> Command:
        """Return the reading. The order of design/signals.md#tool-classes decides: test, build, vcs, write, then the
        first kind."""
        kinds, writes = self.kinds, self.final_writes() if self.writes else ()
        decisive: tuple[ShellKind, ...] = ("test", "build", "vcs")
        kind: ShellKind = next(iter(kinds), self.substituted or "run")
        kind = next((k for k in decisive if k in kinds), "write" if "write" in kinds or writes else kind)
        path: str | None = None
        if kind in ("read", "search"):
            path = self.source()
        elif kind == "write" and len({write.path for write in writes}) == 1:
            path = writes[0].path
        return Command(kind, path, writes, tuple(self.runs))

    def source(self) -> str | None:
        """Return the one file that was read or searched. None if there is none, or several."""
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


def _files_read(words: list[str], name: str) -> list[str]:
    """Operands of a reading command are files, except its script or filter."""
    if name in _EDITORS:
        arguments = scripts_and_files(words)[1]
    else:
        arguments = operands(words, _READ_VALUED)
        if name in _FILTERS:
            arguments = [] if "--arg" in words else arguments[1:]
    return [w for w in arguments if not UNRESOLVED(w) and w[0] != "+" and not w.isdigit()]


def _files_searched(words: list[str], name: str) -> list[str]:
    """Operands with an extension: others are folders."""
    if name in _NAMES_NO_FILE:
        return []
    arguments = operands(words, _SEARCH_VALUED)
    if name in _PATTERN_FIRST and _PATTERN_GIVEN.isdisjoint(words):
        arguments = arguments[1:]
    return [w for w in arguments if "." in w and not UNRESOLVED(w) and posixpath.splitext(w)[1]]


def _joined(folder: str | None, path: str) -> str | None:
    """Return the path seen from where the line began. None if it is unknown."""
    path = _forward(path)
    if path == WHOLE_TREE:
        return path
    if path[-1:] == "/":
        path = path.rstrip("/") or "/"
    if folder == "" or path[:1] == "~" or _is_absolute(path):
        return posixpath.normpath(path) if "./" in path or "//" in path else path
    return None if folder is None else posixpath.normpath(posixpath.join(folder, path))


def _forward(path: str) -> str:
    return path.replace("\\", "/") if "\\" in path else path


def _is_absolute(path: str) -> bool:
    return path[:1] == "/" or path[1:3] == ":/"


_FILES_OF = {"read": _files_read, "search": _files_searched}
