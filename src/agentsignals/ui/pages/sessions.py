"""The list of sessions, with filter, order and parts."""

from __future__ import annotations

from agentsignals.ui.filter import filtered
from agentsignals.ui.page import Page, Query, Route, part_of
from agentsignals.ui.snapshot import Reading

SIZE = 50
COLUMNS = {
    "started_at": "started",
    "ended_at": "last active",
    "agent": "agent",
    "n_prompts": "prompts",
    "n_tool_calls": "tool calls",
    "n_edits": "edits",
    "output_tokens": "tokens out",
    "cost_usd": "cost",
    "ended_at - started_at": "clock time",
}
"""What the list can be ordered by, as SQL, and its heading."""
_ASCENDING = ("agent",)
_LISTED = """
WITH shown AS (
  SELECT session_id, context, agent, model, coalesce(repo, cwd) AS place, branch, title, started_at, ended_at,
    n_prompts, n_tool_calls, n_edits, output_tokens, cost_usd, visible_output_tokens,
    epoch(ended_at - started_at) AS seconds, row_number() OVER () AS rank
  FROM (SELECT * FROM sessions s {where} {order})
)
SELECT * FROM shown LEFT JOIN (
  SELECT session_id, left(arg_min(text, turn), 400) AS prompt FROM turns
  WHERE kind IN ('prompt', 'queued_prompt') AND session_id IN (SELECT session_id FROM shown) GROUP BY session_id
) USING (session_id) ORDER BY rank
"""
"""Prompts of the sessions that are shown, not of all."""


def page(reading: Reading, query: Query) -> Page:
    """Sessions that fit the filter."""
    filter_ = filtered(query, reading)
    where = filter_.where
    order = query.choice("order", COLUMNS, "started_at")
    upward = query.choice("way", ("up", "down"), "up" if order in _ASCENDING else "down") == "up"
    total = reading.rows(f"SELECT count(*) AS n FROM sessions s {where.text()}", where.values)[0]["n"]  # noqa: S608  (text of ours, values bound)
    part = part_of(query, SIZE, total)
    ordered = f"ORDER BY {order} {'ASC' if upward else 'DESC'} NULLS LAST, session_id LIMIT $size OFFSET $start"
    asked = _LISTED.format(where=where.text(), order=ordered)
    filled = {
        "rows": reading.rows(asked, {**where.values, "size": SIZE, "start": part.start}),
        "query": query,
        "filter": filter_,
        "kept": {name: query.choice(name, offered) for name, offered in (("order", COLUMNS), ("way", ("up", "down")))},
        "columns": COLUMNS,
        "order": order,
        "upward": upward,
        "part": part,
        "empty": not reading.store.manifest.sessions,
    }
    return Page("sessions.html.j2", "Sessions", filled)


PAGES = (Route(("sessions",), page, "Sessions", 20),)
