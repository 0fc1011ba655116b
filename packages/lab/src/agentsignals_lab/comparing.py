"""Episodes held against each other: rates with their intervals, and differences over the tasks that both sides have.

Rates of one sample a task have Wilson's interval; of several samples, which are alike, Student's over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import isnan
from typing import Any

import msgspec
from agentsignals.errors import LabError
from agentsignals.questions.question import Column, Table
from agentsignals.stats.intervals import Interval, rate_interval
from agentsignals.stats.paired import holm
from msgspec import Struct

from agentsignals_lab import statistics
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.retry.rows import EpisodeRow
from agentsignals_lab.runs import Run

RETRY_LOOP = "retry_loop"

Conditions = dict[str, list[EpisodeRow]]
Of = Callable[[EpisodeRow], bool | None]

OUTCOMES: dict[str, Of] = {
    "full pass": lambda row: row.full_pass,
    "visible pass": lambda row: row.visible_pass,
    "hardcoded": lambda row: row.hardcoded,
}
"""Outcomes by which conditions are compared."""


def conditions_of(episodes: Sequence[EpisodeRow]) -> Conditions:
    """Episodes by condition, the baseline first, else as they came."""
    by_condition: dict[str, list[EpisodeRow]] = {}
    for row in episodes:
        by_condition.setdefault(row.condition, []).append(row)
    return dict(sorted(by_condition.items(), key=lambda pair: pair[0] != BASELINE.name))


class Rate(Struct, frozen=True):
    """A share of yes among answers that are known."""

    yes: int
    n: int
    tasks: int
    interval: Interval | None

    @property
    def value(self) -> float | None:
        return self.yes / self.n if self.n else None

    @property
    def interval_text(self) -> str | None:
        """Its interval in words."""
        return None if self.interval is None else f"{self.interval[0]:.1%} to {self.interval[1]:.1%}"


def rate(rows: Sequence[EpisodeRow], of: Of) -> Rate:
    """The share with that outcome, and its interval: over tasks where one has several samples."""
    by_task: dict[str, list[bool]] = {}
    for row in rows:
        if (value := of(row)) is not None:
            by_task.setdefault(row.task, []).append(value)
    parts = [(sum(values), len(values)) for values in by_task.values()]
    yes, n = sum(k for k, _ in parts), sum(m for _, m in parts)
    return Rate(yes, n, len(parts), rate_interval(parts))


_PAIRED = (
    Column("condition", "condition", "code"),
    Column("outcome", "outcome"),
    Column("pairs", "pairs", "count"),
    Column("tasks", "tasks", "count"),
    Column("difference", "difference", "figure"),
    Column("interval", "95% interval"),
    Column("p", "p", "figure"),
    Column("q", "p over conditions", "figure"),
    Column("mcnemar", "McNemar p", "figure"),
    Column("changed", "gained and lost"),
)
_CHANCE = (Column("random", "p random", "figure"), Column("random_adjusted", "p random adjusted", "figure"))
_CHANCE_NOTE = (
    "p random: of the random directions at the same place and dose, the share that changes as much, either way;"
    " adjusted: Holm's, over all that have one."
)
_PAIRED_NOTE = (
    "Intervals are over tasks, p flips whole tasks; the p over conditions is Benjamini and Hochberg's, an outcome at"
    " a time. McNemar's takes pairs as independent: given only where each task has one."
)


class Paired(Struct, frozen=True, kw_only=True):
    """Two groups of episodes over the tasks and samples that both have."""

    name: str
    outcome: str
    difference: statistics.Difference
    mcnemar: statistics.McNemar | None
    """None where a task has several samples."""
    unpaired: int
    """Episodes without a partner, or whose partner or self was not run."""
    gained: int
    lost: int


def paired(name: str, outcome: str, treated: Sequence[EpisodeRow], control: Sequence[EpisodeRow]) -> Paired | None:
    """Treated less control; None when no task and sample is in both."""
    of = OUTCOMES[outcome]
    ours = {(row.task, row.sample): value for row in treated if (value := of(row)) is not None}
    theirs = {(row.task, row.sample): value for row in control if (value := of(row)) is not None}
    keys = [key for key in ours if key in theirs]
    if not keys:
        return None
    left, right, tasks = [ours[k] for k in keys], [theirs[k] for k in keys], [task for task, _ in keys]
    changes = statistics.mcnemar(left, right)
    return Paired(
        name=name,
        outcome=outcome,
        difference=statistics.paired_difference([float(v) for v in left], [float(v) for v in right], tasks),
        mcnemar=changes if len(set(tasks)) == len(tasks) else None,
        unpaired=len(treated) + len(control) - 2 * len(keys),
        gained=changes.gained,
        lost=changes.lost,
    )


Chance = dict[tuple[str, str], tuple[float, float]]
"""p random and the same adjusted, by condition and outcome."""


def by_chance(comparisons: Sequence[Paired], conditions: Sequence[Condition], broken: Collection[str]) -> Chance:
    """Each condition that steers, against random directions at its place and dose. Conditions that broke the model, on
    either side, do not count."""
    named = {condition.name: condition for condition in conditions if condition.name not in broken}
    moved = {(c.name, c.outcome): abs(c.difference.value) for c in comparisons if c.name in named}
    shares: dict[tuple[str, str], float] = {}
    for (name, outcome), value in moved.items():
        of = named[name]
        like = [
            other
            for (beside, same), other in moved.items()
            if same == outcome and named[beside].is_control and named[beside].place == of.place
        ]
        if of.steers and not of.is_control and like:
            shares[name, outcome] = statistics.p_random(value, like)
    return dict(zip(shares, zip(shares.values(), holm(list(shares.values())), strict=True), strict=True))


def paired_rows(comparisons: Sequence[Paired], chance: Chance | None = None) -> list[list[Any]]:
    """Rows of a table, with p values corrected over conditions for each outcome."""
    adjusted: dict[int, float] = {}
    for outcome in dict.fromkeys(comparison.outcome for comparison in comparisons):
        numbers = [
            n
            for n, comparison in enumerate(comparisons)
            if comparison.outcome == outcome and comparison.difference.tasks > 1
        ]
        q_values = statistics.benjamini_hochberg([comparisons[n].difference.p for n in numbers]) if numbers else []
        adjusted |= dict(zip(numbers, q_values, strict=True))
    rows = [_paired_row(comparison, adjusted.get(n)) for n, comparison in enumerate(comparisons)]
    if chance:
        for row, comparison in zip(rows, comparisons, strict=True):
            of_chance = chance.get((comparison.name, comparison.outcome))
            row.extend([None, None] if of_chance is None else [f"{p:.3g}" for p in of_chance])
    return rows


def _paired_row(comparison: Paired, q: float | None) -> list[Any]:
    d = comparison.difference
    # Pairs that all changed alike vary by nothing: that is no certainty.
    interval = None if isnan(d.low) or d.low == d.high else f"{100 * d.low:+.1f} to {100 * d.high:+.1f} points"
    return [
        comparison.name,
        comparison.outcome,
        d.n,
        d.tasks,
        f"{100 * d.value:+.1f} points",
        interval,
        None if d.tasks < 2 else f"{d.p:.3g}",
        None if q is None else f"{q:.3g}",
        None if comparison.mcnemar is None else f"{comparison.mcnemar.p:.3g}",
        f"+{comparison.gained}, -{comparison.lost}",
    ]


def paired_table(name: str, title: str, comparisons: Sequence[Paired], chance: Chance | None = None) -> Table:
    """The table of paired differences."""
    n = max((comparison.difference.n for comparison in comparisons), default=0)
    columns = (*_PAIRED, *_CHANCE) if chance else _PAIRED
    table_note = f"{_PAIRED_NOTE} {_CHANCE_NOTE if chance else ''}".strip()
    rows = paired_rows(comparisons, chance)
    return Table(id=name, title=title, columns=columns, rows=rows, n=n, of="pairs", note=table_note)


def episodes_of(run: Run) -> list[EpisodeRow]:
    """A retry loop's finished episodes. LabError for another experiment's run, or when there are none."""
    if run.config.experiment != RETRY_LOOP:
        raise LabError(f"{run.folder} is a run of {run.config.experiment}, no retry loop.", "`lab agent` makes one.")
    rows = run.table("episodes", EpisodeRow).rows
    if not rows:
        raise LabError(f"{run.folder} has no finished episode.", "Run it again: it goes on.")
    return rows


def asked_of(run: Run) -> list[Condition]:
    """The conditions that a retry loop was begun with."""
    return msgspec.convert(run.config.settings.get("conditions", []), list[Condition])
