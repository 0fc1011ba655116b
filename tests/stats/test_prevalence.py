"""A share behind the counts of an imperfect judge."""

from __future__ import annotations

import pytest

from agentsignals.stats.intervals import Prevalence, corrected_prevalence


def test_a_perfect_judge_needs_no_correction() -> None:
    found = corrected_prevalence(200, 1000, hits=500, true=500, false_alarms=0, others=500)
    assert found.share == pytest.approx(0.2)
    assert found.low is not None and found.high is not None and found.low < 0.2 < found.high < 0.24


def test_rogan_and_gladens_estimate() -> None:
    found = corrected_prevalence(300, 1000, hits=120, true=200, false_alarms=40, others=400)
    assert found.share == pytest.approx((0.3 - 0.1) / (0.6 - 0.1))
    assert (found.counted, found.recall, found.false_alarms) == (0.3, 0.6, 0.1)
    narrower = corrected_prevalence(300, 1000, hits=1200, true=2000, false_alarms=400, others=4000)
    assert narrower.high - narrower.low < found.high - found.low  # type: ignore[operator]


@pytest.mark.parametrize(
    "measured",
    [
        {"hits": 0, "true": 0, "false_alarms": 3, "others": 90},
        {"hits": 3, "true": 30, "false_alarms": 30, "others": 90},  # worse than chance
        {"hits": 2, "true": 4, "false_alarms": 3, "others": 90},  # too few to say anything
        {"hits": 900, "true": 1000, "false_alarms": 450, "others": 1000},  # here it names half as many as of nothing
    ],
)
def test_what_cannot_be_told_is_not(measured: dict[str, int]) -> None:
    found = corrected_prevalence(50, 200, **measured)
    assert found.share is None and "cannot be told" in found.in_words()


def test_a_share_stays_a_share() -> None:
    none = corrected_prevalence(60, 1000, hits=60, true=100, false_alarms=20, others=300)
    assert none.share == none.low == 0.0 and none.high is not None and none.high < 0.1
    assert Prevalence(
        counted=0.1, recall=0.5, false_alarms=0.0, true=8, others=9, share=0.2, low=0.1, high=0.3
    ).in_words() == ("20% (10% to 30%; named in 10%; it named 50% of 8 such and 0% of 9 others)")
