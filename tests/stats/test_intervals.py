"""Estimates against values from textbooks, brute force and simulation."""

from __future__ import annotations

import math
import random
import statistics
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.stats import intervals as estimates
from agentsignals.stats.intervals import mean_probability

NUMBERS = st.floats(-1e6, 1e6)


@given(st.lists(NUMBERS, min_size=1, max_size=40))
def test_the_median_is_the_usual_one(values: list[float]) -> None:
    assert estimates.median(values) == pytest.approx(statistics.median(values))


def test_quantiles_lie_on_the_line_between_neighbours() -> None:
    assert estimates.quantile([1, 2, 3, 4], 0.25) == 1.75
    assert estimates.quantile([7], 0.9) == 7
    assert estimates.quantile([0, 10], 1.0) == 10
    assert estimates.median([]) is None
    with pytest.raises(ValueError, match="no values"):
        estimates.quantile([], 0.5)


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6), (50, 18), (100, 40)])
def test_the_median_lies_between_the_order_statistics_of_the_tables(n: int, rank: int) -> None:
    """Ranks as printed in tables of the sign test's interval at 95 percent."""
    assert estimates.median_interval(range(1, n + 1)) == (rank, n + 1 - rank)


@pytest.mark.parametrize("n", [7, 15, 31, 101, 399])
def test_the_ranks_are_the_widest_that_two_tails_of_coins_allow(n: int) -> None:
    low, _ = estimates.median_interval(range(1, n + 1)) or (0, 0)
    tail = [sum(comb(n, i) for i in range(r)) / 2**n for r in (int(low), int(low) + 1)]
    assert tail[0] <= 0.025 < tail[1]


def test_five_values_are_too_few_for_an_interval() -> None:
    assert estimates.median_interval([1, 2, 3, 4, 5]) is None
    assert estimates.median_interval([]) is None


def test_many_values_take_the_normal_approximation_without_a_jump() -> None:
    exact, near = estimates.median_interval(range(1, 401)), estimates.median_interval(range(1, 402))
    assert exact is not None and near is not None
    assert abs(exact[0] - near[0]) <= 1 and abs(exact[1] - near[1]) <= 2


def test_the_medians_interval_holds_it_in_95_of_100_samples() -> None:
    chance = random.Random(1)  # noqa: S311  (draws, no secret)
    held = 0
    for _ in range(1000):
        low, high = estimates.median_interval([chance.expovariate(1) for _ in range(25)]) or (0, 0)
        held += low <= 0.6931 <= high
    assert 940 <= held <= 985


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (1, 29, 0.0018, 0.1718),
        (28, 29, 0.8282, 0.9982),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilsons_interval_is_the_published_one(k: int, n: int, low: float, high: float) -> None:
    """Newcombe (1998), table I, and the textbook's five of ten. One of 29 with the end of Brown, Cai and DasGupta."""
    assert estimates.wilson(k, n) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


def test_a_share_of_nothing_has_no_interval() -> None:
    assert estimates.wilson(0, 0) is None
    assert estimates.share_interval([]) is None
    assert estimates.share_interval([(1, 3)]) is None, "one session says nothing of the others"
    assert estimates.share_interval([(0, 0), (1, 3)]) is None


def test_a_share_that_never_or_always_holds_ends_exactly() -> None:
    assert estimates.wilson(0, 249)[0] == 0.0  # type: ignore[index]
    assert estimates.wilson(249, 249)[1] == 1.0  # type: ignore[index]


def test_sessions_that_agree_within_count_as_one_observation_each() -> None:
    """All or nothing in each of 40 sessions of 10 calls: about 40 observations, not 400."""
    parts = [(10.0 * (i % 2), 10.0) for i in range(40)]
    low, high = estimates.share_interval(parts) or (0, 0)
    naive, right = estimates.wilson(200, 400) or (0, 0), estimates.wilson(20, 40) or (0, 0)
    assert high - low == pytest.approx(right[1] - right[0], rel=0.08)
    assert high - low > 2.5 * (naive[1] - naive[0])


def test_sessions_that_show_no_difference_have_wilsons_interval_of_sessions() -> None:
    assert estimates.share_interval([(3.0, 10.0)] * 20) == pytest.approx(estimates.wilson(6, 20))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=30))
def test_a_shares_interval_holds_the_share_and_stays_between_0_and_1(pairs: list[tuple[int, int]]) -> None:
    parts = [(float(min(k, n)), float(n)) for k, n in pairs]
    found = estimates.share_interval(parts)
    total = sum(n for _, n in parts)
    if found is not None:
        share = sum(k for k, _ in parts) / total
        assert 0 <= found[0] <= share + 1e-12 and share - 1e-12 <= found[1] <= 1


@pytest.mark.parametrize("sessions", [6, 8, 12, 20, 50])
def test_a_ratios_interval_holds_it_in_about_95_of_100_samples(sessions: int) -> None:
    chance = random.Random(6)  # noqa: S311  (draws, no secret)
    held, samples = 0, 300
    for _ in range(samples):
        sizes = [max(1, round(chance.lognormvariate(1.5, 0.7))) for _ in range(sessions)]
        low, high = estimates.ratio_interval([(n * chance.gammavariate(4, 0.25), n) for n in sizes]) or (0, 9)
        held += low <= 1 <= high
    assert held >= 0.925 * samples, held


