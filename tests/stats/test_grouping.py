"""Groups of points and texts, against their definitions and against scikit-learn."""

from __future__ import annotations

import math
import random

import pytest

from agentsignals.model import Absent
from agentsignals.stats.grouping import Groups, point_groups, text_points, words_of

np = pytest.importorskip("numpy", reason="NumPy is not installed (extra topics)")

from agentsignals.stats import k_means as of_points  # noqa: E402
from agentsignals.stats import k_means as of_texts  # noqa: E402

SEED = 7


def clumps(n: int, of: int = 3, wide: float = 0.3) -> list[list[float]]:
    chance = random.Random(SEED)  # noqa: S311  (made-up points, no secret)
    return [[chance.gauss(3.0 * (at % of), wide), chance.gauss(0.0, wide)] for at in range(n)]


def test_points_that_lie_together_are_a_group() -> None:
    groups = point_groups(clumps(30), 3, SEED)
    assert isinstance(groups, Groups)
    assert sorted(groups.of[:3]) == [0, 1, 2] and groups.of == groups.of[:3] * 10
    assert max(groups.distance) < 1.5 and min(groups.fit) > 0.5
    assert groups == point_groups(clumps(30), 3, SEED), "drawn alike"


def test_points_that_are_equal_are_a_group() -> None:
    points = [[0.0]] * 20 + [[1.0], [5.0], [5.5], [9.0]]
    groups = point_groups(points, 4, SEED)
    assert isinstance(groups, Groups) and groups.of[:20] == [0] * 20 and set(groups.of) == {0, 1, 2, 3}
    assert groups.fit[-1] == 0.0, "alone"


def test_a_group_that_lost_its_points_takes_the_farthest() -> None:
    points = np.array([[0.0], [1.0], [2.0], [10.0]])
    before = np.array([[1.0], [50.0]])
    made = of_points.centres_of(points, (points**2).sum(axis=1), np.array([0, 0, 0, 0]), before)
    assert made.tolist() == [[1.0], [10.0]]


def silhouette(points: list[list[float]], of: list[int], at: int) -> float:
    away = [[math.dist(points[at], p) for n, p in enumerate(points) if of[n] == k and n != at] for k in set(of)]
    means = {k: math.fsum(d) / len(d) for k, d in zip(set(of), away, strict=True) if d}
    if of[at] not in means:
        return 0.0
    inside, nearest = means.pop(of[at]), min(means.values())
    return (nearest - inside) / max(inside, nearest)


def test_silhouettes_are_as_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    points = clumps(25, wide=1.5)
    groupings = [[at % 3 for at in range(25)], [0] * 12 + [1] * 12 + [2]]
    monkeypatch.setattr(of_points, "_ROWS_AT_ONCE", 7)
    for of, fits in zip(groupings, of_points.silhouettes(points, groupings), strict=True):
        assert fits == pytest.approx([silhouette(points, of, at) for at in range(25)])


THINGS = ["lamp", "door", "kite", "sand", "rope", "leaf", "coal", "iron", "silk", "wool"]
TEXTS = [" ".join(THINGS[(n * step) % 10] for step in (1, 3, 4, 7)) + f" {THINGS[n % 7]}" for n in range(40)]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:9]], ids=["more texts than words", "more words than texts"])
def test_texts_lie_along_the_main_directions_of_their_words(texts: list[str]) -> None:
    """As NumPy's exact decomposition has them: the angles between texts are the same."""
    table = of_texts.TfIdf([words_of(text) for text in texts])
    whole = table.times(np.eye(len(table.words)))
    assert np.linalg.norm(whole, axis=1) == pytest.approx(1.0)
    size = min(whole.shape) - 1
    exact = whole @ np.linalg.svd(whole)[2][:size].T
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    points = np.array(of_texts.directions(table, size, SEED))
    assert points @ points.T == pytest.approx(exact @ exact.T, abs=1e-7)


def test_a_text_without_a_shared_word_lies_nowhere() -> None:
    points = text_points(["lamp door", "door lamp kite", "kite sand", "sand lamp", "unheard"])
    assert not isinstance(points, Absent)
    assert points[-1] == [0.0] * len(points[0]) and all(any(point) for point in points[:-1])
    assert text_points(["lamp", "door"]) == Absent("not_computable", "no word occurs in two texts")


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_scikit_learn_says_the_same(k: int) -> None:
    cluster = pytest.importorskip("sklearn.cluster", reason="scikit-learn is not installed (extra topics)")
    metrics = pytest.importorskip("sklearn.metrics")
    points = clumps(200, wide=1.2)
    labels, centres = of_points.k_means(points, k, SEED)
    theirs = cluster.KMeans(k, n_init=of_points.STARTS, random_state=SEED).fit(points)
    assert labels == theirs.labels_.tolist()
    assert np.array(centres) == pytest.approx(theirs.cluster_centers_)
    assert of_points.silhouettes(points, [labels])[0] == pytest.approx(metrics.silhouette_samples(points, labels))
