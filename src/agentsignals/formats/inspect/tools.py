"""Inspect's standard tools in shared words, those of the agents it bridges, and what its text editor changed."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agentsignals.edits.hunks import Hunk, count_lines, created, replaced
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_code import tools
from agentsignals.formats.edit_arguments import record_arguments
from agentsignals.formats.records import UNREADABLE
from agentsignals.formats.tools import ASK, EDIT, PLAN, READ, SEARCH, SHELL, TASK, WEB, Tool
from agentsignals.model import ToolCall

_EDITORS = ("text_editor", "str_replace_editor", "str_replace_based_edit_tool")
_VIEW = "view"
_TOOLS: dict[str, Tool] = {
    **dict.fromkeys(("bash", "bash_session", "shell", "exec_command"), SHELL),
    **dict.fromkeys(("python", "code_execution", "ipython"), Tool("shell")),
    **dict.fromkeys(_EDITORS, EDIT),
    **dict.fromkeys(("write_file", "edit_file", "apply_patch", "create_file"), EDIT),
    **dict.fromkeys(("read_file", "view_file", "skill"), READ),
    **dict.fromkeys(("grep", "glob", "list_files", "find"), SEARCH),
    **dict.fromkeys(("web_search", "web_fetch", "web_browser"), WEB),
    **dict.fromkeys(("update_plan", "todo_write"), PLAN),
    **dict.fromkeys(("task", "agent"), TASK),
    **dict.fromkeys(("ask_user",), ASK),
    **dict.fromkeys(("submit", "think", "computer", "memory"), Tool("other")),
}


class Editing(Struct, gc=False, kw_only=True):
    """The arguments of the text editor."""

    command: str | None = None
    path: str | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None


_editing = msgspec.json.Decoder(Editing).decode


def tool(name: str, arguments: str) -> Tool | None:
    """What a tool is; None when its name is not known. The text editor's class is that of what it is asked for."""
    if name in _EDITORS:
        return READ if _given(arguments).command == _VIEW else EDIT
    if name.startswith("web_browser_"):
        return WEB
    if name.startswith("transfer_to_"):
        return TASK  # a handoff
    return _TOOLS.get(name) or tools.tool(name)


def record_edit(builder: SessionBuilder, call: ToolCall, touched: set[str]) -> None:
    """The change that a successful call of an edit tool made, as far as its arguments tell."""
    if call.name not in _EDITORS:
        record_arguments(builder, call, touched)
        return
    given = _given(call.arguments)
    inserted = given.insert_text if given.insert_text is not None else given.new_str or ""
    if given.command == "create":
        builder.edit(call, given.path, "create", [created(given.file_text or "")])
    elif given.command == "str_replace":
        builder.edit(call, given.path, "modify", [replaced(given.old_str or "", given.new_str or "")])
    elif given.command == "insert" and given.insert_line is not None:
        n, start = count_lines(inserted), given.insert_line + 1
        builder.edit(
            call,
            given.path,
            "modify",
            [Hunk(start_line=start, end_line=start + max(n, 1) - 1, added=n, removed=0, old_start=start)],
        )
    else:
        builder.edit(call, given.path, "modify", [])


def _given(arguments: str) -> Editing:
    try:
        return _editing(arguments)
    except UNREADABLE:
        return Editing()
