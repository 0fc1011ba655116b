"""Splits a command line as a shell would: words, output redirections, subshells. Nothing is run or expanded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

_LONG = 20_000
"""A command is read up to this length, without here-documents."""
_LONGEST = 1_000_000
_MAX_HEREDOCS = 50

_HEREDOC = re.compile(r"<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_]\w*))")
PATCH = "*** Begin Patch"
_PATCH = re.compile(r"\*\*\* Begin Patch.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_PIECES = r"(?:[^\s'\"\\;|&<>()$]+|\$(?:\{[^}\n]*\})?|'[^']*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"|\\.|['\"\\])"
_BARE = r"[!%*-:=?-Z\[\]^-{}~][!#%*-:=?-Z\[\]^-{}~]*+(?=[ \t\n;|&()])"
_TOKEN = re.compile(
    r"(?:(?:"
    rf"({_BARE}(?>(?:[ \t]++{_BARE})*))"  # words that mean what they say, as many as follow one another
    r"|('[^']*'|\"[^\"\\]*\")(?=[ \t\n;|&<>()])"  # a word in quotes
    r")(?>(?:[ \t]*+2>(?:&1|[ \t]*+/dev/null)(?=[ \t\n;|&)]))*)[ \t]*+(&&|\|\|?|[;\n])?"
    r"|(&&|\|[|&]?|;[;&]{0,2}|&(?!>)|[(\n]"
    r"|(?:\d+|&)?>>?\|?(?:&(?:\d+-?|-)|[ \t]*/dev/[a-z]+(?=[ \t\n;|&)]))?|&>>?|\d*<(?:<<|>|&(?:\d+-?|-))?"
    rf"|\){_PIECES}*)"  # what follows `$(…)` without a space is part of that word
    r"|#[^\n]*|\\\r?\n"  # a comment; a line that goes on
    rf"|({_PIECES}+)"
    r")[ \t]*+",
    re.DOTALL,
)
"""Words with the end of their command, if it follows; or an operator; or a word of pieces."""
_SEPARATORS = frozenset(("&&", "||", "|", "|&", ";", ";;", ";&", ";;;", ";;&", ";&;", ";&&", "&", "\n"))
_QUOTED = re.compile(r"'([^']*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"|\\(.)|([^'\"\\]+|.)", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r"\\(?:\n|([\"\\$`]))")
_NOWHERE = re.compile(r"/dev/|\$null$|(?i:nul)$|\d+$").match
"""Targets that are no files. A bare number is a comparison that looks like a redirection."""
_IN_HEREDOC = re.compile(r"\\(?:\n|([\\$`]))")
_MARK = "\x02"
"""First character of a word that replaces a here-document. No shell word begins so."""
_HAS_QUOTES = re.compile(r"['\"\\]").search


Simple = tuple[list[str], list["Target"], int, bool]
"""A simple command: words, redirected files, depth of subshells and substitutions, and whether a substitution
(`$(…)`, `<(…)`) runs it."""


class Target(str):
    """A file that output goes into, with its operator (`>`, `>>`, `2>` …)."""

    __slots__ = ("mark",)
    mark: str

    def __new__(cls, path: str, mark: str) -> Target:
        target = super().__new__(cls, path)
        target.mark = mark
        return target


class Split(NamedTuple):
    """The simple commands of a line; what ended each (`&&`, `|`, a line break …); their here-documents."""

    commands: Sequence[Simple]
    ends: Sequence[str]
    heredocs: dict[int, str]
    inputs: dict[int, str]


class _Open(Struct, gc=False):
    """State that an opening parenthesis interrupts; `words` is None unless it is a substitution."""

    words: list[str] | None
    targets: list[Target]


def simples(command: str) -> Sequence[Simple]:
    """Return the simple commands of a command line, in order, without here-documents."""
    return _split(command).commands


def _split(command: str) -> Split:
    commands: list[Simple] = []
    ends: list[str] = []
    bodies: list[str] = []
    opened: list[_Open] = []
    words: list[str] = []
    targets: list[Target] = []
    redirect, is_fed = "", False
    text = command
    if len(command) >= _LONG or "<<" in command:
        text = command[:_LONGEST]
        text = (_without_heredocs(text.replace(_MARK, " "), bodies) if "<<" in text else text)[:_LONG]
    for bare, quoted, end, mark, odd in _TOKEN.findall(text + "\n"):
        if not mark:
            tokens = bare.split() if bare else [quoted[1:-1]] if quoted else [unquoted(odd)] if odd else []
            if redirect and tokens:
                word = tokens.pop(0)
                if ">" in redirect and not _NOWHERE(word):
                    targets.append(Target(word, redirect))
                if redirect == "<":
                    words.append(f"{_MARK}<{word}")
                    is_fed = True
                redirect = ""
            words += tokens
            if not end:
                continue
        elif mark == "(" and (redirect or (words and words[-1].endswith("$"))):
            opened.append(_Open(words, targets))
            words, targets, redirect = [], [], ""
            continue
        elif mark not in _SEPARATORS and mark[0] not in "()":
            redirect = mark if mark[-1] in "<>|" else ""
            continue
        if words or targets:
            commands.append((words, targets, 0, False) if not opened else _enclosed(words, targets, opened))
            ends.append(end or mark)
            words, targets = [], []
        redirect = ""
        if mark == "(":
            opened.append(_Open(None, []))
        elif opened and mark[:1] == ")":
            outer = opened.pop()
            if outer.words is not None:
                words, targets = outer.words, outer.targets
    if opened:
        commands += [_enclosed(o.words, o.targets, opened) for o in reversed(opened) if o.words]
        ends += [""] * (len(commands) - len(ends))
    return _fed(commands, ends, bodies) if bodies or is_fed else Split(commands, ends, {}, {})


@lru_cache(maxsize=256)
def split(command: str) -> Split:
    """Split a line without its patches. The result is cached for all callers."""
    return _split(without_patches(command) if PATCH in command else command)


def simple_commands(command: str) -> Sequence[Simple]:
    return split(command).commands


def _fed(commands: list[Simple], ends: list[str], bodies: list[str]) -> Split:
    """Give each here-document and input file to the command whose words hold its mark. Of several here-documents the
    last is read."""
    fed: list[Simple] = []
    fed_ends: list[str] = []
    heredocs: dict[int, str] = {}
    inputs: dict[int, str] = {}
    for (words, targets, depth, substituted), end in zip(commands, ends, strict=True):
        plain = [word for word in words if word[:1] != _MARK]
        if plain or targets:
            marks = [word[1:] for word in words if word[:1] == _MARK]
            if marks and marks[-1].isdecimal() and int(marks[-1]) < len(bodies):
                heredocs[len(fed)] = bodies[int(marks[-1])]
            inputs |= {len(fed): mark[1:] for mark in marks if mark[:1] == "<"}
            fed.append((plain, targets, depth, substituted))
            fed_ends.append(end)
    return Split(fed, fed_ends, heredocs, inputs)


def _enclosed(words: list[str], targets: list[Target], opened: list[_Open]) -> Simple:
    return words, targets, len(opened), any(o.words is not None for o in opened)


def unquoted(word: str) -> str:
    """Remove the quotes of a word. A backslash before a letter stays: it is rather a Windows path than an escape."""
    if not _HAS_QUOTES(word):
        return word
    if word[0] == '"' and word.find('"', 1) == len(word) - 1 and word[-2] != "\\":
        return _IN_DOUBLE_QUOTES.sub(r"\1", word[1:-1])
    plain = []
    for single, double, escaped, bare in _QUOTED.findall(word):
        if double:
            plain.append(_IN_DOUBLE_QUOTES.sub(r"\1", double) if "\\" in double else double)
        elif escaped:
            plain.append(f"\\{escaped}" if escaped.isalnum() else ("" if escaped == "\n" else escaped))
        else:
            plain.append(single or bare)
    return "".join(plain)


def without_patches(command: str) -> str:
    """Remove the envelopes of `apply_patch`, which may hold anything."""
    return _PATCH.sub("", command[:_LONGEST])


def _without_heredocs(text: str, bodies: list[str]) -> str:
    """Replace each here-document by a mark, and add its text to `bodies`."""
    at = 0
    for _ in range(_MAX_HEREDOCS):
        match = _HEREDOC.search(text, at)
        if match is None:
            break
        at = match.end()
        line_end = text.find("\n", at)
        if line_end < 0:
            break
        if text[match.start() - 1 : match.start()] == "<":  # a here-string
            continue
        word = match.group(1) or match.group(2) or match.group(3)
        end = re.compile(rf"\n[ \t]*{re.escape(word)}(?=[\s)\"`]|\Z)").search(text, line_end)
        if end is not None:
            is_literal = match.group(3) is None or "\\" in match.group(0)
            body = text[line_end + 1 : end.start() + 1]
            if match.group(0)[2] == "-":
                body = re.sub(r"(?m)^\t+", "", body)
            mark = f" {_MARK}{len(bodies)} "
            bodies.append(body if is_literal else _IN_HEREDOC.sub(r"\1", body))
            text = text[: match.start()] + mark + text[at:line_end] + text[end.end() :]
            at = match.start() + len(mark)
    return text
