"""The sessions that a number counts, each with what it has of it."""

from __future__ import annotations

import shlex

from agentsignals.ui.drill_down import WITH, behind_key
from agentsignals.ui.page import Page, Query, Route, part_of
from agentsignals.ui.snapshot import WITH_PROMPT, Reading

SIZE = 50
_NO_KEY = "Every number of a study, a finding or a comparison leads to the sessions it counts."
_LISTED = " ".join(
    (
        "SELECT session_id, agent, model, context, title, coalesce(repo, cwd) AS place, started_at, n_tool_calls,",
        "cost_usd, visible_output_tokens, left(prompt, 400) AS prompt FROM sessions",
        WITH_PROMPT,
        "WHERE list_contains($ids, session_id)",
    )
)


def page(reading: Reading, query: Query) -> Page:
    """The sessions of a key, largest part first."""
    key = query.text("key")
    if not key:
        return Page("note.html.j2", "Behind a number", {"note": _NO_KEY, "where": "/studies", "there": "Studies"})
    made = behind_key(reading, key)
    whole = behind_key(reading, key.removeprefix(WITH))
    ids = list(made.parts)
    part = part_of(query, SIZE, len(ids))
    shown = ids[part.start : part.end]
    rows = {row["session_id"]: row for row in reading.rows(_LISTED, {"ids": shown})} if shown else {}
    filled = {
        "key": key,
        "whole_key": key.removeprefix(WITH),
        "made": made,
        "of_all": len(whole.parts),
        "with_part": len(whole.partly().parts),
        "rows": [rows[session_id] for session_id in shown if session_id in rows],
        "part": part,
        "query": query,
        "command": f"agentsignals sessions --behind {shlex.quote(key)}",
    }
    return Page("behind.html.j2", made.title, filled)


PAGES = (Route(("behind",), page, below="/studies"),)
