"""Results of a candidate: first attempts, retries, trials, resource use; and tasks that tell no candidates apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb, fsum
from statistics import fmean

from msgspec import Struct

from agentsignals.questions.compare.attempts import MEASURES, TIME, UNKNOWN, Attempt
from agentsignals.questions.estimates import median_interval as clustered_median_interval
from agentsignals.stats.intervals import (
    FEWEST_CLUSTERS,
    median,
    median_interval,
    rate_interval,
    ratio_interval,
    share_interval,
    wilson,
)
from agentsignals.views.failure import NO_ARTIFACT

MOST_WITHIN = 10
"""Largest k for which success within k attempts is reported."""

_INFRASTRUCTURE = "infrastructure"
_KINDS_OF_ZERO = (NO_ARTIFACT, "time", "budget")
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


class PassAt(Struct, frozen=True, kw_only=True):
    """Repeated runs of a task, without bias from the number of runs (Chen et al. 2021); each task has the same weight."""  # noqa: E501

    k: int
    pass_at_k: Estimate
    """At least one of k runs solves the task."""
    pass_hat_k: Estimate
    """All of k runs solve the task (pass^k; Yao et al. 2024)."""
    left_out: int
    """Tasks with fewer than k runs whose outcome is known."""


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


class Zeros(Struct, frozen=True, kw_only=True):
    """First attempts with a recorded reward of 0, by what the evidence says of them. The first three are failures."""

    n: int
    tests: int
    """A verifier ran, and its tests failed."""
    no_artifact: int
    limit: int
    """Time or budget ran out."""
    agent_not_started: int
    verifier_not_run: int
    infrastructure: int
    not_judged: int

    @property
    def judged(self) -> int:
        """Zeros that are failures of the agent."""
        return self.tests + self.no_artifact + self.limit


class Candidate(Struct, frozen=True, kw_only=True):
    name: str
    treatment: dict[str, str | None]
    attempts: int
    trials: int
    tasks: int
    first_attempts: int
    retries: int
    first: Estimate
    """Outcome of first attempts at the common tasks of the group, or at its own if there are none."""
    absent: dict[str, int]
    """First attempts at these tasks without an outcome, by reason, without infrastructure failures."""
    infrastructure: dict[str, int]
    """First attempts at these tasks that the environment, provider or harness broke off, whatever their reward."""
    failed: dict[str, int]
    """First attempts at these tasks that failed, by reason, if known."""
    zeros: Zeros
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
    passes: list[PassAt] = []
    """pass@k and pass^k over repeated first attempts at the tasks of `first`; empty without repeats, and for numbers."""  # noqa: E501
    without_first: int
    """Trials whose first attempt is missing."""
    took: dict[str, Usage]
    """Usage by measure: first attempts at the tasks of `first`, whatever their outcome."""
    per_solved: dict[str, PerSolved]
    """By measure, at the tasks of `first`; empty for numbers."""
    missing_tasks: int
    """Tasks that another candidate of the group tried and it did not."""
    pooled: dict[str, int]
    """Columns that differ between its attempts, with their number of values."""


def candidate_of(  # noqa: PLR0913  (the parts of a candidate, named at the call)
    name: str,
    attempts: Sequence[Attempt],
    *,
    by: Sequence[str],
    yes_or_no: bool,
    pooled: dict[str, int],
    common: frozenset[str] | None = None,
    missing_tasks: int = 0,
) -> Candidate:
    """Summarize a candidate's attempts. `common`: the tasks of its rate."""
    first, again = [o for o in attempts if o.index == 0], [o for o in attempts if o.index > 0]
    shared = [o for o in first if common is None or o.task_key in common]
    by_trial: dict[tuple[str, str | None, str | None], list[Attempt]] = {}
    for attempt in attempts:
        by_trial.setdefault((attempt.trial, attempt.task, attempt.treatment.get("run_id")), []).append(attempt)
    trials = [sorted(trial, key=lambda o: (o.index, o.session_id)) for trial in by_trial.values()]
    whole = [t for t in trials if t[0].index == 0]
    within: list[Within] = []
    recovery = bounds = None
    if yes_or_no and again:
        most = max((t[-1].index for t in whole), default=0) + 1
        for k in range(1, min(most, MOST_WITHIN) + 1):
            within.append(Within(k, _share_solved([(t, [o for o in t if o.index < k]) for t in whole])))
        failed = [t for t in whole if t[0].outcome == 0]
        solved_later = _share_solved([(t, t) for t in failed])
        recovery = Recovery(solved_later, len(failed), sum(len(trial) > 1 for trial in failed))
    if yes_or_no and shared:
        solved, missing = sum(o.outcome or 0 for o in shared), sum(o.outcome is None for o in shared)
        bounds = Bounds(worst=solved / len(shared), best=(solved + missing) / len(shared), n=len(shared))

    def rungs(some: Iterable[Attempt], rung: str) -> dict[str, int]:
        return dict(Counter(o.reason for o in some if o.rung == rung).most_common())

    zeros = [o for o in shared if o.recorded_reward == 0]
    kinds = Counter(o.rung if o.rung in UNKNOWN else o.reason if o.reason in _KINDS_OF_ZERO else "tests" for o in zeros)
    return Candidate(
        name=name,
        treatment={column: attempts[0].treatment.get(column) for column in by},
        attempts=len(attempts),
        trials=len(trials),
        tasks=len(tasks_of(attempts)),
        first_attempts=len(first),
        retries=len(again),
        first=estimate(with_outcome(shared), yes_or_no),
        absent=_absent_reasons(o for o in shared if o.rung != _INFRASTRUCTURE),
        infrastructure=rungs(shared, _INFRASTRUCTURE),
        failed=rungs((o for o in shared if o.outcome is not None), "failed"),
        zeros=Zeros(
            n=len(zeros),
            limit=kinds["time"] + kinds["budget"],
            **{kind: kinds[kind] for kind in ("tests", NO_ARTIFACT, *UNKNOWN)},
        ),
        bounds=bounds,
        all_tasks=estimate(with_outcome(first), yes_or_no),
        retry=estimate(with_outcome(again), yes_or_no),
        retry_absent=_absent_reasons(again),
        within=within,
        recovery=recovery,
        passes=_passes(shared) if yes_or_no else [],
        without_first=len(trials) - len(whole),
        took={measure: _usage(shared, measure) for measure in MEASURES},
        per_solved={measure: _per_solved(shared, measure) for measure in SPENT} if yes_or_no else {},
        missing_tasks=missing_tasks,
        pooled=pooled,
    )


