"""Directions from planted states: what was put in comes out, and what is only shared or by chance is seen as such."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from agentsignals.errors import LabError
from agentsignals.stats.intervals import wilson
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from agentsignals_lab import directions, steering

WIDTH, LAYERS = 32, 2


def planted(seed: int, *axes: int, amount: float = 3.0, texts: int = 40) -> directions.Array:
    """Noise of deviation 1 with a mean of `amount` along some coordinates, at both layers."""
    drawn = np.random.default_rng(seed).standard_normal((texts, LAYERS, WIDTH)).astype(np.float32)
    drawn[:, :, list(axes)] += amount
    return drawn


def states() -> dict[str, directions.Array]:
    # Coordinate 0 is shared by both (being about a person); 1 and 2 are their own.
    return {"calm": planted(1, 0, 1), "desperate": planted(2, 0, 2)}


def cosine(one: directions.Array, other: directions.Array) -> float:
    return float(directions.unit(one) @ directions.unit(other))


def test_the_published_recipe_measures_what_the_emotions_share_and_the_grand_mean_takes_it_out() -> None:
    neutral = planted(3)
    told = {n: directions.made(n, states(), neutral, *ORIGIN) for n in ("published", "grand_mean")}
    alike = {n: cosine(d.of("calm", 4), d.of("desperate", 4)) for n, d in told.items()}
    assert alike["published"] > 0.3
    assert alike["grand_mean"] == pytest.approx(-1, abs=1e-5)
    energies = np.linalg.svd(told["published"].vectors[:, 0], compute_uv=False) ** 2
    assert energies[0] / energies.sum() > 0.6


ORIGIN = ((4, 9), "texts", "model")


def test_published_directions_keep_their_length_and_are_measured_from_the_neutral_mean() -> None:
    neutral = planted(3)
    made = directions.made("published", states(), neutral, *ORIGIN)
    assert np.allclose(made.centre, neutral.mean(axis=0))
    assert np.allclose(made.of("calm", 4), states()["calm"][:, 0].mean(axis=0) - neutral[:, 0].mean(axis=0))


def test_main_directions_of_neutral_dialogues_are_taken_out() -> None:
    neutral = planted(5)
    neutral[:, :, 1] *= 20  # the direction of calm is the largest among dialogues, too
    cleaned = directions.made("grand_mean_cleaned", states(), neutral, *ORIGIN)
    kept = directions.made("grand_mean", states(), neutral, *ORIGIN)
    assert abs(cleaned.of("calm", 4)[1]) < 0.1 < abs(kept.of("calm", 4)[1])


def test_main_directions_are_the_fewest_that_hold_the_share() -> None:
    rows = np.random.default_rng(0).standard_normal((200, 5)).astype(np.float32) * np.array(
        [10, 5, 1, 1, 1], np.float32
    )
    assert [len(directions.main_directions(rows, share)) for share in (0.5, 0.9, 0.999)] == [1, 2, 5]


@pytest.mark.parametrize("recipe", ["contrast", "probe"])
def test_a_contrast_points_from_the_others_to_the_class(recipe: directions.Recipe) -> None:
    found = directions.made(recipe, states(), planted(3), *ORIGIN).of("calm", 9)
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)
    assert found[1] > 0.4 > abs(found[0])
    assert found[2] < -0.4


def test_the_probe_is_the_ridge_regression_of_scikit_learn() -> None:
    of, against = planted(1, 1, texts=15), planted(2, texts=15)
    found, centre = directions.probe(of, against, ridge=0.5)
    rows = np.concatenate([of, against])[:, 0] - centre[0]
    penalty = 0.5 * float((rows**2).sum()) / len(rows)
    wanted = Ridge(alpha=penalty, fit_intercept=False).fit(rows, [1.0] * 15 + [-1.0] * 15).coef_
    assert np.allclose(found[0], wanted / np.linalg.norm(wanted), atol=1e-4)
    assert not np.allclose(found, directions.probe(of, against, ridge=50.0)[0], atol=1e-3)


def test_projections_are_cosines_or_coordinates() -> None:
    direction, centre = np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32)
    direction[0, 0] = 2
    seen = np.array([[[4.0, 5.0, 1.0]], [[1.0, 1.0, 1.0]]], np.float32)  # (3, 4, 0) and nothing from the centre
    assert directions.project(seen, direction, centre).ravel().tolist() == pytest.approx([0.6, 0.0])
    assert directions.project(seen, direction, centre, "coordinate").ravel().tolist() == pytest.approx([3.0, 0.0])


def test_random_directions_have_the_length_of_what_they_control_for() -> None:
    like = directions.random_like(np.full((LAYERS, WIDTH), 2.0, np.float32), 20, seed=3)
    assert like.shape == (20, LAYERS, WIDTH)
    assert np.allclose(np.linalg.norm(like, axis=-1), np.sqrt(4 * WIDTH), rtol=1e-5)
    assert not np.allclose(like, directions.random_like(np.full((LAYERS, WIDTH), 2.0, np.float32), 20, seed=4))


def test_directions_are_read_as_written_and_anything_else_is_refused(tmp_path: Path) -> None:
    made = directions.made("grand_mean", states(), planted(3), *ORIGIN)
    directions.write(made, tmp_path / "d.npz")
    read = directions.read(tmp_path / "d.npz")
    assert (read.names, read.layers, read.recipe, read.counts) == (made.names, made.layers, "grand_mean", made.counts)
    assert np.array_equal(read.vectors, made.vectors)
    (tmp_path / "other.npz").write_bytes(b"no archive")
    with pytest.raises(LabError, match="cannot be read as emotion directions"):
        directions.read(tmp_path / "other.npz")
    with pytest.raises(LabError, match="no direction 'bored'"):
        read.of("bored", 4)


def test_the_auroc_is_that_of_scikit_learn_with_ties() -> None:
    chance = np.random.default_rng(0)
    scores, positive = chance.integers(0, 6, 200).astype(float), chance.random(200) < 0.4
    assert directions.auroc(scores, positive) == pytest.approx(roc_auc_score(positive, scores))
    assert np.isnan(directions.auroc(scores, np.zeros(200, bool)))


def test_held_out_separation_knows_a_difference_from_none() -> None:
    topics = [f"t{i % 10}" for i in range(40)]
    apart = directions.held_out(
        directions.Grouped(planted(1, 1, amount=2), topics), directions.Grouped(planted(2), topics)
    )
    alike = directions.held_out(directions.Grouped(planted(1), topics), directions.Grouped(planted(2), topics))
    assert all(s.auroc > 0.8 and s.low > 0.6 and s.p < 0.05 and s.auroc > s.null_high for s in apart)
    assert all(s.p > 0.02 and s.auroc < s.null_high + 0.05 for s in alike)
    assert all(s.p <= s.p_best for s in [*apart, *alike])


def test_an_interval_widens_when_texts_come_in_few_groups() -> None:
    scores, positive = np.random.default_rng(1).standard_normal(100), np.arange(100) < 50
    scores = scores + np.repeat(np.random.default_rng(2).standard_normal(10) * 2, 10)
    grouped = directions.interval(scores, positive, [f"g{i // 10}" for i in range(100)])
    alone = directions.interval(scores, positive, [str(i) for i in range(100)])
    assert grouped is not None and alone is not None
    assert grouped[1] - grouped[0] > 1.3 * (alone[1] - alone[0])


@pytest.mark.parametrize("groups", [4, 6, 12])
@pytest.mark.parametrize("target", [0.73, 0.89])
def test_the_interval_of_an_auroc_holds_it_in_about_95_of_100_samples(groups: int, target: float) -> None:
    """Groups that lie at different heights; the whole table is made by benchmarks/coverage.py."""
    chance, held, samples = np.random.default_rng(2), 0, 200
    apart = NormalDist().inv_cdf(target) * np.sqrt(2 * (1 + 0.5**2) + 0.5**2)
    member = np.repeat(np.arange(groups), 4)
    names, positive = [str(g) for g in (*member, *member)], np.arange(2 * len(member)) >= len(member)
    for _ in range(samples):
        height, gain = chance.normal(0, 0.5, groups)[member], chance.normal(apart, 0.5, groups)[member]
        drawn = chance.normal(size=2 * len(member))
        ends = directions.interval(drawn + np.concatenate([height, height + gain]), positive, names)
        held += ends is not None and ends[0] <= target <= ends[1]
    assert 0.93 * samples <= held, held


def test_of_too_few_groups_nothing_is_claimed() -> None:
    scores, positive = np.arange(8.0), np.arange(8) >= 4
    assert directions.interval(scores, positive, list("ababbaba")) is None
    assert directions.interval(scores, positive, list("abcadddd")) is None, "all of one class in one group"
    assert directions.interval(scores, positive, list("abcdabcd")) == pytest.approx(wilson(4, 4))


def test_a_split_keeps_a_group_together_and_goes_by_its_seed() -> None:
    groups = [f"g{i % 7}" for i in range(50)]
    learns, holds = directions.split(groups)
    assert not (
        {g for g, t in zip(groups, learns, strict=True) if t} & {g for g, t in zip(groups, holds, strict=True) if t}
    )
    assert learns.sum() + holds.sum() == 50
    assert any((directions.split(groups, seed=s)[0] != learns).any() for s in range(1, 5))


def test_controls_are_made_of_a_set_by_name() -> None:
    made = directions.made("grand_mean", states(), planted(3), *ORIGIN)
    named = {name: steering.vector(made, name, 9) for name in ("random:1", "random:2", "calm")}
    assert np.array_equal(named["calm"], made.of("calm", 9))
    assert not np.allclose(named["random:1"], named["random:2"])
    for name in ("random:", "random:x", "bored"):
        with pytest.raises(LabError):
            steering.vector(made, name, 9)
    with pytest.raises(LabError, match="no directions at layer 3"):
        steering.vector(made, "calm", 3)
