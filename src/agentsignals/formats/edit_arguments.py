"""What the arguments of an edit tool say was changed, for traces that log no diff: sizes, and whole new contents."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from agentsignals.edits.hunks import Hunk, count_lines, created, replaced
from agentsignals.formats.apply_patch import record_patch
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import ToolCall


class Pair(Struct, gc=False, kw_only=True):
    """A replaced text and what it became, in the spellings of several agents."""

    oldText: object = None
    newText: object = None
    old_string: object = None
    new_string: object = None
    old_str: object = None
    new_str: object = None

    def hunk(self) -> Hunk | None:
        """Lines added and removed; None when it is no pair of texts."""
        for old, new in (
            (self.oldText, self.newText),
            (self.old_string, self.new_string),
            (self.old_str, self.new_str),
        ):
            if isinstance(old, str) and isinstance(new, str):
                return replaced(old, new)
        return None


class Arguments(Pair, gc=False, kw_only=True):
    content: object = None
    contents: object = None
    input: object = None
    patch: object = None
    edits: Raw = Raw()
    changes: Raw = Raw()


_arguments = msgspec.json.Decoder(Arguments).decode
_pairs = msgspec.json.Decoder(list[Pair]).decode
_text = msgspec.json.Decoder(str).decode


def record_arguments(builder: SessionBuilder, call: ToolCall, touched: set[str]) -> None:
    """The change of a call that succeeded. `touched` holds the paths the session has read or changed before it."""
    raw = call.arguments.encode("utf-8", "replace")
    try:
        given = Arguments(patch=_text(raw)) if raw[:1] == b'"' else _arguments(raw)
    except UNREADABLE:
        builder.edit(call, None, "modify", [])
        return
    patch = next((text for text in (given.patch, given.input) if isinstance(text, str)), None)
    content = next((text for text in (given.content, given.contents) if isinstance(text, str)), None)
    if patch is not None:
        record_patch(builder, call, patch)
    elif content is not None:
        _write(builder, call, content, call.path in touched)
    else:
        builder.edit(call, None, "modify", _replacements(given))


def _replacements(given: Arguments) -> list[Hunk]:
    try:
        pairs = _pairs(given.edits or given.changes or b"[]")
    except UNREADABLE:  # some models send the list as a text
        pairs = []
    return [hunk for pair in (pairs or [given]) if (hunk := pair.hunk()) is not None]


def _write(builder: SessionBuilder, call: ToolCall, content: str, known: bool) -> None:
    """Whether the file was there before is not logged: it was when the session had touched it."""
    if known:
        n = count_lines(content)
        builder.edit(
            call,
            None,
            "modify",
            [Hunk(start_line=1, end_line=max(n, 1), added=n, removed=None, old_start=1, whole_file=True)],
        )
    else:
        builder.edit(call, None, "create", [created(content)])
