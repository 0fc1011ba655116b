"""The line of the file behind an event, and the pictures it holds."""

from __future__ import annotations

from agentsignals.ui.markup import coloured
from agentsignals.ui.page import NotFound, Page, Query, Route
from agentsignals.ui.raw_record import RawLine, raw_line
from agentsignals.ui.snapshot import Reading


def page(reading: Reading, query: Query, session_id: str, seq: str) -> Page:
    """What stands in the file where an event was read."""
    full = reading.store.resolve(session_id)
    return Page(
        "session_raw.html.j2",
        f"Event {seq}",
        {"raw": _raw(reading, full, seq), "session_id": full, "seq": seq, "coloured": coloured},
    )


def pictures(reading: Reading, query: Query, session_id: str, seq: str) -> Page:
    """The pictures of an event, for the script that puts them into the page."""
    return Page("session_pictures.html.j2", "", {"raw": _raw(reading, reading.store.resolve(session_id), seq)})


def _raw(reading: Reading, session_id: str, seq: str) -> RawLine:
    if not (seq.isascii() and seq.isdigit() and len(seq) <= 12):
        raise NotFound(f"An event is named by its number, not by {seq[:80]}.")
    return raw_line(reading, session_id, int(seq))


PAGES = (
    Route(("session", "*", "raw", "*"), page, below="/sessions"),
    Route(("session", "*", "image", "*"), pictures, below="/sessions"),
)
