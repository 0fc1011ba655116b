"""Tool results of Claude Code: what became of the call, which lines changed, and what the person said when refusing."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from agentsignals.edits.hunks import created, of_whole_file, rewrites, trimmed
from agentsignals.formats import figures
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_code.records import Block, is_true
from agentsignals.formats.claude_code.user import INTERRUPTED, interrupt
from agentsignals.formats.edit_arguments import record_arguments
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import CallStatus, ToolCall

REFUSED = ("The user doesn't want to ", "The agent proposed a plan that was rejected by the user")
WITH_WORDS = "the user said:"
_FEEDBACK = f"{WITH_WORDS}\n"
_NOTE = "\n\nNote: The user's next message"
_NOT_SAID = ("The user wants to clarify these questions.", "The user has indicated they have provided enough answers")
"""What the program writes in the person's place when questions are put off."""
_CANCELLED = ("Sibling tool call errored", "Cancelled: parallel tool call")
_PARTS = frozenset(("text", "image", "document", "tool_reference", "search_result", "web_search_result"))
"""The kinds of blocks in a result; of those other than text the words are not read."""
_DENIED = (
    "Permission to use",
    "Permission for this action",
    "Permission for this tool use",
    "Claude requested permissions to",
)


class Patch(Struct, gc=False, rename="camel"):
    old_start: int = 1
    new_start: int = 1
    lines: list[str] = []


class EditResult(Struct, gc=False, rename="camel"):
    """The structured result of Edit and Write; `originalFile`, which can be huge, is never decoded."""

    file_path: str | None = None
    type: str | None = None
    structured_patch: list[Patch] | None = None
    content: Raw = Raw()


class AgentResult(Struct, gc=False, rename="camel"):
    """What `toolUseResult` says of a subagent that has ended. Its `usage` is that of its last model call alone."""

    agent_id: str | None = None
    total_tool_use_count: object = None
    total_tokens: object = None


class _Lasted(Struct, gc=False, rename="camel"):
    """How long a call ran, as some tools' structured results say. A subagent's holds its own waits, too."""

    duration_ms: object = None
    duration_seconds: object = None


_ENDED = re.compile(
    r"<usage>\s{0,9}<total_tokens>(\d{1,15})</total_tokens>\s{0,9}<tool_uses>(\d{1,15})</tool_uses>", re.ASCII
)
_HEAD_CHARS = 2_000
"""The ids of a notice stand at its top, before words of the subagent."""
_decode_agent = msgspec.json.Decoder(AgentResult).decode
_decode_lasted = msgspec.json.Decoder(_Lasted).decode
_decode_edit = msgspec.json.Decoder(EditResult).decode
_decode_text = msgspec.json.Decoder(str).decode


def answer(builder: SessionBuilder, block: Block, structured: Raw | None, at: int | None, thread: str) -> None:
    """One `tool_result` block; `told` is the structured result beside it (`toolUseResult`)."""
    text = result_text(block)
    status, error = outcome(text, is_true(block.is_error))
    code = exit_code(text) if status == "error" else None
    call = builder.result(block.tool_use_id or "", text, status, at, thread, code, error, _ran_s(structured))
    if isinstance(block.content, list):
        parts = (part for part in block.content if part is not None and not isinstance(part, str))
        builder.unread((part.type for part in parts), _PARTS, at, thread)
    if status == "rejected":
        _refusal(builder, text, at, thread)
    elif call is not None and status == "ok" and call.class_ == "edit":
        _edits(builder, call, structured)


def agent_totals(structured: Raw | None) -> AgentResult | None:
    """The closing totals of a subagent, where the structured result is of one."""
    if not structured or b'"totalToolUseCount"' not in bytes(structured):
        return None
    try:
        result = _decode_agent(structured)
    except UNREADABLE:
        return None
    return result if result.total_tool_use_count is not None else None


def notified_totals(text: str) -> tuple[str, AgentResult] | None:
    """The call that began a subagent in the background, and its closing totals, where a notice tells that it ended."""
    match = _ENDED.search(text, max(text.rfind("<usage>"), 0))
    if match is None:
        return None
    call, agent = (
        re.search(rf"<{tag}>([^<]{{1,200}})</{tag}>", text[:_HEAD_CHARS]) for tag in ("tool-use-id", "task-id")
    )
    if call is None and agent is None:
        return None
    tokens, calls = match.groups()
    ended = AgentResult(agent_id=agent[1] if agent else None, total_tool_use_count=int(calls), total_tokens=int(tokens))
    return call[1] if call else "", ended


def _ran_s(structured: Raw | None) -> float | None:
    """How long the call ran as its structured result says."""
    if not structured or b'"duration' not in bytes(structured):
        return None
    try:
        lasted = _decode_lasted(structured)
    except UNREADABLE:
        return None
    ms = figures.number(lasted.duration_ms)
    return figures.number(lasted.duration_seconds) if ms is None else ms / 1000


def result_text(block: Block) -> str:
    """The text of a result: a string, or its text parts."""
    content = block.content
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else part.text for part in parts if part is not None]
    return "\n".join(text for text in texts if text)


def outcome(text: str, failed: bool) -> tuple[CallStatus, str | None]:
    """`is_error` mixes failures, refusals and cancelled siblings: told apart by what the text says
    (design/formats.md#claude-code-results)."""
    if not failed:
        return "ok", None
    if text.startswith(REFUSED):
        return "rejected", None
    if text.startswith(INTERRUPTED) or any(words in text[:200] for words in _CANCELLED):
        return "cancelled", None
    return "error", "permission" if text.startswith(_DENIED) else None


def _refusal(builder: SessionBuilder, text: str, at: int | None, thread: str) -> None:
    """Words given when refusing are a turn, also in a subagent's work; a bare refusal is an interruption."""
    at_words = text.find(_FEEDBACK)
    feedback = text[at_words + len(_FEEDBACK) :].partition(_NOTE)[0].strip() if at_words >= 0 else ""
    if feedback and not feedback.startswith(_NOT_SAID):
        builder.turn("rejection_feedback", feedback, at)
    else:
        interrupt(builder, text, at, thread)


def _edits(builder: SessionBuilder, call: ToolCall, structured: Raw | None) -> None:
    """The changed lines, from the patch beside the result; without one, from the call's arguments."""
    result = _structured(structured)
    if result is None:
        record_arguments(builder, call, {call.path} if call.path and builder.touched(call) else set())
    elif result.type == "create":
        content = _content(result)
        builder.edit(call, result.file_path, "create", [created(content)] if content is not None else [])
    elif result.structured_patch != []:  # an empty patch: the file already read so
        hunks = [h for p in result.structured_patch or () if (h := trimmed(p.old_start, p.new_start, p.lines))]
        content = _content(result) if result.type == "update" else None
        hunks = of_whole_file(hunks) if content and rewrites(hunks, content) else hunks
        builder.edit(call, result.file_path, "modify", hunks)


def _structured(structured: Raw | None) -> EditResult | None:
    if not structured:
        return None
    try:
        result = _decode_edit(structured)
    except UNREADABLE:
        return None
    return result if result.structured_patch is not None or result.type == "create" else None


def _content(result: EditResult) -> str | None:
    """The file's new content; None when what stands there is no text."""
    try:
        return _decode_text(result.content) if result.content else ""
    except UNREADABLE:
        return None
