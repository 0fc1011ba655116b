"""How calls ended, asked of every format alike (design/formats.md#how-a-call-ended)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.formats import by_name, formats, profiles
from agentsignals.formats.outcome import Pattern, ending, error_class, error_words, exit_code, words_of
from agentsignals.formats.profile import Profile
from agentsignals.model import Absent, ShellKind, ToolCall, ToolClass
from agentsignals.shell.commands import found_nothing
from agentsignals.signals.catalog import measure
from agentsignals.store import Store
from agentsignals.views.session import SessionView
from tests.formats import reading
from tests.quick import each_row

TEST, SEARCH, SLEEP = "pytest -q", "cd src && rg -n nothing_like_this .", "sleep 999"
QUESTIONS = {
    "worked": (TEST, "ok", "done"),
    "error": (TEST, "error", "error_result"),
    "exit": (TEST, "error", "exit_nonzero"),
    "no_hit": (SEARCH, "ok", "nothing_found"),
    "timeout": (SLEEP, "error", "timed_out"),
    "refused": (TEST, "rejected", "refused"),
    "cancelled": (TEST, "cancelled", "cancelled"),
}
ENDINGS = Path(__file__).parent / "_endings"
"""For each format a file in which such a call ends in each way that its logs can tell: a line a question."""


def document(name: str, question: str) -> Any:
    lines = map(json.loads, (ENDINGS / f"{name}.jsonl").read_text("utf-8").splitlines())
    return next(line["content"] for line in lines if line["question"] == question)


CANNOT_SAY = {
    "amp": {}, "claude-code": {}, "claude-stream": {}, "codex": {}, "gemini-cli": {}, "goose": {}, "kimi-code": {},
    "opencode": {}, "qwen-code": {}, "swival": {}, "zed": {},
    "atif": {"timeout refused cancelled": "the agents that write it run alone; a time-out is in each one's own words"},
    "cline": {"refused cancelled": "its CLI asks for no leave, and stops as a whole"},
    "codex-exec": {"cancelled": "an item that was never finished has no result"},
    "continue": {"no_hit": "a command that failed and wrote nothing to stderr is stored as done"},
    "copilot-cli": {"timeout": "a command that takes long is left running, and looked at again"},
    "crush": {"timeout": "a command that takes long goes on in the background"},
    "cursor-agent": {
        "exit no_hit timeout refused cancelled": "its transcript has no exit code, and ends where the person stops it"
    },
    "factory-droid": {"refused cancelled": "no sample of one is known"},
    "grok-build": {"refused": "no sample of one is known"},
    "inspect-json": {"exit no_hit": "a tool's result is its output, without an exit code"},
    "kimi-cli": {"cancelled": "no sample of one is known"},
    "kiro": {"timeout": "its shell has no limit"},
    "mini-swe-agent": {
        "error": "all it does is a command, and that has an exit code or was stopped",
        "cancelled": "a command that was not run has no result of its own in this version",
    },
    "opentraces": {"timeout": "an observation has an error or none"},
    "otel-genai": {"exit no_hit refused cancelled": "a span has an error or none"},
    "pi": {"refused": "its shell asks for no leave"},
    "conversation-table": {
        "no_hit": "its answer is a JSON text around the output",
        "refused cancelled": "nobody is there to refuse or cancel",
    },
    "sts": {" ".join(QUESTIONS): "nothing is written of how a call ended"},
    "swe-agent": {"refused cancelled": "nobody is there to refuse or cancel"},
    "vscode-copilot": {"timeout": "a command that takes long is left running, and looked at again"},
    "windsurf": {"timeout cancelled": "no sample of one is known"},
}  # fmt: skip
"""The formats that are asked, each with the questions that its logs can't answer."""
ELSEWHERE = {
    "claude-form": "is read as Claude Code's records are",
    "entire": "holds the logs of other agents, and is read as they are",
    "aider": "how a command ended is not logged",
    "antigravity": "its small cases show how a command ended",
    "droid-exec": "a result is an error or none; the sample holds both",
    "hermes": "its small cases show how a call ended",
    "inspect": "the same as inspect-json, packed",
    "specstory": "only exit codes in a result's text are told; the sample holds both",
    "openhands": "a file an event: its small cases show every end",
    "mistral-vibe": "a chunk of history is a list: its small cases show the same",
    "trail": "a span's error is the call's; the samples hold both",
    **dict.fromkeys(
        ("tau-bench", "tau2-bench"), "its tools are functions of a desk, no commands; the samples hold both ends"
    ),
    **dict.fromkeys(
        ("harbor", "harbor-log", "lab-retry", "outcome-table", "patch", "subq-eval", "subq-eval-log", "swe-bench",
         "swe-bench-pro", "swe-bench-text", "terminal-bench"), "has no tool calls",
    ),
}  # fmt: skip
ASKED = [(name, q) for name, cannot in CANNOT_SAY.items() for q in QUESTIONS if q not in " ".join(cannot).split()]


