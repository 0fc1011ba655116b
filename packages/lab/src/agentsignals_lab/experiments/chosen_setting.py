"""The setting that an experiment asks for by name."""

from __future__ import annotations

from agentsignals.errors import LabError

from agentsignals_lab.experiments.file_setting import FileSetting
from agentsignals_lab.experiments.setting import Setting, SettingConfig
from agentsignals_lab.experiments.tiny_setting import TinySetting
from agentsignals_lab.residual.interface import ResidualModel


def setting(model: ResidualModel, asked: SettingConfig) -> Setting:
    """The setting of that name, ready. LabError for fewer than two tasks."""
    if asked.tasks < 2:
        raise LabError(f"{asked.tasks} tasks.", "Two at least: intervals are over tasks.")
    return TinySetting(model, asked) if asked.is_tiny else FileSetting(model, asked)
