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
    Estimate,
    bar,
    by,
    chart,
    clustered_share,
    count,
    pooled_finding,
    ranked,
    table,
    tally,
)
from agentsignals.questions.formatting import formatted, with_bound
from agentsignals.questions.label_shares import rules_recall_text
from agentsignals.questions.question import (
    EvidenceQuery,
    Finding,
    Inputs,
    Kind,
    NoSessions,
    Outcome,
    Row,
    Study,
    Table,
)
from agentsignals.questions.sql import BOUND, declared, read_queries
from agentsignals.redaction import redacted
from agentsignals.stats.agent_traces import FEWEST_SESSIONS, by_metric, pooled

_SQL = read_queries(__file__)

_ALL = "all agents"
_RATIO = "corpus.output_input_token_ratio"


_KEYS = ("autonomy", "errors", "recovery", "entropy", "events", "read_first", "cost", "output", "short", "pushback")
_BOUND = ("cost", "output")
"""Lower bounds where output is."""


def agents_study(inputs: Inputs) -> Outcome:
    # The most common opening of each agent and of all; of equally common ones the first by name.
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in inputs.rows["openings"]:
        counted[row["agent"]][row["label"]] += row["n"]
        counted[_ALL][row["label"]] += row["n"]
    agents, openings = (
        inputs.rows["agents"],
        {agent: ranked(names)[0][0].replace("_", " ") for agent, names in counted.items()},
    )
    metrics = table(
        "agents.metrics",
        [
            [
                row["agent"],
                row["n"],
                *[with_bound(row[key], key == "pushback" or (key in _BOUND and row["low"])) for key in _KEYS],
                openings.get(row["agent"]),
            ]
            for row in agents
            if row["n"]
        ],
        n=max((row["n"] for row in agents), default=0),
        evidence=[
            EvidenceQuery(_SQL["agents_rows"]["of_agent"], {"agent": row["agent"], "all": _ALL})
            for row in agents
            if row["n"]
        ],
        note="Calls a prompt, variety, events and cost are medians of sessions; the shares are sums over sums. A dash:"
        " no session has a value; >= is a lower bound: of cost and output, for output is logged in mid-stream; of"
        f" prompts that object, for words are a flag and no share ({rules_recall_text()}).",
    )
    low = sum(row["estimated"] is not None for row in inputs.rows["values"])
    ratio = pooled_finding(
        inputs,
        "agents.output_input",
        note=f"at least: {low:,} sessions log output in mid-stream" if low else "",
        is_share=False,
        kind="share",
        at_least=low > 0,
    )
    caveat = "Agents were used by different people for different tasks: a difference is no effect of the agent."
    return Outcome([ratio], [metrics], [], [caveat])


AGENTS_STUDY = Study(
    **declared("study", "agents"),
    queries={**_SQL["agents"], "values": sql.values(_RATIO, detail=(*sql.RATIO, "estimated")), "absent": sql.ABSENT},
    function=agents_study,
)


# -- Models

ENOUGH_CALLS = 100
ENOUGH_SESSIONS = 10


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
        """More than half of its sessions are of one place."""
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


