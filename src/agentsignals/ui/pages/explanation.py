"""One value with what it rests on: the signal's own function, asked again."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agentsignals.model.prices import in_digits, summed
from agentsignals.signals.catalog import catalogue
from agentsignals.stats.validation import Figure, figures
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.snapshot import Reading
from agentsignals.ui.trajectory import place
from agentsignals.ui.transcript import name_of
from agentsignals.views.session import Item

if TYPE_CHECKING:
    from agentsignals.ingest.measure import Explanation

ROLES = {
    "support": "makes the value",
    "denominator": "out of these",
    "counter": "speaks against it, or was left out",
    "input": "another signal’s value that went in",
}
"""What a piece of evidence is to a value (`evidence.Evidence`)."""
_EVENTS = """
SELECT e.seq, e.kind, e.turn, e.thread, e.timestamp, c.name, c.status, c.error_class, c.exit_code
FROM (
  SELECT seq, kind, turn, thread, timestamp FROM events
  WHERE session_id = $session AND seq IN (SELECT unnest($seqs))
) e LEFT JOIN (
  SELECT seq, name, status, error_class, exit_code FROM tool_calls
  WHERE session_id = $session AND seq IN (SELECT unnest($seqs))
) c USING (seq)
"""
_SAME = """
SELECT count(*) AS n, count(*) FILTER (value = $value) AS same FROM signals
WHERE signal = $signal AND level IN ('session', 'attempt') AND absent IS NULL
"""
_TITLE = "SELECT title, context FROM sessions WHERE session_id = $session"


class Line(Struct, kw_only=True):
    """A piece of evidence as it is read."""

    item: Item
    event: dict[str, Any] | None
    """What happened there, when and by whom; None where no event is named."""
    thread: str
    signal: str
    """The signal whose value went in; empty where it is an event."""


def page(reading: Reading, query: Query, session_id: str, path: str) -> Page:
    """Why a session has this value of a signal, or this total of tokens or money, or none."""
    from agentsignals.ingest.measure import explained  # noqa: PLC0415  (0.2 s, which no other page needs)

    explanation = explained(reading.store, reading.session(session_id), path)
    about = reading.rows(_TITLE, {"session": explanation.session})[0]
    lines = _lines(reading, explanation)
    roles = [role for role in ROLES if any(line.item.role == role for line in lines)]
    filled = {
        "found": explanation,
        "about": about,
        "roles": [(role, ROLES[role], [line for line in lines if line.item.role == role]) for role in roles],
        "shown": Counter(line.item.role for line in lines),
        "sum": summed(explanation.bill),
        "in_digits": in_digits,
        "place": _place(reading, about["context"], explanation),
        "same": _same(reading, about["context"], explanation),
        "truths": _truths(explanation),
        "is_flat": all(not isinstance(value, dict | list) for value in explanation.detail.values()),
    }
    return Page("explanation.html.j2", f"{explanation.signal} of {explanation.session}", filled)


def _lines(reading: Reading, explanation: Explanation) -> list[Line]:
    seqs = sorted({item.seq for item in explanation.evidence if item.seq is not None})
    rows = reading.rows(_EVENTS, {"session": explanation.session, "seqs": seqs}) if seqs else []
    events = {row["seq"]: row for row in rows}
    paths = {signal.path for signal in catalogue().values()}
    lines = []
    for item in explanation.evidence:
        event = events.get(item.seq) if item.seq is not None else None
        signal = item.excerpt.split(" ", 1)[0] if item.role == "input" else ""
        lines.append(
            Line(
                item=item,
                event=event,
                thread=name_of(event["thread"]) if event else "",
                signal=signal if signal in paths else "",
            )
        )
    return lines


def _place(reading: Reading, context: str, explanation: Explanation) -> Any:
    """Where a number stands among those of the store; None for what is none."""
    value = explanation.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return place(reading, context, explanation.signal, value) if is_number else None


def _same(reading: Reading, context: str, explanation: Explanation) -> dict[str, Any] | None:
    """How many sessions have a value, and how many this one; None for numbers and what is no single word."""
    value = explanation.value
    if not isinstance(value, bool | str):
        return None
    seen = context if reading.contexts - {context} else ""
    asked = {"signal": explanation.signal, "value": msgspec.json.encode(value).decode()}
    return reading.rows(_SAME, asked, seen)[0]


def _truths(explanation: Explanation) -> list[tuple[Figure, list[Figure]]]:
    """What was measured of the signal, by the truth it was measured against, the largest first."""
    measured = [figure for figure in figures() if figure.signal == explanation.signal]
    by_truth = [list(of_it) for _, of_it in groupby(measured, key=lambda figure: figure.truth)]
    return [(of_truth[0], of_truth) for of_truth in sorted(by_truth, key=lambda of_truth: -of_truth[0].n)]


PAGES = (Route(("session", "*", "explain", "*"), page, below="/sessions"),)
