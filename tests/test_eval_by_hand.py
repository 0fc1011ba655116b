"""Candidates, rates, refusals and bounds of `compare` against a count of the raw files that shares no code with it."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentsignals.cli import main
from tests.formats.test_swe_bench import evaluated
from tests.ingest.test_attempts import analyzed, rows

# -- a count of the raw files, each layout by its own documentation ----------------------------------------------------

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


class Tried(NamedTuple):
    """One attempt: solved, failed, not_judged or infrastructure."""

    model: str | None
    dataset: str | None
    task: str
    outcome: str


def trials_with_reports(folder: Path) -> Iterator[Tried]:
    """SWE-agent trials, each a folder of a report and, for some, the trajectory, which alone names the model."""
    for path in sorted(folder.rglob("report.json")):
        ((task, report),) = json.loads(path.read_text("utf-8")).items()
        model = None
        for trajectory in path.parent.glob("*.traj"):
            config = json.loads(trajectory.read_text("utf-8"))["replay_config"]
            model = (json.loads(config) if isinstance(config, str) else config)["agent"]["model"]["name"]
        yield Tried(model, None, task.lower(), "solved" if report["resolved"] else "failed")


def harbor(folder: Path) -> Iterator[Tried]:
    """A trial's result: its reward is 1 or not; an exception but the agent's time-out is the infrastructure's."""
    for path in sorted(folder.rglob("result.json")):
        result = json.loads(path.read_text("utf-8"))
        if "trial_name" not in result:
            continue
        rewards = (result.get("verifier_result") or {}).get("rewards") or {}
        broken = (result.get("exception_info") or {}).get("exception_type") not in (None, "AgentTimeoutError")
        came = "infrastructure" if broken else "not_judged" if "reward" not in rewards else "failed"
        solved = came == "failed" and rewards["reward"] == 1
        yield Tried(result["config"]["agent"]["model_name"], None, result["task_name"], "solved" if solved else came)


def inspect(folder: Path) -> Iterator[Tried]:
    """A sample and epoch of a task's run: of one score its grade; without any not judged; with an error left out."""
    seen = set()
    for path in sorted(folder.rglob("*.eval")):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            head = json.loads(archive.read("header.json" if "header.json" in names else "_journal/start.json"))["eval"]
            for name in names:
                if not name.startswith("samples/"):
                    continue
                sample = json.loads(archive.read(name))
                key = (head.get("task_id"), sample["id"], sample["epoch"], sample.get("uuid"))
                if key in seen:
                    continue
                seen.add(key)
                dataset = head["dataset"]
                task = f"{head['task']}/{sample['id']}"
                yield Tried(head["model"], dataset.get("name") or dataset.get("location"), task, _graded(sample))


def _graded(sample: dict[str, Any]) -> str:
    if sample.get("error"):
        return "infrastructure"
    values = [score["value"] for score in (sample.get("scores") or {}).values()]
    grades = [_GRADES.get(value, value) for value in values if not isinstance(value, dict)]
    numbers = [float(grade) for grade in grades if isinstance(grade, int | float)]
    return "not_judged" if len(numbers) != 1 else "solved" if numbers[0] == 1 else "failed"


def run_folder(folder: Path) -> Iterator[Tried]:
    """An official run: predictions say what was handed in, reports what was resolved; nobody judges the rest."""
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            handed = json.loads(line)
            model, task = handed["model_name_or_path"], handed["instance_id"]
            places = list(folder.rglob(f"run_evaluation/*/{model.replace('/', '__')}/{task}/report.json"))
            if places:
                resolved = json.loads(places[0].read_text("utf-8"))[task]["resolved"]
                yield Tried(model, None, task, "solved" if resolved else "failed")
            else:
                yield Tried(model, None, task, "not_judged" if handed["model_patch"] else "failed")


# -- the comparison ----------------------------------------------------------------------------------------------------

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "eval"
EXPLAINED = {
    ("pddl-tpp-planning", "failed"): "not_judged",  # its tests lack a file of their own: the verifier's failure
}
"""Task and the outcome counted to the one in the tables, where a reader knows more than a plain count."""


def explained(tried: Iterator[Tried]) -> list[Tried]:
    return [t._replace(outcome=EXPLAINED.get((t.task, t.outcome), t.outcome)) for t in tried]


