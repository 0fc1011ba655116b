"""The second pass: values that look at a session among the others, and values of the whole store."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.catalog import Result, measure, plan, values_over_sessions
from agentsignals.derived import SessionView
from agentsignals.history import History, Outline, histories
from agentsignals.model import Absent, Session
from agentsignals.store import Store, shards

_HEADER = [
    "session_id", "context", "format", "agent", "artifact_id", "repo", "cwd", "parent_session_id",
    "started_at", "ended_at",
]  # fmt: skip


def measure_across(store: Store) -> None:
    """Computes the history and corpus signals from what the shards hold, and writes them beside the shards."""
    sessions, values = _headers(store), _values(store)
    found = histories([_outline(s, values.get(s.session_id, {})) for s in sessions])
    rows = []
    for session in sessions:
        given = values.get(session.session_id, {})
        results = _history_results(session, given, found.get(session.session_id))
        given.update({r.signal.name: r.value for r in results})
        rows += shards.signal_rows(session.session_id, results)
    rows += shards.signal_rows(None, _corpus_results(values))
    shards.write_signals(store.folder, rows)


def given_values(store: Store, session_id: str) -> dict[str, Any]:
    """All values of one session by function name, as the second pass and `explain` are given them."""
    return _values(store, store.manifest.sessions[session_id].shard).get(session_id, {})


def history_of(store: Store, session_id: str) -> History | None:
    """How one session lies among the others."""
    values = _values(store)
    return histories([_outline(s, values.get(s.session_id, {})) for s in _headers(store)]).get(session_id)


def _history_results(session: Session, given: dict[str, Any], history: History | None) -> list[Result]:
    return measure(SessionView(session), given, history) if history is not None else []


def _headers(store: Store) -> list[Session]:
    rows = [r for name in store.manifest.shards for r in shards.read_header(store.folder, name, _HEADER)]
    return sorted((Session(**r) for r in rows), key=lambda s: s.session_id)


def _values(store: Store, only_shard: str | None = None) -> dict[str, dict[str, Any]]:
    """Session-level values that the second pass needs, by session and function name."""
    names = {s.path: s.name for s in _needed()}
    found: dict[str, dict[str, Any]] = {}
    for shard in [only_shard] if only_shard else store.manifest.shards:
        for row in shards.read_values(store.folder, shard, list(names) if only_shard is None else None):
            name = names.get(row["signal"]) or _name_of(row["signal"])
            if name is None:
                continue
            value = (
                Absent(row["absent"], row["absent_detail"] or "")
                if row["absent"]
                else msgspec.json.decode(row["value"])
            )
            found.setdefault(row["session_id"], {})[name] = value
    return found


def _name_of(path: str) -> str | None:
    from agentsignals.catalog import catalogue  # noqa: PLC0415  (only for one session)

    return next((s.name for s in catalogue().values() if s.path == path), None)


def _needed() -> list[Any]:
    from agentsignals.catalog import catalogue  # noqa: PLC0415

    known = catalogue()
    wanted = {n for c in ("product", "eval") for s in (*plan(c, "history"), *plan(c, "corpus")) for n in s.needs}
    wanted |= {"touched_files"}
    return [known[n] for n in wanted if n in known and known[n].scope == "session"]


def _outline(session: Session, values: dict[str, Any]) -> Outline:
    touched = values.get("touched_files")
    return Outline(
        session.session_id,
        session.repo or session.cwd,
        session.started_at,
        session.ended_at,
        touched if isinstance(touched, list) else [],
        session.parent_session_id,
    )


def _corpus_results(values: dict[str, dict[str, Any]]) -> list[Result]:
    lists: dict[str, list[Any]] = {}
    for session_id in sorted(values):
        for name, value in values[session_id].items():
            if type(value) is not Absent:
                lists.setdefault(name, []).append(value)
    results = []
    for one in plan("product", "corpus"):
        value = values_over_sessions(one, lists)
        results.append(
            Result(
                one,
                getattr(value, "value", value),
                getattr(value, "detail", None) if type(value) is not Absent else None,
            )
        )
    return results
