"""Experiments with a model in this process: found by name, set up from a file, loaded when they are run.

An experiment is a module with a frozen struct `Config` whose fields all have defaults, and `run(run, model, config,
progress)`, which leaves rows that are there. To add one: the module, and its line in `NAMES`. Rows go to tables of the
run, chosen layers and effects to its summaries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from agentsignals.errors import LabError

from agentsignals_lab.retry_runs import digest, manifest
from agentsignals_lab.runs import Config, Run
from agentsignals_lab.texts import read_toml

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
_PATHS = ("file", "texts", "directions")
"""Settings that name a file."""


def steps(progress: Progress, of: int) -> Callable[[], None]:
    """Return a call that tells that one more of so many pieces of work is done."""
    done = count(1)
    progress(0, of)
    return lambda: progress(next(done), of)


def experiment(name: str) -> Any:
    """The experiment of that name: a module. LabError when there is none."""
    if name not in NAMES:
        raise LabError(f"There is no experiment {name!r}.", f"Experiments: {', '.join(NAMES)}.")
    return import_module(f"{__name__}.{name}")


def settings_of(path: str | None, texts_file: str | None = None) -> dict[str, Any]:
    """An experiment's settings from a TOML file; none named: none. Paths in it are seen from it. LabError when it can't
    be read."""
    settings: dict[str, Any] = {}
    if path is not None:
        settings, _ = read_toml(Path(path), "settings", dict[str, Any], "Write the settings as TOML.")
        for table in (settings, settings.get("setting")):
            for name in _PATHS:
                if isinstance(table, dict) and isinstance(table.get(name), str):
                    table[name] = str(Path(path).parent / table[name])
    if texts_file is not None and isinstance(setting := settings.setdefault("setting", {}), dict):
        setting["texts"] = texts_file
    return settings


def config(name: str, settings: dict[str, Any]) -> Any:
    """An experiment's Config from settings as a file gives them. LabError for one unknown, or of a wrong kind."""
    kind = experiment(name).Config
    if unknown := sorted(set(settings) - set(kind.__struct_fields__)):
        raise LabError(f"{name} has no setting {unknown[0]!r}.", f"Its settings: {', '.join(kind.__struct_fields__)}.")
    try:
        return msgspec.convert(settings, kind)
    except msgspec.ValidationError as problem:
        raise LabError(f"A setting of {name} is wrong: {problem}", _allowed(kind, str(problem))) from problem


def _allowed(kind: Any, problem: str) -> str:
    """What the setting that a problem's path names can be."""
    hint, names = kind, re.findall(r"\.(\w+)", problem.rpartition("`$")[2])
    for name in names:
        hint = get_type_hints(hint)[name]
    if values := list(_literals(hint)):
        return f"{names[-1]} takes {', '.join(map(str, values))}."
    return "docs/lab.md has a table of settings and their values."


def _literals(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    else:
        for part in get_args(hint):
            yield from _literals(part)


def checked_config(config: Any) -> dict[str, str]:
    """SHA-256 of the files that an experiment's settings name. LabError where they are not what they should be, or name
    a direction that is not there; no model is loaded."""
    files: dict[str, str] = {}
    setting = getattr(config, "setting", None)
    if setting is not None:
        from agentsignals_lab.experiments.setting import read_setting  # noqa: PLC0415  (NumPy is of an extra)

        files |= read_setting(setting).files
    if hasattr(config, "sources"):
        from agentsignals_lab import directions  # noqa: PLC0415  (NumPy is of an extra)
        from agentsignals_lab.experiments.setting import Source  # noqa: PLC0415  (as above)

        named: tuple[str, ...] = ()
        if config.directions:
            files["directions"] = digest(config.directions) or ""
            named = directions.read(Path(config.directions)).names
        there = (*get_args(Source), *named)
        if unknown := sorted(set(config.sources) - set(there)):
            hint = "" if config.directions else "; name a file of other directions as `directions`"
            raise LabError(f"There is no source {unknown[0]!r}.", f"Sources: {', '.join(there)}{hint}.")
    return files


def begin(folder: Path, asked: Config, model: HookedModel, seed: int, files: dict[str, str]) -> Run:
    """Opens an experiment's run in a new folder, or goes on with it."""
    settings: dict[str, Any] = msgspec.to_builtins(asked.settings)
    setting = settings.get("setting") or {}
    # By name alone: what is in a file is told by its hash, and where it lies is nobody's setting.
    for table in (settings, setting):
        table |= {key: Path(table[key]).name for key in _PATHS if table.get(key)}
    return Run.open(folder, Config(asked.experiment, settings), manifest(msgspec.to_builtins(model.card), seed, files))
