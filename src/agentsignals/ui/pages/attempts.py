"""Attempts of eval runs: treatments with how far their attempts came, then each attempt with what came of it."""

from __future__ import annotations

from agentsignals.ui.figures import ATTEMPTS, PASSES, RUNGS, candidates, narrowed, treatments
from agentsignals.ui.filter import filtered
from agentsignals.ui.page import Page, Query, Route, Where, part_of
from agentsignals.ui.snapshot import Reading

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
_DATA_SETS = "SELECT dataset AS v FROM attempts WHERE dataset <> '' GROUP BY 1 ORDER BY count(*) DESC, 1"
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
    """Attempts whose sessions fit the filter, and above them the treatments there are."""
    # Attempts are all of eval runs: whose sessions the pages before showed is no choice among them.
    choice = filtered(Query(query.with_(context="").removeprefix("?")), reading)
    choice = choice._replace(offered={**choice.offered, "context": []})
    data_sets = [row["v"] for row in reading.kept("attempts:data sets", lambda: reading.rows(_DATA_SETS))]
    dataset = query.choice("dataset", data_sets)
    where = Where()
    where.equals("dataset", "dataset", dataset)
    if choice.words:
        where.add(f"session_id IN ({choice.sessions})", **choice.where.values)
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
        "filter": choice,
        "data_sets": data_sets,
        "dataset": dataset,
        "columns": COLUMNS,
        "order": order,
        "upward": upward,
        "part": part,
        "query": query,
    }
    return Page("attempts.html.j2", "Attempts", filled)


PAGES = (Route(("attempts",), page, "Attempts", 30),)
