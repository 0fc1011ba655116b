"""Attempts of eval runs: what became of each, under which treatment. First attempts apart from retries (Agent
Signals)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agentsignals.analysis.charts import bars, dots
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import of_parts
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import Interval, share_interval

_LABEL, _LOCALIZED, _PRECISE = (
    "verification.patch_outcome_label",
    "behavior.localized_correct_file",
    "anticipation.first_tool_precision",
)
_TOLD = {
    "correct_patch": "correct",
    "partial_patch": "partial",
    "regressive_patch": "regressive",
    "no_effect_patch": "no effect",
    "unverifiable": "unverifiable",
}
_TESTS = (
    ("fail_to_pass_count", "fixed"),
    ("pass_to_fail_count", "broken"),
    ("pass_to_pass_count", "kept"),
    ("fail_to_fail_count", "still failing"),
)
MOST_LISTED = 100
"""Attempts in the table, those of which most is known first; beyond that it would be the page."""
ENOUGH = 5
"""First attempts a treatment needs to be drawn."""
DOMINANT = 0.5
"""A share above which one data set, model or task speaks for all."""
_FIRST = "FROM attempts WHERE coalesce(attempt_index, 0) = 0"


class _Treatment(NamedTuple):
    """What the attempts of a row had in common."""

    agent: str | None
    model: str | None
    dataset: str | None
    cap: int | None
    """Tool calls allowed; None: not recorded, or without limit."""
    retry: bool

    @property
    def name(self) -> str:
        return " · ".join(str(part) for part in (self.agent, self.model, self.dataset) if part) or "not recorded"


def _outcome(inputs: Inputs) -> Outcome:
    attempts = inputs.rows["attempts"]
    first = [row for row in attempts if not row["attempt_index"]]
    groups: dict[_Treatment, list[Row]] = {}
    for row in attempts:
        key = _Treatment(row["agent"], row["model"], row["dataset"], row["cap"], bool(row["attempt_index"]))
        groups.setdefault(key, []).append(row)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), [str(part) for part in pair[0]]))
    charts = [_labels_chart(first), _solved_chart(ranked)]
    return Outcome(
        [*_counts(attempts), *_shares(attempts, first)],
        [_by_treatment(ranked, len(attempts)), _each(attempts)],
        [chart for chart in charts if chart is not None],
        _limits(attempts),
    )


def _counts(attempts: list[Row]) -> list[Finding]:
    def count(name: str, title: str, value: int, sql: str, note: str = "") -> Finding:
        return Finding(
            id=f"attempts.{name}",
            title=title,
            value=value,
            unit=name if name in ("trials", "tasks") else "attempts",
            n=len(attempts),
            of="attempts",
            command=again(f"SELECT {sql} FROM attempts"),
            note=note,
        )

    trials, tasks = ({row[key] for row in attempts if row[key]} for key in ("trial_id", "task_id"))
    retries = sum(bool(row["attempt_index"]) for row in attempts)
    return [
        count("count", "Attempts of eval runs", len(attempts), "count(*)", f"{retries:,} of them retries"),
        count("trials", "Trials", len(trials), "count(DISTINCT trial_id)"),
        count("tasks", "Tasks", len(tasks), "count(DISTINCT task_id)"),
        count(
            "without_transcript",
            "Attempts whose conversation was not collected",
            sum(not row["has_transcript"] for row in attempts),
            "count(*) FILTER (NOT has_transcript)",
            "no tokens, reasoning or tool sequence is known of them",
        ),
    ]


def _shares(attempts: list[Row], first: list[Row]) -> list[Finding]:
    retries = [row for row in attempts if row["attempt_index"]]
    findings = [
        _share(
            "correct",
            "First attempts with a correct patch",
            first,
            _is_correct,
            f"avg(CAST(patch_outcome_label = 'correct_patch' AS INT)) {_FIRST}",
            _LABEL,
            _unlabelled(first),
        ),
        _share(
            "solved",
            "First attempts that were solved",
            first,
            _is_solved,
            f"avg(CAST(reward = 1 AS INT)) {_FIRST}",
            "verification.reward",
            "the harness's own reward is 1",
        ),
        _share(
            "retries_solved",
            "Retries that were solved",
            retries,
            _is_solved,
            "avg(CAST(reward = 1 AS INT)) FROM attempts WHERE attempt_index > 0",
            "verification.reward",
            "not comparable with first attempts: only what failed before is tried again",
        ),
    ]
    for name, title, key, path in (
        ("localized", "First attempts that changed the right file", "localized", _LOCALIZED),
        ("first_tool", "First attempts whose first look was at a file they changed", "precise", _PRECISE),
    ):
        sql = (
            f"avg(CAST(value = 'true' AS INT)) FROM signals WHERE signal = '{path}' AND absent IS NULL"
            " AND coalesce(attempt_index, 0) = 0"
        )
        findings.append(_share(name, title, first, lambda row, key=key: row[key], sql, path))  # type: ignore[misc]  # bound now
    return findings


def _share(  # noqa: PLR0913  (a finding's words, in the order they are read)
    name: str, title: str, rows: list[Row], holds: Callable[[Row], bool | None], sql: str, path: str, note: str = ""
) -> Finding:
    parts = _by_task(rows, holds)
    n = int(sum(n for _, n in parts))
    return Finding(
        id=f"attempts.{name}",
        title=title,
        value=of_parts(parts),
        unit="share of attempts",
        kind="share",
        n=n,
        of="attempts of which it is known",
        interval=share_interval(parts),
        signals=(path,),
        command=again(f"SELECT {sql}"),
        note="; ".join(part for part in (f"{len(parts):,} tasks" if parts else "", note) if part),
    )


def _by_task(rows: Sequence[Row], holds: Callable[[Row], bool | None]) -> list[tuple[float, float]]:
    """(yes, known) of each task: attempts at one task are alike."""
    counted: dict[str, list[int]] = {}
    for row in rows:
        held = holds(row)
        if held is not None:
            pair = counted.setdefault(row["task_id"] or row["session_id"], [0, 0])
            pair[0] += held
            pair[1] += 1
    return [(k, n) for k, n in counted.values()]


def _is_correct(row: Row) -> bool | None:
    return None if row["label"] is None else bool(row["label"] == "correct_patch")


def _is_solved(row: Row) -> bool | None:
    return None if row["reward"] is None else bool(row["reward"] == 1)


def _unlabelled(rows: list[Row]) -> str:
    reasons = Counter((row["why"] or "no reason").replace("_", " ") for row in rows if row["label"] is None)
    told_reasons = ", ".join(f"{n:,} {reason}" for reason, n in reasons.most_common(3))
    return f"without a label: {told_reasons}" if told_reasons else ""


def _solved(rows: list[Row]) -> tuple[float | None, int, Interval | None]:
    parts = _by_task(rows, _is_solved)
    return of_parts(parts), int(sum(n for _, n in parts)), share_interval(parts)


def _by_treatment(ranked: list[tuple[_Treatment, list[Row]]], n: int) -> Table:
    rows: list[list[Any]] = []
    for treatment, attempts in ranked:
        labels = Counter(row["label"] for row in attempts)
        share, n_judged, interval = _solved(attempts)
        low, high = interval or (None, None)
        told_try = "retry" if treatment.retry else "first"
        named = [treatment.agent, treatment.model, treatment.dataset, treatment.cap, told_try]
        rows.append(
            [*named, len(attempts), *(labels[label] for label in _TOLD), labels[None], n_judged, share, low, high]
        )
    return Table(
        id="attempts.by_treatment",
        title="Outcomes by treatment",
        columns=(
            Column("agent", "agent", "code"),
            Column("model", "model", "code"),
            Column("dataset", "data set", "code"),
            Column("cap", "tool calls allowed", "count"),
            Column("attempt", "attempt"),
            Column("attempts", "attempts", "count"),
            *(Column(label, words, "count") for label, words in _TOLD.items()),
            Column("unlabelled", "no label", "count"),
            Column("rewarded", "with a reward", "count"),
            Column("solved", "of them solved", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
        ),
        rows=rows,
        n=n,
        of="attempts",
        note="Retries stand apart: only what failed is tried again, often under another cap. Treatments were not given"
        " the same tasks, so these rows compare nothing.",
    )


def _each(attempts: list[Row]) -> Table:
    listed = sorted(attempts, key=lambda r: (r["label"] is None, r["reward"] is None, r["localized"] is None))
    rows = [
        [
            *(r["task_id"], r["model"], (r["attempt_index"] or 0) + 1, _TOLD.get(r["label"], r["label"])),
            *(_yes(r["localized"]), _yes(r["precise"]), *(r[key] for key, _ in _TESTS)),
            *(r["reward"], r["n_tool_calls"], r["session_id"]),
        ]
        for r in listed[:MOST_LISTED]
    ]
    left = len(attempts) - len(rows)
    return Table(
        id="attempts.each",
        title="Each attempt",
        columns=(
            Column("instance", "instance", "code"),
            Column("model", "model", "code"),
            Column("attempt", "attempt", "count"),
            Column("label", "outcome"),
            Column("localized", "right file"),
            Column("first_tool", "first look right"),
            *(Column(key, f"tests {words}", "count") for key, words in _TESTS),
            Column("reward", "reward", "number"),
            Column("tool_calls", "tool calls", "count"),
            Column("session", "session", "session"),
        ),
        rows=rows,
        n=len(attempts),
        of="attempts",
        note=f"{left:,} more are not listed: agentsignals query 'FROM attempts' shows all." if left else "",
    )


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _labels_chart(first: list[Row]) -> Chart | None:
    counted = Counter(row["label"] for row in first if row["label"])
    total = counted.total()
    rows: list[Row] = [
        {"name": words, "value": counted[label], "tip": f"{words}: {counted[label]:,} of {total:,} first attempts"}
        for label, words in _TOLD.items()
        if counted[label]
    ]
    if not rows:
        return None
    return Chart(
        id="attempts.labels",
        title="What became of first attempts",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "first attempts"),
        n=total,
        of="first attempts with a label",
    )


def _solved_chart(ranked: list[tuple[_Treatment, list[Row]]]) -> Chart | None:
    rows: list[Row] = []
    drawn = 0
    for treatment, attempts in ranked:
        share, n_judged, interval = _solved(attempts)
        if treatment.retry or share is None or n_judged < ENOUGH:
            continue
        cap = f", {treatment.cap:,} tool calls allowed" if treatment.cap is not None else ""
        tip = f"{treatment.name}{cap}: {formatted(share, 'share')} of {n_judged:,} first attempts solved"
        low, high = interval or (None, None)
        rows.append({"name": f"{treatment.name}{cap}", "value": share, "low": low, "high": high, "tip": tip})
        drawn += n_judged
    if not rows:
        return None
    return Chart(
        id="attempts.solved",
        title="Share of first attempts solved, by treatment",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of first attempts"),
        n=drawn,
        of="first attempts with a reward",
        note=f"treatments with at least {ENOUGH}; the line is the 95% interval; tasks differ, so this is no ranking",
    )


def _limits(attempts: list[Row]) -> list[str]:
    limits = []
    uncapped = sum(row["cap"] is None for row in attempts)
    if uncapped:
        limits.append(
            f"{uncapped:,} of {len(attempts):,} attempts do not record how many tool calls they were allowed: whether a"
            " candidate did better, or was only allowed more, can't be told of them."
        )
    judged = [row for row in attempts if row["label"] or row["reward"] is not None]
    for key, words in (("dataset", "data set"), ("model", "model"), ("task_id", "task")):
        counted = Counter(row[key] for row in judged if row[key])
        (name, n) = counted.most_common(1)[0] if counted else ("", 0)
        if n > DOMINANT * len(judged):
            limits.append(f"{n:,} of {len(judged):,} attempts with an outcome are of one {words}, {name}.")
    return limits


STUDY = Study(
    name="attempts",
    place=360,
    title="Eval runs",
    question="What became of the attempts, and under which treatment?",
    queries={
        "attempts": "SELECT a.session_id, a.trial_id, a.attempt_index, a.task_id, a.dataset, a.has_transcript,"
        " a.reward, coalesce(a.agent_type, s.agent) AS agent, coalesce(a.model_id, s.model) AS model,"
        " a.effective_tool_cap AS cap, a.patch_outcome_label AS label, w.why, w.localized, w.precise, s.n_tool_calls,"
        f" {', '.join(f'a.{key}' for key, _ in _TESTS)} FROM attempts a JOIN sessions s USING (session_id) LEFT JOIN ("
        f"SELECT session_id, max(absent_detail) FILTER (signal = '{_LABEL}') AS why,"
        f" bool_or(value = 'true') FILTER (signal = '{_LOCALIZED}') AS localized,"
        f" bool_or(value = 'true') FILTER (signal = '{_PRECISE}') AS precise FROM signals"
        f" WHERE signal IN ('{_LABEL}', '{_LOCALIZED}', '{_PRECISE}') GROUP BY session_id) w USING (session_id)"
        " ORDER BY a.task_id, model, agent, a.attempt_index, a.session_id"
    },
    function=_outcome,
    context="eval",
)
