"""Point estimates and their 95 % intervals: quantiles, shares, rates, ratios, means, and the prevalence behind an
imperfect judge.

The sampling unit is a cluster: calls of one session are alike, and so are sessions of one project. Intervals of ratios
come from the variance between clusters (design/statistics.md#clusters). `benchmarks/coverage.py` measures their
coverage from six clusters on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress, repeat
from math import atan, comb, copysign, cos, erfc, exp, fsum, lgamma, log, pi, sqrt, tan
from typing import NamedTuple, TypeVar

from msgspec import Struct


def quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile of ascending values, linear between neighbours (as DuckDB's quantile_cont)."""
    if not values:
        raise ValueError("no values")
    at = (len(values) - 1) * share
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def median(values: Sequence[float]) -> float | None:
    """Return the median, or None without values."""
    ascending = sorted(values)
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return float(ascending[middle])
    return (ascending[middle - 1] + ascending[middle]) / 2 if ascending else None


# -- shares and rates --------------------------------------------------------------------------------------------------


Z = 1.959963984540054
"""The 97.5 % point of the normal distribution."""

Interval = tuple[int | float, int | float]


def wilson(k: float, n: float) -> Interval | None:
    """Return Wilson's score interval of k out of n, or None where n is 0.

    One to three of n, or all but so few, take the end of a Poisson rate (Brown, Cai and DasGupta 2001): Wilson's own
    covers 84 % of rare events in eight trials.
    """
    if n <= 0:
        return None
    share, z2 = k / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    ends = _FEW[: 3 if n <= _FEW_UP_TO else 4]
    # At the ends the formula gives 0 and 1 but for rounding, which would be printed as "<0.1%".
    low = 0.0 if k <= 0 else ends[int(k)] / n if k in range(1, len(ends)) else max(0.0, centre - half)
    high = 1.0 if k >= n else 1 - ends[int(n - k)] / n if n - k in range(1, len(ends)) else min(1.0, centre + half)
    return low, high


_FEW = (0.0, 0.0512933, 0.3553615, 0.8176914)
"""The rates under which so many events or more have a chance of 5 %."""
_FEW_UP_TO = 50
"""For more trials three events are few, too."""


def poisson(count: int, exposure: float) -> Interval | None:
    """Return the exact interval of a Poisson rate (Garwood 1936), or None without exposure.

    `count` events were seen over `exposure`.
    """
    if exposure <= 0 or count < 0:
        return None
    most = count + 10 * sqrt(count + 1) + 10
    low = bisected(lambda mean: _poisson_tail(count, mean, 1) < TAIL, 0.0, float(count)) if count else 0.0
    high = bisected(lambda mean: _poisson_tail(count, mean, -1) > TAIL, float(count), most)
    return low / exposure, high / exposure


TAIL = 0.025
"""Chance beyond either end of an interval."""


def bisected(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Find by bisection up to where it holds; `low` if it never does."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _poisson_tail(count: int, mean: float, step: int) -> float:
    """Return P(X >= count) for a Poisson mean below `count` (step 1), or P(X <= count) for one above (step -1)."""
    term = exp(count * log(mean) - mean - lgamma(count + 1)) if mean > 0 else float(count == 0)
    total, n = 0.0, count
    while n >= 0 and term > total * 1e-17:
        total += term
        term *= mean / (n + 1) if step > 0 else n / mean
        n += step
    return total


# -- Student's t -------------------------------------------------------------------------------------------------------


_STEPS = 64
"""Intervals of Simpson's rule: enough for five correct digits from one degree of freedom on."""
_ROUNDS = 48
_CLOSE = 1e-15
"""Newton steps (of the angle) below this change no digit."""
_MANY = 500
"""From so many degrees of freedom on, the first term of the normal expansion is correct to five digits."""


@lru_cache(maxsize=4096)
def t_quantile(freedom: float) -> float:
    """Return the 97.5 % point of Student's t. `freedom` is at least 1 and need not be whole.

    With t = sqrt(f) tan(a) the distribution is the integral of cos(a) ** (f - 1) (Abramowitz and Stegun 26.7). Newton's
    method finds the angle, starting from the normal expansion.
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
    """Return the two-sided p value of a t statistic."""
    if freedom > _MANY:
        return erfc(abs(t) * (1 - 1 / (4 * freedom)) / sqrt(1 + t * t / (2 * freedom)) / sqrt(2))
    return min(1.0, max(0.0, 1 - _integral(atan(abs(t) / sqrt(freedom)), freedom - 1) / _whole(freedom)))


def _whole(freedom: float) -> float:
    """Integral of cos(a) ** (freedom - 1) from 0 to a right angle."""
    return sqrt(pi) * exp(lgamma(freedom / 2) - lgamma((freedom + 1) / 2)) / 2


def _integral(end: float, power: float) -> float:
    """Integral of cos(a) ** power from 0 to `end`, by Simpson's rule."""
    step = end / _STEPS
    heights: list[float] = [cos(n * step) ** power for n in range(_STEPS + 1)]
    return step / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))


