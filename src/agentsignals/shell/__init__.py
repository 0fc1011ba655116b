"""Reads a shell command line: its kind (read, search, test, build, version control, write, run) and the files it
writes.

Paths with a variable, glob or substitution are not resolved and not reported.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from msgspec import Struct, structs

from agentsignals.model import EditOp, ShellKind
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell.commands import DIRECT, ENTERS, KINDS, Kind, Output, git_verb, kind_of, leading_words, printed
from agentsignals.shell.python import script
from agentsignals.shell.tokens import (
    PATCH,
    UNRESOLVED,
    WHOLE_TREE,
    Simple,
    Target,
    Write,
    Writes,
    edited_in_place,
    in_place,
    names,
    operands,
    pairs,
    patterns,
    program,
    scripts_and_files,
    shell_text,
    split,
    vocabulary,
)

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
        if name in _READERS or (name == "git" and git_verb(words)[:1] == ["apply"]):
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
        # The `-pN` of `patch` and `git apply`. Without it, names without `a/` stay as they are.
        strip = next((int(w[2:]) for w in words[1:] if w[:2] == "-p" and w[2:].isdecimal() and len(w) < 5), 1)
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


_PATCH_FILE = deferred_pattern(r"^\*\*\* (?:(Add|Update|Delete) File|(Move to)): (.+?)\s*$", re.MULTILINE)
_PATCH_OPS: dict[str, EditOp] = {"Add": "create", "Update": "modify", "Delete": "delete"}


def patched_files(command: str) -> Writes:
    """Return the files named by an `apply_patch` envelope."""
    return [
        Write(path=m[2], op=_PATCH_OPS[m[0]] if m[0] else "rename", origin="written")
        for m in _PATCH_FILE.findall(command)
    ]


def _edited_in_place(words: Sequence[str]) -> Writes:
    return edited_in_place(words) if in_place(words) else []


def _all(op: EditOp, *valued: str) -> Callable[[Sequence[str]], Writes]:
    with_value = frozenset(valued)
    return lambda words: [
        Write(path=w, op=op, origin="program" if op == "modify" else None, source=words[0] if op == "modify" else None)
        for w in operands(words, with_value)
    ]


def _copied(words: Sequence[str]) -> Writes:
    """`cp`, and `install`, some of whose options take a value."""
    files = operands(words, names("-m -o -g -S --mode --owner --group --suffix" if words[0] == "install" else ""))
    return [Write(path=path, op="modify", origin="copied", source=source) for source, path in pairs(files)]


def moved(words: Sequence[str]) -> Writes:
    """`mv`: a file goes, the other comes."""
    return [
        write
        for source, target in pairs(operands(words))
        for write in (Write(path=source, op="delete"), Write(path=target, op="rename", origin="copied", source=source))
    ]


def _fetched(output: str, named: str) -> Callable[[Sequence[str]], Writes]:
    """`curl -o FILE URL`, `wget URL`."""
    outputs, keeps_name = names(output), names(named)

    def writes(words: Sequence[str]) -> Writes:
        address = next((w for w in words[1:] if "://" in w), None)
        path = next((words[n + 1] for n, w in enumerate(words[:-1]) if w in outputs), None)
        if path is None and address is not None and (not keeps_name or not keeps_name.isdisjoint(words)):
            path = posixpath.basename(address.partition("?")[0].rstrip("/"))
        return [Write(path=path, op="modify", origin="network", source=address)] if path else []

    return writes


def _installed(words: Sequence[str]) -> Writes:
    """`pip install --target FOLDER`. Other changes of an installer are not in its words."""
    if "install" not in words:
        return []
    folder = next((words[n + 1] for n, w in enumerate(words[:-1]) if w in ("-t", "--target")), None)
    packages = operands(words, names("-t --target -r -c -i --index-url"))[1:]
    return [Write(path=folder, op="modify", origin="package", source=" ".join(packages) or None)] if folder else []


def _formatted(*flags: str) -> Callable[[Sequence[str]], Writes]:
    def writes(words: Sequence[str]) -> Writes:
        if (flags and not any(flag in words for flag in flags)) or not _WORDS["checks"].isdisjoint(words):
            return []
        files = operands(words)[_SUBCOMMAND.get(words[0], 0) :]
        return [
            Write(path=w, op="modify", origin="program", source=words[0]) for w in files if posixpath.splitext(w)[1]
        ]

    return writes


_WORDS = vocabulary("writes")
_PATTERNS = patterns("writes")
_SUBCOMMAND = {"ruff": 1, "biome": 1, "deno": 1}


def _cmdlet(op: EditOp) -> Callable[[Sequence[str]], Writes]:
    valued = names("-value -encoding -itemtype -destination -name -newname")

    def writes(words: Sequence[str]) -> Writes:
        arguments = operands([w.lower() if w[:1] == "-" else w for w in words], valued)
        return [Write(path=arguments[0], op=op, origin="written")] if arguments else []

    return writes


# -- files that `git` changes ------------------------------------------------------------------------------------------

STASHED, UNSTASHED = "HEAD", "stash"


def git_writes(words: Sequence[str]) -> Writes:
    """Return files that are deleted, moved, or reset to a state of the repository.

    Changing the commit of the tree (`git switch`, `git pull`, `git rebase`) is no edit: it brings the work of others,
    which their commits record.
    """
    if _WORDS["changes"].isdisjoint(words):
        return []
    verb, *rest = git_verb(words) or [""]
    arguments = operands([verb, *rest], _WORDS["source"])
    if verb == "rm" and "--cached" not in rest:
        return [Write(path=w, op="delete") for w in arguments]
    if verb == "mv":
        return moved([verb, *arguments])
    if verb == "restore" and (_WORDS["staged"].isdisjoint(rest) or "--worktree" in rest):
        named = (after for word, after in pairwise(rest) if word in _WORDS["source"])
        joined = (word[len("--source=") :] for word in rest if word.startswith("--source="))
        return _reset(arguments, next(named, "") or next(joined, "") or "index")
    if verb == "checkout":
        if "--" in rest:
            at = rest.index("--")
            return _reset(rest[at + 1 :], next((w for w in rest[:at] if w[:1] != "-"), "index"))
        if not _WORDS["branches"].isdisjoint(rest):
            return []
        if not {"--ours", "--theirs"}.isdisjoint(rest):
            return _reset(arguments, "ours" if "--ours" in rest else "theirs")
        if len(arguments) > 1 and not any(map(_PATTERNS["in_tree"].fullmatch, arguments[:1])):
            return _reset(arguments[1:], arguments[0])
        return _reset([w for w in arguments if _PATTERNS["in_tree"].fullmatch(w)], "index")
    if verb == "stash":
        verb = next((w for w in rest if w[:1] != "-"), "push")
        if verb in ("pop", "apply"):
            return _reset([WHOLE_TREE], UNSTASHED)
        if verb not in ("push", "save") and "--" not in rest:
            return []
        return _reset(rest[rest.index("--") + 1 :] if "--" in rest else [WHOLE_TREE], STASHED)
    return _reset([WHOLE_TREE], arguments[0] if arguments else "HEAD") if not _WORDS["hard"].isdisjoint(rest) else []


def _reset(paths: list[str], revision: str) -> Writes:
    return [Write(path=path, op="modify", origin="repository", source=revision) for path in paths]


WRITERS: dict[str, Callable[[Sequence[str]], Writes]] = {
    "tee": _all("modify"),
    "touch": _all("create", "-d", "-t", "-r"),
    "truncate": _all("modify", "-s", "-r"),
    "rm": _all("delete"),
    "unlink": _all("delete"),
    "cp": _copied,
    "mv": moved,
    "sed": _edited_in_place,
    "gsed": _edited_in_place,
    "perl": _edited_in_place,
    "ruby": _edited_in_place,
    "git": git_writes,
    "install": _copied,
    "curl": _fetched("-o --output", "-O --remote-name"),
    "wget": _fetched("-O --output-document", ""),
    "pip": _installed,
    "pip3": _installed,
    "gofmt": _formatted("-w"),
    "goimports": _formatted("-w"),
    "prettier": _formatted("--write", "-w"),
    "clang-format": _formatted("-i"),
    "eslint": _formatted("--fix"),
    "biome": _formatted("--write", "--fix", "--apply"),
    "ruff": _formatted("format", "--fix"),
    "black": _formatted(),
    "isort": _formatted(),
    "rustfmt": _formatted(),
    "set-content": _cmdlet("modify"),
    "add-content": _cmdlet("modify"),
    "out-file": _cmdlet("modify"),
    "new-item": _cmdlet("create"),
    "remove-item": _cmdlet("delete"),
}
"""Files that each command writes, by its name; PowerShell names in lower case."""


def written_by(words: Sequence[str], name: str) -> Writes:
    """Return the files that a command itself writes, without redirections and words that a shell would expand."""
    writer = WRITERS.get(name)
    if writer is None:
        return []
    return [w for w in writer(words) if not UNRESOLVED(w.path) and not w.path.startswith("/dev/")]


# -- diffs that a command applies --------------------------------------------------------------------------------------

_FILE = deferred_pattern(r"^--- (?P<old>[^\t\n]+)[^\n]*\n\+\+\+ (?P<new>[^\t\n]+)[^\n]*\n(?=@@ )", re.MULTILINE)
_NEXT = deferred_pattern(r"^(?:diff |Index: )", re.MULTILINE)
_NULL = "/dev/null"


def diff_writes(text: str, strip: int = 1) -> Writes:
    """Return the writes of a unified diff. `strip` is the number of leading folders that `-p` removes."""
    writes: Writes = []
    files = list(_FILE.finditer(text))
    for n, match in enumerate(files):
        stop = files[n + 1].start() if n + 1 < len(files) else len(text)
        body = text[match.end() : stop]
        # The header of the next file may begin before its `---`.
        later = _NEXT.search(body)
        body = body[: later.start()] if later is not None and n + 1 < len(files) else body
        old, new = match["old"].strip(), match["new"].strip()
        op: EditOp = "create" if old == _NULL else "delete" if new == _NULL else "modify"
        path = old if new == _NULL else new
        if strip != 1:
            path = "/".join(path.split("/")[strip:]) or path
        elif path[:2] in ("a/", "b/"):  # a name that has none of Git's `a/` and `b/` is one already
            path = path[2:]
        if not UNRESOLVED(path):
            writes.append(Write(path=path, op=op, how="patch", new=body, origin=None if op == "delete" else "written"))
    return writes
