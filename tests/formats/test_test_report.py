# ruff: noqa: E501  (output as programs print it)
"""Which tests a verifier ran, and whether it ran any: a table of what runners, shells and machines print."""

from __future__ import annotations

import pytest

from agentsignals.formats.test_report import program_not_there, read_junit, read_log
from tests.quick import each_row

NOT_RUN = [
    "curl: (7) Failed to connect to astral.sh port 443 after 3 ms: Couldn't connect to server\n",
    "curl: (6) Could not resolve host: astral.sh\n/tests/test.sh: line 12: /root/.local/bin/env: No such file or directory\n"
    "/tests/test.sh: line 20: uvx: command not found\n",
    "+ python3 -m pytest /tests/test_outputs.py\n/usr/bin/python3: No module named pytest\n",
    "/verifier/run: 9: pytest: not found\nexit code: 127\n",
    "sh: 1: npx: not found\nTests failed\n",
    "sudo: cargo: command not found\nFAIL\n",
    "env: ‘node’: No such file or directory\n",
    "/usr/bin/env: 'bats': Permission denied\n",
    "bash: /tests/run-tests.sh: Permission denied\n",
    "bash: /tests/run-tests.sh: No such file or directory\n",
    "/tests/test.sh: line 3: /opt/runner/bin/check: cannot execute binary file: Exec format error\n",
    'OCI runtime exec failed: exec failed: unable to start container process: exec: "pytest": executable file not found in $PATH\n',
    "zsh: command not found: pytest\n",
    "python: can't open file '/tests/check.py': [Errno 2] No such file or directory\n",
    "npm ERR! code EAI_AGAIN\nnpm ERR! request to https://registry.npmjs.org/jest failed, reason: getaddrinfo EAI_AGAIN\n",
    "ERROR: Could not find a version that satisfies the requirement pytest==8.4.1 (from versions: none)\n"
    "ERROR: No matching distribution found for pytest==8.4.1\n",
    "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because pytest was not found in the package registry\n",
    "error: Request failed after 3 retries\n  Caused by: error sending request for url (https://pypi.org/simple/pytest/)\n"
    "  Caused by: dns error: failed to lookup address information\n",
    "Temporary failure resolving 'deb.debian.org'\nE: Unable to locate package python3-pip\n",
    "error: connect ECONNREFUSED registry.npmjs.org:443, connection refused\n",
    "curl: (7) Failed to connect to astral.sh port 443: Connection refused\n",
    "Downloading pytest\nerror: Failed to download `pytest==8.4.1`\n  Caused by: operation timed out\n",
    "npm error code ENOTFOUND\nnpm error network request to https://registry.npmjs.org/vitest failed\n",
    "curl: (18) HTTP/2 stream 1 was not closed cleanly before end of the underlying stream\nuvx: command not found\n",
    "Verifier exited with code 127\n",
    "command ended, exit status 126\n",
    "===== test session starts =====\ncollected 0 items\n\n===== no tests ran in 0.01s =====\n",
    "ERROR: file or directory not found: /tests/test_outputs.py\n\n===== no tests ran in 0.00s =====\n",
    "ImportError while loading conftest '/tests/conftest.py'.\ntests/conftest.py:3: in <module>\n    import requests\n"
    "E   ModuleNotFoundError: No module named 'requests'\n",
    "collected 0 items / 1 error\n\n==== ERRORS ====\n__ ERROR collecting test_outputs.py __\n"
    "/tests/test_outputs.py:4: in <module>\n    import psutil\nE   ModuleNotFoundError: No module named 'psutil'\n"
    "==== short test summary info ====\nERROR ../tests/test_outputs.py\n!!! Interrupted: 1 error during collection !!!\n"
    "==== 1 error in 0.20s ====\n",
    "pytest: error: unrecognized arguments: --ctrf\n",
    "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n",
]
RAN = [
    ("PASSED ../tests/test_a.py::test_x\nFAILED ../tests/test_a.py::test_y - AssertionError: no\n== 1 failed, 1 passed in 1.2s ==\n",
     ["../tests/test_a.py::test_x"], ["../tests/test_a.py::test_y"]),
    ("tests/a.py::test_x PASSED      [ 50%]\r\ntests/a.py::test_y[a b] FAILED      [100%]\r\n",
     ["tests/a.py::test_x"], ["tests/a.py::test_y[a b]"]),
    ("\x1b[32mPASSED\x1b[0m t.py::\x1b[1mtest_x\x1b[0m\nERROR t.py::test_y - fixture 'db' not found\n== 1 passed, 1 error in 3s ==\n",
     ["t.py::test_x"], ["t.py::test_y"]),
    ("test_x (suite.Case.test_x) ... ok\ntest_y (suite.Case.test_y) ... FAIL\n\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n",
     ["test_x (suite.Case.test_x)"], ["test_y (suite.Case.test_y)"]),
    ("1..3\nok 1 - reads\nnot ok 2 - writes\nok 3 - sorts # SKIP no locale\n", ["reads"], ["writes"]),
    ("=== RUN   TestSum\n--- PASS: TestSum (0.00s)\n--- FAIL: TestDiv (0.01s)\nFAIL\texample.org/calc\t0.01s\n", ["TestSum"], ["TestDiv"]),
    ("test sums::adds ... ok\ntest sums::divides ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n", ["sums::adds"], ["sums::divides"]),
    (" ✓ adds two numbers (3 ms)\n ✕ divides\n\nTests:       1 failed, 1 passed, 2 total\n", ["adds two numbers"], ["divides"]),
    ("[       OK ] Calc.Adds (0 ms)\n[  FAILED  ] Calc.Divides (1 ms)\n", ["Calc.Adds"], ["Calc.Divides"]),
    ("1/2 Test  #1: adds ........   Passed    0.01 sec\n2/2 Test  #2: divides .....***Failed    0.01 sec\n", ["adds"], ["divides"]),
    ("PASSED test_header\nFAILED test_total - AssertionError: no\n== 1 failed, 1 passed in 1.20s ==\n", ["test_header"], ["test_total"]),
    ("PASS: test_header\nFAIL: test_total\n", ["test_header"], ["test_total"]),
    ("[PASS] test_header\ntest_total: FAIL\n", ["test_header"], ["test_total"]),
]  # fmt: skip
STAYS_A_FAILURE = [
    "E   AssertionError: sh: line 1: frobnicate: command not found\nFAILED t.py::test_x - AssertionError\n== 1 failed in 0.1s ==\n",
    "row 3: expected 17, got 12\nFAIL: 1 of 4 checks failed\n",
    "/tests/check.sh: line 4: jq: command not found\nrow 3: expected 17, got 12\n",
    "/tests/check.sh: line 3: ./solution: No such file or directory\nexpected 3\n",
    "/tests/check.sh: line 3: ./solution: No such file or directory\n",
    "bash: /app/run.sh: Permission denied\n",
    "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server\n",
    "curl: (7) Failed to connect to 127.0.0.1 port 80: Connection refused\n",
    "wrong\n",
    "curl: (7) Failed to connect to web port 8080: Connection refused\n",
    "ConnectionRefusedError: [Errno 111] Connection refused\n",
    "GET http://app:8080/health failed: connection timed out\n",
    "requests.exceptions.ConnectionError: HTTPConnectionPool(host='web', port=80): Connection refused\n",
    "solution returned 127\n",
    "./run.sh: line 2: node: command not found\nFAIL: the server did not start\n",
    "/app/start.sh: line 2: uvicorn: command not found\n",
    "/tests/run.sh: line 8:  4711 Killed                  ./solve big.txt\nanswer is missing\n",
    "collected 0 items / 1 error\n/app/solver.py:2: in <module>\nE   SyntaxError: invalid syntax\n!!! Interrupted: 1 error during collection !!!\n",
    "tests/test_a.py:1: in <module>\n    from app import main\n"
    "E   ImportError: cannot import name 'main' from 'app' (/app/app.py)\n!!! Interrupted: 1 error during collection !!!\n",
]
FAULTS = [
    ("collected 4 items\ntests/test_a.py ..Killed\nKilled\n", "out of memory"),
    ("/tests/test.sh: line 12:    41 Killed                  pytest /tests\n", "out of memory"),
    ("installing\ntar: write error: No space left on device\n", "disk full"),
    ("container exited with code 137\n", "out of memory"),
    ("Error response from daemon: container 4f2a is not running\n", "no container"),
]


