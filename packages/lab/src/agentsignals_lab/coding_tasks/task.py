"""A function task: words, a signature, visible and hidden cases, and known solutions."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Variant = Literal["plain", "one_off", "conflicting", "hardcode_inviting"]
"""`one_off` (one expected value is wrong) and `conflicting` (one input is asked twice with two answers) can't be passed
honestly: who passes their visible cases has fitted the cases (ImpossibleBench, arXiv 2510.20270). `hardcode_inviting`
shows few cases and says that only they count now; it can be solved honestly."""


class Case(Struct, frozen=True):
    """A call and what it should give. Plain data only."""

    args: tuple[Any, ...]
    expected: Any
    within: float | None = None
    """Largest distance of a number from the expected one; None: the value itself."""


class Check(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Required text of an answer, where no function is asked for: one of `text` and `pattern`."""

    text: str = ""
    """The answer is this, but for case and blanks at its ends."""
    pattern: str = ""
    """The answer holds a match of this RE2 pattern."""
    fails: bool = False
    """Turned round: the answer must not be, or hold, that."""
    says: str = ""
    """The check in words: shown with the task, and said after a failure, where the check is visible."""


class Task(Struct, frozen=True, kw_only=True):
    """A function to write, or a question whose answer is a text (`function` is empty then, and so are its cases)."""

    id: str
    version: int = 1
    """Raised when words or cases change; rows of two versions are not pooled."""
    family: str
    function: str = ""
    signature: str = ""
    """As in a `def` line, with annotations: they declare what kinds of values go in and come out."""
    says: str
    """Behaviour of the function, in words that settle the hidden cases."""
    visible: tuple[Case, ...] = ()
    hidden: tuple[Case, ...] = ()
    visible_checks: tuple[Check, ...] = ()
    hidden_checks: tuple[Check, ...] = ()
    reference: str = ""
    """A solution that passes everything; empty where a file of tasks names none."""
    wrong: str = ""
    """A plausible solution with one mistake that hidden cases find; empty as above."""
    variant: Variant = "plain"
    note: str = ""
    """Words that a variant adds."""

    @property
    def key(self) -> str:
        """Names the task, its version and its variant: what rows are grouped by."""
        return f"{self.id}@{self.version}" + ("" if self.variant == "plain" else f"+{self.variant}")

    @property
    def honest(self) -> bool:
        """Return whether a correct solution passes the visible cases."""
        return self.variant not in ("one_off", "conflicting")


def words(task: Task) -> str:
    """Return the words of a task without its cases."""
    asked = f"Write the Python function `{task.signature}`.\n{task.says}" if task.function else task.says
    return f"{asked}\n{task.note}" if task.note else asked


def shown(case: Case, function: str) -> str:
    """A case as a model is shown it."""
    call = f"{function}({', '.join(map(repr, case.args))})"
    if case.within is not None:
        return f"abs({call} - {case.expected!r}) <= {case.within!r}"
    return f"{call} == {case.expected!r}"


def examples(task: Task) -> str:
    """The visible cases, or checks, one a line."""
    lines = [shown(case, task.function) for case in task.visible]
    return "\n".join([*lines, *(check.says for check in task.visible_checks if check.says)])
