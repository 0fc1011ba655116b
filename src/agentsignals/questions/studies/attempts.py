"""Attempts of eval runs: what became of each, under which treatment. First attempts apart from retries (Agent
Signals)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from agentsignals.questions.charts import bars, dots
from agentsignals.questions.estimates import DOMINANT, INTERVAL_NOTE, Estimate, bar, chart, count, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Finding, Inputs, Kind, Outcome, Part, Row, Study, Table
from agentsignals.stats.intervals import rate_interval

_RUNG, _LOCALIZED, _PRECISE = (
    "verification.outcome",
    "behavior.localized_correct_file",
    "anticipation.first_tool_precision",
)
_LABELS = {
    "correct_patch": "correct",
    "partial_patch": "partial",
    "regressive_patch": "regressive",
    "no_effect_patch": "no effect",
    "unverifiable": "unverifiable",
}
_TESTS = {
    "fail_to_pass_count": "fixed",
    "pass_to_fail_count": "broken",
    "pass_to_pass_count": "kept",
    "fail_to_fail_count": "still failing",
}
MOST_LISTED = 100
"""Attempts in the table, those of which most is known first; beyond that it would be the page."""
_RUNGS = ("solved", "failed", "not_judged", "infrastructure")
_UNEVALUATED = "nothing of this treatment was evaluated"
_HAS_OUTCOME = "outcome IN ('solved', 'failed')"
_SPENT: dict[str, tuple[str, str, Kind, str]] = {
    "cost": ("Cost", "USD", "usd", "coalesce(s.cost_usd, a.harness_cost_usd)"),
    "tokens": (
        "Tokens in and out",
        "tokens",
        "tokens",
        "coalesce(s.input_tokens + s.output_tokens, a.harness_input_tokens + a.harness_output_tokens)",
    ),
    "time": ("Time", "seconds", "seconds", "a.wall_time_s"),
}
_OF_OUTPUT = ("cost", "tokens")
"""Lower bounds where output is logged in mid-stream."""
ENOUGH = 5
"""First attempts a treatment needs to be drawn."""
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
    attempts = _evaluated(inputs.rows["attempts"])
    first = [row for row in attempts if not row["attempt_index"]]
    groups: dict[_Treatment, list[Row]] = {}
    for row in attempts:
        key = _Treatment(row["agent"], row["model"], row["dataset"], row["cap"], bool(row["attempt_index"]))
        groups.setdefault(key, []).append(row)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), [str(part) for part in pair[0]]))
    return Outcome(
        [*_counts(attempts), *_shares(attempts, first), *_per_solved(first)],
        [_by_treatment(ranked, len(attempts)), _each(attempts)],
        [_outcomes_chart(first), _solved_chart(ranked)],
        _limits(attempts),
    )


def _evaluated(attempts: list[Row]) -> list[Row]:
    """The attempts; what failed by inference alone (no patch, no time left) as not judged where no verifier spoke of
    any with that treatment: only failures could be known there, as `compare` has it."""
    judged = {_who(row) for row in attempts if row["outcome"] in ("solved", "failed") and not row["inferred"]}
    inferred = {"outcome": "not_judged", "reason": _UNEVALUATED}
    return [
        row | inferred if row["inferred"] and row["outcome"] == "failed" and _who(row) not in judged else row
        for row in attempts
    ]


def _is_unevaluated(rows: list[Row]) -> bool:
    """Whether some were taken for not judged, which no single query does."""
    return any(row["reason"] == _UNEVALUATED for row in rows)


def _who(row: Row) -> tuple[Any, ...]:
    return row["agent"], row["model"], row["dataset"]


def _counts(attempts: list[Row]) -> list[Finding]:
    trials, tasks = ({row[key] for row in attempts if row[key]} for key in ("trial_id", "task_id"))
    retries = f"{sum(bool(row['attempt_index']) for row in attempts):,} of them retries"
    lacking = sum(not row["has_transcript"] for row in attempts)
    without = "no tokens, reasoning or tool sequence is known of them"
    asked = (
        ("count", "Attempts of eval runs", len(attempts), "attempts", "count(*)", retries),
        ("trials", "Trials", len(trials), "trials", "count(DISTINCT trial_id)", ""),
        ("tasks", "Tasks", len(tasks), "tasks", "count(DISTINCT task_id)", ""),
        ("without_transcript", "Attempts whose conversation was not collected", lacking, "attempts",
         "count(*) FILTER (NOT has_transcript)", without),
    )  # fmt: skip
    every = [(row["session_id"], 1, 1) for row in attempts]
    without_one = [(row["session_id"], not row["has_transcript"], 1) for row in attempts]
    return [
        count(value, len(attempts), evidence=without_one if name == "without_transcript" else every).finding(
            f"attempts.{name}", title, "attempts", note, unit=unit, sql=f"SELECT {sql} FROM attempts"
        )
        for name, title, value, unit, sql, note in asked
    ]


def _shares(attempts: list[Row], first: list[Row]) -> list[Finding]:
    retries = [row for row in attempts if row["attempt_index"]]
    of_signal = "avg(CAST(value = 'true' AS INT)) FROM signals WHERE signal = '{}' AND absent IS NULL"
    asked: tuple[tuple[str, str, list[Row], Callable[[Row], bool | None], str, str, str], ...] = (
        ("solved", "First attempts that were solved", first, _is_solved, _RUNG, _bounds(first),
         f"avg(CAST(outcome = 'solved' AS INT)) {_FIRST} AND {_HAS_OUTCOME}"),
        ("retries_solved", "Retries that were solved", retries, _is_solved, _RUNG,
         "not comparable with first attempts: only what failed before is tried again",
         f"avg(CAST(outcome = 'solved' AS INT)) FROM attempts WHERE attempt_index > 0 AND {_HAS_OUTCOME}"),
        ("localized", "First attempts that changed the right file", first, lambda row: row["localized"], _LOCALIZED, "",
         f"{of_signal.format(_LOCALIZED)} AND coalesce(attempt_index, 0) = 0"),
        ("first_tool", "First attempts whose first look was at a file they changed", first,
         lambda row: row["precise"], _PRECISE, "", f"{of_signal.format(_PRECISE)} AND coalesce(attempt_index, 0) = 0"),
    )  # fmt: skip
    findings = []
    for name, title, rows, holds, path, note, sql in asked:
        estimate, tasks = _by_task(rows, holds)
        notes = "; ".join(part for part in (f"{tasks:,} tasks" if tasks else "", note) if part)
        of, unit = "attempts of which it is known", "share of attempts"
        command = "" if path == _RUNG and _is_unevaluated(rows) else f"SELECT {sql}"
        findings.append(estimate.finding(f"attempts.{name}", title, of, notes, unit=unit, sql=command, signals=(path,)))
    return findings


def _by_task(rows: list[Row], holds: Callable[[Row], bool | None]) -> tuple[Estimate, int]:
    """The share over tasks, and how many there are: attempts at one task are alike."""
    counted: dict[tuple[str | None, str], list[int]] = {}
    parts: list[Part] = []
    for row in rows:
        held = holds(row)
        if held is not None:
            parts.append((row["session_id"], held, 1))
            pair = counted.setdefault((row["dataset"], row["task_id"] or row["session_id"]), [0, 0])
            pair[0] += held
            pair[1] += 1
    pairs = [(float(k), float(n)) for k, n in counted.values()]
    k, n = sum(k for k, _ in pairs), sum(n for _, n in pairs)
    note = "the interval is over tasks" if len(pairs) > 1 else ""
    share = Estimate(value=k / n if n else None, n=n, k=k, interval=rate_interval(pairs), note=note, counted=parts)
    return share, len(pairs)


def _is_solved(row: Row) -> bool | None:
    return bool(row["outcome"] == "solved") if row["outcome"] in ("solved", "failed") else None


def _ends(rows: list[Row]) -> tuple[float, float] | tuple[None, None]:
    """The share if all without an outcome had failed, and if all were solved."""
    counted = Counter(row["outcome"] for row in rows)
    solved, failed = counted["solved"], counted["failed"]
    return (solved / len(rows), (len(rows) - failed) / len(rows)) if rows else (None, None)


def _bounds(rows: list[Row]) -> str:
    missing = Counter(row["outcome"] or "not judged" for row in rows if _is_solved(row) is None)
    if not missing:
        return ""
    left_out = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in missing.most_common())
    low, high = (formatted(end, "share") for end in _ends(rows))
    return f"{low} to {high} whatever came of the {left_out}"


def _per_solved(first: list[Row]) -> list[Finding]:
    """What first attempts took together, the failed ones too, for each that was solved."""
    findings = []
    for key, (words, unit, kind, sql) in _SPENT.items():
        measured = [row for row in first if _is_solved(row) is not None and row[key] is not None]
        solved = sum(row["outcome"] == "solved" for row in measured)
        value = sum(row[key] for row in measured) / solved if solved else None
        title = f"{words} for each first attempt that was solved"
        note = (
            f"with what the failed ones took; {len(first) - len(measured):,} of {len(first):,} not measured or judged"
        )
        of = "first attempts with an outcome"
        asked = (
            f"SELECT sum({sql}) / nullif(count(*) FILTER (outcome = 'solved'), 0) FROM attempts a JOIN sessions s"
            f" USING (session_id) WHERE coalesce(a.attempt_index, 0) = 0 AND {_HAS_OUTCOME} AND {sql} IS NOT NULL"
        )
        bounds = sum(bool(row["low"]) for row in measured) if key in _OF_OUTPUT else 0
        note += f"; at least: {bounds:,} log output in mid-stream" * bool(bounds)
        parts = [(row["session_id"], row[key], 1) for row in measured]
        estimate, name = count(value, len(measured), kind, evidence=parts), f"attempts.{key}_per_solved"
        command = "" if _is_unevaluated(first) else asked
        findings.append(estimate.finding(name, title, of, note, unit=unit, sql=command, at_least=bounds > 0))
    return findings


def _by_treatment(ranked: list[tuple[_Treatment, list[Row]]], n: int) -> Table:
    rows: list[list[Any]] = []
    for treatment, attempts in ranked:
        labels, rungs = (Counter(row[key] for row in attempts) for key in ("label", "outcome"))
        solved, _ = _by_task(attempts, _is_solved)
        shares = [solved.value, *solved.ends, *_ends(attempts)]
        counts = [len(attempts), *(rungs[rung] for rung in _RUNGS), *shares, *(labels[label] for label in _LABELS)]
        rows.append([*treatment[:4], "retry" if treatment.retry else "first", *counts])
    outcomes = " | ".join(f"{rung} {rung.replace('_', ' ')}:count" for rung in _RUNGS)
    labelled = " | ".join(f"{label} {words} patch:count" for label, words in _LABELS.items())
    return table(
        "attempts.by_treatment",
        "Outcomes by treatment",
        "agent:code | model:code | dataset data set:code | cap tool calls allowed:count | attempt | attempts:count"
        f" | {outcomes} | share of known solved:share | ends:share | worst if all missing failed:share"
        f" | best if all were solved:share | {labelled}",
        rows,
        n=n,
        of="attempts",
        evidence=[[row["session_id"] for row in attempts] for _, attempts in ranked],
        note="Retries stand apart: only what failed is tried again, often under another cap. Treatments were not given"
        " the same tasks, so these rows compare nothing.",
    )


def _each(attempts: list[Row]) -> Table:
    listed = sorted(attempts, key=lambda r: (r["label"] is None, _is_solved(r) is None, r["localized"] is None))
    rows = [
        [
            *(r["task_id"], r["model"], (r["attempt_index"] or 0) + 1, _rung(r), _LABELS.get(r["label"], r["label"])),
            *(_yes(r["localized"]), _yes(r["precise"]), *(r[key] for key in _TESTS)),
            *(r["reward"], r["n_tool_calls"], r["session_id"]),
        ]
        for r in listed[:MOST_LISTED]
    ]
    left = len(attempts) - len(rows)
    tests = " | ".join(f"{key} tests {words}:count" for key, words in _TESTS.items())
    return table(
        "attempts.each",
        "Each attempt",
        "instance:code | model:code | attempt:count | outcome | label patch | localized right file"
        f" | first_tool first look right | {tests} | reward:number | tool_calls tool calls:count | session:session",
        rows,
        n=len(attempts),
        of="attempts",
        evidence=[[row["session_id"]] for row in listed[:MOST_LISTED]],
        note=f"{left:,} more are not listed: agentsignals query 'FROM attempts' shows all." if left else "",
    )


def _rung(row: Row) -> str | None:
    """`failed: empty patch`; of a solved attempt nothing more."""
    outcome, reason = ((row[key] or "").replace("_", " ") for key in ("outcome", "reason"))
    return (f"{outcome}: {reason}" if reason and outcome != "solved" else outcome) or None


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _outcomes_chart(first: list[Row]) -> Chart | None:
    of_rung: dict[tuple[str, str], list[str]] = {}
    for row in first:
        rung = row["outcome"] or "not_judged", _rung(row) or "not judged"
        of_rung.setdefault(rung, []).append(row["session_id"])
    counted = {rung: len(ids) for rung, ids in of_rung.items()}
    order = sorted(counted, key=lambda pair: (_RUNGS.index(pair[0]), -counted[pair], pair))
    tip = f"of {len(first):,} first attempts"
    rows = [
        bar(rung[1], counted[rung], f"{rung[1]}: {counted[rung]:,} {tip}", evidence=of_rung[rung]) for rung in order
    ]
    title, spec = "What became of first attempts", bars(rows, "first attempts")
    return chart("attempts.outcomes", title, rows, spec, n=len(first), of="first attempts")


def _solved_chart(ranked: list[tuple[_Treatment, list[Row]]]) -> Chart | None:
    rows: list[Row] = []
    n = 0.0
    for treatment, attempts in ranked:
        solved, _ = _by_task(attempts, _is_solved)
        if treatment.retry or solved.n < ENOUGH:
            continue
        name = f"{treatment.name}{f', {treatment.cap:,} tool calls allowed' if treatment.cap is not None else ''}"
        share = formatted(solved.value, "share")
        rows.append(solved.mark(name, f"{name}: {share} of {solved.n:,.0f} first attempts solved"))
        n += solved.n
    return chart(
        "attempts.solved",
        "Share of first attempts solved, by treatment",
        rows,
        dots(rows, "share of first attempts"),
        n=n,
        of="first attempts with an outcome",
        note=f"treatments with at least {ENOUGH}; {INTERVAL_NOTE}; tasks differ, so this is no ranking",
    )


def _limits(attempts: list[Row]) -> list[str]:
    limits = []
    uncapped = sum(row["cap"] is None for row in attempts)
    if uncapped:
        limits.append(
            f"{uncapped:,} of {len(attempts):,} attempts do not record how many tool calls they were allowed: whether a"
            " candidate did better, or was only allowed more, can't be told of them."
        )
    judged = [row for row in attempts if _is_solved(row) is not None]
    for key, words in (("dataset", "data set"), ("model", "model"), ("task_id", "task")):
        counted = Counter(row[key] for row in judged if row[key])
        (name, n) = counted.most_common(1)[0] if counted else ("", 0)
        if n > DOMINANT * len(judged):
            limits.append(f"{n:,} of {len(judged):,} attempts with an outcome are of one {words}, {name}.")
    return limits


STUDY = Study(
    name="attempts",
    order=360,
    title="Eval runs",
    question="What became of the attempts, and under which treatment?",
    queries={
        "attempts": "SELECT a.session_id, a.trial_id, a.attempt_index, a.task_id, a.dataset, a.has_transcript,"
        " a.outcome, a.reward, coalesce(a.agent_type, s.agent) AS agent, coalesce(a.model_id, s.model) AS model,"
        " a.effective_tool_cap AS cap, a.patch_outcome_label AS label, w.reason, coalesce(w.inferred, false) AS"
        " inferred, w.localized, w.precise, s.n_tool_calls, s.visible_output_tokens IS NOT NULL AS low,"
        f" {', '.join(f'{sql} AS {key}' for key, (*_, sql) in _SPENT.items())},"
        f" {', '.join(f'a.{key}' for key in _TESTS)} FROM attempts a JOIN sessions s USING (session_id) LEFT JOIN ("
        f"SELECT session_id, max(detail->>'reason') FILTER (signal = '{_RUNG}') AS reason,"
        f" bool_or(detail->>'inferred' = 'true') FILTER (signal = '{_RUNG}') AS inferred,"
        f" bool_or(value = 'true') FILTER (signal = '{_LOCALIZED}') AS localized,"
        f" bool_or(value = 'true') FILTER (signal = '{_PRECISE}') AS precise FROM signals"
        f" WHERE signal IN ('{_RUNG}', '{_LOCALIZED}', '{_PRECISE}') GROUP BY session_id) w USING (session_id)"
        " ORDER BY a.task_id, model, agent, a.attempt_index, a.session_id"
    },
    function=_outcome,
    context="eval",
)
