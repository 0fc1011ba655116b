"""Attempts with a cause of success laid into them, and decoys: what only goes with the task, or with the treatment."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

NOTHING = dict.fromkeys(
    ("repo", "run_id", "format", "agent_version", "agent_type", "dataset", "attempt1_tool_cap", "retry_tool_cap",
     "effective_tool_cap", "timeout_s", "concurrency", "root")
)  # fmt: skip
CAUSE = "behavior.files_read_before_edit"
WITH_IT = "behavior.files_searched_before_edit"
"""Moves with the cause and adds nothing to it."""
OF_THE_TASK = "behavior.edit_calls"
OF_THE_TREATMENT = "tokens.output_tokens_total"
OF_BOTH = "behavior.turn_count"
CROSSED = "tokens.input_tokens_total"
"""Grows with the task's difficulty under some treatments and not under others."""
CHANCE = (
    "loop.marker_score",
    "reasoning.plan_steps_detected",
    "corpus.tool_mix_entropy",
    "tokens.cache_read_ratio",
    "infra.work_time_s",
)
LEAK = "behavior.diff_lines"
Rows = dict[str, list[dict[str, Any]]]


@dataclass(kw_only=True)
class World:
    """How the attempts come about."""

    tasks: int = 40
    treatments: int = 2
    repeats: int = 4
    effect: float = 1.0
    """Log-odds of success for a standard deviation of the cause."""
    leak: float | None = None
    """How often the leaked signal is the outcome; else it is a coin. None: there is none."""
    crossed: float = 0.0
    """How much more of the crossed signal a strong treatment shows at hard tasks."""
    rows: Rows = field(default_factory=lambda: {"attempts": [], "values": [], "signals": [], "prompts": []})


def rows(seed: int, world: World) -> Rows:
    """The rows that `drivers` asks a store for."""
    chance = random.Random(seed)  # noqa: S311  (draws, no secret)
    skill = [chance.gauss(0, 0.7) for _ in range(world.treatments)]
    pace = [math.exp(chance.gauss(0, 0.6)) for _ in range(world.treatments)]
    for task in range(world.tasks):
        hard = chance.gauss(0, 1.3)
        prompt = int(500 * math.exp(0.4 * hard + chance.gauss(0, 0.5)))
        for arm in range(world.treatments):
            for repeat in range(world.repeats):
                session = f"s{task}.{arm}.{repeat}"
                cause = chance.gauss(0, 1)
                solved = chance.random() < 1 / (1 + math.exp(hard - skill[arm] - world.effect * cause))
                _add(world.rows, session, f"t{task}", f"m{arm}", solved, prompt)
                for name, value in _signals(chance, world, hard, skill[arm], pace[arm], cause, solved):
                    entry = {"session_id": session, "signal": name, "value": json.dumps(value)}
                    world.rows["signals"].append(entry)
    return world.rows


def _signals(
    chance: random.Random, world: World, hard: float, skill: float, pace: float, cause: float, solved: bool
) -> Iterator[tuple[str, float]]:
    read = int(4 * math.exp(0.5 * cause) * pace)
    yield CAUSE, read
    yield WITH_IT, read + chance.choice((0, 0, 1))
    yield OF_THE_TASK, int(3 * math.exp(0.5 * hard + chance.gauss(0, 0.4)))
    yield OF_THE_TREATMENT, int(1000 * pace * math.exp(chance.gauss(0, 0.5)))
    yield OF_BOTH, int(10 * pace * math.exp(0.7 * hard + chance.gauss(0, 0.3)))
    yield CROSSED, int(9000 * math.exp(world.crossed * hard * skill + chance.gauss(0, 0.3)))
    for name in CHANCE:
        yield name, int(chance.expovariate(0.5))
    if world.leak is not None:
        yield LEAK, int(solved) if chance.random() < world.leak else chance.choice((0, 1))


def _add(made: Rows, session: str, task: str, model: str, solved: bool, prompt: int) -> None:
    trial = {"session_id": session, "trial_id": session, "attempt_index": 0, "task_id": task}
    made["attempts"].append({**NOTHING, **trial, "model_id": model, "knobs": "{}"})
    value = {"signal": "verification.reward", "absent": None, "absent_detail": None, "value": json.dumps(float(solved))}
    made["values"].append({"session_id": session, **value})
    made["prompts"].append({"session_id": session, "n_chars": prompt})
