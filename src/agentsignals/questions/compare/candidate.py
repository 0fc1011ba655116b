"""Results of one candidate: first attempts, retries, trials and resource use; and checks that candidates are
comparable."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

from agentsignals.questions.compare.attempts import MEASURES, SHORT_NAMES, TIME, Attempt
from agentsignals.questions.estimates import median_interval as clustered_median_interval
from agentsignals.stats.intervals import (
    FEWEST_CLUSTERS,
    Interval,
    median,
    median_interval,
    rate_interval,
    ratio_interval,
)

MOST_WITHIN = 10
"""Largest k for which success within k attempts is reported."""

_INFRASTRUCTURE = "infrastructure"
SPENT = ("cost_usd", "input_tokens", "output_tokens", "wall_time_s")
"""Measures that are summed per solved attempt."""

Value = tuple[str, float]
"""Task (or the session, if none is recorded) and outcome."""


class Estimate(Struct, frozen=True, kw_only=True):
    """A share or mean with its 95 % interval."""

    value: float | None
    """None without attempts."""
    low: float | None = None
    high: float | None = None
    n: int
    tasks: int
    method: str = ""
    """Method of the interval."""


class Within(Struct, frozen=True):
    """Trials solved within their first `attempts`. A trial that stopped earlier, unsolved, counts as unsolved."""

    attempts: int
    solved: Estimate


class Recovery(Struct, frozen=True):
    """Trials that failed first and were solved by a retry, among all that failed first and whose end is known."""

    solved: Estimate
    failed: int
    retried: int
    """Failed trials with a retry."""


class Usage(Struct, frozen=True, kw_only=True):
    """Median of a measure over first attempts."""

    median: float | None
    low: float | None
    high: float | None
    n: int
    absent: dict[str, int]
    """Attempts without a value, by reason."""
    at_least: bool = False
    """True if some values, and so the median, are lower bounds."""
    clocks: list[str] = []
    """Sources of wall times."""


class Bounds(Struct, frozen=True, kw_only=True):
    """The rate if every first attempt without an outcome had failed, and if each were solved."""

    worst: float
    best: float
    n: int


class PerSolved(Struct, frozen=True, kw_only=True):
    """Total of a measure over all first attempts, per solved one."""

    value: float | None
    """None if none was solved, or nothing was measured."""
    n: int
    """Attempts with outcome and measure."""
    of: int
    at_least: bool = False
    """True if some values are lower bounds."""


class Candidate(Struct, frozen=True, kw_only=True):
    """The results of one candidate."""

    name: str
    treatment: dict[str, str | None]
    attempts: int
    trials: int
    tasks: int
    first_attempts: int
    retries: int
    first: Estimate
    """Outcome of first attempts at the tasks that all candidates tried, or at its own if they share none."""
    absent: dict[str, int]
    """First attempts at these tasks without an outcome, by reason, without infrastructure failures."""
    infrastructure: dict[str, int]
    """First attempts at these tasks that the environment, provider or harness broke off, whatever their reward."""
    failed: dict[str, int]
    """First attempts at these tasks that failed, by reason, if known."""
    bounds: Bounds | None
    """None for numbers, and without attempts."""
    all_tasks: Estimate
    """Outcome of first attempts at all its tasks."""
    retry: Estimate
    """Outcome of retries. Not comparable with first attempts, because only failed ones are retried."""
    retry_absent: dict[str, int]
    within: list[Within]
    recovery: Recovery | None
    """None if no trial was retried."""
    without_first: int
    """Trials whose first attempt is missing."""
    took: dict[str, Usage]
    """Usage by measure: first attempts at the tasks of `first`, whatever their outcome."""
    per_solved: dict[str, PerSolved]
    """By measure, at the tasks of `first`; empty for numbers."""
    pooled: dict[str, int]
    """Columns that differ between its attempts, with their number of values."""


def candidate_of(  # noqa: PLR0913  (what is told of a candidate, named at the call)
    name: str,
    attempts: Sequence[Attempt],
    *,
    by: Sequence[str],
    yes_or_no: bool,
    by_dataset: bool,
    pooled: dict[str, int],
    common: frozenset[str] | None = None,
) -> Candidate:
    """Summarize a candidate's attempts. `common`: the tasks of its rate; `by_dataset`: tasks are identified by data set
    too."""
    first, again = [o for o in attempts if o.index == 0], [o for o in attempts if o.index > 0]
    shared = [o for o in first if common is None or task_key(o, by_dataset) in common]
    trials = list(_trials(attempts))
    whole = [t for t in trials if t[0].index == 0]
    return Candidate(
        name=name,
        treatment={column: attempts[0].treatment.get(column) for column in by},
        attempts=len(attempts),
        trials=len(trials),
        tasks=len({task_key(o, by_dataset) for o in attempts if o.task is not None}),
        first_attempts=len(first),
        retries=len(again),
        first=estimate(with_outcome(shared, by_dataset), yes_or_no),
        absent=absent_reasons(o for o in shared if o.rung != _INFRASTRUCTURE),
        infrastructure=_rungs(shared, _INFRASTRUCTURE),
        failed=_rungs([o for o in shared if o.outcome is not None], "failed"),
        bounds=_bounds(shared) if yes_or_no else None,
        all_tasks=estimate(with_outcome(first, by_dataset), yes_or_no),
        retry=estimate(with_outcome(again, by_dataset), yes_or_no),
        retry_absent=absent_reasons(again),
        within=_within(whole, by_dataset) if yes_or_no and again else [],
        recovery=_recovery(whole, by_dataset) if yes_or_no and again else None,
        without_first=len(trials) - len(whole),
        took={measure: _taken(shared, measure, by_dataset) for measure in MEASURES},
        per_solved={measure: _per_solved(shared, measure) for measure in SPENT} if yes_or_no else {},
        pooled=pooled,
    )


def _rungs(attempts: Sequence[Attempt], rung: str) -> dict[str, int]:
    return dict(Counter(o.reason for o in attempts if o.rung == rung).most_common())


def _bounds(attempts: Sequence[Attempt]) -> Bounds | None:
    solved = sum(o.outcome or 0 for o in attempts)
    missing = sum(o.outcome is None for o in attempts)
    n = len(attempts)
    return Bounds(worst=solved / n, best=(solved + missing) / n, n=n) if n else None


def _per_solved(attempts: Sequence[Attempt], measure: str) -> PerSolved:
    measured = [
        (o.outcome, v) for o in attempts if o.outcome is not None and isinstance(v := o.measures[measure], float)
    ]
    solved = sum(outcome for outcome, _ in measured)
    value = sum(v for _, v in measured) / solved if solved else None
    low = any(measure in o.at_least for o in attempts)
    return PerSolved(value=value, n=len(measured), of=len(attempts), at_least=low)


def task_key(attempt: Attempt, by_dataset: bool) -> str:
    """Return the key of an attempt's task; without a task, of the attempt itself."""
    if attempt.task is None:
        return f"session\n{attempt.session_id}"
    return f"{attempt.dataset or ''}\n{attempt.task}" if by_dataset else f"\n{attempt.task}"


