"""Comparison of two arms on the same tasks (differences, exact tests, multiple testing, power, regression weights), of
two sides within strata, and of one series before and after a moment.

Attempts at one task are alike, so tasks are the unit: a permutation flips whole tasks. Simulations behind the methods:
design/statistics.md#paired-differences and #power.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil, comb, copysign, exp, fsum, gcd, inf, lcm, lgamma, log, log1p, sqrt

from msgspec import Struct

from agentsignals.stats.intervals import (
    FEWEST_CLUSTERS,
    SEED,
    TAIL,
    Interval,
    Z,
    bisected,
    mean_interval,
    sums_interval,
    sums_test,
    t_quantile,
    two_sided,
    wilson,
)

_MOST_EXACT = 4_000_000_000
"""Bits moved for an exact permutation test: half a second. Where it would take more, flips are sampled."""
_ENUMERATED = 12
"""Up to so many differing tasks all sign flips are enumerated (4096)."""
_FLIPS, _FEWEST_FLIPS, _MOST_FLIPPED = 2000, 500, 1_000_000
_FLIPS_A_TEST, _MOST_OF_A_FAMILY = 100, 40_000_000
"""Flips for each candidate that shares the level, drawn if fewer than `_FEW` of the first were as far."""
_FEW = 10
_ROUNDING = 1e-12

Arm = Mapping[str, Sequence[float]]
"""Outcomes of a candidate's attempts by task."""


class Paired(Struct, frozen=True, kw_only=True):
    """Difference of two candidates over their common tasks. Each task has the same weight."""

    tasks: int
    attempts: int
    baseline_attempts: int
    value: float | None
    """None without a common task."""
    low: float | None = None
    high: float | None = None
    """At 95 %. None for fewer than six tasks, and for numbers whose difference is the same at every task."""
    discordance: float | None = None
    """Mean squared difference of tasks. With one attempt a task: the share of tasks that changed."""
    gained: int = 0
    lost: int = 0
    p: float | None = None
    least_p: float | None = None
    """Smallest p value that so many tasks can reach."""
    test: str = ""
    method: str = ""
    single: bool = False
    """One yes-or-no attempt a side at each task."""


def paired(candidate: Arm, baseline: Arm, *, yes_or_no: bool, tests: int = 1) -> Paired:
    """Compare two arms within their common tasks. `yes_or_no`: outcomes are 0 and 1. `tests`: candidates that share the
    level."""
    tasks, gaps = sorted(candidate.keys() & baseline.keys()), differences(candidate, baseline)
    tried = sum(len(candidate[t]) for t in tasks), sum(len(baseline[t]) for t in tasks)
    if not gaps:
        return Paired(tasks=0, attempts=0, baseline_attempts=0, value=None)
    single = yes_or_no and tried == (len(tasks), len(tasks))
    gained, lost = sum(g > _ROUNDING for g in gaps), sum(g < -_ROUNDING for g in gaps)
    interval, method = None, "every task differs by the same"
    if len(gaps) < FEWEST_CLUSTERS:
        method = f"fewer than {FEWEST_CLUSTERS} matched tasks"
    elif single:
        interval, method = tango(gained, lost, len(gaps)), "Tango's score interval"
    elif max(gaps) - min(gaps) > _ROUNDING:
        interval = mean_interval(gaps) if yes_or_no else sums_interval([(gap, 1) for gap in gaps], skewed=True)
        method = "Student's over differences of tasks"
    low, high = interval or (None, None)
    if single:
        p, least = mcnemar(gained, lost), min(1.0, 2.0 ** (1 - len(gaps)))
    else:
        each = lcm(*(lcm(len(candidate[t]), len(baseline[t])) for t in tasks)) if yes_or_no else None
        p, least = sign_flips(gaps, each, tests)
    return Paired(
        tasks=len(tasks),
        attempts=tried[0],
        baseline_attempts=tried[1],
        value=_mean(gaps),
        low=low,
        high=high,
        discordance=_mean([g * g for g in gaps]),
        gained=gained,
        lost=lost,
        p=p,
        least_p=least,
        test="exact McNemar" if single else "flips of whole tasks",
        method=method,
        single=single,
    )


