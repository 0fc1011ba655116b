"""Sessions as a search lists them: which may be listed, in what order, and what the passages in them say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentsignals.fulltext.excerpt import excerpt
from agentsignals.fulltext.passages import texts_of_call
from agentsignals.fulltext.question import Filter, Question

if TYPE_CHECKING:
    from agentsignals.store import Store

_CONDITIONS = {
    "agent": "starts_with(lower(agent), lower({}))",
    "repo": "contains(lower(concat_ws(' ', repo, cwd)), lower({}))",
    "session": "starts_with(session_id, {})",
    "context": "context = lower({})",
}
_FACTS = """
SELECT session_id, title, agent, model, coalesce(repo, cwd) AS place, context, started_at, ended_at
FROM read_parquet($files) WHERE session_id IN (SELECT unnest($ids))
"""
_EVENTS = """
SELECT session_id, seq, text, timestamp FROM read_parquet($files)
WHERE session_id IN (SELECT unnest($ids)) AND seq IN (SELECT unnest($seqs))
"""
_CALLS = """
SELECT session_id, seq, result_seq, name, path, command, arguments FROM read_parquet($files)
WHERE session_id IN (SELECT unnest($ids)) AND (seq IN (SELECT unnest($seqs)) OR result_seq IN (SELECT unnest($seqs)))
"""
_PROMPTS = """
SELECT session_id, left(arg_min(text, turn), 300) AS prompt FROM read_parquet($files)
WHERE session_id IN (SELECT unnest($ids)) AND kind IN ('prompt', 'queued_prompt') GROUP BY session_id
"""
_newest: dict[tuple[str, ...], list[str]] = {}
"""The sessions of the last store that was asked without conditions, by its files: none of these ever changes."""
Place = tuple[str, int]
"""A kind of passage, and the event that holds it."""


class Hit(Struct, kw_only=True):
    """A passage that fits, by the part of it that shows why."""

    seq: int
    """Its event."""
    kind: str
    tool: str | None
    timestamp: datetime | None
    text: str
    """At most two lines of it."""
    marks: list[tuple[int, int]]
    """Where in `text` the words stand."""


class SessionHits(Struct, kw_only=True):
    """A session with passages that fit."""

    session_id: str
    title: str | None
    prompt: str | None
    """The beginning of the first one."""
    agent: str | None
    model: str | None
    place: str | None
    """Its repository, or else its folder."""
    context: str
    started_at: datetime | None
    ended_at: datetime | None
    n: int = 0
    """Passages that fit."""
    by_kind: dict[str, int] = {}
    hits: list[Hit] = []
    """The first of them, the most telling kinds first."""


class Tables:
    """The tables of a store as one search reads them."""

    def __init__(self, store: Store) -> None:
        from agentsignals.store.query import connect  # noqa: PLC0415  (DuckDB is loaded when asked)

        self.store = store
        self._connection = connect(store)

    def rows(self, sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        """The answer to a question of ours; `values` are bound."""
        from agentsignals.store.query import ask  # noqa: PLC0415  (as above)

        return ask(self._connection, sql, values)

    def of_sessions(self, table: str, sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        """The same of those `files` of a table alone that hold the sessions `ids`: a third of the time of all."""
        shards = {self.store.manifest.sessions[session_id].shard for session_id in values["ids"]}
        files = [str(path) for path in self.store.files(table) if path.parent.name in shards]
        return self.rows(sql, {**values, "files": files})


def listed(tables: Tables, filters: Sequence[Filter]) -> list[str]:
    """The sessions that fit these conditions, the last active first."""
    state = tuple(map(str, tables.store.files("sessions")))
    asked_before = _newest.get(state)
    if asked_before is not None and not any(f.field in _CONDITIONS for f in filters):
        return asked_before
    conditions, values = ["true"], {}
    for n, asked in enumerate(f for f in filters if f.field in _CONDITIONS):
        condition = f"coalesce({_CONDITIONS[asked.field].format(f'$v{n}')}, false)"
        conditions.append(f"NOT {condition}" if asked.is_excluded else condition)
        values[f"v{n}"] = asked.value
    order = "ORDER BY coalesce(ended_at, started_at) DESC NULLS LAST, session_id"
    sql = f"SELECT session_id FROM sessions WHERE {' AND '.join(conditions)} {order}"  # noqa: S608  (values are bound)
    ids = [row["session_id"] for row in tables.rows(sql, values)]
    if not values:
        _newest.clear()
        _newest[state] = ids
    return ids


def with_texts(tables: Tables, question: Question, places: dict[str, list[Place]]) -> list[SessionHits]:
    """These sessions with these passages of theirs, in this order."""
    if not places:
        return []
    ids = list(places)
    which = {"ids": ids, "seqs": sorted({seq for of_it in places.values() for _, seq in of_it})}
    events = {(row["session_id"], row["seq"]): row for row in tables.of_sessions("events", _EVENTS, which)}
    calls = {
        (row["session_id"], row[seq]): row
        for row in tables.of_sessions("tool_calls", _CALLS, which)
        for seq in ("result_seq", "seq")
    }
    prompts = {row["session_id"]: row["prompt"] for row in tables.of_sessions("turns", _PROMPTS, {"ids": ids})}
    facts = {
        row["session_id"]: SessionHits(**row, prompt=prompts.get(row["session_id"]))
        for row in tables.of_sessions("sessions", _FACTS, {"ids": ids})
    }
    for session_id, session in facts.items():
        session.hits = [
            _hit(session, seq, kind, events.get((session_id, seq), {}), calls.get((session_id, seq)), question)
            for kind, seq in places[session_id]
        ]
    return [facts[session_id] for session_id in ids if session_id in facts]


def _hit(  # noqa: PLR0913  (all that is known of a passage)
    session: SessionHits, seq: int, kind: str, event: dict[str, Any], call: dict[str, Any] | None, question: Question
) -> Hit:
    if kind == "title":
        text = session.title
    elif call is not None and kind in ("command", "path"):
        text = texts_of_call(call["path"], call["command"], call["arguments"])[kind]
    else:
        text = event.get("text")
    shown, marks = excerpt(text or "", question.terms)
    tool = call["name"] if call is not None and kind in ("command", "path", "result") else None
    return Hit(seq=seq, kind=kind, tool=tool, timestamp=event.get("timestamp"), text=shown, marks=marks)
