"""What an edit tool of Copilot CLI changed: the diff in its detailed result, else what its arguments say."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from agentsignals.edits.hunks import Hunk, created, replaced, unified
from agentsignals.formats.apply_patch import record_patch
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import ToolCall

_FILE = re.compile(r"^diff --git ", re.MULTILINE)


class Arguments(Struct, gc=False, kw_only=True):
    command: str | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    input: str | None = None
    patch: str | None = None


_decode = msgspec.json.Decoder(Arguments).decode
_decode_text = msgspec.json.Decoder(str).decode


def is_view(name: str, arguments: bytes) -> bool:
    """Whether the older all-in-one edit tool only looks at a file."""
    return name == "str_replace_editor" and given(arguments).command == "view"


def patch_of(name: str, arguments: bytes) -> str | None:
    """The patch of an `apply_patch` call: its whole arguments, or one of them."""
    if name != "apply_patch":
        return None
    found = given(arguments)
    return found.input or found.patch


def given(arguments: bytes) -> Arguments:
    """The arguments of an edit tool; a bare text is a patch."""
    try:
        return Arguments(input=_decode_text(arguments)) if arguments.startswith(b'"') else _decode(arguments)
    except UNREADABLE:
        return Arguments()


def record(builder: SessionBuilder, call: ToolCall, detail: str) -> None:
    """The change of a successful call."""
    arguments = given(call.arguments.encode())
    patch = patch_of(call.name, call.arguments.encode())
    diffs = len(_FILE.findall(detail))
    if patch is not None and diffs != 1:
        record_patch(builder, call, patch)
    elif arguments.file_text is not None:
        builder.edit(call, None, "create", [created(arguments.file_text)])
    elif diffs:
        builder.edit(call, None, "delete" if "\ndeleted file mode" in detail else "modify", unified(detail))
    else:
        builder.edit(call, None, "modify", _replacement(arguments))


def _replacement(arguments: Arguments) -> list[Hunk]:
    if arguments.old_str is None or arguments.new_str is None:
        return []
    return [replaced(arguments.old_str, arguments.new_str)]
