"""A candidate against the baseline: outcomes and usage within common tasks, and what can be concluded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.questions.compare.attempts import MEASURES, TIME, Attempt
from agentsignals.questions.compare.candidate import Estimate, estimate, tasks_of, with_outcome
from agentsignals.questions.question import cut, interval, times
from agentsignals.stats.intervals import FEWEST_CLUSTERS, median, median_interval
from agentsignals.stats.paired import (
    FEWEST_OF_SEVERAL,
    LEVEL,
    RELEVANT_GAP,
    Arm,
    OverClusters,
    Paired,
    Power,
    WeightedGain,
    difference_interval,
    differences,
    holm,
    least_one_way,
    mcnemar,
    over_clusters,
    paired,
    power_of,
    weigh,
)


class UsageDifference(Struct, frozen=True, kw_only=True):
    """One measure over matched tasks: the sign test and the median difference, because tasks differ by orders of
    magnitude."""

    tasks: int
    value: float | None
    """Median of task differences. Several attempts at a task count with their median. None without tasks."""
    low: float | None = None
    high: float | None = None
    """95 % interval by order statistics; None under six tasks."""
    more: int = 0
    """Tasks where the candidate used more."""
    less: int = 0
    p: float | None = None
    """Exact two-sided sign test, without equal tasks. None under six tasks."""
    p_adjusted: float | None = None
    """Holm, over all candidates and measures."""


_NOT_ITS_OWN = ("infrastructure", "agent_not_started")
"""Outcomes whose time and cost are not the agent's."""


def _usage_difference(measure: str, *sides: Sequence[Attempt]) -> UsageDifference:
    """Compare a measure within tasks, wall times within clocks. What the machine ended and bounds are left out."""
    medians: list[dict[tuple[str, str], float]] = []
    for attempts in sides:
        by_task: dict[tuple[str, str], list[float]] = {}
        for o in attempts:
            value = o.measures[measure]
            is_its_own = measure not in o.at_least and o.rung not in _NOT_ITS_OWN
            if o.task is not None and isinstance(value, float) and is_its_own:
                by_task.setdefault((o.task_key, o.clock if measure == TIME else ""), []).append(value)
        medians.append({task: median(values) or 0.0 for task, values in by_task.items()})
    left, right = medians
    gaps = [left[task] - right[task] for task in sorted(left.keys() & right.keys())]
    if not gaps:
        return UsageDifference(tasks=0, value=None)
    more, less = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    low, high = median_interval(gaps) or (None, None)
    p = mcnemar(more, less) if len(gaps) >= FEWEST_CLUSTERS else None
    return UsageDifference(tasks=len(gaps), value=median(gaps), low=low, high=high, more=more, less=less, p=p)


# -- pairs -------------------------------------------------------------------------------------------------------------


_Key = TypeVar("_Key")


class Unpaired(Struct, frozen=True, kw_only=True):
    """First attempts at tasks that only one of the two has an outcome of, and so of other difficulty."""

    candidate: Estimate
    baseline: Estimate
    value: float | None = None
    """The difference. None if a side has none, and for numbers."""
    low: float | None = None
    high: float | None = None


class Missing(Struct, frozen=True, kw_only=True):
    """Tasks that could not be matched because an outcome is missing."""

    candidate: int
    """Common tasks without an outcome of the candidate (or of both)."""
    baseline: int
    """Common tasks without an outcome of the baseline only."""
    could_regress: int
    """Tasks that the baseline solved at least once, without an outcome of the candidate."""
    could_improve: int
    """Tasks that the baseline did not always solve, without an outcome of the candidate."""
    attempts: int = 0
    """Attempts of both at common tasks whose outcome is missing."""
    undone: bool | None = None
    """True if the difference would lose significance if every missing outcome went against it. None if nothing is
    missing, and for numbers."""


class Repositories(Struct, frozen=True, kw_only=True):
    """The repositories of the matched tasks: tasks of one repository are alike."""

    over: OverClusters
    weighted_p: float | None
    """p of `over` with weighted regressions."""
    largest: str
    largest_tasks: int


