"""One signal: its meaning, its spread over the sessions chosen, and those at its ends."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.signals import Signal, catalog
from agentsignals.ui.figures import Spread, chosen, histogram, spreads
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.snapshot import Reading

MOST = 10
"""Sessions shown at each end."""
MOST_VALUES = 20
_ABSENT = """
SELECT absent AS reason, absent_detail AS detail, count(*) AS n FROM signals
WHERE signal = $signal AND absent IS NOT NULL {chosen} GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT 20
"""
_VALUES = """
SELECT value, count(*) AS n, min(session_id) AS example FROM signals
WHERE signal = $signal AND absent IS NULL {chosen} GROUP BY value ORDER BY n DESC, value LIMIT $most
"""
_ENDS = """
WITH shown AS (
  SELECT session_id, turn, number, value, detail->>'at_least' AS at_least FROM signals
  WHERE signal = $signal AND absent IS NULL AND level <> 'corpus' {numbered} {chosen}
  ORDER BY {order}, session_id, turn LIMIT $most
)
SELECT g.*, s.agent, s.title, s.started_at, prompt FROM shown g JOIN sessions s USING (session_id) LEFT JOIN (
  SELECT session_id, left(arg_min(text, turn), 300) AS prompt FROM turns
  WHERE kind IN ('prompt', 'queued_prompt') AND session_id IN (SELECT session_id FROM shown) GROUP BY session_id
) USING (session_id) ORDER BY {order}, session_id, g.turn
"""
"""Prompts of the sessions that are shown, not of all."""
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
    filter_ = filtered(query, reading)
    of = filter_.of_context(context)
    key = ("signal", signal.path, *sorted(of.words.items()))
    filled = {
        "one": signal,
        "row": next(row for row in catalog.inventory() if row["path"] == signal.path),
        "context": context,
        "contexts": ("product", "eval") if signal.context == "both" and len(reading.contexts) > 1 else (context,),
        "query": query,
        "filter": filter_,
        "of": of,
        **reading.recent(key, lambda: _measured(reading, signal, of, spreads(reading, seen, filter_), seen)),
    }
    return Page("signal.html.j2", signal.path, filled)


def _measured(reading: Reading, signal: Signal, of: Filter, by_signal: dict[str, Spread], seen: str) -> dict[str, Any]:
    spread = by_signal.get(signal.path)
    absent = reading.rows(_ABSENT.format(chosen=chosen(of)), {**of.where.values, "signal": signal.path}, seen)
    return {
        "spread": spread,
        "drawn": histogram(reading, seen, of, signal, spread) if spread else None,
        "absent": [row | {"link": of.also("/sessions", f"{signal.path} absent {row['reason']}")} for row in absent],
        "corpus": reading.rows(_CORPUS, {"signal": signal.path}, seen),
        **_values(reading, signal, of, spread, seen),
    }


def _values(reading: Reading, signal: Signal, of: Filter, spread: Spread | None, seen: str) -> dict[str, Any]:
    """The commonest values where there are few kinds; the sessions at both ends where there is an order."""
    if spread is None:
        return {"values": [], "ends": []}
    values = {**of.where.values, "signal": signal.path, "most": MOST}

    def ends(order: str, numbered: str = "") -> list[dict[str, Any]]:
        return reading.rows(_ENDS.format(chosen=chosen(of), order=order, numbered=numbered), values, seen)

    if signal.type in ("int", "float"):
        high, low = (ends(f"number {way}", "AND number IS NOT NULL") for way in ("DESC", "ASC"))
        return {"values": [], "ends": [("Highest", high), ("Lowest", low)]}
    if signal.type in ("bool", "str", "enum"):
        rows = reading.rows(_VALUES.format(chosen=chosen(of)), {**values, "most": MOST_VALUES}, seen)
        return {"values": [row | {"link": _to_value(of, signal, row["value"])} for row in rows], "ends": []}
    return {"values": [], "ends": [("Longest", ends("length(value) DESC"))]}


def _to_value(of: Filter, signal: Signal, value: str) -> str:
    """The sessions with a value; none of a text that would be taken for more than one condition."""
    plain = str(msgspec.json.decode(value)).lower() if signal.type == "bool" else msgspec.json.decode(value)
    return "" if ";" in plain or plain != plain.strip() else of.also("/sessions", f"{signal.path}={plain}")


PAGES = (Route(("signal", "*"), page, below="/signals"),)
