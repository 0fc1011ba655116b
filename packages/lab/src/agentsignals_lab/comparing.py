"""Episodes held against each other: rates with their intervals, and differences over the tasks that both sides have.

Rates of one sample a task have Wilson's interval; of several samples, which are alike, Student's over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isnan
from typing import Any

import msgspec
from agentsignals.errors import LabError
from agentsignals.questions.question import Column, Kind, Table
from agentsignals.stats.intervals import Interval, rate_interval
from agentsignals.stats.paired import benjamini_hochberg, holm, mcnemar
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


_KINDS: dict[Kind, tuple[str, ...]] = {
    "code": ("condition", "direction", "span"),
    "count": ("episodes", "tasks", "attempt", "n", "unknown", "pairs", "layer"),
    "number": ("attempts", "tokens", "frustration", "desperation", "give_up", "markers", "cosine", "coordinate"),
    "share": ("visible", "hidden", "full", "hardcoded", "valid", "anti"),
    "figure": (
        "recovered", "difference", "p", "q", "mcnemar", "random", "random_adjusted", "kl", "noise", "shift",
    ),
}  # fmt: skip
_KIND_OF = {key: kind for kind, keys in _KINDS.items() for key in keys}
_LABELS = {
    "visible": "visible pass", "hidden": "hidden pass", "full": "full pass", "interval": "95% interval",
    "valid": "valid answers", "unknown": "not run", "span": "tokens of", "cosine": "mean cosine",
    "coordinate": "mean coordinate", "frustration": "frustration per 100 words",
    "desperation": "desperation per 100 words", "give_up": "giving up per 100 words",
    "markers": "published marker score", "verdict": "the check says", "kl": "KL, nats", "noise": "KL of rounding",
    "shift": "projection shift, median norms", "anti": "moved the other way", "q": "p over conditions",
    "mcnemar": "McNemar p", "changed": "gained and lost", "random": "p random",
    "random_adjusted": "p random adjusted",
}  # fmt: skip


def table_of(  # noqa: PLR0913  (what a table is of)
    name: str,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    n: int,
    of: str,
    note: str = "",
    labels: Mapping[str, str] | None = None,
) -> Table:
    """A table of a report: its columns are the keys of its rows, which are told by `labels` or the usual words."""
    told = {**_LABELS, **(labels or {})}
    columns = tuple(Column(key, told.get(key, key), _KIND_OF.get(key, "text")) for key in (rows[0] if rows else ()))
    return Table(
        id=name, title=title, columns=columns, rows=[list(row.values()) for row in rows], n=n, of=of, note=note
    )


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
    mcnemar: float | None
    """Exact two-sided p, which takes pairs as independent; None where a task has several samples."""
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
    gained, lost = sum(ours[k] and not theirs[k] for k in keys), sum(theirs[k] and not ours[k] for k in keys)
    return Paired(
        name=name,
        outcome=outcome,
        difference=statistics.paired_difference(left, right, tasks),
        mcnemar=mcnemar(gained, lost) if len(set(tasks)) == len(tasks) else None,
        unpaired=len(treated) + len(control) - 2 * len(keys),
        gained=gained,
        lost=lost,
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


def paired_table(name: str, title: str, comparisons: Sequence[Paired], chance: Chance | None = None) -> Table:
    """The table of paired differences, with p values corrected over conditions for each outcome."""
    adjusted: dict[int, float] = {}
    for outcome in OUTCOMES:
        numbers = [n for n, one in enumerate(comparisons) if one.outcome == outcome and one.difference.tasks > 1]
        q_values = benjamini_hochberg([comparisons[n].difference.p for n in numbers]) if numbers else []
        adjusted |= dict(zip(numbers, q_values, strict=True))
    rows = []
    for number, one in enumerate(comparisons):
        d, random = one.difference, (chance or {}).get((one.name, one.outcome), (None, None))
        # Pairs that all changed alike vary by nothing: that is no certainty.
        interval = None if isnan(d.low) or d.low == d.high else f"{100 * d.low:+.1f} to {100 * d.high:+.1f} points"
        row = {
            "condition": one.name, "outcome": one.outcome, "pairs": d.n, "tasks": d.tasks,
            "difference": f"{100 * d.value:+.1f} points", "interval": interval,
            "p": None if d.tasks < 2 else short(d.p), "q": short(adjusted.get(number)), "mcnemar": short(one.mcnemar),
            "changed": f"+{one.gained}, -{one.lost}",
        }  # fmt: skip
        rows.append(row | ({"random": short(random[0]), "random_adjusted": short(random[1])} if chance else {}))
    n = max((one.difference.n for one in comparisons), default=0)
    return table_of(name, title, rows, n, "pairs", f"{_PAIRED_NOTE} {_CHANCE_NOTE if chance else ''}".strip())


def short(value: float | None) -> str | None:
    """A figure with three digits."""
    return None if value is None else f"{value:.3g}"


def episodes_of(run: Run) -> list[EpisodeRow]:
    """A retry loop's finished episodes. LabError for another experiment's run, or when there are none."""
    if run.config.experiment != RETRY_LOOP:
        raise LabError(
            f"{run.folder} is a run of {run.config.experiment}, not of a retry loop.",
            "Name a run that `lab agent` wrote.",
        )
    rows = run.table("episodes", EpisodeRow).rows
    if not rows:
        raise LabError(f"{run.folder} has no finished episode.", "Run the same command again: it continues.")
    return rows


def asked_of(run: Run) -> list[Condition]:
    """The conditions that a retry loop was begun with."""
    return msgspec.convert(run.config.settings.get("conditions", []), list[Condition])
