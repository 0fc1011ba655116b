"""One session: what happened in order, and after it what was measured."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import msgspec

from agentsignals.model import MAIN
from agentsignals.signals import Signal
from agentsignals.signals.catalog import catalogue
from agentsignals.ui import page as words
from agentsignals.ui.page import Page, Query, Reply, Route
from agentsignals.ui.snapshot import Reading
from agentsignals.ui.trajectory import by_turn, choices, unusual
from agentsignals.ui.transcript import (
    KINDS,
    MOST_OPENED,
    PART,
    TROUBLE,
    Conversation,
    Teller,
    View,
    conversation,
    holding,
    home,
    name_of,
)

OUTLINE = 150
"""Turns of the outline shown at once."""
_MOST_WORDS = 200
_SIGNALS = """
SELECT signal, turn, level, number, absent, absent_detail, detail->>'at_least' AS at_least,
  CASE WHEN length(value) > 4000 AND starts_with(value, '[') THEN to_json(json_array_length(value) || ' entries')
    WHEN length(value) > 4000 AND starts_with(value, '{') THEN to_json(len(json_keys(value)) || ' entries')
    ELSE value END AS value
FROM signals WHERE session_id = $session AND level <> 'corpus' AND turn IS NULL ORDER BY signal
"""
"""Of a list that is too long for a line its length is asked for: those of a long session are megabytes."""
_OF_TURNS = """
SELECT signal, turn, level, value, number, absent, detail->>'at_least' AS at_least FROM signals
WHERE session_id = $session AND turn BETWEEN $low AND $high AND value NOT IN ('null', 'false', '0', '[]', '{}')
ORDER BY turn, signal
"""
_PROMPT = """
SELECT left(text, 400) AS text FROM turns
WHERE session_id = $session AND kind IN ('prompt', 'queued_prompt') AND trim(text) <> '' ORDER BY turn LIMIT 1
"""
_CHILDREN = """
SELECT s.session_id, s.agent, s.title, left(prompt, 200) AS prompt, s.n_tool_calls, s.started_at FROM sessions s
LEFT JOIN (
  SELECT session_id, arg_min(text, turn) AS prompt FROM turns
  WHERE session_id IN (SELECT session_id FROM sessions WHERE parent_session_id = $session) GROUP BY session_id
) USING (session_id)
WHERE parent_session_id = $session ORDER BY started_at LIMIT 200
"""
_OUTLINE = """
SELECT t.turn, t.seq, t.kind, left(t.text, 160) AS text, coalesce(c.n_calls, 0) AS n_calls,
  coalesce(c.n_failed, 0) AS n_failed, coalesce(d.n_edits, 0) AS n_edits
FROM (SELECT turn, seq, kind, text FROM turns WHERE session_id = $session AND turn BETWEEN $low AND $high) t
LEFT JOIN (
  SELECT turn, count(*) AS n_calls, count(*) FILTER (status = 'error') AS n_failed FROM tool_calls
  WHERE session_id = $session AND turn BETWEEN $low AND $high GROUP BY turn
) c USING (turn)
LEFT JOIN (
  SELECT turn, count(DISTINCT (seq, path)) AS n_edits FROM edits
  WHERE session_id = $session AND turn BETWEEN $low AND $high GROUP BY turn
) d USING (turn)
ORDER BY t.turn
"""
_TURN_AT = "SELECT turn FROM turns WHERE session_id = $session AND seq <= $seq ORDER BY seq DESC LIMIT 1"


class Reader:
    """What an address asks to see of a session: which entries, and which part of them."""

    def __init__(self, reading: Reading, query: Query, session_id: str) -> None:
        self.reading, self.query = reading, query
        self.session_id = _whole(reading, session_id)
        self.facts = self.rows("SELECT * FROM sessions WHERE session_id = $session")[0]
        self.conversation: Conversation = conversation(reading, self.session_id)
        asked = query.text("only").split(",")
        self.only = tuple(kind for kind in KINDS if kind in asked)
        at = query.number("at", -1)
        self.at = at if 0 <= at < (self.facts["n_events"] or 0) else -1
        self.home = home(reading, self.session_id, self.at) if self.at >= 0 else -1
        self.thread = query.choice("thread", self.conversation.threads)
        inside = self.conversation.thread_of(self.home)
        self.words = query.text("q")[:_MOST_WORDS]
        if not self.only and not self.words and not self.thread and inside != MAIN:
            is_long = len(self.conversation.threads[inside].seqs) > MOST_OPENED
            self.thread = inside if is_long else ""
        among = holding(reading, self.session_id, self.words) if self.words else None
        self.view: View = self.conversation.view(self.only, self.thread, among)
        self.number = min(max(query.number("page", 1) - 1, 0), self.view.last)
        if self.home >= 0:
            folded = {thread: seq for seq, thread in self.view.folded.items()}
            self.number = self.view.part_of(folded.get(inside, self.home))

    def rows(self, query: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Rows of this session."""
        return self.reading.rows_of(self.session_id, query, values)

    def filled(self) -> dict[str, Any]:
        """What the template of a part needs."""
        seqs = self.view.part(self.number)
        teller = Teller(self.reading, self.session_id, self.facts["cwd"], self.at)
        entries = teller.entries(seqs.tolist(), self.conversation, self.view.folded, self.home)
        for entry in entries if self.view.folded or self.thread else ():
            for shown in (entry, *(entry.folds.entries if entry.folds else ())):
                shown.thread = ""  # it stands among its like
        return {
            "session_id": self.session_id,
            "entries": entries,
            "number": self.number,
            "last": self.view.last,
            "first_entry": self.number * PART + 1,
            "n_entries": len(self.view.seqs),
            "of_turn": self._of_turns([entry.turn["turn"] for entry in entries if entry.turn]),
            "query": self.query,
        }

    def _of_turns(self, turns: list[int]) -> dict[int, list[dict[str, Any]]]:
        """Values of turns that say something: a flag that is not raised is left to `explain`."""
        if not turns:
            return {}
        rows = _declared(self.rows(_OF_TURNS, {"low": min(turns), "high": max(turns)}))
        return {turn: list(of_it) for turn, of_it in groupby(rows, key=lambda row: row["turn"])}

    def outline(self) -> dict[str, Any]:
        """The turns around the part that is shown, or from the one that the address names."""
        n_turns = self.facts["n_turns"] or 0
        first = self.query.number("turn", -1)
        if first < 0:
            seqs = self.view.part(self.number)
            rows = self.rows(_TURN_AT, {"seq": max(self.home, seqs[0] if seqs else 0)})
            first = rows[0]["turn"] if rows else 0
        low = min(first, max(n_turns - 1, 0)) // OUTLINE * OUTLINE
        turns = self.rows(_OUTLINE, {"low": low, "high": low + OUTLINE - 1})
        return {"turns": turns, "low": low, "step": OUTLINE, "n_turns": n_turns, "session_id": self.session_id}


