"""How the values of signals are spread: counts, quantiles and bars, asked of the store in one pass each."""

from __future__ import annotations

from math import floor, inf, isfinite, log10, nextafter
from typing import Any, NamedTuple

from agentsignals.catalog import Signal, catalogue
from agentsignals.ui.filter import Filter
from agentsignals.ui.reading import Reading
from agentsignals.ui.strips import Part, Point, Strip, strip
from agentsignals.ui.words import figure, times

BINS = 20
_FAR = 5
"""Where the highest value lies so many times as far from the lowest as 19 of 20 do, the last bar holds the rest."""
_LEAST = 1e-290
"""Values nearer to each other are one."""
_COUNTED = """
SELECT signal, n, known, once + of_many AS sessions, low, high, mean, at_least, quantiles[1] AS q10,
  quantiles[2] AS q25, quantiles[3] AS median, quantiles[4] AS q75, quantiles[5] AS q90, quantiles[6] AS q95
FROM (
  SELECT signal, count(*) AS n, count(*) FILTER (absent IS NULL) AS known,
    count(*) FILTER (level = 'session') AS once,
    count(DISTINCT CASE WHEN level <> 'session' THEN session_id END) AS of_many,
    min(number) AS low, max(number) AS high, avg(number) AS mean,
    quantile_cont(number, [0.1, 0.25, 0.5, 0.75, 0.9, 0.95]) AS quantiles,
    coalesce(bool_or(contains(detail, 'at_least') AND detail->>'at_least' = 'true'), false) AS at_least
  FROM signals WHERE level <> 'corpus' {chosen} GROUP BY signal
)
"""
"""Of a signal of sessions each has one value: which they are need not be held in memory. Quantiles share their values.
"""
_BINNED = """
SELECT s.signal, least($bins - 1, floor($bins * (s.number - e.low) / (e.high - e.low)))::INTEGER AS bin, count(*) AS n
FROM signals s JOIN (
  SELECT signal, min(number) AS low, max(number) AS high FROM signals
  WHERE level <> 'corpus' {chosen} AND isfinite(number) GROUP BY signal HAVING min(number) < max(number)
) e USING (signal)
WHERE s.level <> 'corpus' {chosen} AND isfinite(s.number) GROUP BY 1, 2
"""
_MISSING = """
SELECT signal, absent, count(*) AS n FROM signals WHERE level <> 'corpus' {chosen} AND absent IS NOT NULL
GROUP BY 1, 2 ORDER BY n DESC, absent
"""


_LABELS = """
SELECT signal, value->>'$' AS label, count(*) AS n FROM signals
WHERE signal IN (SELECT unnest($enums)) AND value IS NOT NULL {chosen} GROUP BY 1, 2 ORDER BY n DESC, 2
"""


class Bar(NamedTuple):
    """A bar of a histogram: from `low` to below `high` (the last one with it), how many, and as a share of the
    highest."""

    low: float
    high: float
    n: int
    share: float


class Spread(NamedTuple):
    """One signal over sessions, attempts or turns."""

    figures: dict[str, Any]
    """n, known, sessions, low, high, mean and quantiles; those of numbers None where there is none."""
    bars: list[Bar]
    """Empty where there are no two different numbers."""
    absent: dict[str, int]
    """How many have none, by reason, commonest first."""
    labels: dict[str, int]
    """How many have each label, commonest first; of what has labels."""


def spreads(reading: Reading, context: str, filter_: Filter | None = None) -> dict[str, Spread]:
    """The spread of every signal that the store holds, by its path; of the sessions that a filter leaves."""
    if filter_ is None or not filter_.where.text():
        made: dict[str, Spread] = reading.kept(("spreads", context), lambda: _made(reading, context, None))
        return made
    key = ("spreads", context, *sorted(filter_.words.items()))
    return reading.recent(key, lambda: _made(reading, context, filter_))


def chosen(filter_: Filter | None) -> str:
    """The condition on rows of `signals` that leaves those of the filter's sessions."""
    return f"AND session_id IN ({filter_.sessions})" if filter_ and filter_.where.text() else ""


