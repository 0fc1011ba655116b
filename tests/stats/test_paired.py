"""Paired differences, exact tests and power against scipy, brute force and printed tables."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import accumulate, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.stats.intervals import mean_interval, t_quantile, wilson
from agentsignals.stats.paired import (
    FEWEST_OF_A_SERIES,
    LevelChange,
    benjamini_hochberg,
    difference_interval,
    holm,
    level_change,
    mcnemar,
    over_clusters,
    paired,
    sign_flip,
    stratified,
    tango,
)

P_VALUES = st.lists(st.floats(0, 1), max_size=30)


def arms(pairs: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """`10` is a task that the candidate solves and the baseline does not; one attempt each."""
    told = pairs.split()
    return ({f"t{n}": [float(p[0])] for n, p in enumerate(told)}, {f"t{n}": [float(p[1])] for n, p in enumerate(told)})


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (6, 0), (3, 9), (12, 5), (40, 61)])
def test_mcnemar_is_the_exact_binomial_test(gained: int, lost: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    wanted = stats.binomtest(gained, gained + lost, 0.5).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(wanted) and mcnemar(lost, gained) == mcnemar(gained, lost)


@given(P_VALUES)
def test_holm_is_as_it_is_defined(p: list[float]) -> None:
    """Rejected at a level: the smallest, as long as each is at most the level by the number of those not smaller."""
    order = sorted(range(len(p)), key=lambda n: p[n])
    steps = list(accumulate((min(1.0, p[n] * (len(p) - k)) for k, n in enumerate(order)), max))
    made = holm(p)
    assert [made[n] for n in order] == pytest.approx(steps)
    assert holm([0.01, 0.02, 0.04]) == pytest.approx([0.03, 0.04, 0.04])


def test_no_p_is_smaller_than_so_few_tasks_allow() -> None:
    for n in (1, 3, 6, 12):
        best = {f"t{k}": [1.0] for k in range(n)}, {f"t{k}": [0.0] for k in range(n)}
        found = paired(*best, yes_or_no=True)
        assert found.p == found.least_p == 2.0 ** (1 - n)
    arms = {f"t{k}": [1.0, 1.0] for k in range(60)}, {f"t{k}": [0.0] for k in range(60)}
    several = paired(*arms, yes_or_no=True)
    assert several.p == several.least_p == 2.0**-59, "exact, also of repeats"
    drawn = paired(*arms, yes_or_no=False)
    assert drawn.p == drawn.least_p == pytest.approx(1 / 2001), "of drawn flips the real one is one"
    family = paired(*arms, yes_or_no=False, tests=300)
    assert family.p == family.least_p == pytest.approx(1 / 30_001)


@given(P_VALUES)
def test_false_finds_are_controlled_as_scipy_does_it(p: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    wanted = stats.false_discovery_control(p) if p else []
    assert benjamini_hochberg(p) == pytest.approx(list(wanted))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_what_is_no_p_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="not within 0 and 1"):
        benjamini_hochberg([0.5, p])


@pytest.mark.parametrize("gaps", [[0.5, -0.5, 1.0, 0.0], [1.0, 1.0, 1.0, 0.5, 0.25], [0.0, 0.0], [-1.0]])
def test_flips_of_few_tasks_are_all_tried(gaps: list[float]) -> None:
    real = abs(sum(gaps))
    sums = [abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) for signs in product((1, -1), repeat=len(gaps))]
    assert sign_flip(gaps) == sum(s >= real - 1e-9 for s in sums) / len(sums)


def test_flips_of_many_tasks_are_drawn_and_near_the_exact_test() -> None:
    gaps = [1.0] * 21 + [-1.0] * 9 + [0.0] * 50
    assert sign_flip(gaps) == pytest.approx(mcnemar(21, 9), abs=0.015)
    assert sign_flip(gaps) == sign_flip(gaps), "a fixed seed"
    assert sign_flip([1.0] * 60) == 1 / 2001, "the real one is a flip, too: no p is 0"


def test_pairs_of_one_attempt_a_task_take_mcnemars_test() -> None:
    found = paired(*arms("10 10 10 10 10 10 10 01 11 00 11 00"), yes_or_no=True)
    assert (found.tasks, found.attempts, found.gained, found.lost) == (12, 12, 7, 1)
    assert found.value == pytest.approx(0.5) and found.test == "exact McNemar"
    assert found.p == pytest.approx(18 / 256), "two tails of 8 coins with at most one on the other side"
    assert found.low is not None and found.high is not None and 0 < found.low < 0.5 < found.high


def test_attempts_at_one_task_are_no_independent_pairs() -> None:
    candidate = {f"t{n}": [1.0, 1.0, 0.0] for n in range(8)} | {"only mine": [0.0]}
    baseline = {f"t{n}": [0.0, 0.0] for n in range(7)} | {"t7": [1.0]}
    found = paired(candidate, baseline, yes_or_no=True)
    assert (found.tasks, found.attempts, found.baseline_attempts) == (8, 24, 15)
    assert found.value == pytest.approx((7 * 2 / 3 - 1 / 3) / 8), "each task weighs the same"
    assert found.test == "flips of whole tasks" and found.p == sign_flip([2 / 3] * 7 + [-1 / 3])


def test_the_interval_of_several_attempts_is_students_over_tasks() -> None:
    stats, numpy = pytest.importorskip("scipy.stats"), pytest.importorskip("numpy")
    chance = random.Random(4)  # noqa: S311  (draws, no secret)
    gaps = [chance.choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0]) for _ in range(9)]
    other = stats.t.interval(0.95, 8, numpy.mean(gaps), stats.sem(gaps))
    assert mean_interval(gaps) == pytest.approx(other)
    assert mean_interval(gaps[:5]) is None


@pytest.mark.parametrize("freedom", [1.0, 1.3, 2.0, 5.0, 7.3, 49.0, 499.0, 501.0, 1e6])
def test_students_quantile_is_scipys(freedom: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-5)


@pytest.mark.parametrize(("gained", "lost", "n"), [(7, 1, 12), (2, 0, 6), (3, 9, 40), (0, 0, 10), (1, 4, 5)])
def test_tangos_interval_ends_where_the_score_test_rejects(gained: int, lost: int, n: int) -> None:
    """The likelihood under a difference of shares is maximised by trying all values."""

    def far(gap: float) -> float:
        def likelihood(losing: float) -> float:
            gaining = losing + gap
            parts = [(gained, gaining), (lost, losing), (n - gained - lost, 1 - gaining - losing)]
            return sum(k * math.log(p) if k else 0.0 for k, p in parts)

        top = (1 - gap) / 2
        losing = max((max(0.0, -gap) + top * i / 20_000 for i in range(1, 20_000)), key=lambda q: (
            likelihood(q) if q + gap > 0 and q > 0 and 1 - gap - 2 * q > 0 else -math.inf))  # fmt: skip
        return (gained - lost - n * gap) / math.sqrt(n * (2 * losing + gap - gap * gap))

    low, high = tango(gained, lost, n)
    assert low <= (gained - lost) / n <= high
    for end, wanted in ((low, 1.96), (high, -1.96)):
        assert abs(end) == pytest.approx(1, abs=1e-6) or far(end) == pytest.approx(wanted, abs=0.02)
    assert tango(lost, gained, n) == pytest.approx((-high, -low))


def _solves(difficulty: float) -> float:
    return 1 / (1 + math.exp(-difficulty))


@pytest.mark.parametrize(("tasks", "seeds"), [(n, s) for n in (6, 8, 12, 20, 50) for s in (1, 3)])
def test_the_interval_of_a_difference_holds_it_in_95_of_100_experiments(tasks: int, seeds: int) -> None:
    """Tasks of all difficulties, solved by 13.05 points more; benchmarks/coverage.py makes the whole table."""
    chance = random.Random(f"{tasks} {seeds}")  # noqa: S311  (draws, no secret)
    held, experiments = 0, 300
    for _ in range(experiments):
        hard = [chance.gauss(0, 1.5) for _ in range(tasks)]
        solved = [[sum(chance.random() < _solves(d + more) for _ in range(seeds)) for d in hard] for more in (0.75, 0)]
        changes = [a - b for a, b in zip(*solved, strict=True)]
        if seeds == 1:
            low, high = tango(changes.count(1), changes.count(-1), tasks)
        else:
            low, high = mean_interval([change / seeds for change in changes]) or (-1, 1)
        held += low <= 0.1305 <= high or low == high
    assert held >= 0.925 * experiments, held


def test_tasks_that_all_say_the_same_are_no_certainty() -> None:
    same = paired(*arms("11 00 11 11 00 11 11 11 00 11"), yes_or_no=True)
    assert (same.value, same.p) == (0, 1) and (same.low, same.high) == pytest.approx(tango(0, 0, 10))
    assert same.high is not None and same.high > 0.25
    better = paired(*arms("10 " * 10), yes_or_no=True)
    assert better.value == 1 and better.low is not None and better.low < 0.75 and better.high == pytest.approx(1)
    numbers = {f"t{n}": [3.0] for n in range(10)}, {f"t{n}": [1.0] for n in range(10)}
    assert paired(*numbers, yes_or_no=False).low is None


def test_under_six_tasks_there_is_no_interval_and_of_none_nothing() -> None:
    few = paired(*arms("10 01 11 10 10"), yes_or_no=True)
    assert (few.low, few.high) == (None, None) and few.p == 0.625 and "fewer than 6" in few.method
    none = paired({"a": [1.0]}, {"b": [0.0]}, yes_or_no=True)
    assert (none.tasks, none.value, none.p) == (0, None, None)


def test_numbers_are_never_given_mcnemars_test() -> None:
    found = paired({"a": [1.0], "b": [5.0]}, {"a": [0.0], "b": [2.0]}, yes_or_no=False)
    assert found.value == 2 and found.test == "flips of whole tasks" and found.p == 0.5


def test_unpaired_shares_differ_as_in_newcombes_example() -> None:
    """Newcombe (1998), table II: 56/70 against 48/80, method 10."""
    one, other = wilson(56, 70), wilson(48, 80)
    assert one is not None and other is not None
    assert difference_interval(56 / 70, one, 48 / 80, other) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize(("n", "per"), [(13, 5), (14, 6), (15, 4)])
def test_flips_of_fractions_are_exact(n: int, per: int) -> None:
    gaps = [random.Random(k).randint(-per, per) / per for k in range(n)]  # noqa: S311
    real = abs(sum(gaps)) - 1e-9
    sums = [abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) for signs in product((1, -1), repeat=n)]
    assert sign_flip(gaps, per) == sum(s >= real for s in sums) / 2**n


def test_clusters_that_differ_alike_have_the_textbook_interval() -> None:
    """Of equal clusters it is Student's over their means (scipy)."""
    stats = pytest.importorskip("scipy.stats")
    means = [0.1, 0.4, -0.2, 0.3, 0.5, 0.0, 0.2, 0.25]
    found = over_clusters({str(k): [mean - 0.01, mean + 0.01] for k, mean in enumerate(means)})
    known = stats.ttest_1samp(means, 0)
    low, high = known.confidence_interval(0.95)
    assert found.value == pytest.approx(0.19375) and found.p == pytest.approx(known.pvalue, rel=1e-3)
    assert (found.low, found.high) == (pytest.approx(low, rel=1e-3), pytest.approx(high, rel=1e-3))
    assert over_clusters({str(k): [0.5, 0.0] for k in range(5)}).value is None, "five are too few"
    same = over_clusters({str(k): [0.5] for k in range(7)})
    assert (same.value, same.low, same.p) == (0.5, None, 2.0**-6)