class Pair(Struct, frozen=True, kw_only=True):
    """First attempts of a candidate compared with the baseline's."""

    candidate: str
    baseline: str
    paired: Paired
    repositories: Repositories | None = None
    """None where task ids name none, and where each task has its own."""
    p_adjusted: float | None = None
    """Holm over candidates with at least six matched tasks, of the larger p: over tasks, and over repositories where
    there are six or more. None without a p value."""
    least_p: float | None = None
    """Smallest value that `p_adjusted` (or p, for fewer tasks) can reach."""
    weighed: WeightedGain | None
    """None without matched tasks."""
    weighed_p_adjusted: float | None = None
    """p of `weighed`, adjusted like `p_adjusted`."""
    power: Power | None
    took: dict[str, UsageDifference]
    """Usage differences by measure."""
    missing: Missing
    unpaired: Unpaired
    also_differ: list[str]
    """Columns whose values the two never share, although they do not define candidates."""

    @property
    def p(self) -> float | None:
        """The larger p, over tasks and over repositories; 1 if the two differ in direction. None if untested."""
        return None if self.paired.p is None else _larger(self, self.paired.p)


def pair_of(  # noqa: PLR0913  (what is compared, named at the call)
    name: str,
    baseline: str,
    attempts: Sequence[Attempt],
    other: Sequence[Attempt],
    *,
    yes_or_no: bool,
    also_differ: list[str],
    weight: float = 1.0,
    tests: int = 1,
) -> Pair:
    """Compare first attempts of two candidates that have an outcome. An attempt without a task is never matched.

    `weight`: cost of a regression in gains. `tests`: number of candidates that share the level.
    """

    def tested(left: Arm, right: Arm) -> tuple[Paired, WeightedGain | None]:
        compared = paired(left, right, yes_or_no=yes_or_no, tests=tests)
        gaps = differences(left, right)
        return compared, weigh(gaps, weight, compared.p, single=compared.single) if gaps else None

    left, right = (_arm(side) for side in (attempts, other))
    both = left.keys() & right.keys()
    compared, weighted = tested(left, right)
    base_tasks = tasks_of(other)
    tried = tasks_of(attempts) & base_tasks
    lacking = [right[task] for task in (right.keys() & base_tasks) - left.keys()]
    undone = None
    absent = sum(o.outcome is None and o.task_key in tried for o in (*attempts, *other))
    if yes_or_no and both and absent:
        # Every missing outcome goes against the difference that was seen.
        up = weighted is not None and weighted.value > 0
        again, gain = tested(_arm(attempts, float(not up)), _arm(other, float(up)))
        p = again.p if gain is None or weight == 1 else gain.p
        undone = not (gain is not None and (gain.value > 0) == up and p is not None and p <= LEVEL / tests)
    # Tasks of one side only, and so of other difficulty.
    rest = [[v for v in with_outcome(side) if v[0] not in both] for side in (attempts, other)]
    mine, its = (estimate(values, yes_or_no) for values in rest)
    unpaired = Unpaired(candidate=mine, baseline=its)
    if yes_or_no and mine.value is not None and its.value is not None:
        low = high = None
        if mine.low is not None and mine.high is not None and its.low is not None and its.high is not None:
            low, high = difference_interval(mine.value, (mine.low, mine.high), its.value, (its.low, its.high))
        unpaired = replace(unpaired, value=mine.value - its.value, low=low, high=high)
    return Pair(
        candidate=name,
        baseline=baseline,
        paired=compared,
        repositories=_repositories(left, right, [*attempts, *other], weight),
        weighed=weighted,
        power=power_of(left, right, compared, yes_or_no=yes_or_no, tests=tests),
        took={measure: _usage_difference(measure, attempts, other) for measure in MEASURES},
        missing=Missing(
            candidate=len(tried - left.keys()),
            baseline=len((tried & left.keys()) - right.keys()),
            could_regress=sum(max(values) > 0 for values in lacking) if yes_or_no else len(lacking),
            could_improve=sum(min(values) < 1 for values in lacking) if yes_or_no else len(lacking),
            attempts=absent,
            undone=undone,
        ),
        unpaired=unpaired,
        also_differ=also_differ,
    )


