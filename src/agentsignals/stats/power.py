"""What so many shared tasks can show, and how many it would take: power of paired tests, by what changed between arms.

Of one attempt a side and yes or no exact: the unconditional power of the exact McNemar test, summed over how many tasks
may change (Connor 1987). Of several attempts, or numbers, from how much differences of tasks vary.
Held against simulation: design/statistics.md#power.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, exp, lgamma, log, log1p, sqrt
from statistics import NormalDist, fmean, variance

from msgspec import Struct

from agentsignals.stats.estimates import FEWEST_CLUSTERS
from agentsignals.stats.paired import Arm, Paired, differences
from agentsignals.stats.proportions import Z, wilson
from agentsignals.stats.student import t_quantile

LEVEL, POWER = 0.05, 0.8
"""Two-sided level, and how often a difference is to be shown: the field's usual ones."""
TELLING_GAP = 0.10
"""A difference of rates that a comparison is expected to see (this project's choice)."""
_EXACT_UP_TO = 600
"""Changed tasks above which the normal approximation names differences right to a fiftieth of them."""
_MOST = 1 << 24
"""More tasks are never named."""
FEWEST_OF_SEVERAL = 12
"""Of fewer tasks with several attempts each, simulation finds no formula that holds."""
_ROUNDING = 1e-12
_SPREAD = 5
"""Standard deviations of the number of changed tasks that are summed over."""


class Power(Struct, frozen=True, kw_only=True):
    """What so many matched tasks could have shown 4 times in 5. Differences are in the outcome's unit."""

    level: float
    """Two-sided, of each comparison: 5 percent by the number of candidates held against the baseline."""
    detectable: float | None
    """The smallest difference so shown; None where none is of so few tasks, and under twelve with several attempts."""
    low: float | None = None
    high: float | None = None
    """The same at the ends of the 95% interval of how many tasks change; None where that has none."""
    changed: int
    """Tasks whose outcome differs between the two: all that the test draws on."""
    must_agree: int | None = None
    """Of these, how many one way a significant result takes (given that they changed); None where no split suffices."""
    tasks_for_telling: int | None = None
    """Tasks that show ten points, where as many change; None of numbers, and under six tasks."""
    tasks_needed: int | None = None
    """Tasks, given to both as often, that show the difference seen, were it the truth; None where none was seen, and
    under six tasks."""
    attempts_needed: int | None = None
    """Attempts of each at each of these tasks that show it; None where no number does, or noise is not known."""
    method: str


def power_of(candidate: Arm, baseline: Arm, compared: Paired, *, yes_or_no: bool, tests: int = 1) -> Power | None:
    """The power of a comparison. `tests`: how many candidates share the level. None where no task is matched."""
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
        seen, low, high = (smallest_shown(compared.tasks, each, level) for each in (share or ends[1], *ends))
        return Power(
            level=level,
            detectable=seen,
            low=low,
            high=high,
            changed=changed,
            must_agree=must_agree,
            tasks_for_telling=tasks_needed(TELLING_GAP, max(TELLING_GAP, share or ends[1]), level) if planned else None,
            tasks_needed=tasks_needed(gap, share, level) if seen_gap else None,
            method="exact McNemar",
        )
    gaps = differences(candidate, baseline)
    spread = variance(gaps) if len(gaps) > 1 else 0.0
    if yes_or_no and spread < _ROUNDING:
        spread = (wilson(changed, len(gaps)) or (0.0, 1.0))[1]
    each = max(len(arm[task]) for arm in (candidate, baseline) for task in candidate.keys() & baseline.keys())
    step = 1 / each if yes_or_no else 0.0
    able = len(gaps) >= FEWEST_OF_SEVERAL and spread > _ROUNDING
    shown = _shown(len(gaps), spread, level, step)
    return Power(
        level=level,
        detectable=shown if able and not (yes_or_no and shown > 1) else None,
        changed=changed,
        tasks_for_telling=_tasks_of(TELLING_GAP, spread, level, step) if yes_or_no and able else None,
        tasks_needed=_tasks_of(gap, spread, level, step) if able and seen_gap else None,
        attempts_needed=_attempts_of(candidate, baseline, gap - step / len(gaps), spread, level)
        if able and gap > step / len(gaps)
        else None,
        method="variance of tasks' differences",
    )


