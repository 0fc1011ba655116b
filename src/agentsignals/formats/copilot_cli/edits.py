"""What an edit tool of Copilot CLI changed: the diff in its detailed result, else what its arguments say."""

from __future__ import annotations

import re

from agentsignals.edits.hunks import unified
from agentsignals.edits.texts import edit_texts
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edit_arguments import record_arguments
from agentsignals.formats.tools import EDIT_ROLES
from agentsignals.model import ToolCall
from agentsignals.model.roles import encoded

_FILE = re.compile(r"^diff --git ", re.MULTILINE)


def patch_of(name: str, arguments: bytes) -> str | None:
    """The patch of an `apply_patch` call: its whole arguments, or one of them."""
    texts = edit_texts(arguments.decode("utf-8", "replace"), encoded(EDIT_ROLES)) if name == "apply_patch" else []
    return texts[0].new if texts and texts[0].kind == "patch" else None


def record(builder: SessionBuilder, call: ToolCall, detail: str) -> None:
    """The change of a successful call."""
    texts = edit_texts(call.arguments, call.argument_roles)
    kinds = {text.kind for text in texts}
    diffs = len(_FILE.findall(detail))
    if diffs and "whole" not in kinds and (diffs == 1 or "patch" not in kinds):
        builder.edit(call, None, "delete" if "\ndeleted file mode" in detail else "modify", unified(detail))
    else:
        record_arguments(builder, call, set())
