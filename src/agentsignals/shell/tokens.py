"""Splits a command line as a shell would (words, output redirections, subshells), and reads patches and `sed -i` in
it. Nothing is run or expanded."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from agentsignals.model import EditOp, EditOrigin
from agentsignals.model.lazy import deferred_pattern

_LONG = 20_000
"""A command is read up to this length, without here-documents."""
_LONGEST = 1_000_000
_MAX_HEREDOCS = 50

_HEREDOC = deferred_pattern(r"<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_]\w*))")
PATCH = "*** Begin Patch"
_PATCH = deferred_pattern(r"\*\*\* Begin Patch.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_PIECES = r"(?:[^\s'\"\\;|&<>()$]+|\$(?:\{[^}\n]*\})?|'[^']*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"|\\.|['\"\\])"
_BARE = r"[!%*-:=?-Z\[\]^-{}~][!#%*-:=?-Z\[\]^-{}~]*+(?=[ \t\n;|&()])"
_TOKEN = deferred_pattern(
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
_QUOTED = deferred_pattern(r"'([^']*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"|\\(.)|([^'\"\\]+|.)", re.DOTALL)
_IN_DOUBLE_QUOTES = deferred_pattern(r"\\(?:\n|([\"\\$`]))")
_NOWHERE = re.compile(r"/dev/|\$null$|(?i:nul)$|\d+$").match
"""Targets that are no files. A bare number is a comparison that looks like a redirection."""
_IN_HEREDOC = deferred_pattern(r"\\(?:\n|([\\$`]))")
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
    """Split a command line into simple commands with their redirections, separators and here-documents."""
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
    return _split(_PATCH.sub("", command[:_LONGEST]) if PATCH in command else command)  # a patch may hold anything


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


UNRESOLVED = re.compile(r"[-&|\x02]|\Z|[^$`*?{}\n]*+[$`*?{}\n]").match
"""A word that the shell would expand, or no path at all. It is never reported."""

WHOLE_TREE = ":/"
"""Path of a write that resets all files at once (`git stash`, `git reset --hard`), as Git writes it."""


class Write(Struct, frozen=True, gc=False, kw_only=True):
    """A change that a command makes to a file, with its text if the words of the command hold it."""

    path: str
    op: EditOp
    how: Literal["", "whole", "append", "replace", "insert", "substitute", "patch"] = ""
    """How `new` changes the file; empty if the text is unknown. `substitute`: in each line; `patch`: as a diff."""
    new: str = ""
    old: str = ""
    everywhere: bool = False
    line: int | None = None
    n_old: int = 0
    origin: EditOrigin | None = None
    source: str | None = None
    """The file, revision, address or program that the text is from."""
    is_sure: bool = False
    """True if it was done even if the line as a whole failed."""


Writes = list[Write]


def names(text: str) -> frozenset[str]:
    """A set of words, written as one text."""
    return frozenset(text.split())


TABLES = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8"))


def vocabulary(table: str) -> dict[str, frozenset[str]]:
    """The sets of words of a table of `vocabulary.toml`."""
    return {name: names(text) for name, text in TABLES[table]["words"].items()}


def patterns(table: str) -> dict[str, re.Pattern[str]]:
    return {name: deferred_pattern(text.replace("\n", "")) for name, text in TABLES[table]["patterns"].items()}


def operands(words: Sequence[str], valued: frozenset[str] = frozenset()) -> list[str]:
    """Return the words after the first that are neither options nor values of the options in `valued`."""
    kept: list[str] = []
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word[:1] == "-" and word != "-":
            skip = word in valued
        else:
            kept.append(word)
    return kept


def pairs(paths: list[str]) -> list[tuple[str, str]]:
    """Return sources with targets. Several sources, or a last operand that is plainly a folder, go into a folder."""
    *sources, last = paths or [""]
    if len(sources) > 1 or last.endswith("/") or last in (".", ".."):
        return [(s, posixpath.join(last, posixpath.basename(s.rstrip("/")))) for s in sources if not UNRESOLVED(s)]
    return [(s, last) for s in sources]


# -- programs, and the lines that shells are given ---------------------------------------------------------------------

_SHELLS = names("bash sh zsh dash ksh pwsh powershell")
_RUNS_TEXT = re.compile(r"-(?:[a-z]*c|-?command)$", re.IGNORECASE).match


def program(word: str) -> str:
    """Return the name of a program without folder and `.exe`; PowerShell's cmdlets in lower case."""
    if word.isalnum():
        return word
    name = word[max(word.rfind("/"), word.rfind("\\")) + 1 :]
    if name.endswith((".exe", ".cmd", ".bat", ".EXE")):
        name = name[:-4]
    return name.lower() if "-" in name and name[:1].isupper() else name