@each_row("output", NOT_RUN)
def test_a_verifier_that_ran_no_test(output: str) -> None:
    log = read_log(output.encode())
    assert log.state == "not_run" and log.verification is not None and log.verification.status == "not_run", log
    assert output.splitlines()[log.line - 1].strip().startswith(log.text[:40]) or log.text in output


@pytest.mark.parametrize(("output", "passed", "failed"), RAN)
def test_tests_by_name(output: str, passed: list[str], failed: list[str]) -> None:
    log = read_log(output.encode())
    assert (log.state, log.passed, log.failed) == ("ran", passed, failed)


@pytest.mark.parametrize("output", STAYS_A_FAILURE)
def test_a_judgement_stays_one(output: str) -> None:
    assert read_log(output.encode()).state in ("ran", ""), read_log(output.encode())


@pytest.mark.parametrize(("output", "fault"), FAULTS)
def test_the_machine_ended_it(output: str, fault: str) -> None:
    log = read_log(output.encode())
    assert (log.state, log.fault) == ("fault", fault)


def test_what_a_test_prints_is_no_test() -> None:
    output = b"----- Captured stdout call -----\n\xe2\x9c\x93 all 10 files exist\nPASS: test_inner\n"
    end = b"PASSED t.py::test_x\n== 1 passed in 0.1s ==\n"
    assert read_log(output + end).passed == ["t.py::test_x"]
    assert read_log(output + b"== 1 passed in 0.1s ==\n").passed == []


