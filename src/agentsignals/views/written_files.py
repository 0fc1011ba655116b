"""Files an agent wrote, and the lines of them that survive to the end: followed through its edits."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from copy import copy

from msgspec import Struct, field

from agentsignals.changes.hunks import WHOLE_TREE, edit_texts
from agentsignals.model import RAN, Edit, EditOrigin, Event, ToolCall
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell import STASHED, UNSTASHED, parse, writes_of
from agentsignals.shell.commands import answer_paths, later_revision, outside_sources, sources_in_code
from agentsignals.shell.tokens import Write, simple_commands
from agentsignals.views.session import SessionView

LONGEST_LINE = 400
"""Characters of a line that are compared; longer lines are data."""
_MOST_EVENTS = 2_000
"""Events that are searched for a file's name; whatever names one does so early."""
_FILE = deferred_pattern(r"\n(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.*)")
_SCRATCH = deferred_pattern(r"(?:^|/)(?:tmp|temp)/|^/tmp|^/var/tmp")
_STASHES = deferred_pattern(r"\bgit stash(?:\s+(?:push|save|-\w|--\w)|\s*(?:$|[;&|\n]))")
_OUTSIDE: frozenset[EditOrigin | None] = frozenset(("repository", "network", "package"))


class Line(Struct, gc=False):
    """A line that an edit brought in, without its indentation."""

    text: str
    seq: int


class File(Struct, kw_only=True):
    """A file that the agent changed."""

    path: str
    lines: list[Line] = field(default_factory=list)
    """Lines it brought in that survive."""
    removed: list[Line] = field(default_factory=list)
    """Lines of before that its edits took away."""
    taken: OutsideSource | None = None
    """Its text came from outside, whole."""
    is_new: bool = False
    """The agent made it."""
    is_rewritten: bool = False
    """It was written whole, though it was there."""
    deleted_at: int | None = None
    unknown_at: int | None = None
    """A program last wrote it, with a text that the trace does not tell."""
    written_by: str = ""
    """The command that last wrote it, where one did."""


class OutsideSource(Struct, frozen=True):
    """A text that a command put into a file from elsewhere."""

    seq: int
    origin: EditOrigin
    source: str


class WrittenFiles(Struct, kw_only=True):
    """All files, by path, in the order of their first edit."""

    files: dict[str, File] = field(default_factory=dict)
    stashed: dict[str, File] = field(default_factory=dict)
    has_stashed: bool = False
    """It put work of its own by."""
    put_by: dict[str, dict[str, File]] = field(default_factory=dict)
    """The files as they were when a patch of them was written, keyed by the patch's path."""
    first: dict[str, int] = field(default_factory=dict)
    """Event at which the agent first wrote a line (its text), whether the line survives or not."""
    texts: dict[str, str] = field(default_factory=dict)
    """Scripts, for when they are run."""
    read: set[str] = field(default_factory=set)
    """Files that a tool showed: they were there."""
    carried: dict[str, OutsideSource] = field(default_factory=dict)
    """Files and folders outside of the tree that downloads and old states were put into."""


