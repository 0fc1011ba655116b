"""The list of sessions, with filter, order and parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any, get_args

from agentsignals.errors import AgentSignalsError, StoreError
from agentsignals.questions.alignment import BECAUSE, FACTS, OF_TASK, OF_TRIAL, AlignedRow, align, reference_of
from agentsignals.signals.catalog import catalogue
from agentsignals.store import Store, fulltext
from agentsignals.store.fulltext import KINDS, Hit, Order, Results, search, without_secrets
from agentsignals.ui.filter import filtered
from agentsignals.ui.page import Page, Query, Route, part_of, sql
from agentsignals.ui.snapshot import Snapshot

SIZE = 50
COLUMNS = {
    "started_at": "started",
    "ended_at": "last active",
    "agent": "agent",
    "n_prompts": "prompts",
    "n_tool_calls": "tool calls",
    "n_edits": "edits",
    "output_tokens": "tokens out",
    "cost_usd": "cost",
    "ended_at - started_at": "duration",
}
"""Columns that the list can be ordered by, as SQL, and their headings."""
_ASCENDING = ("agent",)


def sessions_page(snapshot: Snapshot, query: Query) -> Page:
    """Sessions that fit the filter."""
    filter_ = filtered(query, snapshot)
    where = filter_.where
    order = query.choice("order", COLUMNS, "started_at")
    upward = query.choice("way", ("up", "down"), "up" if order in _ASCENDING else "down") == "up"
    total = snapshot.rows(sql("sessions.count", where=where.text()), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    ordered = f"ORDER BY {order} {'ASC' if upward else 'DESC'} NULLS LAST, session_id LIMIT $size OFFSET $start"
    asked = sql("sessions.page", where=where.text(), order=ordered)
    filled = {
        "rows": snapshot.rows(asked, {**where.values, "size": SIZE, "start": part.start}),
        "filter": filter_,
        "kept": {name: query.choice(name, offered) for name, offered in (("order", COLUMNS), ("way", ("up", "down")))},
        "columns": COLUMNS,
        "order": order,
        "upward": upward,
        "part": part,
        "empty": not snapshot.store.manifest.sessions,
    }
    return Page("sessions.html.j2", "Sessions", filled)


# Search: the sessions in which something was said, run or answered, each with the passages that say so.

SIZE_OF_SEARCH = 20
HITS, MOST_HITS = 3, 200
"""Passages that are shown of each session; and of one, where the question names it."""
WAIT_S = 1.0
"""Seconds a page waits for the rest of the index; after that it shows what there is, and asks again."""
ORDERS = dict(zip(get_args(Order), ("last active", "most passages"), strict=True))
_SHORTEST_ID = 6
"""Characters of an id that are taken for one."""


class IndexBuild(Thread):
    """Makes what the index lacks, beside the pages."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="search index", daemon=True)
        self.share = 0.0
        """Progress, 0 to 1."""
        self.note = ""
        self.problem: AgentSignalsError | None = None
        self._store = store

    def run(self) -> None:
        def went_on(stage: str, done: int, total: int | None) -> None:
            self.share = done / total if total else 0.0

        try:
            self.note = fulltext.build(self._store, went_on)
        except AgentSignalsError as problem:
            self.problem = problem