def _arm(tried: Sequence[Attempt], missing: float | None = None) -> dict[str, list[float]]:
    """Return outcomes by task. `missing`: what a missing one counts as; None leaves it out."""
    by_task: dict[str, list[float]] = {}
    for o in tried:
        if (value := missing if o.outcome is None else o.outcome) is not None:
            by_task.setdefault(o.task_key, []).append(value)
    return by_task


def _repositories(left: Arm, right: Arm, attempts: Iterable[Attempt], weight: float) -> Repositories | None:
    named = {o.task_key: o.repository for o in attempts if o.repository is not None}
    tasks = sorted(left.keys() & right.keys())
    if 2 * sum(task in named for task in tasks) <= len(tasks):
        return None
    gaps: dict[str, list[float]] = {}
    for task, gap in zip(tasks, differences(left, right), strict=True):
        gaps.setdefault(named.get(task) or task, []).append(gap)
    if len(gaps) == len(tasks):
        return None
    weighted = {name: [gap if gap > 0 else weight * gap for gap in of] for name, of in gaps.items()}
    largest = max(gaps, key=lambda name: (len(gaps[name]), name))
    return Repositories(
        over=over_clusters(gaps),
        weighted_p=over_clusters(weighted).p,
        largest=largest,
        largest_tasks=len(gaps[largest]),
    )


def adjust_p_values(pairs: Sequence[Pair]) -> list[Pair]:
    """Adjust p values: outcomes over candidates, usage over candidates and measures."""
    able = [c for c in pairs if c.paired.tasks >= FEWEST_CLUSTERS]
    tests = {c.candidate: c.p for c in able if c.p is not None}
    weighed = ((c, c.weighed.p) for c in able if c.weighed is not None and c.weighed.p is not None)
    weighted_p = _holm({c.candidate: _larger(c, of_gain, weighted=True) for c, of_gain in weighed})
    p, took = _holm(tests), _holm({(c.candidate, m): t.p for c in pairs for m, t in c.took.items() if t.p is not None})
    adjusted = []
    for c in pairs:
        least = c.paired.least_p
        if c.candidate in tests and least is not None:
            least = _holm({**tests, c.candidate: least})[c.candidate]
        made = replace(c, p_adjusted=p.get(c.candidate), least_p=least, weighed_p_adjusted=weighted_p.get(c.candidate))
        of_measures = {m: replace(t, p_adjusted=took.get((c.candidate, m))) for m, t in c.took.items()}
        adjusted.append(replace(made, took=of_measures))
    return adjusted


def _larger(pair: Pair, p: float, *, weighted: bool = False) -> float:
    """Return the larger p, of tasks and of repositories; 1 if the two differ in direction."""
    of = pair.repositories
    over = None if of is None else of.weighted_p if weighted else of.over.p
    if of is None or over is None:
        return p
    return max(p, over) if (of.over.value or 0.0) * (pair.paired.value or 0.0) > 0 or weighted else 1.0


def _holm(p: Mapping[_Key, float]) -> dict[_Key, float]:
    return dict(zip(p, holm(list(p.values())), strict=True))


# -- conclusions -------------------------------------------------------------------------------------------------------


Word = Literal["better", "worse", "higher", "lower", "undecided", "too few"]
_LONGEST, _LISTED = 80, 12
_MOST_TASKS = 1000
"""Upper limit of the search for the smallest sufficient number of tasks."""


class Conclusion(Struct, frozen=True, kw_only=True):
    candidate: str
    word: Word
    """better or worse (higher or lower if more is not better): significant after adjustment, with weighted regressions.
    too few: cannot be significant with so few tasks. Else undecided."""
    sentence: str


