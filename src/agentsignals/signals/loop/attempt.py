"""The retry loop of llm-emotions: whether an attempt passes the tests, and how it fails.

Visible tests are those the agent was shown, hidden ones were only scored. An attempt log tells them as rewards of those
names; harnesses seldom have both.
"""

from __future__ import annotations

import re

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,63}\.){0,8}([A-Za-z_]\w{0,63})(?:\(|:|$)")
_EXPECTED = re.compile(r"expected .{0,2000}?, got ", re.DOTALL)
_PLAIN_ERRORS = frozenset(("function_not_found", "invalid_python", "timeout", "no_result"))
_ERROR_CHARS = 4_000
_LOG = "attempt_log"


@signal(
    "loop.visible_pass",
    type="bool",
    unit="flag",
    context="eval",
    level="attempt",
    origin="llm-emotions",
    source="verifier",
    priority="P1",
    harness=True,
    status="needs an artifact",
    pitfalls="It ends the loop: an attempt after it does not exist.",
    hindsight="the verdict",
)
def visible_pass(view: SessionView, why: Evidence) -> bool | Absent:
    """Whether all tests that the agent was shown pass for the code of this attempt."""
    return _passed(view, why, "visible")


@signal(
    "loop.hidden_pass",
    type="bool",
    unit="flag",
    context="eval",
    level="attempt",
    origin="llm-emotions",
    source="verifier",
    priority="P1",
    harness=True,
    status="needs an artifact",
    hindsight="the verdict",
)
def hidden_pass(view: SessionView, why: Evidence) -> bool | Absent:
    """Whether all tests that the agent was not shown pass for the code of this attempt."""
    return _passed(view, why, "hidden")


@signal(
    "loop.task_pass",
    type="bool",
    unit="flag",
    context="eval",
    level="attempt",
    origin="llm-emotions",
    source="verifier",
    priority="P1",
    status="needs an artifact",
)
def task_pass(visible_pass: bool, hidden_pass: bool) -> bool:
    """Whether all tests pass, the visible and the hidden ones."""
    return visible_pass and hidden_pass


@signal(
    "loop.attempts_used",
    type="int",
    unit="attempts",
    context="eval",
    origin="llm-emotions",
    source="harness",
    priority="P1",
    harness=True,
    pitfalls="`censored` at the most attempts allowed: with more of them it might have been solved."
    " One value on the project's corpus.",
    hindsight="the verdict",
)
def attempts_used(
    view: SessionView, why: Evidence, visible_pass: bool | Absent, reward: float | Absent
) -> Measured | Absent:
    """Attempts that the trial took, up to the one that passed or the last one allowed; told on its last attempt."""
    attempt = view.session.attempt
    if attempt is None or attempt.attempt_index is None:
        return Absent("missing_artifact", _LOG)
    if not attempt.is_last:
        return Absent("not_applicable", "not_the_last_attempt")
    why.support(attempt.statements)
    passed = _solved(visible_pass, reward)
    return Measured(attempt.attempt_index + 1, {"censored": None if passed is None else not passed})


@signal(
    "loop.first_failure_error",
    type="str",
    unit="function_not_found|invalid_python|timeout|no_result|assertion|exception:<type>",
    context="eval",
    level="attempt",
    origin="llm-emotions",
    source="verifier",
    priority="P2",
    harness=True,
    status="needs an artifact",
    pitfalls="Of the first test that failed only.",
    hindsight="the verdict",
)
def first_failure_error(view: SessionView, why: Evidence, visible_pass: bool | Absent) -> str | Absent:
    """The kind of error that the attempt's tests ended in: an assertion where values differ, else the exception."""
    attempt = view.session.attempt
    if visible_pass is True:
        return Absent("not_applicable", "passed")
    tests = attempt.verification if attempt is not None else None
    if attempt is None or _LOG not in attempt.kinds or tests is None:
        return Absent("missing_artifact", _LOG)
    if not tests.message:
        return Absent("missing_field", "error")
    why.support(attempt.saying("verification"))
    kind = error_kind(tests.message)
    return kind if kind is not None else Absent("not_computable", "unknown_error")


@signal(
    "loop.condition",
    type="str",
    unit="label",
    context="eval",
    level="attempt",
    origin="llm-emotions",
    source="harness",
    priority="P2",
    harness=True,
    status="needs an artifact",
    pitfalls="Part of the treatment: never pool over it.",
)
def condition(view: SessionView, why: Evidence) -> str | Absent:
    """The steering condition of the run: `baseline`, or an emotion with its strength."""
    attempt = view.session.attempt
    value = attempt.knobs.get("condition") if attempt is not None else None
    if attempt is None or not isinstance(value, str) or not value:
        return Absent("not_applicable", "no_steering")
    why.support(attempt.saying("knobs.condition"))
    return value


def error_kind(text: str) -> str | None:
    """The class of an error as a test harness words it; None for words that name none."""
    text = text.strip()[:_ERROR_CHARS]
    if text in _PLAIN_ERRORS:
        return text
    if _EXPECTED.match(text):
        return "assertion"
    lowered = text[:200].lower()
    if "timed out" in lowered or "timeout" in lowered:
        return "timeout"
    name = _EXCEPTION.match(text)
    if name is None or not (name[1].endswith(("Error", "Exception", "Exit", "Interrupt", "Iteration", "Warning"))):
        return None
    return "assertion" if name[1] == "AssertionError" else f"exception:{name[1]}"


def _passed(view: SessionView, why: Evidence, tests: str) -> bool | Absent:
    attempt = view.session.attempt
    rewards = attempt.rewards if attempt is not None else None
    value = next((v for name in (tests, f"{tests}_pass") if (v := (rewards or {}).get(name)) is not None), None)
    if attempt is None or value is None:
        return Absent("missing_artifact", _LOG)
    why.support(attempt.saying("rewards"))
    return value == 1


def _solved(visible: bool | Absent, reward: float | Absent) -> bool | None:
    if not isinstance(visible, Absent):
        return visible
    return None if isinstance(reward, Absent) else reward == 1
