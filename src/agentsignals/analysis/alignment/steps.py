"""What a run did, step by step, in words that two runs have in common (design/alignment.md#steps).

A step is a prompt or a call of the main thread. Two steps are the *same* where they did equal things, *alike* where
they did the same kind of thing to the same file; what a step did that the other run may have done too, at any time, are
its deeds.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from agentsignals.edits.changed_lines import TRIVIAL_CHARS
from agentsignals.edits.texts import EditText, edit_texts
from agentsignals.model import MAIN, RAN, Edit, Session, ToolCall
from agentsignals.shell.kinds import KINDS, kind_of, leading_words
from agentsignals.shell.programs import program
from agentsignals.shell.tokens import simple_commands
from agentsignals.views.call_words import about
from agentsignals.views.command_texts import lines_told

SCRATCH = "(its own script)"
"""Stands for every file that a run made only to try something: what it is called is its own affair."""
_TAIL = 2
"""Names of a path that count, where the folder it lies in is not known: runs have folders of their own."""
_MOST_CHARS = 400
_BLANKS = re.compile(r"\s+")
_NUMBERS = re.compile(r"\d+")
_ENTERS = re.compile(r"\s*cd \S+ *(?:&&|;)\s*")
_COMMENT = re.compile(r"(?<=\s)(?:#|//).*")
_ONLY_COMMENT = ("#", "//", "/*", "*", '"""', "'''", "--")
_PROSE = re.compile(r"[A-Z][^=(){}\[\];]*\.")
_FILE = re.compile(r"(?<![\w./-])(?:[\w.-]+/)+[\w.-]+\.[A-Za-z]\w{0,4}\b")
_HEADER = re.compile(r"(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.*)")
_INTERPRETERS = ("python", "node", "ruby", "perl", "php", "deno", "bun", "bash", "sh")
_TEXT_OPTIONS = frozenset(("-c", "-e", "-", "--eval"))
_LOOKS = frozenset(("diff", "status", "log", "show", "branch"))
"""What Git is asked that changes nothing."""
_LOOKS_ONLY = frozenset(("search", "plan"))
"""Classes whose steps lead somewhere and do nothing: what is looked for shows in what is read then."""

Deed: TypeAlias = "tuple[str, ...]"


class Step(Struct, frozen=True, kw_only=True):
    """A prompt or a call of the main thread."""

    seq: int
    kind: str
    """`prompt`, or the class of the call."""
    tool: str = ""
    about: str = ""
    """The command, the file, or the words."""
    status: str = ""
    error: str = ""
    same: Deed = ()
    """Equal where two steps did the same."""
    named: Deed = ()
    """As `alike`, its own scripts by their names."""
    alike: Deed = ()
    """Equal where two steps did the same kind of thing to the same file."""
    deeds: frozenset[Deed] = frozenset()
    """`(read, file)`, `(change, file, line)`, `(test, file)`, `(tries,)` …; none of a step that looks around, tidies
    up, or failed to change anything."""
    files: frozenset[str] = frozenset()
    """Files that it read or changed."""
    is_change: bool = False
    """Whether it changed a file that is not its own script."""
    is_opaque: bool = False
    """Whether the trace does not say what it was about: code, or a tool of no known kind."""


class Names:
    """What the files of several runs are called, each by one name."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        paths = {call.path for s in sessions for call in s.tool_calls} | {e.path for s in sessions for e in s.edits}
        self._relative = {posixpath.normpath(path) for path in paths if path and path[:1] not in "/~"}

    def of(self, path: str) -> str:
        """A path from the repository's root where any of the runs names it so, else its last two names."""
        if path[:1] not in "/~":
            return posixpath.normpath(path)
        parts = path.strip("/").split("/")
        for start in range(len(parts)):
            if (rest := "/".join(parts[start:])) in self._relative:
                return rest
        return "/".join(parts[-_TAIL:])