def conclude(pair: Pair, *, yes_or_no: bool, good: bool) -> Conclusion:
    """Conclude about a pair. `good`: more of the outcome is better."""
    names = cut(pair.candidate, _LONGEST), cut(pair.baseline, _LONGEST)
    weighed = pair.weighed
    plain = weighed is None or weighed.weight == 1
    p = pair.p_adjusted if plain else pair.weighed_p_adjusted
    word: Word
    if weighed is None or pair.least_p is None or pair.least_p > LEVEL:
        word, sentence = "too few", _too_few(pair, names)
    elif p is None or p > LEVEL:
        word, of = "undecided", pair.repositories
        # The tasks alone would decide, and their repositories do not.
        alone = pair.paired.p if plain else weighed.p
        is_blocked = alone is not None and alone <= LEVEL < _larger(pair, alone, weighted=not plain)
        if is_blocked and of is not None and of.over.low is not None:
            sentence = (
                f"{names[0]} differs from {names[1]} by {gap_text(pair.paired.value, yes_or_no)} on"
                f" {_tasks(pair.paired.tasks)} ({_counts(pair, good)}; p {pair.paired.p:.2g}), but not consistently"
                " over their"
                f" {of.over.clusters:,} repositories: the mean over repositories is {_over_text(of, yes_or_no)}."
                f" {_largest(of)}"
            )
        else:
            sentence = _undecided(pair, names, yes_or_no, good)
    else:
        is_more = weighed.value > 0
        word = ("better" if is_more else "worse") if good else ("higher" if is_more else "lower")
        sentence = _decided(pair, names, yes_or_no, word)
    return Conclusion(candidate=pair.candidate, word=word, sentence=sentence)


def without_tasks(pairs: Sequence[Pair]) -> str:
    """Return a sentence about candidates that share no task with the baseline; empty if each does."""
    names = [cut(pair.candidate, _LONGEST) for pair in pairs if not pair.paired.tasks]
    if not names:
        return ""
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return (
        f"Not compared, because no task with known outcomes is shared with {cut(pairs[0].baseline, _LONGEST)}:"
        f" {', '.join(names[:_LISTED])}{more}."
    )


def gap_text(value: float | None, yes_or_no: bool, *, signed: bool = True) -> str:
    """Format a difference; shares in points."""
    if value is None:
        return "–"
    sign = "+" if signed else ""
    return f"{value * 100:{sign}.1f} points" if yes_or_no else f"{value:{sign}.4g}"


def weight_text(value: float | None) -> str:
    """Format a break-even weight."""
    return "–" if value is None else f"{value:.3g}"


def _too_few(pair: Pair, names: tuple[str, str]) -> str:
    n = pair.paired.tasks
    if not n:
        return f"{names[0]} and {names[1]} share no task with known outcomes, so they cannot be compared."
    level = pair.power.level if pair.power is not None else LEVEL
    least = next(tasks for tasks in range(1, _MOST_TASKS) if least_one_way(tasks, level) is not None)
    many = " with this many candidates" if (pair.least_p or 0.0) > (pair.paired.least_p or 0.0) else ""
    return (
        f"{_tasks(n)} {'is' if n == 1 else 'are'} too few to compare {names[0]} and {names[1]}: the smallest possible"
        f" p is {pair.least_p:.2g}{many}. At least {least:,} are needed."
    )


def _undecided(pair: Pair, names: tuple[str, str], yes_or_no: bool, good: bool) -> str:
    p, power, weighed = pair.paired, pair.power, pair.weighed
    difference = gap_text(p.value, yes_or_no)
    if weighed is not None and weighed.weight != 1 and (pair.p_adjusted or 0.0) <= LEVEL:
        sure = interval(weighed.low, weighed.high, weight_text, ", {} at 95%")
        return (
            f"{names[0]} differs from {names[1]} ({difference} on {_tasks(p.tasks)}, {_counts(pair, good)};"
            f" {_p_text(pair)}), but with regressions weighted {weighed.weight:g} times"
            f" the result is undecided."
            f" Break-even: one regression counts as {weight_text(weighed.break_even)} improvements{sure}."
        )
    ends = interval(p.low, p.high, partial(gap_text, yes_or_no=yes_or_no), " ({})")
    first = (
        f"No significant difference between {names[0]} and {names[1]}: {difference}{ends} on {_tasks(p.tasks)}"
        f" ({_counts(pair, good)}; {_p_text(pair)})."
    )
    return f"{first} {_able(power, p, yes_or_no)}" if power is not None else first


