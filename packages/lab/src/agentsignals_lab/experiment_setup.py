"""Setup of an experiment: its settings from a file, what they name, the run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from agentsignals.errors import LabError

from agentsignals_lab.run_setup import card_of, digest, manifest
from agentsignals_lab.runs import Config, Run

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

_PATHS = ("file", "texts", "directions")
"""Settings that name a file."""


def settings_of(path: str | None, texts_file: str | None = None) -> dict[str, Any]:
    """An experiment's settings from a TOML file; none named: none. Paths in it are seen from it. LabError when it can't
    be read."""
    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(Path(path).read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise LabError(f"The settings {path} can't be read: {problem}", "They are written as TOML.") from problem
        for table in (settings, settings.get("setting")):
            for name in _PATHS:
                if isinstance(table, dict) and isinstance(table.get(name), str):
                    table[name] = str(Path(path).parent / table[name])
    if texts_file is not None:
        setting = settings.setdefault("setting", {})
        if isinstance(setting, dict):
            setting["texts"] = texts_file
    return settings


def checked_config(config: Any) -> dict[str, str]:
    """SHA-256 of the files that an experiment's settings name. LabError where they are not what they should be, or name
    a direction that is not there; no model is loaded."""
    files: dict[str, str] = {}
    setting, path = getattr(config, "setting", None), getattr(config, "directions", None)
    if setting is not None and setting.name == "functions":
        from agentsignals_lab.experiments.setting_files import read_setting  # noqa: PLC0415  (NumPy is of an extra)

        files |= read_setting(setting).files
    if path:
        files["directions"] = digest(Path(path)) or ""
        from agentsignals_lab import directions  # noqa: PLC0415  (NumPy is of an extra)

        of = directions.read(Path(path))
        if unknown := sorted(set(config.sources) - {"stories", "feedback", "decision", *of.names}):
            raise LabError(f"{path} has no direction {unknown[0]!r}.", f"It has {', '.join(of.names)}.")
    return files


def begin_experiment(folder: Path, asked: Config, model: HookedModel, seed: int, files: dict[str, str]) -> Run:
    """Opens an experiment's run in a new folder, or goes on with it."""
    settings: dict[str, Any] = msgspec.to_builtins(asked.settings)
    # By name alone: what is in a file is told by its hash, and where it lies is nobody's setting.
    for table in (settings, settings.get("setting")):
        for key in _PATHS:
            if table and table.get(key):
                table[key] = Path(table[key]).name
    return Run.open(folder, Config(asked.experiment, settings), manifest(card_of(model), seed, files))