def test_equal_agents_of_unequal_repositories_are_seldom_called_different() -> None:
    """12 repositories of 1 to 44 tasks whose effect differs by 1.0 log-odds; the mean over repositories is 0."""
    draw, sizes, called = random.Random(7), (44, 14, 8, 7, 6, 5, 4, 4, 3, 3, 1, 1), 0  # noqa: S311
    odds = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    for _ in range(400):
        gaps = {}
        for k, size in enumerate(sizes):
            easy, effect = draw.gauss(0, 1), draw.gauss(0, 1)
            tasks = [easy + draw.gauss(0, 1) for _ in range(size)]
            gaps[str(k)] = [
                float((draw.random() < odds(t + effect / 2)) - (draw.random() < odds(t - effect / 2))) for t in tasks
            ]
        called += (over_clusters(gaps).p or 1) <= 0.05
    assert called / 400 <= 0.06


# -- interrupted series ------------------------------------------------------------------------------------------------


def by_normal_equations(values: list[float], n: int) -> list[float]:
    """Constant, trend and step by Gauss' elimination over fractions: another road."""
    rows = [[Fraction(1), Fraction(t), Fraction(int(t >= n))] for t in range(len(values))]
    system = [
        [sum((r[i] * r[j] for r in rows), Fraction(0)) for j in range(3)]
        + [sum((r[i] * Fraction(v) for r, v in zip(rows, values, strict=True)), Fraction(0))]
        for i in range(3)
    ]
    for i in range(3):
        system[i] = [x / system[i][i] for x in system[i]]
        for k in range(3):
            if k != i:
                system[k] = [a - system[k][i] * b for a, b in zip(system[k], system[i], strict=True)]
    return [float(row[3]) for row in system]


