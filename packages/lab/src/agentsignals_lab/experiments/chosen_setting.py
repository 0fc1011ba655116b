"""The setting that an experiment asks for by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentsignals.errors import LabError

from agentsignals_lab.experiments.file_setting import Setting
from agentsignals_lab.experiments.setting import SettingConfig

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

SETTINGS: dict[str, Callable[[HookedModel, SettingConfig], Setting]] = {"functions": Setting}
"""By name. A Python program adds its own."""


def setting(model: HookedModel, asked: SettingConfig) -> Setting:
    """The setting of that name, ready. LabError for fewer than two tasks."""
    if asked.tasks < 2:
        raise LabError(f"{asked.tasks} tasks.", "Two at least: intervals are over tasks.")
    if asked.name not in SETTINGS:
        raise LabError(f"There is no setting {asked.name!r}.", f"Say one of {', '.join(SETTINGS)}, or name a file.")
    return SETTINGS[asked.name](model, asked)
