"""One value with what it rests on: the signal's own function, asked again."""

from __future__ import annotations

from collections import Counter

from agentsignals.ingest.explaining import explain
from agentsignals.prices.bill import in_digits, summed
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.reading import Reading

ROLES = {
    "support": "makes the value",
    "denominator": "out of these",
    "counter": "speaks against it, or was left out",
    "input": "another signal’s value that went in",
}
"""What a piece of evidence is to a value (`evidence.Evidence`)."""


def page(reading: Reading, query: Query, session_id: str, path: str) -> Page:
    """Why a session has this value of a signal, or this total of tokens or money, or none."""
    explanation = explain(reading.store, session_id, path)
    roles = [role for role in ROLES if any(item.role == role for item in explanation.evidence)]
    filled = {
        "found": explanation,
        "roles": [(role, ROLES[role], [i for i in explanation.evidence if i.role == role]) for role in roles],
        "shown": Counter(item.role for item in explanation.evidence),
        "sum": summed(explanation.bill),
        "in_digits": in_digits,
    }
    return Page("explanation.html.j2", f"{explanation.signal} of {explanation.session}", filled)


PAGES = (Route(("session", "*", "explain", "*"), page, below="/sessions"),)
