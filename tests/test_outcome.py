"""Error classes and exit codes as the agents' programs print them."""

from __future__ import annotations

import pytest

from agentsignals.formats.outcome import ending, error_class, exit_code
from agentsignals.formats.profile import Profile
from agentsignals.model import ShellKind, ToolCall, ToolClass

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
    ("404", "web", None, "not_found"),
    ('{"status": 404}', "mcp", None, "not_found"),
    ("server responded with a status of 404 ()", "web", None, "not_found"),
    ("HTTP/1.1 429", "web", None, "rate_limit"),
    ('{"error":{"code":429,"message":"x"}}', "mcp", None, "rate_limit"),
    ("at main.js:404:12", "mcp", None, "other"),
    ("wrote 404 bytes, then 429", "mcp", None, "other"),
    ("404 lines, 429 words", "mcp", None, "other"),
    ("EISDIR: illegal operation on a directory, read", "read", None, "wrong_kind_of_path"),
    ("InputValidationError: Read failed", "read", None, "invalid_arguments"),
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
    ("Error: Invalid arguments for tool run: `path` is required", "read", None, "invalid_arguments"),
    ("params must have required property 'file_path'", "read", None, "invalid_arguments"),
    ('Validation failed for tool "read":\n  - path: must be string', "read", None, "invalid_arguments"),
    ("failed to parse function arguments: missing field `command`", "shell", None, "invalid_arguments"),
    ("Invalid `view_range`: [900, 1000]. Its first element", "read", None, "invalid_arguments"),
    ("The `view_range` parameter is not allowed when `path` points to a directory.", "read", None, "invalid_arguments"),
    ('[{"code": "invalid_type", "expected": "string"}]', "mcp", None, "invalid_arguments"),
    ("ENOTDIR: not a directory, scandir 'a.py'", "search", None, "wrong_kind_of_path"),
    ("Path is a directory, not a file: /w", "read", None, "wrong_kind_of_path"),
    ("File content (11766 tokens) exceeds maximum allowed tokens (10000).", "read", None, "too_large"),
    ("PreToolUse:Bash hook error: [guard.sh]: no pushes to main", "shell", None, "blocked"),
    ("<tool_use_error>Blocked: sleep 30 followed by: gh pr checks", "shell", None, "blocked"),
    ("The tool call was denied by policy", "shell", None, "blocked"),
    ("429 Too Many Requests", "web", None, "rate_limit"),
    ("API rate limit exceeded for user", "mcp", None, "rate_limit"),
    ("Unknown skill: commit", "task", None, "not_found"),
    ("GitHub API error 403: Resource protected by organization SAML", "mcp", None, "permission"),
    ("ENOSPC: no space left on device, write", "edit", None, "disk_full"),
    ("TypeError: x is not a function", "mcp", None, "exception"),
    ("fetch failed", "web", None, "network"),
    ("Exit code 1\nCONFLICT (content): Merge conflict in a.go", "shell", "vcs", "merge_conflict"),
    ("Exit code 1\nerror: could not apply 669232e1... x", "shell", "vcs", "merge_conflict"),
    ("Exit code 1\n ! [rejected] main -> main (fetch first)", "shell", "vcs", "merge_conflict"),
    ("Exit code 1\nTraceback (most recent call last):\nValueError: x", "shell", "run", "exception"),
    ("Exit code 1\nModuleNotFoundError: No module named 'yaml'", "shell", "run", "not_found"),
    ("Exit code 101\nerror[E0308]: mismatched types", "shell", "run", "compile_error"),
    ('Exit code 1\n  File "a.py", line 3\nSyntaxError: invalid syntax', "shell", "run", "compile_error"),
    ("Exit code 1\n3 failed, 12 passed in 0.4s", "shell", "vcs", "test_failed"),
    ("Exit code 1\n0 failed, 12 passed", "shell", "vcs", "exit_nonzero"),
    ("Exit code 1\nunknown flag: --stat\n\nUsage:  gh pr diff", "shell", "vcs", "invalid_arguments"),
    ("Exit code 1\nHTTP 401: Bad credentials", "shell", "vcs", "permission"),
    ("Exit code 1\nerror: API rate limit exceeded", "shell", "vcs", "rate_limit"),
    ("Exit code 128\nfatal: not a git repository", "shell", "vcs", "not_found"),
    ("Exit code 1\nNode.js v22.22.3", "shell", "run", "exception"),
    ("Exit code 1\nthe blocked users table has an invalid state", "shell", "run", "exit_nonzero"),
    ("Exit code 1\n# rate limits are documented in the docs", "shell", "run", "exit_nonzero"),
]


@pytest.mark.parametrize(("text", "class_", "kind", "expected"), CLASSES)
def test_an_error_has_the_class_its_words_say(
    text: str, class_: ToolClass, kind: ShellKind | None, expected: str
) -> None:
    assert error_class(text, class_, kind) == expected


@pytest.mark.parametrize(("code", "expected"), [(126, "permission"), (127, "not_found"), (3, "exit_nonzero")])
def test_an_exit_code_that_posix_gives_a_meaning_says_the_class(code: int, expected: str) -> None:
    assert error_class("", "shell", "run", code) == expected


@pytest.mark.parametrize(("class_", "expected"), [("edit", "blocked"), ("read", "other")])
def test_an_extension_that_blocks_in_its_own_words_is_known_by_the_tool(class_: ToolClass, expected: str) -> None:
    words = "Adds a behaviour without evidence of a test that fails first."
    call = ToolCall(seq=0, turn=0, step=None, thread="main", call_id="a", name="x", class_=class_, arguments="{}")
    assert ending(call, words, "error", None, None, Profile(blocks_in_any_words=("edit",))).error == expected
    assert ending(call, words, "error", None, None, Profile()).error == "other"
