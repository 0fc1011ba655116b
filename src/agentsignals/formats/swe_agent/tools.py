"""SWE-agent's tools: what an action does, in shared words.

Models with function calling name a tool and its arguments; the others write a command line, which is a tool's when it
begins with the name of one and the shell's otherwise.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.formats.records import UNREADABLE
from agentsignals.formats.swe_agent.profile import PROFILE
from agentsignals.formats.swe_agent.records import Call, as_text
from agentsignals.formats.tools import Tool

WINDOWED = frozenset(("open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert"))
"""Those that work on the open file and show a window of it."""
_POSITIONAL: dict[str, tuple[str, ...]] = {
    "open": ("path", "line_number"),
    "goto": ("line_number",),
    "create": ("filename",),
    "insert": ("text", "line"),
    "find_file": ("file_name", "dir"),
    "search_dir": ("search_term", "dir"),
    "search_file": ("search_term", "file"),
    "filemap": ("file_path",),
    "view_image": ("image_file",),
    "set_cursors": ("start_line", "end_line"),
}
_RANGE = re.compile(r"edit[ \t]+(\d{1,9}):(\d{1,9})[ \t]*[^\n]{0,300}(?:\n|$)")
_END_OF_EDIT = "end_of_edit"
_LONGEST_SPLIT = 200_000


class Action(Struct):
    """One action: the tool, its arguments by name, and the same as JSON text."""

    name: str
    options: dict[str, Any]
    arguments: str

    @property
    def tool(self) -> Tool | None:
        return PROFILE.tool(self.name)

    @property
    def path(self) -> str | None:
        """The file or folder among the arguments."""
        for key in ("path", "filename", "file", "file_path", "dir", "image_file"):
            value = self.options.get(key)
            if isinstance(value, str) and value:
                return value
        return None

    def text(self, name: str) -> str:
        return as_text(self.options.get(name))

    def number(self, name: str) -> int | None:
        """A line number; agents write it as a number or as text."""
        value = self.options.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            value = int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def called(call: Call) -> Action | None:
    """The action of a function call; None when it names no tool."""
    function = call.function
    if function is None or not isinstance(function.name, str):
        return None
    arguments = function.arguments if isinstance(function.arguments, str) else _dumped(function.arguments or {})
    try:
        decoded = msgspec.json.decode(arguments)
    except UNREADABLE:
        decoded = None
    return Action(function.name, decoded if isinstance(decoded, dict) else {}, arguments)


def written(line: str) -> Action:
    """The action of a command line."""
    verb = line.split(None, 1)[0] if line.strip() else ""
    if verb not in PROFILE.tools or verb == "bash":
        arguments: dict[str, Any] = {"command": line}
        return Action("bash", arguments, _dumped(arguments))
    arguments = _edit(line) if verb == "edit" else _options(verb, line)
    return Action(verb, arguments, _dumped(arguments))


def _edit(line: str) -> dict[str, Any]:
    """`edit 3:5` or `edit` with the new text below, up to `end_of_edit`; or `edit 'old' 'new' [all]`."""
    first, _, below = line.partition("\n")
    text = below.removesuffix("\n").removesuffix(_END_OF_EDIT)
    at = _RANGE.match(line)
    if at:
        return {"start_line": int(at[1]), "end_line": int(at[2]), "replacement_text": text}
    if first.strip() == "edit":
        return {"replacement_text": text}
    words = _words(line)[1:]
    return dict(zip(("search", "replace", "replace-all"), words, strict=False))


def _options(verb: str, line: str) -> dict[str, Any]:
    words = _words(line)[1:]
    if verb != "str_replace_editor":
        return dict(zip(_POSITIONAL.get(verb, ("argument",)), words, strict=False))
    options: dict[str, Any] = dict(zip(("command", "path"), words, strict=False))
    key = ""
    for word in words[2:]:
        if word.startswith("--"):
            key = word[2:]
        elif key:
            options[key] = f"{options[key]} {word}" if key in options else word
    return options


def _words(line: str) -> list[str]:
    """The words of a command line as a shell splits it; by blanks when its quotes do not close."""
    try:
        return shlex.split(line[:_LONGEST_SPLIT])
    except ValueError:
        return line[:_LONGEST_SPLIT].split()


def _dumped(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")
