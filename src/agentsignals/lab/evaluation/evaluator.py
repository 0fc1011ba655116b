"""Our evaluator, version `1`: the whole module runs in the sandbox, answers are compared outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from agentsignals.lab.coding_tasks import Case, Task
from agentsignals.lab.coding_tasks.relations import Relation
from agentsignals.lab.evaluation.case_runs import Confinement, Suite, run, run_cases
from agentsignals.lab.evaluation.extraction import extract
from agentsignals.lab.evaluation.text_checks import judged
from agentsignals.lab.evaluation.verdict import ErrorClass, Verdict
from agentsignals.lab.sandbox import Result, Returned


class Asked(NamedTuple):
    """A relation tried on a case: its answer, and the other call that it asks for."""

    relation: Relation
    case: Case
    value: Any
    call: tuple[Any, ...] | None


def evaluate(
    task: Task, answer: str, inside: Confinement | None = None, *, relations: bool = True, source: str | None = None
) -> Verdict:
    """Evaluate an answer to a task.

    Args:
        answer: what the model wrote.
        inside: how its code is locked in; the default tier.
        relations: whether metamorphic relations are tried, too; one more process.
        source: code to run instead of what is found in the answer.

    Raises:
        SandboxError: this machine can't lock it in as asked.
    """
    if not task.function:
        return judged(task, answer)
    inside = inside or Confinement()
    if source is None:
        extracted = extract(answer, task.function)
        if not extracted.valid:
            reason: ErrorClass = "invalid_python" if extracted.source else "no_function"
            return _none(task, extracted.source, reason)
        source = extracted.source
    visible = run_cases(source, task.function, task.visible, inside)
    hidden = run_cases(source, task.function, task.hidden, inside)
    ran = "infrastructure" not in (visible.error_class, hidden.error_class)
    first = hidden if visible.passes or hidden.error_class == "infrastructure" else visible
    broken = broken_relations(task, source, visible, hidden, inside) if relations and ran else None
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
        broken_relations=broken,
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


def broken_relations(
    task: Task, source: str, visible: Suite, hidden: Suite, inside: Confinement
) -> tuple[str, ...] | None:
    """The names of the task's metamorphic relations that do not hold; None when no call gave an answer to relate."""
    if not task.relations:
        return None
    answered = [
        (case, result.value)
        for case, result in zip([*task.visible, *task.hidden], [*visible.results, *hidden.results], strict=False)
        if isinstance(result, Returned)
    ]
    if not answered:
        return None
    asked = [
        Asked(relation, case, value, _follow(relation, case, value))
        for relation in task.relations
        for case, value in answered
    ]
    try:
        others = _answers(source, task.function, asked, inside)
    except OSError:
        return None
    broken = [first.relation.name for first, other in zip(asked, others, strict=True) if not _holds(first, other)]
    return tuple(dict.fromkeys(broken))


def _follow(relation: Relation, case: Case, value: Any) -> tuple[Any, ...] | None:
    """The other call; None when there is none. An answer of the wrong kind has none: the cases speak of that."""
    try:
        return relation.follow(case.args, value) if relation.follow else None
    except Exception:  # noqa: BLE001  (the answer may be anything, and so may what a relation meets in it)
        return None


def _answers(source: str, function: str, asked: Sequence[Asked], inside: Confinement) -> list[Result | None]:
    calls = [question.call for question in asked if question.call is not None]
    results = iter(run(source, function, calls, inside).results if calls else ())
    return [next(results) if question.call is not None else None for question in asked]


def _holds(question: Asked, other: Result | None) -> bool:
    if other is None and question.relation.follow is not None:
        return True
    if other is not None and not isinstance(other, Returned):
        return False
    try:
        return bool(question.relation.holds(question.case.args, question.value, other.value if other else None))
    except Exception:  # noqa: BLE001  (as above: an answer that can't even be related does not hold)
        return False