def written_files(view: SessionView) -> WrittenFiles:
    """Follow the successful edits of a session."""
    calls = {call.seq: call for call in view.session.tool_calls}
    by_call: dict[int, list[Edit]] = {}
    for edit in view.session.edits:
        by_call.setdefault(edit.seq, []).append(edit)
    made = WrittenFiles()

    def is_unmentioned(path: str, seq: int) -> bool:
        """Return whether no prompt, call or result named a file before a command wrote it: the agent creates it."""
        name = posixpath.basename(path)
        token = re.compile(rf"(?<![\w.~@+/-])[\w.~@+/-]*?(?<![\w.-]){re.escape(name)}(?![\w-])")
        for event in view.session.events[: min(seq, _MOST_EVENTS)]:
            said = "" if event.kind in ("text", "thinking") else event.text or ""
            for text in (said, calls[event.seq].arguments if event.seq in calls else ""):
                found = token.finditer(text) if name in text else ()
                for each in (one[0].removeprefix("./").removeprefix(f"{view.session.cwd}/") for one in found):
                    # A name alone may mean any file of that name.
                    if (
                        "/" not in each
                        or f"/{path}".endswith(f"/{each}")
                        or ("/" in path and each.endswith(f"/{path}"))
                    ):
                        return False
        return True

    for seq, call in sorted(calls.items()):
        if call.command is not None:
            _unpacked(made, call)
            made.has_stashed = made.has_stashed or _STASHES.search(call.command) is not None
            # Its own work comes back from a patch that it had saved. One that is only checked changes nothing.
            checks = "--check" in call.command and call.command.count(" apply ") == 1
            for reader, path in parse(call.command).runs if call.status in RAN and not checks else ():
                if reader == "patch" and path in made.put_by:
                    made.files |= made.put_by[path]
        edits = by_call.get(seq, [])
        runs = parse(call.command) if call.command is not None and call.status in RAN else None
        by_scripts = [
            write
            for reader, path in (runs.runs if runs is not None else ())
            for write in writes_of(reader, made.texts.get(path, ""))
        ]
        if not edits and not by_scripts:
            if call.path and call.class_ == "read" and call.status in RAN:
                made.read.add(call.path)
        elif runs is not None and (by_scripts or edits[0].via == "shell"):
            for write in (*runs.writes, *by_scripts):
                named = next((e.path for e in edits if _same(e.path, write.path)), None)
                if named is None and write not in by_scripts:
                    continue
                path = named or write.path.removeprefix(f"{view.session.cwd}/")
                if path not in made.files and write.how == "whole" and is_unmentioned(path, seq):
                    made.files[path] = File(path=path, is_new=True)
                _take(made, path, seq, write, call.command or "")
                source, file = write.source or "", made.files.get(path)
                is_own = source in made.texts or source in made.files or is_scratch(source) or not source
                if file is not None and write.origin == "copied" and file.taken is None and not is_own:
                    file.taken = OutsideSource(seq, "copied", source) if is_elsewhere(view, source, made) else None
        else:
            _edit(made, call, edits)
    return made


_FOLDER_OPTIONS = frozenset(("-d", "-C", "-t", "--target", "--dest", "--directory", "-P", "--pack-destination"))
_UNPACKERS = frozenset(("unzip", "tar", "bsdtar", "7z"))
_PACKED = deferred_pattern(r"\.(?:whl|zip|tgz|tar(?:\.\w+)?|gz|crate)$")


def _unpacked(made: WrittenFiles, call: ToolCall) -> None:
    """Note the folders that a download, a clone, another checkout or an unpacked archive was put into."""
    sources = outside_sources(call.command or "")
    here = ""
    for words, *_ in simple_commands(call.command or ""):
        if not words:
            continue
        if words[0] == "cd" and len(words) > 1:
            here = words[1] if words[1][:1] in "/~" else posixpath.join(here, words[1])
        named = (words[n + 1] for n, word in enumerate(words[:-1]) if word in _FOLDER_OPTIONS)
        folders = [posixpath.join(here, folder) for folder in named]
        if words[:2] == ["git", "clone"] and len(words) > 2:
            last = words[-1]
            folders = [last if "://" not in last and "@" not in last else posixpath.basename(last).removesuffix(".git")]
            taken = OutsideSource(call.seq, "network", words[2])
        elif words[:3] == ["git", "worktree", "add"] and sources:
            folders = [next((w for w in words[3:] if "/" in w), "")]
            taken = OutsideSource(call.seq, "repository", sources[0].source)
        elif words[0] in _UNPACKERS and any(map(_PACKED.search, words)):
            taken = OutsideSource(call.seq, "package", next(word for word in words if _PACKED.search(word)))
            folders = folders or [here]
        elif words[0] in _UNPACKERS and sources:  # what it is fed
            taken = OutsideSource(call.seq, sources[0].origin, sources[0].source)
            folders = folders or [here]
        elif sources and words[0] in ("pip", "pip3", "npm", "wget", "curl"):
            taken = OutsideSource(call.seq, sources[0].origin, sources[0].source)
        else:
            continue
        made.carried |= {folder.rstrip("/"): taken for folder in folders if len(folder) > 1}