def tasks_of(attempts: Iterable[Attempt], by_dataset: bool) -> frozenset[str]:
    """Return the tasks that these attempts record."""
    return frozenset(task_key(attempt, by_dataset) for attempt in attempts if attempt.task is not None)


def with_outcome(tried: Iterable[Attempt], by_dataset: bool) -> list[Value]:
    """Return task and outcome of the attempts that have one."""
    return [(task_key(o, by_dataset), o.outcome) for o in tried if o.outcome is not None]


def absent_reasons(tried: Iterable[Attempt]) -> dict[str, int]:
    """Count attempts without an outcome by reason, most frequent first."""
    return dict(Counter(o.why or "no reason" for o in tried if o.outcome is None).most_common())


def estimate(values: Sequence[Value], yes_or_no: bool) -> Estimate:
    """Return the mean over attempts. The interval is over tasks if they were tried several times."""
    sums: dict[str, list[float]] = {}
    for task, value in values:
        pair = sums.setdefault(task, [0.0, 0.0])
        pair[0] += value
        pair[1] += 1
    if not values:
        return Estimate(value=None, n=0, tasks=0)
    interval, method = _interval(sums, len(values), yes_or_no)
    low, high = interval or (None, None)
    mean = fmean(value for _, value in values)
    return Estimate(value=mean, low=low, high=high, n=len(values), tasks=len(sums), method=method)