def test_the_estimate_is_that_of_the_normal_equations() -> None:
    chance = random.Random(4)  # noqa: S311
    values = [chance.random() for _ in range(31)]
    made = level_change(values[:12], values[12:])
    _, trend, step = by_normal_equations(values, 12)
    assert made.level == pytest.approx(step)
    assert made.trend == pytest.approx(trend)


def claims(made: LevelChange) -> bool:
    plain, beside = made.difference, made.level_interval
    assert plain is not None and beside is not None
    return (plain[0] > 0 and beside[0] > 0) or (plain[1] < 0 and beside[1] < 0)


def test_eight_on_either_side_are_needed() -> None:
    assert level_change([0.0] * FEWEST_OF_A_SERIES, [1.0] * (FEWEST_OF_A_SERIES - 1)).level is None
    made = level_change([0.0] * FEWEST_OF_A_SERIES, [1.0] * FEWEST_OF_A_SERIES)
    assert claims(made) and made.p is not None and made.p < 0.05


def test_a_trend_is_no_change() -> None:
    rising = [n / 39 for n in range(40)]
    made = level_change(rising[:20], rising[20:])
    assert made.difference is not None and made.difference[0] > 0
    assert not claims(made) and made.level == pytest.approx(0)


def test_neighbours_that_are_alike_widen_the_interval() -> None:
    chance = random.Random(8)  # noqa: S311
    alone = [float(chance.random() < 0.5) for _ in range(40)]
    alike = sorted(alone[:20], key=lambda v: -v) + sorted(alone[20:])
    widths = []
    for values in (alone, alike):
        interval = level_change(values[:20], values[20:]).level_interval
        assert interval is not None
        widths.append(interval[1] - interval[0])
    assert widths[1] > 1.3 * widths[0]


