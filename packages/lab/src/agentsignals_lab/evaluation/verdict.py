"""Verdict of an evaluator on one answer, and what may be counted together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from agentsignals.errors import LabError
from msgspec import Struct

EVALUATOR = "1"
"""This lab's evaluator of functions and texts. Passes by two evaluators mean different things."""

ErrorClass = Literal[
    "none",
    "no_function",
    "invalid_python",
    "import_failed",
    "load_failed",
    "raised",
    "wrong_value",
    "timeout",
    "memory",
    "crashed",
    "no_plain_value",
    "unmet",
    "infrastructure",
]
"""Whose fault it is, in a word. `infrastructure` is ours, never the model's: such an answer has no passes at all."""


class Verdict(Struct, frozen=True, kw_only=True):
    """Outcome of one answer. Passes are None where nothing could be run."""

    evaluator: str = EVALUATOR
    task: str
    """The key of the task: id, version and variant."""
    has_function: bool
    valid_python: bool
    """For a task that asks for a text: True if there is an answer at all."""
    visible_pass: bool | None
    hidden_pass: bool | None
    task_pass: bool | None
    """Visible and hidden."""
    error: str
    """Error of the first visible case that fails, else of the first hidden one; empty when all pass."""
    error_class: ErrorClass
    extracted: str
    """The code that was run."""
    visible_passed: int = 0
    n_visible: int = 0
    hidden_passed: int = 0
    n_hidden: int = 0
    tier: str | None = None
    """The sandbox that locked the code in (`sandbox.TIER`); None when none was run."""
    wall_s: float = 0.0


def one_evaluator(verdicts: Iterable[Verdict]) -> str:
    """The evaluator of all of them. LabError when there are several, whose passes mean different things, or none."""
    evaluators = sorted({verdict.evaluator for verdict in verdicts})
    if len(evaluators) != 1:
        raise LabError(
            f"Verdicts of {' and '.join(evaluators)} can't be counted together."
            if evaluators
            else "There are no verdicts.",
            "Run them again by one version of this program.",
        )
    return evaluators[0]


class Recovery(Struct, frozen=True, kw_only=True):
    """Recovery by retries in one run of attempts."""

    attempts: int
    failed_first: bool
    recovered: bool
    """The first attempt failed and a later one passed."""
    passed_at: int | None
    """The number (from 0) of the first attempt that passed."""
    repeated: int
    """Attempts whose code is that of the attempt before."""
    regressed: int
    """Attempts that pass fewer visible cases than the one before."""


def recovery(attempts: Sequence[Verdict]) -> Recovery:
    """Return the recovery by retries, from the verdicts of a run's attempts in order. LabError for none, or of two
    evaluators."""
    one_evaluator(attempts)
    if len({attempt.task for attempt in attempts}) != 1:
        raise LabError("Attempts of several tasks are no run.", "Give the attempts of one task and sample, in order.")
    passes = [n for n, attempt in enumerate(attempts) if attempt.visible_pass]
    pairs = list(pairwise(attempts))
    return Recovery(
        attempts=len(attempts),
        failed_first=attempts[0].visible_pass is False,
        recovered=bool(passes) and attempts[0].visible_pass is False,
        passed_at=passes[0] if passes else None,
        repeated=sum(bool(a.extracted) and a.extracted == b.extracted for a, b in pairs),
        regressed=sum(b.visible_passed < a.visible_passed for a, b in pairs),
    )
