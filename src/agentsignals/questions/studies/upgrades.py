"""Sessions before and after each version of an agent, and each model."""

from __future__ import annotations

from collections import Counter

from agentsignals.questions import upgrades
from agentsignals.questions.estimates import count, listing, table
from agentsignals.questions.question import Inputs, Outcome, Study, formatted
from agentsignals.questions.ranking import safe_name
from agentsignals.questions.sql import declared, read_queries
from agentsignals.questions.upgrades import METRICS, Change

_SQL = read_queries(__file__)["upgrades"]


def upgrades_study(inputs: Inputs) -> Outcome:
    changes = upgrades.changes(inputs)
    made = [change for change in changes if change.before is not None]
    made.sort(key=lambda c: (not c.is_said, c.q if c.q is not None else 1.0, c.day, c.agent, c.metric))
    said = [change for change in made if change.is_said]
    n = sum(row["started_at"] is not None for row in inputs.rows["sessions"])
    reasons = Counter(change.absent for change in changes if change.absent)
    silent = listing({safe_name(row["agent"]): row["n"] for row in inputs.rows["silent"]})
    note = (
        "Sessions are compared within projects, with or without edits alike, and at a change of version with one model."
    )
    if reasons:
        note += f" Not compared: {listing(reasons)}."
    if silent:
        note += f" Sessions whose log has no version: {silent}."
    return Outcome(
        findings=[
            count(len(of), n, evidence=[s for c in of for s in (*c.sessions_before, *c.sessions_after)]).finding(id_)
            for id_, of in (("upgrades.compared", made), ("upgrades.changed", said))
        ],
        tables=[
            table(
                "upgrades.changes",
                [_row(change) for change in made],
                n=len(made),
                evidence=[[*change.sessions_before, *change.sessions_after] for change in made],
                note=note,
            )
        ],
    )


def _row(change: Change) -> list[object]:
    metric = next(metric for metric in METRICS if metric.name == change.metric)
    low, high = change.interval or (0.0, 0.0)
    words = f"{100 * low:+.1f} to {100 * high:+.1f} points" if metric.is_share else f"{low:.2f} to {high:.2f} times"
    return [
        safe_name(change.name), safe_name(change.agent), change.day, metric.name.replace("-", " "),
        *(formatted(value, metric.kind) for value in (change.before, change.after)), words,
        change.n_before, change.n_after, "changed" if change.is_said else "no sure change",
    ]  # fmt: skip


UPGRADES_STUDY = Study(
    **declared("study", "upgrades") | {"queries": upgrades.QUERIES | _SQL, "sliced": upgrades.SLICED},
    function=upgrades_study,
    context="product",
)
