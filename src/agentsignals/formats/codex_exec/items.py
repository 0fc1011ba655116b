"""Items of `codex exec --json` that are calls of tools: begun by one record, ended by a later one of the same id."""

from __future__ import annotations

import msgspec

from agentsignals.edits.hunks import Hunk, count_lines, created, unified
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.codex_exec.profile import PROFILE
from agentsignals.formats.codex_exec.records import PARTS, Change, Item, answer_of, parts_of
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import CallStatus, EditOp, Step, ToolCall

_OPS: dict[str, EditOp] = {"add": "create", "delete": "delete", "update": "modify"}
_ENDED: dict[str | None, CallStatus] = {"failed": "error", "declined": "rejected", "in_progress": "none"}


def begin(builder: SessionBuilder, item: Item, call_id: str, step: Step) -> ToolCall:
    """The call that an item is. Its arguments are what the item says of them."""
    path = item.changes[0].path if item.changes else None
    tool = PROFILE.tool(item.type)
    return builder.call(call_id, _name(item), _arguments(item), tool, None, step, path=path)


def end(builder: SessionBuilder, item: Item, call: ToolCall) -> ToolCall | None:
    """The result of the call; None for an item that was never finished."""
    status = _ENDED.get(item.status, "ok")
    if status == "none":
        return None
    text = _text(item)
    ended = builder.result(call.call_id, text, status, None, call.thread, item.exit_code)
    if ended is None:
        return None
    builder.unread(_kinds(item), PARTS, None, call.thread)
    if item.type in ("web_search", "todo_list"):
        ended.result_tokens = None  # what was found went to the model, not to the log
    if ended.status == "ok":
        for change in item.changes or ():
            if not change.path:
                builder.event("unknown", f"change {change.kind[:80] or 'without a path'}", None, None, call.thread)
                continue
            builder.edit(ended, change.path, _OPS.get(change.kind, "modify"), _hunks(change))
    return ended


def _name(item: Item) -> str:
    if item.type == "mcp_tool_call":
        return f"mcp__{item.server or ''}__{item.tool or ''}"
    return item.tool or item.type


def _arguments(item: Item) -> bytes:
    if item.type == "mcp_tool_call":
        return bytes(item.arguments) or b"{}"
    if item.type == "todo_list":
        return b'{"items":' + (bytes(item.items) or b"[]") + b"}"
    fields = {"command": item.command, "query": item.query, "prompt": item.prompt}
    arguments: dict[str, object] = {name: value for name, value in fields.items() if value is not None}
    if item.changes is not None:
        arguments["changes"] = [{"path": c.path, "kind": c.kind} for c in item.changes]
    return msgspec.json.encode(arguments)


def _kinds(item: Item) -> list[str]:
    """The kinds of the parts that a server gave back."""
    try:
        answer = answer_of(item.result) if item.result else None
        return [part.type for part in parts_of(answer.content)] if answer is not None and answer.content else []
    except UNREADABLE:
        return []


def _text(item: Item) -> str:
    if item.error is not None and item.error.message:
        return item.error.message
    if item.aggregated_output is not None or not item.result:
        return item.aggregated_output or ""
    try:
        answer = answer_of(item.result)
        if answer is None:
            return ""
        text = "\n".join(part.text for part in parts_of(answer.content or b"[]") if part.text)
        return text or bytes(answer.structured_content).decode("utf-8", "replace")
    except UNREADABLE:
        return bytes(item.result).decode("utf-8", "replace")


def _hunks(change: Change) -> list[Hunk]:
    """Most versions say only which files; the lines of a new or deleted file are then unknown, but all of it."""
    if change.kind == "update":
        return unified(change.diff) if change.diff else []
    if change.diff is None:
        return [Hunk(whole_file=True)]
    if change.kind == "add":
        return [created(change.diff)]
    return [Hunk(added=0, removed=count_lines(change.diff), whole_file=True)]
