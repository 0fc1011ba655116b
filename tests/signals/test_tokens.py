"""tokens.*: usage summed over the main thread, context sizes, cost."""

from __future__ import annotations

import pytest

from tests.build import say, user, view
from tests.signals.ask import absent

TOTALS = [
    "tokens.input_tokens_total",
    "tokens.output_tokens_total",
    "tokens.cache_read_tokens",
    "tokens.cache_write_tokens",
]


@pytest.mark.parametrize(
    "path", [*TOTALS, "tokens.context_growth_curve[]", "tokens.cost_usd", "tokens.cache_read_ratio"]
)
def test_a_trace_that_never_reports_usage_misses_the_field(path: str) -> None:
    assert absent(view(user("go"), say("done")), path) == ("missing_field", "usage")