def calls_of(name: str, content: Any) -> list[ToolCall]:
    rows = content if isinstance(content, list) else [content]
    return reading.read_one(by_name(name), reading.given(reading.lines(*rows), name)).tool_calls


def test_every_format_is_asked_or_says_why_not() -> None:
    assert set(formats()) == {*CANNOT_SAY, *ELSEWHERE}
    assert not {*CANNOT_SAY} & {*ELSEWHERE}


@each_row(("name", "question"), ASKED)
def test_every_format_means_the_same(name: str, question: str) -> None:
    _, status, outcome = QUESTIONS[question]
    (call,) = calls_of(name, document(name, question))
    assert (call.status, call.outcome) == (status, outcome)


MEANS = {
    "done": "ok", "nothing_found": "ok", "exit_nonzero": "error", "error_result": "error", "timed_out": "error",
    "refused": "rejected", "cancelled": "cancelled",
}  # fmt: skip


def contradicting(folder: Path) -> list[Any]:
    asked = "SELECT outcome, status, count(*) FROM tool_calls WHERE outcome IS NOT NULL GROUP BY ALL ORDER BY ALL"
    counted = Store(folder).sql(asked).fetchall()
    assert len(counted) > 3
    return [row for row in counted if row[1] != MEANS[row[0]]]


def test_status_and_outcome_never_contradict_each_other(demo_folder: Path) -> None:
    assert contradicting(demo_folder / "store") == []


@pytest.mark.corpus
@pytest.mark.slow
def test_status_and_outcome_agree_in_real_traces(corpus_folder: Path) -> None:
    """Also where one is changed later, as of a plan whose refusal was an approval."""
    assert contradicting(corpus_folder / "store") == []


def test_a_format_that_cannot_say_leaves_it_out_and_so_does_the_rate() -> None:
    (session,) = by_name("sts").read([reading.given(reading.lines(*document("sts", "exit")), "sts")]).sessions
    assert [(c.status, c.outcome) for c in session.tool_calls] == [("unknown", None)]
    values = {r.signal.path: r.value for r in measure(SessionView(session))}
    for name in ("user.tool_error_rate", "user.tool_errors_by_type[]", "corpus.error_recovery_rate"):
        value = values[name]
        assert isinstance(value, Absent), name
        assert value.reason == "missing_field", name


@pytest.mark.parametrize(
    ("command", "code", "nothing"),
    [
        ("rg x", 1, True),
        ("rg x", 2, False),
        ("cd a && git -C . grep -n x", 1, True),
        ("git log", 1, False),
        ("sudo timeout 5 grep -rq x .", 1, True),
        ("cat a | grep x", 1, True),
        ("grep x a | head", 1, False),
        ("find . | xargs grep x", 123, True),
        ("grep x a", 123, False),
        ("! grep x a", 1, False),
        ("bash -lc 'rg x'", 1, True),
        ("echo $(grep x a)", 1, False),
        ("which ruff", 1, True),
        ("test -f a", 1, False),
        ("diff a b", 1, False),
        ("grep x a; pytest", 1, False),
    ],
)
def test_which_command_lines_end_in_a_search(command: str, code: int, nothing: bool) -> None:
    assert found_nothing(command, code) is nothing


def codex_call(question: str, command: str, printed: str) -> ToolCall:
    records = document("codex", question)
    records[1]["payload"]["arguments"] = json.dumps({"cmd": command})
    head = records[2]["payload"]["output"].partition("Output:\n")[0]
    records[2]["payload"]["output"] = f"{head}Output:\n{printed}"
    (call,) = calls_of("codex", records)
    return call


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("grep -q x a", "done"),
        ("find . -name x -delete", "done"),
        ("rg x > hits", "done"),
        ("rg x || true", "done"),
        ("find . -name x", "nothing_found"),
    ],
)
def test_silence_is_no_hit_only_where_hits_are_printed(command: str, outcome: str) -> None:
    call = codex_call("worked", command, "")
    assert (call.status, call.outcome) == ("ok", outcome)


