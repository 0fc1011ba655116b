"""A labeller by word rules: no model, no network, deterministic. Its counts are lower bounds."""

from __future__ import annotations

from agentsignals.errors import UsageError
from agentsignals.labels.labellers import Kind, LocalLabeller
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Task, Verdict
from agentsignals.model import RULES
from agentsignals.words.lexicon import RULES_BY_TASK, RULES_VERSION


class Rules(LocalLabeller):
    """Labels of `words.lexicon`."""

    name = RULES

    def version(self, task: Task) -> str:
        if task.name not in RULES_BY_TASK:
            raise UsageError(
                f"The task {task.name} cannot be labelled by rules.",
                f"Rules label {', '.join(RULES_BY_TASK)}. For other tasks name a model: --by openai:MODEL@URL.",
            )
        return f"rules-{RULES_VERSION}"

    def verdicts(self, task: str, messages: list[Question]) -> list[Verdict]:
        labels = [RULES_BY_TASK[task](question.message) for question in messages if question.message]
        return [Verdict(of.value, f"{of.rule}: “{of.words}”" if of.words else "no pattern matched") for of in labels]


LABELLER = Kind(Rules, own_version=True)
