"""What became of a SWE-agent action: its tools answer in words, and no exit code is logged."""

from __future__ import annotations

from agentsignals.formats.error_classes import error_class
from agentsignals.formats.swe_agent.shell_output import failure
from agentsignals.formats.swe_agent.tools import Action
from agentsignals.model import CallStatus, ToolCall

_EDITOR_DID = (
    "Here's the ", "File created successfully", "The file ", "Last edit to ", "<NOTE>This file is too large",
)  # fmt: skip
"""How an answer of the editor begins when it did as told; all others say why not."""
_NOT_SAVED = "Your proposed edit has introduced new syntax error"
"""The linter refused the edit: the file is as it was."""
_TOOL_REFUSED = (
    "Error", "Usage:", "Invalid", "No file open", "Text not found", "The search string", "Warning: no edit",
    "edit: ", "insert: ", "Wrong flag!",
)  # fmt: skip
_NOT_THERE = (" not found", " does not exist")
_FIRST = 300


def outcome(action: Action, call: ToolCall, observation: str) -> tuple[CallStatus, str | None]:
    """Status, and the class of the error."""
    if action.name == "bash":
        error = failure(observation, call.command or "", call.class_, call.shell_kind)
    else:
        opening = observation.lstrip()[:_FIRST]
        error = _editor_error(opening) if action.name == "str_replace_editor" else _tool_error(opening, call)
    return ("error", error) if error else ("ok", None)


def _tool_error(text: str, call: ToolCall) -> str | None:
    if text.startswith(_NOT_SAVED):
        return "lint_failed"
    if _says_not_there(text):
        return "not_found"
    return error_class(text, call.class_, call.shell_kind) if text.startswith(_TOOL_REFUSED) else None


def _editor_error(text: str) -> str | None:
    if text.startswith(_EDITOR_DID) and not _says_not_there(text):
        return None
    return error_class(text, "edit", None)


def _says_not_there(text: str) -> bool:
    """`File a.py not found`, `Directory src does not exist`: one line, and nothing below it."""
    first, _, rest = text.partition("\n")
    return not rest.strip() and first.rstrip(". ").endswith(_NOT_THERE)
