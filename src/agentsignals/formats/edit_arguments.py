"""What the arguments of an edit tool say was changed, for traces that log no diff: sizes, and whole new contents."""

from __future__ import annotations

from agentsignals.edits.hunks import Hunk, count_lines, created, replaced
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
    n = count_lines(text.new)
    if text.kind == "replace":
        return replaced(text.old, text.new)
    if text.kind == "insert":
        start = text.line + 1
        return Hunk(start_line=start, end_line=start + max(n, 1) - 1, added=n, removed=0, old_start=start)
    if text.kind == "append":
        return Hunk(added=n, removed=0)
    if text.kind == "whole":  # whether the file was there before is not logged: it was when the session touched it
        return Hunk(start_line=1, end_line=max(n, 1), added=n, removed=None, old_start=1, whole_file=True)
    return None
