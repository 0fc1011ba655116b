"""Which models were used, and how little that says about them (agent-traces's warning)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import dots
from agentsignals.questions.estimates import (
    DOMINANT,
    INTERVAL_NOTE,
    ONE_PLACE,
    Estimate,
    by,
    chart,
    clustered_share,
    count,
    table,
)
from agentsignals.questions.formatting import formatted, with_bound
from agentsignals.questions.question import Chart, Finding, Inputs, Outcome, Row, Study, Table

ENOUGH_CALLS = 100
ENOUGH_SESSIONS = 10
_MODELS = "FROM steps WHERE thread = 'main' AND model IS NOT NULL"


class _Model:
    """A model's sessions, where they lie, its calls."""

    def __init__(self, name: str, steps: list[Row], calls: list[Row], places: dict[str, str]) -> None:
        self.name = name
        self.sessions = len(steps)
        self.ids = [row["session_id"] for row in steps]
        self.steps = sum(row["steps"] for row in steps)
        self.output = sum(row["output"] or 0 for row in steps)
        self.is_low = any(row["low"] for row in steps)
        self.places = Counter(place for row in steps if (place := row["place"]))
        self.failed: Estimate = clustered_share(
            ((row["session_id"], row["failed"], row["answered"]) for row in calls), places
        )

    @property
    def largest(self) -> float | None:
        """Share of its sessions that lie in one place; None when no place is known."""
        return max(self.places.values()) / self.sessions if self.places else None

    @property
    def is_narrow(self) -> bool:
        """Whether one place has most of its sessions."""
        return self.largest is not None and self.largest > DOMINANT

    @property
    def warning(self) -> str:
        """Why its figures say little; empty when nothing speaks against them."""
        reasons = {
            "few sessions": self.sessions < ENOUGH_SESSIONS,
            "few calls": self.failed.n < ENOUGH_CALLS,
            ONE_PLACE: self.is_narrow,
        }
        return ", ".join(reason for reason, holds in reasons.items() if holds)


def _outcome(inputs: Inputs) -> Outcome:
    calls = by(inputs.rows["calls"], "model")
    places = inputs.places
    models = [
        _Model(name, rows, calls.get(name, []), places) for name, rows in by(inputs.rows["steps"], "model").items()
    ]
    models.sort(key=lambda m: (-m.sessions, m.name))
    return Outcome(_findings(inputs, models), [_table(models)], [_chart(models)], _limits(models))


def _findings(inputs: Inputs, models: list[_Model]) -> list[Finding]:
    sessions = inputs.rows["sessions"]
    answered = {row["session_id"] for row in inputs.rows["steps"]}
    places = Counter(row["place"] for row in sessions)
    unplaced = places.pop(None, 0)
    placed = sum(places.values())
    most = max(places, key=lambda place: (places[place], place), default=None)
    largest = places[most] if most is not None else 0
    of_largest = [(row["session_id"], row["place"] == most, 1) for row in sessions if row["place"] is not None]
    return [
        count(len(models), len(answered), evidence=answered).finding(
            "models.count",
            "Models used",
            "sessions that name a model",
            "as the traces write them: one model may have several names",
            unit="models",
            sql=f"SELECT count(DISTINCT model) {_MODELS}",
        ),
        count(
            len(sessions) - len(answered),
            len(sessions),
            evidence=[(row["session_id"], row["session_id"] not in answered, 1) for row in sessions],
        ).finding(
            "models.unnamed",
            "Sessions that name no model with a model call",
            "sessions",
            unit="sessions",
            sql=f"SELECT (SELECT count(*) FROM sessions) - (SELECT count(DISTINCT session_id) {_MODELS})",
        ),
        count(largest / placed if placed else None, placed, "share", evidence=of_largest).finding(
            "models.largest_place",
            "Sessions that lie in the largest repository or folder",
            "sessions whose place is known",
            f"{len(places):,} places; {unplaced:,} sessions name none",
            unit="share of sessions",
        ),
    ]


def _table(models: list[_Model]) -> Table:
    rows: list[list[Any]] = [
        [
            *(m.name, m.sessions, len(m.places), m.largest, m.steps, with_bound(m.output or None, m.is_low)),
            *(int(m.failed.n), m.failed.value, *m.failed.ends, m.warning),
        ]
        for m in models
    ]
    return table(
        "models.used",
        "Models by sessions",
        "model:code | sessions:count | places:count | largest largest place:share | steps model calls:count"
        " | output output tokens:tokens | answered answered calls:count | rate of them failed:share | ends:share"
        " | warning says little because",
        rows,
        n=sum(m.steps for m in models),
        of="model calls",
        evidence=[m.ids for m in models],
        note="Main thread; >= is a lower bound. A session that changed its model counts for each; a place is a"
        f" repository or a folder. Few: under {ENOUGH_SESSIONS} sessions, under {ENOUGH_CALLS} answered calls;"
        " one place: more than half of the sessions.",
    )


def _chart(models: list[_Model]) -> Chart | None:
    rows: list[Row] = []
    for m in models:
        if m.failed.n >= ENOUGH_CALLS:
            failed = f"{formatted(m.failed.value, 'share')} of {m.failed.n:,.0f} calls failed"
            warning = f" ({m.warning})" if m.warning else ""
            tip = f"{m.name}: {failed}, {m.sessions:,} sessions, {len(m.places)} places{warning}"
            rows.append(m.failed.mark(m.name, tip))
    return chart(
        "models.errors",
        "Share of tool calls that failed, by model",
        rows,
        dots(rows, "share of answered calls"),
        n=sum(m.failed.n for m in models),
        of="answered calls",
        note=f"models with at least {ENOUGH_CALLS} answered calls; {INTERVAL_NOTE}; this is no ranking",
    )


def _limits(models: list[_Model]) -> list[str]:
    limits = [
        "This is no leaderboard of models. People chose the model for the task, and each model was used by few people:"
        " its figures are theirs as much as its own."
    ]
    narrow = sum(m.is_narrow for m in models)
    thin = sum(m.sessions < ENOUGH_SESSIONS for m in models)
    if narrow:
        limits.append(f"{narrow} of {len(models)} models have more than half of their sessions in one place.")
    if thin:
        limits.append(f"{thin} of {len(models)} models have fewer than {ENOUGH_SESSIONS} sessions.")
    return limits


STUDY = Study(
    name="models",
    order=330,
    title="Models",
    question="Which models were used?",
    queries={
        "sessions": sql.PLACED,
        "steps": f"SELECT steps.model AS model, session_id, {sql.PLACE},"
        " count(*) AS steps, sum(steps.output_tokens) AS output, any_value(visible_output_tokens) IS NOT NULL AS low"
        " FROM steps JOIN sessions USING (session_id)"
        " WHERE thread = 'main' AND steps.model IS NOT NULL GROUP BY ALL ORDER BY ALL",
        "calls": "SELECT steps.model AS model, session_id, count(*) FILTER (status IN ('ok', 'error')) AS answered,"
        " count(*) FILTER (status = 'error') AS failed FROM tool_calls JOIN steps USING (session_id, step)"
        " WHERE tool_calls.thread = 'main' AND steps.model IS NOT NULL GROUP BY steps.model, session_id ORDER BY ALL",
    },
    function=_outcome,
)
