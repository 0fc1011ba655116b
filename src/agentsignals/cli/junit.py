"""A gate's outcome as JUnit XML: a test case for each condition and candidate, as CI systems show them
(https://github.com/testmoapp/junitxml)."""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path

from agentsignals.analysis.compare.gate import Check, Gate
from agentsignals.cli.output import printable
from agentsignals.errors import ExportError
from agentsignals.store import files

_RESULTS = {"met": "failure", "cannot tell": "error"}


def write(path: Path, checked: Gate) -> None:
    """Writes the file. A condition that is met is a failure, one that can't be told an error: neither is a pass.
    ExportError where the file can't be written."""
    verdicts = Counter(check.verdict for check in checked.checks)
    counts = f'tests="{len(checked.checks)}" failures="{verdicts["met"]}" errors="{verdicts["cannot tell"]}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f'<testsuite name="agentsignals compare" {counts} skipped="0">',
        *(_case(check) for check in checked.checks),
        "</testsuite>",
        "</testsuites>",
    ]
    try:
        files.replace(path, "\n".join([*lines, ""]).encode())
    except OSError as problem:
        raise ExportError(f"{path} can't be written: {problem.strerror or problem}.", "Name another file.") from problem


def _case(check: Check) -> str:
    because = _attribute(check.because)
    result = _RESULTS.get(check.verdict)
    inside = f'<{result} message="{check.verdict}: {because}"/>' if result else f"<system-out>{because}</system-out>"
    name = _attribute(f"not ({check.condition})")
    return f'<testcase classname="{_attribute(check.candidate or "no candidate")}" name="{name}">{inside}</testcase>'


def _attribute(text: str) -> str:
    """Names come out of traces: without what XML has no way to say, and escaped."""
    return html.escape(printable(text))