def _same(path: str, named: str) -> bool:
    plain = named.removeprefix("./")
    return (
        path == plain
        or (path == WHOLE_TREE and named == ":/")
        or path.endswith(f"/{plain}")
        or plain.endswith(f"/{path}")
    )


def _take(made: WrittenFiles, path: str, seq: int, write: Write, command: str) -> None:
    if path == WHOLE_TREE:  # the whole tree is set back, stashed or unstashed
        source = write.source or ""
        if source == UNSTASHED:
            if not made.has_stashed:  # of somebody else
                made.files[WHOLE_TREE] = File(path=WHOLE_TREE, taken=OutsideSource(seq, "repository", "a stash"))
            made.files |= made.stashed
            made.stashed = {}
            return
        if source == STASHED:
            made.stashed = {name: file for name, file in made.files.items() if not _SCRATCH.search(name)}
        for name in [name for name in made.files if not _SCRATCH.search(name)]:
            del made.files[name]
        if later_revision(source):
            made.files[WHOLE_TREE] = File(path=WHOLE_TREE, taken=OutsideSource(seq, "repository", source))
        return
    file = made.files.setdefault(path, File(path=path))
    file.written_by = command
    if write.how == "whole":
        made.texts[write.path] = made.texts[path] = write.new
    if write.op == "delete":
        _gone(file, seq)
    elif write.how == "whole":
        _rewritten(made, file, seq, write.new)
    elif write.how in ("append", "insert"):
        _came(made, file, seq, write.new)
    elif write.how in ("replace", "substitute"):
        _replaced(made, file, seq, write.old, write.new)
    elif write.how == "patch":
        old, new = _sides(write.new)
        _replaced(made, file, seq, old, new)
    else:
        _unknown(made, file, seq, write)


def _unknown(made: WrittenFiles, file: File, seq: int, write: Write) -> None:
    source, origin = write.source or "", write.origin
    below = next(
        (taken for path, taken in made.carried.items() if source == path or source.startswith(f"{path}/")), None
    )
    if origin == "copied" and source in made.files and made.files[source].taken is not None:
        below = made.files[source].taken
    if below is None:  # a program that is given a file from there
        carried = ((path, taken) for path, taken in made.carried.items() if path.count("/") > 1)
        below = next((taken for path, taken in carried if f"{path}/" in file.written_by), None)
    is_edited = origin == "program" and source in ("sed", "gsed", "perl", "ruby")
    was_taken = file.taken if is_edited else None
    file.lines = []
    file.deleted_at = file.taken = file.unknown_at = None
    if origin == "repository" and source == "diff":
        made.put_by[file.path] = {p: copy(f) for p, f in made.files.items() if not is_scratch(p) and f is not file}
    if origin == "repository" and not later_revision(source):
        file.removed = []  # as it was before, or in a commit of before
        file.unknown_at = None if source in ("index", STASHED, UNSTASHED) else seq
    elif origin in _OUTSIDE and origin is not None:
        file.taken = OutsideSource(seq, origin, source)
    elif origin in ("copied", "program") and below is not None:
        file.taken = OutsideSource(seq, below.origin, f"{source} ({below.source})")
    elif origin == "copied" and re.search(r"(?:site|dist)-packages/|node_modules/", source):
        file.taken = OutsideSource(seq, "package", source)
    else:
        file.unknown_at, file.taken = seq, was_taken
    if file.taken is not None:
        made.carried[file.path] = file.taken


