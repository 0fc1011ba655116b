"""Verdict of an evaluator on one answer."""

from __future__ import annotations

from typing import Literal

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
    full_pass: bool | None
    """Visible and hidden."""
    error: str
    """Error of the first visible case that fails, else of the first hidden one; empty when all pass."""
    error_class: ErrorClass
    source: str
    """The code that was run."""
    visible_passed: int = 0
    n_visible: int = 0
    hidden_passed: int = 0
    n_hidden: int = 0
    tier: str | None = None
    """The sandbox that locked the code in (`sandbox.TIER`); None when none was run."""
    wall_time_s: float = 0.0