# -- clusters ----------------------------------------------------------------------------------------------------------


_Cluster = TypeVar("_Cluster", bound=Hashable)
_EXACT_UP_TO = 400
"""For more values the normal approximation of the binomial gives the same rank."""
_ROUNDING = 1e-12
_LARGEST_EXPONENT = 700.0
SEED = 20260302
"""Seed of every random draw, so that results are reproducible."""
FEWEST_CLUSTERS = 6
"""Fewer sessions, projects or tasks get no interval: their variance is hardly known."""


def median_interval(values: Sequence[float]) -> Interval | None:
    """Return the order-statistics interval of the median, or None for fewer than six values.

    It needs no distribution and no resampling, and covers at least 95 %.
    """
    n, seen, rank = len(values), 0, 0
    if n > _EXACT_UP_TO:
        rank = int((n - Z * sqrt(n)) / 2)
    else:  # the greatest rank such that fewer heads in n fair coin flips have at most a 2.5 % chance
        while rank <= n:
            seen += comb(n, rank)
            if seen > TAIL * 2**n:
                break
            rank += 1
    if rank < 1:
        return None
    ascending = sorted(values)
    return ascending[rank - 1], ascending[n - rank]


def clustered_median_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> Interval | None:
    """Return the interval of the median of values in clusters: the medians that a test does not reject. None for fewer
    than six clusters.

    Of one value a cluster it is the interval of order statistics. Else a value is too low if too few values are equal
    or less: the sum over clusters of (values so low, less half of the cluster's values) is compared with the root of
    its sum of squares. Ties count against rejection at both ends.
    """
    grouped: dict[Hashable, list[float]] = {}
    for cluster, value in zip(clusters, values, strict=True):
        grouped.setdefault(cluster, []).append(value)
    if len(grouped) < FEWEST_CLUSTERS:
        return None
    if len(grouped) == len(values):
        return median_interval(values)
    sorted_clusters = [sorted(group) for group in grouped.values()]
    different = sorted(set(values))

    def excess(rank: Callable[[Sequence[float], float], int], at: float) -> float:
        """Statistic of the sign test over clusters for a median of `at`: standard errors by which the values below it
        exceed half of all. `rank`: `bisect_left`, or `bisect_right` to count equal ones."""
        scores = [rank(group, at) - len(group) / 2 for group in sorted_clusters]
        error = sqrt(fsum([score * score for score in scores]))
        return fsum(scores) / error if error else 0.0

    low = bisect_left(different, True, key=lambda at: excess(bisect_right, at) >= -Z)
    above = bisect_left(different, True, key=lambda at: excess(bisect_left, at) > Z)
    return different[low], different[above - 1]


def share_interval(parts: Iterable[tuple[float, float]]) -> Interval | None:
    """Return the interval of sum(k) / sum(n) over clusters (k, n), or None for fewer than two clusters.

    Student's interval on the log-odds scale, with the long end of `_skewed`. If clusters do not differ (k is 0, or
    all), Wilson's for the effective number of clusters. A Counter of (k, n) is accepted too.
    """
    spread = _spread(parts)
    if spread is None:
        return None
    share = spread.value
    if spread.error <= _ROUNDING or not 0 < share < 1:
        return wilson(min(1.0, max(0.0, share)) * spread.effective, spread.effective)
    centre, half = log(share / (1 - share)), spread.t * spread.error / (share * (1 - share))
    low, high = _skewed(spread, (_logistic(centre - half), _logistic(centre + half)))
    return max(0.0, low), min(1.0, high)


def rate_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the interval of a rate over tasks (k, n): Wilson's for one attempt a task, else `share_interval`."""
    n = fsum([n for _, n in parts])
    return wilson(fsum([k for k, _ in parts]), n) if n == len(parts) else share_interval(parts)


