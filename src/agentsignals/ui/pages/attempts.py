"""Attempts of eval runs: what each was given and what came of it."""

from __future__ import annotations

from typing import Any

from agentsignals.stats.estimates import rate_interval
from agentsignals.ui.page import Page, Query, Route, Where, part_of
from agentsignals.ui.reading import Reading

SIZE = 50
COLUMNS = {
    "task_id": "task",
    "attempt_index": "attempt",
    "reward": "reward",
    "wall_time_s": "took",
    "n_tool_calls": "tool calls",
    "output_tokens": "tokens out",
    "cost_usd": "cost",
}
"""What the list can be ordered by, and its heading."""
FILTERS = {"agent": "agent_type", "model": "model_id", "outcome": "outcome", "dataset": "dataset"}
_FROM = (
    "FROM attempts a LEFT JOIN (SELECT session_id, n_tool_calls, output_tokens, visible_output_tokens, cost_usd"
    " FROM sessions) s"
)
_USING = "USING (session_id)"
_LISTED = """
SELECT session_id, trial_id, attempt_index, is_last, task_id, agent_type, model_id, dataset, effective_tool_cap, reward,
  outcome, patch_outcome_label, fail_to_pass_count, pass_to_fail_count, wall_time_s, timed_out, exit_status,
  has_transcript, n_tool_calls, output_tokens, coalesce(cost_usd, harness_cost_usd) AS cost_usd, visible_output_tokens
"""
_TREATMENTS = """
SELECT agent_type, model_id, dataset, effective_tool_cap, attempt_index, count(*) AS n,
  count(DISTINCT task_id) AS tasks, count(*) FILTER (outcome = 'solved') AS solved,
  count(*) FILTER (outcome IN ('solved', 'failed')) AS judged,
  list({'task': coalesce(task_id, session_id), 'solved': outcome = 'solved'})
    FILTER (outcome IN ('solved', 'failed')) AS judgements,
  count(*) FILTER (reward IS NOT NULL OR patch_outcome_label IS NOT NULL) AS verified,
  count(*) FILTER (outcome = 'infrastructure') AS infrastructure, median(wall_time_s) AS wall_time_s
FROM attempts GROUP BY 1, 2, 3, 4, 5 ORDER BY n DESC, 1, 2, 3, 4, 5 LIMIT 60
"""


def page(reading: Reading, query: Query) -> Page:
    """Attempts that fit the filter, and above them the treatments there are."""
    offered = reading.kept("attempts:offered", lambda: _offered(reading))
    chosen = {name: query.choice(name, offered[name]) for name in FILTERS}
    where = Where()
    for name, column in FILTERS.items():
        where.equals(column, name, chosen[name])
    where.contains("concat_ws(' ', task_id, trial_id)", "text", query.text("text"))
    order = query.choice("order", COLUMNS, "task_id")
    upward = query.choice("way", ("up", "down"), "up" if order in ("task_id", "attempt_index") else "down") == "up"
    total = reading.rows(" ".join(("SELECT count(*) AS n", _FROM, _USING, where.text())), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    ordered = f"ORDER BY {order} {'ASC' if upward else 'DESC'} NULLS LAST, trial_id, attempt_index, session_id"
    asked = " ".join((_LISTED, _FROM, _USING, where.text(), ordered, "LIMIT $size OFFSET $start"))
    filled = {
        "rows": reading.rows(asked, {**where.values, "size": SIZE, "start": part.start}),
        "treatments": reading.kept("treatments", lambda: _treatments(reading)),
        "offered": offered,
        "chosen": chosen,
        "columns": COLUMNS,
        "order": order,
        "upward": upward,
        "text": query.text("text"),
        "part": part,
        "query": query,
    }
    return Page("attempts.html.j2", "Attempts", filled)


def _treatments(reading: Reading) -> list[dict[str, Any]]:
    """Where no verifier spoke of any, what gave up is no rate: only failures could be known."""
    rows = [row | {"judged": row["judged"] if row["verified"] else 0} for row in reading.rows(_TREATMENTS)]
    return [row | {"interval": rate_interval(_by_task(row["judgements"]) if row["judged"] else [])} for row in rows]


def _by_task(judgements: list[dict[str, Any]] | None) -> list[tuple[float, float]]:
    """Solved and judged attempts of each task: attempts at one task are alike, and tasks are what was drawn."""
    counted: dict[str, list[int]] = {}
    for attempt in judgements or ():
        pair = counted.setdefault(attempt["task"], [0, 0])
        pair[0] += attempt["solved"]
        pair[1] += 1
    return [(float(k), float(n)) for k, n in counted.values()]


def _offered(reading: Reading) -> dict[str, list[str]]:
    return {name: _values(reading, column) for name, column in FILTERS.items()}


def _values(reading: Reading, column: str) -> list[str]:
    asked = f"SELECT {column} AS v FROM attempts WHERE {column} <> '' GROUP BY 1 ORDER BY count(*) DESC, 1"  # noqa: S608  (a column of FILTERS)
    return [row["v"] for row in reading.rows(asked)]


PAGES = (Route(("attempts",), page, "Attempts", 30),)