def _interval(sums: dict[str, list[float]], n: int, yes_or_no: bool) -> tuple[Interval | None, str]:
    parts = [(k, of) for _, (k, of) in sorted(sums.items())]
    if not yes_or_no:
        return ratio_interval(parts), "Student's over tasks" if len(parts) >= FEWEST_CLUSTERS else "too few tasks"
    method = "Wilson" if n == len(parts) else "Student's over tasks" if len(parts) > 1 else "one task"
    return rate_interval(parts), method


def _trials(attempts: Sequence[Attempt]) -> Iterable[list[Attempt]]:
    grouped: dict[tuple[str, str | None, str | None], list[Attempt]] = {}
    for attempt in attempts:
        grouped.setdefault((attempt.trial, attempt.task, attempt.treatment.get("run_id")), []).append(attempt)
    return (sorted(trial, key=lambda o: (o.index, o.session_id)) for trial in grouped.values())


def _solved(attempts: Sequence[Attempt]) -> float | None:
    """1 if one attempt is solved, 0 if none is, None if that is unknown."""
    if any(o.outcome == 1 for o in attempts):
        return 1.0
    return 0.0 if attempts and all(o.outcome is not None for o in attempts) else None


def _within(trials: Sequence[list[Attempt]], by_dataset: bool) -> list[Within]:
    most = max((t[-1].index for t in trials), default=0) + 1
    within = []
    for k in range(1, min(most, MOST_WITHIN) + 1):
        ends = [(task_key(t[0], by_dataset), _solved([o for o in t if o.index < k])) for t in trials]
        values = [(task, end) for task, end in ends if end is not None]
        within.append(Within(k, estimate(values, True)))
    return within


def _recovery(trials: Sequence[list[Attempt]], by_dataset: bool) -> Recovery:
    failed = [t for t in trials if t[0].outcome == 0]
    ends = [(task_key(t[0], by_dataset), _solved(t)) for t in failed]
    values = [(task, end) for task, end in ends if end is not None]
    return Recovery(estimate(values, True), len(failed), sum(len(t) > 1 for t in failed))


def _taken(first: Sequence[Attempt], measure: str, by_dataset: bool) -> Usage:
    measured = [(o, o.measures[measure]) for o in first]
    values = [(o, value) for o, value in measured if isinstance(value, float)]
    absent = Counter(value for _, value in measured if isinstance(value, str))
    numbers = [value for _, value in values]
    tasks = {o.session_id: task_key(o, by_dataset) for o, _ in values}
    if len(set(tasks.values())) == len(values):
        interval = median_interval(numbers)
    else:
        interval = clustered_median_interval([(o.session_id, value) for o, value in values], tasks)[0]
    low, high = interval or (None, None)
    return Usage(
        median=median(numbers),
        low=low,
        high=high,
        n=len(numbers),
        absent=dict(absent.most_common()),
        at_least=any(measure in o.at_least for o, _ in values),
        clocks=sorted({o.clock for o, _ in values}) if measure == TIME else [],
    )


# -- comparability -----------------------------------------------------------------------------------------------------


