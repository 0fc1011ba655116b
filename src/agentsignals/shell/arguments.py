"""Words of a command, and the writes they describe."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from agentsignals.model import EditOp, EditOrigin
from agentsignals.model.lazy import deferred_pattern

UNRESOLVED = re.compile(r"[-&|\x02]|\Z|[^$`*?{}\n]*+[$`*?{}\n]").match
"""A word that the shell would expand, or no path at all. It is never reported."""

WHOLE_TREE = ":/"
"""Path of a write that resets all files at once (`git stash`, `git reset --hard`), as Git writes it."""


class Write(Struct, frozen=True, gc=False, kw_only=True):
    """A change that a command makes to a file, with its text if the words of the command hold it."""

    path: str
    op: EditOp
    how: Literal["", "whole", "append", "replace", "insert", "substitute", "patch"] = ""
    """Way in which `new` changes the file; empty if the text is unknown. `substitute`: in each line; `patch`: as a
    diff."""
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
    """Return sources with their targets. Several sources, or a last operand that is plainly a folder, go into a
    folder."""
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
    """Return the edits of `sed -i` whose script is plain text or numbers lines; of other scripts only the changed
    files."""
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
