"""Estimates with their intervals, at 95 percent. Pure, deterministic, no dependency.

What was sampled are clusters: calls of one session are alike, and so are sessions of one place. Intervals of sums over
sums come from how much clusters differ (design/statistics.md#clusters); their coverage from six clusters on is measured
by `benchmarks/coverage.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, compress, repeat
from math import comb, exp, fsum, log, sqrt
from typing import NamedTuple, TypeVar

from agentsignals.stats.proportions import Interval, Z, wilson
from agentsignals.stats.quantiles import median, quantile
from agentsignals.stats.student import t_quantile

__all__ = [
    "FEWEST_CLUSTERS",
    "SEED",
    "Clustered",
    "Interval",
    "Z",
    "clustered",
    "mean_interval",
    "median",
    "median_interval",
    "quantile",
    "rate_interval",
    "ratio_interval",
    "share_interval",
    "sums",
    "sums_but_zeros",
    "sums_interval",
    "wilson",
]

_Cluster = TypeVar("_Cluster", bound=Hashable)
_TAIL = 0.025
_EXACT_UP_TO = 400
"""Above so many values the normal approximation of the binomial is right to the rank."""
_ROUNDING = 1e-12
_LARGEST_EXPONENT = 700.0
SEED = 20260302
"""Of every draw: what is drawn twice is drawn alike."""
FEWEST_CLUSTERS = 6
"""Of fewer sessions, places or tasks no interval is given that speaks for others: how they differ is hardly seen."""


def median_interval(values: Sequence[float]) -> Interval | None:
    """Two of the values that hold the median between them in 95 of 100 samples; None under six values.

    The interval of order statistics: what resampling the median endlessly would give, without chance and without a
    distribution assumed. It reaches at least 95 percent.
    """
    n = len(values)
    rank = _lower_rank(n)
    if rank < 1:
        return None
    ascending = sorted(values)
    return ascending[rank - 1], ascending[n - rank]


def _lower_rank(n: int) -> int:
    """The greatest r such that fewer than r of n fair coins come up heads at most 2.5 times in 100."""
    if n > _EXACT_UP_TO:
        return int((n - Z * sqrt(n)) / 2)
    seen, rank = 0, 0
    while rank <= n:
        seen += comb(n, rank)
        if seen > _TAIL * 2**n:
            return rank
        rank += 1
    return rank


def share_interval(parts: Iterable[tuple[float, float]]) -> Interval | None:
    """The interval of the share sum(k) / sum(n), one (k, n) a cluster, or a Counter of them: Student's on the scale of
    log-odds.

    With one cluster nothing is known of how much they differ: None. Where they show no difference (k is 0, or all),
    Wilson's for as many observations as there are effective clusters.
    """
    spread = _spread(parts)
    if spread is None:
        return None
    share, error, effective = spread
    if error <= _ROUNDING or not 0 < share < 1:
        return wilson(min(1.0, max(0.0, share)) * effective, effective)
    centre, half = log(share / (1 - share)), _freedom(effective) * error / (share * (1 - share))
    return _logistic(centre - half), _logistic(centre + half)


def rate_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """The interval of a rate of attempts, one (k, n) a task: of one attempt a task Wilson's, else `share_interval`."""
    n = fsum([n for _, n in parts])
    return wilson(fsum([k for k, _ in parts]), n) if n == len(parts) else share_interval(parts)


def ratio_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """The interval of sum(a) / sum(b), one (a, b) a cluster, of what is no share (calls for each prompt): Student's, on
    the scale of logarithms where nothing is negative, because such ratios lean to the right. None under six clusters.
    """
    counted = [(a, b) for a, b in parts if b > 0]
    spread = _spread(counted)
    if spread is None or len(counted) < FEWEST_CLUSTERS:
        return None
    ratio, error, effective = spread
    if ratio <= 0 or min(a for a, _ in counted) < 0:
        return sums_interval(counted)
    factor = exp(min(_freedom(effective) * error / ratio, _LARGEST_EXPONENT))
    return ratio / factor, ratio * factor


def sums_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """Of sum(a) / sum(b), one (a, b) a cluster, where a may be negative: Student's. None of fewer than two clusters."""
    spread = _spread(parts)
    if spread is None:
        return None
    half = _freedom(spread.effective) * spread.error
    return spread.value - half, spread.value + half


class _Spread(NamedTuple):
    value: float
    error: float
    """The standard error, from how far clusters lie from the value."""
    effective: float
    """See `Clustered`."""


