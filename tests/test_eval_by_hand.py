"""Candidates, rates, refusals and bounds of `compare` against a count of the raw files that shares no code with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from tests import eval_counts
from tests.eval_counts import Tried
from tests.formats.test_swe_bench import evaluated
from tests.ingest.test_attempts import analyzed, rows

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
            by_model.setdefault(attempt.model, []).append(attempt)
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
    tried = list(eval_counts.run_folder(tmp_path / "runs"))
    assert {t.outcome for t in tried} == {"solved", "failed", "not_judged"} and len(tried) == 48 - missing
    analyzed(tmp_path / "store", tmp_path / "runs")
    agrees(tried, tmp_path / "store", capsys)


_LAYOUTS: dict[str, Callable[[Path], Iterator[Tried]]] = {
    "swe-agent-swebench": eval_counts.trials_with_reports,
    "harbor": eval_counts.harbor,
    "inspect": eval_counts.inspect,
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
