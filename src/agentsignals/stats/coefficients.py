"""Coefficients of agreement. Pure and deterministic; None where a coefficient is not defined, never 0 for it.

Formulas: Cohen 1960 and 1968, Gwet 2008 (AC1), Shrout & Fleiss 1979 (ICC), Krippendorff 2011 (alpha).
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import fsum, sqrt
from statistics import fmean

from msgspec import Struct

from agentsignals.stats.estimates import FEWEST_CLUSTERS, SEED, percentiles

Pair = tuple[str, str]
_DRAWS = 2_000
_FEWEST_DRAWS, _MOST_PICKS = 200, 3_000_000
"""With so many clusters fewer draws tell the same, and the time stays within seconds."""


class Estimate(Struct, frozen=True):
    """A coefficient with its interval at 95 percent; no ends where there is too little to tell them from."""

    value: float
    low: float | None = None
    high: float | None = None


def kappa(same: int, rows: Sequence[int], columns: Sequence[int]) -> float | None:
    """Cohen's, from the number of agreements and how often each said each label. None where chance explains all."""
    n = sum(rows)
    blind = sum(a * b for a, b in zip(rows, columns, strict=True))
    return (same * n - blind) / (n * n - blind) if n and blind != n * n else None


def kappa_estimate(parts: Iterable[tuple[Hashable, str, str]]) -> Estimate | None:
    """Cohen's kappa over (cluster, first's label, second's), with the percentile interval of drawing whole clusters
    anew, seeded. Messages of one session are alike: drawing them one by one would promise too much.

    No ends under six clusters, where half of the draws have no kappa, and where all draws give the same.
    """
    counted: dict[Hashable, Counter[Pair]] = {}
    for cluster, a, b in parts:
        counted.setdefault(cluster, Counter())[a, b] += 1
    names = sorted({name for counts in counted.values() for pair in counts for name in pair})
    packed = [_packed(_sums(counts, names)) for counts in counted.values()]
    value = _of_packed(sum(packed), len(names))
    if value is None:
        return None
    if len(packed) < FEWEST_CLUSTERS:
        return Estimate(value)
    chance = random.Random(SEED)  # noqa: S311  (draws, no secret)
    draws = max(_FEWEST_DRAWS, min(_DRAWS, _MOST_PICKS // len(packed)))
    kappas = (_of_packed(sum(chance.choices(packed, k=len(packed))), len(names)) for _ in range(draws))
    drawn = [k for k in kappas if k is not None]
    if 2 * len(drawn) < draws or min(drawn) == max(drawn):
        return Estimate(value)
    return Estimate(value, *percentiles(drawn))


def _sums(counted: Counter[Pair], names: list[str]) -> list[int]:
    """The agreements, how often the first said each label, how often the second did."""
    first, second = Counter[str](), Counter[str]()
    for (a, b), n in counted.items():
        first[a] += n
        second[b] += n
    same = sum(n for (a, b), n in counted.items() if a == b)
    return [same, *(first[name] for name in names), *(second[name] for name in names)]


def _packed(sums: list[int]) -> int:
    """Several sums in one whole number, so that adding clusters is one addition. 64 bits hold any of them."""
    return int.from_bytes(struct.pack(f"<{len(sums)}Q", *sums), "little")


def _of_packed(packed: int, names: int) -> float | None:
    size = 2 * names + 1
    same, *rest = struct.unpack(f"<{size}Q", packed.to_bytes(8 * size, "little"))
    return kappa(same, rest[:names], rest[names:])


def weighted_kappa(pairs: Sequence[Pair], order: Sequence[str]) -> float | None:
    """Cohen's with quadratic weights: labels far apart in `order` disagree more. Every label stands in `order`."""
    at = {name: n for n, name in enumerate(order)}
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    seen = sum((at[a] - at[b]) ** 2 for a, b in pairs) * len(pairs)
    blind = sum(n * m * (at[a] - at[b]) ** 2 for a, n in first.items() for b, m in second.items())
    return 1 - seen / blind if blind else None


def ac1(pairs: Sequence[Pair], labels: int) -> float | None:
    """Gwet's: chance agreement by how evenly the labels are used, so that a frequent one does not explain all.
    `labels`: how many could be given.
    """
    if not pairs or labels < 2:
        return None
    used = Counter(name for pair in pairs for name in pair)
    chance = fsum(s * (1 - s) for s in (n / (2 * len(pairs)) for n in used.values())) / (labels - 1)
    return (sum(a == b for a, b in pairs) / len(pairs) - chance) / (1 - chance)


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The correlation of the ranks, ties sharing theirs. None when either gives everything the same score."""
    first, second = _ranks([a for a, _ in pairs]), _ranks([b for _, b in pairs])
    if len(pairs) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    mean = fmean(first)
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
    """ICC(2,1): two-way random effects, absolute agreement, one rater. None of one thing, or when nothing varies."""
    n = len(pairs)
    if n < 2:
        return None
    whole = fmean(v for pair in pairs for v in pair)
    raters = [fmean(a for a, _ in pairs), fmean(b for _, b in pairs)]
    of_things = 2 * fsum((fmean(pair) - whole) ** 2 for pair in pairs)
    of_raters = n * fsum((m - whole) ** 2 for m in raters)
    rest = fsum((v - whole) ** 2 for pair in pairs for v in pair) - of_things - of_raters
    things, between, error = of_things / (n - 1), of_raters, max(0.0, rest) / (n - 1)
    below = things + error + 2 * (between - error) / n
    return (things - error) / below if below else None


def alpha(things: Iterable[Sequence[str]]) -> float | None:
    """Krippendorff's for names, over any number of labellers: each thing as the labels it has. Things with one label
    say nothing. None where all labels are one.
    """
    paired = [Counter(labels) for labels in things if len(labels) > 1]
    used: Counter[str] = sum(paired, Counter())
    n = used.total()
    apart = sum((labels.total() ** 2 - sum(k * k for k in labels.values())) / (labels.total() - 1) for labels in paired)
    blind = n * n - sum(k * k for k in used.values())
    return 1 - (n - 1) * apart / blind if blind else None
