"""A shell command line split as a shell would: words, output redirections, subshells. Nothing is run or expanded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

_LONG = 20_000
"""A command is read up to this length, here-document bodies left out."""
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
"""Words with the end of their command, if that follows; or an operator; or a word of pieces."""
_SEPARATORS = frozenset(("&&", "||", "|", "|&", ";", ";;", ";&", ";;;", ";;&", ";&;", ";&&", "&", "\n"))
_QUOTED = re.compile(r"'([^']*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"|\\(.)|([^'\"\\]+|.)", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r"\\(?:\n|([\"\\$`]))")
_NOWHERE = re.compile(r"/dev/|\$null$|(?i:nul)$|\d+$").match
"""Where output goes without a file being written; a bare number is a comparison that was taken for a redirection."""
_HAS_QUOTES = re.compile(r"['\"\\]").search


Simple = tuple[list[str], list[str], int, bool]
"""One simple command: its words, the files its output is redirected to, how many subshells and substitutions enclose
it, and whether it runs inside `$(…)` or `<(…)`: only for another command's sake."""


class _Open(Struct, gc=False):
    """What an opening parenthesis interrupted; `words` is None when it was no substitution."""

    words: list[str] | None
    targets: list[str]


def simples(command: str) -> list[Simple]:
    """The simple commands of a command line, in order; here-document bodies left out."""
    commands: list[Simple] = []
    opened: list[_Open] = []
    words: list[str] = []
    targets: list[str] = []
    redirect = ""
    text = command if len(command) < _LONG and "<<" not in command else _shortened(command)
    for bare, quoted, end, mark, odd in _TOKEN.findall(text + "\n"):
        if not mark:
            tokens = bare.split() if bare else [quoted[1:-1]] if quoted else [unquoted(odd)] if odd else []
            if redirect and tokens:
                word = tokens.pop(0)
                if ">" in redirect and not _NOWHERE(word):
                    targets.append(word)
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
    return commands


@lru_cache(maxsize=256)
def simple_commands(command: str) -> Sequence[Simple]:
    """The simple commands of a line without its patches, for all who ask about it: it is split once."""
    return simples(without_patches(command) if PATCH in command else command)


def _enclosed(words: list[str], targets: list[str], opened: list[_Open]) -> Simple:
    return words, targets, len(opened), any(o.words is not None for o in opened)


def unquoted(word: str) -> str:
    """A word without its quotes. A backslash before a letter stays: it is rather a Windows path than an escape."""
    if not _HAS_QUOTES(word):
        return word
    if word[0] == '"' and word.find('"', 1) == len(word) - 1 and word[-2] != "\\":
        return _IN_DOUBLE_QUOTES.sub(r"\1", word[1:-1])
    return "".join(map(_plain, _QUOTED.findall(word)))


def _plain(piece: tuple[str, str, str, str]) -> str:
    single, double, escaped, bare = piece
    if double:
        return _IN_DOUBLE_QUOTES.sub(r"\1", double) if "\\" in double else double
    if escaped:
        return f"\\{escaped}" if escaped.isalnum() else ("" if escaped == "\n" else escaped)
    return single or bare


def without_patches(command: str) -> str:
    """Without the envelopes of `apply_patch`, which may hold anything."""
    return _PATCH.sub("", command[:_LONGEST])


def _shortened(command: str) -> str:
    text = command[:_LONGEST]
    return (_without_heredocs(text) if "<<" in text else text)[:_LONG]


def _without_heredocs(text: str) -> str:
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
        body = re.compile(rf"\n[ \t]*{re.escape(word)}(?=[\s)\"`]|\Z)").search(text, line_end)
        if body is not None:
            text = text[: match.start()] + text[at:line_end] + text[body.end() :]
            at = match.start()
    return text
