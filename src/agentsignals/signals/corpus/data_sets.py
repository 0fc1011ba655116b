"""Which metrics of agent-traces differ most from one data set to the next: a place, repository or folder, is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentsignals.catalog import Measured, Row, signal
from agentsignals.model import Absent
from agentsignals.stats.corpus_metrics import (
    FEWEST_SESSIONS,
    FEWEST_SETS,
    Figures,
    by_metric,
    commonest_pattern,
    pooled,
    spread,
)
from agentsignals.stats.sentiment_counts import NEGATIVE, PLATEAU
from agentsignals.views.evidence import Evidence
from agentsignals.views.history import place_of
from agentsignals.views.session import SessionView


def _by_place(sessions: Sequence[Figures]) -> dict[str, list[Figures]]:
    sets: dict[str, list[Figures]] = {}
    for session in sessions:
        sets.setdefault(session["place"], []).append(session)
    return sets


def _pooled(sessions: Sequence[Figures]) -> list[Figures]:
    """One for each place."""
    return [{"place": place, **pooled(those)} for place, those in sorted(_by_place(sessions).items())]


@signal(
    "corpus.metric_inputs",
    pool=_pooled,
    type="obj",
    unit="per metric",
    version=2,
    origin="agentsignals",
    source="derived",
    priority="P2",
    pitfalls="Null where the session has no such value.",
    why="What corpus.cross_dataset_variance puts together by data set.",
)
def metric_inputs(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    autonomy_ratio: float | Absent,
    session_length_events: int,
    read_before_edit_rate: float | Absent,
    session_cost_usd: float | Absent,
    first_message_pattern: str | Absent,
    short_messages: dict[str, int] | Absent,
    sentiment_messages: dict[str, dict[str, Any]] | Absent,
) -> Figures | Absent:
    """The session's part in each metric of its data set, and the place that this is."""
    place = place_of(view.session.repo, view.session.cwd)
    if place is None:
        return Absent("not_applicable", "repo_unknown")
    why.denominator(view.turns)
    short = None if isinstance(short_messages, Absent) else short_messages
    return {
        "place": place,
        "autonomy": _none_if_absent(autonomy_ratio),
        "errors": [len(view.errors), view.n_answered],
        "tools": dict(Counter([c.name for c in view.calls])),
        "events": session_length_events,
        "reads": _none_if_absent(read_before_edit_rate),
        "edits": len(view.edit_calls) - len([c for c in view.rejected if c.class_ == "edit"]),
        "cost": _none_if_absent(session_cost_usd),
        "pattern": _none_if_absent(first_message_pattern),
        "tokens": [view.usage.output_tokens or 0, view.usage.all_input],
        "short": [short["le_20"], short["n"]] if short else [0, 0],
        "felt": {} if isinstance(sentiment_messages, Absent) else {k: _felt(v) for k, v in sentiment_messages.items()},
    }


def _felt(judged: dict[str, Any]) -> list[int]:
    """Of one labeller: how many labels, when the last was given, and of turn 5 how many are NEGATIVE and how many there
    are."""
    labelled = [(turn, value) for turn, value, _ in judged["messages"] if value is not None]
    fifth = [value for turn, value in labelled if turn == PLATEAU]
    return [len(labelled), judged["at"], fifth.count(NEGATIVE), len(fifth)]


class Variance(Row):
    """How much a metric differs between data sets, as a share of its mean (cv) or of its median (robust_cv)."""

    metric: str
    cv: float
    robust_cv: float | None
    n_datasets: int


@signal(
    "corpus.cross_dataset_variance[]",
    type="list[obj]",
    unit="rows",
    version=2,
    level="corpus",
    origin="agent-traces",
    source="derived",
    priority="P1",
    pitfalls="Raw variances are not comparable across units; the seed does not say which it means. Data sets of fewer"
    " than five sessions are left out; neg_pct_turn5 needs labels, and is of the labeller with most of them.",
    why="The first row is the question of agent-traces: where do data sets differ most?",
)
def cross_dataset_variance(metric_inputs: Sequence[Figures]) -> Measured | Absent:
    """For each behavioural metric of agent-traces the coefficient of variation over data sets, plain and robust; the
    most
    different first."""
    sets = _pooled(metric_inputs)
    large = [[figures] for figures in sets if figures["sessions"] >= FEWEST_SESSIONS]
    if len(large) < FEWEST_SETS:
        return Absent("not_computable", "fewer_than_3_data_sets")
    rows: list[Variance] = []
    left_out: list[str] = []
    for metric, each in by_metric(large, sets).items():
        values = [v for v in each if v is not None]
        apart = spread(values)
        if apart is None:
            left_out.append(metric)
        else:
            rows.append(Variance(metric, *apart, len(values)))
    rows.sort(key=lambda row: (row.robust_cv is None, -(row.robust_cv or 0.0), row.metric))
    mode = commonest_pattern([figures for (figures,) in large])
    return Measured(rows, {"data_sets": len(large), "left_out": left_out, "first_message_pattern": mode})


def _none_if_absent(value: Any) -> Any:
    return None if isinstance(value, Absent) else value
