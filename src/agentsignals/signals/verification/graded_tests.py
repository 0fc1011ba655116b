"""Tests fixed, broken and left, as the verifier's report counts them (design/formats.md#swe-bench)."""

from __future__ import annotations

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.edits.patch_outcome import unfixed_targets
from agentsignals.model import Absent
from agentsignals.model.attempt import Verification
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


@signal(
    "verification.fail_to_pass_count",
    type="int",
    unit="tests",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    harness=True,
    pitfalls="Out of `total`, the tests that should have been fixed; assumed where the report is by transition.",
    why="The progress made on the task itself.",
    hindsight="the verdict",
)
def fail_to_pass_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Tests that failed before the patch and pass after it."""
    tests = _verified(view, why)
    if isinstance(tests, Absent):
        return tests
    left = unfixed_targets(tests, _reward_of(view))
    fixed = len(tests.fixed or ())
    return Measured(fixed, {"total": fixed + left if left is not None else None})


@signal(
    "verification.pass_to_fail_count",
    type="int",
    unit="tests",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    harness=True,
    pitfalls="SWE-bench reports have a key of that name that is always empty: regressions fail in PASS_TO_PASS.",
    why="Any regression matters.",
    hindsight="the verdict",
)
def pass_to_fail_count(view: SessionView, why: Evidence) -> int | Absent:
    """Tests that passed before the patch and fail after it: regressions."""
    tests = _verified(view, why)
    return tests if isinstance(tests, Absent) else _counted(tests.broken)


@signal(
    "verification.pass_to_pass_count",
    type="int",
    unit="tests",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    harness=True,
    pitfalls="Large on every run: a denominator only.",
    hindsight="the verdict",
)
def pass_to_pass_count(view: SessionView, why: Evidence) -> int | Absent:
    """Tests that passed before the patch and pass after it."""
    tests = _verified(view, why)
    return tests if isinstance(tests, Absent) else _counted(tests.kept)


@signal(
    "verification.fail_to_fail_count",
    type="int",
    unit="tests",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    harness=True,
    pitfalls="Of these only `target_remaining` belong to the task.",
    hindsight="the verdict",
)
def fail_to_fail_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Tests that failed before the patch and fail after it."""
    tests = _verified(view, why)
    if isinstance(tests, Absent):
        return tests
    remaining = unfixed_targets(tests, _reward_of(view))
    return Measured(len(tests.unfixed or ()) + len(tests.still_failing or ()), {"target_remaining": remaining})


@signal(
    "verification.partial_fix_rate",
    type="float",
    unit="ratio",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    priority="P1",
    harness=True,
    pitfalls="Absent where no test was to be fixed; SWE-bench itself says 1 there.",
    hindsight="the verdict",
)
def partial_fix_rate(view: SessionView, why: Evidence, fail_to_pass_count: int) -> Measured | Absent:
    """Tests fixed / tests that should have been fixed."""
    attempt = view.session.attempt
    tests = attempt.verification if attempt is not None else None
    left = unfixed_targets(tests, _reward_of(view)) if tests is not None else None
    if attempt is None or left is None:
        return Absent("missing_field", "tests_status")
    why.support(attempt.saying("verification"))
    return ratio(fail_to_pass_count, fail_to_pass_count + left)


@signal(
    "verification.regression_rate",
    type="float",
    unit="ratio",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    priority="P1",
    harness=True,
    pitfalls="Tiny numbers over hundreds of tests; weigh it heavily all the same.",
    hindsight="the verdict",
)
def regression_rate(
    view: SessionView, why: Evidence, pass_to_fail_count: int, pass_to_pass_count: int
) -> Measured | Absent:
    """Tests broken / tests that passed before."""
    if view.session.attempt is not None:
        why.support(view.session.attempt.saying("verification"))
    return ratio(pass_to_fail_count, pass_to_fail_count + pass_to_pass_count)


def _verified(view: SessionView, why: Evidence) -> Verification | Absent:
    """The verification where its counts mean something: it ran to its end, on a patch that applied."""
    attempt = view.session.attempt
    tests = attempt.verification if attempt is not None else None
    if attempt is None or tests is None:
        return Absent("missing_artifact", "verifier_report")
    why.support(attempt.saying("verification"))
    if tests.patch_applies is False:
        return Absent("dependency_null", "verification.patch_applies")
    if tests.status != "ok":
        return Absent("not_computable", "verifier_failed")
    if tests.fixed is None:
        has_report = "verifier_report" in attempt.kinds
        return Absent("missing_field", "tests_status") if has_report else Absent("missing_artifact", "verifier_report")
    return tests


def _counted(tests: list[str] | None) -> int | Absent:
    return len(tests) if tests is not None else Absent("missing_field", "tests_status")


def _reward_of(view: SessionView) -> float | None:
    return view.session.attempt.reward if view.session.attempt is not None else None