def steps_of(session: Session, names: Names) -> list[Step]:
    """What a run did, in order."""
    edits: dict[int, list[Edit]] = defaultdict(list)
    for edit in session.edits:
        if edit.thread == MAIN:
            edits[edit.seq].append(edit)
    calls = [call for call in session.tool_calls if call.thread == MAIN]
    scratch = _scratch(calls, edits)
    made = [_step(call, edits.get(call.seq, []), scratch, names) for call in calls]
    made += [
        Step(
            seq=turn.seq,
            kind="prompt",
            about=turn.text[:_MOST_CHARS],
            same=("prompt", _flat(turn.text)),
            alike=("prompt",),
        )
        for turn in session.turns
    ]
    return sorted(made, key=lambda step: step.seq)


def _scratch(calls: Sequence[ToolCall], edits: Mapping[int, list[Edit]]) -> set[str]:
    """Files that the run made and then ran by their name, or removed again."""
    looked = {call.path: call.seq for call in reversed(calls) if call.class_ == "read" and call.path}
    created: dict[str, int] = {}
    dropped: dict[str, int] = {}
    changed: set[str] = set()
    for seq, there in sorted(edits.items()):
        for edit in there:
            if edit.op == "create" and edit.path not in changed and looked.get(edit.path, seq) >= seq:
                created[edit.path] = seq
            elif edit.op == "delete":
                dropped[edit.path] = seq
            changed.add(edit.path)
    ran = {
        posixpath.basename(word)
        for call in calls
        if call.command and call.shell_kind == "run"
        for _, words in _commands(call.command)
        for word in words
    }
    return {path for path, seq in created.items() if dropped.get(path, -1) > seq or posixpath.basename(path) in ran}


def _step(call: ToolCall, edits: list[Edit], scratch: set[str], names: Names) -> Step:
    def named(path: str) -> str:
        return SCRATCH if path in scratch else names.of(path)

    words = about(call.class_, call.path, call.command, call.arguments)[:_MOST_CHARS]
    path = named(call.path) if call.path and call.path not in (".", "..") else ""
    kind, ran = call.class_, call.status in RAN
    deeds: set[Deed] = set()
    alike: Deed = (kind, path)
    same: Deed = (kind, path, _flat(words))
    opaque = False
    scripts: Sequence[str] = ()
    """What its own scripts are called."""
    if edits or kind == "edit":
        lines = _changes(call, edits, path, named)
        whole = sorted({edit.path for edit in edits} or {call.path or ""})
        files = sorted(set(map(named, whole)))
        alike, same = ("edit", *files), ("edit", *files, *sorted(deed[-1] for deed in lines))
        scripts = [posixpath.basename(file) for file in whole if file in scratch]
        if ran:
            deeds = {deed for deed in lines if deed[1] != SCRATCH}
            deeds |= {deed for deed in _ran(call.command or "", scratch, names)[1] if deed[0] == "test"}
            if SCRATCH in files and any(edit.op != "delete" for edit in edits):
                deeds.add(("tries",))
    elif kind == "read" or (call.shell_kind == "read" and path):
        # Other numbers than those of its name are lines: another part of the file is alike.
        alike, deeds = ("read", path), {("read", path)} if path else set()
        same = ("read", path, *_NUMBERS.findall(call.arguments.replace(call.path, "") if call.path else words))
    elif call.shell_kind == "search":
        alike = ("search", path)
    elif call.command is not None:
        family, deeds, scripts = _ran(call.command, scratch, names)
        alike = (call.shell_kind or "run", *sorted({deed[0] for deed in deeds} or family))
        same = (*alike, _flat(_ENTERS.sub("", call.command, count=1)))
    elif kind == "shell":
        there = {names.of(file) for file in _FILE.findall(call.arguments.replace("\\n", " "))}
        deeds, opaque = {("read", file) for file in there}, not there
        alike = ("code", *sorted(there))
    elif kind not in _LOOKS_ONLY:
        alike, deeds, opaque = (kind, call.name), {("tool", call.name)}, kind == "mcp"
    return Step(
        seq=call.seq, kind=kind, tool=call.name, about=words, status=call.status, error=call.error_class or "",
        same=same if ran else (*same, call.status), named=(*alike, *scripts), alike=alike, deeds=frozenset(deeds),
        files=frozenset(deed[1] for deed in deeds if deed[0] in ("read", "change", "edited")),
        is_change=any(deed[0] in ("change", "edited") for deed in deeds), is_opaque=opaque,
    )  # fmt: skip