_RUNS = (1, 2, 3, 4, 5, 8, 10, 16, 32, 64, 100)
"""Numbers of runs that are reported, with the largest that a task has."""


def _passes(first: Sequence[Attempt]) -> list[PassAt]:
    """Return pass@k and pass^k over tasks with k runs or more."""
    runs: dict[str, list[float]] = {}
    for task, outcome in with_outcome(o for o in first if o.task is not None):
        runs.setdefault(task, []).append(outcome)
    most = max(map(len, runs.values()), default=0)
    made = []
    for k in sorted({k for k in _RUNS if k < most} | {most}) if most > 1 else ():
        tried = [(len(of), round(sum(of))) for of in runs.values() if len(of) >= k]
        one = _over_tasks([1 - comb(n - solved, k) / comb(n, k) for n, solved in tried])
        each = _over_tasks([comb(solved, k) / comb(n, k) for n, solved in tried])
        made.append(PassAt(k=k, pass_at_k=one, pass_hat_k=each, left_out=len(runs) - len(tried)))
    return made


def _over_tasks(values: Sequence[float]) -> Estimate:
    whole = all(value in (0, 1) for value in values)
    interval = wilson(fsum(values), len(values)) if whole else share_interval([(value, 1.0) for value in values])
    low, high = interval or (None, None)
    method = "Wilson" if whole else "Student's over tasks" if interval else "one task"
    return Estimate(value=fmean(values), low=low, high=high, n=len(values), tasks=len(values), method=method)


def _share_solved(trials: Iterable[tuple[list[Attempt], list[Attempt]]]) -> Estimate:
    values = []
    for trial, part in trials:
        solved = any(o.outcome == 1 for o in part)
        if solved or (part and all(o.outcome is not None for o in part)):
            values.append((trial[0].task_key, float(solved)))
    return estimate(values, True)


def _usage(first: Sequence[Attempt], measure: str) -> Usage:
    values = [(o, value) for o in first if isinstance(value := o.measures[measure], float)]
    absent = Counter(value for o in first if isinstance(value := o.measures[measure], str))
    numbers = [value for _, value in values]
    tasks = {o.session_id: o.task_key for o, _ in values}
    if len(set(tasks.values())) == len(values):
        interval = median_interval(numbers)
    else:
        interval, _ = clustered_median_interval([(o.session_id, value) for o, value in values], tasks)
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


def _per_solved(attempts: Sequence[Attempt], measure: str) -> PerSolved:
    judged = [(o.outcome, o.measures[measure]) for o in attempts if o.outcome is not None]
    measured = [(outcome, value) for outcome, value in judged if isinstance(value, float)]
    solved = sum(outcome for outcome, _ in measured)
    value = sum(v for _, v in measured) / solved if solved else None
    low = any(measure in o.at_least for o in attempts)
    return PerSolved(value=value, n=len(measured), of=len(attempts), at_least=low)


def tasks_of(attempts: Iterable[Attempt]) -> frozenset[str]:
    return frozenset(attempt.task_key for attempt in attempts if attempt.task is not None)


def with_outcome(tried: Iterable[Attempt]) -> list[Value]:
    return [(o.task_key, o.outcome) for o in tried if o.outcome is not None]


def _absent_reasons(tried: Iterable[Attempt]) -> dict[str, int]:
    return dict(Counter(o.why or "no reason" for o in tried if o.outcome is None).most_common())


def task_sums(values: Iterable[Value]) -> dict[str, tuple[float, float]]:
    sums: dict[str, tuple[float, float]] = {}
    for task, value in values:
        k, n = sums.get(task, (0.0, 0.0))
        sums[task] = k + value, n + 1
    return sums


def estimate(values: Sequence[Value], yes_or_no: bool) -> Estimate:
    """Return the mean over attempts. The interval is over tasks if they were tried several times."""
    if not values:
        return Estimate(value=None, n=0, tasks=0)
    parts = [part for _, part in sorted(task_sums(values).items())]
    if not yes_or_no:
        interval = ratio_interval(parts)
        method = "Student's over tasks" if len(parts) >= FEWEST_CLUSTERS else "too few tasks"
    else:
        interval = rate_interval(parts)
        method = "Wilson" if len(values) == len(parts) else "Student's over tasks" if len(parts) > 1 else "one task"
    low, high = interval or (None, None)
    mean = fmean(value for _, value in values)
    return Estimate(value=mean, low=low, high=high, n=len(values), tasks=len(parts), method=method)


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


def uninformative_tasks(first: Mapping[str, Sequence[Attempt]], *, yes_or_no: bool) -> UninformativeTasks:
    """Find the tasks that distinguish no candidates. `first`: first attempts by candidate."""
    outcomes: dict[str, set[float]] = {}
    tried_by: dict[str, set[str]] = {}
    names = {o.task_key: o.task for attempts in first.values() for o in attempts if o.task is not None}
    for candidate, attempts in first.items():
        for task, outcome in with_outcome(attempts):
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
