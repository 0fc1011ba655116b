"""Which checks a command line runs (tests, builds, linters, type checkers), and whether its end says how they ended."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from agentsignals.shell.kinds import KINDS, kind_of, leading_words
from agentsignals.shell.programs import program, shell_text
from agentsignals.shell.tokens import simple_commands

_WORD = re.compile(r"[A-Za-z][\w:.-]*")
_FILE = re.compile(r"\.[A-Za-z]{1,5}$")
_QUIET = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\d?>&\d|&>|&&|\\\n")
_HIDES = re.compile(r"[|;&\n]")
"""What may come between a check and the end of its line: a pipe, another command whatever the check said, the
background."""
_PART = re.compile(
    r"^(?:-k|-m|-run|--run|-t|--filter|--grep|--testNamePattern|--tests|--only)\b|::|[\w*]\.[A-Za-z]{1,5}$"
)
"""An option that chooses tests, a test by its name, a file."""
_TASKS = 3
"""Words of a check's name: `npm run test:unit`, `cargo nextest run`."""


class Check(Struct, frozen=True):
    """A check, called as people call it: the command without options and without the files it is about."""

    name: str
    kind: Literal["test", "build"]
    is_part: bool = False
    """It was asked about some files or some tests alone."""


@lru_cache(maxsize=4096)
def checks(command: str) -> tuple[Check, ...]:
    """The checks of a command line, each once, in order."""
    made: dict[Check, None] = {}
    for line, _, _, _ in simple_commands(command):
        words = leading_words(line)
        text = shell_text(words) if words else None
        if text is not None and len(text) < len(command):
            made.update(dict.fromkeys(checks(text)))
            continue
        name = program(words[0]) if words else ""
        kind = (KINDS.get(name) or kind_of([name, *words[1:]], name)) if name else ""
        if kind in ("test", "build"):
            made[Check(_name(name, words[1:]), kind, any(map(_PART.search, words[1:])))] = None
    return tuple(made)


def tells_its_end(command: str) -> bool:
    """Whether the exit code of the line is that of its check: where it is 0 all commands joined by `&&` succeeded."""
    return _HIDES.search(_QUIET.sub("", command.strip())) is None


def _name(program_name: str, words: list[str]) -> str:
    named = [program_name]
    for word in words:
        if len(named) == _TASKS or not _WORD.fullmatch(word) or _FILE.search(word):
            break
        named.append(word)
        if KINDS.get(program_name) in ("test", "build"):
            break  # `ruff check`, `vitest run`: what follows is what it is about
    return " ".join(named)