def ratio_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the interval of sum(a) / sum(b) over clusters, for ratios that are no share (calls per prompt).

    Student's, on the log scale where nothing is negative, with the long end of `_skewed`. None for fewer than six
    clusters, and where every a is 0: that has no scale.
    """
    counted = [(a, b) for a, b in parts if b > 0]
    spread = _spread(counted, bounded=False)
    if spread is None or len(counted) < FEWEST_CLUSTERS or not any(a for a, _ in counted):
        return None
    if spread.value <= 0 or min(a for a, _ in counted) < 0:
        return sums_interval(counted, skewed=True)
    factor = exp(min(spread.t * spread.error / spread.value, _LARGEST_EXPONENT))
    low, high = _skewed(spread, (spread.value / factor, spread.value * factor), _UNDERSTATED)
    return max(0.0, low), high


def sums_interval(parts: Iterable[tuple[float, float]], *, skewed: bool = False) -> Interval | None:
    """Return Student's interval of sum(a) / sum(b) over clusters, where a may be negative. None for fewer than two.

    `skewed`: a has no bounds, so outliers are expected, and one end is moved out by `_skewed`.
    """
    spread = _spread(parts, bounded=not skewed)
    if spread is None:
        return None
    half = spread.t * spread.error
    ends = spread.value - half, spread.value + half
    return _skewed(spread, ends, _UNDERSTATED) if skewed else ends


def sums_test(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return Student's t of sum(a) / sum(b) over clusters, as `sums_interval` has it, and its two-sided p value. They
    are 0 and 1 for fewer than two clusters, and without any variance."""
    spread = _spread(parts)
    if spread is None or spread.error <= _ROUNDING:
        return 0.0, 1.0
    t = spread.value / spread.error
    return t, two_sided(t, spread.freedom)


_UNDERSTATED = 2.0
"""By how much few clusters understate the skewness of values without bounds (this project's choice, as the next: both
by benchmarks/coverage.py)."""
_LEAST_FREEDOM, _FEWEST_BOUNDED = 6.0, 12
"""For values with bounds, whose outliers are bounded, too: Student's interval of fewer clusters is wide enough."""


class _Spread(NamedTuple):
    value: float
    error: float
    """Standard error, from the residuals of clusters."""
    effective: float
    freedom: float
    """Degrees of freedom, the smaller of two numbers: one fewer than the effective number of clusters, and 1.5 times
    that of squared residuals, because a variance that one outlier makes is hardly known."""
    skewness: float
    """Skewness of the estimate. 0 for clusters of one size with 0 or 100 %: their variance follows from the share."""

    @property
    def t(self) -> float:
        """Student's quantile."""
        return t_quantile(self.freedom)


def _spread(parts: Iterable[tuple[float, float]], *, bounded: bool = True) -> _Spread | None:
    """Return sum over sum with its linearised standard error over clusters, or None for fewer than two.

    A large cluster pulls the value towards itself, so its residual is divided by the root of the others' weight (Bell
    and McCaffrey 2002).
    """
    # Of many clusters most are alike: each kind is computed once, and counts as often as it is there.
    clusters = [(k, n, times) for (k, n), times in Counter(parts).items() if n > 0]
    count = sum(times for _, _, times in clusters)
    if count < 2:
        return None
    total = _sum((n, times) for _, n, times in clusters)
    value = _sum((k, times) for k, _, times in clusters) / total
    squares = [((k - value * n) ** 2 / max(1 - n / total, _ROUNDING), k > value * n, times) for k, n, times in clusters]
    sum2 = _sum((square, times) for square, _, times in squares)
    error, effective = sqrt(sum2) / total, total**2 / _sum((n * n, times) for _, n, times in clusters)
    freedom, skewness = effective - 1, 0.0
    are_binary = effective > count - _ROUNDING and all(k in (0, n) for k, n, _ in clusters)
    if count >= (_FEWEST_BOUNDED if bounded else FEWEST_CLUSTERS) and error > _ROUNDING and not are_binary:
        outlying = 1.5 * sum2**2 / fsum(square * square * times for square, _, times in squares)
        freedom = min(freedom, max(_LEAST_FREEDOM if bounded else 1.0, outlying))
        sum3 = fsum((1 if above else -1) * square * sqrt(square) * times for square, above, times in squares)
        skewness = count / (count - 2) * sum3 / sum2**1.5
    return _Spread(value, error, effective, max(1.0, freedom), skewness)


