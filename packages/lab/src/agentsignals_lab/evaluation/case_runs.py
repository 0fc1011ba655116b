"""Cases run in the sandbox, and what went wrong with them in one vocabulary. What is expected never goes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from agentsignals_lab import sandbox
from agentsignals_lab.coding_tasks import Case
from agentsignals_lab.evaluation.verdict import ErrorClass
from agentsignals_lab.sandbox import Failed, Limits, Result, Returned, same, shown

LONGEST_ERROR = 300
_CLASSES: dict[str, ErrorClass] = {
    "syntax": "invalid_python",
    "missing_function": "no_function",
    "memory": "memory",
    "timeout": "timeout",
    "raised": "raised",
    "killed": "crashed",
    "exited": "crashed",
    "not_reached": "crashed",
}


class Suite(Struct, frozen=True):
    """Outcome of some cases, run in one process."""

    passed: int
    error: str = ""
    """Error of the first case that fails."""
    error_class: ErrorClass = "none"
    tier: str | None = None
    wall_s: float = 0.0

    @property
    def passes(self) -> bool:
        """Return whether all cases passed."""
        return self.error_class == "none"


def run_cases(source: str, function: str, cases: Sequence[Case], limits: Limits) -> Suite:
    """Runs the cases in a process of their own and compares here. An OSError of the machine is `infrastructure`."""
    if not cases:
        return Suite(0)
    try:
        outcome = sandbox.call(source, function, [case.args for case in cases], limits)
    except OSError as problem:
        return Suite(0, f"the machine could not run it: {problem}"[:LONGEST_ERROR], "infrastructure")
    outcomes = [_case_outcome(result, case) for result, case in zip(outcome.results, cases, strict=True)]
    failed = [found for found in outcomes if found[1] != "none"]
    error, error_class = failed[0] if failed else ("", "none")
    return Suite(len(outcomes) - len(failed), error, error_class, sandbox.TIER, outcome.wall_s)


def _case_outcome(result: Result, case: Case) -> tuple[str, ErrorClass]:
    if isinstance(result, Returned):
        if meets(result.value, case):
            return "", "none"
        near = "" if case.within is None else f" within {case.within!r}"
        return f"expected {case.expected!r}{near}, got {shown(result.value)}", "wrong_value"
    return str(result)[:LONGEST_ERROR], class_of(result)


def class_of(failed: Failed) -> ErrorClass:
    """A failure in the vocabulary of verdicts."""
    if failed.kind == "raised" and failed.type.rpartition(".")[2] in ("ImportError", "ModuleNotFoundError"):
        return "import_failed"
    if failed.kind == "raised" and failed.where == "load":
        return "load_failed"
    return _CLASSES.get(failed.kind, "no_plain_value")


def agrees(actual: Any, expected: Any) -> bool:
    """Return whether a plain value is what is expected: a tuple will do for a list and 2.0 for 2, but True is not 1
    (b 10)."""
    return same(actual, expected, sequences_alike=True, numbers_alike=True)


def meets(actual: Any, case: Case) -> bool:
    """Return whether a plain value is what a case expects, or a number so near it as the case allows."""
    if case.within is None:
        return agrees(actual, case.expected)
    return type(actual) in (int, float) and abs(actual - case.expected) <= case.within
