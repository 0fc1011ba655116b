"""Kiro's tools: what they are in shared words, and what became of a call."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from agentsignals.edits.hunks import Hunk, count_lines, created, replaced
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.kiro.records import Result, ToolUse
from agentsignals.formats.one_document import as_text
from agentsignals.formats.records import UNREADABLE
from agentsignals.formats.tools import EDIT, PLAN, READ, SEARCH, SHELL, TASK, WEB, Tool
from agentsignals.model import CallStatus, Step, ToolCall

TOOLS: dict[str, Tool] = {
    **dict.fromkeys(("fs_read", "read"), READ),
    **dict.fromkeys(("fs_write", "write"), EDIT),
    **dict.fromkeys(("grep", "glob", "code", "knowledge"), SEARCH),
    **dict.fromkeys(("execute_bash", "execute_cmd", "shell", "bash"), SHELL),
    **dict.fromkeys(("todo_list", "todo"), PLAN),
    **dict.fromkeys(("delegate", "use_subagent", "subagent", "session"), TASK),
    **dict.fromkeys(("web_search", "web_fetch"), WEB),
    **dict.fromkeys(("use_aws", "aws", "thinking", "introspect", "report_issue", "gh_issue"), Tool("other")),
}
"""Other names are MCP servers' tools; those called `<server>___<tool>` say so."""


class Operation(Struct, gc=False):
    path: str | None = None


class Arguments(Struct, gc=False, kw_only=True):
    """The arguments of `fs_write`, and the files of an `fs_read`."""

    command: str | None = None
    path: str | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    operations: list[Operation] | None = None


class Shell(Struct, gc=False):
    """What a shell command leaves; the exit status is a number written as text."""

    exit_status: object = None
    stdout: object = None
    stderr: object = None


class Block(Struct, gc=False):
    Text: str | None = None
    Json: Raw = Raw()


_arguments = msgspec.json.Decoder(Arguments).decode
_blocks = msgspec.json.Decoder(list[Block]).decode
_shell = msgspec.json.Decoder(Shell).decode


class Runs:
    """Calls and results of one session. Ids are mostly empty: a result then answers the oldest open call."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._open: list[tuple[str, ToolCall]] = []
        self._ids: set[str] = set()

    def call(self, use: ToolUse, at: int | None, step: Step) -> None:
        name, own_id = use.name or "", use.id or ""
        tool = TOOLS.get(name) or (Tool("mcp") if "___" in name else None)
        call_id = own_id
        if not own_id or own_id in self._ids:
            call_id = f"{own_id or 'call'}#{len(self._builder.session.tool_calls)}"
        self._ids.add(call_id)
        raw = msgspec.json.format(bytes(use.args), indent=-1) if use.args else b"{}"
        path = _only_path(raw) if tool is READ else None
        self._open.append((own_id, self._builder.call(call_id, name, raw, tool, at, step, path=path)))

    def forget(self) -> None:
        """The open calls were answered, and the answers were not kept."""
        self._open.clear()

    def answer(self, result: Result, at: int | None, status: CallStatus | None = None) -> None:
        """A result; `status` says what became of a call that the person did not let through."""
        call = self._take(result.tool_use_id or "")
        text, code = _told(result.content)
        if status is None:
            status = "error" if result.status == "Error" else "ok"
        call_id = call.call_id if call is not None else result.tool_use_id or ""
        self._builder.result(call_id, text, status, at, exit_code=code)
        if call is not None and status == "ok" and call.class_ == "edit":
            _edit(self._builder, call)

    def _take(self, own_id: str) -> ToolCall | None:
        for n, (known, _) in enumerate(self._open):
            if known == own_id:
                return self._open.pop(n)[1]
        return None


def _told(raw: Raw) -> tuple[str, int | None]:
    """Text and exit status of a result."""
    try:
        blocks = _blocks(raw) if raw else []
    except UNREADABLE:
        return bytes(raw).decode("utf-8", "replace"), None
    texts: list[str] = []
    code: int | None = None
    for block in blocks:
        if block.Text is not None:
            texts.append(block.Text)
            continue
        try:
            shell = _shell(block.Json)
        except UNREADABLE:
            shell = Shell()
        if shell.exit_status is None:
            texts.append(bytes(block.Json).decode("utf-8", "replace"))
            continue
        texts += [as_text(t) for t in (shell.stdout, shell.stderr) if t]
        code = _exit_status(shell.exit_status)
    return "\n".join(texts), code


def _given(arguments: bytes | str) -> Arguments:
    try:
        return _arguments(arguments)
    except UNREADABLE:
        return Arguments()


def _only_path(arguments: bytes) -> str | None:
    """The file of an `fs_read`, when it reads only one."""
    named = {operation.path for operation in _given(arguments).operations or ()}
    return named.pop() if len(named) == 1 else None


def _exit_status(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, str | int) else None
    except ValueError:
        return None


def _edit(builder: SessionBuilder, call: ToolCall) -> None:
    """`fs_write` records no diff; its arguments say what was written, and for an insertion where."""
    given = _given(call.arguments)
    new = given.new_str or ""
    n = count_lines(new)
    if given.command == "create":
        builder.edit(call, given.path, "create", [created(given.file_text or "")])
    elif given.command == "str_replace":
        builder.edit(call, given.path, "modify", [replaced(given.old_str or "", new)])
    elif given.command == "insert" and given.insert_line is not None:
        start = given.insert_line + 1
        builder.edit(
            call,
            given.path,
            "modify",
            [Hunk(start_line=start, end_line=start + max(n, 1) - 1, added=n, removed=0, old_start=start)],
        )
    elif given.command == "append":
        builder.edit(call, given.path, "modify", [Hunk(added=n, removed=0)])
    else:
        builder.edit(call, given.path, "modify", [])
