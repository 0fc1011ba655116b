"""The ten behavioural metrics of agent-traces by data set and by model, and where data sets differ most."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from agentsignals.analysis.charts import bars
from agentsignals.analysis.clusters import DOMINANT
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.study import (
    Chart,
    Column,
    Finding,
    Inputs,
    Kind,
    Outcome,
    Row,
    Study,
    Table,
    again_in_report,
)
from agentsignals.redaction import redacted
from agentsignals.stats.corpus_metrics import FEWEST_SESSIONS, Figures, by_metric

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
_MOST = 20


class _Set:
    """The sessions of one data set, agent or model."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sessions: list[Figures] = []

    @property
    def largest(self) -> float:
        """The share of its sessions in one place."""
        return max(Counter(session["place"] for session in self.sessions).values()) / len(self.sessions)


def _outcome(inputs: Inputs) -> Outcome:
    rows = [(row, msgspec.json.decode(row["value"])) for row in inputs.rows["inputs"]]
    apart: list[Row] = msgspec.json.decode(inputs.rows["variance"][0]["value"]) if inputs.rows["variance"] else []
    whole = inputs.rows["variance"][0] if inputs.rows["variance"] else {}
    everything = [figures for _, figures in rows]
    tables = [
        _table("places", "repository or folder", [(figures["place"], figures) for _, figures in rows], everything),
        _table("agents", "agent", [(row["agent"], figures) for row, figures in rows], everything),
        _table("models", "model", [(row["model"], f) for row, f in rows if row["model"]], everything),
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
    chart = _chart(apart, whole)
    return Outcome(findings, tables, [chart] if chart else [], limits)


def _most_apart(apart: list[Row], whole: Row) -> Finding:
    first = apart[0]
    more = f"; {first['robust_cv']:.0%} of its median, robustly" if first["robust_cv"] is not None else ""
    return Finding(
        id="data_sets.most_apart",
        title="The metric that differs most between data sets",
        value=METRICS[first["metric"]][0],
        unit="metric",
        kind="text",
        n=int(whole["sets"]),
        of="data sets",
        signals=(_VARIANCE, _INPUTS),
        command=again_in_report("data_sets"),
        note=f"{first['metric']}: standard deviation {first['cv']:.0%} of the mean{more}",
    )


def _table(name: str, label: str, named: list[tuple[str, Figures]], everything: list[Figures]) -> Table:
    sets: dict[str, _Set] = {}
    for key, figures in named:
        sets.setdefault(key, _Set(key)).sessions.append(figures)
    large = sorted(
        (data_set for data_set in sets.values() if len(data_set.sessions) >= FEWEST_SESSIONS),
        key=lambda entry: (-len(entry.sessions), entry.name),
    )[:_MOST]
    values = by_metric([data_set.sessions for data_set in large], everything) if large else {}
    with_places = name != "places"
    rows: list[list[Any]] = []
    for at, data_set in enumerate(large):
        place = [data_set.largest, "one place" if data_set.largest > DOMINANT else ""] if with_places else []
        rows.append(
            [redacted(data_set.name), len(data_set.sessions), *(values[metric][at] for metric in METRICS), *place]
        )
    more = f" {len(sets) - len(large):,} others are not shown." if len(sets) > len(large) else ""
    return Table(
        id=f"data_sets.{name}",
        title=f"Behaviour by {label}",
        columns=(
            Column("name", label, "text" if name == "agents" else "code"),
            Column("n", "sessions", "count"),
            *(Column(metric, words, kind) for metric, (words, kind) in METRICS.items()),
            *(
                (Column("largest", "largest place", "share"), Column("warning", "says little because"))
                if with_places
                else ()
            ),
        ),
        rows=rows,
        n=sum(len(data_set.sessions) for data_set in large),
        of="sessions whose place is known",
        note=f"Of {FEWEST_SESSIONS} sessions and more. Calls a prompt and events are medians, cost is a mean, the"
        f" shares are sums over sums; openings: of another kind than the commonest of these. A dash: no value.{more}",
    )


def _spread(apart: list[Row], whole: Row) -> Table:
    return Table(
        id="data_sets.variance",
        title="How much data sets differ, by metric",
        columns=(
            Column("metric", "metric"),
            Column("robust", "robust deviation, of the median", "share"),
            Column("cv", "standard deviation, of the mean", "share"),
            Column("n", "data sets with a value", "count"),
        ),
        rows=[[METRICS[r["metric"]][0], r["robust_cv"], r["cv"], r["n_datasets"]] for r in apart],
        n=int(whole.get("sets") or 0),
        of="data sets",
        note="Robust: the median absolute deviation, scaled to a standard deviation. The most different first.",
    )


def _chart(apart: list[Row], whole: Row) -> Chart | None:
    rows: list[Row] = [
        {
            "name": METRICS[r["metric"]][0],
            "value": r["robust_cv"],
            "tip": f"{METRICS[r['metric']][0]}: {formatted(r['robust_cv'], 'share')} of the median,"
            f" {r['n_datasets']:,} data sets",
        }
        for r in apart
        if r["robust_cv"] is not None
    ]
    if not rows:
        return None
    return Chart(
        id="data_sets.spread",
        title="How much data sets differ",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "robust deviation, of the median", "share"),
        n=int(whole["sets"]),
        of="data sets",
    )


STUDY = Study(
    name="data_sets",
    place=350,
    title="Behaviour by data set",
    question="Where do repositories, agents and models differ in the ten measures of agent-traces?",
    queries={
        "inputs": "SELECT session_id, agent, model, value FROM signals JOIN sessions USING (session_id) WHERE signal ="
        f" '{_INPUTS}' AND absent IS NULL ORDER BY session_id",
        "variance": "SELECT value, CAST(detail->>'data_sets' AS BIGINT) AS sets FROM signals WHERE signal ="
        f" '{_VARIANCE}' AND absent IS NULL",
    },
    function=_outcome,
    context="product",
)
