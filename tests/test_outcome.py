"""Error classes and exit codes as the agents' programs print them."""

from __future__ import annotations

import pytest

from agentsignals.formats.outcome import error_class, exit_code
from agentsignals.model import ShellKind, ToolClass

LONG = "x" * 9_000

CODES: list[tuple[str, int | None]] = [
    ("Exit code 1\nboom", 1),
    ("Error: Exit code 127\nsh: x: not found", 127),
    ("Exit code: 2", 2),
    ("out\n\nCommand exited with code 3", 3),
    ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nok", 0),
    ("text\n<command completed with exit code 4>", 4),
    ("FAIL\nexit status 5", 5),
    (f"{LONG}\nCommand exited with code 6", 6),
    (f"Exit code 7\n{LONG}", 7),
    ("Exit code -1", -1),
    ("the exit code 1 was expected", None),
    ("", None),
    ("<tool_use_error>File does not exist.</tool_use_error>", None),
]


@pytest.mark.parametrize(("text", "code"), CODES)
def test_an_exit_code_is_read_where_the_agent_states_it(text: str, code: int | None) -> None:
    assert exit_code(text) == code


CLASSES: list[tuple[str, ToolClass, ShellKind | None, str]] = [
    ("<tool_use_error>Sibling tool call errored</tool_use_error>", "shell", "run", "sibling_cancelled"),
    (
        "<tool_use_error>Cancelled: parallel tool call Bash(ls) errored</tool_use_error>",
        "read",
        None,
        "sibling_cancelled",
    ),
    ("<tool_use_error>File has not been read yet. Read it first</tool_use_error>", "edit", None, "not_read_first"),
    ("<tool_use_error>String to replace not found in file.</tool_use_error>", "edit", None, "edit_mismatch"),
    ("<tool_use_error>Found 2 matches of the string to replace, but", "edit", None, "edit_mismatch"),
    ("<tool_use_error>No changes to make: old_string and", "edit", None, "edit_mismatch"),
    ("File has been modified since read, either by the user", "edit", None, "edit_mismatch"),
    ("File has been unexpectedly modified. Read it again", "edit", None, "edit_mismatch"),
    ("<tool_use_error>File does not exist.</tool_use_error>", "read", None, "not_found"),
    ("ENOENT: no such file or directory, open 'x'", "read", None, "not_found"),
    ("Request failed with status code 404", "web", None, "not_found"),
    ("EISDIR: illegal operation on a directory, read", "read", None, "other"),
    ("InputValidationError: Read failed", "read", None, "other"),
    ("EACCES: permission denied, open 'x'", "edit", None, "permission"),
    ("Request timed out", "web", None, "timeout"),
    ("connect ECONNREFUSED 127.0.0.1:80", "mcp", None, "network"),
    ("", "mcp", None, "other"),
    ("Exit code 1\n--- FAIL: TestA: no such file or directory", "test", "test", "test_failed"),
    ("Exit code 1\nFAILED a.py - timeout", "test", "test", "test_failed"),
    ("ok\n\nCommand exited with code 1", "test", "test", "test_failed"),
    (f"{LONG}\n\nCommand exited with code 1", "test", "test", "test_failed"),
    ("Exit code 1\n(eval):cd:1: no such file or directory: sub", "test", "test", "not_found"),
    ("Exit code 127\nsh: 1: vitest: not found", "test", "test", "not_found"),
    ("Exit code 127\n/bin/bash: line 1: tsc: command not found", "shell", "build", "not_found"),
    ("Exit code 143\nCommand timed out after 2m 0.0s", "test", "test", "timeout"),
    ("Exit code 2\na.ts(1,1): error TS1", "shell", "build", "lint_failed"),
    ("Exit code 2\nls: cannot access 'x': No such file or directory", "search", "search", "not_found"),
    ("Exit code 128\nfatal: pathspec 'x' did not match any files", "shell", "vcs", "not_found"),
    ("Exit code 1\ngh: Not Found (HTTP 404)", "shell", "vcs", "not_found"),
    ("Exit code 1\nerror: patch failed: a:1\nerror: a: patch does not apply", "shell", "vcs", "edit_mismatch"),
    ("Exit code 1\ntimeout = 30 # line 404; the file does not exist yet", "shell", "run", "exit_nonzero"),
    ("Exit code 1\nbash: ./x: Permission denied", "shell", "run", "permission"),
    ("Exit code 6\ncurl: (6) Could not resolve host: x", "shell", "run", "network"),
    ("Exit code 1", "search", "search", "exit_nonzero"),
]


@pytest.mark.parametrize(("text", "class_", "kind", "expected"), CLASSES)
def test_an_error_has_the_class_its_words_say(
    text: str, class_: ToolClass, kind: ShellKind | None, expected: str
) -> None:
    assert error_class(text, class_, kind) == expected
