"""How values spread over sessions: classes for a histogram, quantiles for a table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from agentsignals.analysis.charts import histogram
from agentsignals.analysis.grouped import bar, chart
from agentsignals.analysis.study import Chart, Kind
from agentsignals.stats.estimates import quantile

COUNTS: tuple[float, ...] = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Upper ends of the classes of a count: each holds twice the one before."""
RATIOS: tuple[float, ...] = (0, 1, 2, 5, 10, 20, 40, 80)
SHARES: tuple[float, ...] = (0, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
QUANTILES = ((0.0, "least"), (0.25, "25%"), (0.5, "median"), (0.75, "75%"), (0.9, "90%"), (1.0, "most"))


def quantile_columns(kind: Kind) -> str:
    """The columns of a row of quantiles, as `grouped.columns` reads them."""
    return " | ".join(f"{label}:{kind}" for _, label in QUANTILES)


def quantiles(values: Sequence[float]) -> list[float | None]:
    """One value a quantile column; None of nothing."""
    ascending = sorted(values)
    return [quantile(ascending, share) if ascending else None for share, _ in QUANTILES]


def histogram_chart(  # noqa: PLR0913  (a chart's words, each named at the call)
    values: Sequence[tuple[str, float]],
    edges: Sequence[float],
    *,
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    unit: str,
    of: str = "sessions",
    note: str = "",
) -> Chart | None:
    """How many values, each with its session, fall into each class; the last class is open.

    None when all values lie in one class: a single column shows nothing.
    """
    classes: list[list[str]] = [[] for _ in range(len(edges) + 1)]
    for session_id, value in values:
        classes[bisect_left(edges, value)].append(session_id)
    filled = [i for i, sessions in enumerate(classes) if sessions]
    if len(filled) < 2:
        return None
    rows = [
        bar(_short(edges, i), n, f"{_long(edges, i)} {unit}: {n:,} of {len(values):,} {of}", behind=sessions)
        for i, sessions in enumerate(classes)
        for n in [len(sessions)]
        if filled[0] <= i <= filled[-1]
    ]
    says = f"{title}: " + "; ".join(row["tip"] for row in rows)
    return chart(id, title, rows, histogram(rows, unit, of), n=len(values), of=of, note=note, says=says)


def _short(edges: Sequence[float], i: int) -> str:
    """A class under its column: the one value it holds, or its upper end."""
    if i == len(edges):
        return f">{_edge_text(edges, edges[-1])}"
    label = _edge_text(edges, edges[i])
    return label if i == 0 or _single(edges, i) else f"≤{label}"


def _long(edges: Sequence[float], i: int) -> str:
    """A class in words."""
    if i in (0, len(edges)) or _single(edges, i):
        return _short(edges, i).replace(">", "more than ")
    below = edges[i - 1]
    if edges is COUNTS:
        return f"{below + 1:g} to {edges[i]:g}"
    return f"over {_edge_text(edges, below)} to {_edge_text(edges, edges[i])}"


def _single(edges: Sequence[float], i: int) -> bool:
    return edges is COUNTS and edges[i] - edges[i - 1] == 1


def _edge_text(edges: Sequence[float], edge: float) -> str:
    return f"{edge * 100:g}%" if edges is SHARES else f"{edge:g}"
