"""One tool call: a line that summarises it, and the texts that its command writes into files."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from agentsignals.changes.hunks import EditText
from agentsignals.model import ToolClass
from agentsignals.shell import parse
from agentsignals.shell.tokens import Write

_MOST_CHARS = 300
"""Most characters of one argument."""


def call_summary(class_: ToolClass | str, path: str | None, command: str | None, arguments: str) -> str:
    """Return the command of a call, its file, or, for a search and where there is neither, its named arguments."""
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


def command_texts(command: str, paths: Collection[str], *, has_failed: bool = False) -> list[tuple[str, EditText]]:
    """Return each text that a command writes into a file, in order, with the file's name in the session's record.

    `paths`: the files that the command is recorded to have changed; other writes did not happen. `has_failed`: only
    the writes before the failure count. A script that an earlier command wrote is not read again.
    """
    made: list[tuple[str, EditText]] = []
    for write in parse(command).writes if paths else ():
        plain = write.path.removeprefix("./")
        ends = (path for path in paths if path.endswith(f"/{plain}") or plain.endswith(f"/{path}"))
        path = plain if plain in paths else next(ends, None)
        if path is None or (has_failed and not write.is_sure):
            continue
        text = _text(write, path)
        if text is not None and text.old != text.new:
            made.append((path, text))
    return made


def complete_lines(command: str, paths: Collection[str], *, has_failed: bool = False) -> list[tuple[str, EditText]]:
    """Return the texts that are complete lines: a substitution may replace a part of one."""
    texts = command_texts(command, paths, has_failed=has_failed)
    return [(path, text) for path, text in texts if text.kind != "replace" or "\n" in text.old]


def _text(write: Write, path: str) -> EditText | None:
    """Return a shell command's write as the text that it puts into the file."""
    if write.how == "patch":
        return EditText(kind="patch", new=f"--- a/{path}\n+++ b/{path}\n{write.new}")
    if write.how == "whole":
        return EditText(kind="whole", new=write.new, creates=write.op == "create")
    lines = write.new.removesuffix("\n")
    if write.how == "append":
        return EditText(kind="append", new=lines)
    if write.how == "insert" and write.line is not None:
        return EditText(kind="insert", new=lines, line=write.line)
    if write.old:
        return EditText(kind="replace", new=write.new, old=write.old, everywhere=write.everywhere)
    return EditText(kind="part", new=lines) if lines else None  # of lines that are named by number, not by text
