"""Search: the sessions in which something was said, run or answered, each with the passages that say so."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any, get_args

from agentsignals.errors import AgentSignalsError, StoreError
from agentsignals.store import Store
from agentsignals.store import fulltext as index
from agentsignals.store.fulltext import KINDS, Hit, Order, Results, search
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Page, Query, Route, part_of
from agentsignals.ui.snapshot import Reading

SIZE = 20
HITS, MOST_HITS = 3, 200
"""Passages that are shown of each session; and of one, where the question names it."""
WAIT_S = 1.0
"""How long a page waits for what the index lacks; after that it shows what there is, and asks again."""
ORDERS = dict(zip(get_args(Order), ("last active", "most passages"), strict=True))
_SHORTEST_ID = 6
"""Characters of an id that are taken for one."""


class Making(Thread):
    """Makes what the index lacks, beside the pages."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="search index", daemon=True)
        self.share = 0.0
        """How much of it is done, 0 to 1."""
        self.note = ""
        self.problem: AgentSignalsError | None = None
        self._store = store

    def run(self) -> None:
        try:
            self.note = index.make(self._store, self._went_on)
        except AgentSignalsError as problem:
            self.problem = problem

    def _went_on(self, stage: str, done: int, total: int | None) -> None:
        self.share = done / total if total else 0.0


def page(reading: Reading, query: Query) -> Page:
    """What fits the question, a session a piece."""
    text, filter_ = query.text("q"), filtered(query, reading)
    kind = query.choice("kind", KINDS)
    making = reading.kept("search:index", lambda: _begun(reading.store)) if text else None
    if making is not None:
        making.join(WAIT_S)
        if making.problem is not None:
            raise making.problem
    results = _results(reading, query, filter_, kind)
    part = part_of(query, SIZE, results.n_sessions)
    filled = {
        "text": text,
        "results": results,
        "notes": [*results.notes, *([making.note] if making is not None and making.note else [])],
        "share": making.share if making is not None and making.is_alive() else None,
        "session_id": _session_named(reading.store, text),
        "pieces": pieces,
        "kinds": KINDS,
        "kind": kind,
        "orders": ORDERS,
        "order": query.choice("order", ORDERS, "newest"),
        "filter": filter_,
        "query": query,
        "part": part,
    }
    return Page("search.html.j2", f"Search: {text}" if text else "Search", filled)


def pieces(hit: Hit) -> Iterator[tuple[str, bool]]:
    """The excerpt in pieces, and whether each was looked for."""
    at = 0
    for start, end in hit.marks:
        yield hit.text[at:start], False
        yield hit.text[start:end], True
        at = end
    yield hit.text[at:], False


def _results(reading: Reading, query: Query, filter_: Filter, kind: str) -> Results:
    text = query.text("q")
    if not text:
        return Results(text="")
    options: dict[str, Any] = {
        "kinds": [kind] if kind else (),
        "among": _among(reading, filter_),
        "order": query.choice("order", ORDERS, "newest"),
        "limit": SIZE,
        "complete": False,
    }
    options["most_hits"] = MOST_HITS if "session:" in text else HITS
    start = (max(query.number("page", 1), 1) - 1) * SIZE
    results = search(reading.store, text, start=start, **options)
    last = part_of(query, SIZE, results.n_sessions).start
    return results if last == start else search(reading.store, text, start=last, **options)


def _among(reading: Reading, filter_: Filter) -> set[str] | None:
    if not filter_.where.text():
        return None
    return {row["session_id"] for row in reading.rows(filter_.sessions, filter_.where.values)}


def _begun(store: Store) -> Making:
    making = Making(store)
    making.start()
    return making


def _session_named(store: Store, text: str) -> str:
    """The session whose id was typed; empty where none has it."""
    try:
        return store.resolve(text) if len(text) >= _SHORTEST_ID and " " not in text else ""
    except StoreError:
        return ""


PAGES = (Route(("search",), page, below="/sessions"),)