def _edit(made: WrittenFiles, call: ToolCall, edits: list[Edit]) -> None:
    gone = {edit.path for edit in edits if edit.op == "delete"}
    for text in edit_texts(call.arguments, call.argument_roles):
        if text.kind == "patch":
            sections = _FILE.split("\n" + text.new)
            for name, body in zip(sections[1::2], sections[2::2], strict=True):
                edit = next((e for e in edits if _same(e.path, name.strip())), edits[0])
                old, new = _sides(body)
                _replaced(made, made.files.setdefault(edit.path, File(path=edit.path)), call.seq, old, new)
            continue
        file = made.files.setdefault(edits[0].path, File(path=edits[0].path))
        # A tool that creates writes over what was there, too.
        is_first = not file.lines and not file.removed and not any(same_file(file.path, path) for path in made.read)
        file.is_new = file.is_new or (is_first and edits[0].op == "create")
        if text.kind == "replace":
            _replaced(made, file, call.seq, text.old, text.new)
        elif text.kind == "whole":
            _rewritten(made, file, call.seq, text.new)
            made.texts[file.path] = text.new
        else:
            _came(made, file, call.seq, text.new)
    for path in gone:
        _gone(made.files.setdefault(path, File(path=path)), call.seq)


def _sides(patch: str) -> tuple[str, str]:
    lines = patch.split("\n")
    old = [line[1:] for line in lines if line[:1] == "-" and line[:3] != "---"]
    return "\n".join(old), "\n".join(line[1:] for line in lines if line[:1] == "+" and line[:3] != "+++")


def _came(made: WrittenFiles, file: File, seq: int, text: str) -> None:
    file.deleted_at = None
    for row in text.split("\n"):
        line = row.strip()[:LONGEST_LINE]
        if line:
            file.lines.append(Line(line, seq))
            made.first.setdefault(line, seq)


def _rewritten(made: WrittenFiles, file: File, seq: int, text: str) -> None:
    file.is_rewritten = not file.is_new
    standing = {line.text: line.seq for line in file.lines}
    file.lines, file.taken, file.unknown_at = [], None, None
    _came(made, file, seq, text)
    for line in file.lines:
        line.seq = standing.get(line.text, line.seq)


def _replaced(made: WrittenFiles, file: File, seq: int, old: str, new: str) -> None:
    before, after = ([row.strip()[:LONGEST_LINE] for row in text.split("\n")] for text in (old, new))
    kept = set(after)
    for line in before:
        if line in kept or not line:
            continue
        at = next((n for n, standing in enumerate(file.lines) if standing.text == line), None)
        if at is not None:
            del file.lines[at]
        else:
            file.removed.append(Line(line, seq))
    was = set(before)
    _came(made, file, seq, "\n".join(line for line in after if line not in was))


def _gone(file: File, seq: int) -> None:
    file.lines, file.taken, file.deleted_at = [], None, seq


def is_scratch(path: str) -> bool:
    """Return whether a path is a place for throw-away files."""
    return _SCRATCH.search(path) is not None


def same_file(path: str, other: str) -> bool:
    """Return whether two paths, perhaps below different roots, may mean one file."""
    return posixpath.basename(path) == posixpath.basename(other) and (path.endswith(other) or other.endswith(path))


# What an agent was shown, line by line: of the working tree, or from outside of it.

_NUMBERED = deferred_pattern(r"^\s*(?:\d+\s*[:|\t→]|\d+\t)\s?")
_NAMED = deferred_pattern(r"^\+\+\+ b/(\S+)", re.MULTILINE)
_LOG = deferred_pattern(
    r"\A(?![\s\S]*\b(?:xargs|cat-file|fsck|reflog)\b)[\s\S]*?\bgit\b[^|;&\n]*\blog\b(?![^|;&\n]*(?:--all|--branches|--remotes|origin/|upstream/))"
)
_LONGEST_COMMAND = 2_000
HASH = deferred_pattern(r"\b[0-9a-f]{7,40}\b")
_EMPTY = deferred_pattern(
    r"Already up[ -]to[ -]date|Could not resolve host|Connection refused|Temporary failure|fatal: ", re.I
)
_TESTS = deferred_pattern(r"(?:^|/)tests?/|(?:^|/)test_[^/]*$")
_IN_TREE = deferred_pattern(
    r"gold(?:en)?[._-]?(?:patch|diff|solution|answer)|(?:reference|oracle)[_-]?solution|solution\.(?:patch|diff|sh)"
    r"|\.(?:orig|rej|bak)$|\.sw[po]$|\w~$|(?:^|/)answers?\.(?:json|txt|py|diff)|(?:^|/)\.cache/",
    re.I,
)
"""Names of answers, also where such a file lies in the working tree."""
_ABSOLUTE = deferred_pattern(r"(?<![\w.:/])/[\w.@+-]+(?:/[\w.@+-]+)+")
_WEB_TOOL = deferred_pattern(r"fetch|web|brows|http|url|search", re.I)


