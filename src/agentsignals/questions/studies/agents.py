"""Behaviour by agent, by model and by data set, in the ten measures of agent-traces."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import msgspec

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, dots
from agentsignals.questions.estimates import (
    DOMINANT,
    INTERVAL_NOTE,
    ONE_PLACE,
    bar,
    by,
    chart,
    clustered_share,
    count,
    pooled_finding,
    ranked,
    table,
)
from agentsignals.questions.label_shares import rules_recall_text
from agentsignals.questions.question import (
    EvidenceQuery,
    Inputs,
    Kind,
    NoSessions,
    Outcome,
    Row,
    Study,
    Table,
    formatted,
    times,
    with_bound,
)
from agentsignals.questions.sql import BOUND, declared, read_queries
from agentsignals.redaction import redacted
from agentsignals.stats.agent_traces import FEWEST_SESSIONS, by_metric, pooled

_SQL = read_queries(__file__)

_ALL = "all agents"
_KEYS = ("autonomy", "errors", "recovery", "entropy", "events", "read_first", "cost", "output", "short", "pushback")
_BOUND = ("cost", "output")
"""Lower bounds where output is."""


def agents_study(inputs: Inputs) -> Outcome:
    # The most common opening of each agent and of all; of equally common ones the first by name.
    openings: dict[str, Counter[str]] = defaultdict(Counter)
    for row in inputs.rows["openings"]:
        openings[row["agent"]][row["label"]] += row["n"]
        openings[_ALL][row["label"]] += row["n"]
    rows: list[list[Any]] = []
    behind = []
    for row in inputs.rows["agents"]:
        if row["n"]:
            agent, opening = row["agent"], next(iter(ranked(openings[row["agent"]])), (None, 0))[0]
            cells = (with_bound(row[key], key == "pushback" or (key in _BOUND and row["low"])) for key in _KEYS)
            rows.append([agent, row["n"], *cells, opening and opening.replace("_", " ")])
            behind.append(EvidenceQuery(_SQL["agents_rows"]["of_agent"], {"agent": agent, "all": _ALL}))
    metrics = table(
        "agents.metrics",
        rows,
        n=max((row[1] for row in rows), default=0),
        evidence=behind,
        note="Calls per prompt, entropy, events and cost are medians over sessions; shares are pooled. A dash means"
        f" no value; >= marks a lower bound. Pushback is found by {rules_recall_text()}.",
    )
    low = sum(row["estimated"] is not None for row in inputs.rows["values"])
    note = f"lower bound: output tokens are under-reported in {times(low, 'session')}" if low else ""
    ratio = pooled_finding(inputs, "agents.output_input", note=note, is_share=False, kind="share", at_least=low > 0)
    caveat = "Different people used these agents for different tasks, so a difference is not an effect of the agent."
    return Outcome([ratio], [metrics], [], [caveat])


AGENTS_STUDY = Study(
    **declared(
        "study",
        "agents",
        values=sql.values("corpus.output_input_token_ratio", detail=(*sql.RATIO, "estimated")),
        absent=sql.ABSENT,
    ),
    function=agents_study,
)


# -- Models

ENOUGH_CALLS = 100
ENOUGH_SESSIONS = 10


def models_study(inputs: Inputs) -> Outcome:
    calls, steps = by(inputs.rows["calls"], "model"), by(inputs.rows["steps"], "model")
    rows: list[list[Any]] = []
    marks: list[Row] = []
    behind = []
    narrow = thin = n_calls = 0
    for name, n in ranked({name: len(of_model) for name, of_model in steps.items()}):
        of_model = steps[name]
        places = Counter(place for row in of_model if (place := row["place"]))
        largest = max(places.values()) / n if places else None
        parts = ((row["session_id"], row["failed"], row["answered"]) for row in calls.get(name, ()))
        failed = clustered_share(parts, inputs.places)
        n_calls += int(failed.n)
        # Why its figures say little.
        reasons = {
            "few sessions": n < ENOUGH_SESSIONS,
            "few calls": failed.n < ENOUGH_CALLS,
            ONE_PLACE: largest is not None and largest > DOMINANT,
        }
        warning = ", ".join(reason for reason, holds in reasons.items() if holds)
        thin, narrow = thin + reasons["few sessions"], narrow + reasons[ONE_PLACE]
        output = with_bound(sum(row["output"] or 0 for row in of_model) or None, any(row["low"] for row in of_model))
        used = [name, n, len(places), largest, sum(row["steps"] for row in of_model), output]
        rows.append([*used, int(failed.n), failed.value, *failed.ends, warning])
        behind.append([row["session_id"] for row in of_model])
        if failed.n >= ENOUGH_CALLS:
            share = f"{formatted(failed.value, 'share')} of {failed.n:,.0f} calls failed"
            size = f"{times(n, 'session')}, {times(len(places), 'project')}"
            tip = f"{name}: {share}, {size}{f' ({warning})' if warning else ''}"
            marks.append(failed.mark(name, tip))
    sessions = inputs.rows["sessions"]
    answered = {row["session_id"] for row in inputs.rows["steps"]}
    unnamed = [(row["session_id"], row["session_id"] not in answered, 1) for row in sessions]
    held = Counter(row["place"] for row in sessions)
    unplaced = held.pop(None, 0)
    n_placed = held.total()
    most = max(held, key=lambda place: (held[place], place), default=None)
    largest = held[most] / n_placed if most is not None else None
    of_largest = [(row["session_id"], row["place"] == most, 1) for row in sessions if row["place"] is not None]
    note = f"{times(len(held), 'project')}; sessions without one: {unplaced:,}"
    findings = [
        count(len(rows), len(answered), evidence=answered).finding("models.count"),
        count(len(sessions) - len(answered), len(sessions), evidence=unnamed).finding("models.unnamed"),
        count(largest, n_placed, "share", evidence=of_largest).finding("models.largest_place", note=note),
    ]
    by_model = table(
        "models.used",
        rows,
        n=sum(row[4] for row in rows),
        evidence=behind,
        note="Main thread; >= marks a lower bound. A session that changed its model counts for each. Few: under"
        f" {ENOUGH_SESSIONS} sessions or {ENOUGH_CALLS} answered calls; one project: it has more than half of the"
        " sessions.",
    )
    note = f"models with at least {ENOUGH_CALLS} answered calls; {INTERVAL_NOTE}; not a ranking"
    errors = chart("models.errors", marks, dots("share of answered calls"), n=n_calls, note=note)
    limits = [
        "Not a leaderboard. People chose the model for the task, and few people used each model, so figures depend on"
        " them too."
    ]
    if narrow:
        limits.append(f"{narrow} of {times(len(rows), 'model')} have more than half of their sessions in one project.")
    if thin:
        limits.append(
            f"{thin} of {times(len(rows), 'model')} have fewer than {ENOUGH_SESSIONS} sessions: read them with care."
        )
    return Outcome(findings, [by_model], [errors], limits)


MODELS_STUDY = Study(**declared("study", "models", sessions=sql.PLACED), function=models_study)


# -- Data sets

METRICS: dict[str, tuple[str, Kind]] = {
    "autonomy_ratio": ("calls per prompt", "number"),
    "error_rate": ("failed calls", "share"),
    "tool_mix_entropy": ("tool entropy, bits", "number"),
    "median_session_length_events": ("events per session", "number"),
    "read_before_edit_rate": ("edits after a read", "share"),
    "cost_per_session": ("cost per session", "usd"),
    "first_message_pattern": ("unusual first messages", "share"),
    "output_input_token_ratio": ("output/input tokens", "share"),
    "share_messages_le_20_chars": ("messages ≤20 characters", "share"),
    "neg_pct_turn5": ("NEGATIVE at turn 5", "share"),
}
_OF_OUTPUT = ("cost_per_session", "output_input_token_ratio")
"""Lower bounds where output is logged in mid-stream."""
_MOST = 20

_OF_SETS = NoSessions("Counted by dataset; the table of projects lists each.")


class _Cell:
    """The sessions of one place, agent and model: the sets are made of them, so that each session is added up once."""

    def __init__(self, place: str, agent: str, model: str | None, rows: list[Row]) -> None:
        self.place, self.agent, self.model = place, agent, model
        self.sessions = [row["session_id"] for row in rows]
        self.low = any(row[BOUND] is not None for row in rows)
        self.figures = pooled([msgspec.json.decode(row["value"]) for row in rows])


def data_sets(inputs: Inputs) -> Outcome:
    rows = inputs.rows["inputs"]
    cells = [_Cell(p, a, m, group) for (p, a, m), group in by(rows, "place", "agent", "model").items()]
    whole = inputs.rows["variance"][0] if inputs.rows["variance"] else {}
    n_sets = int(whole.get("sets") or 0)
    apart: list[Row] = msgspec.json.decode(whole["value"]) if whole else []
    shown = [[METRICS[r["metric"]][0], r["robust_cv"], r["cv"], r["n_datasets"]] for r in apart]
    tables = [
        _data_sets_table("place", "project", cells),
        _data_sets_table("agent", "agent", cells),
        _data_sets_table("model", "model", cells),
        table("data_sets.variance", shown, n=n_sets, evidence=_OF_SETS),
    ]
    findings = []
    if apart:
        first, (name, robust, cv, _) = apart[0], shown[0]
        more = f"; MAD {robust:.0%} of the median" if robust is not None else ""
        note = f"{first['metric']}: standard deviation {cv:.0%} of the mean{more}"
        most_apart = count(name, n_sets, "text", evidence=_OF_SETS)
        findings.append(most_apart.finding("data_sets.most_apart", note=note))
    limits = [
        f"A dataset here is a project with at least {FEWEST_SESSIONS} sessions. In agent-traces it is what one person"
        " shared. Another definition gives other figures.",
        "Metrics by model are not a leaderboard: people chose the model and the task.",
    ]
    if rows and not apart:
        limits.append("Fewer than three datasets are large enough to compare.")
    elif "neg_pct_turn5" not in {row["metric"] for row in apart}:
        limits.append("NEGATIVE at turn 5 is missing. Run `agentsignals labels label sentiment` to label messages.")
    marks = [
        bar(name, cv, f"{name}: {formatted(cv, 'share')} of the median, {n:,} datasets", evidence=_OF_SETS)
        for name, cv, _, n in shown
        if cv is not None
    ]
    spread = chart("data_sets.spread", marks, bars("MAD/median", "share"), n=n_sets)
    return Outcome(findings, tables, [spread], limits)


def _data_sets_table(key: str, label: str, everything: list[_Cell]) -> Table:
    """Return a table of large data sets by project, agent or model, with each metric."""
    sets: defaultdict[str, list[_Cell]] = defaultdict(list)
    for cell in everything:
        if (name := getattr(cell, key)) or key != "model":
            sets[name].append(cell)
    sizes = ranked({name: sum(len(cell.sessions) for cell in cells) for name, cells in sets.items()})
    large = [(name, n, sets[name]) for name, n in sizes if n >= FEWEST_SESSIONS][:_MOST]
    figures = [[cell.figures for cell in cells] for _, _, cells in large]
    values = by_metric(figures, [cell.figures for cell in everything]) if large else {}
    rows: list[list[Any]] = []
    for at, (name, n, cells) in enumerate(large):
        held: Counter[str] = Counter()
        for cell in cells:
            held[cell.place] += len(cell.sessions)
        largest, low = max(held.values()) / n, any(cell.low for cell in cells)
        shown = (with_bound(values[metric][at], low and metric in _OF_OUTPUT) for metric in METRICS)
        place = [] if key == "place" else [largest, ONE_PLACE if largest > DOMINANT else ""]
        rows.append([redacted(name), n, *shown, *place])
    metrics = " | ".join(f"{metric} {words}:{kind}" for metric, (words, kind) in METRICS.items())
    places = "" if key == "place" else " | largest largest project:share | warning caution"
    more = f" {len(sets) - len(large):,} others are not shown." if len(sets) > len(large) else ""
    return table(
        f"data_sets.{key}s",
        rows,
        title=f"Behaviour by {label}",
        header=f"name {label}:{'text' if key == 'agent' else 'code'} | n sessions:count | {metrics}{places}",
        n=sum(n for _, n, _ in large),
        of="sessions with a known project",
        evidence=[[session_id for cell in cells for session_id in cell.sessions] for _, _, cells in large],
        note=f"At least {FEWEST_SESSIONS} sessions each. Calls per prompt and events are medians, cost is a mean,"
        " shares are pooled. Unusual first messages are not of the most common kind. A dash means no value; >= marks"
        f" a lower bound.{more}",
    )


DATA_SETS_STUDY = Study(**declared("study", "data_sets"), function=data_sets)
