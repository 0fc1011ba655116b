"""Experiments with a model in this process, found by name and loaded when they are run.

An experiment is a module with a frozen struct `Config` whose fields all have defaults, and `run`. To add one:
the module, and its line in `NAMES`. Rows go to tables of the run, chosen layers and effects to its summaries.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from agentsignals.errors import LabError

from agentsignals_lab.runs import Run

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

Progress = Callable[[int, int], None]
"""Told how many pieces of work are done, and of how many."""

NAMES = {
    "directions": "directions of classes of texts by all recipes, with their controls and held-out AUROC by layer",
    "trajectory_probe": "projections by stage of a failure, stretch and sentence, as z over random directions",
    "grid": "what steering, ablating, hiding and patching do by place, layer, dose, outcome; against random directions",
}
"""Question of each in a line: told also where a requirement is not installed."""


class Experiment(Protocol):
    """A module of this folder."""

    Config: type[Any]
    """Its settings."""

    def run(self, run: Run, model: HookedModel, config: Any, progress: Progress) -> None:
        """Writes rows and summaries into the run; run again, it leaves rows that are there."""
        ...


def experiment(name: str) -> Experiment:
    """The experiment of that name. LabError when there is none."""
    if name not in NAMES:
        raise LabError(f"There is no experiment {name!r}.", f"Say one of {', '.join(NAMES)}.")
    return cast(Experiment, import_module(f"{__name__}.{name}"))


def config(name: str, settings: dict[str, Any]) -> Any:
    """An experiment's Config from settings as a file gives them. LabError for one unknown, or of a wrong kind."""
    kind = experiment(name).Config
    if unknown := sorted(set(settings) - set(kind.__struct_fields__)):
        raise LabError(f"{name} has no setting {unknown[0]!r}.", f"Its settings: {', '.join(kind.__struct_fields__)}.")
    try:
        return msgspec.convert(settings, kind)
    except msgspec.ValidationError as error:
        raise LabError(f"A setting of {name} is wrong: {error}", "See its Config.") from error
