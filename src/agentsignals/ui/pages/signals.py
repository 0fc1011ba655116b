"""The catalogue, with what this store holds of each signal."""

from __future__ import annotations

from typing import get_args

from agentsignals.catalog import Status, inventory
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.reading import Reading
from agentsignals.ui.spread import spreads


def page(reading: Reading, query: Query) -> Page:
    """Signals that fit the filter, with how many values there are and how they are spread."""
    context = query.choice("context", ("product", "eval"), reading.main_context)
    status = query.choice("status", get_args(Status))
    high_value = query.choice("high_value", ("1",)) == "1"
    by_signal = spreads(reading, context if reading.contexts - {context} else "")
    measured = {path for path, spread in by_signal.items() if spread.figures["known"]}
    rows = inventory(query.text("text"), context, high_value, status or None, measured)
    filled = {
        "rows": [row | {"spread": by_signal.get(row["path"])} for row in rows],
        "statuses": get_args(Status),
        "status": status,
        "context": context,
        "high_value": high_value,
        "text": query.text("text"),
        "query": query,
    }
    return Page("signals.html.j2", "Signals", filled)


PAGES = (Route(("signals",), page, "Signals", 60),)
