"""Gemini CLI's tools: what they are in shared words, what became of a call, and which lines it changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath

import msgspec
from msgspec import Struct

from agentsignals.edits.hunks import Hunk, created, of_whole_file, replaced, rewrites, unified
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.gemini_cli.profile import PROFILE
from agentsignals.formats.gemini_cli.records import Chat, ToolCall, result_text
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import UNREADABLE
from agentsignals.formats.tools import HAND_IN, SHELL
from agentsignals.model import MAIN, CallStatus, Step
from agentsignals.model import ToolCall as Row
from agentsignals.model.times import logged_iso

_DENIED = ("User denied execution", "User did not allow tool call")
_BY_POLICY = "denied by policy"
_PLAN_REFUSED = re.compile(
    r"Plan rejected\. (?:User feedback: (.*?)(?:\n\nThe plan is stored at|\Z)|No feedback)"
    r"|User cancelled the plan approval dialog",
    re.DOTALL,
)
"""How `exit_plan_mode` succeeds where the person said no."""
_HEAD = 300
_SHA256_DIGITS = 64


class Arguments(Struct, gc=False, kw_only=True):
    file_path: str | None = None
    absolute_path: str | None = None
    dir_path: str | None = None
    directory: str | None = None
    content: str | None = None
    old_string: str | None = None
    new_string: str | None = None


class FileDiff(Struct, gc=False):
    """What the client shows of an edit; the file's old and new text beside it are never decoded."""

    fileDiff: str
    filePath: str | None = None
    isNewFile: bool | None = None


_arguments = msgspec.json.Decoder(Arguments).decode
_file_diff = msgspec.json.Decoder(FileDiff).decode


def run(builder: SessionBuilder, logged: ToolCall, at: int | None, step: Step | None, unique_id: str) -> None:
    """A call and, in the same record, its result."""
    args = arguments(logged)
    tool = PROFILE.tool(logged.name)
    folder = (args.dir_path or args.directory) if tool is SHELL else None
    raw = msgspec.json.format(bytes(logged.args), indent=-1) if logged.args else b"{}"
    thread = step.thread if step is not None else MAIN
    call = builder.call(unique_id, logged.name, raw, tool, at, step, thread, folder=folder)
    text = result_text(logged)
    status = outcome(logged.status, text)
    if status == "none":
        return
    refused = _PLAN_REFUSED.match(text) if status == "ok" and tool is HAND_IN else None
    status = "rejected" if refused else status
    code = exit_code(text) if tool is SHELL else None
    error = "permission" if _BY_POLICY in text[:_HEAD] else None
    builder.result(unique_id, text, status, logged_iso(logged.timestamp), call.thread, code, error)
    if refused and refused[1] and thread == MAIN:
        builder.turn("rejection_feedback", refused[1].strip(), logged_iso(logged.timestamp))
    if status == "ok" and call.class_ == "edit":
        _edit(builder, call, logged, args)


def outcome(status: str | None, text: str) -> CallStatus:
    """`cancelled` is a refusal when the person answered no, else a call that was stopped. Unfinished: no result."""
    if status == "success":
        return "ok"
    if status == "error":
        return "error"
    if status == "cancelled":
        return "rejected" if any(words in text[:_HEAD] for words in _DENIED) else "cancelled"
    return "none"


def arguments(call: ToolCall) -> Arguments:
    """The arguments that are read here; none when they are of another shape."""
    try:
        return _arguments(call.args) if call.args else Arguments()
    except UNREADABLE:
        return Arguments()


def project_folder(chat: Chat) -> str | None:
    """The folder the session ran in: the file names it only by SHA-256, and a path in a call must lie in it."""
    if not chat.projectHash or len(chat.projectHash) != _SHA256_DIGITS:
        return None
    tried: set[str] = set()
    for path in _absolute_paths(chat):
        for folder in _upwards(path):
            if folder in tried:
                break
            tried.add(folder)
            if hashlib.sha256(folder.encode()).hexdigest() == chat.projectHash:
                return folder
    return None


def _absolute_paths(chat: Chat) -> Iterator[str]:
    for message in chat.messages:
        for call in (message.toolCalls if message is not None else None) or ():
            args = arguments(call)
            tool = PROFILE.tool(call.name)
            shown = _shown(call) if tool is not None and tool.class_ == "edit" else None
            for path in (args.file_path, args.absolute_path, args.dir_path, shown.filePath if shown else None):
                if path:
                    yield path


def _upwards(path: str) -> Iterator[str]:
    pure = PurePosixPath(path) if path.startswith("/") else PureWindowsPath(path)
    if pure.is_absolute():
        yield str(pure)
        yield from (str(folder) for folder in pure.parents)


def _shown(call: ToolCall) -> FileDiff | None:
    try:
        return _file_diff(call.resultDisplay) if call.resultDisplay else None
    except UNREADABLE:
        return None


def _edit(builder: SessionBuilder, call: Row, logged: ToolCall, args: Arguments) -> None:
    shown = _shown(logged)
    if shown is None:
        has_texts = args.old_string is not None and args.new_string is not None
        hunks = [replaced(args.old_string or "", args.new_string or "")] if has_texts else [Hunk(whole_file=True)]
        builder.edit(call, None, "modify", hunks)
        return
    if shown.isNewFile and args.content is not None:
        builder.edit(call, shown.filePath, "create", [created(args.content)])
        return
    hunks = unified(shown.fileDiff)
    if shown.isNewFile or (args.content and rewrites(hunks, args.content)):
        hunks = of_whole_file(hunks)
    builder.edit(call, shown.filePath, "create" if shown.isNewFile else "modify", hunks)
