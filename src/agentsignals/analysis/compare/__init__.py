"""Candidates under their treatments: eval attempts grouped by what they were given, and held against a baseline.

A pure function of rows, as a study is: who runs it hands in the rows of `queries`. First attempts are compared;
retries stand apart (Agent Signals: only what failed is tried again, often under another cap).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentsignals.analysis.compare.against import Pair, Unpaired, adjusted, pair
from agentsignals.analysis.compare.candidate import Candidate, Estimate, described
from agentsignals.analysis.compare.cautions import cautions
from agentsignals.analysis.compare.outcome import OutcomeRule, outcome_rule
from agentsignals.analysis.compare.treatments import also_differ, candidates, chosen, differing, named, pooled
from agentsignals.analysis.compare.tried import MEASURES, queries, tried_of
from agentsignals.analysis.study import Row

__all__ = [
    "MEASURES",
    "Candidate",
    "Comparison",
    "Estimate",
    "OutcomeRule",
    "Pair",
    "Unpaired",
    "compare",
    "outcome_rule",
    "queries",
]


class Comparison(Struct, frozen=True, kw_only=True):
    """What `compare` tells."""

    outcome: str
    signal: str
    yes_or_no: bool
    by: list[str]
    """The columns whose values make a candidate."""
    attempts: int
    baseline: str | None
    """None where there is nothing to compare."""
    candidates: list[Candidate]
    """Most attempts first."""
    pairs: list[Pair]
    """Every other candidate against the baseline."""
    warnings: list[str]


def compare(
    rule: OutcomeRule, rows: Mapping[str, list[Row]], by: Sequence[str] = (), baseline: str | None = None
) -> Comparison:
    """The candidates of these rows. UsageError where a column or candidate is not there.

    `by`: columns and knobs (else the treatments that differ). `baseline`: a candidate's name, or a part of it that no
    other has (else the one that is called so, or has most known outcomes).
    """
    tried = tried_of(rule, rows)
    columns = chosen(tried, by)
    groups = candidates(tried, columns)
    by_dataset = "dataset" not in columns
    changing = differing(tried)
    described_candidates = [
        described(
            name,
            attempts,
            by=columns,
            yes_or_no=rule.yes_or_no,
            by_dataset=by_dataset,
            pooled=pooled(attempts, columns, changing),
        )
        for name, attempts in groups.items()
    ]
    base = named(baseline, list(groups)) if baseline is not None else _usual(described_candidates)
    first = {name: [attempt for attempt in attempts if attempt.index == 0] for name, attempts in groups.items()}
    pairs = [
        pair(
            name,
            base,
            attempts,
            first[base],
            yes_or_no=rule.yes_or_no,
            by_dataset=by_dataset,
            also_differ=also_differ(attempts, first[base], columns, changing),
        )
        for name, attempts in first.items()
        if base is not None and name != base
    ]
    pairs = adjusted(pairs)
    return Comparison(
        outcome=rule.name,
        signal=rule.signal,
        yes_or_no=rule.yes_or_no,
        by=columns,
        attempts=len(tried),
        baseline=base,
        candidates=described_candidates,
        pairs=pairs,
        warnings=cautions(rule, rows["values"], tried, columns, described_candidates, pairs),
    )


_CALLED_SO = frozenset({"baseline", "control", "plain"})


def _usual(candidates: Sequence[Candidate]) -> str | None:
    """The candidate that its run calls the baseline, or a control; else the one of whose first attempts most outcomes
    are known; the first one where several have as many."""
    called = [candidate.name for candidate in candidates if candidate.name.lower() in _CALLED_SO]
    if called:
        return called[0]
    return max(candidates, key=lambda entry: entry.first.n).name if candidates else None
