"""One signal: its meaning, its spread, and the sessions at its ends."""

from __future__ import annotations

from typing import Any

from agentsignals import catalog
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.reading import WITH_PROMPT, Reading
from agentsignals.ui.spread import Spread, spreads

MOST = 10
"""Sessions shown at each end."""
MOST_VALUES = 20
_ABSENT = """
SELECT absent AS reason, absent_detail AS detail, count(*) AS n FROM signals
WHERE signal = $signal AND absent IS NOT NULL GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT 20
"""
_VALUES = """
SELECT value, count(*) AS n, min(session_id) AS example FROM signals
WHERE signal = $signal AND absent IS NULL GROUP BY value ORDER BY n DESC, value LIMIT $most
"""
_ENDS = """
SELECT g.session_id, g.turn, g.number, g.value, detail->>'at_least' AS at_least, s.agent, s.title,
  left(prompt, 300) AS prompt, s.started_at
FROM signals g JOIN sessions s USING (session_id)
"""
_WITH_VALUE = """
WHERE g.signal = $signal AND g.absent IS NULL AND g.level <> 'corpus'
"""
_NUMBERED = "AND g.number IS NOT NULL ORDER BY g.number"
_LONGEST = "ORDER BY length(g.value) DESC, g.session_id, g.turn LIMIT $most"
_CORPUS = """
SELECT value, number, absent, absent_detail, detail->>'at_least' AS at_least FROM signals
WHERE signal = $signal AND level = 'corpus'
"""


def page(reading: Reading, query: Query, path: str) -> Page:
    """A signal of the catalogue, in one context."""
    signal = catalog.by_path(path)
    default = signal.context if signal.context != "both" else reading.main_context
    context = query.choice("context", ("product", "eval") if signal.context == "both" else (signal.context,), default)
    seen = context if reading.contexts - {context} else ""
    spread = spreads(reading, seen).get(signal.path)
    filled = {
        "one": signal,
        "row": next(row for row in catalog.inventory() if row["path"] == signal.path),
        "context": context,
        "contexts": ("product", "eval") if signal.context == "both" and len(reading.contexts) > 1 else (context,),
        "spread": spread,
        "absent": reading.rows(_ABSENT, {"signal": signal.path}, seen),
        "corpus": reading.rows(_CORPUS, {"signal": signal.path}, seen),
        "query": query,
        **_values(reading, signal, spread, seen),
    }
    return Page("signal.html.j2", signal.path, filled)


def _values(reading: Reading, signal: catalog.Signal, spread: Spread | None, seen: str) -> dict[str, Any]:
    """The commonest values where there are few kinds; the sessions at both ends where there is an order."""
    parameters = {"signal": signal.path, "most": MOST}
    if spread is None:
        return {"values": [], "ends": []}
    if signal.type in ("int", "float"):
        order = "g.session_id, g.turn LIMIT $most"
        highest = reading.rows(" ".join((_ENDS, WITH_PROMPT, _WITH_VALUE, _NUMBERED, "DESC,", order)), parameters, seen)
        lowest = reading.rows(" ".join((_ENDS, WITH_PROMPT, _WITH_VALUE, _NUMBERED, "ASC,", order)), parameters, seen)
        return {"values": [], "ends": [("Highest", highest), ("Lowest", lowest)]}
    if signal.type in ("bool", "str", "enum"):
        return {"values": reading.rows(_VALUES, {"signal": signal.path, "most": MOST_VALUES}, seen), "ends": []}
    return {
        "values": [],
        "ends": [("Longest", reading.rows(" ".join((_ENDS, WITH_PROMPT, _WITH_VALUE, _LONGEST)), parameters, seen))],
    }


PAGES = (Route(("signal", "*"), page, below="/signals"),)
