"""Candidates under their treatments: eval attempts grouped by what they were given, and held against a baseline.

A pure function of rows, as a study is: who runs it hands in the rows of `queries`. First attempts are compared;
retries stand apart (Agent Signals: only what failed is tried again, often under another cap).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentsignals.analysis.compare.against import Pair, Unpaired, adjusted, pair
from agentsignals.analysis.compare.candidate import Candidate, Estimate, described, place, tasks_of
from agentsignals.analysis.compare.cautions import cautions
from agentsignals.analysis.compare.conclusion import Conclusion, concluded
from agentsignals.analysis.compare.guard import unlike
from agentsignals.analysis.compare.outcome import OutcomeRule, outcome_rule
from agentsignals.analysis.compare.silent import Silent, silent
from agentsignals.analysis.compare.treatments import (
    UNKNOWN,
    also_differ,
    candidates,
    chosen,
    differing,
    named,
    pooled,
    unrecorded,
)
from agentsignals.analysis.compare.tried import MEASURES, Tried, evaluated, queries, tried_of
from agentsignals.analysis.study import Row
from agentsignals.catalog import caption
from agentsignals.errors import UsageError
from agentsignals.stats.estimates import FEWEST_CLUSTERS

__all__ = [
    "CALLED_BASELINE",
    "MEASURES",
    "Arms",
    "Candidate",
    "Comparison",
    "Conclusion",
    "Estimate",
    "OutcomeRule",
    "Pair",
    "Silent",
    "Unpaired",
    "arms",
    "compare",
    "outcome_rule",
    "queries",
]


class Comparison(Struct, frozen=True, kw_only=True):
    """What `compare` tells."""

    outcome: str
    signal: str
    validation: str
    """How often the signal is right, where it claims a meaning."""
    yes_or_no: bool
    more_is_better: bool
    """Whether that is sure of the outcome: else a higher one is only called higher."""
    by: list[str]
    """The columns whose values make a candidate."""
    attempts: int
    baseline: str | None
    """None where there is nothing to compare."""
    candidates: list[Candidate]
    """Most attempts first."""
    pairs: list[Pair]
    """Every other candidate against the baseline."""
    regression_weight: float
    """What a regression counts, a gain counting 1."""
    conclusions: list[Conclusion]
    """One of each pair."""
    silent: Silent
    """Tasks that tell the candidates not apart."""
    unlike: list[str]
    """Why these candidates should not be compared: other data sets, limits, tasks. Empty: nothing is against it."""
    common_tasks: int | None
    """Tasks that all candidates tried, where some tried others too; None where all tried the same."""
    unrecorded: int
    """Attempts of which nobody recorded who was tried; they are in no candidate."""
    warnings: list[str]


class Arms(Struct, frozen=True, kw_only=True):
    """The attempts that a comparison is of, by candidate: most attempts first."""

    everyone: list[Tried]
    """Those of nobody among them."""
    columns: list[str]
    """Whose values make a candidate."""
    groups: dict[str, list[Tried]]
    first: dict[str, list[Tried]]
    tasks: dict[str, frozenset[str]]
    """Of their first attempts."""

    @property
    def by_dataset(self) -> bool:
        """Whether a task is one of its data set."""
        return "dataset" not in self.columns

    @property
    def common(self) -> frozenset[str] | None:
        """The tasks that all tried, where some tried others too; None where all tried the same."""
        return _common(list(self.tasks.values()))

    def shared(self, name: str) -> list[Tried]:
        """First attempts of a candidate at the tasks of its rate: those that all tried, else its own."""
        common = self.common
        return [o for o in self.first[name] if not common or place(o, self.by_dataset) in common]


def compare(
    rule: OutcomeRule,
    rows: Mapping[str, list[Row]],
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    regression_weight: float = 1.0,
) -> Comparison:
    """The candidates of these rows. UsageError where a column or candidate is not there, or the weight is none.

    `by`: columns and knobs (else the treatments that differ). `baseline`: a candidate's name, or a part of it that no
    other has (else the one that is called so, or has most known outcomes). `regression_weight`: what a task that the
    baseline does better counts, one that the candidate does better counting 1.
    """
    if not LEAST_WEIGHT <= regression_weight <= MOST_WEIGHT:
        raise UsageError(
            f"A regression can't count {regression_weight:g} times.",
            f"A weight is a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}; 1 counts it as much as a gain.",
        )
    whole = arms(rule, rows, by, baseline)
    everyone, columns, groups, first = whole.everyone, whole.columns, whole.groups, whole.first
    by_dataset, tasks, common = whole.by_dataset, whole.tasks, whole.common
    tried = [attempt for attempts in groups.values() for attempt in attempts]
    changing = differing(tried)
    described_candidates = [
        described(
            name,
            attempts,
            by=columns,
            yes_or_no=rule.yes_or_no,
            by_dataset=by_dataset,
            pooled=pooled(attempts, columns, changing),
            common=common or None,
        )
        for name, attempts in groups.items()
    ]
    base = named(baseline, list(groups)) if baseline is not None else _usual(described_candidates)
    pairs = _pairs(whole, base, changing, yes_or_no=rule.yes_or_no, weight=regression_weight)
    return Comparison(
        outcome=rule.name,
        signal=rule.signal,
        validation=caption(rule.signal, (rule.value,)),
        yes_or_no=rule.yes_or_no,
        more_is_better=rule.more_is_better,
        by=columns,
        attempts=len(everyone),
        baseline=base,
        candidates=described_candidates,
        pairs=pairs,
        regression_weight=regression_weight,
        conclusions=[concluded(each, yes_or_no=rule.yes_or_no, good=rule.more_is_better) for each in pairs],
        silent=silent(whole.first, by_dataset, yes_or_no=rule.yes_or_no),
        unlike=unlike(first, base, by, tasks, changing),
        common_tasks=len(common) if common is not None else None,
        unrecorded=len(everyone) - len(tried),
        warnings=cautions(rule, rows["values"], tried, columns, described_candidates, pairs),
    )


def _pairs(whole: Arms, base: str | None, changing: Sequence[str], *, yes_or_no: bool, weight: float) -> list[Pair]:
    """Every candidate against `base`. Those that have enough tasks in common with it to be tested share the level."""
    if base is None:
        return []
    tasks = {
        name: tasks_of((attempt for attempt in attempts if attempt.outcome is not None), whole.by_dataset)
        for name, attempts in whole.first.items()
    }
    tests = sum(name != base and len(each & tasks[base]) >= FEWEST_CLUSTERS for name, each in tasks.items())
    return adjusted(
        [
            pair(
                name,
                base,
                attempts,
                whole.first[base],
                yes_or_no=yes_or_no,
                by_dataset=whole.by_dataset,
                also_differ=also_differ(attempts, whole.first[base], whole.columns, changing),
                weight=weight,
                tests=max(1, tests),
            )
            for name, attempts in whole.first.items()
            if name != base
        ]
    )


def arms(rule: OutcomeRule, rows: Mapping[str, list[Row]], by: Sequence[str] = (), baseline: str | None = None) -> Arms:
    """The attempts of each candidate, as `compare` counts them."""
    everyone = tried_of(rule, rows)
    columns = chosen(everyone, by)
    recorded = _recorded(everyone, columns, baseline)
    groups = {name: evaluated(attempts) for name, attempts in candidates(recorded, columns).items()}
    first = {name: [attempt for attempt in attempts if attempt.index == 0] for name, attempts in groups.items()}
    tasks = {name: tasks_of(attempts, "dataset" not in columns) for name, attempts in first.items()}
    return Arms(everyone=everyone, columns=columns, groups=groups, first=first, tasks=tasks)


def _recorded(tried: list[Tried], columns: Sequence[str], baseline: str | None) -> list[Tried]:
    """The attempts of which it is recorded who was tried: the others are nobody's, unless asked for as the baseline."""
    if baseline == UNKNOWN:
        return tried
    recorded = [attempt for attempt in tried if not unrecorded(attempt, columns)]
    if tried and not recorded:
        raise UsageError(
            f"No attempt records its {' or '.join(columns)}: who was tried is not known.",
            "--by compares by another column; --treatments FILE says it of folders.",
        )
    return recorded


def _common(tasks: Sequence[frozenset[str]]) -> frozenset[str] | None:
    """The tasks that all candidates tried; None where each tried the same."""
    shared = frozenset.intersection(*tasks) if tasks else frozenset()
    return shared if any(each != shared for each in tasks) else None


LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
"""Of a regression."""
CALLED_BASELINE = frozenset({"baseline", "control", "plain"})
"""Names by which a run says which of its candidates is the baseline."""


def _usual(candidates: Sequence[Candidate]) -> str | None:
    """The candidate that its run calls the baseline, or a control; else the one of whose first attempts most outcomes
    are known; the first one where several have as many."""
    called = [candidate.name for candidate in candidates if candidate.name.lower() in CALLED_BASELINE]
    if called:
        return called[0]
    return max(candidates, key=lambda entry: entry.all_tasks.n).name if candidates else None
