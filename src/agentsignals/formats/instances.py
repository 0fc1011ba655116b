"""Names of SWE-bench instances, and the folders in which runs and evaluations put their files.

A run's folder holds a folder for each instance with the trajectory. An evaluation's holds one with the report. In both
the folder above names the run, or the model: a trial is called `<run>/<instance>`.
"""

import posixpath
import re
from collections.abc import Collection, Mapping

from agentsignals.model.prices import same_models

_ATTEMPT_FOLDER = re.compile(r"(?:^|/)attempt_(\d{1,9})$")
_SUBMISSION = re.compile(r"(?:^|/)evaluation/([^/]+)/([^/]+)/")
_OF_SERVICE = re.compile(r"(swe-bench[\w-]*?)__(dev|test|train)__(.+)", re.IGNORECASE)
_BARE_REPORT = frozenset(("patch_successfully_applied", "resolved"))
_INSTANCE = re.compile(r"[\w.-]+__[\w.-]+-\d+$")


def root_of(path: str) -> str:
    """Return the folder of the trial. A retrying run has its attempts in folders `attempt_<n>` below it."""
    folder = posixpath.dirname(path)
    return posixpath.dirname(folder) if _ATTEMPT_FOLDER.search(folder) else folder


def attempt_of(path: str) -> int | None:
    """Return the attempt of a retrying run that a file holds, by its folder."""
    match = _ATTEMPT_FOLDER.search(posixpath.dirname(path))
    return int(match[1]) if match else None


def stem_of(path: str) -> str:
    """Return the instance in the name of a trajectory's file."""
    return posixpath.basename(path).removesuffix(".json").removesuffix(".traj")


def run_of(path: str, instance: str | None = None) -> str | None:
    """Return `<run>/<instance>` of a file, or None.

    Its folder is named for the instance (by default: as the file is), or holds the trajectories of a run, each named
    for its instance.
    """
    above, folder = posixpath.split(root_of(path))
    named = stem_of(path) if instance is None else instance
    if folder.lower() != named.lower():
        if instance is not None or not _INSTANCE.match(named):
            return None
        above = posixpath.join(above, folder)
    run = of_submission(path).get("run") or posixpath.basename(above)
    return f"{run}/{canonical(named)}" if run else None


def runs_above(path: str, instance: str | None = None) -> list[str]:
    """Return `<run>/<instance>` by the folders above the one of all instances.

    A published run keeps its trajectories and its reports in two folders, each with a file or a folder for each
    instance, or reports in folders for models.
    """
    folder = root_of(path)
    named = stem_of(path) if instance is None else instance
    if of_submission(path):
        return []
    folders = folder.split("/")
    if folders[-1].lower() != named.lower():
        above = folders[-2:-1] if instance is None and _INSTANCE.match(named) else []
    else:
        above = [*folders[-3:-2], *(folders[-4:-3] if instance is not None else [])]
    return [f"{run}/{canonical(named)}" for run in above if run]


def is_named_for_instance(name: str) -> bool:
    """Return whether a file's name begins with an instance: `<instance>.<model>.eval.log`."""
    return _INSTANCE.match(name.partition(".")[0]) is not None


def is_bare_report(document: Mapping[str, object], path: str) -> bool:
    """Return whether a document is the report of one instance, for which its folder is named."""
    folder = posixpath.basename(posixpath.dirname(path))
    return document.keys() >= _BARE_REPORT and is_named_for_instance(folder)


def home_of_results(path: str) -> str:
    """Return the folder of the run that a list of outcomes is about: its own, or the one above where the folder is
    named as the list (`results/results.json`)."""
    folder, name = posixpath.split(path)
    above, own = posixpath.split(folder)
    return above if own == name.removesuffix(".json") else folder