@lru_cache(maxsize=4096)
def least_one_way(changed: int, level: float = LEVEL) -> int | None:
    """Of so many changed tasks, how many must have changed one way for the exact test to be significant; None where
    not even all of them suffice."""
    few, many = changed // 2, changed + 1
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if 2 * at_least(middle, changed, 0.5) <= level + _ROUNDING else (middle, many)
    return many if many <= changed else None


def mcnemar_power(tasks: int, gap: float, discordance: float, level: float = LEVEL) -> float:
    """How often the exact test shows a difference of `gap` in its right direction, where a share `discordance` of tasks
    changes. ValueError of a difference that so few changes can't make."""
    if not 0 <= gap <= discordance + _ROUNDING or discordance > 1:
        raise ValueError("the difference is larger than the changes")
    if tasks * discordance > _EXACT_UP_TO:
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
def smallest_shown(tasks: int, discordance: float, level: float = LEVEL) -> float | None:
    """The smallest difference that the exact test shows 4 times in 5, where a share `discordance` of tasks changes (all
    one way, and as many as it takes, where that is less than the difference). None where no result is significant."""
    if least_one_way(tasks, level) is None:
        return None
    return _first(lambda gap: mcnemar_power(tasks, gap, max(gap, discordance), level) >= POWER, 0.0, 1.0)


@lru_cache(maxsize=1024)
def tasks_needed(gap: float, discordance: float, level: float = LEVEL) -> int:
    """The tasks, given to both, that show it 4 times in 5 where a share `discordance` of them changes. ValueError of a
    difference that so few changes can't make."""
    if not 0 < gap <= discordance + _ROUNDING:
        raise ValueError("the difference is larger than the changes")
    return _fewest(lambda tasks: mcnemar_power(tasks, gap, discordance, level) >= POWER)


def binomial(k: int, n: int, share: float) -> float:
    """The probability of k of n."""
    if share in (0.0, 1.0):
        return float(k == n * share)
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(share) + (n - k) * log1p(-share))


def at_least(k: int, n: int, share: float) -> float:
    """The probability of k of n, or more."""
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


def _errors(tasks: int, level: float) -> float:
    """How many standard errors a difference must have: the normal's, wider by as much as Student's are for so few."""
    normal = NormalDist()
    return (normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)) * t_quantile(max(1, tasks - 1)) / Z


def _shown(tasks: int, spread: float, level: float, step: float) -> float:
    """The difference that flips of whole tasks show 4 times in 5. `spread`: the variance of tasks' differences;
    `step`: by which these differ at least, for a sum that moves by steps is shown half of one later."""
    return _errors(tasks, level) * sqrt(spread / tasks) + step / tasks


def _tasks_of(gap: float, spread: float, level: float, step: float) -> int:
    return max(FEWEST_OF_SEVERAL, _fewest(lambda tasks: _shown(tasks, spread, level, step) <= gap))


def _fewest(shown: Callable[[int], bool]) -> int:
    """The fewest tasks that show it, right to a thousandth; no more than are named."""
    few, many = 0, 1
    while many < _MOST and not shown(many):
        few, many = many, 2 * many
    while many - few > max(1, many // 1000):
        middle = (few + many) // 2
        few, many = (few, middle) if shown(middle) else (middle, many)
    return min(many, _MOST)


def _attempts_of(candidate: Arm, baseline: Arm, gap: float, spread: float, level: float) -> int | None:
    """What is noise of attempts shrinks with their number; how tasks differ does not."""
    tasks = sorted(candidate.keys() & baseline.keys())
    noise = 0.0
    for arm in (candidate, baseline):
        again = [arm[t] for t in tasks if len(arm[t]) > 1]
        if not again:
            return None
        within = sum(variance(v) * (len(v) - 1) for v in again) / sum(len(v) - 1 for v in again)
        noise += within * fmean(1 / len(arm[t]) for t in tasks)
    allowed = len(tasks) * (gap / _errors(len(tasks), level)) ** 2 - max(0.0, spread - noise)
    if allowed <= 0:
        return None
    each = fmean([len(arm[t]) for arm in (candidate, baseline) for t in tasks])
    return max(1, ceil(min(_MOST, each * noise / allowed)))


def _first(holds: Callable[[float], bool], low: float, high: float) -> float:
    """From where on it holds, by halving."""
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
