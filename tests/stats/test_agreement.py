"""Coefficients of agreement against values worked out by hand, published tables and, where installed, scikit-learn."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import pytest

from agentsignals.stats import agreement as jackknife
from agentsignals.stats.agreement import (
    Estimate,
    Pair,
    ac1,
    agreement,
    alpha,
    coincidences,
    icc,
    kappa_estimate,
    spearman,
    weighted_kappa,
)

N, U, P = "NEGATIVE", "NEUTRAL", "POSITIVE"


def spread(confusion: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [pair for pair, n in confusion.items() for _ in range(n)]


def drawn(n: int, classes: str, seed: int) -> list[tuple[str, str]]:
    """Pairs that agree in about two thirds."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    first = [chance.choice(classes) for _ in range(n)]
    return [(a, a if chance.random() < 0.6 else chance.choice(classes)) for a in first]


SEED_000 = spread(
    {(N, U): 361, (P, U): 615, (U, N): 563, (U, P): 359, (N, P): 12, (P, N): 23, (U, U): 5942, (P, P): 408, (N, N): 666}
)
"""The four cells that agent-traces names; the others follow from its n of 8,949, its 78.4 % agreement and its shares of
labels: 8.7 % positive, and 77.3 % neutral of what it rounds to 77 %."""


@pytest.mark.slow
def test_seed_000s_arithmetic() -> None:
    found = agreement(SEED_000)
    assert found is not None and found.n == 8949
    assert round(found.agreement, 3) == 0.784
    assert round(found.chance, 2) == 0.62
    estimate = kappa_estimate((n, a, b) for n, (a, b) in enumerate(SEED_000))
    assert estimate is not None and round(estimate.value, 2) == 0.43
    assert estimate.value == found.kappa
    assert estimate.low is not None and estimate.high is not None
    # One by one at this n the interval is narrow: simulation gives a half-width of .06 at 640, .05 at 1,000.
    assert 0.41 < estimate.low < estimate.value < estimate.high < 0.455


