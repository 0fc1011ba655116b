"""What the arguments of an edit tool say was changed, for traces that log no diff: sizes, and whole new contents."""

from __future__ import annotations

from msgspec import structs

from agentsignals.edits.hunks import Hunk, created, inserted, replaced
from agentsignals.edits.texts import EditText, edit_texts
from agentsignals.formats.apply_patch import record_patch
from agentsignals.formats.builder import SessionBuilder
from agentsignals.model import ToolCall


def record_arguments(builder: SessionBuilder, call: ToolCall, touched: set[str]) -> None:
    """The change of a call that succeeded. `touched` holds the paths the session has read or changed before it."""
    texts = edit_texts(call.arguments, call.argument_roles)
    if texts and texts[0].kind == "patch":
        record_patch(builder, call, texts[0].new)
    elif texts and texts[0].kind == "whole" and (texts[0].creates or call.path not in touched):
        builder.edit(call, None, "create", [created(texts[0].new)])
    else:
        builder.edit(call, None, "modify", [hunk for text in texts if (hunk := _hunk(text)) is not None])


def _hunk(text: EditText) -> Hunk | None:
    """The place a text comes to, as far as the arguments tell."""
    if text.kind == "replace":
        return replaced(text.old, text.new)
    if text.kind in ("insert", "append"):
        return inserted(text.new, text.line if text.kind == "insert" else None)
    if text.kind == "whole":  # whether the file was there before is not logged: it was when the session touched it
        return structs.replace(created(text.new), removed=None)
    return None
