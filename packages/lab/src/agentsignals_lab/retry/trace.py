"""An episode as a trace file, which `analyze` reads: what was asked, said and scored, one JSON object a line.

First a header with the format's mark, then messages in order, each answer followed by what became of it. A line stands
for what the model met; nothing of hidden cases is in it but whether they passed.
"""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

import msgspec

from agentsignals_lab.coding_tasks import examples, words
from agentsignals_lab.retry.loop import Done, Plan, Steered
from agentsignals_lab.retry.rows import AttemptRow
from agentsignals_lab.runs import Config, Manifest

MARK = "agentsignals_lab"
VERSION = 1

_SCORED = (
    "attempt", "seed", "prompt_tokens", "tokens", "finish", "error", "error_class", "valid_python", "visible_pass",
    "hidden_pass", "full_pass", "visible_passed", "n_visible", "hidden_passed", "n_hidden", "hardcoded",
    "marker_score",
    "frustration_per_100_words", "desperation_per_100_words", "give_up_per_100_words", "source",
)  # fmt: skip
"""Columns of an attempt that are not said in its messages. What differs between two runs of the same work, the time
its code took, is left to the table."""


def run_id(config: Config, manifest: Manifest) -> str:
    """Names a run wherever its folder lies: 12 hex digits over what was asked, what it ran on, and when it began."""
    encoded = msgspec.json.encode([config, manifest])
    return hashlib.sha256(encoded).hexdigest()[:12]


def name_of(condition: str, task: str, sample: int) -> str:
    """Where the trace of an episode lies below `traces`, without its ending. Names are people's: none leaves the
    folder, and no two share a file."""
    return f"{_part(condition)}/{_part(task)}-{sample}"


def _part(name: str) -> str:
    quoted = quote(name, safe="+@ ")
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def lines(done: Done, plan: Plan, run: str, manifest: Manifest, steered: Steered | None) -> list[dict[str, Any]]:
    """The trace of an episode that is over."""
    records = [_header(done, plan, run, manifest, steered)]
    rows = iter(done.attempts)
    for message in done.chat:
        records.append({"message": msgspec.to_builtins(message)})
        if message.speaker == "assistant":
            records.append({"attempt": _scores(next(rows))})
    records.append({"final": msgspec.to_builtins(done.episode)})
    return records


def _scores(row: AttemptRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _SCORED}


def _header(done: Done, plan: Plan, run: str, manifest: Manifest, steered: Steered | None) -> dict[str, Any]:
    task, condition, episode = done.task, done.condition, done.episode
    directions = steered.directions if steered is not None else None
    treatment = msgspec.to_builtins(condition)
    if condition.steers and directions is not None:
        treatment |= {"recipe": directions.recipe, "directions_of": directions.model}
    return {
        MARK: VERSION,
        "trial_id": f"{run}/{condition.name}/{task.key}-{episode.sample}",
        "run_id": run,
        "started_at": manifest.started_at,
        "model": manifest.model,
        "condition": treatment,
        "task": {"key": task.key, "family": task.family, "says": words(task), "tests": examples(task)},
        "sample": episode.sample,
        "seed": plan.seed,
        "evaluator": episode.evaluator,
        "tier": episode.tier,
        "max_attempts": plan.attempts,
        "temperature": plan.temperature,
        "top_p": plan.top_p,
        "max_new_tokens": plan.max_new_tokens,
        "texts": manifest.texts,
        "packages": manifest.packages,
    }