def test_kappa_by_hand() -> None:
    """20 and 15 agreements of 50; 25 and 30 said yes: chance is .5, so kappa is (.7 - .5) / .5."""
    pairs = spread({("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15})
    estimate = kappa_estimate((n, a, b) for n, (a, b) in enumerate(pairs))
    assert estimate is not None and estimate.value == pytest.approx(0.4)
    # AC1: yes is used 55 times of 100, so chance is 2 * .55 * .45 = .495.
    assert ac1(Counter(pairs), 2) == pytest.approx((0.7 - 0.495) / (1 - 0.495))
    # With two classes all disagreements weigh the same.
    assert weighted_kappa(Counter(pairs), "yn") == pytest.approx(0.4)


def test_things_alone_in_their_sessions_have_the_published_standard_error() -> None:
    """Fleiss, Cohen and Everitt 1969; on Fisher's scale, with Student's 49 degrees of freedom."""
    cells = {("y", "y"): 0.4, ("y", "n"): 0.1, ("n", "y"): 0.2, ("n", "n"): 0.3}
    pairs = spread({pair: round(50 * share) for pair, share in cells.items()})
    estimate = kappa_estimate((n, a, b) for n, (a, b) in enumerate(pairs))
    first, second, observed, blind = {"y": 0.5, "n": 0.5}, {"y": 0.6, "n": 0.4}, 0.7, 0.5
    agreeing = sum(cells[x, x] * ((1 - blind) - (first[x] + second[x]) * (1 - observed)) ** 2 for x in "yn")
    crossing = sum(share * (second[a] + first[b]) ** 2 for (a, b), share in cells.items() if a != b)
    inner = agreeing + (1 - observed) ** 2 * crossing - (observed * blind - 2 * blind + observed) ** 2
    error = math.sqrt(inner / 50) / (1 - blind) ** 2
    half = 2.0096 * error * math.sqrt(50 / 49) / (1 - 0.4**2)
    assert estimate is not None
    ends = (math.tanh(math.atanh(0.4) - half), math.tanh(math.atanh(0.4) + half))
    assert (estimate.low, estimate.high) == pytest.approx(ends, abs=0.002)


def test_the_interval_is_wider_where_sessions_repeat_themselves() -> None:
    pairs = drawn(40, "abc", 3)
    alone = kappa_estimate((n, a, b) for n, (a, b) in enumerate(pairs * 5))
    alike = kappa_estimate((n % 40, a, b) for n, (a, b) in enumerate(pairs * 5))
    assert alone is not None and alike is not None and alone.value == alike.value
    assert alone.low is not None and alone.high is not None and alike.low is not None and alike.high is not None
    ratio = (alike.high - alike.low) / (alone.high - alone.low)
    assert 1.8 < ratio < 2.7  # five copies tell nothing new: the root of five


def test_the_interval_is_the_same_each_time() -> None:
    parts: list[tuple[Hashable, str, str]] = [(n % 9, a, b) for n, (a, b) in enumerate(drawn(90, "ab", 4))]
    assert kappa_estimate(parts) == kappa_estimate(parts)


@pytest.mark.parametrize("sessions", [1, 5])
def test_few_sessions_give_no_interval(sessions: int) -> None:
    estimate = kappa_estimate((n % sessions, a, b) for n, (a, b) in enumerate(drawn(60, "ab", 5)))
    assert estimate is not None and (estimate.low, estimate.high) == (None, None)


def test_agreement_without_exception_gives_no_interval() -> None:
    estimate = kappa_estimate((n, "ab"[n % 2], "ab"[n % 2]) for n in range(40))
    assert estimate is not None and (estimate.value, estimate.low, estimate.high) == (1.0, None, None)


def test_what_is_not_defined_is_none() -> None:
    assert kappa_estimate([]) is None
    assert kappa_estimate([(1, "a", "a"), (2, "a", "a")]) is None
    assert weighted_kappa({}, "ab") is None and weighted_kappa({("a", "a"): 1}, "ab") is None
    assert ac1({}, 3) is None and ac1({("a", "a"): 1}, 1) is None
    assert spearman([(1, 1)]) is None and spearman([(1, 2), (1, 3)]) is None and spearman([]) is None
    assert icc([(1, 1)]) is None and icc([(1, 1), (1, 1)]) is None
    assert alpha({}) is None and alpha(summed([["a"], ["b"]])) is None and alpha(summed([["a", "a"]])) is None


def test_weights_count_how_far_apart() -> None:
    near, far = [("1", "2"), ("1", "1"), ("3", "3")], [("1", "3"), ("1", "1"), ("3", "3")]
    assert weighted_kappa(Counter(near), "123") == pytest.approx(1 - 3 / (2 + 8 + 1 + 4))
    assert weighted_kappa(Counter(far), "123") == pytest.approx(1 - 12 / (8 + 8 + 4))


def test_icc_of_shrout_and_fleiss_for_their_first_two_judges() -> None:
    """The table of Shrout & Fleiss 1979, judges 1 and 2, with the mean squares written out."""
    pairs = [(9.0, 2.0), (6.0, 1.0), (8.0, 4.0), (7.0, 1.0), (10.0, 5.0), (6.0, 2.0)]
    whole = [v for pair in pairs for v in pair]
    assert sum(whole) == 61
    bms = 2 * sum((sum(p) / 2 - 61 / 12) ** 2 for p in pairs) / 5
    jms = 6 * ((46 / 6 - 61 / 12) ** 2 + (15 / 6 - 61 / 12) ** 2)
    ems = (sum((v - 61 / 12) ** 2 for v in whole) - 5 * bms - jms) / 5
    assert icc(pairs) == pytest.approx((bms - ems) / (bms + ems + 2 * (jms - ems) / 6))
    assert icc([(1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]) == pytest.approx(2 / 3)  # a constant shift is disagreement
    assert icc([(1.0, 1.0), (2.0, 2.0)]) == pytest.approx(1)


def test_spearman_shares_ranks_among_ties() -> None:
    assert spearman([(1, 10), (2, 20), (3, 30)]) == pytest.approx(1)
    assert spearman([(1, 3), (2, 2), (3, 1)]) == pytest.approx(-1)
    # Ranks 1, 2.5, 2.5, 4 against 1, 3, 2, 4.
    assert spearman([(1, 1), (2, 3), (2, 2), (9, 4)]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


@pytest.mark.parametrize(("order", "value"), [("", 0.743), ("12345", 0.815)])
def test_alpha_of_krippendorffs_example(order: str, value: float) -> None:
    """His example C of 2011, four observers with gaps: .743 for names, .815 for ranks; the last unit has one value."""
    observers = (
        ["1", "2", "3", "3", "2", "1", "4", "1", "2", "", "", ""],
        ["1", "2", "3", "3", "2", "2", "4", "1", "2", "5", "", "3"],
        ["", "3", "3", "3", "2", "3", "4", "2", "2", "5", "1", ""],
        ["1", "2", "3", "3", "2", "4", "4", "1", "2", "5", "1", ""],
    )
    units = [[value for value in unit if value] for unit in zip(*observers, strict=True)]
    assert alpha(summed(units), order) == pytest.approx(value, abs=5e-4)


def test_ranks_that_nobody_gave_lie_between_no_others() -> None:
    cells = summed([["1", "1"], ["1", "3"], ["3", "3"]])
    assert alpha(cells, "123") == alpha(cells, "13") == alpha(cells)


@pytest.mark.parametrize("sessions", [5, 6])
def test_few_sessions_give_no_interval_of_any_coefficient(sessions: int) -> None:
    found = jackknifed([Counter(drawn(9, "ab", seed)) for seed in range(sessions)])
    assert found is not None and (found.low is None) == (sessions < 6)


def test_a_coefficient_that_rests_on_one_session_has_no_interval() -> None:
    """Without it there is one label alone, of which kappa says nothing."""
    alone = [Counter({("a", "a"): 9, ("b", "b"): 2, ("a", "b"): 1}), *[Counter({("a", "a"): 3})] * 7]
    found = jackknife.jackknife_estimate(alone, [12.0] + [3.0] * 7, lambda cells: weighted_kappa(merged(cells), "ab"))
    assert found is not None and found.value > 0.5 and found.low is None


def test_kappas_two_intervals_agree() -> None:
    """The linearised error and leaving sessions out are two roads to the same."""
    sessions = [Counter(drawn(12, "abc", seed)) for seed in range(40)]
    linear = kappa_estimate((n, a, b) for n, cells in enumerate(sessions) for a, b in cells.elements())
    left_out = jackknife.jackknife_estimate(sessions, [12.0] * 40, lambda cells: _kappa(merged(cells)))
    assert linear is not None and left_out is not None
    assert (linear.value, linear.low, linear.high) == pytest.approx(
        (left_out.value, left_out.low, left_out.high), abs=0.01
    )


def test_many_sessions_are_left_out_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly the same ends for a fifth of the work."""
    sessions = [Counter(drawn(4, "ab", seed)) for seed in range(400)]
    asked: list[int] = []

    def counted(cells: Sequence[Counter[Pair]]) -> float | None:
        asked.append(len(cells))
        return ac1(merged(cells), 2)

    found = jackknife.jackknife_estimate(sessions, [4.0] * 400, counted)
    assert asked == [400, *[398] * jackknife.MOST_GROUPS]
    monkeypatch.setattr(jackknife, "MOST_GROUPS", 400)
    whole = jackknife.jackknife_estimate(sessions, [4.0] * 400, counted)
    assert found is not None and whole is not None and found.value == whole.value
    assert found.low == pytest.approx(whole.low, abs=0.01) and found.low != whole.low


def jackknifed(sessions: Sequence[Counter[Pair]]) -> Estimate | None:
    return jackknife.jackknife_estimate(
        sessions, [float(of.total()) for of in sessions], lambda some: ac1(merged(some), 2)
    )


def merged(cells: Sequence[Counter[Pair]]) -> Counter[Pair]:
    return sum(cells, Counter[Pair]())


def _kappa(cells: Counter[Pair]) -> float | None:
    found = agreement(cells.elements())
    return None if found is None else found.kappa


def summed(units: Sequence[Sequence[str]]) -> dict[Pair, float]:
    whole: dict[Pair, float] = defaultdict(float)
    for unit in units:
        for pair, n in coincidences(unit).items():
            whole[pair] += n
    return whole


@pytest.mark.parametrize("seed", range(5))
def test_sklearn_says_the_same(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed (extra topics)")
    pairs = drawn(200, "abcd", seed)
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    estimate = kappa_estimate((0, a, b) for a, b in pairs)
    assert estimate is not None
    assert estimate.value == pytest.approx(metrics.cohen_kappa_score(first, second), abs=1e-12)
    quadratic = metrics.cohen_kappa_score(first, second, labels=list("abcd"), weights="quadratic")
    assert weighted_kappa(Counter(pairs), "abcd") == pytest.approx(quadratic, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_scipy_ranks_the_same(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed (extra topics)")
    chance = random.Random(seed)  # noqa: S311  (no secret)
    pairs = [(float(chance.randrange(20)), float(chance.randrange(20))) for _ in range(60)]
    assert spearman(pairs) == pytest.approx(stats.spearmanr(*zip(*pairs, strict=True)).statistic, abs=1e-12)
