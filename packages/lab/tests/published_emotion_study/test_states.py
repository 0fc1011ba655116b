"""Stored directions and projections on made-up results: what all share, and what rises."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from published_emotion_study import Run
from published_emotion_study.states import Stored, alike, rises, stored_directions

CORPUS = Path(__file__).parents[5] / "shared" / "corpus" / "emotion-runs"

EMOTIONS = ("calm", "patient", "confident", "frustrated", "desperate", "stuck", "stressed")


def stored(vectors: np.ndarray, neutral: np.ndarray) -> Stored:
    return Stored(EMOTIONS, tuple(range(vectors.shape[1])), vectors, neutral)


def test_one_direction_under_seven_names_is_all_alike_and_opposite_ones_are_not() -> None:
    same = np.ones((7, 1, 4)) * np.arange(1, 8)[:, None, None]
    (one,) = alike(stored(same, np.array([[1.0, 0, 0, 0]])))
    assert (one["calm_desperate"], one["mean_cosine"], one["shared_energy"]) == pytest.approx((1, 1, 1))
    assert one["neutral_top5"] == 1
    turned = same.copy()
    turned[0] *= -1
    assert alike(stored(turned, np.ones((1, 4))))[0]["calm_desperate"] == pytest.approx(-1)
    assert alike(stored(same, np.full((1, 4), 2.0)))[0]["negative_without_prompt"] == pytest.approx(-1)


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
    (found,) = rises(Run("r", tmp_path, loop=True), stored(vectors, np.ones((1, 16))))
    shift = 3 * np.linalg.norm(vectors.mean(axis=0)) / length
    assert found["shared"] == pytest.approx(shift)
    assert (found["desperate"], found["calm"], found["contrast"]) == pytest.approx((0, 0, 0), abs=1e-9)
    assert found["negative"] > 0 < found["positive"]


# design/lab.md#stored-states, recomputed there from the same files by other code: by layer.
PUBLISHED = {
    "results/runs/smoke-qwen-coder-0_5b": ([0.85, 0.86, 0.85], [0.82, 0.83, 0.83], [0.76, 0.77, 0.83]),
    "results/runs/main-qwen-coder-7b": ([0.82, 0.82, 0.84], [0.82, 0.83, 0.84], [0.49, 0.51, 0.62]),
    "results/runs/main-deepseek-coder-6_7b": ([0.85, 0.85, 0.85], [0.83, 0.84, 0.84], [0.26, 0.30, 0.53]),
}


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus is not there")
@pytest.mark.parametrize("run", PUBLISHED)
def test_the_published_directions_nearly_coincide(run: str) -> None:
    held = stored_directions(Run(run, CORPUS / run, loop=False))
    assert held is not None
    rows = alike(held)
    columns = ("calm_desperate", "mean_cosine", "neutral_top5")
    assert tuple([round(row[name], 2) for row in rows] for name in columns) == PUBLISHED[run]