def evaluation_of(path: str, instance: str) -> dict[str, str]:
    """Read from the folders of a report what was evaluated: `model` as it is on disk, `agent`, `run`, `dataset`.

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
    """Return the keys of a trial, with its evaluation: a model may have been evaluated several times."""
    run, evaluation = run_of(path, instance), evaluation_of(path, instance)
    if run is None:
        return []
    if "model" in evaluation:
        return [f"run:{run}", f"run:{evaluation['run']}/{run}"]
    return [f"run:{name}" for name in dict.fromkeys((run, *runs_above(path, instance)))]


def of_submission(path: str) -> dict[str, str]:
    """Read the folders of a published submission, whose name is all that tells what was evaluated. Empty elsewhere."""
    match = _SUBMISSION.search(path)
    return {"run": match[2], "agent": match[2], "dataset": match[1]} if match is not None else {}


def of_summary(path: str) -> dict[str, str]:
    """Read the name of a run's summary: `<model>.<run>.json` of the harness, `<dataset>__<split>__<run>.json` of its
    service. Any other name is the run's."""
    stem = posixpath.basename(path).removesuffix(".json")
    by_service = _OF_SERVICE.fullmatch(stem)
    if by_service is not None:
        return {"dataset": by_service[1], "split": by_service[2], "run": by_service[3]}
    # Models and runs have dots: a folder that is called like the end of the name is the run.
    run = next((f for f in posixpath.dirname(path).split("/")[::-1] if f and stem.endswith(f".{f}")), "")
    model, _, run = (stem.removesuffix(f".{run}"), "", run) if run else stem.rpartition(".")
    return {"model": model, "run": run} if model else {"run": stem}


class TrialsBelow:
    """Trials below a list of outcomes, by the names that their files have for them (`Input.trials_below`)."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self._models: dict[str, set[str]] = {}
        self.evaluations: dict[tuple[str, str], set[str]] = {}
        """Instances with a report, by run and model of the folders in which the harness puts it."""
        for name in names:
            above, _, task = name.rpartition("/")
            if above.startswith("@"):
                self._models.setdefault(task, set()).add(above[1:])
            elif above.count("/") == 1:
                run, _, model = above.partition("/")
                self.evaluations.setdefault((run, model), set()).add(task)

    def judged_by(
        self, task: str, run: str | None, model: str | None, alone: bool, is_above: bool = False
    ) -> str | None:
        """Return the name of the trial that a row judges, or None: a verdict is lent to nobody else.

        A trial is known by run or model, or by its task (`/<task>`) where no other trial has that task and no other row
        is of it (`alone`). A trial that says its model is judged by rows of that model; where the list lies in a folder
        beside the trials' (`is_above`), any row that names a model needs a trial that says it.
        """
        for name in (run, model.replace("/", "__") if model else None):
            if name and f"{name}/{canonical(task)}" in self.names:
                return f"{name}/{canonical(task)}"
        bare = next((f"/{name}" for name in (task, canonical(task)) if f"/{name}" in self.names), None)
        return bare if alone and not (model is not None and self.is_of_other(task, model, is_above)) else None

    def is_of_other(self, task: str, model: str, is_above: bool = False) -> bool:
        """Return whether the trial of a task says another model than this one; `is_above`: or says none."""
        told = self._models.get(canonical(task), set())
        return (bool(told) or is_above) and all(len({*same_models({m, model}).values()}) > 1 for m in told)

    @property
    def tasks(self) -> set[str]:
        """Tasks that one trial alone has."""
        return {canonical(name[1:]) for name in self.names if name.startswith("/")}

    def evaluation(self, path: str, listed: Collection[str]) -> dict[str, str] | None:
        """Return model and run of an evaluation's summary that lists these instances: the evaluation that its name has,
        else the only one whose reports are all of these instances."""
        stem = posixpath.basename(path).removesuffix(".json")
        named = [(run, model) for run, model in self.evaluations if stem == f"{model}.{run}"]
        ids = {canonical(instance) for instance in listed}
        covered = named or [pair for pair, reported in self.evaluations.items() if reported <= ids]
        return {"run": covered[0][0], "model": covered[0][1]} if len(covered) == 1 else None


def run_of_model(model: str, instance: str) -> str:
    """Return `<run>/<instance>` of a model. A folder's name cannot have the slashes of the model's."""
    return f"{model.replace('/', '__')}/{canonical(instance)}"


def canonical(instance: str) -> str:
    """Return the id of an instance in lower case, as the harness writes it. Datasets have `Project-MONAI__MONAI-5416`.

    Other ids stay as they are.
    """
    return instance.lower() if _INSTANCE.match(instance) else instance


def repo_of(instance: str) -> str | None:
    """Return `owner/name` of an instance `owner__name-<number>`."""
    return instance.rpartition("-")[0].replace("__", "/", 1) if _INSTANCE.match(instance) else None
