"""Answers that are texts: what a task makes of them. A pattern is RE2, a command runs in the strict sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from agentsignals_lab.coding_tasks import Check, Task
from agentsignals_lab.coding_tasks.task_files import compiled
from agentsignals_lab.evaluation.verdict import Verdict
from agentsignals_lab.sandbox import exit_code

ANSWER = "answer.txt"
"""Where a command finds the answer, in its working folder."""
_LONGEST_ERROR = 300


def judged(task: Task, answer: str) -> Verdict:
    """Judge an answer to a task without a function. SandboxError where a check is a command and this machine has no
    strict sandbox."""
    visible, hidden = _failures(task.visible_checks, answer), _failures(task.hidden_checks, answer)
    failures = [*visible, *hidden]
    return Verdict(
        evaluator="1",
        task=task.key,
        has_function=False,
        valid_python=bool(answer.strip()),
        visible_pass=not visible,
        hidden_pass=not hidden,
        task_pass=not failures,
        error=failures[0][:_LONGEST_ERROR] if failures else "",
        error_class="unmet" if failures else "none",
        extracted="",
        visible_passed=len(task.visible_checks) - len(visible),
        n_visible=len(task.visible_checks),
        hidden_passed=len(task.hidden_checks) - len(hidden),
        n_hidden=len(task.hidden_checks),
    )


def _failures(checks: Sequence[Check], answer: str) -> list[str]:
    """Return the messages of the checks that are not met."""
    return [check.says or "the answer is not what was asked for" for check in checks if _fails(check, answer)]


def _fails(check: Check, answer: str) -> bool:
    if check.command:
        files = {**check.files, ANSWER: answer.encode("utf-8", "replace").decode()}
        met = exit_code(files, check.command) == 0
    elif check.pattern:
        met = compiled(check.pattern)(answer)
    else:
        met = answer.strip().casefold() == check.text.strip().casefold()
    return met == check.fails
