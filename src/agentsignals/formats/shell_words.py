"""A shell command line split as a shell would: words, output redirections, subshells. Nothing is run or expanded."""

from __future__ import annotations

import re

from msgspec import Struct

_LONG = 20_000
"""A command is read up to this length, here-document bodies left out."""
_LONGEST = 1_000_000
_MAX_HEREDOCS = 50

_HEREDOC = re.compile(r"<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_]\w*))")
_PATCH = re.compile(r"\*\*\* Begin Patch.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_PIECES = r"(?:[^\s'\"\\;|&<>()$]+|\$(?:\{[^}\n]*\})?|'[^']*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"|\\.|['\"\\])"
_TOKEN = re.compile(
    r"(?:"
    rf"([A-Za-z_./\-~=%@+,:{{}}!\[\]^*?][^\s'\"\\;|&<>()$]*+(?:{_PIECES}+)?)"  # a word, begun as most words are
    r"|((?:\d+|&)?>>?\|?(?:&(?:\d+-?|-))?|&>>?|\d*<(?:<<|>|&(?:\d+-?|-))?)"
    rf"|(&&|\|[|&]?|;[;&]{{0,2}}|[&(\n]|\){_PIECES}*)"  # what follows `$(…)` without a space is part of that word
    r"|#[^\n]*|\\\r?\n"  # a comment; a line that goes on
    rf"|({_PIECES}+)"
    r")[ \t]*+",
    re.DOTALL,
)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"|\\(.)|([^'\"\\]+|.)", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r"\\(?:\n|([\"\\$`]))")
_NOWHERE = re.compile(r"/dev/|\$null$|(?i:nul)$|\d+$").match
"""Where output goes without a file being written; a bare number is a comparison that was taken for a redirection."""
_HAS_QUOTES = re.compile(r"['\"\\]").search


class Simple(Struct, gc=False):
    """One simple command: its words, the files its output is redirected to, and where it stands."""

    words: list[str]
    targets: list[str]
    depth: int
    """How many subshells and substitutions enclose it."""
    substituted: bool
    """It runs inside `$(…)` or `<(…)`: only for another command's sake."""


class _Open(Struct, gc=False):
    """What an opening parenthesis interrupted; `words` is None when it was no substitution."""

    words: list[str] | None
    targets: list[str]


def simples(command: str) -> list[Simple]:
    """The simple commands of a command line, in order; here-document bodies and patch envelopes left out."""
    found: list[Simple] = []
    opened: list[_Open] = []
    words: list[str] = []
    targets: list[str] = []
    redirect = ""
    for plain, operator, mark, odd in _TOKEN.findall(_without_bodies(command) + "\n"):
        if word := plain or odd:
            if _HAS_QUOTES(word):
                word = unquoted(word)
            if not redirect:
                words.append(word)
            elif ">" in redirect and not _NOWHERE(word):
                targets.append(word)
            redirect = ""
        elif operator:
            redirect = "" if operator[-1] in "0123456789-" else operator
        elif mark == "(" and (redirect or (words and words[-1].endswith("$"))):
            opened.append(_Open(words, targets))
            words, targets, redirect = [], [], ""
        elif mark:
            if words or targets:
                found.append(_simple(words, targets, opened))
                words, targets = [], []
            redirect = ""
            if mark == "(":
                opened.append(_Open(None, []))
            elif mark[0] == ")" and opened:
                outer = opened.pop()
                if outer.words is not None:
                    words, targets = outer.words, outer.targets
    return found + [_simple(o.words, o.targets, opened) for o in reversed(opened) if o.words]


def _simple(words: list[str], targets: list[str], opened: list[_Open]) -> Simple:
    return Simple(words, targets, len(opened), any(o.words is not None for o in opened) if opened else False)


def unquoted(word: str) -> str:
    """A word without its quotes. A backslash before a letter stays: it is rather a Windows path than an escape."""
    quote = word[0]
    if quote in "'\"" and word.find(quote, 1) == len(word) - 1 and "\\" not in word:
        return word[1:-1]
    return "".join(map(_plain, _QUOTED.findall(word)))


def _plain(piece: tuple[str, str, str, str]) -> str:
    single, double, escaped, bare = piece
    if double:
        return _IN_DOUBLE_QUOTES.sub(r"\1", double) if "\\" in double else double
    if escaped:
        return f"\\{escaped}" if escaped.isalnum() else ("" if escaped == "\n" else escaped)
    return single or bare


def _without_bodies(command: str) -> str:
    text = command[:_LONGEST]
    if "*** Begin Patch" in text:
        text = _PATCH.sub("", text)
    if "<<" in text:
        text = _without_heredocs(text)
    return text[:_LONG]


def _without_heredocs(text: str) -> str:
    at = 0
    for _ in range(_MAX_HEREDOCS):
        found = _HEREDOC.search(text, at)
        if found is None:
            break
        at = found.end()
        line_end = text.find("\n", at)
        if line_end < 0:
            break
        if text[found.start() - 1 : found.start()] == "<":  # a here-string
            continue
        word = found.group(1) or found.group(2) or found.group(3)
        body = re.compile(rf"\n[ \t]*{re.escape(word)}(?=[\s)\"`]|\Z)").search(text, line_end)
        if body is not None:
            text = text[: found.start()] + text[at:line_end] + text[body.end() :]
            at = found.start()
    return text
