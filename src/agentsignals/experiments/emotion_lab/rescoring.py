"""Stored answers of published runs evaluated again, and what that changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.experiments.emotion_lab.evaluators import Evaluator, evaluate_legacy
from agentsignals.experiments.emotion_lab.runs import TASKS, Row, Run
from agentsignals.lab.coding_tasks import Task
from agentsignals.lab.evaluation.case_runs import Confinement
from agentsignals.lab.evaluation.evaluator import evaluate
from agentsignals.lab.evaluation.verdict import Verdict

Change = Literal["same", "fail_to_pass", "pass_to_fail", "was_unknown", "now_unknown"]


class Rescored(Struct, frozen=True, kw_only=True):
    """A stored answer with the verdict that was published and the one that is given now."""

    run: str
    task_id: str
    condition: str
    attempt: int
    """From 0; 0 for one-shot answers."""
    seed: str
    was: bool | None
    """True if it passed the task as published; None without a verdict."""
    was_error: str
    verdict: Verdict
    difference: tuple[str, ...] = ()
    """The published columns that the new verdict has otherwise."""

    @property
    def change(self) -> Change:
        """Change of the task's pass."""
        now = self.verdict.task_pass
        if now is None:
            return "now_unknown"
        if self.was is None:
            return "was_unknown"
        return "same" if now is self.was else "fail_to_pass" if now else "pass_to_fail"


class Rescorer:
    """Evaluates stored answers. The same answer to the same task is run once: it is the same code."""

    def __init__(self, inside: Confinement | None = None, on_answer: Callable[[], None] = lambda: None) -> None:
        self._inside = inside
        self._on_answer = on_answer
        self._verdicts: dict[tuple[Evaluator, str, str, str], Verdict] = {}

    def verdict(self, task: Task, answer: str, evaluator: Evaluator, form: str = "") -> Verdict:
        """By that evaluator. `form` tells apart tasks of one id whose cases have another form."""
        key = (evaluator, task.key, form, answer)
        if key not in self._verdicts:
            self._verdicts[key] = (
                evaluate(task, answer, self._inside)
                if evaluator == "1"
                else evaluate_legacy(task, answer, evaluator, self._inside)
            )
        self._on_answer()
        return self._verdicts[key]

    def run(self, run: Run, evaluator: Evaluator) -> list[Rescored]:
        """All answers of a run, in their order. LabError when one is to a task that was never published."""
        answers = run.answers()
        stored = answers if run.loop else run.rows("execution_scores")
        if stored and len(stored) != len(answers):
            raise LabError(
                f"{run.name} has {len(answers)} answers and {len(stored)} verdicts.", "One of each is wanted."
            )
        return [
            self._rescored(run, answer, stored[n] if stored else None, evaluator) for n, answer in enumerate(answers)
        ]

    def _rescored(self, run: Run, answer: Row, stored: Row | None, evaluator: Evaluator) -> Rescored:
        task_id = answer.get("task_id", "")
        if task_id not in TASKS:
            raise LabError(f"{run.name} has answers to {task_id!r}, no published task.", f"Those: {', '.join(TASKS)}.")
        verdict = self.verdict(TASKS[task_id], answer.get("generation") or "", evaluator)
        return Rescored(
            run=run.name,
            task_id=task_id,
            condition=answer.get("condition", ""),
            attempt=int(answer["attempt"]) if answer.get("attempt", "").isdecimal() else 0,
            seed=answer.get("seed", ""),
            was=None if stored is None else stored.get("task_pass") == "True",
            was_error="" if stored is None else stored.get("error", ""),
            verdict=verdict,
            difference=() if stored is None else _differences(verdict, stored),
        )


_COLUMNS = {
    "valid_python": "valid_python",
    "has_function": "has_function",
    "visible_pass": "visible_pass",
    "hidden_pass": "hidden_pass",
    "task_pass": "task_pass",
    "error": "error",
    "extracted_source": "extracted",
}
"""Columns of published verdicts, and where ours have them."""


def _differences(verdict: Verdict, stored: Row) -> tuple[str, ...]:
    return tuple(
        column
        for column, name in _COLUMNS.items()
        if column in stored and stored[column] != str(getattr(verdict, name))
    )
