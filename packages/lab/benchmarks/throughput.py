"""Tokens a second of a retry loop by the size of its batch.

    python -m benchmarks.throughput [--batches 1,8,32] [--tasks 32] [--attempts 3] [--evaluating N] [--device cpu]
                                        [--model FOLDER] [--attention sdpa] [--json]

A model of the tiny world (the shipped one, of 0.3 million weights, where none is named), in three conditions (baseline,
steered at feedback, steered at the prompt), with projections, through the sandbox. Written tokens count once, also
where conditions share an answer. `model` is what this process computed, in seconds of its processors: on a busy machine
the clock says little.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

import torch
from msgspec.structs import replace

from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.experiments.setting import SettingConfig, calibrated, learnt
from agentsignals_lab.residual import Loading, load
from agentsignals_lab.retry_loop import Plan, Steered, Work, episodes
from tests import tiny_world
from tests.tiny_world.setting import TinySetting
from tests.tiny_world.tasks import drawn
from tests.tiny_world.wording import TinyWording

CONDITIONS = (
    BASELINE,
    Condition(name="feedback", direction="desperate", dose=1.0, layers=(1,), where="feedback"),
    Condition(name="prompt", direction="desperate", dose=0.5, layers=(1,), where="prompt"),
)
MODEL = tiny_world.MODELS[0]


def measured(named: str, how: Loading, tasks: int, attempts: int, evaluating: int | None) -> dict[str, float]:
    model = load(str(named), how)
    at = TinySetting(model, SettingConfig(tasks=20))
    calibration = calibrated(at)
    steered = Steered(model, learnt(at, "stories", [1], ()), calibration)
    plan = Plan(wording=TinyWording(), attempts=attempts, max_new_tokens=60, temperature=1.0)
    plan = plan if evaluating is None else replace(plan, evaluating=evaluating)
    work = [Work(condition, task, 0) for task in drawn(tasks, 0) for condition in CONDITIONS]
    tokens = 0
    started, computed = time.perf_counter(), time.process_time()
    for done in episodes(model, plan, work, steered):
        tokens += sum(row.tokens or 0 for row in done.attempts)
    wall, own = time.perf_counter() - started, time.process_time() - computed
    return {
        "batch": how.batch,
        "tokens": tokens,
        "wall_s": wall,
        "tokens_per_s": tokens / wall,
        "model_tokens_per_s": tokens / own,
        "model_s": own,
    }


def text_of(rows: Sequence[dict[str, float]]) -> str:
    head = "batch  tokens   wall s  tokens/s  model tokens/s"
    return "\n".join(
        [
            head,
            *(
                f"{r['batch']:5.0f} {r['tokens']:7.0f} {r['wall_s']:8.1f} {r['tokens_per_s']:9.0f}"
                f" {r['model_tokens_per_s']:15.0f}"
                for r in rows
            ),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--evaluating", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default=str(MODEL))
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    how = Loading(dtype="float32", offline=True, device=asked.device, attention=asked.attention)
    rows = [
        measured(asked.model, replace(how, batch=int(batch)), asked.tasks, asked.attempts, asked.evaluating)
        for batch in asked.batches.split(",")
    ]
    print(json.dumps(rows, indent=2) if asked.json else text_of(rows))


if __name__ == "__main__":
    main()
