"""Tool results of Claude Code: what became of the call, which lines changed, and what the person said when refusing."""

from __future__ import annotations

import re
from typing import cast

import msgspec
from msgspec import Struct

from agentsignals.edits.hunks import created, of_whole_file, rewrites, trimmed
from agentsignals.formats import figures
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_code.records import Block, Structured, is_true
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


class AgentResult(Struct, gc=False):
    """What `toolUseResult` says of a subagent that has ended. Its `usage` is that of its last model call alone."""

    agent_id: str | None = None
    total_tool_use_count: object = None
    total_tokens: object = None


_ENDED = re.compile(
    r"<usage>\s{0,9}<total_tokens>(\d{1,15})</total_tokens>\s{0,9}<tool_uses>(\d{1,15})</tool_uses>", re.ASCII
)
_HEAD_CHARS = 2_000
"""The ids of a notice stand at its top, before words of the subagent."""
_decode_patch = msgspec.json.Decoder(list[Patch] | None).decode
_decode_text = msgspec.json.Decoder(str).decode


def answer(builder: SessionBuilder, block: Block, structured: Structured | None, at: int | None, thread: str) -> None:
    """One `tool_result` block, with the structured result beside it (`toolUseResult`)."""
    text = result_text(block)
    status, error = outcome(text, is_true(block.is_error))
    code = exit_code(text) if status == "error" else None
    ran_s = _ran_s(structured) if structured is not None else None
    call = builder.result(block.tool_use_id or "", text, status, at, thread, code, error, ran_s)
    if isinstance(block.content, list):
        parts = (part for part in block.content if part is not None and not isinstance(part, str))
        builder.unread((part.type for part in parts), _PARTS, at, thread)
    if status == "rejected":
        _refusal(builder, text, at, thread)
    elif call is not None and status == "ok" and call.class_ == "edit":
        _edits(builder, call, structured)


def agent_totals(structured: Structured) -> AgentResult | None:
    """The closing totals of a subagent, where the structured result is of one."""
    agent = structured.agent_id
    if structured.total_tool_use_count is None or not isinstance(agent, str | None):
        return None
    return AgentResult(agent, structured.total_tool_use_count, structured.total_tokens)


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


def _ran_s(structured: Structured) -> float | None:
    """How long the call ran as its structured result says. A subagent's holds its own waits, too."""
    if structured.duration_ms is None:
        return figures.number(structured.duration_seconds)
    ms = figures.number(structured.duration_ms)
    return ms / 1000 if ms is not None else None


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


def _edits(builder: SessionBuilder, call: ToolCall, structured: Structured | None) -> None:
    """The changed lines, from the patch beside the result; without one, from the call's arguments."""
    patches = _patches(structured) if structured is not None else None
    if structured is None or patches is None:
        record_arguments(builder, call, {call.path} if call.path and builder.touched(call) else set())
        return
    path = cast("str | None", structured.file_path)
    if structured.type == "create":
        content = _content(structured)
        builder.edit(call, path, "create", [created(content)] if content is not None else [])
    elif patches:  # an empty patch: the file already read so
        hunks = [h for p in patches if (h := trimmed(p.old_start, p.new_start, p.lines))]
        content = _content(structured) if structured.type == "update" else None
        hunks = of_whole_file(hunks) if content and rewrites(hunks, content) else hunks
        builder.edit(call, path, "modify", hunks)


def _patches(result: Structured) -> list[Patch] | None:
    """The changed places; None where the result tells of no edit."""
    try:
        patches = _decode_patch(result.structured_patch) if result.structured_patch else None
    except UNREADABLE:
        return None
    if not isinstance(result.file_path, str | None) or not isinstance(result.type, str | None):
        return None
    return [] if patches is None and result.type == "create" else patches


def _content(result: Structured) -> str | None:
    """The file's new content; None when what stands there is no text."""
    try:
        return _decode_text(result.content) if result.content else ""
    except UNREADABLE:
        return None
