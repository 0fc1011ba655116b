"""Why attempts of eval runs failed: each in one class, by candidate, with how near its patch came to the place."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import Estimate, bar, chart, count, table
from agentsignals.questions.failure_map import (
    SIGNAL,
    UNKNOWN,
    Failed,
    FailureMap,
    Share,
    class_text,
    failure_map,
    passes_text,
    queries,
)
from agentsignals.questions.question import Chart, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.views.failure import RULES

_PLACE = "verification.patch_localization"
MOST_EXAMPLES = 5
"""Of each class; the verb's JSON and the page have all."""
_NEAR = {"line": "a line", "function": "a function", "file": "a file alone", "elsewhere": "nothing"}
_CLASSED = f"FROM signals WHERE signal = '{SIGNAL}' AND absent IS NULL AND coalesce(attempt_index, 0) = 0"
_FAILED = "first attempts that failed or were broken off"


def _outcome(inputs: Inputs) -> Outcome:
    return outcome_of(failure_map(inputs.rows), inputs.rows["places"])


def outcome_of(made: FailureMap, places: list[Row]) -> Outcome:
    """The map as figures and tables. `places`: how near each patch came, with what came of its attempt."""
    first = [entry for entry in made.listed if not entry.attempt]
    tables = [_by_candidate(made, first), _near(places), _examples(made), _not_earned(made)]
    return Outcome([_count(made, first), *_classes(made, first)], tables, [_chart(made, first)], _limits(made, first))


def _count(made: FailureMap, first: list[Failed]) -> Finding:
    note = f"of {made.first_attempts:,} first attempts; {len(made.listed) - len(first):,} retries failed, too"
    every = [(entry.session_id, 1, 1) for entry in first]
    return count(made.failed, made.first_attempts, evidence=every).finding(
        "failures.count",
        _FAILED.capitalize(),
        "first attempts",
        note,
        unit="first attempts",
        sql=_again(made, "count(*)"),
    )


def _classes(made: FailureMap, first: list[Failed]) -> list[Finding]:
    """A share of each class that there is, in the order of the rules."""
    shares = {share.name: share for share in made.classes}
    return [
        _estimate(shares[rule.name], first).finding(
            f"failures.{rule.name}",
            f"Failed: {class_text(rule.name)}",
            _FAILED,
            rule.means.rstrip("."),
            sql=_again(made, f"avg(CAST(contains(value, '{rule.name}') AS INT))"),
            unit="share of what failed",
            signals=(SIGNAL,),
            classes=(rule.name,),
        )
        for rule in RULES
        if rule.name in shares
    ]


def _again(made: FailureMap, figure: str) -> str:
    """The query of a figure; no single query leaves out the candidates of whom nothing was evaluated."""
    return "" if made.unevaluated else f"SELECT {figure} {_CLASSED}"


def _estimate(share: Share, first: list[Failed]) -> Estimate:
    interval = None if share.low is None or share.high is None else (share.low, share.high)
    parts = [(entry.session_id, float(entry.name == share.name), 1.0) for entry in first]
    note = "the interval is over tasks" if interval else "too few tasks for an interval"
    return Estimate(value=share.value, n=len(first), k=share.n, interval=interval, note=note, counted=parts)


def _by_candidate(made: FailureMap, first: list[Failed]) -> Table:
    rows: list[list[Any]] = []
    behind: list[list[str]] = []
    for candidate in made.candidates:
        for share in candidate.classes:
            rows.append(
                [candidate.name, class_text(share.name), share.n, candidate.failed, share.value, share.low, share.high]
            )
            behind.append([f.session_id for f in first if (f.candidate, f.name) == (candidate.name, share.name)])
    return table(
        "failures.by_candidate",
        "By candidate",
        "candidate:code | class:code | n failed so:count | of failed:count | share:share | ends:share",
        rows,
        n=made.failed,
        of=_FAILED,
        evidence=behind,
        note=" ".join(
            [*made.sentences, "A stronger candidate fails at harder tasks: shares are of what each failed at."]
        ),
    )


