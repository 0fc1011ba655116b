"""Which models were used, and how little that says about them (agent-traces's warning)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from agentsignals.analysis.charts import dots
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import of_parts
from agentsignals.analysis.places import Places
from agentsignals.analysis.study import (
    Chart,
    Column,
    Finding,
    Inputs,
    Outcome,
    Row,
    Study,
    Table,
    again,
    again_in_report,
)
from agentsignals.stats.estimates import share_interval

ENOUGH_CALLS = 100
ENOUGH_SESSIONS = 10
DOMINANT = 0.5
"""A share of one place or person from which a figure is theirs rather than the model's."""
_MODELS = "FROM steps WHERE thread = 'main' AND model IS NOT NULL"


class _Model:
    """What is known of one model: its sessions, where they lie, its calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps = 0
        self.output = 0
        self.places: Counter[str] = Counter()
        self.sessions = 0
        self.calls: list[tuple[float, float]] = []

    @property
    def largest(self) -> float | None:
        """Share of its sessions that lie in one place; None when no place is known."""
        return max(self.places.values()) / self.sessions if self.places else None

    @property
    def warning(self) -> str:
        """Why its figures say little; empty when nothing speaks against them."""
        told_why = []
        if self.sessions < ENOUGH_SESSIONS:
            told_why.append("few sessions")
        if sum(n for _, n in self.calls) < ENOUGH_CALLS:
            told_why.append("few calls")
        if self.largest is not None and self.largest > DOMINANT:
            told_why.append("one place")
        return ", ".join(told_why)


def _outcome(inputs: Inputs) -> Outcome:
    models = _models(inputs)
    chart = _chart(models)
    return Outcome(_findings(inputs, models), [_table(models)], [chart] if chart else [], _limits(models))


def _models(inputs: Inputs) -> list[_Model]:
    places = Places(inputs.rows["sessions"])
    models: dict[str, _Model] = {}
    for row in inputs.rows["steps"]:
        model = models.setdefault(row["model"], _Model(row["model"]))
        model.steps += row["steps"]
        model.output += row["output"] or 0
        model.sessions += 1
        place = places.of(row)
        if place:
            model.places[place] += 1
    calls: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in inputs.rows["calls"]:
        calls[row["model"]].append((row["failed"], row["answered"]))
    for name, model in models.items():
        model.calls = calls[name]
    return sorted(models.values(), key=lambda m: (-m.sessions, m.name))


def _findings(inputs: Inputs, models: list[_Model]) -> list[Finding]:
    sessions = inputs.rows["sessions"]
    answered = {row["session_id"] for row in inputs.rows["steps"]}
    where = Places(sessions)
    places = Counter(where.of(row) for row in sessions)
    unplaced = places.pop(None, 0)
    placed = sum(places.values())
    largest = max(places.values(), default=0)
    return [
        Finding(
            id="models.count",
            title="Models used",
            value=len(models),
            unit="models",
            n=len(answered),
            of="sessions that name a model",
            command=again(f"SELECT count(DISTINCT model) {_MODELS}"),
            note="as the traces write them: one model may have several names",
        ),
        Finding(
            id="models.unnamed",
            title="Sessions that name no model with a model call",
            value=len(sessions) - len(answered),
            unit="sessions",
            n=len(sessions),
            of="sessions",
            command=again(f"SELECT (SELECT count(*) FROM sessions) - (SELECT count(DISTINCT session_id) {_MODELS})"),
        ),
        Finding(
            id="models.largest_place",
            title="Sessions that lie in the largest repository or folder",
            value=largest / placed if placed else None,
            unit="share of sessions",
            kind="share",
            n=placed,
            of="sessions whose place is known",
            command=again_in_report("models"),
            note=f"{len(places):,} places; {unplaced:,} sessions name none",
        ),
    ]


def _table(models: list[_Model]) -> Table:
    rows: list[list[Any]] = []
    for m in models:
        low, high = share_interval(m.calls) or (None, None)
        answered = int(sum(n for _, n in m.calls))
        rows.append(
            [
                *(m.name, m.sessions, len(m.places), m.largest, m.steps, m.output or None),
                *(answered, of_parts(m.calls), low, high, m.warning),
            ]
        )
    return Table(
        id="models.used",
        title="Models by sessions",
        columns=(
            Column("model", "model", "code"),
            Column("sessions", "sessions", "count"),
            Column("places", "places", "count"),
            Column("largest", "largest place", "share"),
            Column("steps", "model calls", "count"),
            Column("output", "output tokens", "tokens"),
            Column("answered", "answered calls", "count"),
            Column("rate", "of them failed", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
            Column("warning", "says little because"),
        ),
        rows=rows,
        n=sum(m.steps for m in models),
        of="model calls",
        note="Main thread. A session that changed its model counts for each; a place is a repository or a folder."
        f" Few: under {ENOUGH_SESSIONS} sessions, under {ENOUGH_CALLS} answered calls; one place: more than half of the"
        " sessions.",
    )


def _chart(models: list[_Model]) -> Chart | None:
    rows: list[Row] = []
    for m in models:
        answered = int(sum(n for _, n in m.calls))
        value = of_parts(m.calls)
        if answered < ENOUGH_CALLS or value is None:
            continue
        low, high = share_interval(m.calls) or (None, None)
        tip = (
            f"{m.name}: {formatted(value, 'share')} of {answered:,} calls failed,"
            f" {m.sessions:,} sessions, {len(m.places)} places" + (f" ({m.warning})" if m.warning else "")
        )
        rows.append({"name": m.name, "value": value, "low": low, "high": high, "tip": tip})
    if not rows:
        return None
    return Chart(
        id="models.errors",
        title="Share of tool calls that failed, by model",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of answered calls"),
        n=int(sum(n for m in models for _, n in m.calls)),
        of="answered calls",
        note=f"models with at least {ENOUGH_CALLS} answered calls; the line is the 95% interval; this is no ranking",
    )


def _limits(models: list[_Model]) -> list[str]:
    limits = [
        "This is no leaderboard of models. People chose the model for the task, and each model was used by few people:"
        " its figures are theirs as much as its own."
    ]
    narrow = [m.name for m in models if m.largest is not None and m.largest > DOMINANT]
    thin = [m for m in models if m.sessions < ENOUGH_SESSIONS]
    if narrow:
        limits.append(f"{len(narrow)} of {len(models)} models have more than half of their sessions in one place.")
    if thin:
        limits.append(f"{len(thin)} of {len(models)} models have fewer than {ENOUGH_SESSIONS} sessions.")
    return limits


STUDY = Study(
    name="models",
    place=330,
    title="Models",
    question="Which models were used?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "steps": "SELECT steps.model AS model, session_id, any_value(repo) AS repo, any_value(cwd) AS cwd,"
        " count(*) AS steps, sum(steps.output_tokens) AS output FROM steps JOIN sessions USING (session_id)"
        " WHERE thread = 'main' AND steps.model IS NOT NULL GROUP BY steps.model, session_id ORDER BY ALL",
        "calls": "SELECT steps.model AS model, session_id, count(*) FILTER (status IN ('ok', 'error')) AS answered,"
        " count(*) FILTER (status = 'error') AS failed FROM tool_calls JOIN steps USING (session_id, step)"
        " WHERE tool_calls.thread = 'main' AND steps.model IS NOT NULL GROUP BY steps.model, session_id ORDER BY ALL",
    },
    function=_outcome,
)
