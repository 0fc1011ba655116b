"""Our evaluator, version `1`: the whole module runs in the sandbox, answers are compared outside."""

from __future__ import annotations

from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.evaluation.case_runs import run_cases
from agentsignals_lab.evaluation.extraction import extract
from agentsignals_lab.evaluation.text_checks import judged
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
        return judged(task, answer)
    limits = limits or Limits()
    if source is None:
        extracted = extract(answer, task.function)
        if not extracted.valid:
            reason: ErrorClass = "invalid_python" if extracted.source else "no_function"
            return _none(task, extracted.source, reason)
        source = extracted.source
    visible = run_cases(source, task.function, task.visible, limits)
    hidden = run_cases(source, task.function, task.hidden, limits)
    ran = "infrastructure" not in (visible.error_class, hidden.error_class)
    first = hidden if visible.passes or hidden.error_class == "infrastructure" else visible
    return Verdict(
        evaluator="1",
        task=task.key,
        has_function=first.error_class != "no_function",
        valid_python=first.error_class != "invalid_python",
        visible_pass=visible.passes if ran else None,
        hidden_pass=hidden.passes if ran else None,
        task_pass=visible.passes and hidden.passes if ran else None,
        error=first.error,
        error_class=first.error_class,
        extracted=source,
        visible_passed=visible.passed,
        n_visible=len(task.visible),
        hidden_passed=hidden.passed,
        n_hidden=len(task.hidden),
        tier=visible.tier,
        wall_s=visible.wall_s + hidden.wall_s,
    )


def _none(task: Task, source: str, reason: ErrorClass) -> Verdict:
    return Verdict(
        evaluator="1",
        task=task.key,
        has_function=bool(source),
        valid_python=False,
        visible_pass=False,
        hidden_pass=False,
        task_pass=False,
        error=reason,
        error_class=reason,
        extracted=source,
        n_visible=len(task.visible),
        n_hidden=len(task.hidden),
    )