def _skewed(spread: _Spread, ends: Interval, understated: float = 1.0) -> Interval:
    """Move the end on the side of the skewness out to that of Hall's (1992) transformed Student interval."""
    skewness = spread.skewness * understated
    if abs(skewness) < _ROUNDING:
        return ends
    cube = 1 + skewness * ((-spread.t if skewness > 0 else spread.t) - skewness / 6)
    root = copysign(abs(cube) ** (1 / 3), cube)
    end = spread.value - 3 * spread.error / skewness * (root - 1)
    return (ends[0], max(ends[1], end)) if skewness > 0 else (min(ends[0], end), ends[1])


def _sum(values: Iterable[tuple[float, int]]) -> float:
    return fsum(chain.from_iterable(repeat(value, times) for value, times in values))


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > -_LARGEST_EXPONENT else 0.0


class Clustered(NamedTuple):
    """A share's interval with clusters, not observations, as the sampling unit."""

    interval: Interval | None
    clusters: int
    effective: float
    """Kish's effective number of clusters: the squared total over the sum of squared cluster sizes."""
    largest: float
    """The largest cluster's share of the observations, 0 to 1."""


def clustered(parts: Iterable[tuple[Hashable, float, float]]) -> Clustered:
    """Return the clustered interval of sum(k) / sum(n) over parts (cluster, k, n). None for under six clusters."""
    held = list(parts)
    clusters = [cluster for cluster, _, _ in held]
    return clustered_sums(nonzero_sums(clusters, [k for _, k, _ in held]), sums(clusters, [n for _, _, n in held]))


def clustered_sums(of_k: Mapping[_Cluster, float], of_n: Mapping[_Cluster, float]) -> Clustered:
    """Like `clustered`, from sums by cluster. `of_k` may lack clusters whose sum is 0."""
    return clustered_kinds(Counter(zip(map(of_k.get, of_n, repeat(0.0)), of_n.values(), strict=True)))


def clustered_kinds(kinds: Mapping[tuple[float, float], int]) -> Clustered:
    """Like `clustered`, from how many clusters have each k and n."""
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
    """Like `sums`, without clusters whose parts are all 0."""
    return sums(list(compress(clusters, parts)), list(filter(None, parts)))


def sums(clusters: Sequence[_Cluster], parts: Sequence[float]) -> Mapping[_Cluster, float]:
    """Sum the parts of each cluster, in order of first appearance."""
    if parts.count(1) == len(parts):
        return Counter(clusters)
    if len(set(clusters)) == len(parts):
        return dict(zip(clusters, parts, strict=True))
    summed: defaultdict[_Cluster, float] = defaultdict(int)
    for cluster, part in zip(clusters, parts, strict=True):
        summed[cluster] += part
    return dict(summed)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's interval of a mean, one value a cluster, or None for fewer than six."""
    n = len(values)
    if n < FEWEST_CLUSTERS:
        return None
    from statistics import stdev  # noqa: PLC0415  (with its fractions 1.5 ms, which most runs do without)

    mean, half = fsum(values) / n, t_quantile(n - 1) * stdev(values) / sqrt(n)
    return mean - half, mean + half


# -- shares by a judge that may be wrong -------------------------------------------------------------------------------


class Prevalence(Struct, frozen=True, kw_only=True):
    """A class's share by a classifier: the mean of its calibrated probabilities, and the count of its labels."""

    counted: float
    """Share of the things that it named so."""
    n: int
    share: float
    low: float
    high: float

    def in_words(self) -> str:
        return f"{self.share:.0%} [{self.low:.0%}, {self.high:.0%}] (named in {self.counted:.0%} of {self.n:,})"


def mean_probability(parts: Sequence[tuple[Hashable, float, bool]], share_error: float) -> Prevalence:
    """Return the share behind (cluster, calibrated probability, named so) of at least one thing.

    The interval holds three errors: which clusters were drawn, what each thing is given its probability, and the
    calibration's own in another project (`share_error`, a standard deviation).
    """
    n = len(parts)
    share = fsum(p for _, p, _ in parts) / n
    drawn = clustered((cluster, p, 1) for cluster, p, _ in parts).interval
    drawn = drawn or share_interval([(p, 1.0) for _, p, _ in parts]) or (share, share)
    low, high = widened(share, drawn, fsum(p * (1 - p) for _, p, _ in parts) / n**2 + share_error**2)
    return Prevalence(counted=sum(named for _, _, named in parts) / n, n=n, share=share, low=low, high=high)


def widened(share: float, interval: Interval, variance: float) -> Interval:
    """Return a share's 95% interval with an independent error of this variance added."""
    low, high = ((end - share) ** 2 + Z * Z * variance for end in interval)
    return max(0.0, share - sqrt(low)), min(1.0, share + sqrt(high))
