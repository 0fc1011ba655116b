"""The study "what the audit found": its tables on made-up results, and the 7B table on the published ones."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from agentsignals.lab.evaluation.audit import Audit
from agentsignals.lab.evaluation.audited import findings
from agentsignals.lab.evaluation.published import Run
from agentsignals.lab.evaluation.published_states import Stored, alike, negative_without_prompt, rise
from agentsignals.questions.question import Outcome, Table
from tests.lab.evaluation.test_legacy import CORPUS, GUARDED, made

EMOTIONS = ("calm", "patient", "confident", "frustrated", "desperate", "stuck", "stressed")


def table(outcome: Outcome, name: str) -> Table:
    return next(one for one in outcome.tables if one.id == name)


def test_published_and_re_scored_rates_stand_side_by_side(tmp_path: Path) -> None:
    outcome = findings(Audit(made(tmp_path, [GUARDED, "no"], ["False", "False"])))
    assert [row[1:] for row in table(outcome, "audit_conditions").rows] == [
        ["baseline", 0.0, 1.0, 1],
        ["calm_+1.0", 0.0, 0.0, 1],
    ]
    rates = {
        row[1]: dict(zip(("task", "n"), (row[5], row[7]), strict=True)) for row in table(outcome, "audit_rates").rows
    }
    assert rates["legacy-first"] == {"task": 0.0, "n": 2}
    assert rates["legacy-last"] == rates["ours, 1"] == {"task": 0.5, "n": 2}
    (flips,) = outcome.findings
    assert (flips.value, flips.n, flips.interval is not None) == (0.5, 2, True)
    assert "audit_geometry" not in {one.id for one in outcome.tables}


def stored(vectors: np.ndarray, neutral: np.ndarray) -> Stored:
    return Stored(EMOTIONS, tuple(range(vectors.shape[1])), vectors, neutral)


def test_one_direction_under_seven_names_is_all_alike_and_opposite_ones_are_not() -> None:
    same = np.ones((7, 1, 4)) * np.arange(1, 8)[:, None, None]
    (one,) = alike(stored(same, np.array([[1.0, 0, 0, 0]])))
    assert (one.calm_desperate, one.mean_cosine, one.shared_energy) == pytest.approx((1, 1, 1))
    assert (one.neutral_norm, one.neutral_top5) == (1, 1)
    turned = same.copy()
    turned[0] *= -1
    assert alike(stored(turned, np.ones((1, 4))))[0].calm_desperate == pytest.approx(-1)
    assert negative_without_prompt(stored(same, np.full((1, 4), 2.0))) == pytest.approx(-1)


def test_a_rise_along_what_all_share_is_no_rise_of_any(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    own = np.pad(rng.normal(size=(7, 1, 8)), ((0, 0), (0, 0), (8, 0)))
    vectors = own - own.mean(axis=0) + np.pad(rng.normal(size=8), (0, 8))
    states = {("t", "0"): rng.normal(size=16)}
    states["t", "1"] = states["t", "0"] + 3 * vectors.mean(axis=0)[0]
    length = np.linalg.norm(states["t", "0"])
    rows = [["task_id", "condition", "attempt", "emotion", "layer", "score"]]
    for (task, attempt), state in states.items():
        for n, emotion in enumerate(EMOTIONS):
            score = state @ vectors[n, 0] / np.linalg.norm(vectors[n, 0]) / length
            rows.append([task, "baseline", attempt, emotion, "0", str(score)])
    rows += [["t", "calm", "0", "calm", "0", "0.5"], ["t", "odd", "1", "calm", "x", "y"]]
    with (tmp_path / "agent_activation_scores.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    found = rise(Run("r", tmp_path, loop=True), stored(vectors, np.ones((1, 16))))
    assert found is not None
    assert found.n == 1
    shift = 3 * np.linalg.norm(vectors.mean(axis=0)) / length
    assert found.shared == pytest.approx(shift)
    assert (found.desperate, found.calm, found.contrast) == pytest.approx((0, 0, 0), abs=1e-9)
    assert found.negative > 0 < found.positive


@pytest.mark.corpus
def test_the_7b_table_is_printed_beside_the_published_one() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the result files of the emotion lab are not here")
    outcome = findings(Audit(CORPUS))
    rates = {(row[0], row[1]): row[5] for row in table(outcome, "audit_rates").rows}
    for run, was, now in (
        ("main-starcoder2-7b", 0.6296, 0.9630),
        ("main-qwen-coder-7b", 0.4815, 0.8148),
        ("main-deepseek-coder-6_7b", 0.2593, 0.5556),
    ):
        assert rates[run, "as published"] == pytest.approx(was, abs=5e-5)
        assert rates[run, "legacy-first"] == rates[run, "as published"]
        assert rates[run, "legacy-last"] == rates[run, "ours, 1"] == pytest.approx(now, abs=5e-5)
    by = {(row[0], row[1]): row[3] for row in table(outcome, "audit_conditions").rows}
    assert {name: round(rate, 3) for (run, name), rate in by.items() if run == "main-deepseek-coder-6_7b"} == {
        "baseline": 1.0, "calm_-1.0": 1.0, "patient_-1.0": 1.0, "frustrated_-1.0": 0.667, "patient_+1.0": 0.667,
        "desperate_-1.0": 0.333, "frustrated_+1.0": 0.333, "desperate_+1.0": 0.0, "calm_+1.0": 0.0,
    }  # fmt: skip
    assert len(outcome.tables) == 7
