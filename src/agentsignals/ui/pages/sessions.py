"""The list of sessions, with filter, order and parts."""

from __future__ import annotations

from agentsignals.ui.page import Page, Query, Route, Where, part_of
from agentsignals.ui.reading import WITH_PROMPT, Reading

SIZE = 50
COLUMNS = {
    "started_at": "started",
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
_FROM = " ".join(("FROM sessions s", WITH_PROMPT))
_LISTED = """
SELECT session_id, context, agent, model, coalesce(repo, cwd) AS place, title, started_at, n_prompts, n_tool_calls,
  n_edits, output_tokens, cost_usd, visible_output_tokens,
  date_diff('second', started_at, ended_at) AS seconds, left(prompt, 400) AS prompt
"""


def page(reading: Reading, query: Query) -> Page:
    """Sessions that fit the filter."""
    offered = reading.kept("sessions:offered", lambda: _offered(reading))
    chosen = {name: query.choice(name, offered[name]) for name in offered}
    where = Where()
    where.equals("s.context", "context", chosen["context"])
    where.equals("s.agent", "agent", chosen["agent"])
    where.equals("coalesce(s.repo, s.cwd)", "repo", chosen["repo"])
    where.contains("concat_ws(' ', prompt, title, session_id)", "text", query.text("text"))
    order = query.choice("order", COLUMNS, "started_at")
    upward = query.choice("way", ("up", "down"), "up" if order in _ASCENDING else "down") == "up"
    total = reading.rows(" ".join(("SELECT count(*) AS n", _FROM, where.text())), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    ordered = f"ORDER BY {order} {'ASC' if upward else 'DESC'} NULLS LAST, session_id LIMIT $size OFFSET $start"
    asked = " ".join((_LISTED, _FROM, where.text(), ordered))
    rows = reading.rows(asked, {**where.values, "size": SIZE, "start": part.start})
    filled = {
        "rows": rows,
        "query": query,
        "chosen": chosen,
        "offered": offered,
        "text": query.text("text"),
        "columns": COLUMNS,
        "order": order,
        "upward": upward,
        "part": part,
        "empty": not reading.store.manifest.sessions,
    }
    return Page("sessions.html.j2", "Sessions", filled)


def _offered(reading: Reading) -> dict[str, list[str]]:
    asked = {
        "context": "SELECT DISTINCT context AS v FROM sessions ORDER BY 1",
        "agent": "SELECT agent AS v FROM sessions WHERE agent <> '' GROUP BY agent ORDER BY count(*) DESC, agent",
        "repo": "SELECT DISTINCT coalesce(repo, cwd) AS v FROM sessions WHERE coalesce(repo, cwd) <> '' ORDER BY 1",
    }
    return {name: [row["v"] for row in reading.rows(sql)] for name, sql in asked.items()}


PAGES = (Route(("sessions",), page, "Sessions", 20),)