def _changes(call: ToolCall, edits: list[Edit], path: str, named: Callable[[str], str]) -> set[Deed]:
    """What a call changes, by file and line; the file alone, where the trace does not say which lines."""
    whole = sorted({edit.path for edit in edits})
    if call.command is not None:
        by_file = _lines_written(lines_told(call.command, whole, has_failed=call.status == "error"))
    else:
        by_file = _lines_written([("", text) for text in edit_texts(call.arguments, call.argument_roles)])
    if edits and all(edit.op == "delete" for edit in edits):
        return {("change", named(file), "(deleted)") for file in whole}
    if not any(by_file.values()):
        return {("edited", named(file)) for file in whole} or {("edited", path)}
    # Of a command that tells the lines of some of its files, the others are edited, too.
    changed: set[Deed] = {
        ("edited", named(file)) for file in whole if call.command is not None and not by_file.get(file)
    }
    for file, lines in by_file.items():
        target = named(file) if file else named(whole[0]) if whole else path
        changed |= {("change", target, line) for raw in lines if (line := _code(raw))}
    return changed


def _lines_written(texts: Iterable[tuple[str, EditText]]) -> dict[str, set[str]]:
    """The lines that an edit adds, by file where it names several, else under ""; those it removes where it adds none.
    What a change leaves is compared, not what it took away: who writes a file anew names no line that goes."""
    added: dict[str, set[str]] = defaultdict(set)
    removed: dict[str, set[str]] = defaultdict(set)
    for path, text in texts:
        file = path
        if text.kind != "patch":
            old, new = set(text.old.split("\n")), set(text.new.split("\n"))
            added[file] |= new - old
            removed[file] |= old - new
            continue
        for line in text.new.split("\n"):
            if header := _HEADER.match(line):
                file = header[1].strip()
            elif line.startswith(("+", "-")) and not line.startswith(("+++", "---")):
                (added if line[0] == "+" else removed)[file].add(line[1:])
    return {file: added[file] or removed[file] for file in {*added, *removed}}


def _code(line: str) -> str:
    """A line without its comment; nothing of one that says nothing to a machine."""
    line = _BLANKS.sub(" ", _COMMENT.sub("", line)).strip()
    if len(line) <= TRIVIAL_CHARS or line.startswith(_ONLY_COMMENT) or (line.count(" ") > 2 and _PROSE.fullmatch(line)):
        return ""
    return line


def _ran(command: str, scratch: set[str], names: Names) -> tuple[set[str], set[Deed], list[str]]:
    """The programs that a command calls, what it did, and which of the run's own scripts it names."""
    bases = {posixpath.basename(file) for file in scratch}
    deeds: set[Deed] = set()
    family: set[str] = set()
    scripts: list[str] = []
    for name, words in _commands(command):
        kind = kind_of(words, name)
        if kind in ("search", "read"):
            continue
        family.add(name)
        mine = [word for word in map(posixpath.basename, words) if word in bases]
        scripts += mine
        if kind == "test":
            files = [names.of(bare) for w in words[1:] if "." in (bare := w.partition("::")[0]) and w[:1] != "-"]
            deeds |= {("test", file) for file in files} or {("test", "")}
        elif mine:
            deeds |= {("tries",)} if kind == "run" else set()  # to remove it, or make it executable, is to tidy up
        elif name.startswith(_INTERPRETERS) and ("<<" in command or not _TEXT_OPTIONS.isdisjoint(words[1:4])):
            deeds.add(("tries",))
        elif kind != "vcs":
            deeds.add((str(kind), name, *(w for w in words[1:2] if w.isidentifier())))
        elif words[1:2] and words[1] not in _LOOKS:
            deeds.add(("vcs", words[1]))
    return family, deeds, scripts


def _commands(command: str) -> Iterator[tuple[str, list[str]]]:
    """The programs that a line calls with their words; without what says nothing (`cd`, `echo`)."""
    for words, _, _, _ in simple_commands(command):
        lead = leading_words(words)
        if lead and KINDS.get(name := program(lead[0])) != "":
            yield name, lead


def _flat(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()
