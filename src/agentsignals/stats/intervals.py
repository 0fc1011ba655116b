"""Quantiles and the median. Apart from `estimates`, so that signals load no random numbers for a middle value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress, repeat
from math import atan, comb, cos, erfc, exp, fsum, lgamma, log, pi, sqrt, tan
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct


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


# The intervals of a share and of a rate, at 95 percent.

Z = 1.959963984540054
"""The normal distribution's 97.5 percent point."""

Interval = tuple[float, float]


def wilson(k: float, n: float) -> Interval | None:
    """Wilson's interval of a share, k of n; None of nothing."""
    if n <= 0:
        return None
    share, z2 = k / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # At the ends the formula gives 0 and 1 but for rounding, which would be printed as "<0.1%".
    return (0.0 if k <= 0 else max(0.0, centre - half)), (1.0 if k >= n else min(1.0, centre + half))


def poisson(count: int, exposure: float) -> Interval | None:
    """The exact interval of a rate, `count` events over an exposure (Garwood 1936); None of no exposure.

    Its ends are the rates under which so many events, or so few, have a probability of 2.5 percent.
    """
    if exposure <= 0 or count < 0:
        return None
    low = _root(lambda mean: _at_least(count, mean) - _TAIL, 0.0, float(count)) if count else 0.0
    high = _root(lambda mean: _TAIL - _at_most(count, mean), float(count), count + 10 * sqrt(count + 1) + 10)
    return low / exposure, high / exposure


_TAIL = 0.025


def _root(rises: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is below 0 at `low` and above at `high` crosses it, by halving."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < 0 else (low, middle)
    return (low + high) / 2


def _at_least(count: int, mean: float) -> float:
    """The probability of `count` events or more, for a mean below it: the terms fall."""
    term = _term(count, mean)
    total, n = 0.0, count
    while term > total * 1e-17:
        total += term
        n += 1
        term *= mean / n
    return total


def _at_most(count: int, mean: float) -> float:
    """The probability of `count` events or fewer, for a mean above it: the terms fall."""
    term = _term(count, mean)
    total, n = 0.0, count
    while n >= 0 and term > total * 1e-17:
        total += term
        term *= n / mean
        n -= 1
    return total


def _term(count: int, mean: float) -> float:
    return exp(count * log(mean) - mean - lgamma(count + 1)) if mean > 0 else float(count == 0)


# Student's distribution, for intervals of few clusters. Here, because a quantile is worth no heavy package.

_STEPS = 64
"""Of Simpson's rule: quantiles are right to five figures, from one degree of freedom on."""
_ROUNDS = 48
_CLOSE = 1e-15
"""Of an angle: steps of less change no figure."""
_MANY = 500
"""From so many degrees of freedom on the first term of the normal's expansion is right to five figures."""


@lru_cache(maxsize=4096)
def t_quantile(freedom: float) -> float:
    """The 97.5 percent point of Student's t with so many degrees of freedom, which need not be whole (1 or more).

    With t = sqrt(f) tan(a) the distribution is the integral of cos(a) ** (f - 1) (Abramowitz and Stegun 26.7). The
    angle is sought by Newton's steps, whose slope is that power itself, from the normal's expansion on.
    """
    if freedom < 1:
        raise ValueError("fewer than one degree of freedom")
    expanded = Z + (Z**3 + Z) / (4 * freedom)
    if freedom > _MANY:
        return expanded
    whole = _whole(freedom)
    low, high, angle = 0.0, pi / 2, atan(expanded / sqrt(freedom))
    for _ in range(_ROUNDS):
        lacking = 0.95 * whole - _integral(angle, freedom - 1)
        low, high = (angle, high) if lacking > 0 else (low, angle)
        stepped = angle + lacking / cos(angle) ** (freedom - 1)
        former, angle = angle, stepped if low < stepped < high else (low + high) / 2
        if abs(angle - former) < _CLOSE:
            break
    return sqrt(freedom) * tan(angle)


def two_sided(t: float, freedom: float) -> float:
    """How likely a t at least so far from 0 is, with so many degrees of freedom."""
    if freedom > _MANY:
        return erfc(abs(t) * (1 - 1 / (4 * freedom)) / sqrt(1 + t * t / (2 * freedom)) / sqrt(2))
    return min(1.0, max(0.0, 1 - _integral(atan(abs(t) / sqrt(freedom)), freedom - 1) / _whole(freedom)))


def _whole(freedom: float) -> float:
    """Of cos(a) ** (freedom - 1) from 0 to a right angle."""
    return sqrt(pi) * exp(lgamma(freedom / 2) - lgamma((freedom + 1) / 2)) / 2


def _integral(end: float, power: float) -> float:
    """Of cos(a) ** power from 0 to `end`, by Simpson's rule."""
    step = end / _STEPS
    heights: list[float] = [cos(n * step) ** power for n in range(_STEPS + 1)]
    return step / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))


