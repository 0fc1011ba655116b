"""Runs an experiment on a shipped model of the tiny world. Needs torch."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch

from agentsignals_lab import experiments
from agentsignals_lab.experiments import Progress
from agentsignals_lab.residual import Loading, load
from agentsignals_lab.residual.model import HookedModel
from agentsignals_lab.runs import Config, Manifest, Run
from tests import tiny_world

torch.set_num_threads(1)
tiny_world.with_setting()
MANIFEST = Manifest(
    model={}, evaluator="1", texts="texts", sandbox="default", seed=0, packages={}, started_at="2026-01-01T00:00:00Z"
)


@cache
def model(seed: int = 0) -> HookedModel:
    return load(str(tiny_world.MODELS[seed]), Loading(dtype="float32", offline=True))


def ran(
    folder: Path, name: str, settings: dict[str, Any], seed: int = 0, progress: Progress = lambda done, of: None
) -> Run:
    """The run of an experiment with these settings, as `lab run` makes it."""
    settings = {**settings, "setting": {"file": "tiny", **settings.get("setting", {})}}
    config = experiments.config(name, settings)
    with Run.open(folder, Config(name, settings), MANIFEST) as run:
        experiments.experiment(name).run(run, model(seed), config, progress)
    return run