def _spread(parts: Iterable[tuple[float, float]]) -> _Spread | None:
    """Sum over sum and its linearised standard error over clusters; None of fewer than two.

    A large cluster draws the value to itself and so seems to lie near it: its residual is divided by the root of what
    the others weigh (Bell and McCaffrey 2002).
    """
    # Of many clusters most are alike: each kind is computed once, and counts as often as it is there.
    clusters = [(k, n, times) for (k, n), times in Counter(parts).items() if n > 0]
    if sum(times for _, _, times in clusters) < 2:
        return None
    total = _sum((n, times) for _, n, times in clusters)
    value = _sum((k, times) for k, _, times in clusters) / total
    residuals = (((k - value * n) ** 2 / max(1 - n / total, _ROUNDING), times) for k, n, times in clusters)
    variance = _sum(residuals) / total**2
    return _Spread(value, sqrt(variance), total**2 / _sum((n * n, times) for _, n, times in clusters))


def _sum(values: Iterable[tuple[float, int]]) -> float:
    """The exact sum of values, each so many times."""
    return fsum(chain.from_iterable(repeat(value, times) for value, times in values))


def _freedom(effective: float) -> float:
    """Student's quantile with one degree of freedom fewer than there are effective clusters."""
    return t_quantile(max(1.0, effective - 1))


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > -_LARGEST_EXPONENT else 0.0


class Clustered(NamedTuple):
    """An interval that takes clusters, not observations, as what was drawn."""

    interval: Interval | None
    clusters: int
    """Those with an observation."""
    effective: float
    """So many clusters of one size would tell as much (Kish): the square of the observations over the sum of their
    squares by cluster."""
    largest: float
    """The largest cluster's share of the observations, 0..1."""


def clustered(parts: Iterable[tuple[Hashable, float, float]]) -> Clustered:
    """The interval of a share, sum(k) / sum(n) over parts (cluster, k, n), as `share_interval` gives it of the
    clusters' sums. None where under six clusters have an observation.
    """
    counted = list(parts)
    return clustered_columns(*zip(*counted, strict=True)) if counted else clustered_columns((), (), ())


def clustered_columns(clusters: Sequence[Hashable], ks: Sequence[float], ns: Sequence[float]) -> Clustered:
    """As `clustered`, of parts by column."""
    return clustered_sums(sums_but_zeros(clusters, ks), sums(clusters, ns))


def clustered_sums(of_k: Mapping[_Cluster, float], of_n: Mapping[_Cluster, float]) -> Clustered:
    """As `clustered`, of the clusters' sums; those of k may lack what is 0."""
    kinds = Counter(zip(map(of_k.get, of_n, repeat(0.0)), of_n.values(), strict=True))
    sizes: dict[float, int] = {}  # and how many clusters are of each
    for (_, n), times in kinds.items():
        if n > 0:
            sizes[n] = sizes.get(n, 0) + times
    if not sizes:
        return Clustered(None, 0, 0.0, 0.0)
    total = _sum(sizes.items())
    effective = total**2 / _sum((n * n, times) for n, times in sizes.items())
    count = sum(sizes.values())
    interval = share_interval(kinds) if count >= FEWEST_CLUSTERS else None
    return Clustered(interval, count, effective, max(sizes) / total)


def sums_but_zeros(clusters: Sequence[_Cluster], parts: Sequence[float]) -> Mapping[_Cluster, float]:
    """As `sums`, without clusters all of whose parts are 0."""
    return sums(list(compress(clusters, parts)), list(filter(None, parts)))


def sums(clusters: Sequence[_Cluster], parts: Sequence[float]) -> Mapping[_Cluster, float]:
    """The sum of each cluster's parts, in the order they come; where each part is one, they need only be counted."""
    if parts.count(1) == len(parts):
        return Counter(clusters)
    if len(set(clusters)) == len(parts):
        return dict(zip(clusters, parts, strict=True))
    summed: dict[_Cluster, float] = {}
    for cluster, part in zip(clusters, parts, strict=True):
        summed[cluster] = summed.get(cluster, 0.0) + part
    return summed


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Student's interval of the mean of one value a cluster; None under six."""
    n = len(values)
    if n < FEWEST_CLUSTERS:
        return None
    from statistics import stdev  # noqa: PLC0415  (with its fractions 1.5 ms, which most runs do without)

    mean, half = fsum(values) / n, t_quantile(n - 1) * stdev(values) / sqrt(n)
    return mean - half, mean + half
