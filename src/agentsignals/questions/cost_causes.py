"""The bill by cause as questions see it: the causes' texts, and what each took of the sessions' costs."""

from __future__ import annotations

from collections.abc import Mapping

from agentsignals.questions.sql import IS_SUBAGENTS, read_queries

CAUSES: dict[str, str] = {
    "subagents": "subagents",
    "compaction": "context rewritten after compaction",
    "rebuilt": "expired prompt caches rebuilt",
    "missed": "cache misses before expiry",
    "failed": "failed calls",
    "repeated": "repeated calls",
    "reread": "re-reads of unchanged files",
    "carried_results": "re-sent context: tool results",
    "carried_start": "re-sent context: start of the session",
    "carried_words": "re-sent context: messages and call arguments",
    "cache_write": "new context: cache writes",
    "input": "new context: uncached input",
    "output": "output",
    "other": "other",
}
"""Text by cause, in order of precedence: a dollar that two causes claim belongs to the first."""
CARRIED = ("carried_results", "carried_start", "carried_words")
BOUNDED = ("output", "subagents")
"""Causes that are lower bounds where a session logs its output in mid-stream."""
QUERIES: Mapping[str, str] = read_queries(
    __file__,
    is_subagents=IS_SUBAGENTS,
    causes=", ".join(f"sum(cost_usd) FILTER (cause = '{cause}') AS {cause}" for cause in CAUSES),
)["cost"]
"""Queries for the bill: of each priced session, the same by cause, and the calls that were paid for twice."""
