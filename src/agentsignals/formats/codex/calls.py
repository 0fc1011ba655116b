"""Tool calls of a Codex session and what became of them, read off up to four records each."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from agentsignals.formats import apply_patch as patches
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.codex import tools
from agentsignals.formats.codex.profile import PATCH, PROFILE
from agentsignals.formats.codex.records import (
    PARTS,
    CustomCall,
    ExecEnd,
    FunctionCall,
    HostedCall,
    McpEnd,
    Output,
    PatchEnd,
    ToolsFound,
    kinds_of,
)
from agentsignals.formats.codex.usage import ModelCalls
from agentsignals.formats.records import UNREADABLE
from agentsignals.formats.tools import Tool
from agentsignals.model import MAIN, ToolCall


class _McpResult(msgspec.Struct, gc=False):
    class _Ok(msgspec.Struct, gc=False):
        isError: bool | None = None

    Ok: _Ok | None = None
    Err: Raw = Raw()


_decode_mcp = msgspec.json.Decoder(_McpResult).decode


class Calls:
    """Pairs calls with their outputs, and with what other records say of them before or after."""

    def __init__(self, builder: SessionBuilder, models: ModelCalls) -> None:
        self._builder = builder
        self._models = models
        self._by_id: dict[str, ToolCall] = {}
        self._patches: list[tuple[ToolCall, str]] = []
        self._failed: set[str] = set()
        self._codes: dict[str, int] = {}
        self._polls: dict[str, str] = {}
        self._running: dict[str, ToolCall] = {}
        """Processes left running, by the number that later `write_stdin` calls name."""

    def function(self, body: FunctionCall, at: int | None) -> None:
        name = tools.full_name(body.name, body.namespace) if body.namespace else body.name
        tool = PROFILE.tool(name)
        patch = session_id = None
        if tool is PATCH or (tool is not None and tool.class_ == "shell" and tools.says_more(name, body.arguments)):
            arguments = tools.more_arguments(body.arguments)
            patch, session_id = tools.patch_of(arguments), arguments.session_id
        call = self._begin(name, body.call_id or "", body.arguments, tool, patch, at)
        if name == "write_stdin" and session_id is not None:
            self._polls[call.call_id] = str(session_id)

    def custom(self, body: CustomCall, at: int | None) -> None:
        patch = body.input if body.name == "apply_patch" else None
        arguments = msgspec.json.encode({"input": body.input})
        self._begin(body.name, body.call_id or "", arguments, PROFILE.tool(body.name), patch, at)

    def hosted(self, name: str, body: HostedCall, at: int | None) -> None:
        """A tool that the model's provider runs: the rollout holds the call, and of most no result."""
        call_id = body.call_id or body.id or f"line:{self._builder.line}"
        arguments = bytes(body.arguments or body.action) or b"{}"
        call = self._begin(name, call_id, arguments, PROFILE.tool(name), None, at)
        if body.call_id is None and body.status == "completed":
            self._builder.result(call_id, "", "ok", at)
            call.result_tokens = None  # what was found went to the model, not to the log

    def output(self, body: Output, at: int | None) -> None:
        self._result(body.call_id or "", tools.read_result(body.output, body.call_id in self._failed), at)
        self._builder.unread(kinds_of(body.output), PARTS, at)

    def tools_found(self, body: ToolsFound, at: int | None) -> None:
        self._result(body.call_id or "", tools.Result(bytes(body.tools).decode("utf-8", "replace")), at)

    def patch_end(self, body: PatchEnd, at: int | None) -> None:
        call = self._by_id.get(body.call_id or "")
        if call is not None and body.success and body.changes:
            patches.record_changes(self._builder, call, body.changes)

    def mcp_end(self, body: McpEnd, at: int | None) -> None:
        if body.call_id and _is_mcp_error(body.result):
            self._failed.add(body.call_id)

    def process_end(self, end: ExecEnd, at: int | None) -> None:
        """The end of a command, logged by some versions: before its output, or long after for one left running."""
        call = self._by_id.get(end.call_id or "")
        if call is None or end.exit_code is None:
            return
        if call.result_seq is None:
            self._codes[call.call_id] = end.exit_code
        elif call.exit_code is None:
            self._builder.exited(call, end.exit_code, at=at)

    def finish(self) -> None:
        """Patches that no record gives the lines of are read off their text."""
        recorded = {edit.seq for edit in self._builder.session.edits}
        for call, patch in self._patches:
            if call.status == "ok" and call.seq not in recorded:
                patches.record_patch(self._builder, call, patch)

    def _begin(  # noqa: PLR0913  (what any kind of record tells of a call)
        self, name: str, call_id: str, arguments: bytes | str, tool: Tool | None, patch: str | None, at: int | None
    ) -> ToolCall:
        step = self._models.item(at)
        if patch is None:
            call = self._builder.call(call_id, name, arguments, tool, at, step)
        else:
            call = self._builder.call(call_id, name, arguments, PATCH, at, step, path=patches.first_file(patch))
            self._patches.append((call, patch))
        self._by_id[call_id] = call
        return call

    def _result(self, call_id: str, result: tools.Result, at: int | None) -> None:
        status, code = result.status, result.exit_code
        if code is None and result.running is None and call_id in self._codes:
            code = self._codes.pop(call_id)
            status = "error" if code else status
        process = self._polls.get(call_id)
        begun = self._running.get(process) if process is not None else None
        if process is not None and begun is not None and code is not None:
            self._builder.exited(begun, code, result.text, at)
            del self._running[process]
            status, code = "ok", None  # the code is the command's; the poll that saw it end did what it should
        call = self._builder.result(call_id, result.text, status, at, MAIN, code, ran_s=result.ran_s)
        self._models.result(call)
        if call is not None and result.running is not None and begun is None:
            self._running[result.running] = call


def _is_mcp_error(raw: Raw) -> bool:
    try:
        result = _decode_mcp(raw)
    except UNREADABLE:
        return False
    return bool(result.Err) or (result.Ok is not None and result.Ok.isError is True)