def differences(candidate: Arm, baseline: Arm) -> list[float]:
    """Return the candidate's mean minus the baseline's for each common task."""
    return [_mean(candidate[t]) - _mean(baseline[t]) for t in sorted(candidate.keys() & baseline.keys())]


def _mean(values: Sequence[float]) -> float:
    # As `statistics.fmean`, whose module takes 6 ms to load, which most runs do without.
    return fsum(values) / len(values)


def tango(gained: int, lost: int, n: int) -> Interval:
    """Return Tango's score interval (1998) of the difference of two shares over the same n tasks."""

    def far(gap: float) -> float:
        """Standard errors between the observed difference and `gap`, if `gap` were true."""
        off = gained - lost - n * gap
        linear, constant = (2 * n - gained + lost) * gap - gained - lost, -lost * gap * (1 - gap)
        losing = (sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
        variance = n * (2 * losing + gap * (1 - gap))
        return off / sqrt(variance) if variance > _ROUNDING else copysign(inf, off) if off else 0.0

    value = (gained - lost) / n
    return bisected(lambda gap: far(gap) > Z, -1.0, value), bisected(lambda gap: far(gap) > -Z, value, 1.0)


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p value of McNemar's test (1947)."""
    changed = gained + lost
    tail = sum(comb(changed, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def sign_flip(gaps: Sequence[float], per: int | None = None) -> float:
    """Return the p value of Fisher's sign-flip test (1935) over tasks. See `sign_flips`."""
    return sign_flips(gaps, per)[0]


def sign_flips(gaps: Sequence[float], per: int | None = None, tests: int = 1) -> tuple[float, float]:
    """Return the p value of the sign-flip test, and the smallest that so many tasks can reach.

    Exact where gaps are multiples of 1 / `per`, or few; else sampled, with as many flips as `tests` candidates that
    share the level need.
    """
    moved = [abs(g) for g in gaps if abs(g) > _ROUNDING]
    least = min(1.0, 2.0 ** (1 - len(gaps)))
    far = abs(fsum(gaps)) - _ROUNDING * max(1, len(gaps))
    if len(moved) <= _ENUMERATED:
        sums = [0.0]
        for g in moved:
            sums = [end for total in sums for end in (total + g, total - g)]
        return sum(abs(total) >= far for total in sums) / len(sums), least
    if per is not None:
        steps = [round(g * per) for g in moved]
        step = gcd(*steps)
        bits = (len(moved) + 8) // 8 * 8
        if len(moved) * bits * sum(steps) // step <= _MOST_EXACT:
            return _flipped_exactly([s // step for s in steps], abs(round(fsum(gaps) * per)) // step, bits), least
    from random import Random  # noqa: PLC0415  (what was found is read without)

    chance = Random(SEED)  # noqa: S311  (draws, no secret)
    flips = max(_FEWEST_FLIPS, min(_FLIPS, _MOST_FLIPPED // len(moved)))
    most = max(flips, min(_FLIPS_A_TEST * tests, _MOST_OF_A_FAMILY // len(moved)))
    total, met, drawn = fsum(moved), 0, 0
    while drawn < (flips if met >= _FEW else most):
        drawn += 1
        up = fsum(g for g, bit in zip(moved, chance.randbytes(len(moved)), strict=True) if bit & 1)
        met += abs(2 * up - total) >= far
    return (1 + met) / (1 + drawn), max(least, 1 / (1 + most))


def _flipped_exactly(steps: Sequence[int], seen: int, bits: int) -> float:
    """Share of all sign flips of whole numbers whose sum is at least as far from 0 as `seen`.

    The number of flips for each sum is a coefficient of the product of (1 + x ** step), and those are `bits` apart in
    one whole number.
    """
    if not seen:
        return 1.0
    counts = 1
    for step in steps:
        counts += counts << (step * bits)
    least = (sum(steps) + seen + 1) // 2  # of the steps that go up, so that the sum is `seen` or more
    tail = (counts >> (least * bits)).to_bytes((sum(steps) + 1) * bits // 8, "little")
    each = bits // 8
    met = sum(int.from_bytes(tail[at : at + each], "little") for at in range(0, len(tail), each))
    return min(1.0, 2 * met / (1 << len(steps)))


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Return p values adjusted for the false discovery rate (Benjamini and Hochberg 1995)."""
    if any(not 0 <= value <= 1 for value in p):
        raise ValueError("a p value is not within 0 and 1")
    adjusted = [1.0] * len(p)
    least = 1.0
    for rank, at in zip(range(len(p), 0, -1), sorted(range(len(p)), key=lambda n: -p[n]), strict=True):
        least = min(least, p[at] * len(p) / rank)
        adjusted[at] = least
    return adjusted


def holm(p: Sequence[float]) -> list[float]:
    """Return p values adjusted for the family-wise error rate (Holm 1979), under any dependence."""
    if any(not 0 <= value <= 1 for value in p):
        raise ValueError("a p value is not within 0 and 1")
    adjusted = [1.0] * len(p)
    most = 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=lambda n: p[n])):
        most = max(most, min(1.0, p[at] * (len(p) - rank)))
        adjusted[at] = most
    return adjusted


class OverClusters(Struct, frozen=True, kw_only=True):
    """Mean difference over clusters of tasks (repositories), which holds for clusters like these."""

    clusters: int
    value: float | None = None
    """None for fewer than six clusters."""
    low: float | None = None
    high: float | None = None
    p: float | None = None


def over_clusters(gaps: Mapping[str, Sequence[float]]) -> OverClusters:
    """Estimate the mean difference over clusters from the differences of their tasks.

    Random effects: clusters differ beyond their tasks by a variance after Paule and Mandel (1982), the error is
    Hartung's and Knapp's (2001), and Student's t has one degree fewer than the effective number of clusters, or half of
    them where one cluster has most of the weight.
    Simulations: design/statistics.md#families-of-tasks.
    """
    n = len(gaps)
    if n < FEWEST_CLUSTERS:
        return OverClusters(clusters=n)
    means = {cluster: _mean(of) for cluster, of in gaps.items()}
    tasks = sum(map(len, gaps.values()))
    within = fsum((gap - means[cluster]) ** 2 for cluster, of in gaps.items() for gap in of) / max(1, tasks - n)
    errors = [max(within / len(of), _ROUNDING) for of in gaps.values()]

    def estimated(between: float) -> tuple[float, list[float], float]:
        weights = [1 / (error + between) for error in errors]
        mean = fsum(w * m for w, m in zip(weights, means.values(), strict=True)) / fsum(weights)
        return mean, weights, fsum(w * (m - mean) ** 2 for w, m in zip(weights, means.values(), strict=True))

    mean, weights, squares = estimated(bisected(lambda between: estimated(between)[2] >= n - 1, 0.0, 4.0))
    freedom = max((n - 1) / 2, fsum(weights) ** 2 / fsum(w * w for w in weights) - 1)
    error = sqrt(max(1.0, squares / (n - 1)) / fsum(weights))
    if within <= _ROUNDING and max(means.values()) - min(means.values()) <= _ROUNDING:  # every task differs by the same
        return OverClusters(clusters=n, value=mean, p=sign_flip(list(means.values())))
    half = t_quantile(freedom) * error
    return OverClusters(clusters=n, value=mean, low=mean - half, high=mean + half, p=two_sided(mean / error, freedom))


def difference_interval(value: float, interval: Interval, other: float, other_interval: Interval) -> Interval:
    """Return the interval of a difference of two independent estimates (Newcombe 1998, method 10)."""
    gap = value - other
    below = sqrt((value - interval[0]) ** 2 + (other_interval[1] - other) ** 2)
    above = sqrt((interval[1] - value) ** 2 + (other - other_interval[0]) ** 2)
    return gap - below, gap + above


# -- power -------------------------------------------------------------------------------------------------------------


LEVEL, POWER = 0.05, 0.8
"""The usual two-sided significance level and power."""
RELEVANT_GAP = 0.10
"""Difference of rates that a comparison should be able to detect (this project's choice)."""
_EXACT_CHANGES_UP_TO = 600
"""For more changed tasks the normal approximation is accurate to 2 % of the difference."""
_MOST = 1 << 24
"""Larger numbers of tasks are never reported."""
FEWEST_OF_SEVERAL = 12
"""With several attempts a task, no power formula holds in simulation for fewer tasks."""
_SPREAD = 5
"""Standard deviations of the number of changed tasks that the sum covers."""


class Power(Struct, frozen=True, kw_only=True):
    """Differences that this number of matched tasks detects with 80 % power, in the outcome's unit."""

    level: float
    """Two-sided level of each comparison: 5 % divided by the number of candidates."""
    detectable: float | None
    """Smallest detectable difference. None where none can be significant, and for under 12 tasks tried repeatedly."""
    low: float | None = None
    high: float | None = None
    """`detectable` at both ends of the 95 % interval of the share of changed tasks. None where that has none."""
    changed: int
    """Tasks whose outcome differs: all that the test uses."""
    must_agree: int | None = None
    """Changed tasks that must go one way for a significant result. None if no split suffices."""
    tasks_for_telling: int | None = None
    """Tasks that detect ten points at the same share of changed tasks. None for numbers, and under six tasks."""
    tasks_needed: int | None = None
    """Tasks that would detect the observed difference. None if none was observed, and under six tasks."""
    attempts_needed: int | None = None
    """Attempts a side at each of these tasks that would detect it. None if no number does, or noise is unknown."""
    method: str


def power_of(candidate: Arm, baseline: Arm, compared: Paired, *, yes_or_no: bool, tests: int = 1) -> Power | None:
    """Return the power of a comparison, or None without matched tasks. `tests`: candidates that share the level."""
    if compared.value is None:
        return None
    level = LEVEL / max(1, tests)
    # How many tasks change is not known of so few, and no plan can be made of it.
    planned = compared.tasks >= FEWEST_CLUSTERS
    changed, gap = compared.gained + compared.lost, abs(compared.value)
    seen_gap = planned and gap > _ROUNDING
    must_agree = least_one_way(changed, level)
    if compared.single:
        share, ends = changed / compared.tasks, wilson(changed, compared.tasks) or (0.0, 1.0)
        # Where nothing changed, as much may as Wilson's bound allows.
        seen, low, high = (smallest_detectable(compared.tasks, each, level) for each in (share or ends[1], *ends))
        return Power(
            level=level,
            detectable=seen,
            low=low,
            high=high,
            changed=changed,
            must_agree=must_agree,
            tasks_for_telling=tasks_needed(RELEVANT_GAP, max(RELEVANT_GAP, share or ends[1]), level)
            if planned
            else None,
            tasks_needed=tasks_needed(gap, share, level) if seen_gap else None,
            method="exact McNemar",
        )
    from statistics import variance  # noqa: PLC0415  (6 ms with its fractions, which kept findings do without)

    gaps = differences(candidate, baseline)
    spread = variance(gaps) if len(gaps) > 1 else 0.0
    if yes_or_no and spread < _ROUNDING:
        spread = (wilson(changed, len(gaps)) or (0.0, 1.0))[1]
    each = max(len(arm[task]) for arm in (candidate, baseline) for task in candidate.keys() & baseline.keys())
    step = 1 / each if yes_or_no else 0.0
    able = len(gaps) >= FEWEST_OF_SEVERAL and spread > _ROUNDING
    detectable = _detectable(len(gaps), spread, level, step)
    return Power(
        level=level,
        detectable=detectable if able and not (yes_or_no and detectable > 1) else None,
        changed=changed,
        tasks_for_telling=_tasks_to_detect(RELEVANT_GAP, spread, level, step) if yes_or_no and able else None,
        tasks_needed=_tasks_to_detect(gap, spread, level, step) if able and seen_gap else None,
        attempts_needed=_attempts_to_detect(candidate, baseline, gap - step / len(gaps), spread, level)
        if able and gap > step / len(gaps)
        else None,
        method="variance of tasks' differences",
    )


@lru_cache(maxsize=4096)
def least_one_way(changed: int, level: float = LEVEL) -> int | None:
    """Return how many of the changed tasks must go one way to be significant, or None if not even all suffice."""
    few, many = changed // 2, changed + 1
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if 2 * at_least(middle, changed, 0.5) <= level + _ROUNDING else (middle, many)
    return many if many <= changed else None


def mcnemar_power(tasks: int, gap: float, discordance: float, level: float = LEVEL) -> float:
    """Return the power of the exact McNemar test for a difference `gap` if a share `discordance` of tasks changes.

    Unconditional: summed over the number of changed tasks (Connor 1987). ValueError if `gap` exceeds `discordance`.
    """
    if not 0 <= gap <= discordance + _ROUNDING or discordance > 1:
        raise ValueError("the difference is larger than the changes")
    if tasks * discordance > _EXACT_CHANGES_UP_TO:
        from statistics import NormalDist  # noqa: PLC0415  (loaded only for this)

        error = NormalDist().inv_cdf(1 - level / 2)
        short = error * sqrt(discordance) - gap * sqrt(tasks)
        spread = sqrt(max(discordance - gap * gap, _ROUNDING))
        return NormalDist().cdf(-short / spread)
    up = min(1.0, (discordance + gap) / (2 * discordance)) if discordance else 0.5
    reach = _SPREAD * sqrt(tasks * discordance * (1 - discordance)) + 1
    first, last = max(0, int(tasks * discordance - reach)), min(tasks, ceil(tasks * discordance + reach))
    power = 0.0
    for changed in range(first, last + 1):
        least = least_one_way(changed, level)
        if least is not None:
            power += binomial(changed, tasks, discordance) * at_least(least, changed, up)
    return power


@lru_cache(maxsize=1024)
def smallest_detectable(tasks: int, discordance: float, level: float = LEVEL) -> float | None:
    """Return the smallest difference detected with 80 % power, or None if no result can be significant.

    A share `discordance` of tasks changes, or as many as the difference needs, all one way.
    """
    if least_one_way(tasks, level) is None:
        return None
    low, high = 0.0, 1.0
    for _ in range(20):  # bisection
        middle = (low + high) / 2
        is_detected = mcnemar_power(tasks, middle, max(middle, discordance), level) >= POWER
        low, high = (low, middle) if is_detected else (middle, high)
    return high


@lru_cache(maxsize=1024)
def tasks_needed(gap: float, discordance: float, level: float = LEVEL) -> int:
    """Return the tasks that detect `gap` with 80 % power. ValueError if `gap` exceeds `discordance`."""
    if not 0 < gap <= discordance + _ROUNDING:
        raise ValueError("the difference is larger than the changes")
    return _fewest(lambda tasks: mcnemar_power(tasks, gap, discordance, level) >= POWER)


def binomial(k: int, n: int, share: float) -> float:
    """Return P(X = k) of a binomial."""
    if share in (0.0, 1.0):
        return float(k == n * share)
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(share) + (n - k) * log1p(-share))


def at_least(k: int, n: int, share: float) -> float:
    """Return P(X >= k) of a binomial."""
    if k <= 0 or share in (0.0, 1.0):
        return float(k <= n * share)
    if k < n * share:
        return 1 - at_least(n - k + 1, n, 1 - share)
    odds = share / (1 - share)
    term = total = binomial(k, n, share)
    for more in range(k, n):
        term *= (n - more) / (more + 1) * odds
        total += term
        if term < total * _ROUNDING:
            break
    return min(1.0, total)


def _detectable_in_standard_errors(tasks: int, level: float) -> float:
    """Return the smallest difference detected with 80 % power, in standard errors.

    It is the sum of the normal quantiles of level and power, widened like Student's t for few tasks.
    """
    from statistics import NormalDist  # noqa: PLC0415  (loaded only for this)

    normal = NormalDist()
    return (normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)) * t_quantile(max(1, tasks - 1)) / Z


def _detectable(tasks: int, spread: float, level: float, step: float) -> float:
    """Smallest difference that the sign-flip test detects. `spread`: variance of task differences; `step`: their least
    step."""
    return _detectable_in_standard_errors(tasks, level) * sqrt(spread / tasks) + step / tasks


def _tasks_to_detect(gap: float, spread: float, level: float, step: float) -> int:
    return max(FEWEST_OF_SEVERAL, _fewest(lambda tasks: _detectable(tasks, spread, level, step) <= gap))


def _fewest(is_detected_by: Callable[[int], bool]) -> int:
    few, many = 0, 1
    while many < _MOST and not is_detected_by(many):
        few, many = many, 2 * many
    while many - few > max(1, many // 1000):
        middle = (few + many) // 2
        few, many = (few, middle) if is_detected_by(middle) else (middle, many)
    return min(many, _MOST)


def _attempts_to_detect(candidate: Arm, baseline: Arm, gap: float, spread: float, level: float) -> int | None:
    """Return the attempts a task that would detect this gap, from the spread between runs of one task; None if no
    number would."""
    from statistics import fmean, variance  # noqa: PLC0415  (loaded only for this)

    tasks = sorted(candidate.keys() & baseline.keys())
    noise = 0.0
    for arm in (candidate, baseline):
        again = [arm[t] for t in tasks if len(arm[t]) > 1]
        if not again:
            return None
        within = sum(variance(v) * (len(v) - 1) for v in again) / sum(len(v) - 1 for v in again)
        noise += within * fmean(1 / len(arm[t]) for t in tasks)
    allowed = len(tasks) * (gap / _detectable_in_standard_errors(len(tasks), level)) ** 2 - max(0.0, spread - noise)
    if allowed <= 0:
        return None
    each = fmean([len(arm[t]) for arm in (candidate, baseline) for t in tasks])
    return max(1, ceil(min(_MOST, each * noise / allowed)))


# -- weighted regressions ----------------------------------------------------------------------------------------------


_MOST_WEIGHT = 1e6
"""A break-even weight above it counts as unbounded."""


class WeightedGain(Struct, frozen=True, kw_only=True):
    """Gains minus `weight` times regressions, over matched tasks."""

    weight: float
    """Cost of a regression in gains, chosen by the caller."""
    value: float
    break_even: float | None
    """Gains per regression: the weight at which the sum is 0. None without a regression."""
    low: float | None
    high: float | None
    """At 95 %. None where it is unbounded, and for under six tasks with several attempts."""
    p: float | None
    """Two-sided p value of the weighted sum being 0. None where it cannot be tested."""


def weigh(gaps: Sequence[float], weight: float, p: float | None, *, single: bool) -> WeightedGain:
    """Weigh the regressions among task differences. ValueError unless `weight` is above 0.

    `gaps`: candidate minus baseline by task. `p`: the p value at weight 1. `single`: one yes-or-no attempt a side,
    tested by the binomial with Clopper and Pearson's interval; else Student's over tasks.
    """
    if not 0 < weight < inf:
        raise ValueError("a weight is a number above 0")
    ends: tuple[float | None, float | None]
    tested: float | None
    ups, downs = sum(g for g in gaps if g > 0), -sum(g for g in gaps if g < 0)
    if single:
        gained, lost = round(ups), round(downs)
        low, high = clopper_pearson(gained, gained + lost)
        ends = low / (1 - low) if low < 1 else None, high / (1 - high) if high < 1 else None
        tested = weighed_mcnemar(gained, lost, weight)
    else:
        ends, tested = (None, None), None
        if len(gaps) >= FEWEST_CLUSTERS:
            # The interval of the break-even weight is Fieller's (1954).
            far, errors = t_quantile(len(gaps) - 1), _errors_by_weight(gaps)
            least = bisected(lambda weight: errors(weight) >= far, 0.0, _MOST_WEIGHT)
            most = bisected(lambda weight: errors(weight) > -far, 0.0, _MOST_WEIGHT)
            unbounded = _MOST_WEIGHT * (1 - 1e-6)
            ends = least if least < unbounded else None, most if most < unbounded else None
            tested = two_sided(errors(weight), len(gaps) - 1)
    return WeightedGain(
        weight=weight,
        value=fsum(g if g > 0 else weight * g for g in gaps) / len(gaps),
        break_even=ups / downs if downs else None,
        low=ends[0],
        high=ends[1],
        p=p if weight == 1 else tested,
    )


def weighed_mcnemar(gained: int, lost: int, weight: float) -> float:
    """Exact test with weighted regressions: under equal worth, weight / (1 + weight) of the changes are gains."""
    if weight == 1:
        return mcnemar(gained, lost)
    changed, share = gained + lost, weight / (1 + weight)
    return min(1.0, 2 * min(at_least(gained, changed, share), at_least(lost, changed, 1 - share)))


def clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """Return the exact interval of k out of n (Clopper and Pearson 1934)."""
    low = bisected(lambda share: at_least(k, n, share) <= TAIL, 0.0, 1.0) if k else 0.0
    high = 1.0 - bisected(lambda share: at_least(n - k, n, share) <= TAIL, 0.0, 1.0) if k < n else 1.0
    return low, high


def _errors_by_weight(gaps: Sequence[float]) -> Callable[[float], float]:
    """Standard errors between the weighted mean and 0, as a function of the weight."""
    n, ups, downs = len(gaps), [max(g, 0.0) for g in gaps], [max(-g, 0.0) for g in gaps]
    up, down = fsum(ups) / n, fsum(downs) / n
    of_ups, of_downs, both = (
        fsum((x - a) * (y - b) for x, y in zip(left, right, strict=True)) / (n - 1)
        for left, a, right, b in ((ups, up, ups, up), (downs, down, downs, down), (ups, up, downs, down))
    )

    def errors(weight: float) -> float:
        mean = up - weight * down
        error = sqrt(max(0.0, of_ups - 2 * weight * both + weight * weight * of_downs) / n)
        return mean / error if error else inf if mean > 0 else -inf if mean < 0 else 0.0

    return errors


# -- two sides within strata -------------------------------------------------------------------------------------------


class Stratified(Struct, frozen=True, kw_only=True):
    """Means of two sides over the strata that hold both, and their difference."""

    n_before: int
    n_after: int
    """Values in strata that hold both sides; others are left out."""
    before: float
    after: float
    interval: Interval | None
    """95 % interval of the difference. None for fewer than six clusters."""
    t: float
    """Student's t of ranks within strata, so that no outlier decides; 0 without an interval."""
    p: float
    """Its two-sided p value."""


def stratified(
    values: Sequence[float], is_after: Sequence[bool], strata: Sequence[Hashable], clusters: Sequence[Hashable]
) -> Stratified | None:
    """Compare two sides within strata, each stratum weighted by n_before * n_after / n. Values of one cluster are
    alike. None where no stratum holds both sides.

    A regression of the value on the side with a constant for each stratum; the variance is between clusters.
    """
    places: dict[Hashable, list[int]] = {}
    for at, stratum in enumerate(strata):
        places.setdefault(stratum, []).append(at)
    sums: dict[Hashable, list[float]] = {}
    weights, befores, afters, counted = [], [], [], [0, 0]
    for of in places.values():
        n, ups = len(of), sum(is_after[at] for at in of)
        if not 0 < ups < n:
            continue
        share, mean = ups / n, fsum(values[at] for at in of) / n
        ordered = sorted(values[at] for at in of)
        weights.append(share * (n - ups))
        afters.append(fsum(values[at] for at in of if is_after[at]) / ups)
        befores.append(fsum(values[at] for at in of if not is_after[at]) / (n - ups))
        counted[0] += n - ups
        counted[1] += ups
        for at in of:
            side = is_after[at] - share
            rank = (bisect_left(ordered, values[at]) + bisect_right(ordered, values[at])) / (2 * n) - 0.5
            of_cluster = sums.setdefault(clusters[at], [0.0, 0.0, 0.0])
            for n_sum, product in enumerate((side * (values[at] - mean), side * rank, side * side)):
                of_cluster[n_sum] += product
    if not weights:
        return None
    enough = len(sums) >= FEWEST_CLUSTERS
    t, p = sums_test([(rank, side) for _, rank, side in sums.values()]) if enough else (0.0, 1.0)
    return Stratified(
        n_before=counted[0],
        n_after=counted[1],
        before=fsum(w * b for w, b in zip(weights, befores, strict=True)) / fsum(weights),
        after=fsum(w * a for w, a in zip(weights, afters, strict=True)) / fsum(weights),
        interval=sums_interval([(value, side) for value, _, side in sums.values()]) if enough else None,
        t=t,
        p=p,
    )


# -- interrupted time series: did a level change at a moment, given a trend through it? --------------------------------
#
# Segmented regression with a common trend (Wagner et al. 2002), one value a session in order of time. The standard
# error is widened by the residuals' autocorrelation, corrected for its bias in short series (Marriott and Pope 1954):
# with so few values no test of autocorrelation is reliable, and unwidened intervals are too narrow (Turner et al. 2021,
# doi:10.1186/s12874-021-01364-0).


FEWEST_OF_A_SERIES = 8
"""Fewer values on either side give no estimate (Penfold and Zhang 2013)."""
_MOST_AUTOCORRELATION = 0.9
_PRIOR = 2.0
"""Successes and failures added if all values are equal (Agresti and Coull 1998); a variance of 0 would make any change
certain."""


class LevelChange(Struct, frozen=True, kw_only=True):
    """Shares before and after a moment, and the level change. With too few values everything but n is None."""

    n_before: int
    n_after: int
    before: float | None = None
    after: float | None = None
    difference: Interval | None = None
    """95 % interval of the difference of the two means (Newcombe 1998, method 10)."""
    level: float | None = None
    level_interval: Interval | None = None
    p: float | None = None
    trend: float | None = None
    autocorrelation: float | None = None
    """Lag-1 autocorrelation of the residuals, bias-corrected."""


def level_change(before: Sequence[float], after: Sequence[float]) -> LevelChange:
    """Estimate the level change between two runs of shares (0 to 1). ValueError for a value outside."""
    values = [*before, *after]
    if any(not 0 <= value <= 1 for value in values):
        raise ValueError("a share is not within 0 and 1")
    n, m = len(before), len(after)
    if min(n, m) < FEWEST_OF_A_SERIES:
        return LevelChange(n_before=n, n_after=m)
    times = [at - (n + m - 1) / 2 for at in range(n + m)]
    steps = [0.0] * n + [1.0] * m
    # The step beside a constant and a trend: what of it the trend does not explain (Frisch and Waugh 1933).
    share = m / (n + m)
    slope = _over(steps, times)
    alone = [step - share - slope * time for step, time in zip(steps, times, strict=True)]
    weight = fsum(a * a for a in alone)
    level = fsum(a * value for a, value in zip(alone, values, strict=True)) / weight
    flat = [value - level * step for value, step in zip(values, steps, strict=True)]
    mean = fsum(flat) / (n + m)
    trend = _over(flat, times)
    rest = [value - mean - trend * time for value, time in zip(flat, times, strict=True)]
    squares = fsum(e * e for e in rest)
    freedom = n + m - 3
    r = fsum(a * b for a, b in pairwise(rest)) / squares if squares >= 1e-12 else 0.0
    if squares >= 1e-12:
        r = min(_MOST_AUTOCORRELATION, max(0.0, r + (1 + 3 * r) / len(rest)))
    variance = squares / freedom
    if len({*before}) == 1 and len({*after}) == 1:
        shares = [((fsum(part) + _PRIOR) / (len(part) + 2 * _PRIOR), len(part)) for part in (before, after)]
        variance = max(variance, fsum(p * (1 - p) * size for p, size in shares) / (n + m))
    error = sqrt(variance / weight * (1 + r) / (1 - r))
    half = t_quantile(freedom) * error
    first, second = fsum(before) / n, fsum(after) / m
    ends = wilson(fsum(after), m), wilson(fsum(before), n)
    return LevelChange(
        n_before=n,
        n_after=m,
        before=first,
        after=second,
        difference=difference_interval(second, ends[0], first, ends[1]) if ends[0] and ends[1] else None,
        level=level,
        level_interval=(level - half, level + half),
        p=two_sided(level / error, freedom),
        trend=trend,
        autocorrelation=r,
    )


def _over(values: Sequence[float], times: Sequence[float]) -> float:
    return fsum(v * t for v, t in zip(values, times, strict=True)) / fsum(t * t for t in times)
