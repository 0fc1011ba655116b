"""Whether a command line ends in a search, whose exit status tells "nothing found" from a failure.

grep (POSIX), ripgrep, ag, `git grep` and their kind exit with 1 when they found nothing and with 2 when they failed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from agentsignals.shell.kinds import leading_words
from agentsignals.shell.programs import program
from agentsignals.shell.tokens import Simple, simple_commands, simples
from agentsignals.shell.writing import names

_SEARCHES = names("rg grep egrep fgrep zgrep ag ack fd fdfind find findstr select-string which whereis locate pgrep")
_SHELLS = names("bash sh zsh dash ksh")
_SHELL_TEXT = names("-c -lc -ic")
_QUIET = names("-q --quiet --silent -s")
_ACTS = names("-exec -execdir -ok -okdir -delete -fprint -fprintf -fls")
_XARGS_SAYS = 123
"""GNU xargs exits so when a command that it ran exited with 1 to 125 (its manual, "Exit status")."""

_GREPS = names("rg grep egrep fgrep zgrep pgrep")
"""By their manuals these fail with another status than 1, which says "nothing found"."""
_COUNTS = re.compile(r"--count(?:-matches)?|-[A-Za-z]*c[A-Za-z]*").fullmatch
_ZERO = re.compile(r"^(?:.*:)?0$", re.MULTILINE)
_STOPS_EARLY = re.compile(r"\bset +-\w*e").search
_PARTS = re.compile(r"[;\n]").finditer
_LOOKED_BACK = 8
"""So many signs that part commands are tried, from the last: most of what is asked for has one, and none in quotes."""

Search = Literal["prints", "quiet"]
"""`quiet`: it was asked to print nothing, or into a file, or to act on what it finds."""


def found_nothing(command: str, code: int) -> bool:
    """Whether that exit status, on a command that printed nothing, says that its search found nothing."""
    last = _last(command)
    if last is None or search_of(command) is None:
        return False
    return code == 1 or (code == _XARGS_SAYS and "xargs" in last[0])


def tells_alone(command: str) -> bool:
    """Whether the exit status is that of a last grep whatever else ran and printed: it stands alone behind a `;`."""
    last = _last(command)
    words = _words(last)
    if last is None or last[2] or _STOPS_EARLY(command):
        return False
    if _runs_text(words):
        return len(simples(command)) == 1 and tells_alone(words[-1])
    if program(words[0] if words else "") not in _GREPS:
        return False
    line = command.strip()
    # A `;` in quotes parts nothing: what follows that one is another command, or none.
    return any(simples(line[part.end() :]) == [last] for part in list(_PARTS(line))[-_LOOKED_BACK:])


def without_zeros(command: str, text: str) -> str:
    """What was printed, less the zeros of a search that counts its hits."""
    words = _words(_last(command))
    counts = program(words[0] if words else "") in _GREPS and any(map(_COUNTS, words[1:]))
    return _ZERO.sub("", text) if counts else text


@lru_cache(maxsize=4096)
def search_of(command: str) -> Search | None:
    """The search that the last simple command is; None when it is none. A negated one (`! grep`) says the opposite."""
    last = _last(command)
    words = _words(last)
    if last is None or not words:
        return None
    if _runs_text(words):
        return search_of(words[-1])
    name = program(words[0])
    if name not in _SEARCHES:
        return None
    options = set(words[1:])
    acts = name in ("find", "fd", "fdfind") and not options.isdisjoint(_ACTS | {"-x", "-X", "--exec"})
    return "quiet" if last[1] or acts or not options.isdisjoint(_QUIET) else "prints"


def _words(last: Simple | None) -> list[str]:
    """The program and its arguments, `git grep` as `grep`; none of a negated command."""
    words = leading_words(last[0]) if last is not None and last[0][:1] != ["!"] else []
    return _git(words) if words and program(words[0]) == "git" else words


def _runs_text(words: list[str]) -> bool:
    """Whether it is a shell that is given its line (`bash -lc '…'`)."""
    return len(words) > 2 and words[-2] in _SHELL_TEXT and program(words[0]) in _SHELLS


@lru_cache(maxsize=4096)
def _last(command: str) -> Simple | None:
    """The last simple command that is not run for another's sake (`$(…)`)."""
    return next((s for s in reversed(simple_commands(command)) if s[0] and not s[3]), None)


def _git(words: list[str]) -> list[str]:
    """The words from Git's own verb on, where that is `grep`."""
    n = 1
    while n < len(words) and words[n][:1] == "-":
        n += 2 if words[n] in ("-C", "-c") else 1
    return words[n:] if words[n : n + 1] == ["grep"] else []