def models_study(inputs: Inputs) -> Outcome:
    calls = by(inputs.rows["calls"], "model")
    places = inputs.places
    models = [
        _Model(name, rows, calls.get(name, []), places) for name, rows in by(inputs.rows["steps"], "model").items()
    ]
    models.sort(key=lambda m: (-m.sessions, m.name))
    rows: list[list[Any]] = [
        [
            *(m.name, m.sessions, len(m.places), m.largest, m.steps, with_bound(m.output or None, m.is_low)),
            *(int(m.failed.n), m.failed.value, *m.failed.ends, m.warning),
        ]
        for m in models
    ]
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
    sessions = inputs.rows["sessions"]
    answered = {row["session_id"] for row in inputs.rows["steps"]}
    models_places = Counter(row["place"] for row in sessions)
    unplaced = models_places.pop(None, 0)
    placed = sum(models_places.values())
    most = max(models_places, key=lambda place: (models_places[place], place), default=None)
    largest = models_places[most] if most is not None else 0
    of_largest = [(row["session_id"], row["place"] == most, 1) for row in sessions if row["place"] is not None]
    models_rows: list[Row] = []
    for models_m in models:
        if models_m.failed.n >= ENOUGH_CALLS:
            failed = f"{formatted(models_m.failed.value, 'share')} of {models_m.failed.n:,.0f} calls failed"
            warning = f" ({models_m.warning})" if models_m.warning else ""
            tip = f"{models_m.name}: {failed}, {models_m.sessions:,} sessions, {len(models_m.places)} places{warning}"
            models_rows.append(models_m.failed.mark(models_m.name, tip))
    return Outcome(
        [
            count(len(models), len(answered), evidence=answered).finding("models.count"),
            count(
                len(sessions) - len(answered),
                len(sessions),
                evidence=[(row["session_id"], row["session_id"] not in answered, 1) for row in sessions],
            ).finding("models.unnamed"),
            count(largest / placed if placed else None, placed, "share", evidence=of_largest).finding(
                "models.largest_place", note=f"{len(models_places):,} places; {unplaced:,} sessions name none"
            ),
        ],
        [
            table(
                "models.used",
                rows,
                n=sum(m.steps for m in models),
                evidence=[m.ids for m in models],
                note="Main thread; >= is a lower bound. A session that changed its model counts for each; a place is a"
                f" repository or a folder. Few: under {ENOUGH_SESSIONS} sessions, under {ENOUGH_CALLS} answered calls;"
                " one place: more than half of the sessions.",
            )
        ],
        [
            chart(
                "models.errors",
                models_rows,
                dots(models_rows, "share of answered calls"),
                n=sum(models_m.failed.n for models_m in models),
                note=f"models with at least {ENOUGH_CALLS} answered calls; {INTERVAL_NOTE}; this is no ranking",
            )
        ],
        limits,
    )


MODELS_STUDY = Study(
    **declared("study", "models"), queries={**_SQL["models"], "sessions": sql.PLACED}, function=models_study
)


# -- Data sets

_INPUTS, _VARIANCE = "corpus.metric_inputs", "corpus.cross_dataset_variance[]"
METRICS: dict[str, tuple[str, Kind]] = {
    "autonomy_ratio": ("calls a prompt", "number"),
    "error_rate": ("failed calls", "share"),
    "tool_mix_entropy": ("tool variety, bits", "number"),
    "median_session_length_events": ("events a session", "number"),
    "read_before_edit_rate": ("edits of known files", "share"),
    "cost_per_session": ("cost a session", "usd"),
    "first_message_pattern": ("openings of another kind", "share"),
    "output_input_token_ratio": ("output/input tokens", "share"),
    "share_messages_le_20_chars": ("messages ≤20 characters", "share"),
    "neg_pct_turn5": ("NEGATIVE at turn 5", "share"),
}
_OF_OUTPUT = ("cost_per_session", "output_input_token_ratio")
"""Lower bounds where output is logged in mid-stream."""
_MOST = 20

_OF_SETS = NoSessions("It counts data sets; the table of repositories and folders opens each.")


def data_sets(inputs: Inputs) -> Outcome:
    rows = inputs.rows["inputs"]
    sets = by(rows, "place", "agent", "model")
    cells = [_Cell(place, agent, model, group) for (place, agent, model), group in sets.items()]
    apart: list[Row] = msgspec.json.decode(inputs.rows["variance"][0]["value"]) if inputs.rows["variance"] else []
    whole = inputs.rows["variance"][0] if inputs.rows["variance"] else {}
    tables = [
        _data_sets_table("places", "repository or folder", [(cell.place, cell) for cell in cells], cells),
        _data_sets_table("agents", "agent", [(cell.agent, cell) for cell in cells], cells),
        _data_sets_table("models", "model", [(cell.model, cell) for cell in cells if cell.model], cells),
        table(
            "data_sets.variance",
            [[METRICS[r["metric"]][0], r["robust_cv"], r["cv"], r["n_datasets"]] for r in apart],
            n=int(whole.get("sets") or 0),
            evidence=_OF_SETS,
        ),
    ]
    findings = [_most_apart(apart, whole)] if apart else []
    limits = [
        f"A data set is a repository or folder, here those of {FEWEST_SESSIONS} sessions and more: in agent-traces"
        " it is what one person shared. Another cut, another answer.",
        "Metrics by model are no leaderboard: people chose the model and the task; a model used in one place is that"
        " place.",
    ]
    if rows and not apart:
        limits.append("Fewer than three data sets are large enough to compare them.")
    elif "neg_pct_turn5" not in {row["metric"] for row in apart}:
        limits.append("Negativity at turn 5 is not among the metrics: agentsignals label sentiment makes the labels.")
    sets_rows: list[Row] = []
    for r in apart:
        if r["robust_cv"] is not None:
            name, share = METRICS[r["metric"]][0], formatted(r["robust_cv"], "share")
            tip = f"{name}: {share} of the median, {r['n_datasets']:,} data sets"
            sets_rows.append(bar(name, r["robust_cv"], tip, evidence=_OF_SETS))
    spec = bars(sets_rows, "robust deviation, of the median", "share")
    n = whole.get("sets") or 0
    return Outcome(findings, tables, [chart("data_sets.spread", sets_rows, spec, n=n)], limits)


