"""Kiro's tools: what they are in shared words, and what became of a call."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edit_arguments import record_arguments
from agentsignals.formats.kiro.profile import PROFILE
from agentsignals.formats.kiro.records import Result, ToolUse
from agentsignals.formats.one_document import as_text
from agentsignals.formats.records import UNREADABLE
from agentsignals.formats.tools import READ
from agentsignals.model import CallStatus, Step, ToolCall


class Operation(Struct, gc=False):
    path: str | None = None


class Arguments(Struct, gc=False):
    """The files of an `fs_read`."""

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
        tool = PROFILE.tool(name)
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
        text, code = _text_and_status(result.content)
        if status is None:
            status = "error" if result.status == "Error" else "ok"
        call_id = call.call_id if call is not None else result.tool_use_id or ""
        self._builder.result(call_id, text, status, at, exit_code=code)
        if call is not None and status == "ok" and call.class_ == "edit":
            record_arguments(self._builder, call, set())

    def _take(self, own_id: str) -> ToolCall | None:
        for n, (open_id, _) in enumerate(self._open):
            if open_id == own_id:
                return self._open.pop(n)[1]
        return None


def _text_and_status(raw: Raw) -> tuple[str, int | None]:
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


def _only_path(arguments: bytes) -> str | None:
    """The file of an `fs_read`, when it reads only one."""
    try:
        named = {operation.path for operation in _arguments(arguments).operations or ()}
    except UNREADABLE:
        return None
    return named.pop() if len(named) == 1 else None


def _exit_status(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, str | int) else None
    except ValueError:
        return None