_GUARDED = re.compile(
    r"(?:^|[_.])(?:dataset|split|subset|caps?|limits?|budget|timeout|retry|retries|max|maximum|effort|tools|mcp_servers)"
    r"(?:$|[_.])|reasoning_tokens$|^task_version$"
)
"""Names of columns that define tasks, limits, effort or tools of an attempt."""
_NO_LIMIT = re.compile(r"connections|samples|tasks|workers|subprocesses|sandboxes|concurren")
"""Names about concurrency, which limits no attempt."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TIME, _FACTOR = "timeout_s", "multiplier"
_LISTED = 3

Values = frozenset[str]


def mismatches(
    first: Mapping[str, Sequence[Attempt]],
    base: str | None,
    asked: Collection[str],
    tasks: Mapping[str, frozenset[str]],
    changing: Sequence[str],
) -> list[str]:
    """Return reasons against a comparison: one for each column, and one for the tasks.

    `first`: first attempts by candidate. `asked`: columns that the user compares, which are the treatment.
    """
    if base is None:
        return []
    wanted = {SHORT_NAMES.get(name, name) for name in asked}
    columns = [c for c in changing if _is_guarded(c) and c not in wanted]
    if _TIME in wanted or all(_TIME in a.treatment for attempts in first.values() for a in attempts):
        columns = [c for c in columns if _FACTOR not in c]  # the limit has it in it
    reasons = []
    for column in columns:
        others = [name for name, attempts in first.items() if name != base and _differ(attempts, first[base], column)]
        if others:
            compared = [f"{name} {_shown(first[name], column)}" for name in (base, *others[:_LISTED])]
            reasons.append(f"{column} differs: {'; '.join(compared)}{_more(others)}")
    return [*reasons, *_tasks(base, tasks)]


def _is_guarded(column: str) -> bool:
    name = _CAMEL.sub("_", column).lower()
    return name != "effective_tool_cap" and bool(_GUARDED.search(name)) and not _NO_LIMIT.search(name)


def _differ(attempts: Sequence[Attempt], other: Sequence[Attempt], column: str) -> bool:
    """True if the two had other values at a common task, or at all if they share none. Unrecorded ones never differ."""
    left, right = _by_task(attempts, column), _by_task(other, column)
    both = left.keys() & right.keys()
    if both and column != "dataset":
        return any(left[task] != right[task] for task in both)
    mine, theirs = (frozenset(v for values in side.values() for v in values) for side in (left, right))
    return bool(mine and theirs) and mine != theirs


def _by_task(attempts: Sequence[Attempt], column: str) -> dict[str, Values]:
    values: dict[str, Values] = {}
    for attempt in attempts:
        value = attempt.treatment.get(column)
        if value is not None:
            task = attempt.task or attempt.session_id
            values[task] = values.get(task, frozenset()) | {value}
    return values


def _shown(attempts: Sequence[Attempt], column: str) -> str:
    values = sorted({a.treatment[column][:80] for a in attempts if column in a.treatment})
    return " / ".join(values[:_LISTED]) + (" / …" if len(values) > _LISTED else "")


def _tasks(base: str, tasks: Mapping[str, frozenset[str]]) -> list[str]:
    others = [name for name, each in tasks.items() if each != tasks[base]]
    if not others:
        return []
    compared = [
        f"{name} tried {len(tasks[name]):,}, of which {base}, with {len(tasks[base]):,}, tried"
        f" {len(tasks[name] & tasks[base]):,}"
        for name in others[:_LISTED]
    ]
    return [f"tasks differ: {'; '.join(compared)}{_more(others)}"]


def _more(others: Sequence[str]) -> str:
    return f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""


# -- uninformative tasks -----------------------------------------------------------------------------------------------


class UninformativeTasks(Struct, frozen=True, kw_only=True):
    """Tasks where every first attempt of two or more candidates has the same outcome."""

    tasks: int
    """All tasks with outcomes of two or more candidates."""
    solved: list[str]
    """Solved by all; for numbers, the same number for all."""
    failed: list[str]
    """Solved by none."""

    @property
    def telling(self) -> int:
        """Number of the other tasks, which a comparison depends on."""
        return self.tasks - len(self.solved) - len(self.failed)


def uninformative_tasks(
    first: Mapping[str, Sequence[Attempt]], by_dataset: bool, *, yes_or_no: bool
) -> UninformativeTasks:
    """Find the tasks that distinguish no candidates. `first`: first attempts by candidate."""
    outcomes: dict[str, set[float]] = {}
    tried_by: dict[str, set[str]] = {}
    names = {task_key(o, by_dataset): o.task for attempts in first.values() for o in attempts if o.task is not None}
    for candidate, attempts in first.items():
        for task, outcome in with_outcome(attempts, by_dataset):
            outcomes.setdefault(task, set()).add(outcome)
            tried_by.setdefault(task, set()).add(candidate)
    shared = sorted(task for task, candidates in tried_by.items() if len(candidates) > 1 and task in names)
    alike = [task for task in shared if len(outcomes[task]) == 1]
    failed = [task for task in alike if yes_or_no and outcomes[task] == {0.0}]
    return UninformativeTasks(
        tasks=len(shared),
        solved=[names[task] or "" for task in alike if task not in failed],
        failed=[names[task] or "" for task in failed],
    )