def test_a_share_is_within_0_and_1() -> None:
    with pytest.raises(ValueError, match="within 0 and 1"):
        level_change([0.0] * 8, [2.0] * 8)


@pytest.mark.parametrize(("n", "m", "p", "alike", "most"), [
    (8, 8, 0.5, 0.0, 0.05), (20, 20, 0.8, 0.0, 0.05), (8, 30, 0.5, 0.3, 0.06), (20, 20, 0.5, 0.6, 0.09),
])  # fmt: skip
def test_false_alarms_are_rare(n: int, m: int, p: float, alike: float, most: float) -> None:
    """`alike`: how often a session is as the one before it. As docs/rules.md says, with some room for chance."""
    chance, alarms = random.Random(2), 0  # noqa: S311
    for _ in range(400):
        values: list[float] = []
        for _ in range(n + m):
            same = values and chance.random() < alike
            values.append(values[-1] if same else float(chance.random() < p))
        alarms += claims(level_change(values[:n], values[n:]))
    assert alarms / 400 <= most


def test_a_large_change_is_mostly_seen() -> None:
    chance, seen = random.Random(3), 0  # noqa: S311
    for _ in range(200):
        seen += claims(level_change(*[[float(chance.random() < p) for _ in range(20)] for p in (0.1, 0.9)]))
    assert seen / 200 > 0.85


