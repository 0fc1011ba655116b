"""Tool results of Claude Code: what became of the call, which lines changed, and what the person said when refusing."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_records import Block, Line
from agentsignals.formats.edits import Hunk, count_lines, created, trimmed
from agentsignals.formats.outcome import exit_code
from agentsignals.model import MAIN, CallStatus, ToolCall

REFUSED = "The user doesn't want to "
_SAID = "the user said:\n"
_DENIED = ("Permission to use", "Permission for this action", "Claude requested permissions to")


class Patch(Struct, gc=False):
    oldStart: int = 1  # noqa: N815  (the file's own spelling)
    newStart: int = 1  # noqa: N815
    lines: list[str] = []


class EditResult(Struct, gc=False):
    """The structured result of Edit and Write; `originalFile`, which can be huge, is never decoded."""

    filePath: str | None = None  # noqa: N815
    type: str | None = None
    structuredPatch: list[Patch] | None = None  # noqa: N815
    content: Raw = Raw()


_decode_edit = msgspec.json.Decoder(EditResult).decode
_decode_text = msgspec.json.Decoder(str).decode


def answer(builder: SessionBuilder, block: Block, line: Line, at: int | None, thread: str) -> None:
    """One `tool_result` block."""
    text = result_text(block)
    status, error = outcome(text, block.is_error)
    code = exit_code(text) if status == "error" else None
    call = builder.result(block.tool_use_id or "", text, status, at, thread, code, error)
    if status == "rejected" and thread == MAIN:
        _refusal(builder, text, at)
    if call is not None and status == "ok" and call.class_ == "edit" and line.toolUseResult:
        _edits(builder, call, line.toolUseResult)


def result_text(block: Block) -> str:
    """The text of a result: a string, or its text parts."""
    if isinstance(block.content, str):
        return block.content
    return "\n".join(part.text for part in block.content or () if part.text)


def outcome(text: str, is_error: bool | None) -> tuple[CallStatus, str | None]:
    """`is_error` mixes failures, refusals and cancelled siblings: told apart by what the text says (formats.md 1.4)."""
    if not is_error:
        return "ok", None
    if text.startswith(REFUSED):
        return "rejected", None
    if "Sibling tool call errored" in text[:200]:
        return "cancelled", None
    if text.startswith(_DENIED):
        return "error", "permission"
    return "error", None


def _refusal(builder: SessionBuilder, text: str, at: int | None) -> None:
    """Words given when refusing are a turn; a bare refusal is an interruption."""
    at_words = text.find(_SAID)
    said = text[at_words + len(_SAID) :].strip() if at_words >= 0 else ""
    note = said.find("\n\nNote: The user's next message")
    said = said[:note].strip() if note >= 0 else said
    if said:
        builder.turn("rejection_feedback", said, at)
    else:
        builder.event("interrupt", text, at)


def _edits(builder: SessionBuilder, call: ToolCall, raw: Raw) -> None:
    try:
        result = _decode_edit(raw)
    except msgspec.DecodeError:
        builder.edit(call, None, "modify", [])
        return
    if result.type == "create":
        content = _decode_text(result.content) if result.content else ""
        builder.edit(call, result.filePath, "create", [created(content)])
        return
    hunks = [h for p in result.structuredPatch or () if (h := trimmed(p.oldStart, p.newStart, p.lines)) is not None]
    if result.type == "update" and hunks and result.content:
        total = count_lines(_decode_text(result.content))
        changed = sum(h.added or 0 for h in hunks)
        if total and changed > 0.8 * total:  # a whole-file rewrite closes all regions (signals_notes section 11)
            hunks = [Hunk(h.start_line, h.end_line, h.added, h.removed, h.old_start, True) for h in hunks]
    builder.edit(call, result.filePath, "modify", hunks)
