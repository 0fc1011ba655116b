"""What an agent was shown, line by line: of the working tree, or from outside of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from msgspec import Struct, field

from agentsignals.model import EditOrigin, Event, ToolCall
from agentsignals.patterns import deferred_pattern
from agentsignals.shell import parse
from agentsignals.shell.outside import named_like_answers, of_code, outside
from agentsignals.views.passes.standing import LONGEST_LINE, Written, is_scratch, same_file
from agentsignals.views.session import SessionView

_NUMBERED = deferred_pattern(r"^\s*(?:\d+\s*[:|\t→]|\d+\t)\s?")
_NAMED = deferred_pattern(r"^\+\+\+ b/(\S+)", re.MULTILINE)
_LOG = deferred_pattern(r"\bgit\b[^|;&\n]*\blog\b(?![^|;&\n]*(?:--all|--branches|--remotes|origin/|upstream/))")
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
"""What is an answer that lies about even where it lies in the tree."""
_WEB_TOOL = deferred_pattern(r"fetch|web|brows|http|url|search", re.I)


class Shown(Struct, frozen=True, kw_only=True):
    """A result that brought text from outside."""

    seq: int
    """The call's event."""
    at: int
    """The result's event."""
    origin: EditOrigin
    source: str
    lines: frozenset[str]
    rows: tuple[str, ...]
    """The same in order."""
    is_diff: bool
    files: frozenset[str]
    """The names of the files that it shows, without their folders."""
    missing_chars: int
    """How much of the result the trace as read does not keep."""


class Seen(Struct):
    """All that was shown, until whoever asks."""

    outside: list[Shown] = field(default_factory=list)
    inside: dict[str, int] = field(default_factory=dict)
    """When a line was first shown that stands in the working tree, or was said by a person."""
    past: set[str] = field(default_factory=set)
    """Commits that the base's own log names: older than the base."""
    by_file: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same of what reading a file showed."""
    asked: str = ""
    """What the person said."""


def seen(view: SessionView, written: Written) -> Seen:
    """What prompts and results showed, in order."""
    made = Seen()
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
        source = next(_sources(view, call, written, past), None)
        if source is None:
            in_file = made.by_file.setdefault(call.path, {}) if call.path and call.class_ == "read" else {}
            for line in _lines(text):
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


def _shown(call: ToolCall, event: Event, source: tuple[EditOrigin, str], text: str) -> Shown:
    if "\\n" in text:  # a string of JSON, or one that a program quoted
        text = f"{text}\n{_unescaped(text)}"
    is_diff = "\n@@ -" in text or text.startswith("@@ -")
    rows = text.split("\n")
    if is_diff:
        rows = [row[1:] for row in rows if row[:1] == "+" and row[:3] != "+++"]
    elif _DIFF.search(call.command or "") and _NORMAL_DIFF.search(text):
        is_diff, rows = True, [row[2:] for row in rows if row[:2] in ("> ", "< ")]
    lines = tuple(_lines("\n".join(rows)))
    return Shown(
        seq=call.seq,
        at=event.seq,
        origin=source[0],
        source=source[1],
        lines=frozenset(lines),
        rows=lines,
        is_diff=is_diff,
        files=frozenset(
            posixpath.basename(name) for name in (*_NAMED.findall(text), *re.split(r"[\s:()]+", source[1]))
        ),
        missing_chars=max(event.n_chars - len(text), 0),
    )


_DIFF = deferred_pattern(r"\bdiff\s")
_NORMAL_DIFF = deferred_pattern(r"^[<>] .*\n(?:[<>] |---$)", re.MULTILINE)


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')


def _sources(view: SessionView, call: ToolCall, written: Written, past: set[str]) -> Iterator[tuple[EditOrigin, str]]:
    """From where, if not from the working tree; a commit that the base's log names is of before."""
    if call.class_ == "web" or (call.class_ == "mcp" and _WEB_TOOL.search(call.name)):
        yield "network", (call.command or call.path or call.arguments)[:200]
    for source in outside(call.command or ""):
        hashes = HASH.findall(source.source)
        if source.origin != "repository" or not hashes or any(hash_[:7] not in past for hash_ in hashes):
            yield source.origin, source.source
    read = parse(call.command) if call.command else None
    for _, script in read.runs if read is not None else ():
        for source in of_code(written.texts.get(script, "")):
            yield source.origin, source.source
    path = call.path or (read.path if read is not None else None)
    if call.class_ not in ("read", "search", "shell"):
        return
    for folder, taken in written.carried.items():
        named = path or call.command or ""
        # Of a folder for everybody's files, only one that is read as a whole and that it did not write itself.
        is_there = folder in named if folder.count("/") > 1 else (path or "").startswith(f"{folder}/")
        if taken.seq < call.seq and is_there and path not in written.texts and path not in written.files:
            yield taken.origin, f"{path or folder} ({taken.source})"
    paths = [*([path] if path is not None else []), *named_like_answers(call.command or "")]
    for named in dict.fromkeys(paths):
        if is_scratch(named) or any(same_file(named, f) for f in written.files) or named in written.texts:
            continue
        if _TESTS.search(named) and not _elsewhere(view, named, written):
            continue
        if is_answer(view, named, written):
            yield "copied", named


def is_answer(view: SessionView, path: str, written: Written) -> bool:
    """Whether a file lies about that is named like an answer, elsewhere or, where that says it all, in the tree."""
    return bool(_IN_TREE.search(path)) or (_elsewhere(view, path, written) and bool(named_like_answers(path)))


def _elsewhere(view: SessionView, path: str, written: Written) -> bool:
    """Whether a file lies outside of the working tree; where nobody says where that is, by what was written."""
    if path[:1] not in "/~":
        return path.startswith("../")
    if view.session.cwd is not None:
        return not view.in_repo(path)
    return not any(file.split("/")[:2] == path.split("/")[:2] for file in written.files)


def _lines(text: str) -> Iterator[str]:
    for row in text.split("\n"):
        plain = _NUMBERED.sub("", row[: 2 * LONGEST_LINE], count=1).strip()[:LONGEST_LINE]
        if plain:
            yield plain
