"""How the values of signals are spread: counts, quantiles and bars, asked of the store in one pass each."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentsignals.ui.reading import Reading

BINS = 20
_COUNTED = """
SELECT signal, n, known, once + of_many AS sessions, low, high, mean, at_least,
  quantiles[1] AS q25, quantiles[2] AS median, quantiles[3] AS q75, quantiles[4] AS q95
FROM (
  SELECT signal, count(*) AS n, count(*) FILTER (absent IS NULL) AS known,
    count(*) FILTER (level = 'session') AS once,
    count(DISTINCT CASE WHEN level <> 'session' THEN session_id END) AS of_many,
    min(number) AS low, max(number) AS high, avg(number) AS mean,
    quantile_cont(number, [0.25, 0.5, 0.75, 0.95]) AS quantiles,
    coalesce(bool_or(contains(detail, 'at_least') AND detail->>'at_least' = 'true'), false) AS at_least
  FROM signals WHERE level <> 'corpus' GROUP BY signal
)
"""
"""Of a signal of sessions each has one value: which they are need not be held in memory. Quantiles share their values.
"""
_BINNED = """
SELECT s.signal, least($bins - 1, floor($bins * (s.number - e.low) / (e.high - e.low)))::INTEGER AS bin, count(*) AS n
FROM signals s JOIN (
  SELECT signal, min(number) AS low, max(number) AS high FROM signals
  WHERE level <> 'corpus' AND isfinite(number) GROUP BY signal HAVING min(number) < max(number)
) e USING (signal)
WHERE s.level <> 'corpus' AND isfinite(s.number) GROUP BY 1, 2
"""


class Bar(NamedTuple):
    """A bar of a histogram: from `low` to below `high` (the last one with it), how many, and as a share of the
    highest."""

    low: float
    high: float
    n: int
    share: float


class Spread(NamedTuple):
    """One signal over all sessions, attempts or turns of a context."""

    figures: dict[str, Any]
    """n, known, sessions, low, high, mean and quantiles; those of numbers None where there is none."""
    bars: list[Bar]
    """Empty where there are no two different numbers."""


def spreads(reading: Reading, context: str) -> dict[str, Spread]:
    """The spread of every signal that the store holds, by its path."""
    made: dict[str, Spread] = reading.kept(("spreads", context), lambda: _made(reading, context))
    return made


def _made(reading: Reading, context: str) -> dict[str, Spread]:
    binned: dict[str, dict[int, int]] = {}
    for row in reading.rows(_BINNED, {"bins": BINS}, context):
        binned.setdefault(row["signal"], {})[row["bin"]] = row["n"]
    counted = reading.rows(_COUNTED, None, context)
    return {row["signal"]: Spread(row, _bars(row, binned.get(row["signal"], {}))) for row in counted}


def _bars(row: dict[str, Any], counted: dict[int, int]) -> list[Bar]:
    if not counted:
        return []
    low, step, most = row["low"], (row["high"] - row["low"]) / BINS, max(counted.values())
    return [Bar(low + n * step, low + (n + 1) * step, counted.get(n, 0), counted.get(n, 0) / most) for n in range(BINS)]
