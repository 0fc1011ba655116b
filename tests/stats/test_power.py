"""Power, weights of regressions and their intervals, against scipy, brute force and simulation."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from agentsignals.stats.intervals import two_sided
from agentsignals.stats.paired import (
    POWER,
    Power,
    clopper_pearson,
    least_one_way,
    mcnemar,
    mcnemar_power,
    paired,
    power_of,
    smallest_detectable,
    tasks_needed,
    weigh,
    weighed_mcnemar,
)


def arms(up: int, down: int, same: int, times: int = 1) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Tasks that the candidate alone solves, that the baseline alone does, and that both do; so many attempts each."""
    outcomes = [(1.0, 0.0)] * up + [(0.0, 1.0)] * down + [(1.0, 1.0)] * same
    sides = zip(*outcomes, strict=True)
    left, right = ({f"t{n}": [value] * times for n, value in enumerate(side)} for side in sides)
    return left, right


def power(up: int, down: int, same: int, tests: int = 1) -> Power:
    left, right = arms(up, down, same)
    made = power_of(left, right, paired(left, right, yes_or_no=True), yes_or_no=True, tests=tests)
    assert made is not None
    return made


@pytest.mark.parametrize("level", [0.05, 0.025, 0.03125])
def test_so_many_one_way_are_the_fewest_that_are_significant(level: float) -> None:
    for changed in range(1, 60):
        wanted = [up for up in range((changed + 1) // 2, changed + 1) if mcnemar(up, changed - up) <= level]
        assert least_one_way(changed, level) == (min(wanted) if wanted else None)


@pytest.mark.parametrize(
    ("tasks", "gap", "discordance"), [(6, 0.9, 0.95), (12, 0.5, 0.6), (20, 0.3, 0.4), (100, 0.159, 0.3), (61, 0.2, 0.3)]
)
def test_power_is_that_of_the_exact_test_over_all_numbers_of_changes(
    tasks: int, gap: float, discordance: float
) -> None:
    binom = pytest.importorskip("scipy.stats").binom
    up, wanted = (discordance + gap) / (2 * discordance), 0.0
    for changed in range(tasks + 1):
        least = next((u for u in range(changed // 2, changed + 1) if mcnemar(u, changed - u) <= 0.05), None)
        if least is not None:
            wanted += binom.pmf(changed, tasks, discordance) * binom.sf(least - 1, changed, up)
    assert mcnemar_power(tasks, gap, discordance) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("tasks", [6, 12, 20, 100])
def test_the_smallest_difference_shown_is_shown_4_times_in_5_by_simulation(tasks: int) -> None:
    """benchmarks/power.py makes the whole table."""
    discordance = 0.3
    gap = smallest_detectable(tasks, discordance)
    assert gap is not None
    chance, discordance = random.Random(tasks), max(gap, discordance)  # noqa: S311  (draws, no secret)
    seen = 0
    for _ in range(600):
        drawn = [chance.random() for _ in range(tasks)]
        gained = sum(d < (discordance + gap) / 2 for d in drawn)
        lost = sum((discordance + gap) / 2 <= d < discordance for d in drawn)
        seen += gained > lost and mcnemar(gained, lost) <= 0.05
    assert seen / 600 == pytest.approx(POWER, abs=0.05)


@pytest.mark.parametrize(("gap", "discordance"), [(0.1, 0.2), (0.1, 0.5), (0.3, 0.3), (0.02, 0.1)])
def test_tasks_needed_are_the_fewest_that_show_it(gap: float, discordance: float) -> None:
    n = tasks_needed(gap, discordance)
    assert (
        mcnemar_power(n, gap, discordance) >= POWER - 0.002 > mcnemar_power(round(n * 0.97), gap, discordance) - 0.002
    )
    assert smallest_detectable(n, discordance) == pytest.approx(gap, rel=0.03)


def test_few_changes_make_no_large_difference_and_few_tasks_show_none() -> None:
    for impossible in (lambda: mcnemar_power(9, 0.5, 0.2), lambda: tasks_needed(0.5, 0.2)):
        with pytest.raises(ValueError, match="larger than the changes"):
            impossible()
    assert smallest_detectable(5, 0.5) is None and smallest_detectable(6, 0.5) == pytest.approx(0.963, abs=1e-3)
    assert smallest_detectable(6, 0.5, 0.025) is None, "of two candidates it takes seven tasks"


def test_power_is_of_the_changes_seen_and_of_what_they_may_be() -> None:
    made = power(up=9, down=5, same=86)
    assert (made.changed, made.must_agree) == (14, 12)
    assert made.low is not None and made.detectable is not None and made.high is not None
    assert made.low < made.detectable < made.high
    assert made.tasks_needed == tasks_needed(0.04, 0.14) and made.tasks_for_telling == tasks_needed(0.1, 0.14)
    alike = power(up=0, down=0, same=30)
    assert alike.tasks_needed is None and alike.detectable is not None and alike.detectable > 0.1
    more = power(up=9, down=5, same=86, tests=4)
    assert more.level == 0.0125 and more.must_agree == 13 and (more.detectable or 0) > made.detectable
    few = power(up=2, down=1, same=2)
    assert (few.detectable, few.tasks_needed, few.tasks_for_telling) == (None, None, None)


def test_power_of_several_attempts_is_of_tasks_and_more_attempts_help_as_far_as_they_are_noise() -> None:
    chance = random.Random(5)  # noqa: S311  (draws, no secret)

    def drawn(rates: list[float]) -> dict[str, list[float]]:
        return {f"t{n}": [float(chance.random() < rate) for _ in range(4)] for n, rate in enumerate(rates)}

    left, right = drawn([0.65] * 40), drawn([0.5] * 40)
    made = power_of(left, right, paired(left, right, yes_or_no=True), yes_or_no=True)
    assert made is not None and made.detectable is not None and made.tasks_needed is not None
    assert made.attempts_needed is not None, "tasks are alike: all is noise"
    apart = {t: [1.0] * 4 if n % 2 else v for n, (t, v) in enumerate(right.items())}
    other = {t: [0.0] * 4 if n % 2 and n > 3 else v for n, (t, v) in enumerate(right.items())}
    split = power_of(apart, other, paired(apart, other, yes_or_no=True), yes_or_no=True)
    assert split is not None and split.must_agree is None and split.tasks_needed is not None
    short = {t: v for t, v in left.items() if t in ("t1", "t2", "t3", "t4", "t5", "t6", "t7")}
    few = power_of(short, right, paired(short, right, yes_or_no=True), yes_or_no=True)
    assert few is not None and few.detectable is None and few.tasks_needed is None
    mixed = power_of(left, arms(0, 0, 40)[0], paired(left, arms(0, 0, 40)[0], yes_or_no=True), yes_or_no=True)
    assert mixed is not None and mixed.attempts_needed is None, "of one attempt noise is not known"


@pytest.mark.parametrize(("gained", "lost"), [(6, 1), (0, 5), (5, 0), (30, 12), (300, 200)])
def test_weighed_changes_are_as_scipy_has_them(gained: int, lost: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    changed = gained + lost
    ends = stats.binomtest(gained, changed).proportion_ci(method="exact")
    assert clopper_pearson(gained, changed) == pytest.approx((ends.low, ends.high), abs=1e-9)
    for weight in (0.5, 1.0, 3.0):
        ways = (stats.binomtest(gained, changed, weight / (1 + weight), alternative=a).pvalue
                for a in ("less", "greater"))  # fmt: skip
        assert weighed_mcnemar(gained, lost, weight) == pytest.approx(min(1.0, 2 * min(ways)))


def test_a_weight_within_the_break_even_interval_is_not_significant() -> None:
    gaps = [1.0] * 20 + [-1.0] * 4 + [0.0] * 30
    for single in (True, False):
        made = weigh(gaps, 1.0, 0.5, single=single)
        assert made.break_even == 5 and made.low is not None and made.high is not None and made.p == 0.5
        tested = [weigh(gaps, at, None, single=single) for at in (made.low * 0.98, made.low * 1.02, made.high * 1.02)]
        assert [t.p is not None and t.p < 0.05 for t in tested] == [True, False, True]
        assert [t.value > 0 for t in tested] == [True, True, False]
    assert weigh([1.0] * 3 + [0.0] * 5, 1.0, None, single=True).break_even is None, "no regression, no end"
    assert weigh([0.5, -0.5], 2.0, None, single=False).p is None, "of two tasks nothing is tested"
    assert weigh([0.0] * 8, 2.0, None, single=False).p == 1
    assert weigh([0.5, 1.0] * 5, 2.0, None, single=False).high is None, "no regression, no end either"
    assert weigh([0.5, 1.0] * 5, 2.0, None, single=False).low is None, "no regression, no lower bound"
    with pytest.raises(ValueError, match="above 0"):
        weigh(gaps, 0.0, None, single=True)


@pytest.mark.parametrize("freedom", [1, 2, 5.5, 40, 800])
def test_both_tails_of_student_are_scipys(freedom: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = [0.0, 0.3, 1.0, 2.5, 6.0]
    assert [two_sided(t, freedom) for t in values] == pytest.approx(
        [2 * stats.t.sf(t, freedom) for t in values], abs=2e-5
    )
    assert all(a >= b for a, b in pairwise(two_sided(t, freedom) for t in values))
