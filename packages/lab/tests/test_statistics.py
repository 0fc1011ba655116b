"""Paired differences over tasks against SciPy and against cases counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agentsignals.errors import LabError

from agentsignals_lab.statistics import paired_difference


def tasks_of(count: int, samples: int) -> list[str]:
    return [f"t{n}" for n in range(count) for _ in range(samples)]


def test_samples_of_one_task_do_not_count_as_many_tasks() -> None:
    chance = np.random.default_rng(1)
    of_task = chance.normal(0.3, 1, 12)
    once = paired_difference(of_task, np.zeros(12), tasks_of(12, 1))
    often = paired_difference(np.repeat(of_task, 50), np.zeros(600), tasks_of(12, 50))
    assert (once.value, once.low, once.high, once.p) == pytest.approx((often.value, often.low, often.high, often.p))
    assert (often.n, often.tasks) == (600, 12)
    apart = paired_difference(np.repeat(of_task, 50), np.zeros(600), [str(n) for n in range(600)])
    assert apart.high - apart.low < (often.high - often.low) / 4


def test_a_paired_interval_is_students_and_reaches_a_little_further() -> None:
    """Where the differences are skewed; these are nearly not."""
    stats = pytest.importorskip("scipy.stats")
    chance = np.random.default_rng(2)
    control = chance.normal(0, 1, 40)
    treated = control + chance.normal(0.5, 0.3, 40)
    found = paired_difference(treated, control, tasks_of(40, 1))
    theirs = stats.ttest_rel(treated, control).confidence_interval()
    assert found.low <= theirs.low and found.high >= theirs.high
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_the_p_of_a_difference_is_that_of_all_sign_flips() -> None:
    stats = pytest.importorskip("scipy.stats")
    for seed, shift in ((4, 0.0), (5, 0.4), (6, 1.5)):
        differences = np.random.default_rng(seed).normal(shift, 1, 12)
        found = paired_difference(differences, np.zeros(12), tasks_of(12, 1))
        theirs = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
        ).pvalue
        assert found.p == pytest.approx(theirs, abs=1e-9)


def test_tasks_of_unlike_size_weigh_by_their_pairs() -> None:
    found = paired_difference([1.5, 1.5, 1.5, 0.5], [0.5] * 4, ["a", "a", "a", "b"])
    assert (found.value, found.tasks) == (0.75, 2)
    assert found.low < 0
    assert found.high > 1  # two tasks, worth 1.6 equal ones, tell nearly nothing


def test_one_task_gives_no_interval() -> None:
    found = paired_difference([1.0, 2.0], [0.0, 0.0], ["a", "a"])
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.value, found.p, found.tasks) == (1.5, 1.0, 1)


def test_what_is_no_pair_is_refused() -> None:
    for treated, control, tasks in (
        ([1.0, 2.0], [1.0], ["a", "b"]),
        ([1.0, 2.0], [1.0, 1.0], ["a"]),
        ([], [], []),
        ([1.0, float("nan")], [1.0, 1.0], ["a", "b"]),
    ):
        with pytest.raises(LabError):
            paired_difference(treated, control, tasks)
