"""What the instance of a SWE-bench task is called, and where runs and evaluations put the files of one.

A run's folder holds a folder for each instance, and in it the trajectory; an evaluation's does too, with the report.
The folder above names the run, or the model, in both: `<run>/<instance>` is what a trial goes by in either place.
"""

from __future__ import annotations

import posixpath
import re

_ATTEMPT_FOLDER = re.compile(r"(?:^|/)attempt_(\d{1,9})$")
_SUBMISSION = re.compile(r"(?:^|/)evaluation/([^/]+)/([^/]+)/")
_OF_SERVICE = re.compile(r"(swe-bench[\w-]*?)__(dev|test|train)__(.+)", re.IGNORECASE)
_INSTANCE = re.compile(r"[\w.-]+__[\w.-]+-\d+$")


def root_of(path: str) -> str:
    """The folder of the trial: of a retrying run the attempts lie in folders `attempt_<n>` below it."""
    folder = posixpath.dirname(path)
    return posixpath.dirname(folder) if _ATTEMPT_FOLDER.search(folder) else folder


def attempt_of(path: str) -> int | None:
    """Which attempt of a retrying run a file holds, by its folder."""
    match = _ATTEMPT_FOLDER.search(posixpath.dirname(path))
    return int(match[1]) if match else None


def stem_of(path: str) -> str:
    """The instance, as a trajectory's file is named for it."""
    return posixpath.basename(path).removesuffix(".json").removesuffix(".traj")


def run_of(path: str, instance: str | None = None) -> str | None:
    """`<run>/<instance>` where the folder is named for the instance (by default: as the file is), or the trajectories
    of a run lie in one folder, each named for its instance; None elsewhere."""
    above, folder = posixpath.split(root_of(path))
    named = stem_of(path) if instance is None else instance
    if folder.lower() != named.lower():
        if instance is not None or not _INSTANCE.match(named):
            return None
        above = posixpath.join(above, folder)
    run = of_submission(path).get("run") or posixpath.basename(above)
    return f"{run}/{canonical(named)}" if run else None


def evaluation_of(path: str, instance: str) -> dict[str, str]:
    """What the folders of a report say of who was evaluated: `model` as it is on disk, `agent`, `run`, `dataset`.

    `run_evaluation/<run>/<model>/<instance>/` is the harness's, `evaluation/<split>/<submission>/logs/<instance>/`
    that of published submissions; anything else names the run by the folder above, at most.
    """
    folders = posixpath.dirname(path).split("/")
    if folders[-1].lower() != instance.lower():
        return {}
    above = ["", "", "", "", *folders[:-1]][-4:]
    if above[1] == "run_evaluation":
        return {"run": above[2], "model": above[3]}
    return of_submission(path) or ({"run": above[3]} if above[3] and above[3] != "logs" else {})


def names_of(path: str, instance: str) -> list[str]:
    """What its trial goes by, as keys, and within which evaluation: one model may have been evaluated several times."""
    run, evaluation = run_of(path, instance), evaluation_of(path, instance)
    if run is None:
        return []
    return [f"run:{run}", *([f"run:{evaluation['run']}/{run}"] if "model" in evaluation else [])]


def of_submission(path: str) -> dict[str, str]:
    """What the folders of a published submission say: who was tried goes by its name alone. Empty elsewhere."""
    match = _SUBMISSION.search(path)
    return {"run": match[2], "agent": match[2], "dataset": match[1]} if match is not None else {}


def of_summary(path: str) -> dict[str, str]:
    """What the name of a run's own list says: `<model>.<run>.json` of the harness, `<dataset>__<split>__<run>.json` of
    its service; anything else is called as its run is."""
    stem = posixpath.basename(path).removesuffix(".json")
    by_service = _OF_SERVICE.fullmatch(stem)
    if by_service is not None:
        return {"dataset": by_service[1], "split": by_service[2], "run": by_service[3]}
    model, _, run = stem.rpartition(".")
    return {"model": model, "run": run} if model else {"run": stem}


def run_of_model(model: str, instance: str) -> str:
    """The same for a model's name: an evaluation's folder cannot have its slashes."""
    return f"{model.replace('/', '__')}/{canonical(instance)}"


def canonical(instance: str) -> str:
    """The id of an instance in small letters, as folders, images and reports of the harness have it; datasets keep the
    repository's own (`Project-MONAI__MONAI-5416`). Other ids stay as they are."""
    return instance.lower() if _INSTANCE.match(instance) else instance


def repo_of(instance: str) -> str | None:
    """`owner/name` of an instance `owner__name-<number>`."""
    return instance.rpartition("-")[0].replace("__", "/", 1) if _INSTANCE.match(instance) else None
