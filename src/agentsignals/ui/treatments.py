"""Attempts counted by treatment: how far up the ladder each came, and what retries recovered.

Whatever is counted has a name in the address, and that lists the attempts that were counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from agentsignals.stats.estimates import rate_interval
from agentsignals.ui.page import Where
from agentsignals.ui.reading import Reading

MOST = 60
"""Treatments in a table, those with most attempts."""
OF_TREATMENT = ("agent_type", "model_id", "dataset", "effective_tool_cap", "attempt_index")
OF_CANDIDATE = OF_TREATMENT[:3]
"""What the attempts of one trial have in common: a retry runs under a cap of its own."""


class Step(NamedTuple):
    """A thing that attempts are counted by: `reached` and `recorded` are SQL over ATTEMPTS."""

    label: str
    means: str
    reached: str
    recorded: str = "true"
    """Where it is recorded at all; elsewhere nobody knows."""


RUNGS = {
    "transcript": Step("transcript", "the conversation was collected", "has_transcript"),
    "patch": Step("patch", "it left a patch that is not empty", "has_patch", "has_patch IS NOT NULL"),
    "applied": Step("applied", "the patch applied", "patch_applies", "patch_applies IS NOT NULL"),
    "tests": Step(
        "tests run",
        "the verifier's counts are there",
        "fail_to_pass_count IS NOT NULL",
        "fail_to_pass_count IS NOT NULL",
    ),
    "partly": Step(
        "some fixed", "a test that failed before passes now", "fail_to_pass_count > 0", "fail_to_pass_count IS NOT NULL"
    ),
    "solved": Step(
        "solved",
        "by the harness's reward, or else by the tests",
        "outcome = 'solved'",
        "outcome IN ('solved', 'failed')",
    ),
}
"""The ladder: what an attempt has to have come to, in order (docs/design/signals.md#outcome-of-an-attempt)."""
PASSES = {
    "first": Step("trials", "first attempts", "nth = 0"),
    "first_solved": Step(
        "solved at first",
        "of those that were judged",
        "nth = 0 AND is_solved",
        "nth = 0 AND outcome IN ('solved', 'failed')",
    ),
    "retried": Step(
        "retried", "after a first attempt that did not solve it", "nth = 0 AND NOT first_solved AND last > 0"
    ),
    "recovered": Step("recovered", "a retry solved it: that retry", "NOT first_solved AND nth = solved_at"),
    "unrecovered": Step(
        "not recovered",
        "no retry solved it: the last one",
        "NOT first_solved AND nth > 0 AND nth = last AND solved_at IS NULL",
    ),
}
"""First pass and recovery, each by one attempt of a trial, so that attempts count trials."""
ATTEMPTS = """(
  SELECT *, outcome IS NOT DISTINCT FROM 'solved' AS is_solved, coalesce(attempt_index, 0) AS nth,
    coalesce(bool_or(coalesce(attempt_index, 0) = 0 AND outcome = 'solved') OVER trial, false) AS first_solved,
    max(coalesce(attempt_index, 0)) OVER trial AS last,
    min(attempt_index) FILTER (attempt_index > 0 AND outcome = 'solved') OVER trial AS solved_at
  FROM attempts LEFT JOIN (
    SELECT session_id, value = 'true' AS has_patch FROM signals
    WHERE signal = 'verification.patch_present' AND level = 'attempt' AND value IS NOT NULL
  ) USING (session_id)
  WINDOW trial AS (PARTITION BY run_id, coalesce(trial_id, session_id))
)"""
"""The table of attempts with what the steps ask for."""
_JUDGED = "outcome IN ('solved', 'failed')"


def treatments(reading: Reading) -> list[dict[str, Any]]:
    """The attempts of each treatment, counted by the rungs of the ladder."""
    more = f"""count(DISTINCT task_id) AS tasks, count(*) FILTER ({_JUDGED}) AS judged,
  list({{'task': coalesce(task_id, session_id), 'solved': outcome = 'solved'}}) FILTER ({_JUDGED}) AS judgements,
  count(*) FILTER (reward IS NOT NULL OR patch_outcome_label IS NOT NULL) AS verified,
  count(*) FILTER (outcome = 'infrastructure') AS infrastructure, median(wall_time_s) AS wall_time_s"""
    rows = _counted(reading, OF_TREATMENT, RUNGS, more)
    for row in rows:
        # Where no verifier spoke of any, what gave up is no rate: only failures could be known.
        if not row["verified"]:
            row["judged"] = row["steps"]["solved"]["recorded"] = 0
        row["interval"] = rate_interval(_by_task(row["judgements"]) if row["judged"] else [])
    return rows


def candidates(reading: Reading) -> list[dict[str, Any]]:
    """The trials of each candidate: first pass, retries, and what these recovered. Those alone that retried any."""
    rows = _counted(reading, OF_CANDIDATE, PASSES)
    return [row for row in rows if row["steps"]["retried"]["n"]]


def narrowed(reading: Reading, where: Where, treatment: str, step: str) -> dict[str, Any] | None:
    """Has the condition choose the attempts that a table counts; gives the row of the treatment that was named."""
    steps = {**RUNGS, **PASSES}
    if step in steps:
        where.add(f"coalesce({steps[step].reached}, false)")
    rows = [
        *reading.kept("treatments", lambda: treatments(reading)),
        *reading.kept("candidates", lambda: candidates(reading)),
    ]
    row = next((row for row in rows if row["key"] == treatment), None)
    if treatment:
        where.add("true" if row is not None else "false")
    for n, (column, value) in enumerate(row["columns"].items() if row is not None else ()):
        where.add(f"{column} IS NOT DISTINCT FROM $of{n}", **{f"of{n}": value})
    return row


def _counted(reading: Reading, columns: Sequence[str], steps: dict[str, Step], more: str = "") -> list[dict[str, Any]]:
    counts = [
        f"count(*) FILTER ({sql}) AS {kind}_{name}"
        for name, step in steps.items()
        for kind, sql in (("n", f"{step.reached}"), ("recorded", step.recorded))
    ]
    by = ", ".join(columns)
    asked = f"SELECT {', '.join([by, 'count(*) AS n', *counts, *([more] if more else [])])} FROM {ATTEMPTS}"  # noqa: S608  (text of ours)
    rows = reading.rows(f"{asked} GROUP BY {by} ORDER BY n DESC, {by} LIMIT {MOST}")
    for row in rows:
        row["columns"] = {column: row[column] for column in columns}
        row["key"] = hashlib.blake2b(msgspec.json.encode(row["columns"]), digest_size=6).hexdigest()
        row["steps"] = {name: {"n": row[f"n_{name}"], "recorded": row[f"recorded_{name}"]} for name in steps}
    return rows


def _by_task(judgements: Iterable[dict[str, Any]]) -> list[tuple[float, float]]:
    """Solved and judged attempts of each task: attempts at one task are alike, and tasks are what was drawn."""
    counted: dict[str, list[int]] = {}
    for attempt in judgements:
        pair = counted.setdefault(attempt["task"], [0, 0])
        pair[0] += attempt["solved"]
        pair[1] += 1
    return [(float(k), float(n)) for k, n in counted.values()]