def test_a_ratio_that_may_be_negative_has_an_interval_on_its_own_scale() -> None:
    parts = [(float(n), 1.0) for n in (-3, -1, 0, 1, 2, 4)]
    low, high = estimates.ratio_interval(parts) or (0, 0)
    assert low < 0 < high and (low + high) / 2 == pytest.approx(0.5)


def test_a_ratio_of_few_sessions_has_no_interval_and_of_many_takes_no_minute() -> None:
    assert estimates.ratio_interval([(1.0, 1.0)] * 5) is None
    low, high = estimates.ratio_interval([(float(i % 7), 2.0) for i in range(20_000)]) or (0, 0)
    assert low < 1.5 < high and high - low < 0.05


def _value(shape: str, chance: random.Random, effect: float) -> float:
    """A value of a place with this effect, a standard normal number."""
    likely = 1 / (1 + math.exp(-effect))
    if shape == "0 or 100":
        return 100.0 * (chance.random() < likely)
    if shape == "zeros":
        return 0.0 if chance.random() < likely else chance.lognormvariate(effect, 1)
    if shape == "small counts":
        return float(sum(chance.random() < likely / 4 for _ in range(12)))
    return chance.lognormvariate(effect, 2)


@pytest.mark.parametrize("shape", ["0 or 100", "zeros", "small counts", "outliers"])
@pytest.mark.parametrize(("places", "each"), [(6, 1), (6, 4), (12, 1), (12, 4), (30, 4)])
def test_the_medians_interval_holds_it_on_the_shapes_it_meets(shape: str, places: int, each: int) -> None:
    """One value a place, and four that are alike; the whole table is made by benchmarks/coverage.py."""
    many = random.Random(3)  # noqa: S311  (draws, no secret)
    truth = sorted(_value(shape, many, many.gauss(0, 1)) for _ in range(20_001))[10_000]
    chance, held = random.Random(f"{shape} {places} {each}"), 0  # noqa: S311  (draws, no secret)
    for _ in range(200):
        drawn = [(place, chance.gauss(0, 1)) for place in range(places)]
        values = [(place, _value(shape, chance, effect)) for place, effect in drawn for _ in range(each)]
        interval = estimates.clustered_median_interval([v for _, v in values], [place for place, _ in values])
        assert interval is not None and interval[0] <= (estimates.median([v for _, v in values]) or 0) <= interval[1]
        held += interval[0] <= truth <= interval[1]
    assert held >= 182, held


def test_a_ratio_of_zeros_has_no_interval_and_one_yes_among_twelve_no_wide_one() -> None:
    assert estimates.ratio_interval([(0, n) for n in range(1, 13)]) is None
    low, high = estimates.share_interval([(n == 0, 1) for n in range(12)]) or (0, 1)
    assert low > 0 and high < 0.51


@pytest.mark.parametrize("places", [8, 20, 50])
def test_a_ratio_with_outliers_is_held(places: int) -> None:
    chance, held = random.Random(places), 0  # noqa: S311  (draws, no secret)
    for _ in range(300):
        parts = [(n * chance.lognormvariate(0, 1), n) for n in (1 + chance.randrange(20) for _ in range(places))]
        low, high = estimates.ratio_interval(parts) or (0, 0)
        held += low <= math.exp(0.5) <= high
    assert held >= 273, held


# -- shares by a judge that may be wrong -------------------------------------------------------------------------------


def test_a_share_is_the_mean_of_probabilities_beside_the_count() -> None:
    parts = [(f"s{n}", 0.8 if n < 20 else 0.1, n < 20) for n in range(100)]
    found = mean_probability(parts, 0.0)
    assert (found.counted, found.n, found.share) == (0.2, 100, pytest.approx(0.24))
    assert 0.1 < found.low < 0.24 < found.high < 0.4
    wider = mean_probability(parts, 0.1)
    assert wider.share == found.share and wider.high > found.high + 0.05 and wider.low < found.low
    assert wider.low >= 0 and found.in_words().startswith("24% [")
    assert found.in_words().endswith("(named in 20% of 100)")


def test_a_share_of_one_message_leaves_nearly_everything_open() -> None:
    found = mean_probability([("s", 0.5, True)], 0.1)
    assert found.share == 0.5 and found.low == 0.0 and found.high == 1.0


def test_intervals_of_probabilities_hold_the_truth() -> None:
    """Sessions of a few messages each; the judge's probabilities are off by the project's own error."""
    draw = random.Random(3)  # noqa: S311  (draws, no secret)
    held = 0
    for _ in range(300):
        shift, parts, truth = draw.gauss(0, 0.05), [], 0
        for session in range(25):
            level = min(0.95, max(0.02, draw.gauss(0.25, 0.15)))
            for _ in range(4):
                truth += draw.random() < min(1.0, max(0.0, level + shift))
                parts.append((session, level, level > 0.5))
        found = mean_probability(parts, 0.05)
        held += found.low <= truth / 100 <= found.high
    assert held >= 0.93 * 300