def shell_text(words: list[str]) -> str | None:
    """Return the line that a shell is given to run (`bash -lc TEXT`), or None."""
    if program(words[0]) in _SHELLS:
        for n, word in enumerate(words[1:-1], 1):
            if _RUNS_TEXT(word):
                return words[n + 1]
            if not word.startswith("-"):
                break
    return None


# -- in-place edits of `sed` and `perl` --------------------------------------------------------------------------------

_IN_PLACE = re.compile(r"-(?:[a-zA-Z]*i|-in-place)").match
_PERL_IN_PLACE = re.compile(r"-[0-9lpnaws]*i").match
_CLUSTER = re.compile(r"-[a-zA-Z0-9]*e$").match
"""Short options that end in `e`: the script follows, as after `-e`."""


def in_place(words: Sequence[str]) -> bool:
    """Return whether `sed`, `perl` or `ruby` edit their files in place."""
    edits = _IN_PLACE if words[0].endswith("sed") else _PERL_IN_PLACE
    return any(map(edits, [word for word in words if word[:1] == "-" and "i" in word]))


def scripts_and_files(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The scripts and files of `sed SCRIPT FILE...` or `sed -e SCRIPT FILE...`. The empty word of a macOS `-i ''` is no
    script."""
    files: list[str] = []
    scripts: list[str] = []
    named = valued = False
    for word in words[1:]:
        if valued:
            valued = False
            scripts.append(word)
        elif word[:1] == "-" and word != "-":
            valued = word in _SCRIPT_OPTIONS or (word[-1] == "e" and _CLUSTER(word) is not None)
            if word.startswith("--expression="):
                scripts.append(word[len("--expression=") :])
            named = named or valued or word.startswith(("--expression=", "--file="))
        elif word:
            files.append(word)
    return (scripts, files) if named else (files[:1], files[1:])


_EXTENDED = names("-E -r --regexp-extended -Ei -ri -iE -ir")
_SCRIPT_OPTIONS = names("-e -f --expression --file")
_SUBSTITUTION = re.compile(
    r"(\d+)?s([/|#,@!])(?P<old>(?:(?!\2).){1,300})\2(?P<new>(?:(?!\2).){0,300})\2([gI]*)"
).fullmatch
_WRITTEN: EditOrigin = "written"
_OF_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?([daic])(?:\\\n|[ \t]*)(.*)", re.DOTALL).fullmatch
_SPECIAL = re.compile(r"[\\*\[\]^$]").search
_SPECIAL_EXTENDED = re.compile(r"[\\*\[\]^$+?(){}|]").search


def edited_in_place(words: Sequence[str]) -> Writes:
    """Return the edits of `sed -i` whose script is plain text or numbers lines; of others only the changed files."""
    scripts, files = scripts_and_files(words)
    is_basic = words[0].endswith("sed") and _EXTENDED.isdisjoint(words)
    special = _SPECIAL if is_basic else _SPECIAL_EXTENDED
    parts = [part for script in scripts for part in script.strip().split(";\n" if "\\" in script else ";")]
    changes: Writes = []
    for part in parts if words[0] != "ruby" else ():
        match, change = _SUBSTITUTION(part.strip()), None
        if match is not None and not special(match["old"]) and "\\" not in match["new"] and "&" not in match["new"]:
            change = Write(
                path="", op="modify", how="substitute", old=match["old"], new=match["new"], everywhere="g" in match[5],
                line=int(match[1]) if match[1] else None, n_old=1 if match[1] else 0, origin="written",
            )  # fmt: skip
        elif len(parts) == 1:
            change = _of_lines(part.strip())
        if change is None or (change.line is not None and len(parts) > 1):
            changes = []
            break
        changes.append(change)
    changes = changes or [Write(path="", op="modify", origin="program", source=words[0])]
    return [structs.replace(change, path=path) for path in files for change in changes]


def _of_lines(script: str) -> Write | None:
    """Read `3d`, `3,7d`, `3a text`, `3i text`, `3c text`."""
    match = _OF_LINES(script)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    deed, text = match[3], match[4]
    if last >= first > 0 and (deed == "c" or (deed == "d" and not text)):
        new, origin = (text + "\n", _WRITTEN) if deed == "c" else ("", None)
        return Write(path="", op="modify", how="replace", line=first, n_old=last - first + 1, new=new, origin=origin)
    if deed in "ai" and match[2] is None and text:
        line = max(first if deed == "a" else first - 1, 0)
        return Write(path="", op="modify", how="insert", line=line, new=text + "\n", origin="written")
    return None
