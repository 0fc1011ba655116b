"""Whether a command line ends in a search, whose exit status tells "nothing found" from a failure.

grep (POSIX), ripgrep, ag, `git grep` and their kind exit with 1 when they found nothing and with 2 when they failed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from agentsignals.shell import program
from agentsignals.shell.kinds import leading_words
from agentsignals.shell.tokens import Simple, simples, without_patches
from agentsignals.shell.writes import names

_SEARCHES = names("rg grep egrep fgrep zgrep ag ack fd fdfind find findstr select-string which whereis locate pgrep")
_SHELLS = names("bash sh zsh dash ksh")
_SHELL_TEXT = names("-c -lc -ic")
_QUIET = names("-q --quiet --silent -s")
_ACTS = names("-exec -execdir -ok -okdir -delete -fprint -fprintf -fls")
_XARGS_SAYS = 123
"""GNU xargs exits so when a command that it ran exited with 1 to 125 (its manual, "Exit status")."""

Search = Literal["prints", "quiet"]
"""`quiet`: it was asked to print nothing, or into a file, or to act on what it finds."""


def found_nothing(command: str, code: int) -> bool:
    """Whether that exit status, on a command that printed nothing, says that its search found nothing."""
    last = _last(command)
    if last is None or search_of(command) is None:
        return False
    return code == 1 or (code == _XARGS_SAYS and "xargs" in last[0])


@lru_cache(maxsize=4096)
def search_of(command: str) -> Search | None:
    """The search that the last simple command is; None when it is none. A negated one (`! grep`) says the opposite."""
    last = _last(command)
    if last is None or last[0][:1] == ["!"]:
        return None
    words = leading_words(last[0])
    name = program(words[0]) if words else ""
    if name in _SHELLS and len(words) > 2 and words[-2] in _SHELL_TEXT:
        return search_of(words[-1])
    if name == "git":
        words = _git(words)
        name = "grep" if words[:1] == ["grep"] else ""
    if name not in _SEARCHES:
        return None
    options = set(words[1:])
    acts = name in ("find", "fd", "fdfind") and not options.isdisjoint(_ACTS | {"-x", "-X", "--exec"})
    return "quiet" if last[1] or acts or not options.isdisjoint(_QUIET) else "prints"


@lru_cache(maxsize=4096)
def _last(command: str) -> Simple | None:
    """The last simple command that is not run for another's sake (`$(…)`)."""
    return next((s for s in reversed(simples(without_patches(command))) if s[0] and not s[3]), None)


def _git(words: list[str]) -> list[str]:
    """The words from Git's own verb on."""
    n = 1
    while n < len(words) and words[n][:1] == "-":
        n += 2 if words[n] in ("-C", "-c") else 1
    return words[n:]