def told(capsys: pytest.CaptureFixture[str], store: Path, *more: str) -> tuple[int, Any]:
    """How `compare` ended and what it said, by model."""
    done = main(["compare", "--store", str(store), "--by", "model", "--outcome", "resolved", "--json", *more])
    said = capsys.readouterr()
    return done, json.loads(said.out) if said.out else said.err


def agrees(tried: list[Tried], store: Path, capsys: pytest.CaptureFixture[str], *where: str) -> None:
    """Every figure of the comparison, recomputed."""
    by_model: dict[str, list[Tried]] = {}
    for attempt in tried:
        if attempt.model is not None:
            # A resource of a host is how its router spells a model.
            name = attempt.model.removeprefix("openai/accounts/fireworks/models/")
            by_model.setdefault(name, []).append(attempt)
    tasks = {model: {t.task for t in attempts} for model, attempts in by_model.items()}
    common = set.intersection(*tasks.values())
    alike = all(each == common for each in tasks.values())
    done, said = told(capsys, store, *where)
    if done == 1:
        assert not alike and "tasks differ" in said["error"]["message"]
    else:
        grouped = {c["name"] for c in said["candidates"]} | {n for g in said["other_groups"] for n in g["candidates"]}
        assert done == 0 and grouped == set(by_model)
        every = set().union(*(tasks[c["name"]] for c in said["candidates"]))
        assert all(c["missing_tasks"] == len(every - tasks[c["name"]]) for c in said["candidates"])
    _, said = told(capsys, store, *where, "--anyway")
    assert {c["name"] for c in said["candidates"]} == set(by_model)
    assert said["unrecorded"] == sum(t.model is None for t in tried)
    assert any(reason.startswith("tasks differ") for reason in said["unlike"]) == (not alike)
    for candidate in said["candidates"]:
        all_tried = by_model[candidate["name"]]
        at = [t for t in all_tried if t.task in common] if common and not alike else all_tried
        came = Counter(t.outcome for t in at)
        known = came["solved"] + came["failed"]
        assert candidate["attempts"] == len(all_tried) and candidate["first"]["n"] == known
        assert candidate["first"]["value"] == (pytest.approx(came["solved"] / known) if known else None)
        assert sum(candidate["absent"].values()) == came["not_judged"]
        assert sum(candidate["infrastructure"].values()) == came["infrastructure"]
        ends = (came["solved"] / len(at), (len(at) - came["failed"]) / len(at))
        assert (candidate["bounds"]["worst"], candidate["bounds"]["best"]) == pytest.approx(ends)


@pytest.mark.parametrize("missing", [0, 5])
def test_an_official_run_of_two_models_is_as_its_files_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: int
) -> None:
    """`missing`: the second model was not given so many of the tasks."""
    evaluated(tmp_path / "runs", "run", predictions=True, told=True)
    handed = tmp_path / "runs" / "b.jsonl"
    handed.write_text("\n".join(handed.read_text().splitlines()[missing:]))
    for n in range(missing):
        for path in (tmp_path / "runs").rglob(f"b/acme__tools-{n}/report.json"):
            path.unlink()
    for path in (tmp_path / "runs").glob("*.r1.json"):
        path.unlink()  # the run's own list says the same: without it each figure is of the files
    tried = list(run_folder(tmp_path / "runs"))
    assert {t.outcome for t in tried} == {"solved", "failed", "not_judged"} and len(tried) == 48 - missing
    analyzed(tmp_path / "store", tmp_path / "runs")
    agrees(tried, tmp_path / "store", capsys)


_LAYOUTS: dict[str, Callable[[Path], Iterator[Tried]]] = {
    "swe-agent-swebench": trials_with_reports,
    "harbor": harbor,
    "inspect": inspect,
}


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of eval runs is not here")
@pytest.mark.parametrize("layout", _LAYOUTS)
def test_real_runs_are_as_their_files_say(layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The other layouts of the corpus hold no verdict."""
    tried = explained(_LAYOUTS[layout](CORPUS / layout))
    analyzed(tmp_path / "store", CORPUS / layout)
    asked = "SELECT model_id AS model, dataset, task_id AS task, outcome FROM attempts"
    assert Counter(Tried(**row) for row in rows(tmp_path / "store", asked)) == Counter(tried)
    for dataset in {t.dataset for t in tried}:
        where = ("--where", f"dataset IS NOT DISTINCT FROM {f'{dataset!r}' if dataset else 'NULL'}")
        agrees([t for t in tried if t.dataset == dataset], tmp_path / "store", capsys, *where)
