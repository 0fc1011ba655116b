"""Sessions before and after each version of an agent, and each model."""

from __future__ import annotations

from collections.abc import Sequence

from agentsignals.questions import upgrades
from agentsignals.questions.estimates import count, listing, table
from agentsignals.questions.question import Finding, Inputs, Outcome, Study, formatted
from agentsignals.questions.ranking import safe_name
from agentsignals.questions.sql import declared, read_queries
from agentsignals.questions.upgrades import METRICS, Change

_SQL = read_queries(__file__)["upgrades"]


def upgrades_study(inputs: Inputs) -> Outcome:
    sessions = upgrades.measured(inputs)
    changes = upgrades.compared(sessions)
    made = [change for change in changes if change.before is not None]
    made.sort(key=lambda c: (not c.is_said, c.q if c.q is not None else 1.0, c.day, c.agent, c.metric))
    said = [change for change in made if change.is_said]
    reasons = upgrades.why_none(changes)
    silent = listing({safe_name(row["agent"]): row["n"] for row in inputs.rows["silent"]})
    timed = [session.id for session in sessions]
    note = (
        "Sessions are compared within projects, with or without edits alike, and at a change of version with one model."
    )
    if reasons:
        note += f" Not compared: {reasons}."
    if silent:
        note += f" Sessions whose log has no version: {silent}."
    return Outcome(
        findings=[_sessions("upgrades.compared", made, timed, note), _sessions("upgrades.changed", said, timed)],
        tables=[
            table(
                "upgrades.changes",
                [_row(change) for change in made],
                n=len(made),
                evidence=[[*change.sessions_before, *change.sessions_after] for change in made],
            )
        ],
    )


def _sessions(id: str, changes: Sequence[Change], timed: Sequence[str], note: str = "") -> Finding:  # noqa: A002  (the finding's field)
    compared = {s for change in changes for s in (*change.sessions_before, *change.sessions_after)}
    return count(len(compared), len(timed), evidence=[(s, s in compared, 1) for s in timed]).finding(id, note=note)


def _row(change: Change) -> list[object]:
    metric = next(metric for metric in METRICS if metric.name == change.metric)
    low, high = change.interval or (0.0, 0.0)
    words = f"{100 * low:+.1f} to {100 * high:+.1f} points" if metric.is_share else f"{low:.2f} to {high:.2f} times"
    return [
        safe_name(change.name), safe_name(change.agent), metric.name.replace("-", " "), change.day,
        *(formatted(value, metric.kind) for value in (change.before, change.after)), words,
        change.n_before + change.n_after, change.n_after, "changed" if change.is_said else "no sure change",
    ]  # fmt: skip


UPGRADES_STUDY = Study(
    **declared("study", "upgrades") | {"queries": upgrades.QUERIES | _SQL},
    sliced=upgrades.SLICED,
    function=upgrades_study,
    context="product",
)
