"""A store in one line: how many sessions of whom, of which agents, from when to when."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentsignals.errors import AgentSignalsError
from agentsignals.store.query import rows

if TYPE_CHECKING:
    from agentsignals.store import Store

_WHOSE = {"product": "of people", "eval": "of eval runs"}


def outline(store: Store) -> str:
    """Counts from the index; agents and days from the sessions, where they can be read."""
    counted = Counter(entry.context for entry in store.manifest.sessions.values())
    if not counted:
        return "no sessions"
    whose = " and ".join(f"{n:,} {_WHOSE[context]}" for context, n in counted.most_common())
    parts = [f"{whose.replace(' of', ' session of' if counted.total() == 1 else ' sessions of', 1)}"]
    try:
        agents = rows(store, "SELECT agent, count(*) AS n FROM sessions GROUP BY agent ORDER BY n DESC, agent")[1]
        days = rows(store, "SELECT min(started_at)::DATE::TEXT, max(started_at)::DATE::TEXT FROM sessions")[1]
    except AgentSignalsError:  # a word on a damaged store must not fail
        return "; ".join([*parts, "damaged"])
    parts.append(", ".join(f"{agent} {n:,}" for agent, n in agents))
    first, last = days[0]
    if first is not None:
        parts.append(first if first == last else f"{first} to {last}")
    if store.damage:
        parts.append("damaged")
    return "; ".join(parts)
