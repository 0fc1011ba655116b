"""Agreement coefficients with intervals. A coefficient that is not defined is None, never 0.

Formulas: Cohen 1960 and 1968, Gwet 2008 (AC1), Shrout & Fleiss 1979 (ICC), Krippendorff 2011 (alpha).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import atanh, fsum, sqrt, tanh
from typing import NamedTuple, TypeVar

from msgspec import Struct

from agentsignals.stats.intervals import FEWEST_CLUSTERS, t_quantile


class Agreement(Struct, frozen=True):
    """Agreement of two labellers on the same items."""

    n: int
    agreement: float
    """Share of items with the same label."""
    chance: float
    kappa: float | None
    confusion: dict[str, dict[str, int]]
    """Counts by the first labeller's label (row) and the second's (column). Every label has a row and a column."""


def agreement(pairs: Iterable[tuple[str, str]], labels: Iterable[str] = ()) -> Agreement | None:
    """Return the agreement over pairs of labels; None without. `labels` come first, in this order, even if unused."""
    counted = Counter(pairs)
    n = counted.total()
    if not n:
        return None
    names = list(dict.fromkeys([*labels, *sorted({name for pair in counted for name in pair})]))
    confusion = {first: {other: counted[first, other] for other in names} for first in names}
    rows = {name: sum(confusion[name].values()) for name in names}
    columns = {name: sum(row[name] for row in confusion.values()) for name in names}
    same = sum(confusion[name][name] for name in names)
    blind = sum(rows[name] * columns[name] for name in names)
    coefficient = kappa(same, list(rows.values()), list(columns.values()))
    return Agreement(n, same / n, blind / (n * n), coefficient, confusion)


# -- coefficients ------------------------------------------------------------------------------------------------------


Pair = tuple[str, str]
_ROUNDING = 1e-12


class Estimate(Struct, frozen=True):
    """A coefficient with its 95 % interval; without one where there are too few clusters."""

    value: float
    low: float | None = None
    high: float | None = None


def kappa(same: int, rows: Sequence[int], columns: Sequence[int]) -> float | None:
    """Return Cohen's kappa from the number of agreements and the label counts of both. None if chance explains all."""
    n = sum(rows)  # counts are whole numbers, so that a chance of exactly 1 is seen as such
    blind = sum(a * b for a, b in zip(rows, columns, strict=True))
    return (same * n - blind) / (n * n - blind) if n and blind != n * n else None


def kappa_estimate(parts: Iterable[tuple[Hashable, str, str]]) -> Estimate | None:
    """Return Cohen's kappa over (cluster, first label, second label), with its interval over clusters.

    Messages of one session are alike, so the linearised standard error is taken over clusters, Student's on Fisher's
    scale (design/statistics.md#kappa). No interval for fewer than six clusters, and where clusters do not differ.
    """
    counted: dict[Hashable, Counter[Pair]] = {}
    for cluster, a, b in parts:
        counted.setdefault(cluster, Counter())[a, b] += 1
    clusters = [_Sums.of(pairs) for pairs in counted.values()]
    whole = _Sums.of(sum(counted.values(), Counter()))
    value = whole.kappa
    if value is None or len(clusters) < FEWEST_CLUSTERS or abs(value) >= 1:
        return None if value is None else Estimate(value)
    error = sqrt(fsum(whole.residual(part) ** 2 / (1 - part.n / whole.n) for part in clusters))
    effective = whole.n**2 / fsum(part.n**2 for part in clusters)
    centre, half = atanh(value), t_quantile(max(1.0, effective - 1)) * error / (1 - value * value)
    return Estimate(value, tanh(centre - half), tanh(centre + half)) if error > _ROUNDING else Estimate(value)


class _Sums(NamedTuple):
    """The counts that kappa is made of, for one cluster or all."""

    n: int
    same: int
    rows: Counter[str]
    columns: Counter[str]

    @staticmethod
    def of(pairs: Counter[Pair]) -> _Sums:
        rows, columns = Counter[str](), Counter[str]()
        for (a, b), n in pairs.items():
            rows[a] += n
            columns[b] += n
        return _Sums(pairs.total(), sum(n for (a, b), n in pairs.items() if a == b), rows, columns)

    @property
    def chance(self) -> float:
        return sum(n * self.columns[name] for name, n in self.rows.items()) / self.n**2

    @property
    def kappa(self) -> float | None:
        names = list(self.rows | self.columns)
        return kappa(self.same, [self.rows[name] for name in names], [self.columns[name] for name in names])

    def residual(self, part: _Sums) -> float:
        """First-order influence of a cluster on the overall kappa."""
        agreement, chance = self.same / self.n, self.chance
        crossed = fsum(n * self.columns[name] for name, n in part.rows.items())
        crossed += fsum(n * self.rows[name] for name, n in part.columns.items())
        of_agreement = part.same - agreement * part.n
        of_chance = crossed / self.n - 2 * chance * part.n
        return (of_agreement * (1 - chance) - of_chance * (1 - agreement)) / ((1 - chance) ** 2 * self.n)


def weighted_kappa(cells: Mapping[Pair, float], order: Sequence[str]) -> float | None:
    """Return kappa with quadratic weights, from counts by pair of labels. `order` holds every label."""
    at = {name: n for n, name in enumerate(order)}
    first, second = margins(cells)
    seen = fsum(n * (at[a] - at[b]) ** 2 for (a, b), n in cells.items()) * fsum(cells.values())
    blind = fsum(n * m * (at[a] - at[b]) ** 2 for a, n in first.items() for b, m in second.items())
    return 1 - seen / blind if blind else None


