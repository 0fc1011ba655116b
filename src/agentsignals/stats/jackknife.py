"""The interval of any coefficient over clusters, from what leaving each of them out changes (Tukey 1958; Kott 2001)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import atanh, fsum, sqrt, tanh
from typing import TypeVar

from agentsignals.stats.coefficients import Estimate, Pair
from agentsignals.stats.estimates import FEWEST_CLUSTERS
from agentsignals.stats.student import t_quantile

MOST_GROUPS = 200
"""More clusters are dealt into so many groups, which are left out whole: the coefficient is computed so often."""
_ROUNDING = 1e-12
C = TypeVar("C")


def estimate(
    clusters: Sequence[C], sizes: Sequence[float], coefficient: Callable[[Sequence[C]], float | None]
) -> Estimate | None:
    """A coefficient between -1 and 1 of all clusters, with its interval: Student's on Fisher's scale, with one degree
    of freedom fewer than there are effective clusters (design/statistics.md#other-coefficients). `sizes`: what each
    cluster weighs.

    None where the coefficient is not defined. No ends under six clusters, where it is not defined without one of them,
    and where they show no difference.
    """
    value = coefficient(clusters)
    if value is None or len(clusters) < FEWEST_CLUSTERS or abs(value) >= 1 - _ROUNDING:
        return None if value is None else Estimate(value)
    whole, groups = fsum(sizes), min(len(clusters), MOST_GROUPS)
    squares = []
    for group in range(groups):
        without = coefficient([cluster for n, cluster in enumerate(clusters) if n % groups != group])
        if without is None:
            return Estimate(value)
        # A large cluster draws the value to itself: what the others weigh takes back half of what leaving it out
        # overstates, as in the linearised error of a share.
        squares.append((without - value) ** 2 * (1 - fsum(sizes[group::groups]) / whole))
    error = sqrt(fsum(squares))
    if error <= _ROUNDING:
        return Estimate(value)
    effective = whole**2 / fsum(size * size for size in sizes)
    centre, half = atanh(value), t_quantile(max(1.0, effective - 1)) * error / (1 - value * value)
    return Estimate(value, tanh(centre - half), tanh(centre + half))


def of_pairs(
    parts: Iterable[tuple[Hashable, Pair, float]], coefficient: Callable[[Mapping[Pair, float]], float | None]
) -> Estimate | None:
    """A coefficient of pairs of labels, each given so many times in a cluster (cluster, pair, times), with its interval
    over clusters."""
    clusters: dict[Hashable, dict[Pair, float]] = defaultdict(lambda: defaultdict(float))
    for cluster, pair, n in parts:
        clusters[cluster][pair] += n
    cells = list(clusters.values())
    return estimate(cells, [fsum(of.values()) for of in cells], lambda some: coefficient(together(some)))


def together(cells: Iterable[Mapping[Pair, float]]) -> Mapping[Pair, float]:
    """The sums of several counts of pairs."""
    whole = defaultdict[Pair, float](float)
    for of in cells:
        for pair, n in of.items():
            whole[pair] += n
    return whole
