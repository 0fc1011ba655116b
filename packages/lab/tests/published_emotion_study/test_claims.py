"""The claims of the published study against its stored result files: its numbers, and its answers run again."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from agentsignals.cli import main
from agentsignals.experiments.replication import Verdict, replicate

SHARED = Path(__file__).parents[5] / "shared"
RUNS = SHARED / "corpus" / "emotion-runs"
TARGETS = SHARED / "spec" / "emotion_replicate_targets.json"
NEGATIVE = ("frustrated", "desperate", "stuck", "stressed")


def by_claim(found: list[Verdict]) -> dict[str, Verdict]:
    return {v.claim: v for v in found}


@pytest.fixture(scope="module")
def runs() -> Path:
    if not RUNS.is_dir():
        pytest.skip("the result files of the emotion lab are not here")
    return RUNS


@pytest.fixture(scope="module")
def found(runs: Path) -> dict[str, Verdict]:
    return by_claim(replicate("emotion-lab", runs))


@pytest.mark.slow
def test_every_published_number_is_reported_as_the_audit_found_it(found: dict[str, Verdict]) -> None:
    """The audit computed each number by itself; its figures are a second road to ours."""
    if not TARGETS.exists():
        pytest.skip("the list of published numbers is not here")
    targets = {t["id"]: t for t in json.loads(TARGETS.read_text("utf-8"))}
    assert set(targets) <= set(found)
    at_hand = {i: t for i, t in targets.items() if not i.startswith("modern.")}
    assert len(at_hand) == 83
    for name, target in at_hand.items():
        verdict = found[name]
        assert (verdict.status == "pass") is target["reproduces"], name
        if isinstance(target["published"], str):
            assert verdict.computed is (target["computed"] == "true"), name
        else:
            assert verdict.expected == target["published"], name
            assert verdict.computed == pytest.approx(target["computed"], abs=1e-6), name
            assert verdict.tolerance == pytest.approx(0.5 * 10 ** -target["decimals"] if target["decimals"] else 0), (
                name
            )


@pytest.mark.slow
def test_the_set_as_a_whole(
    found: dict[str, Verdict], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = {s: [v for v in found.values() if v.status == s] for s in ("pass", "fail", "untestable")}
    assert {s: len(vs) for s, vs in counted.items()} == {"pass": 115, "fail": 6, "untestable": 39}
    assert all(v.prior_result == "does not reproduce" and "recorded before" in v.note for v in counted["fail"])
    assert all(v.n for v in counted["pass"])
    assert {v.claim.split(".")[0] for v in counted["untestable"]} == {"modern", "geometry", "first_attempts"}
    # Computed once: it takes half a minute.
    monkeypatch.setattr("agentsignals.cli.experiments.replicate", lambda *_: list(found.values()))
    assert main(["replicate", "emotion-lab", "--data", str(RUNS)]) == 1
    told = capsys.readouterr()
    assert told.out.rstrip().endswith("115 pass, 6 fail (6 of them known not to reproduce), 39 untestable")
    assert "FAILED" not in told.err


@pytest.mark.slow
def test_numbers_by_the_standard_library(found: dict[str, Verdict], runs: Path) -> None:
    with (runs / "results/agent-runs/qwen-coder-7b/agent_activation_scores.csv").open(
        newline="", encoding="utf-8"
    ) as file:
        scores = [float(row["score"]) for row in csv.DictReader(file) if row["emotion"] in NEGATIVE]
    verdict = found["agent.Qwen2.5-Coder-7B.neg"]
    assert (verdict.computed, verdict.n) == (pytest.approx(fmean(scores)), len(scores))
    with (runs / "results/runs/main-qwen-coder-7b/execution_scores.csv").open(newline="", encoding="utf-8") as file:
        verdicts = [row["hidden_pass"] for row in csv.DictReader(file)]
    assert (verdicts.count("True"), len(verdicts)) == (13, 27)
    assert found["main.Qwen2.5-Coder-7B.hidden_pass"].computed == pytest.approx(13 / 27)


@pytest.mark.slow
def test_a_changed_result_is_news_beside_the_known_ones(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = "results/runs/main-qwen-coder-7b"
    shutil.copytree(runs / kept, tmp_path / "copy" / kept, copy_function=shutil.copyfile)
    victim = tmp_path / "copy" / kept / "execution_scores.csv"
    victim.write_text(
        victim.read_text("utf-8").replace("True,True,True,True,True", "True,True,True,False,False", 1), "utf-8"
    )
    assert main(["replicate", "emotion-lab", "--data", str(tmp_path / "copy"), "--json"]) == 1
    told = capsys.readouterr()
    failed = {v["claim"] for v in json.loads(told.out) if v["status"] == "fail" and not v["prior_result"]}
    assert failed == {f"main.Qwen2.5-Coder-7B.{what}" for what in ("hidden_pass", "task_pass", "baseline")} | {
        "main.Qwen2.5-Coder-7B.no_steered_beats_baseline",
        "rescored.Qwen2.5-Coder-7B.stored_verdicts",
        "rescored.Qwen2.5-Coder-7B.changes",
    }
    assert "6 CLAIMS FAILED" in told.err


def test_a_claim_that_asks_a_computed_table_wrongly_says_so_and_costs_no_other(tmp_path: Path) -> None:
    claims = tmp_path / "claims.yaml"
    asked = {"a": "", "b": "with: {run: main, evaluator: mine}", "c": "with: {run: other}", "d": "with: {run: main}"}
    query = "SELECT avg(task_pass::INT) FROM rows WHERE run = $run"
    lines = [f"- {{id: {n}, query: {query}, over: t, expected: 1, {said}}}\n" for n, said in asked.items()]
    lines[1] = lines[1].replace("$run", "$run AND evaluator = $evaluator")
    claims.write_text("tables: {t: {computed: rescored}}\nclaims:\n" + "".join(lines), "utf-8")
    inner = tmp_path / "data/results/runs/main"
    inner.mkdir(parents=True)
    answer = "def safe_divide(a, b):\n    return a / b if b else None\n"
    with (inner / "generations.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["task_id", "condition", "generation"], ["last_retry", "baseline", answer]])
    found = by_claim(replicate(claims, tmp_path / "data"))
    assert [found[c].status for c in "abcd"] == ["untestable", "untestable", "untestable", "pass"]
    assert "needs a run" in found["a"].note
    assert "mine" in found["b"].note
    assert "the results of other are not here" in found["c"].note
    assert {v.status for v in replicate(claims)} == {"untestable"}