class OutsideText(Struct, frozen=True, kw_only=True):
    """A result that brought text from outside."""

    seq: int
    """The call's event."""
    at: int
    """The result's event."""
    origin: EditOrigin
    source: str
    lines: frozenset[str]
    rows: tuple[str, ...]
    """The lines in order."""
    is_diff: bool
    files: frozenset[str]
    """The names of the files that it shows, without their folders."""
    missing_chars: int
    """Characters of the result that the trace does not keep."""


class ShownText(Struct):
    """All that was shown, until whoever asks."""

    outside: list[OutsideText] = field(default_factory=list)
    inside: dict[str, int] = field(default_factory=dict)
    """Event at which a line of the working tree, or of a person's words, was first shown."""
    past: set[str] = field(default_factory=set)
    """Commits that the base's own log names: older than the base."""
    by_file: dict[str, dict[str, int]] = field(default_factory=dict)
    """Event at which reading a file first showed a line, keyed by path and line."""
    asked: str = ""
    """The person's words."""


def shown_text(view: SessionView, written_files: WrittenFiles) -> ShownText:
    """Collect the texts of prompts and results, in order."""
    made = ShownText()
    past = made.past
    events = view.session.events
    made.asked = "\n".join(turn.text for turn in view.turns)
    for turn in view.turns:
        for line in _lines(turn.text):
            made.inside.setdefault(line, turn.seq)
    for call in view.session.tool_calls:
        if call.result_seq is None:
            continue
        event = events[call.result_seq]
        text = event.text or ""
        if _LOG.search((call.command or "")[:_LONGEST_COMMAND]):
            past.update(hash_[:7] for hash_ in HASH.findall(text))
        source = next(_sources(view, call, written_files, past), None)
        if source is None:
            path = call.path if call.class_ == "read" else parse(call.command).path if call.command else None
            in_file = made.by_file.setdefault(path, {}) if path else {}
            added = "\n".join(row[1:] for row in text.split("\n") if row[:1] == "+") if "\n@@ -" in text else ""
            for line in (*_lines(text), *_lines(added)):
                made.inside.setdefault(line, event.seq)
                in_file.setdefault(line, event.seq)
            continue
        shown = _shown(call, event, source, text)
        if _EMPTY.search(text[:300]) or not text.strip():
            continue
        made.outside.append(shown)
        if shown.is_diff:  # what it takes away or leaves stands in the tree
            for line in _lines("\n".join(row[1:] for row in text.split("\n") if row[:1] in (" ", "-"))):
                made.inside.setdefault(line, event.seq)
    return made


def _shown(call: ToolCall, event: Event, source: tuple[EditOrigin, str], text: str) -> OutsideText:
    if "\\n" in text:  # a string of JSON, or one that a program quoted
        unescaped = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
        text = f"{text}\n{unescaped}"
    is_diff = "\n@@ -" in text or text.startswith("@@ -")
    rows = text.split("\n")
    if is_diff:
        rows = [row[1:] for row in rows if row[:1] == "+" and row[:3] != "+++"]
    elif _DIFF.search(call.command or "") and _NORMAL_DIFF.search(text):
        is_diff, rows = True, [row[2:] for row in rows if row[:2] in ("> ", "< ")]
    lines = tuple(_lines("\n".join(rows)))
    return OutsideText(
        seq=call.seq,
        at=event.seq,
        origin=source[0],
        source=source[1],
        lines=frozenset(lines),
        rows=lines,
        is_diff=is_diff,
        files=frozenset(
            posixpath.basename(name)
            for name in (
                *_NAMED.findall(text),
                *re.split(r"[\s:()]+", source[1]),
                *re.split(r"[\s:'\"();|&<>]+", (call.command or "")[:_LONGEST_COMMAND]),
            )
        ),
        missing_chars=max(event.n_chars - len(text), 0),
    )


