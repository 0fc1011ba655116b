"""What a call is about, in one line: for people who read a session."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.model import ToolClass

_MOST_CHARS = 300
"""Of one argument."""


def about(class_: ToolClass | str, path: str | None, command: str | None, arguments: str) -> str:
    """The command of a call, its file, or, of a search and where there is neither, its arguments by name."""
    if class_ != "search" and (command or path):
        return command or path or ""
    if class_ == "search" and command:
        return command
    try:
        passed = msgspec.json.decode(arguments) if arguments else {}
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if not isinstance(passed, dict):
        return arguments
    if len(passed) == 1:
        return _short(next(iter(passed.values())))
    return " · ".join(f"{name}: {_short(value)}" for name, value in passed.items() if value not in ("", None, [], {}))


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value[:_MOST_CHARS]
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        texts = [text for item in value if isinstance(item, dict) for text in item.values() if isinstance(text, str)]
        return f"{len(value)} of “{texts[0][:60]}” …" if texts else f"{len(value)} entries"
    return msgspec.json.encode(value).decode()[:_MOST_CHARS]