def _near(places: list[Row]) -> Table:
    """How near patches came to the gold patch, of all and of those that failed."""
    rows: list[list[Any]] = []
    behind: list[list[str]] = []
    for level, common in _NEAR.items():
        ids = [row["session_id"] for row in places if row["level"] == level]
        outcomes = Counter(row["outcome"] for row in places if row["level"] == level)
        if ids:
            rows.append([common, len(ids), outcomes["solved"], outcomes["failed"], len(ids) / len(places)])
            behind.append(ids)
    return table(
        "failures.places",
        "How near the patch came to the gold patch",
        "near in common, at the finest:code | n attempts:count | solved:count | failed:count | share:share",
        rows,
        n=len(places),
        of="attempts whose patch and gold patch are there",
        evidence=behind,
        note="The gold patch is one fix of several.",
    )


def _examples(made: FailureMap) -> Table:
    shown = [
        entry for rule in RULES for entry in [entry for entry in made.listed if entry.name == rule.name][:MOST_EXAMPLES]
    ]
    rows = [
        [class_text(f.name), f.because, f.file, f.seq, f.task, f.candidate, f.attempt + 1, f.session_id] for f in shown
    ]
    left = len(made.listed) - len(shown)
    return table(
        "failures.examples",
        "Examples of each class, with what shows it",
        "class:code | because | file where to look:code | event:count | task:code | candidate:code | attempt:count"
        " | session:session",
        rows,
        n=len(made.listed),
        of="attempts that failed or were broken off",
        evidence=[[f.session_id] for f in shown],
        note=f"{left:,} more are not listed: agentsignals failures --json has all." if left else "",
    )


def _not_earned(made: FailureMap) -> Table:
    """Passes that did not fail, and were not the agent's own."""
    rows = [
        [
            class_text(p.verdict),
            p.because,
            p.acts[0].get("seq") if p.acts else None,
            p.task,
            p.candidate,
            p.attempt + 1,
            p.session_id,
        ]
        for p in made.not_earned
    ]
    return table(
        "failures.not_earned",
        "Passed, not earned",
        "verdict:code | because | event:count | task:code | candidate:code | attempt:count | session:session",
        rows,
        n=len(rows),
        of="passes that were looked up, or by a deed upon what judges",
        evidence=[[p.session_id] for p in made.not_earned],
        note=passes_text(made),
    )


def _chart(made: FailureMap, first: list[Failed]) -> Chart | None:
    rows = [
        bar(class_text(share.name), share.n, f"{class_text(share.name)}: {share.n:,} of {made.failed:,} {_FAILED}",
            evidence=[f.session_id for f in first if f.name == share.name])
        for share in made.classes
    ]  # fmt: skip
    return chart(
        "failures.classes", "Why first attempts failed", rows, bars(rows, "attempts"), n=made.failed, of=_FAILED
    )


def _limits(made: FailureMap, first: list[Failed]) -> list[str]:
    unknown = Counter(entry.because for entry in first if entry.name == UNKNOWN)
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in unknown.most_common())
    not_judged = sum(candidate.not_judged for candidate in made.candidates)
    limits = [f"Why {unknown.total():,} of {made.failed:,} failed can't be told: {reasons}."] if unknown else []
    if not_judged:
        limits.append(f"{not_judged:,} first attempts were never judged: whether they failed is not known.")
    return limits


STUDY = Study(
    name="failures",
    order=362,
    title="Failures of eval runs",
    question="Why did attempts fail?",
    queries={
        **queries(),
        "places": "SELECT session_id, json_extract_string(value, '') AS level, outcome FROM signals"
        f" JOIN (SELECT session_id, outcome FROM attempts) USING (session_id) WHERE signal = '{_PLACE}'"
        " AND value IS NOT NULL ORDER BY session_id",
    },
    function=_outcome,
    context="eval",
)
