"""What a command prints, for the file that its output goes into: the text where its words tell it, else where the text
is from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from agentsignals.model import EditOrigin
from agentsignals.shell.git_commands import git_verb
from agentsignals.shell.tokens import Heredoc
from agentsignals.shell.writing import UNRESOLVED, names, operands

_SHOWS = names("show cat-file diff log archive format-patch blame")
_OBJECTS = names("blob tree commit tag")
_FETCHES = names("curl wget http https xh gh glab iwr irm invoke-webrequest invoke-restmethod")
_PASSES_ON = names(
    "tee cat sed gsed awk head tail grep egrep sort uniq tr cut jq yq base64 gunzip xz tar python python3 node"
)
"""Print what they are fed, or a part of it."""
_EXPANDED = re.compile(r"[$`]").search
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "r": "\r"}
_ESCAPE = re.compile(r"\\([nt\\\"'r])")


class Output(Struct, frozen=True, gc=False):
    """A text, None when it is not told, and where it is from."""

    text: str | None
    origin: EditOrigin
    source: str | None = None


def printed(  # noqa: PLR0911  (one for each kind of command)
    words: Sequence[str], name: str, heredoc: Heredoc | None, fed: Output | None
) -> Output:
    """What a command prints; `fed` is what it reads from the command before it, through a pipe."""
    if heredoc is not None and name in ("cat", "tee"):
        return Output(heredoc.text, "written")
    if name in ("echo", "printf", "write-output"):
        text = _echoed(words) if name != "printf" else _formatted(words)
        return Output(text, "written") if text is not None else Output(None, "program", name)
    if name in _FETCHES:
        return Output(None, "network", next((w for w in words[1:] if "://" in w), name))
    if name == "git":
        verb = git_verb(words)
        if verb[:1] and verb[0] in _SHOWS:
            shown = next((w for w in verb[1:] if w[:1] != "-" and w not in _OBJECTS), verb[0])
            return Output(None, "repository", shown)
    if name in ("cat", "tee") and fed is not None and not operands(words)[name == "tee" :]:
        return fed
    if name == "tee" and fed is not None:
        return fed
    if name == "cat" and len(files := operands(words)) == 1 and not UNRESOLVED(files[0]):
        return Output(None, "copied", files[0])
    if fed is not None and name in _PASSES_ON and fed.origin != "written":
        return Output(None, fed.origin, fed.source)
    return Output(None, "program", name or None)


def _echoed(words: Sequence[str]) -> str | None:
    n, escapes, ends = 1, False, "\n"
    while n < len(words) and re.fullmatch(r"-[neE]+", words[n]):
        ends, escapes = "" if "n" in words[n] else ends, escapes or "e" in words[n]
        n += 1
    text = " ".join(words[n:])
    if _EXPANDED(text):
        return None
    return (_unescaped(text) if escapes else text) + ends


def _formatted(words: Sequence[str]) -> str | None:
    arguments = list(words[2:] if words[1:2] == ["--"] else words[1:])
    if not arguments or any(map(_EXPANDED, arguments)):
        return None
    form, *values = arguments
    if "%" not in form.replace("%%", ""):
        return _unescaped(form).replace("%%", "%")
    rest = _unescaped(form.replace("%s", ""))
    if form.count("%s") == 1 and "%" not in rest and values:
        return "".join(_unescaped(form).replace("%s", value) for value in values)
    return None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text)