def test_a_summary_that_counts_failures_is_no_pass_of_all() -> None:
    log = read_log(b"PASSED t.py::test_x\nthe other prints nothing\n== 1 failed, 1 passed in 1.2s ==\n")
    assert log.verification is not None and (log.verification.passed, log.verification.failed) == (
        ["t.py::test_x"],
        None,
    )


def test_a_long_log_is_read_from_its_end() -> None:
    log = read_log((b"-" * 1999 + b"\n") * 3_000 + b"FAILED t.py::test_x - no\n")
    assert (log.failed, log.line) == (["t.py::test_x"], 3_001)


SHELL = "root@box:/app# source /installed-agent/setup-agent.sh\n"
NOT_THERE = [
    SHELL + "curl: (28) timed out\nroot@box:/app# mini -m a -t 'x' -y; tmux wait -S done\nbash: mini: command not found\nroot@box:/app#\n",
    SHELL + "root@box:/app# /root/.venv/bin/mini -t 'x'\nbash: /root/.venv/bin/mini: No such file or directory\n",
    SHELL + "root@box:/app# KEY=1 codex exec 'long\r\ninstruction\r\nof three lines'\r\nbash: codex: command not found\r\n",
    "bash-5.1# claude -p 'x'\nsh: 1: claude: Permission denied\nbash-5.1# \n",
    "/app # opencode run x\nash: opencode: not found\n/app # \n",
    "(base) root@box:/app$ python3 -m sweagent run\n/usr/bin/python3: No module named sweagent\n",
]  # fmt: skip
THERE = [
    SHELL
    + "root@box:/app# mini -t x\nmini-swe-agent (step 1)\n<output>\nbash: frob: command not found\n</output>\nstep 2\nroot@box:/app#\n",
    "root@box:/app# frob --all\nbash: frob: command not found\nroot@box:/app# make test\nok\nroot@box:/app# quux\nbash: quux: command not found\n",
    SHELL + "root@box:/app# ",
    "root@box:/app# frob\nbash: frob: command not found\nroot@box:/app# ls\na.txt\nroot@box:/app# \n",
    "",
]


@pytest.mark.parametrize("pane", NOT_THERE)
def test_an_agent_that_was_not_there(pane: str) -> None:
    shown = program_not_there(pane.encode())
    assert shown is not None and shown[1] == pane.splitlines()[shown[0] - 1].strip()


@pytest.mark.parametrize("pane", THERE)
def test_an_agent_that_met_missing_programs_was_there(pane: str) -> None:
    assert program_not_there(pane.encode()) is None


@pytest.mark.parametrize(
    ("log", "agent", "there"),
    [
        ("bash: line 1: claude: command not found\n", "claude-code", False),
        ("installing node\nadded 3 packages\n/bin/sh: 1: gemini: not found\n", "gemini-cli", False),
        ("/bin/sh: 1: gemini: not found\n", "", False),
        ("THOUGHT: look\nbash: line 1: frob: command not found\n", "mini-swe-agent", True),
        ('{"type":"result"}\nbash: line 1: claude: command not found\n', "claude-code", True),
    ],
)
def test_a_log_without_a_prompt(log: str, agent: str, there: bool) -> None:
    assert (program_not_there(log.encode(), agent) is None) is there


def test_a_junit_report() -> None:
    report = read_junit(
        b"<?xml version='1.0'?><testsuites><testsuite><testcase classname='a.B' name='x'/><testcase classname='a.B' name='y'>"
        b"<failure message='no'>t</failure></testcase><testcase name='z'><skipped/></testcase></testsuite></testsuites>"
    )
    assert report is not None and (report.passed, report.failed) == (["a.B.x"], ["a.B.y"])
    empty = read_junit(b"<testsuite tests='0'></testsuite>")
    assert empty is not None and empty.status == "not_run"
    assert read_junit(b"<testsuite>") is None
    assert read_junit(b'<!DOCTYPE x [<!ENTITY e "e">]><testsuite><testcase name="&e;"/></testsuite>') is None