def _over_text(of: Repositories, yes_or_no: bool) -> str:
    write = partial(gap_text, yes_or_no=yes_or_no)
    return write(of.over.value) + interval(of.over.low, of.over.high, write, " ({})")


def _largest(of: Repositories) -> str:
    return f"{cut(of.largest, _LONGEST)} has {of.largest_tasks:,} of the tasks."


def held_over(pair: Pair, yes_or_no: bool) -> str:
    """Sentence: over which repositories a decided difference holds; empty where none is named."""
    of = pair.repositories
    if of is None:
        return ""
    if of.over.clusters == 1:
        return f" All tasks are from one repository, {cut(of.largest, _LONGEST)}, so this may not generalize."
    if of.over.value is None:
        return f" The tasks are from only {of.over.clusters:,} repositories, so this may not generalize. {_largest(of)}"
    return f" The mean over their {of.over.clusters:,} repositories is {_over_text(of, yes_or_no)}."


def _able(power: Power, compared: Paired, yes_or_no: bool) -> str:
    seen = compared.value or 0.0
    if not compared.single and compared.tasks < FEWEST_OF_SEVERAL:
        return f"Power is not estimated for under {FEWEST_OF_SEVERAL} tasks with several attempts."
    if power.detectable is None:
        able = "No difference is detectable with 80% power on so few tasks"
    else:
        able = f"With 80% power these tasks detect {gap_text(power.detectable, yes_or_no, signed=False)} or more"
    if power.tasks_needed is not None:
        again = f" or {power.attempts_needed:,} attempts each at these" if power.attempts_needed is not None else ""
        return (
            f"{able}. To detect {gap_text(abs(seen), yes_or_no, signed=False)}, run about"
            f" {power.tasks_needed:,} tasks{again}."
        )
    if power.tasks_for_telling is not None:
        return f"{able}. To detect {RELEVANT_GAP * 100:.0f} points, run about {power.tasks_for_telling:,} tasks."
    return f"{able}."


def _decided(pair: Pair, names: tuple[str, str], yes_or_no: bool, word: Word) -> str:
    p, weighed = pair.paired, pair.weighed
    ends = interval(p.low, p.high, partial(gap_text, yes_or_no=yes_or_no), " ({})")
    few = pair.repositories is not None and pair.repositories.over.value is None
    is_so, sure = f"{names[0]} is {word} than {names[1]}{' on these tasks' if few else ''}", _p_text(pair)
    if weighed is not None and weighed.weight != 1:
        is_so = f"With regressions weighted {weighed.weight:g} times, {is_so}"
        sure += f", weighted {pair.weighed_p_adjusted:.2g}"
    sentence = (
        f"{is_so}: {gap_text(p.value, yes_or_no)}{ends} on {_tasks(p.tasks)},"
        f" {_counts(pair, word in ('better', 'worse'))}; {sure}."
    )
    sentence += held_over(pair, yes_or_no)
    if weighed is not None and weighed.weight != 1 and weighed.break_even:
        end = weighed.high if word == "worse" else weighed.low
        sure = f" (95%: {weight_text(end)})" if end is not None else ""
        sentence += f" Break-even: one regression counts as {weight_text(weighed.break_even)} improvements{sure}."
    if pair.missing.undone:
        favoured = names[word in ("better", "higher")]
        sentence += (
            f" Without a known outcome: {times(pair.missing.attempts, 'attempt')} of the two. The difference would not"
            f" be significant if all of these favoured {favoured}."
        )
    return sentence


def _p_text(pair: Pair) -> str:
    of = pair.repositories
    over = f", over repositories {of.over.p:.2g}" if of is not None and of.over.p is not None else ""
    adjusted = f", adjusted {pair.p_adjusted:.2g}" if pair.p_adjusted != pair.p else ""
    return f"p {pair.paired.p:.2g}{over}{adjusted}"


def _counts(pair: Pair, good: bool) -> str:
    up, down = ("better", "worse") if good else ("higher", "lower")
    return f"{pair.paired.gained:,} {up}, {pair.paired.lost:,} {down}"


def _tasks(n: int) -> str:
    return times(n, "matched task")
