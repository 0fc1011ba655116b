"""Copilot CLI's tools in shared words, and what their results say."""

from __future__ import annotations

import re

from msgspec import Struct

from agentsignals.formats.copilot_cli.profile import PROFILE
from agentsignals.formats.copilot_cli.records import ToolComplete
from agentsignals.formats.tools import MCP, Tool
from agentsignals.model import CallStatus, ToolCall

_TAIL = 300
_ENDED = re.compile(r"<(?:shellId: (\S+) completed|(?:command )?exited|command) with exit code:? (-?\d+)>\s*\Z")
_LEFT = re.compile(r"<command (?:with shellId: (\S+) is still running|started in .*?shellId: (\S+?)>?[. ])")
_REFUSED = frozenset(("rejected", "denied"))
_STOPPED = frozenset(("aborted", "cancelled", "canceled", "interrupted"))


class Result(Struct, gc=False):
    """What a tool's result says: its text, what became of the call, the shell it is about or left running."""

    text: str
    status: CallStatus
    exit_code: int | None = None
    ended: str | None = None
    running: str | None = None


def tool(name: str, server: str | None = None) -> Tool | None:
    """The tool of that name; an MCP tool when it came from a server; None when it is not known."""
    return MCP if server else PROFILE.tool(name)


def read_result(event: ToolComplete, call: ToolCall | None, refused: bool) -> Result:
    """A `tool.execution_complete`. `success` only means that the tool ran: a shell's exit code is in its result."""
    done = event.data
    text = (done.result.content if done.result is not None else None) or ""
    if done.error is not None or done.success is False:
        message = done.error.message if done.error is not None else None
        return Result(message or text, _failure(done.error.code if done.error is not None else None, refused))
    if call is None or not _is_shell(call.name):
        return Result(text, "ok")
    tail = text[-_TAIL:]
    ended, left = _ENDED.search(tail), _LEFT.search(tail)
    parts = (done.result.contents if done.result is not None else None) or ()
    code = next((part.exitCode for part in parts if part.exitCode is not None), int(ended.group(2)) if ended else None)
    return Result(
        text,
        "ok",
        code,
        ended.group(1) if ended else None,
        (left.group(1) or left.group(2)) if left else None,
    )


def _failure(code: str | None, refused: bool) -> CallStatus:
    if refused or code in _REFUSED:
        return "rejected"
    return "cancelled" if code in _STOPPED else "error"


def _is_shell(name: str) -> bool:
    return name.endswith(("bash", "powershell", "shell"))