@pytest.mark.parametrize(
    ("command", "text", "outcome"),
    [
        ("grep -c x a", "0", "nothing_found"),
        ("cd src && rg --count x", "a.py:0\nb c.py:0", "nothing_found"),
        ("cd src && grep -nc x a", "0", "nothing_found"),
        ("pytest && grep -c x a", "1 failed", "exit_nonzero"),
        ("cd src && grep -n x a", "0", "exit_nonzero"),  # not a count: somebody else's output
        ("echo == a; grep -n x a", "== a", "nothing_found"),
        ("cat a\ngrep 'x;y' b", "text", "nothing_found"),
        ("make; sudo grep -c x a", "built", "nothing_found"),
        ("echo == a; cd gone && grep -n x a", "== a\nno such folder", "exit_nonzero"),
        ("set -e; pytest; grep x a", "1 failed", "exit_nonzero"),
        ("set -euo pipefail\npytest\ngrep x a", "1 failed", "exit_nonzero"),
        ("pytest; cat a | grep x", "1 failed", "exit_nonzero"),  # with pipefail it may be the first's
        ("cd a && (pytest; grep x b)", "no such folder", "exit_nonzero"),
        ("pytest; find . -name x", "1 failed", "exit_nonzero"),  # what 1 means of it nobody defines
        ("bash -lc 'echo a; rg x'", "a", "nothing_found"),
    ],
)
def test_a_search_without_a_hit_beside_what_else_was_printed(command: str, text: str, outcome: str) -> None:
    assert codex_call("exit", command, text).outcome == outcome


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Error: Could not find oldString in the file.", "edit_mismatch"),
        ("Error: You must read file /w/a before overwriting it.", "not_read_first"),
        ("Error: File /w/a not found", "not_found"),
        ("ENOENT: no such file or directory", "not_found"),
        ("EACCES: permission denied", "permission"),
        ("connect ECONNREFUSED", "network"),
        ("whatever", "other"),
    ],
)
def test_errors_in_the_words_of_one_agent_have_the_classes_of_all(text: str, error: str) -> None:
    content = document("opencode", "refused")
    part = content["messages"][0]["parts"][0]
    part["tool"], part["state"]["error"], part["state"]["input"] = "edit", text, {"filePath": "/w/a"}
    (call,) = calls_of("opencode", content)
    assert (call.status, call.outcome, call.error_class) == ("error", "error_result", error)


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
    ("ok\n\nCommand exited with code 1", "test", "test", "exit_nonzero"),
    (f"{LONG}\n\nCommand exited with code 1", "test", "test", "exit_nonzero"),
    ("Exit code 1\n(eval):cd:1: no such file or directory: sub", "test", "test", "not_found"),
    ("Exit code 127\nsh: 1: vitest: not found", "test", "test", "not_found"),
    ("Exit code 127\n/bin/bash: line 1: tsc: command not found", "shell", "build", "not_found"),
    ("Exit code 143\nCommand timed out after 2m 0.0s", "test", "test", "timeout"),
    ("Exit code 2\na.ts(1,1): error TS1", "shell", "build", "compile_error"),
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


@each_row(("text", "class_", "kind", "expected"), CLASSES)
def test_an_error_has_the_class_its_words_say(
    text: str, class_: ToolClass, kind: ShellKind | None, expected: str
) -> None:
    assert error_class(text, class_, kind) == expected


