"""What became of a tool call: error classes and exit codes, read off the result text
(design/signals.md#tool-classes)."""

from __future__ import annotations

import re

from agentsignals.model import ShellKind, ToolClass

EXIT_CODE = re.compile(
    r"\A(?:Error: )?Exit code:? (-?\d+)\b"
    r"|^Process exited with code (-?\d+)\b"
    r"|completed with exit code (-?\d+)>"
    r"|^(?:Command exited with code|exit status:?|Exit Code:) (-?\d+)\b",
    re.MULTILINE,
)
"""How Claude Code, Codex, Copilot CLI, Pi and others print the exit code of a shell command."""

_HEAD = 2_000
_BEGINNING = 400
_SHELL_SAYS = re.compile(
    r"^(?:\(eval\)|(?:/\S+/)?[a-z]*sh):[^\n]*(?:no such file or directory|not found)", re.MULTILINE
)
"""The shell itself found no folder or program, so that what was to be run never ran; in lower case."""

Classes = tuple[tuple[str, tuple[str, ...]], ...]
_TOOL_SAYS: Classes = (
    ("sibling_cancelled", ("sibling tool call errored", "cancelled: parallel tool call")),
    ("not_read_first", ("has not been read yet", "must read the file", "must first read")),
    ("edit_mismatch", ("string to replace not found", "no changes to make", "verification failed",
                       "could not find the exact text", "oldstring not found", "old_string not found", "did not match",
                       "failed to find expected lines", "has been modified since read", "unexpectedly modified",
                       "occurrences of the text", "matches of the string")),
    ("not_found", ("file does not exist", "path does not exist", "no such file or directory", "enoent",
                   "file not found", "does not exist", "404", "command not found")),
    ("permission", ("permission denied", "operation not permitted", "eacces", "requested permissions", "not allowed",
                    "eperm")),
    ("timeout", ("timed out", "timeout", "etimedout", "deadline exceeded")),
    ("network", ("econnrefused", "could not resolve host", "getaddrinfo", "connection refused",
                 "network is unreachable", "connection reset", "socket hang up")),
)  # fmt: skip
_COMMAND_SAYS: Classes = (
    ("edit_mismatch", ("failed to find expected lines", "patch does not apply")),
    ("not_found", ("no such file or directory", "enoent", "command not found", "did not match any file", "http 404",
                   "error 404", "404 not found", "e404", '"status":"404"')),
    ("permission", ("permission denied", "operation not permitted", "eacces", "eperm")),
    ("timeout", ("timed out", "etimedout", "deadline exceeded")),
    ("network", ("econnrefused", "could not resolve host", "getaddrinfo", "connection refused",
                 "network is unreachable", "connection reset", "socket hang up")),
)  # fmt: skip
"""Stricter than for a tool: a command's output is any text, and much of it names a timeout or a 404 in passing."""


def exit_code(text: str) -> int | None:
    """The exit code a shell result states, None when it states none. Looks at both ends of a long text."""
    ends = text if len(text) <= 2 * _HEAD else text[:_HEAD] + "\n" + text[-_HEAD:]
    word = ends.find("xit")  # every way of saying it has this; a pattern takes long to get where a search is at once
    match = EXIT_CODE.search(ends, ends.rfind("\n", 0, word) + 1) if word >= 0 else None
    return int(next(group for group in match.groups() if group is not None)) if match else None


def error_class(text: str, class_: ToolClass, shell_kind: ShellKind | None) -> str:
    """The class of a failed call; `exit_nonzero` or `other` when nothing more precise shows."""
    head = text[:_HEAD].lower()
    ends = head if len(text) <= _HEAD else head + text[-_HEAD:].lower()  # Pi states the exit code on the last line
    failed_command = head.lstrip().startswith(("exit code", "error: exit code")) or "exited with code" in ends
    if not failed_command:
        return _class_of(head, _TOOL_SAYS) or "other"
    if "command timed out after" in ends:
        return "timeout"
    if _SHELL_SAYS.search(head[:_BEGINNING]):
        return "not_found"
    if class_ == "test":
        return "test_failed"
    if shell_kind == "build":
        return "lint_failed"
    return _class_of(head, _COMMAND_SAYS) or "exit_nonzero"


def _class_of(text: str, classes: Classes) -> str | None:
    return next((name for name, words in classes for word in words if word in text), None)
