"""The catalogue, with what this store holds of each signal."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from agentsignals.signals import Signal, Status, catalog
from agentsignals.signals.catalog import inventory
from agentsignals.ui.figures import Spread, chosen, histogram, spreads
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.queries import sql
from agentsignals.ui.snapshot import Snapshot


def signals_page(snapshot: Snapshot, query: Query) -> Page:
    """Signals that fit the words, with how many values the sessions chosen have and how they are spread."""
    filter_ = filtered(query, snapshot)
    context = query.choice("context", ("product", "eval"), snapshot.main_context)
    status = query.choice("status", get_args(Status))
    high_value = query.choice("high_value", ("1",)) == "1"
    seen = context if snapshot.contexts - {context} else ""
    by_signal = spreads(snapshot, seen, filter_)
    measured = {path for path, spread in spreads(snapshot, seen).items() if spread.figures["known"]}
    rows = inventory(query.text("name"), context, high_value, status or None, measured)
    filled = {
        "rows": [row | {"spread": by_signal.get(row["path"])} for row in rows],
        "statuses": get_args(Status),
        "status": status,
        "context": context,
        "high_value": high_value,
        "name": query.text("name"),
        "query": query,
        "filter": filter_,
        "of": filter_.of_context(context),
    }
    return Page("signals.html.j2", "Signals", filled)


# One signal: its meaning, its spread over the sessions chosen, and those at its ends.

MOST = 10
"""Sessions shown at each end."""
MOST_VALUES = 20


def signal_page(snapshot: Snapshot, query: Query, path: str) -> Page:
    """A signal of the catalogue, in one context."""
    signal = catalog.by_path(path)
    default = signal.context if signal.context != "both" else snapshot.main_context
    context = query.choice("context", ("product", "eval") if signal.context == "both" else (signal.context,), default)
    seen = context if snapshot.contexts - {context} else ""
    filter_ = filtered(query, snapshot)
    of = filter_.of_context(context)
    key = ("signal", signal.path, *sorted(of.words.items()))
    filled = {
        "one": signal,
        "row": next(row for row in catalog.inventory() if row["path"] == signal.path),
        "context": context,
        "contexts": ("product", "eval") if signal.context == "both" and len(snapshot.contexts) > 1 else (context,),
        "query": query,
        "filter": filter_,
        "of": of,
        **snapshot.recent(key, lambda: _measured(snapshot, signal, of, spreads(snapshot, seen, filter_), seen)),
    }
    return Page("signal.html.j2", signal.path, filled)


def _measured(
    snapshot: Snapshot, signal: Signal, of: Filter, by_signal: dict[str, Spread], seen: str
) -> dict[str, Any]:
    spread = by_signal.get(signal.path)
    absent = snapshot.rows(sql("signal.absent", chosen=chosen(of)), {**of.where.values, "signal": signal.path}, seen)
    return {
        "spread": spread,
        "drawn": histogram(snapshot, seen, of, signal, spread) if spread else None,
        "absent": [row | {"link": of.also("/sessions", f"{signal.path} absent {row['reason']}")} for row in absent],
        "corpus": snapshot.rows(sql("signal.corpus_value"), {"signal": signal.path}, seen),
        **_values(snapshot, signal, of, spread, seen),
    }


def _values(snapshot: Snapshot, signal: Signal, of: Filter, spread: Spread | None, seen: str) -> dict[str, Any]:
    """The commonest values where there are few kinds; the sessions at both ends where there is an order."""
    if spread is None:
        return {"values": [], "ends": []}
    values = {**of.where.values, "signal": signal.path, "most": MOST}

    def ends(order: str, numbered: str = "") -> list[dict[str, Any]]:
        return snapshot.rows(sql("signal.extremes", chosen=chosen(of), order=order, numbered=numbered), values, seen)

    if signal.type in ("int", "float"):
        high, low = (ends(f"number {way}", "AND number IS NOT NULL") for way in ("DESC", "ASC"))
        return {"values": [], "ends": [("Highest", high), ("Lowest", low)]}
    if signal.type in ("bool", "str", "enum"):
        rows = snapshot.rows(sql("signal.values", chosen=chosen(of)), {**values, "most": MOST_VALUES}, seen)
        for row in rows:
            value = msgspec.json.decode(row["value"])
            plain = str(value).lower() if signal.type == "bool" else value
            # No link to a text that would be taken for more than one condition.
            is_one = ";" not in plain and plain == plain.strip()
            row["link"] = of.also("/sessions", f"{signal.path}={plain}") if is_one else ""
        return {"values": rows, "ends": []}
    return {"values": [], "ends": [("Longest", ends("length(value) DESC"))]}


PAGES = (Route(("signals",), signals_page, "Signals", 60), Route(("signal", "*"), signal_page, below="/signals"))
