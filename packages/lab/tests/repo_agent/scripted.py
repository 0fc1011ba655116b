"""A writer that answers by a list, a step each, and keeps what it was told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from agentsignals.errors import SandboxError

from agentsignals_lab.coding_tasks.repository import RepositoryTask, reference_patch, repository_task
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.repo_agent.loop import Done, Plan, Work, episodes
from agentsignals_lab.repo_agent.repository_runs import Progress, run_agent
from agentsignals_lab.residual.interface import Generation, Message, Sampling
from agentsignals_lab.retry.retry_runs import Ran
from agentsignals_lab.runs import Config, Manifest, Run

BASKET = repository_task("basket")


class Scripted:
    name = "scripted"

    def __init__(self, *answers: str) -> None:
        self.script = answers
        self.told: list[list[Message]] = []
        self.how: list[Sampling] = []

    def write(self, chats: Sequence[Sequence[Message]], sampling: Sequence[Sampling]) -> list[Generation]:
        self.told += [list(chat) for chat in chats]
        self.how += sampling
        made = [self.script[sum(m.speaker == "assistant" for m in chat)] for chat in chats]
        return [Generation(text=answer, tokens=(1, 2, 3), finish="stop", prompt_tokens=7) for answer in made]


def act(text: str, says: str = "") -> str:
    """An answer with one block."""
    return f"{says}\n````action\n{text}\n````\n"


def replacing(path: str, old: str, new: str) -> str:
    return act(f"replace {path}\n<<<<\n{old}====\n{new}>>>>")


TEST, SUBMIT = act("test"), act("submit")
SOLVED = act(f"patch\n{reference_patch(BASKET)}", "The counts should add up.")
SOLUTION = (act("list"), act("read shop/basket.py"), TEST, SOLVED, TEST, SUBMIT)


def done(
    *answers: str, task: RepositoryTask = BASKET, condition: Condition = BASELINE, writer: Scripted | None = None
) -> Done:
    """One episode of these answers, as many steps as there are."""
    writer = writer or Scripted(*answers)
    try:
        (one,) = episodes(writer, Plan(steps=len(writer.script)), [Work(condition, task, 0)])
    except SandboxError as problem:
        pytest.skip(f"the strict tier is not to be had here: {problem.message}")
    return one


def shown(one: Done) -> list[str]:
    return [step.row.shown for step in one.steps]


CONFIG = Config("repo_edit", {})
MANIFEST = Manifest(
    model={"name": "made-up"},
    evaluator="1",
    texts="0123",
    sandbox="strict",
    seed=13,
    packages={},
    started_at="2026-11-20T00:00:00Z",
)
CALM = Condition(name="calm words", tone="calm")


def opened(folder: Path) -> Run:
    return Run.open(folder, CONFIG, MANIFEST)


def worked(
    run: Run, writer: Scripted, samples: int = 1, *conditions: Condition, progress: Progress | None = None
) -> Ran:
    plan = Plan(steps=len(writer.script))
    try:
        return run_agent(run, writer, plan, conditions or (BASELINE,), [BASKET], samples, progress=progress)
    except SandboxError as problem:
        pytest.skip(f"the strict tier is not to be had here: {problem.message}")
