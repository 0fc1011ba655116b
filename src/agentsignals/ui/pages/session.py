"""One session: what happened in order, and beside it what was measured."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from agentsignals.catalog import Signal, catalogue
from agentsignals.model import Session
from agentsignals.ui import words
from agentsignals.ui.page import Page, Part, Query, Route, part_of
from agentsignals.ui.reading import Reading
from agentsignals.ui.timeline import blocks, homes

SIZE = 400
"""Events on one page."""
_SIGNALS = """
SELECT signal, turn, level, value, number, absent, absent_detail, detail->>'at_least' AS at_least FROM signals
WHERE session_id = $session AND level <> 'corpus' ORDER BY signal, turn
"""


def page(reading: Reading, query: Query, session_id: str) -> Page:
    """A session of the store; `at` names the event to begin from."""
    session = reading.store.session(session_id)
    at = query.number("at", -1)
    part = _part(session, query, at)
    measured = _measured(reading, session.session_id)
    shown = session.events[part.start : part.end]
    whole = [row for row in measured if row["turn"] is None]
    filled = {
        "session": session,
        "facts": reading.rows("SELECT * FROM sessions WHERE session_id = $session", {"session": session.session_id})[0],
        "blocks": blocks(session, shown, at),
        "of_turn": {turn: list(rows) for turn, rows in groupby(_told_of_turns(measured), key=lambda row: row["turn"])},
        "families": _families(whole),
        "n_measured": len(whole),
        "n_absent": sum(row["absent"] is not None for row in whole),
        "part": part,
        "query": query,
        "children": [
            row["session_id"]
            for row in reading.rows(
                "SELECT session_id FROM sessions WHERE parent_session_id = $session ORDER BY started_at",
                {"session": session.session_id},
            )
        ],
    }
    return Page("session.html.j2", _title(session), filled)


def _title(session: Session) -> str:
    """Its own title, or what was first asked for, or its id."""
    asked = (turn.text for turn in session.turns if turn.kind in ("prompt", "queued_prompt") and turn.text.strip())
    return words.cut(session.title or next(asked, "") or f"Session {session.session_id}", 140)


def _part(session: Session, query: Query, at: int) -> Part:
    total = len(session.events)
    if not 0 <= at < total:
        return part_of(query, SIZE, total)
    return Part(homes(session).get(at, at) // SIZE, SIZE, total)


def _measured(reading: Reading, session_id: str) -> list[dict[str, Any]]:
    declared: dict[str, Signal] = {signal.path: signal for signal in catalogue().values()}
    rows = reading.rows(_SIGNALS, {"session": session_id})
    return [row | {"one": declared[row["signal"]]} for row in rows if row["signal"] in declared]


def _families(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Signals by family: those with a value, and those without."""
    families = []
    for family, of_it in groupby(rows, key=lambda row: row["signal"].partition(".")[0]):
        listed = list(of_it)
        families.append((family, [r for r in listed if r["absent"] is None], [r for r in listed if r["absent"]]))
    return families


def _told_of_turns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Values of turns that say something: a flag that is not raised, and a count of nothing, are left to `explain`."""
    valued = [row for row in rows if row["turn"] is not None and row["value"] not in (None, "false", "0", "[]", "{}")]
    return sorted(valued, key=lambda row: (row["turn"], row["signal"]))


PAGES = (Route(("session", "*"), page, below="/sessions"),)