def search_page(snapshot: Snapshot, query: Query) -> Page:
    """Show the sessions that match, each with its passages."""
    text, filter_ = query.text("q"), filtered(query, snapshot)
    kind = query.choice("kind", KINDS)

    def begun() -> IndexBuild:
        making = IndexBuild(snapshot.store)
        making.start()
        return making

    making = snapshot.kept("search:index", begun) if text else None
    if making is not None:
        making.join(WAIT_S)
        if making.problem is not None:
            raise making.problem
    results, among = Results(text=""), None
    if filter_.where.text() and text:
        among = {row["session_id"] for row in snapshot.rows(filter_.sessions, filter_.where.values)}
    options: dict[str, Any] = {
        "kinds": [kind] if kind else (),
        "among": among,
        "order": query.choice("order", ORDERS, "newest"),
        "limit": SIZE_OF_SEARCH,
        "complete": False,
        "most_hits": MOST_HITS if "session:" in text else HITS,
    }
    if text:
        start = (max(query.number("page", 1), 1) - 1) * SIZE_OF_SEARCH
        found = search(snapshot.store, text, start=start, **options)
        last = part_of(query, SIZE_OF_SEARCH, found.n_sessions).start
        results = without_secrets(found if last == start else search(snapshot.store, text, start=last, **options))
    session_id = ""  # of the session whose id was typed
    if len(text) >= _SHORTEST_ID and " " not in text:
        with suppress(StoreError):
            session_id = snapshot.store.resolve(text)
    part = part_of(query, SIZE_OF_SEARCH, results.n_sessions)
    filled = {
        "text": text,
        "results": results,
        "notes": [*results.notes, *([making.note] if making is not None and making.note else [])],
        "share": making.share if making is not None and making.is_alive() else None,
        "session_id": session_id,
        "pieces": pieces,
        "kinds": KINDS,
        "kind": kind,
        "orders": ORDERS,
        "order": options["order"],
        "filter": filter_,
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


# Two sessions or attempts side by side: what is known of each, how their signals differ, what each did when.

MOST_SIGNALS = 60
"""Differences that are listed, those furthest apart first."""
MOST_RUNS = 20
"""Attempts at a task that are aligned for a page, first attempts first."""
MOST_SHOWN = 1500
"""Rows of steps on the page."""
ENDS = 5
"""Rows that are shown of each end of a stretch in which both do the same."""


def pair_page(snapshot: Snapshot, query: Query) -> Page:
    """The sessions that `a` and `b` name; or the attempts at a `task`, or of a `trial`, beside one of them."""
    ids = [query.text("a"), query.text("b")]
    if not any(ids) and (query.text("task") or query.text("trial")):
        return _of_task(snapshot, query)
    if not all(ids):
        # Sessions to put beside this one: attempts at its task, or those of its place, nearest in time first.
        near = snapshot.rows(sql("pair.nearby"), {"session": snapshot.store.resolve(ids[0])}) if ids[0] else []
        return Page("pair.html.j2", "Compare sessions", {"near": near})
    facts = []
    for session_id in ids:
        facts += snapshot.rows(sql("pair.facts"), {"session": snapshot.store.resolve(session_id)})
    pair = {"a": facts[0]["session_id"], "b": facts[1]["session_id"]}
    context = facts[0]["context"] if facts[0]["context"] == facts[1]["context"] else ""
    declared = {signal.path: signal for signal in catalogue().values()}
    seen = context if snapshot.contexts - {context} else ""
    numbers = [row for row in snapshot.rows(sql("pair.numbers"), pair, seen) if row["signal"] in declared]
    words = [row for row in snapshot.rows(sql("pair.words"), pair) if row["signal"] in declared]
    [alignment] = align([snapshot.store.session(side) for side in pair.values()], {})
    rows = shown(alignment.rows)
    names = ["a", "b"]  # by the first fact in which they differ
    for key in ("session_id", "attempt", "model", "agent"):
        told = [
            f"attempt {side[key] + 1}" if key == "attempt" else str(side[key])
            for side in facts
            if side[key] is not None
        ]
        names = told if len(set(told)) == len(facts) else names
    others = []  # further attempts at the task of the first, to put beside it
    if facts[0]["task_id"] is not None:
        known = {"task": facts[0]["task_id"], "shown": [side["session_id"] for side in facts]}
        others = snapshot.rows(sql("pair.other_attempts"), known)
    filled = {
        "sides": facts,
        "names": names,
        "alignment": alignment,
        "rows": rows,
        "listed": {number for number, _ in rows},
        "because": BECAUSE,
        "is_cut": bool(rows) and rows[-1][0] < len(alignment.rows) and not isinstance(rows[-1][1], int),
        "numbers": numbers[:MOST_SIGNALS],
        "more_numbers": max(len(numbers) - MOST_SIGNALS, 0),
        "words_apart": words[:MOST_SIGNALS],
        "declared": declared,
        "others": others,
    }
    return Page("sides.html.j2", "Compare sessions", filled)


def _of_task(snapshot: Snapshot, query: Query) -> Page:
    """Show where each attempt diverges from one that solved the task, or from the first attempt of the trial."""
    task, trial = query.text("task"), query.text("trial")
    rows = snapshot.rows(OF_TASK if task else OF_TRIAL, {"name": task or trial})
    ids = [row["session_id"] for row in rows]
    facts = {row["session_id"]: row for row in snapshot.rows(FACTS, {"ids": ids})}
    sessions = [snapshot.store.session(session_id) for session_id in ids[:MOST_RUNS]]
    if task and sessions:
        reference = reference_of(sessions, facts)
        sessions = [reference, *(session for session in sessions if session is not reference)]
    filled = {
        "of": task or trial,
        "is_task": bool(task),
        "alignments": align(sessions, facts) if len(sessions) > 1 else [],
        "is_cut": len(ids) > MOST_RUNS,
        "because": BECAUSE,
    }
    return Page("sides_of_task.html.j2", "Compare attempts", filled)


def shown(rows: Sequence[AlignedRow]) -> list[tuple[int, AlignedRow | int]]:
    """The rows by number from 1, at most `MOST_SHOWN`: of a long stretch in which both do the same its ends, and
    between them how many are left out."""
    listed: list[tuple[int, AlignedRow | int]] = []
    at = 0
    while at < len(rows) and len(listed) < MOST_SHOWN:
        end = at
        while end < len(rows) and rows[end].how == "same":
            end += 1
        if end - at > 2 * ENDS + 1:
            listed += [(n + 1, rows[n]) for n in range(at, at + ENDS)]
            listed.append((at + ENDS + 1, end - at - 2 * ENDS))
            listed += [(n + 1, rows[n]) for n in range(end - ENDS, end)]
            at = end
        else:
            listed.append((at + 1, rows[at]))
            at += 1
    return listed


PAGES = (
    Route(("sessions",), sessions_page, "Sessions", 20),
    Route(("search",), search_page, below="/sessions"),
    Route(("sides",), pair_page, below="/sessions"),
)