RUNS: list[tuple[str, str, int]] = [
    # a test runner's results
    ("test_failed", "Tests:       1 failed, 2 passed, 3 total\nTest Suites: 1 failed, 1 total", 1),
    ("test_failed", "FAIL src/a.test.ts\n  ● reads › a list\n\n    TypeError: x is not a function", 1),
    (
        "test_failed",
        " FAIL  src/a.test.ts > reads > a list\n Test Files  1 failed (1)\n"
        "      Tests  1 failed | 3 passed (4)",
        1,
    ),
    ("test_failed", "  3 passing (9ms)\n  1 failing\n\n  1) reads\n     Error: getaddrinfo ENOTFOUND x", 1),
    ("test_failed", "# tests 2\n# pass 1\n# fail 1", 1),
    ("test_failed", "ℹ tests 2\nℹ pass 1\nℹ fail 1", 1),
    ("test_failed", "ok 1 - reads\nnot ok 2 - writes", 1),
    ("test_failed", "FAILED | 3 passed | 1 failed (12ms)", 1),
    ("test_failed", " 3 pass\n 1 fail\nRan 4 tests across 1 file.", 1),
    ("test_failed", "  1 failed\n    [chromium] › a.spec.ts:3:1 › opens", 1),
    ("test_failed", "=================== 1 failed in 0.12s ===================", 1),
    (
        "test_failed",
        "ERROR tests/test_a.py::test_b - ConnectionError: connection refused\n1 passed, 1 error in 0.1s",
        1,
    ),
    ("test_failed", "FAIL: test_a (tests.T.test_a)\nRan 1 test in 0.0s\n\nFAILED (failures=1)", 1),
    (
        "test_failed",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored\nerror: test failed, to rerun pass `--lib`",
        101,
    ),
    ("test_failed", "     Summary [   0.005s] 3 tests run: 2 passed, 1 failed, 0 skipped", 100),
    ("test_failed", "--- FAIL: TestTide (0.00s)\n    a_test.go:4: no such file or directory\nFAIL\nexit status 1", 1),
    ("test_failed", "ok  \texample.org/a\t0.2s\nFAIL\texample.org/b\t0.012s", 1),
    ("test_failed", "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE", 1),
    ("test_failed", "[ERROR] Tests run: 3, Failures: 0, Errors: 1\n[ERROR] There are test failures.", 1),
    ("test_failed", "ATest > reads FAILED\n\n3 tests completed, 1 failed\n> There were failing tests.", 1),
    ("test_failed", "  Failed Reads [12 ms]\nFailed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4", 1),
    ("test_failed", "Total tests: 3\n     Passed: 2\n     Failed: 1\nTest Run Failed.", 1),
    (
        "test_failed",
        "Finished in 0.1 seconds\n5 examples, 1 failure\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:3",
        1,
    ),
    ("test_failed", "3 runs, 3 assertions, 1 failures, 0 errors, 0 skips", 1),
    ("test_failed", "3 runs, 2 assertions, 0 failures, 1 errors, 0 skips", 1),
    ("test_failed", "FAILURES!\nTests: 3, Assertions: 3, Failures: 1.", 1),
    ("test_failed", "Executed 3 tests, with 1 failure (0 unexpected) in 0.1 (0.1) seconds", 1),
    ("test_failed", "  1) test reads (ATest)\n\n1 doctest, 3 tests, 1 failure", 2),
    ("test_failed", "50% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  2 - b (Failed)", 8),
    ("test_failed", "[  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:", 1),
    ("test_failed", "test cases: 2 | 1 passed | 1 failed\nassertions: 4 | 3 passed | 1 failed", 1),
    (
        "test_failed",
        "[info] Tests: succeeded 2, failed 1, canceled 0\n[error] (Test / test) sbt.TestFailedException",
        1,
    ),
    ("test_failed", "Ran 3 tests containing 5 assertions.\n1 failures, 0 errors.", 1),
    ("test_failed", "[ FAIL 1 | WARN 0 | SKIP 0 | PASS 3 ]", 1),
    ("test_failed", "00:01 +2 -1: Some tests failed.", 1),
    ("test_failed", "1 scenario (1 failed)\n3 steps (1 failed, 2 skipped)", 1),
    ("test_failed", "t/a.t .. Failed 1/3 subtests\nResult: FAIL", 1),
    ("test_failed", "//reef:tide_test      FAILED in 0.3s\nExecuted 1 out of 1 test: 1 fails locally.", 3),
    # no test ran
    (
        "compile_error",
        "FAIL src/a.test.ts\n  ● Test suite failed to run\n\n    error TS2304: Cannot find name 'T'\n"
        "Test Suites: 1 failed, 1 total\nTests:       0 total",
        1,
    ),
    (
        "compile_error",
        "[ERROR] COMPILATION ERROR :\n[ERROR] /w/A.java:[3,5] cannot find symbol\n[INFO] BUILD FAILURE",
        1,
    ),
    ("compile_error", "> Task :compileTestJava FAILED\nA.java:3: error: cannot find symbol\nBUILD FAILED in 2s", 1),
    ("compile_error", "/w/A.cs(3,5): error CS0103: The name 'tide' does not exist\nBuild FAILED.", 1),
    (
        "compile_error",
        "An error occurred while loading ./spec/a_spec.rb.\nsyntax error, unexpected end-of-input\n"
        "0 examples, 0 failures, 1 error occurred outside of examples",
        1,
    ),
    ("compile_error", "PHP Parse error:  syntax error, unexpected token \"}\" in /w/a.php on line 3", 255),
    ("compile_error", "/w/a.swift:3:5: error: cannot find 'tide' in scope\nerror: fatalError", 1),
    ("compile_error", "== Compilation error in file lib/a.ex ==\n** (SyntaxError) lib/a.ex:3:1", 1),
    (
        "compile_error",
        "a.c: In function 'main':\na.c:3:5: error: 'tide' undeclared\nmake: *** [Makefile:3: a.o] Error 1",
        2,
    ),
    ("compile_error", "a.c:1:10: fatal error: tide.h: No such file or directory", 2),
    ("compile_error", "src/a.ts:1:20 - error TS2307: Cannot find module './b'", 2),
    ("compile_error", "vet: ./a.go:3:5: undefined: tide", 1),
    ("compile_error", "e: file:///w/A.kt:3:5 Unresolved reference: tide\n> Task :compileKotlin FAILED", 1),
    (
        "not_found",
        "ERROR: test_a (unittest.loader._FailedTest)\nImportError: Failed to import test module: test_a\n"
        "ModuleNotFoundError: No module named 'yaml'\nFAILED (errors=1)",
        1,
    ),
    ("not_found", "ERROR collecting tests/test_a.py\nModuleNotFoundError: No module named 'yaml'\n1 error in 0.1s", 2),
    ("not_found", "error: no such command: `nextest`", 101),
    ("not_found", "make: *** No rule to make target 'test'.  Stop.", 2),
    ("not_found", "Task 'tests' not found in root project 'reef'.", 1),
    ("not_found", "Could not open input file: vendor/bin/phpunit", 1),
    ("not_found", "bundler: command not found: rspec", 127),
    ("not_found", "'pytest' is not recognized as an internal or external command,", 1),
    ("not_found", "collected 0 items\n\n===== no tests ran in 0.01s =====", 5),
    ("not_found", "No tests were found!!!", 8),
    ("network", "[ERROR] Could not transfer artifact a:b:jar:1: Unknown host repo.maven.apache.org", 1),
    ("network", "error NU1301: Unable to load the service index for source https://api.nuget.org/v3/index.json", 1),
    (
        "network",
        "go: example.org/x@v1: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org: no such host",
        1,
    ),
    ("network", "NewConnectionError: Temporary failure in name resolution\nERROR: No matching distribution", 1),
    ("killed", "..\nbash: line 1:  4242 Killed                  pytest -q", 137),
    ("killed", "", 137),
    ("killed", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", 134),
    ("permission", "bash: ./check.sh: Permission denied", 126),
    ("timeout", "Command timed out after 2m 0.0s\n..F.", 143),
    ("permission", "a.go:7:2: open /c/ba-a: operation not permitted\nFAIL\t./... [setup failed]", 1),
    ("not_found", "# .\nno Go files in /w\nFAIL\t. [setup failed]", 1),
    ("invalid_arguments", "Error: unknown flag: --x\nUsage:\n  run [flags]\n  --kill  send SIGTERM", 1),
    ("lint_failed", "/w/a.ts\n  3:5  error  'x' is unused  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)", 1),
    (
        "lint_failed",
        "a.py:3: error: Incompatible types  [assignment]\nFound 1 error in 1 file (checked 2 source files)",
        1,
    ),
    ("lint_failed", "a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.", 1),
    ("exit_nonzero", "", 1),
]  # fmt: skip
"""What a run printed, of any test runner, and what failed by that."""


@each_row(("class_", "kind"), [("test", "test"), ("shell", "run"), ("shell", "build")])
@each_row(("expected", "text", "code"), RUNS)
def test_a_run_is_told_by_its_output_whatever_program_it_is(
    class_: ToolClass, kind: ShellKind, expected: str, text: str, code: int
) -> None:
    assert error_class(f"Exit code {code}\n{text}", class_, kind, code) == expected
    if expected in ("test_failed", "compile_error") and "Killed" not in text:
        assert error_class(text, class_, kind) == expected, "an agent that logs no exit code"


@pytest.mark.parametrize(
    ("class_", "kind", "expected"), [("test", "test", "test_failed"), ("shell", "run", "exit_nonzero")]
)
@pytest.mark.parametrize("text", ["reads a list: FAILED", "✗ reads a list", "..F.", "Test Suites: 1 failed, 1 total"])
def test_words_without_a_known_result_count_for_a_test_program_alone(
    class_: ToolClass, kind: ShellKind, expected: str, text: str
) -> None:
    assert error_class(f"Exit code 1\n{text}", class_, kind, 1) == expected


def test_a_hook_that_reports_its_own_tests_blocked_the_call() -> None:
    assert error_class("PreToolUse:Bash hook error: 1 failed, 3 passed in 0.4s", "shell", "vcs") == "blocked"


@pytest.mark.parametrize(
    ("code", "expected"), [(126, "permission"), (127, "not_found"), (137, "killed"), (3, "exit_nonzero")]
)
def test_an_exit_code_that_posix_gives_a_meaning_says_the_class(code: int, expected: str) -> None:
    assert error_class("", "shell", "run", code) == expected


@pytest.mark.parametrize(("class_", "expected"), [("edit", "blocked"), ("read", "other")])
def test_an_extension_that_blocks_in_its_own_words_is_known_by_the_tool(class_: ToolClass, expected: str) -> None:
    words = "Adds a behaviour without evidence of a test that fails first."
    call = ToolCall(seq=0, turn=0, step=None, thread="main", call_id="a", name="x", class_=class_, arguments="{}")
    assert ending(call, words, "error", None, None, Profile(blocks_in_any_words=("edit",))).error == expected
    assert ending(call, words, "error", None, None, Profile()).error == "other"


FAILED_TESTS = error_words().failed_tests
PATTERNS = [
    *(says.source for says in (FAILED_TESTS, *(says for _, says in (*error_words().tool, *error_words().command)))),
    *(pattern for profile in profiles() for _, patterns in profile.failures for pattern in patterns),
]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("timed out", ["timed out"]),
        ("timed out|deadline", ["deadline", "timed out"]),
        ("files? are", ["file"]),
        (r"\bno such (?:file|tool)\b", ["no such "]),
        (r"\d+ (?:failed|failing)", ["failed", "failing"]),
        ("(?:old_)?string", ["string"]),
        ("(?:ab|cd)+", ["ab", "cd"]),
        ("edits{0,3} done", [" done"]),
        (r"\[rejected\]", ["[rejected]"]),
        (r"[\[\]x]{2}y\.z", ["y.z"]),
        ('{"status":', ['{"status":']),
        ("a(?=bcd)", ["a"]),
        ("error|errors found", ["error"]),
        (r"error|\d+", []),
        ("x*", []),
        ("", []),
    ],
)
def test_a_match_holds_one_of_these_words(pattern: str, words: list[str]) -> None:
    assert sorted(words_of(pattern)) == words


def test_an_agents_own_words_for_an_error_are_of_a_class_of_all() -> None:
    named = {kind for profile in profiles() for kind, _ in profile.failures}
    assert named <= {kind for kind, _ in (*error_words().tool, *error_words().command)}


@each_row("pattern", PATTERNS)
def test_every_pattern_of_an_error_names_its_words(pattern: str) -> None:
    assert all(len(word) >= 3 for word in words_of(pattern)) and words_of(pattern)


@settings(max_examples=60, deadline=None)
@given(st.from_regex(re.compile(FAILED_TESTS.source, re.MULTILINE), alphabet=st.characters(max_codepoint=127)))
def test_each_line_of_a_failed_test_says_so(text: str) -> None:
    lines = [line for line in text.split("\n") if any(word in line for word in error_words().failed_tests_say)]
    assert FAILED_TESTS.is_in("\n".join(lines))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(PATTERNS).flatmap(
        lambda p: st.tuples(st.just(p), st.from_regex(p, alphabet=st.characters(max_codepoint=127)))
    )
)
def test_what_a_pattern_matches_is_found_by_its_words(case: tuple[str, str]) -> None:
    pattern, text = case
    assert Pattern(pattern, re.MULTILINE).is_in(text)
