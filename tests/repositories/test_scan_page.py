"""The page shows the rules there are, and the intervals are the published ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentsignals.repositories.weakness_rules import rules
from agentsignals.stats.intervals import poisson

PAGE = Path(__file__).parents[2] / "docs" / "weaknesses.md"


def test_the_page_lists_every_rule_as_it_is() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \| (.*) \| (.*) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(r.id, ", ".join(r.cwe), r.severity, r.confidence, ", ".join(r.languages)) for r in rules()]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 37, 157, 1000, 20_000])
def test_the_interval_of_a_rate_is_that_of_the_chi_square(count: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    low = stats.chi2.ppf(0.025, 2 * count) / 2 if count else 0.0
    high = stats.chi2.ppf(0.975, 2 * count + 2) / 2
    assert poisson(count, 4.0) == pytest.approx((low / 4, high / 4), rel=1e-9)


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (3, 0.619, 8.767), (10, 4.795, 18.390)]
)
def test_the_interval_is_that_of_printed_tables(count: int, low: float, high: float) -> None:
    assert poisson(count, 1.0) == pytest.approx((low, high), rel=2e-3)


def test_nothing_looked_at_has_no_rate() -> None:
    assert poisson(0, 0) is None