# Estimates with their intervals, at 95 percent. Pure, deterministic, no dependency.
#
# What was sampled are clusters: calls of one session are alike, and so are sessions of one place. Intervals of sums
# over sums come from how much clusters differ (design/statistics.md#clusters); their coverage from six clusters on
# is measured by `benchmarks/coverage.py`.

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
    "nonzero_sums",
    "quantile",
    "rate_interval",
    "ratio_interval",
    "share_interval",
    "sums",
    "sums_interval",
    "wilson",
]

_Cluster = TypeVar("_Cluster", bound=Hashable)
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
    return clustered_sums(nonzero_sums(clusters, ks), sums(clusters, ns))


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


def nonzero_sums(clusters: Sequence[_Cluster], parts: Sequence[float]) -> Mapping[_Cluster, float]:
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


# How frequent something is, out of how often an imperfect judge names it (Rogan and Gladen 1978).

WIDEST = 0.5
"""An interval wider than this tells nothing that anybody would act on."""


class ClassRates(Struct, frozen=True, kw_only=True):
    """How often a class was met on projects that were left out, in rows that were drawn at random."""

    true: int
    """Rows of this class."""
    hits: int
    """Of these, those that the model called so."""
    others: int
    """Rows of other classes."""
    false_alarms: int
    """Of these, those that the model called so."""


class Prevalence(Struct, frozen=True, kw_only=True):
    """A share as it was counted, and what it stands for."""

    counted: float
    recall: float | None
    """Of the things that are so, how many the judge names."""
    false_alarms: float | None
    """Of the things that are not, how many it names."""
    true: int = 0
    others: int = 0
    """How many things of both kinds these two were measured on."""
    share: float | None = None
    """None where it can't be told: nothing to measure the judge by, one no better than chance, or too wide an
    interval."""
    low: float | None = None
    high: float | None = None

    def in_words(self) -> str:
        """The share with its interval, and what it rests on."""
        named = f"{self.recall or 0:.0%} of {self.true} such and {self.false_alarms or 0:.0%} of {self.others} others"
        counted = f"named in {self.counted:.0%}; it named {named}"
        if self.share is None:
            return f"cannot be told ({counted})"
        return f"{self.share:.0%} ({self.low:.0%} to {self.high:.0%}; {counted})"


def corrected_prevalence(named: int, n: int, *, hits: int, true: int, false_alarms: int, others: int) -> Prevalence:  # noqa: PLR0913  (two counts and what the judge did)
    """The share behind `named` of `n`, at 95 percent, by a judge that named `hits` of `true` such things and
    `false_alarms` of `others` in a random sample. n above 0.

    The variance is theirs, with each count shifted by the interval's z² (Lang and Reiczigel 2014), which holds its
    level in small samples. Things are taken as independent.
    """
    counted = named / n
    recall, alarms = hits / true if true else None, false_alarms / others if others else None
    plain = Prevalence(counted=counted, recall=recall, false_alarms=alarms, true=true, others=others)
    if recall is None or alarms is None:
        return plain
    z2 = Z * Z
    p, se, sp = (named + z2 / 2) / (n + z2), (hits + 1) / (true + 2), (others - false_alarms + 1) / (others + 2)
    power = se + sp - 1
    if recall <= alarms or power <= 0:
        return plain
    share = min(1.0, max(0.0, (counted - alarms) / (recall - alarms)))
    middle = (p + sp - 1) / power
    shift = 2 * z2 * (middle * se * (1 - se) / (true + 2) - (1 - middle) * sp * (1 - sp) / (others + 2))
    half = (Z / power) * sqrt(
        p * (1 - p) / (n + z2)
        + se * (1 - se) / (true + 2) * middle**2
        + sp * (1 - sp) / (others + 2) * (1 - middle) ** 2
    )
    low, high = middle + shift - half, middle + shift + half
    if high < 0 or low > 1:  # named less often than where there is none: the judge does not behave here as it did there
        return plain
    low, high = max(0.0, low), min(1.0, high)
    if high - low > WIDEST:
        return plain
    return msgspec.structs.replace(plain, share=min(max(share, low), high), low=low, high=high)
