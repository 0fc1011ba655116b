"""The bill by cause as questions see it: the causes' texts, and what each took of the sessions' costs."""

from __future__ import annotations

from collections.abc import Mapping

from agentsignals.questions.sql import IS_SUBAGENTS, read_queries

CAUSES: dict[str, str] = {
    "subagents": "subagents",
    "compaction": "the context written anew after a compaction",
    "rebuilt": "expired prompt caches rebuilt",
    "missed": "context sent again past the cache, within its life",
    "failed": "failed calls",
    "repeated": "calls repeated with nothing changed",
    "reread": "files read again that had not changed",
    "carried_results": "carried context: tool results",
    "carried_start": "carried context: what sessions start with",
    "carried_words": "carried context: prompts, answers, arguments",
    "cache_write": "new context, written to the cache",
    "input": "new context, not cached",
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
