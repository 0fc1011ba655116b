"""The catalogue, with what this store holds of each signal."""

from __future__ import annotations

from typing import get_args

from agentsignals.signals import Status
from agentsignals.signals.catalog import inventory
from agentsignals.ui.figures import spreads
from agentsignals.ui.filter import filtered
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.snapshot import Reading


def page(reading: Reading, query: Query) -> Page:
    """Signals that fit the words, with how many values the sessions chosen have and how they are spread."""
    filter_ = filtered(query, reading)
    context = query.choice("context", ("product", "eval"), reading.main_context)
    status = query.choice("status", get_args(Status))
    high_value = query.choice("high_value", ("1",)) == "1"
    seen = context if reading.contexts - {context} else ""
    by_signal = spreads(reading, seen, filter_)
    measured = {path for path, spread in spreads(reading, seen).items() if spread.figures["known"]}
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


PAGES = (Route(("signals",), page, "Signals", 60),)
