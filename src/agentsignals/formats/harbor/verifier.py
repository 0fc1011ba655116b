"""What a verifier's test report (CTRF) says: which tests pass, and whether it was the verifier itself that broke."""

from __future__ import annotations

import re

from agentsignals.formats.harbor.records import Ctrf, Test, word
from agentsignals.model.attempt import Verification

_END = 4_000
_OF_VERIFIER = re.compile(r"^(/tests/|/verifier/|/oracle/|/solution/|tests/|test_)")
_RAISED = re.compile(r"^(\S{1,300}):\d{1,7}: (\w{1,80})$")
_NO_FILE = re.compile(r"^E\s{1,8}FileNotFoundError: .{0,80}?No such file or directory: '([^'\n]{1,400})'")
_MISSING = "FileNotFoundError"
_FAILED_TO_VERIFY = frozenset(
    ("RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError", "AddTestsDirError",
     "DownloadVerifierDirError")
)  # fmt: skip
_TIMED_OUT = "VerifierTimeoutError"


def verification(report: Ctrf) -> Verification | None:
    """The tests by how they end now; how they did before the agent's work, Harbor does not ask."""
    tests = report.results.tests if report.results is not None else None
    if tests is None:
        return None
    passed = [n for t in tests if t.status == "passed" and (n := word(t.name)) is not None]
    failing = [t for t in tests if t.status == "failed"]
    verified = Verification(passed=passed, failed=[n for t in failing if (n := word(t.name)) is not None])
    broken = [_own_failure(t) for t in failing]
    if broken and all(broken):
        verified.status, verified.message = "crashed", broken[0] or ""
    return verified


def _own_failure(test: Test) -> str | None:
    """What the verifier said when it lacked a file of its own; None for any other failure.

    An assertion is the agent's failure, and so is nearly everything else a test raises when the work is not there or
    odd. Only this is the verifier's: its own code opened a file that it names itself, not one at a place the agent
    was to fill (an absolute path outside the verifier's folders).
    """
    trace = (word(test.trace) or "")[-_END:]
    lines = trace.rstrip().split("\n")
    raised = _RAISED.match(lines[-1].strip())
    if raised is None or raised[2] != _MISSING or not _OF_VERIFIER.match(raised[1]):
        return None
    error_line = next((line for line in reversed(lines) if line.startswith("E ")), "")
    missing = _NO_FILE.match(error_line)
    if missing is None or (missing[1].startswith("/") and not _OF_VERIFIER.match(missing[1])):
        return None
    return error_line.removeprefix("E").strip()


def failed_by(exception: str | None) -> Verification | None:
    """What an exception that ended a trial says of its verification; None when it was not in the verifier."""
    if exception == _TIMED_OUT:
        return Verification(status="timed_out", message=exception)
    return Verification(status="crashed", message=exception) if exception in _FAILED_TO_VERIFY else None
