"""Tasks by what a person writes: names, families, files."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from agentsignals.errors import LabError

from agentsignals_lab.coding_tasks import PUBLISHED, Task, task, tasks, variant, variant_named
from agentsignals_lab.coding_tasks.task_files import ENDING, TaskFile, is_file, read_tasks

SETTING = ".toml"
HERE = Path()


def chosen_tasks(named: str, variants: Sequence[str] = ("plain",), beside: Path = HERE) -> list[Task]:
    """`all`, `published`, a setting's file, or names, keys, families, files and `hf:OWNER/NAME` between commas.

    `beside`: the folder that paths are seen from. LabError for what is not there, for a variant that is none, for tasks
    that have no variants, and where two are called alike.
    """
    wanted = [variant_named(name) for name in variants]
    named, beside = of_setting(named, beside)
    if named == "all":
        return tasks(variants=wanted)
    names = list(PUBLISHED) if named == "published" else [name for name in named.split(",") if name]
    families = {candidate.family for candidate in tasks()}
    by_key: dict[str, Task] = {}
    for name in names:
        if is_file(name):
            group = read_tasks(name, beside).tasks
            if twice := sorted({of_file.key for of_file in group} & by_key.keys()):
                raise LabError(f"{name} has a task {twice[0]!r}, which was named before.", "Rename one of them.")
        else:
            group = tasks(families=[name]) if name in families else [task(name)]
        for candidate in group:
            for each in [candidate] if candidate.variant != "plain" else [variant(candidate, kind) for kind in wanted]:
                by_key[each.key] = each
    if not by_key:
        raise LabError(
            f"{named!r} names no task.",
            f"Name all, published, FILE{ENDING}, hf:OWNER/NAME, a setting's file, or of {', '.join(families)}.",
        )
    return list(by_key.values())


def task_files(named: str, beside: Path = HERE) -> dict[str, TaskFile]:
    """The files among what a person writes, by name."""
    named, beside = of_setting(named, beside)
    return {name: read_tasks(name, beside) for name in named.split(",") if is_file(name)}


def files_of(named: str, beside: Path = HERE) -> dict[str, str]:
    """SHA-256 of those files, by what a manifest calls them."""
    return {f"tasks {Path(name).name}": read.sha256 for name, read in task_files(named, beside).items()}


def of_setting(named: str, beside: Path = HERE) -> tuple[str, Path]:
    """What a setting's file names as its tasks, and the folder that it is seen from; anything else as it is. LabError
    for a file that is no setting."""
    if not named.endswith(SETTING):
        return named, beside
    path = beside / named
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise LabError(f"The setting {path} can't be read: {problem}", "See docs/lab.md for its form.") from problem
    tasks = document.get("tasks", "all")
    if "outcome" not in document or not isinstance(tasks, str):
        raise LabError(f"{path} is no setting: it names no tasks.", f"Name a setting, or a FILE{ENDING}.")
    return tasks, path.parent
