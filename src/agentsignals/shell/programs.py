"""Which program a command runs, and the line that a shell is given."""

from __future__ import annotations

import re

from agentsignals.shell.writing import names

_SHELLS = names("bash sh zsh dash ksh pwsh powershell")
_RUNS_TEXT = re.compile(r"-(?:[a-z]*c|-?command)$", re.IGNORECASE).match


def program(word: str) -> str:
    """The name of a program: no folder, no `.exe`, PowerShell's cmdlets in lower case."""
    if word.isalnum():
        return word
    name = word[max(word.rfind("/"), word.rfind("\\")) + 1 :]
    if name.endswith((".exe", ".cmd", ".bat", ".EXE")):
        name = name[:-4]
    return name.lower() if "-" in name and name[:1].isupper() else name


def shell_text(words: list[str]) -> str | None:
    """The line that a shell is given to run (`bash -lc TEXT`); None where it is given none, or is no shell."""
    if program(words[0]) in _SHELLS:
        for n, word in enumerate(words[1:-1], 1):
            if _RUNS_TEXT(word):
                return words[n + 1]
            if not word.startswith("-"):
                break
    return None