# -- two sides within strata


def drawn(seed: int, gap: float = 0.0, n: int = 60) -> tuple[list[float], list[bool], list[str], list[int]]:
    """Values of two sides in three strata of different levels, in clusters of three that are alike."""
    chance = random.Random(seed)  # noqa: S311  (draws, no secret)
    is_after = [at >= n // 2 for at in range(n)]
    strata = [chance.choice("abc") for _ in range(n)]
    of_cluster = [chance.gauss(0, 0.5) for _ in range(n)]
    values = [
        {"a": 0, "b": 5, "c": -3}[strata[at]] + of_cluster[at // 3] + chance.gauss(0, 1) + gap * is_after[at]
        for at in range(n)
    ]
    return values, is_after, strata, [at // 3 for at in range(n)]


def test_the_difference_is_the_weighted_mean_of_the_strata() -> None:
    values = [1.0, 2.0, 3.0, 10.0, 20.0, 99.0]
    found = stratified(values, [False, True, True, False, True, True], [*"aaabb", "alone"], range(6))
    assert found is not None and (found.n_before, found.n_after) == (2, 3), "the last is in a stratum of one side"
    weights = (2 / 3, 1 / 2)
    assert found.after - found.before == pytest.approx((weights[0] * 1.5 + weights[1] * 10) / sum(weights))
    assert found.interval is None and found.p == 1, "fewer than six clusters"
    assert stratified([1.0, 2.0], [False, True], ["a", "b"], [1, 2]) is None


@given(st.integers(0, 1000), st.floats(-50, 50))
def test_levels_of_strata_do_not_matter_and_sides_are_alike(seed: int, level: float) -> None:
    values, is_after, strata, clusters = drawn(seed, 1.0)
    found = stratified(values, is_after, strata, clusters)
    moved = stratified(
        [v + level * (s == "b") for v, s in zip(values, strata, strict=True)], is_after, strata, clusters
    )
    turned = stratified(values, [not each for each in is_after], strata, clusters)
    assert found is not None and moved is not None and turned is not None and found.interval and moved.interval
    assert moved.after - moved.before == pytest.approx(found.after - found.before)
    assert moved.interval == pytest.approx(found.interval, abs=1e-6) and moved.p == pytest.approx(found.p)
    assert turned.t == pytest.approx(-found.t) and turned.after == pytest.approx(found.before)


def test_where_nothing_differs_one_of_twenty_is_below_the_level_and_a_real_difference_is_inside() -> None:
    found = [stratified(*drawn(seed)) for seed in range(400)]
    below = sum(each.p <= 0.05 for each in found if each is not None)
    assert 8 <= below <= 36, "5 % of 400 within four standard errors"
    held = [each.interval for seed in range(400) if (each := stratified(*drawn(seed, 2.0))) is not None]
    assert 364 <= sum(low <= 2 <= high for low, high in filter(None, held)) <= 396


def test_one_outlier_decides_nothing() -> None:
    values, is_after, strata, clusters = drawn(1)
    plain = stratified(values, is_after, strata, clusters)
    values[values.index(max(v for v, s in zip(values, strata, strict=True) if s == "a"))] += 1e6
    assert plain is not None and stratified(values, is_after, strata, clusters).p == pytest.approx(plain.p)  # type: ignore[union-attr]
