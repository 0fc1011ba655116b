"""Quantiles and the median. Apart from `estimates`, so that signals load no random numbers for a middle value."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies, linear between neighbours (as DuckDB's quantile_cont). Values ascend."""
    if not values:
        raise ValueError("no values")
    at = (len(values) - 1) * share
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def median(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    ascending = sorted(values)
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return float(ascending[middle])
    return (ascending[middle - 1] + ascending[middle]) / 2 if ascending else None
