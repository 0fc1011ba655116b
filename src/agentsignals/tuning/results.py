"""What came of runs, as the store has it. Nothing is taken from the process: not its output, not its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from pathlib import Path

from msgspec import Struct

from agentsignals.analysis.compare.candidate import place
from agentsignals.analysis.compare.outcome import outcome_rule
from agentsignals.analysis.compare.tried import Tried, evaluated, queries, tried_of
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.tuning.history import Run
from agentsignals.tuning.plan import Plan, Value

_PLACES = (
    "SELECT session_id, artifacts.path FROM attempts JOIN sessions USING (session_id)"
    " JOIN artifacts USING (artifact_id)"
)


class Result(Struct, kw_only=True):
    """What came of a run."""

    outcomes: dict[str, list[float]]
    """Of its trials by the task that the store has, 1 or 0: a trial is solved where one of its attempts is."""
    without: dict[str, int]
    """Attempts and trials that count nowhere, by reason."""
    attempts: int = 0
    cost_usd: float = 0.0
    """Of all attempts that the run left, whatever became of them."""
    unpriced: int = 0
    """Attempts without a cost, or with a lower bound of it."""


def results(store: Store, plan: Plan, runs: Sequence[Run], folder: Path) -> dict[int, Result]:
    """The results of runs by number; `folder` holds a run's folder each, named by its number."""
    rule = outcome_rule(plan.outcome)
    tables = {}
    for name, sql in (queries(rule) | {"places": _PLACES}).items():
        names, values = rows(store, sql)
        tables[name] = [dict(zip(names, row, strict=True)) for row in values]
    paths = {row["session_id"]: row["path"] for row in tables["places"]}
    numbers = {session: _number(path, folder) for session, path in paths.items()}
    by_run: dict[int | None, list[Tried]] = {}
    for attempt in evaluated([a for a in tried_of(rule, tables) if numbers.get(a.session_id) is not None]):
        by_run.setdefault(numbers[attempt.session_id], []).append(attempt)
    return {run.number: _result(plan, run, by_run.get(run.number, [])) for run in runs}


def _number(path: str, folder: Path) -> int | None:
    """The run in whose folder an artifact lies."""
    below = path.removeprefix(f"{folder}/")
    number = below.partition("/")[0]
    return int(number) if below != path and number.isdecimal() else None


def _result(plan: Plan, run: Run, attempts: Sequence[Tried]) -> Result:
    without: Counter[str] = Counter()
    trials: dict[str, list[Tried]] = {}
    for attempt in attempts:
        if odd := _unlike(plan, run.treatment, attempt.treatment):
            without[odd] += 1
        else:
            trials.setdefault(attempt.trial, []).append(attempt)
    outcomes: dict[str, list[float]] = {}
    for trial in trials.values():
        solved, why = _solved(trial)
        if solved is None:
            without[why] += 1
        else:
            task = run.task if trial[0].task is None else place(trial[0], by_dataset=True)
            outcomes.setdefault(task, []).append(solved)
    if not attempts:
        without["no attempt was read from its folder"] = 1
    costs = [attempt.measures["cost_usd"] for attempt in attempts]
    return Result(
        outcomes=outcomes,
        without=dict(without),
        attempts=len(attempts),
        cost_usd=sum(cost for cost in costs if isinstance(cost, float)),
        unpriced=sum(isinstance(a.measures["cost_usd"], str) or "cost_usd" in a.at_least for a in attempts),
    )


def _solved(trial: Iterable[Tried]) -> tuple[float | None, str]:
    """1 where an attempt solved it, 0 where none did and the last one's outcome is there; else why it is not."""
    attempts = sorted(trial, key=lambda attempt: attempt.index)
    if any(attempt.outcome == 1 for attempt in attempts):
        return 1.0, ""
    return (0.0, "") if attempts[-1].outcome is not None else (None, attempts[-1].why)


def _unlike(plan: Plan, treatment: Mapping[str, Value], recorded: Mapping[str, str]) -> str:
    """How an attempt's recorded treatment differs from what its run was asked for; empty where it does not."""
    for knob, value in treatment.items():
        name = plan.recorded_as.get(knob, knob)
        if name not in recorded:
            return f"{name} is not recorded"
        if not _same(recorded[name], value):
            return f"{name} is another than asked for"
    return ""


def _same(recorded: str, value: Value) -> bool:
    if isinstance(value, str | bool):
        return recorded == (value if isinstance(value, str) else str(value).lower())
    try:
        return isclose(float(recorded), value, rel_tol=1e-9)
    except ValueError:
        return False
