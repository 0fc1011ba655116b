"""What a tool is, in the words every agent shares. Each format maps its own tool names; this module maps arguments."""

from __future__ import annotations

import shlex

import msgspec
from msgspec import Struct

from agentsignals.formats.records import UNREADABLE
from agentsignals.model import EditOp, ShellKind, ToolClass
from agentsignals.shell import parse


class Tool(Struct, frozen=True):
    """A tool of an agent: its class, and which of its arguments hold a file path or a shell command, best first."""

    class_: ToolClass
    path: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


OTHER = Tool("other", path=("file_path", "path", "filePath"))
READ = Tool("read", path=("file_path", "path", "filePath", "absolute_path", "notebook_path", "target_file"))
SEARCH = Tool("search", path=("path", "dir_path", "directory"))
EDIT = Tool("edit", path=("file_path", "path", "filePath", "notebook_path", "absolute_path", "target_file"))
SHELL = Tool("shell", command=("command", "cmd", "script"))
PLAN, TASK, WEB, ASK, MCP = Tool("plan"), Tool("task"), Tool("web"), Tool("ask"), Tool("mcp")


class Described(Struct, gc=False, kw_only=True):
    """One call in shared words."""

    class_: ToolClass
    shell_kind: ShellKind | None = None
    path: str | None = None
    command: str | None = None
    writes: tuple[tuple[str, EditOp], ...] = ()
    """The files a shell command writes."""
    folder: str | None = None
    """Where a shell command runs, when its arguments say so."""


class _Arguments(Struct, gc=False, kw_only=True):
    """The arguments any agent uses for a path, a command or its folder; the rest is skipped unread."""

    file_path: object = None
    path: object = None
    filePath: object = None
    absolute_path: object = None
    notebook_path: object = None
    target_file: object = None
    dir_path: object = None
    directory: object = None
    command: object = None
    cmd: object = None
    script: object = None
    keystrokes: object = None
    workdir: object = None


_decode = msgspec.json.Decoder(_Arguments).decode


def describe(tool: Tool, name: str, arguments: bytes | str) -> Described:
    """Class, path and command of one call. Arguments that are no JSON object leave path and command unknown."""
    class_ = tool.class_
    if tool is OTHER and name.startswith("mcp__"):
        return Described(class_="mcp")
    if not tool.path and not tool.command:
        return Described(class_=class_)
    try:
        given = _decode(arguments)
    except UNREADABLE:
        return Described(class_=class_)
    path = _first_text(given, tool.path) if tool.path else None
    command = _first_text(given, tool.command) if tool.command else None
    if command is None or class_ != "shell":
        return Described(class_=class_, shell_kind=None, path=path, command=command)
    does = parse(command)
    folder = given.workdir if isinstance(given.workdir, str) else None
    return Described(
        class_=SHELL_CLASS.get(does.kind, "shell"),
        shell_kind=does.kind,
        path=does.path,
        command=command,
        writes=does.writes,
        folder=folder,
    )


SHELL_CLASS: dict[ShellKind, ToolClass] = {"test": "test", "read": "read", "search": "search"}
"""A shell command that only runs tests, reads or searches has the class of what it does; the rest stay `shell`."""


def _first_text(given: _Arguments, keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = getattr(given, key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return _command_line(value)
    return None


def _command_line(words: list[str]) -> str:
    """A command given as words: the script when they ask a shell to run one (`bash -lc …`), else the words, quoted."""
    asks_shell = len(words) > 2 and words[-2].lower() in ("-c", "-lc", "-ic", "-command", "/c")
    return words[-1] if asks_shell else shlex.join(words)
