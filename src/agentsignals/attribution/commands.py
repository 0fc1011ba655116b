"""What the words of a shell command say about the texts it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEREDOC = re.compile(
    r"(?:\bcat\b|\btee\b(?P<tee_append>[ \t]+-a\b)?)[ \t]*(?:(?P<to>>{1,2})[ \t]*)?"
    r"(?P<path>[^\s<>|&;'\"$`]+|'[^'\n]+'|\"[^\"$`\n]+\")?"
    r"[ \t]*<<-?[ \t]*(?P<quote>['\"\\]?)(?P<word>\w+)['\"]?(?P<rest>[^\n]*)\n"
)
_REDIRECTED = re.compile(r"(?P<to>>{1,2})[ \t]*(?P<path>[^\s<>|&;'\"$`]+|'[^'\n]+'|\"[^\"$`\n]+\")")
_SUBSTITUTION = re.compile(
    r"['\"\s]s(?P<by>[/|#,])(?P<old>[^/|#,\n]{1,300})(?P=by)(?P<new>[^/|#,\n]{0,300})(?P=by)(?P<flags>[gI]*)['\"\s]"
)
_SPECIAL = re.compile(r"[\\.*\[\]^$+?(){}]")
_QUIET_GIT = re.compile(
    r"\bgit\b(?:[ \t]+-\S+(?:[ \t]+[^\s-]\S*)?)*[ \t]+"
    r"(?:add|commit|mv|rm|status|diff|log|show|push|fetch|branch|rev-parse|blame)\b"
)
"""Commands of Git that leave the lines of files alone."""


def without_quiet_git(command: str) -> str:
    """A command without what it asks of Git that leaves the files alone."""
    return _QUIET_GIT.sub("", command)


def heredocs(command: str) -> Iterator[tuple[str, bool, str]]:
    """(file, whether it is appended to, text) of each here-document that `cat` or `tee` writes to a file.

    A text in which the shell would still put values in is given as it stands: few of its lines change.
    """
    at = 0
    while (match := _HEREDOC.search(command, at)) is not None:
        end = re.compile(rf"^\t*{match['word']}[ \t]*$", re.MULTILINE).search(command, match.end())
        stop = end.start() if end else len(command)
        at = end.end() if end else len(command)
        path, to = match["path"], match["to"]
        if match[0].startswith("cat") and (to is None or path is None):
            later = _REDIRECTED.search(match["rest"])
            path, to = (later["path"], later["to"]) if later else (None, None)
        if path is not None:
            appends = to == ">>" or bool(match["tee_append"])
            yield path.strip("'\""), appends, command[match.end() : stop]


def substitutions(command: str) -> Iterator[tuple[str, str, bool, str]]:
    """(text, its replacement, whether more than once in a line, what follows) of each `sed s/…/…/` of plain text."""
    if "sed" not in command:
        return
    for match in _SUBSTITUTION.finditer(command):
        old, new, flags = match["old"], match["new"], match["flags"]
        if old and not _SPECIAL.search(old) and "\\" not in new and "&" not in new:
            yield old, new, "g" in flags, command[match.end() : match.end() + 2000].partition("\n")[0]