def page(reading: Reading, query: Query, session_id: str) -> Page:
    """A session of the store; `at` names the event to begin from, `only` the kinds of entries that are shown."""
    reader = Reader(reading, query, session_id)
    facts = reader.facts
    whole = _declared(reader.rows(_SIGNALS))
    prompts = reader.rows(_PROMPT)
    title = facts["title"] or (prompts[0]["text"] if prompts else "") or f"Session {reader.session_id}"
    counts = reader.conversation.counts
    along_choices = choices(reading, reader.session_id)
    chosen = next((signal for signal in along_choices if signal.path == query.text("signal")), None)
    filled = reader.filled() | {
        "facts": facts,
        "kinds": [(kind, KINDS[kind][0], counts[kind]) for kind in KINDS],
        "only": reader.only,
        "trouble": [(kind, counts[kind]) for kind in (*TROUBLE, "edits")],
        "thread": reader.thread,
        "thread_name": name_of(reader.thread) if reader.thread else "",
        "turns": reader.outline(),
        "along": reader.conversation.along,
        "along_choices": along_choices,
        "by_turn": by_turn(reading, reader.session_id, chosen, facts["n_events"] or 0) if chosen else None,
        "unusual": unusual(reading, facts["context"], whole),
        "families": _families(whole),
        "n_measured": len(whole),
        "n_absent": sum(row["absent"] is not None for row in whole),
        "children": reading.rows(_CHILDREN, {"session": reader.session_id}),
    }
    return Page("session.html.j2", words.cut(title, 140), filled)


def part(reading: Reading, query: Query, session_id: str) -> Page:
    """One part of the entries, for the script that puts it into the page."""
    return Page("session_part.html.j2", "", Reader(reading, query, session_id).filled())


def outline(reading: Reading, query: Query, session_id: str) -> Page:
    """A piece of the outline."""
    return Page("session_outline.html.j2", "", {"turns": Reader(reading, query, session_id).outline(), "query": query})


def marks(reading: Reading, query: Query, session_id: str) -> Reply:
    """The events to jump to, by kind."""
    of = conversation(reading, _whole(reading, session_id))
    by_kind = {kind: of.marks(kind) for kind in ("prompts", "edits", *TROUBLE)}
    return Reply(msgspec.json.encode(by_kind), "application/json")


def _whole(reading: Reading, session_id: str) -> str:
    """The id of a session. UnknownSession when there is none; StoreError when it can't be read."""
    store = reading.store
    full = store.resolve(session_id)
    if store.manifest.sessions[full].shard not in store.whole():
        store.session(full)  # says what is wrong with it
    return full


def _declared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Values of signals that there still are, each with what it means."""
    signals: dict[str, Signal] = {signal.path: signal for signal in catalogue().values()}
    return [row | {"one": signals[row["signal"]]} for row in rows if row["signal"] in signals]


def _families(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Signals by family: those with a value, and those without."""
    families = []
    for family, of_it in groupby(rows, key=lambda row: row["signal"].partition(".")[0]):
        listed = list(of_it)
        families.append((family, [r for r in listed if r["absent"] is None], [r for r in listed if r["absent"]]))
    return families


PAGES = (
    Route(("session", "*"), page, below="/sessions"),
    Route(("session", "*", "part"), part, below="/sessions"),
    Route(("session", "*", "turns"), outline, below="/sessions"),
    Route(("session", "*", "marks"), marks, below="/sessions"),
)