_DIFF = deferred_pattern(r"\bdiff\s")
_NORMAL_DIFF = deferred_pattern(r"^[<>] .*\n(?:[<>] |---$)", re.MULTILINE)


def _sources(
    view: SessionView, call: ToolCall, written_files: WrittenFiles, past: set[str]
) -> Iterator[tuple[EditOrigin, str]]:
    """Yield the outside sources of a call's result; a commit that the base's own log names is no outside source."""
    if call.class_ == "web" or (call.class_ == "mcp" and _WEB_TOOL.search(call.name)):
        yield "network", (call.command or call.path or call.arguments)[:200]
    for source in outside_sources(call.command or ""):
        hashes = HASH.findall(source.source)
        if source.origin != "repository" or not hashes or any(hash_[:7] not in past for hash_ in hashes):
            yield source.origin, source.source
    read = parse(call.command) if call.command else None
    for _, script in read.runs if read is not None else ():
        for source in sources_in_code(written_files.texts.get(script, "")):
            yield source.origin, source.source
    path = call.path or (read.path if read is not None else None)
    if call.class_ not in ("read", "search", "shell"):
        return
    for folder, taken in written_files.carried.items():
        named = path or call.command or ""
        # Of a folder for everybody's files, only one that is read as a whole and that it did not write itself.
        is_there = folder in named if folder.count("/") > 1 else (path or "").startswith(f"{folder}/")
        if taken.seq < call.seq and is_there and path not in written_files.texts and path not in written_files.files:
            yield taken.origin, f"{path or folder} ({taken.source})"
    # A file of the same name below a folder of the same name: another copy of the work.
    tails = {"/".join(file.split("/")[-2:]) for file in written_files.files if "/" in file}
    for named in _ABSOLUTE.findall((call.command or call.path or "")[:_LONGEST_COMMAND]):
        if (
            "/".join(named.split("/")[-2:]) in tails
            and is_elsewhere(view, named, written_files)
            and not is_scratch(named)
        ):
            yield "copied", named
    paths = [*([path] if path is not None else []), *answer_paths(call.command or "")]
    for named in dict.fromkeys(paths):
        if is_scratch(named) or any(same_file(named, f) for f in written_files.files) or named in written_files.texts:
            continue
        if _TESTS.search(named) and not is_elsewhere(view, named, written_files):
            continue
        if is_answer(view, named, written_files):
            yield "copied", named


def is_answer(view: SessionView, path: str, written_files: WrittenFiles) -> bool:
    """Return whether a file named like an answer lies outside the tree; for the plainest names, also inside."""
    return bool(_IN_TREE.search(path)) or (is_elsewhere(view, path, written_files) and bool(answer_paths(path)))


def is_elsewhere(view: SessionView, path: str, written_files: WrittenFiles) -> bool:
    """Return whether a file lies outside the working tree; without a known folder, by what was written."""
    if path[:1] not in "/~":
        return path.startswith("../")
    if view.session.cwd is not None:
        return not view.in_repo(path.removeprefix(f"{view.session.cwd}/"))
    return not any(file.split("/")[:2] == path.split("/")[:2] for file in written_files.files)


def _lines(text: str) -> Iterator[str]:
    for row in text.split("\n"):
        plain = _NUMBERED.sub("", row[: 2 * LONGEST_LINE], count=1).strip()[:LONGEST_LINE]
        if plain:
            yield plain
