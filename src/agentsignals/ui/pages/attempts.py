"""Attempts of eval runs: treatments with how far their attempts came, then each attempt with what came of it."""

from __future__ import annotations

from agentsignals.ui.page import Page, Query, Route, Where, part_of
from agentsignals.ui.reading import Reading
from agentsignals.ui.treatments import ATTEMPTS, PASSES, RUNGS, candidates, narrowed, treatments

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
_FROM = " ".join(
    (
        "FROM",
        ATTEMPTS,
        "a LEFT JOIN (SELECT session_id, n_tool_calls, output_tokens, visible_output_tokens, cost_usd FROM sessions) s",
    )
)
_USING = "USING (session_id)"
_LISTED = """
SELECT session_id, trial_id, attempt_index, is_last, task_id, agent_type, model_id, dataset, effective_tool_cap, reward,
  outcome, patch_outcome_label, fail_to_pass_count, pass_to_fail_count, wall_time_s, timed_out, exit_status,
  has_transcript, n_tool_calls, output_tokens, coalesce(cost_usd, harness_cost_usd) AS cost_usd, visible_output_tokens
"""


def page(reading: Reading, query: Query) -> Page:
    """Attempts that fit the filter, and above them the treatments there are."""
    offered = reading.kept("attempts:offered", lambda: _offered(reading))
    chosen = {name: query.choice(name, offered[name]) for name in FILTERS}
    where = Where()
    for name, column in FILTERS.items():
        where.equals(column, name, chosen[name])
    where.contains("concat_ws(' ', task_id, trial_id)", "text", query.text("text"))
    step = query.choice("step", {**RUNGS, **PASSES})
    treatment = narrowed(reading, where, query.text("treatment"), step)
    order = query.choice("order", COLUMNS, "task_id")
    upward = query.choice("way", ("up", "down"), "up" if order in ("task_id", "attempt_index") else "down") == "up"
    total = reading.rows(" ".join(("SELECT count(*) AS n", _FROM, _USING, where.text())), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    ordered = f"ORDER BY {order} {'ASC' if upward else 'DESC'} NULLS LAST, trial_id, attempt_index, session_id"
    asked = " ".join((_LISTED, _FROM, _USING, where.text(), ordered, "LIMIT $size OFFSET $start"))
    filled = {
        "rows": reading.rows(asked, {**where.values, "size": SIZE, "start": part.start}),
        "treatments": reading.kept("treatments", lambda: treatments(reading)),
        "candidates": reading.kept("candidates", lambda: candidates(reading)),
        "rungs": RUNGS,
        "passes": PASSES,
        "step": {**RUNGS, **PASSES}.get(step),
        "treatment": treatment,
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


def _offered(reading: Reading) -> dict[str, list[str]]:
    return {name: _values(reading, column) for name, column in FILTERS.items()}


def _values(reading: Reading, column: str) -> list[str]:
    asked = f"SELECT {column} AS v FROM attempts WHERE {column} <> '' GROUP BY 1 ORDER BY count(*) DESC, 1"  # noqa: S608  (a column of FILTERS)
    return [row["v"] for row in reading.rows(asked)]


PAGES = (Route(("attempts",), page, "Attempts", 30),)