def ac1(cells: Mapping[Pair, float], labels: int) -> float | None:
    """Return Gwet's AC1, from counts by pair of labels. `labels`: how many labels exist."""
    n = fsum(cells.values())
    if not n or labels < 2:
        return None
    first, second = margins(cells)
    used = [(first.get(name, 0) + second.get(name, 0)) / (2 * n) for name in first.keys() | second.keys()]
    chance = fsum(share * (1 - share) for share in used) / (labels - 1)
    return (fsum(m for (a, b), m in cells.items() if a == b) / n - chance) / (1 - chance)


def margins(cells: Mapping[Pair, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the label counts of the first labeller, and of the second."""
    first, second = defaultdict[str, float](float), defaultdict[str, float](float)
    for (a, b), n in cells.items():
        first[a] += n
        second[b] += n
    return dict(first), dict(second)


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Spearman's rank correlation. None if either side is constant."""
    first, second = _ranks([a for a, _ in pairs]), _ranks([b for _, b in pairs])
    if len(pairs) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    mean = fsum(first) / len(first)
    deviations = [a - mean for a in first], [b - mean for b in second]
    product = fsum(a * b for a, b in zip(*deviations, strict=True))
    return product / sqrt(fsum(a * a for a in deviations[0]) * fsum(b * b for b in deviations[1]))


def _ranks(values: list[float]) -> list[float]:
    counted, ranks, before = Counter(values), {}, 0
    for value in sorted(counted):
        ranks[value] = before + (counted[value] + 1) / 2
        before += counted[value]
    return [ranks[value] for value in values]


def icc(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return ICC(2,1): two-way random effects, absolute agreement, one rater. None for one item, or no variance."""
    n = len(pairs)
    if n < 2:
        return None
    raters = [fsum(a for a, _ in pairs) / n, fsum(b for _, b in pairs) / n]
    whole = fsum(v for pair in pairs for v in pair) / (2 * n)
    of_things = 2 * fsum((fsum(pair) / 2 - whole) ** 2 for pair in pairs)
    of_raters = n * fsum((m - whole) ** 2 for m in raters)
    rest = fsum((v - whole) ** 2 for pair in pairs for v in pair) - of_things - of_raters
    things, between, error = of_things / (n - 1), of_raters, max(0.0, rest) / (n - 1)
    below = things + error + 2 * (between - error) / n
    return (things - error) / below if below else None


def coincidences(labels: Sequence[str]) -> dict[Pair, float]:
    """Return one item's coincidences for Krippendorff's alpha: weights by ordered label pair, empty for one label."""
    counted, others = Counter(labels), len(labels) - 1
    both = {(a, b): n * (m - (a == b)) for a, n in counted.items() for b, m in counted.items()}
    return {pair: n / others for pair, n in both.items() if n and others}


def alpha(cells: Mapping[Pair, float], order: Sequence[str] = ()) -> float | None:
    """Return Krippendorff's alpha from coincidences. With `order` labels are ordinal. None if one label is used."""
    used, _ = margins(cells)
    n = fsum(used.values())
    names = [name for name in order or sorted(used) if name in used]
    apart = dict.fromkeys(((a, b) for a in names for b in names if a != b), 1.0)
    for at, a in enumerate(names if order else ()):
        between = used[a] / 2
        for b in names[at + 1 :]:
            apart[a, b] = apart[b, a] = (between + used[b] / 2) ** 2
            between += used[b]
    seen = fsum(m * apart[pair] for pair, m in cells.items() if pair in apart)
    blind = fsum(used[a] * used[b] * weight for (a, b), weight in apart.items())
    return 1 - (n - 1) * seen / blind if blind else None


# -- jackknife intervals -----------------------------------------------------------------------------------------------


MOST_GROUPS = 200
"""More clusters are dealt into so many groups, which are left out as a whole."""
C = TypeVar("C")


def jackknife_estimate(
    clusters: Sequence[C], sizes: Sequence[float], coefficient: Callable[[Sequence[C]], float | None]
) -> Estimate | None:
    """Return a coefficient between -1 and 1 with its delete-one-cluster jackknife interval (Tukey 1958; Kott 2001).

    Student's on Fisher's scale, with the degrees of freedom of a share's interval
    (design/statistics.md#other-coefficients). `sizes`: the weight of each cluster. None where the coefficient is not
    defined. No interval for fewer than six clusters, where it is undefined without one of them, or where they do not
    differ.
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
    outlying = 1.5 * fsum(squares) ** 2 / fsum(square * square for square in squares)
    freedom = max(1.0, min(effective - 1, max(4, outlying)) if groups == len(clusters) else effective - 1)
    centre, half = atanh(value), t_quantile(freedom) * error / (1 - value * value)
    return Estimate(value, tanh(centre - half), tanh(centre + half))


def pairs_estimate(
    parts: Iterable[tuple[Hashable, Pair, float]], coefficient: Callable[[Mapping[Pair, float]], float | None]
) -> Estimate | None:
    """Return a coefficient over label pairs (cluster, pair, count), with its interval over clusters."""
    clusters: dict[Hashable, dict[Pair, float]] = defaultdict(lambda: defaultdict(float))
    for cluster, pair, n in parts:
        clusters[cluster][pair] += n
    cells = list(clusters.values())
    return jackknife_estimate(cells, [fsum(of.values()) for of in cells], lambda some: coefficient(sum_cells(some)))


def sum_cells(cells: Iterable[Mapping[Pair, float]]) -> Mapping[Pair, float]:
    whole = defaultdict[Pair, float](float)
    for of in cells:
        for pair, n in of.items():
            whole[pair] += n
    return whole