class _Cell:
    """The sessions of one place, agent and model: the sets are made of them, so that each session is added up once."""

    def __init__(self, place: str, agent: str, model: str | None, rows: list[Row]) -> None:
        self.place, self.agent, self.model = place, agent, model
        self.sessions = [row["session_id"] for row in rows]
        self.low = any(row[BOUND] is not None for row in rows)
        self.figures = pooled([msgspec.json.decode(row["value"]) for row in rows])


def _most_apart(apart: list[Row], whole: Row) -> Finding:
    first = apart[0]
    more = f"; {first['robust_cv']:.0%} of its median, robustly" if first["robust_cv"] is not None else ""
    return count(METRICS[first["metric"]][0], int(whole["sets"]), "text", evidence=_OF_SETS).finding(
        "data_sets.most_apart", note=f"{first['metric']}: standard deviation {first['cv']:.0%} of the mean{more}"
    )


def _data_sets_table(name: str, label: str, named: list[tuple[str, _Cell]], everything: list[_Cell]) -> Table:
    sets: defaultdict[str, list[_Cell]] = defaultdict(list)
    sizes: Counter[str] = Counter()
    for key, cell in named:
        sets[key].append(cell)
        sizes[key] += len(cell.sessions)
    large = [(key, n, sets[key]) for key, n in ranked(sizes) if n >= FEWEST_SESSIONS][:_MOST]
    figures = ([cell.figures for cell in cells] for _, _, cells in large)
    values = by_metric(list(figures), [cell.figures for cell in everything]) if large else {}
    with_places = name != "places"
    rows: list[list[Any]] = []
    for at, (set_name, n, of_set) in enumerate(large):
        largest = max(tally([{"place": cell.place, "n": len(cell.sessions)} for cell in of_set], "place").values()) / n
        place = [largest, ONE_PLACE if largest > DOMINANT else ""] if with_places else []
        low = any(cell.low for cell in of_set)
        cells = (with_bound(values[metric][at], low and metric in _OF_OUTPUT) for metric in METRICS)
        rows.append([redacted(set_name), n, *cells, *place])
    metrics = " | ".join(f"{metric} {words}:{kind}" for metric, (words, kind) in METRICS.items())
    more = f" {len(sets) - len(large):,} others are not shown." if len(sets) > len(large) else ""
    return table(
        f"data_sets.{name}",
        rows,
        title=f"Behaviour by {label}",
        header=f"name {label}:{'text' if name == 'agents' else 'code'} | n sessions:count | {metrics}"
        + (" | largest largest place:share | warning says little because" if with_places else ""),
        n=sum(n for _, n, _ in large),
        of="sessions whose place is known",
        evidence=[[session_id for cell in of_set for session_id in cell.sessions] for _, _, of_set in large],
        note=f"Of {FEWEST_SESSIONS} sessions and more. Calls a prompt and events are medians, cost is a mean, the"
        f" shares are sums over sums; openings: of another kind than the commonest of these. A dash: no value;"
        f" >= is a lower bound.{more}",
    )


DATA_SETS_STUDY = Study(**declared("study", "data_sets"), queries=_SQL["data_sets"], function=data_sets)