def _made(reading: Reading, context: str, filter_: Filter | None) -> dict[str, Spread]:
    of_sessions, values = chosen(filter_), filter_.where.values if filter_ else {}
    binned: dict[str, dict[int, int]] = {}
    for row in reading.rows(_BINNED.format(chosen=of_sessions), {**values, "bins": BINS}, context):
        binned.setdefault(row["signal"], {})[row["bin"]] = row["n"]
    absent: dict[str, dict[str, int]] = {}
    for row in reading.rows(_MISSING.format(chosen=of_sessions), values, context):
        absent.setdefault(row["signal"], {})[row["absent"]] = row["n"]
    labels: dict[str, dict[str, int]] = {}
    enums = [signal.path for signal in catalogue().values() if signal.type == "enum"]
    for row in reading.rows(_LABELS.format(chosen=of_sessions), {**values, "enums": enums}, context):
        labels.setdefault(row["signal"], {})[row["label"]] = row["n"]
    counted = reading.rows(_COUNTED.format(chosen=of_sessions), values, context)
    return {
        path: Spread(row, _bars(row, binned.get(path, {})), absent.get(path, {}), labels.get(path, {}))
        for row in counted
        for path in (row["signal"],)
    }


def _bars(row: dict[str, Any], counted: dict[int, int]) -> list[Bar]:
    if not counted:
        return []
    low, step, most = row["low"], (row["high"] - row["low"]) / BINS, max(counted.values())
    return [Bar(low + n * step, low + (n + 1) * step, counted.get(n, 0), counted.get(n, 0) / most) for n in range(BINS)]


def histogram(reading: Reading, context: str, filter_: Filter, signal: Signal, spread: Spread) -> Strip | None:
    """The values of one signal between round edges; each bar leads to its sessions. None where there is no number."""
    f = spread.figures
    if f["low"] is None or not isfinite(f["high"] - f["low"]):
        return None
    is_far = f["high"] - f["low"] > _FAR * (f["q95"] - f["low"]) > 0
    ends = edges(f["low"], f["q95"] if is_far else f["high"], whole=signal.type == "int")
    bounds = [("<=" if n == len(ends) - 2 else "<", high) for n, high in enumerate(ends[1:])]
    if is_far:
        ends, bounds = [*ends, f["high"]], [*(("<", high) for _, high in bounds), ("<=", f["high"])]
    counts = ", ".join(
        f"count(*) FILTER (number >= $low{n} AND number {sign} $high{n}) AS n{n}" for n, (sign, _) in enumerate(bounds)
    )
    values = {f"low{n}": low for n, low in enumerate(ends[:-1])} | {f"high{n}": v for n, (_, v) in enumerate(bounds)}
    asked = f"SELECT {counts} FROM signals WHERE signal = $signal AND level <> 'corpus' {chosen(filter_)}"  # noqa: S608  (numbers bound)
    row = reading.rows(asked, {**filter_.where.values, **values, "signal": signal.path}, context)[0]
    of_turns = signal.level == "turn"
    noun = "turn" if of_turns else "attempt" if filter_.words.get("context") == "eval" else "session"
    points = []
    for n, (sign, high) in enumerate(bounds):
        low, count = ends[n], row[f"n{n}"]
        to = "to" if sign == "<=" else "to below"
        low_shown, high_shown = (figure(end, signal.unit, f["at_least"]) for end in (low, high))
        label = f"{low_shown} {to} {high_shown}: {times(count, noun)}"
        link = filter_.also("/sessions", f"{signal.path}>={_exactly(low)}", f"{signal.path}{sign}{_exactly(high)}")
        points.append(Point(name="", parts=(Part(float(count)),), label=label, link=link))
    return strip(
        points,
        title=signal.path,
        unit=f"{noun}s up, {signal.unit.replace('_', ' ')} across",
        note=f"n = {f['known']:,}{'; the last bar holds all above' if is_far else ''}",
        written=lambda value: f"{value:,.0f}",
        whole=True,
        edges=[
            f"{'… ' if is_far and n == len(bounds) else ''}{figure(value, signal.unit, f['at_least'])}"
            for n, value in enumerate(ends)
        ],
    )


def edges(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round edges of about twenty bars, the first no higher than `low`, the last no lower than `high`."""
    step = _step((high - low) / BINS) if high - low > _LEAST else 0.0
    if whole:
        step = max(step, 1.0)
    first = floor(low / step) * step if step else low
    above = high if high > low else nextafter(high, inf)
    if not step or first + step == first:  # one value, or values that a step is lost beside
        return [low, above]
    count = 1
    while first + step * count < high or (whole and first + step * count <= high):
        count += 1
    made = sorted({float(f"{first + step * n:.12g}") for n in range(count + 1)})
    if made[0] < made[-1] and len(made) == count + 1:
        return [min(made[0], low), *made[1:-1], max(made[-1], high)]  # what rounding took is in
    return [low, above]  # steps that twelve digits don't tell apart


def _exactly(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)


def _step(size: float) -> float:
    """The least of 1, 2, 5, 10, … that is no less."""
    base = 10.0 ** floor(log10(size))
    return next(base * k for k in (1, 2, 5, 10) if base * k >= size * (1 - 1e-9))
