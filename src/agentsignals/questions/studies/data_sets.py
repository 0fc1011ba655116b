"""The ten behavioural metrics of agent-traces by data set and by model, and where data sets differ most."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import msgspec

from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import DOMINANT, ONE_PLACE, bar, by, chart, count, ranked, table, tally
from agentsignals.questions.formatting import formatted, with_bound
from agentsignals.questions.question import Chart, Finding, Inputs, Kind, NoSessions, Outcome, Row, Study, Table
from agentsignals.questions.sql import BOUND, NAMED, PLACE
from agentsignals.redaction import redacted
from agentsignals.stats.agent_traces import FEWEST_SESSIONS, by_metric, pooled

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


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["inputs"]
    sets = by(rows, "place", "agent", "model")
    cells = [_Cell(place, agent, model, group) for (place, agent, model), group in sets.items()]
    apart: list[Row] = msgspec.json.decode(inputs.rows["variance"][0]["value"]) if inputs.rows["variance"] else []
    whole = inputs.rows["variance"][0] if inputs.rows["variance"] else {}
    tables = [
        _table("places", "repository or folder", [(cell.place, cell) for cell in cells], cells),
        _table("agents", "agent", [(cell.agent, cell) for cell in cells], cells),
        _table("models", "model", [(cell.model, cell) for cell in cells if cell.model], cells),
        _spread(apart, whole),
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
    return Outcome(findings, tables, [_chart(apart, whole)], limits)


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
        "data_sets.most_apart",
        "The metric that differs most between data sets",
        "data sets",
        f"{first['metric']}: standard deviation {first['cv']:.0%} of the mean{more}",
        unit="metric",
        signals=(_VARIANCE, _INPUTS),
    )


def _table(name: str, label: str, named: list[tuple[str, _Cell]], everything: list[_Cell]) -> Table:
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
        f"Behaviour by {label}",
        f"name {label}:{'text' if name == 'agents' else 'code'} | n sessions:count | {metrics}"
        + (" | largest largest place:share | warning says little because" if with_places else ""),
        rows,
        n=sum(n for _, n, _ in large),
        of="sessions whose place is known",
        evidence=[[session_id for cell in of_set for session_id in cell.sessions] for _, _, of_set in large],
        note=f"Of {FEWEST_SESSIONS} sessions and more. Calls a prompt and events are medians, cost is a mean, the"
        f" shares are sums over sums; openings: of another kind than the commonest of these. A dash: no value;"
        f" >= is a lower bound.{more}",
    )


def _spread(apart: list[Row], whole: Row) -> Table:
    return table(
        "data_sets.variance",
        "How much data sets differ, by metric",
        "metric | robust robust deviation, of the median:share | cv standard deviation, of the mean:share"
        " | n data sets with a value:count",
        [[METRICS[r["metric"]][0], r["robust_cv"], r["cv"], r["n_datasets"]] for r in apart],
        n=int(whole.get("sets") or 0),
        of="data sets",
        evidence=_OF_SETS,
        note="Robust: the median absolute deviation, scaled to a standard deviation. The most different first.",
    )


def _chart(apart: list[Row], whole: Row) -> Chart | None:
    rows: list[Row] = []
    for r in apart:
        if r["robust_cv"] is not None:
            name, share = METRICS[r["metric"]][0], formatted(r["robust_cv"], "share")
            tip = f"{name}: {share} of the median, {r['n_datasets']:,} data sets"
            rows.append(bar(name, r["robust_cv"], tip, evidence=_OF_SETS))
    spec = bars(rows, "robust deviation, of the median", "share")
    n = whole.get("sets") or 0
    return chart("data_sets.spread", "How much data sets differ", rows, spec, n=n, of="data sets")


STUDY = Study(
    name="data_sets",
    order=350,
    title="Behaviour by data set",
    question="Where do repositories, agents and models differ in the ten measures of agent-traces?",
    queries={
        "inputs": f"SELECT session_id, agent, model, {PLACE}, {BOUND}, value FROM {NAMED} JOIN sessions"
        f" USING (session_id) WHERE signal = '{_INPUTS}' AND absent IS NULL ORDER BY session_id",
        "variance": "SELECT value, CAST(detail->>'data_sets' AS BIGINT) AS sets"
        f" FROM {NAMED} WHERE signal = '{_VARIANCE}' AND absent IS NULL",
    },
    function=_outcome,
    context="product",
)
