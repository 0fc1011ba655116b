"""Paired differences, exact tests and power against scipy, brute force and printed tables."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.stats.estimates import mean_interval, wilson
from agentsignals.stats.paired import (
    apart,
    benjamini_hochberg,
    mcnemar,
    needed_per_arm,
    paired,
    sign_flip,
    smallest_seen,
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


def test_the_interval_is_that_of_scipys_bootstrap_over_tasks() -> None:
    stats, numpy = pytest.importorskip("scipy.stats"), pytest.importorskip("numpy")
    chance = random.Random(4)  # noqa: S311  (draws, no secret)
    gaps = [chance.choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0]) for _ in range(80)]
    other = stats.bootstrap((gaps,), numpy.mean, method="percentile", n_resamples=20_000, random_state=1)
    assert mean_interval(gaps) == pytest.approx(tuple(other.confidence_interval), abs=0.02)
    assert mean_interval(gaps[:5]) is None


def test_tasks_that_all_say_the_same_are_no_certainty() -> None:
    """Drawn anew, equal tasks give an interval without width."""
    same = paired(*arms("11 00 11 11 00 11 11 11 00 11"), yes_or_no=True)
    unseen = (wilson(0, 10) or (0, 0))[1]
    assert (same.value, same.p) == (0, 1) and (same.low, same.high) == pytest.approx((-unseen, unseen))
    better = paired(*arms("10 " * 10), yes_or_no=True)
    assert better.value == 1 and (better.low, better.high) == pytest.approx((1 - 2 * unseen, 1))
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


@pytest.mark.parametrize(("one", "other", "n"), [(0.5, 0.6, 388), (0.2, 0.5, 39)])
def test_so_many_trials_an_arm_show_the_difference_4_times_in_5(one: float, other: float, n: int) -> None:
    """The power of the usual two-sample test, added up over all results."""
    stats, numpy = pytest.importorskip("scipy.stats"), pytest.importorskip("numpy")
    assert needed_per_arm(one, other) == n == needed_per_arm(other, one)
    k = numpy.arange(n + 1)
    gap = (k[:, None] - k[None, :]) / n
    middle = (k[:, None] + k[None, :]) / (2 * n)
    seen = numpy.abs(gap) > 1.96 * numpy.sqrt(2 * middle * (1 - middle) / n)
    chance = stats.binom.pmf(k, n, one)[:, None] * stats.binom.pmf(k, n, other)[None, :]
    assert float((chance * seen).sum()) == pytest.approx(0.8, abs=0.02)


def test_the_smallest_difference_seen_is_the_one_that_so_many_trials_are_needed_for() -> None:
    assert smallest_seen(388) == pytest.approx(0.1, abs=0.002) and smallest_seen(1) == 1


def test_unpaired_shares_differ_as_in_newcombes_example() -> None:
    """Newcombe (1998), table II: 56/70 against 48/80, method 10."""
    one, other = wilson(56, 70), wilson(48, 80)
    assert one is not None and other is not None
    assert apart(56 / 70, one, 48 / 80, other) == pytest.approx((0.0524, 0.3339), abs=5e-5)
