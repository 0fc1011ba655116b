"""Our evaluator, version `1`: the whole module runs in the sandbox, answers are compared outside. An answer that is a
text is judged by its checks; a pattern is RE2."""

from __future__ import annotations

from agentsignals_lab.coding_tasks import Check, Task
from agentsignals_lab.coding_tasks.task_files import compiled
from agentsignals_lab.evaluation.case_runs import LONGEST_ERROR, run_cases
from agentsignals_lab.evaluation.extraction import extract
from agentsignals_lab.evaluation.verdict import ErrorClass, Verdict
from agentsignals_lab.sandbox import Limits


def evaluate(task: Task, answer: str, limits: Limits | None = None, *, source: str | None = None) -> Verdict:
    """Evaluate an answer to a task.

    Args:
        answer: what the model wrote.
        limits: of its code.
        source: code to run instead of what is found in the answer.

    Raises:
        SandboxError: this machine can't lock it in.
    """
    if not task.function:
        return _of_text(task, answer)
    limits = limits or Limits()
    if source is None:
        extracted = extract(answer, task.function)
        if not extracted.valid:
            reason: ErrorClass = "invalid_python" if extracted.source else "no_function"
            return Verdict(
                task=task.key, has_function=bool(extracted.source), valid_python=False, visible_pass=False,
                hidden_pass=False, full_pass=False, error=reason, error_class=reason, source=extracted.source,
                n_visible=len(task.visible), n_hidden=len(task.hidden),
            )  # fmt: skip
        source = extracted.source
    visible = run_cases(source, task.function, task.visible, limits)
    hidden = run_cases(source, task.function, task.hidden, limits)
    ran = "infrastructure" not in (visible.error_class, hidden.error_class)
    first = hidden if visible.passes or hidden.error_class == "infrastructure" else visible
    return Verdict(
        task=task.key,
        has_function=first.error_class != "no_function",
        valid_python=first.error_class != "invalid_python",
        visible_pass=visible.passes if ran else None,
        hidden_pass=hidden.passes if ran else None,
        full_pass=visible.passes and hidden.passes if ran else None,
        error=first.error,
        error_class=first.error_class,
        source=source,
        visible_passed=visible.passed,
        n_visible=len(task.visible),
        hidden_passed=hidden.passed,
        n_hidden=len(task.hidden),
        tier=visible.tier,
        wall_time_s=visible.wall_s + hidden.wall_s,
    )


def _of_text(task: Task, answer: str) -> Verdict:
    """The verdict on an answer to a task without a function: which of its checks are met."""
    visible, hidden = (
        [check for check in checks if _fails(check, answer)] for checks in (task.visible_checks, task.hidden_checks)
    )
    failed = [*visible, *hidden]
    return Verdict(
        task=task.key,
        has_function=False,
        valid_python=bool(answer.strip()),
        visible_pass=not visible,
        hidden_pass=not hidden,
        full_pass=not failed,
        error=(failed[0].says or "the answer is not what was asked for")[:LONGEST_ERROR] if failed else "",
        error_class="unmet" if failed else "none",
        source="",
        visible_passed=len(task.visible_checks) - len(visible),
        n_visible=len(task.visible_checks),
        hidden_passed=len(task.hidden_checks) - len(hidden),
        n_hidden=len(task.hidden_checks),
    )


def _fails(check: Check, answer: str) -> bool:
    if check.pattern:
        met = compiled(check.pattern)(answer)
    else:
        met = answer.strip().casefold() == check.text.strip().casefold()
    return met == check.fails
