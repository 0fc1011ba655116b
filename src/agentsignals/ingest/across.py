"""The second pass: values that look at a session among the others, and values of the whole store."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.catalog import Measured, Result, Signal, as_bound, catalogue, measure, plan
from agentsignals.model import Absent, Context, Session
from agentsignals.model.attempt import Attempt
from agentsignals.store import Store, shards
from agentsignals.views.history import History, Outline, histories, user_of
from agentsignals.views.same_place import Site, places
from agentsignals.views.session import SessionView

_HEADER = [
    "session_id", "context", "format", "agent", "artifact_id", "repo", "cwd", "parent_session_id", "started_at",
    "ended_at", "n_turns", "trial_id", "attempt_index",
]  # fmt: skip
_READ = ("sessions", "signals", "turns")
"""The tables that a gist is read back from."""
_CONTEXTS: tuple[Context, ...] = ("product", "eval")
FILES = "touched_files"
"""The signal whose value says which files a session touched."""
LINES = "edited_line_prints"
"""The signal whose value says which lines a session changed."""
MARKS = "repository_marks"
"""The signal whose value says of which repository Git spoke."""
SETS = "metric_inputs"
"""The signal whose value is counted by place."""


class _Folded(Struct, frozen=True):
    """A list or table, small: there is one of each kind a session, and all sessions are in memory at once."""

    pickled: bytes

    def unfolded(self) -> Any:
        return pickle.loads(zlib.decompress(self.pickled))  # noqa: S301  (made here, never read from outside)


class _Unfolded(Sequence[Any]):
    """The values of all sessions, each unfolded while it is looked at."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def append(self, value: Any) -> None:
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: Any) -> Any:
        values = self._values[at]
        return [_unfolded(v) for v in values] if isinstance(at, slice) else _unfolded(values)

    def __iter__(self) -> Iterator[Any]:
        return map(_unfolded, self._values)


class Gist(Struct):
    """What the second pass needs of a session: its header without rows, and the values others ask for."""

    header: Session
    values: dict[str, Any]
    """By signal; lists and tables folded."""
    n_turns: int
    first_prompt: str | None


_absent = lru_cache(maxsize=4096)(Absent)
"""Sessions have the same few reasons."""


def _folded(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _Folded(zlib.compress(pickle.dumps(value), 1)) if isinstance(value, dict | list) and value else value
        for name, value in values.items()
    }


def _unfolded(value: Any) -> Any:
    return value.unfolded() if type(value) is _Folded else value


def gist(session: Session, results: list[Result]) -> Gist:
    """The gist of a session just measured."""
    wanted = needed()
    header = Session(
        session_id=session.session_id,
        context=session.context,
        format=session.format,
        agent=session.agent,
        artifact_id=session.artifact_id,
        repo=session.repo,
        cwd=session.cwd,
        parent_session_id=session.parent_session_id,
        started_at=session.started_at,
        ended_at=session.ended_at,
        attempt=_named(session.attempt),
    )
    values = {r.signal.name: r.value for r in results if r.turn is None and r.signal.name in wanted}
    return Gist(header, _folded(values), len(session.turns), session.turns[0].text if session.turns else None)


def measure_across(store: Store, fresh: dict[str, list[Gist]]) -> None:
    """Computes the history and corpus signals and writes them beside the shards. `fresh` holds the gists of shards read
    in this run, by name; those of the others are read back from the store.
    """
    gists = [g for name in store.whole(*_READ) for g in (fresh.get(name) or gists_of(store, name))]
    gists.sort(key=lambda g: g.header.session_id)
    by_session = _histories(gists)
    rows = []
    for gist in gists:
        results = _history_results(gist, by_session.get(gist.header.session_id))
        gist.values |= _folded({r.signal.name: r.value for r in results})
        rows += shards.signal_rows(gist.header, results)
    rows += shards.signal_rows(None, _corpus_results(gists, _bounds(store)))
    store.manifest.run += 1
    store.manifest.across = shards.write_across(store.folder, store.manifest.run, rows)


def history_of(store: Store, session_id: str) -> tuple[History, dict[str, Any]]:
    """How one session lies among the others, and the values that signals across sessions have for it."""
    gists = [g for name in store.whole(*_READ) for g in gists_of(store, name)]
    history = _histories(gists)[session_id]
    gist = next(g for g in gists if g.header.session_id == session_id)
    return history, {r.signal.name: r.value for r in _history_results(gist, history)}


def over_all(store: Store, signal: Signal, context: Context) -> tuple[Any, dict[str, Any], dict[str, dict[str, Any]]]:
    """The value over all sessions of a context, its detail, and by session the values that went in."""
    gists = [g for name in store.whole(*_READ) for g in gists_of(store, name) if g.header.context == context]
    gists.sort(key=lambda g: g.header.session_id)
    _histories(gists)
    (result,) = (r for r in _of_context(context, gists, _bounds(store)) if r.signal.path == signal.path)
    inputs = {g.header.session_id: {need: g.values.get(need) for need in signal.needs} for g in gists}
    return result.value, result.detail or {}, inputs


def _bounds(store: Store) -> set[str]:
    """The sessions whose output is a lower bound."""
    return {name for name, of in store.manifest.sessions.items() if of.visible_output_tokens is not None}


def gists_of(store: Store, shard: str) -> list[Gist]:
    """The gists of a shard's sessions, read back."""
    names = {catalogue()[name].path: name for name in needed()}
    values: dict[str, dict[str, Any]] = {}
    for row in shards.read_values(store.folder, shard, set(names)):
        value = (
            _absent(row["absent"], row["absent_detail"] or "") if row["absent"] else msgspec.json.decode(row["value"])
        )
        values.setdefault(row["session_id"], {})[names[row["signal"]]] = value
    prompts = shards.first_prompts(store.folder, shard)
    gists = []
    for row in shards.read_header(store.folder, shard, _HEADER):
        n_turns, trial_id, index = row.pop("n_turns"), row.pop("trial_id"), row.pop("attempt_index")
        attempt = Attempt(root="", trial_id=trial_id, attempt_index=index) if trial_id is not None else None
        header, measured = Session(**row, attempt=attempt), values.get(row["session_id"], {})
        gists.append(Gist(header, _folded(measured), n_turns, prompts.get(header.session_id)))
    return gists


def _named(attempt: Attempt | None) -> Attempt | None:
    """Which attempt it is, without what is known of it."""
    if attempt is None:
        return None
    return Attempt(root="", trial_id=attempt.trial_id, attempt_index=attempt.attempt_index)


def needed() -> set[str]:
    """The session-level signals that the second pass asks for, by function name."""
    signals = catalogue()
    later = [s for context in _CONTEXTS for scope in ("history", "corpus") for s in _plan(context, scope)]
    return {n for s in later for n in s.needs if signals[n].scope == "session"} | {FILES, LINES, MARKS}


@cache
def _of_histories() -> frozenset[str]:
    """The values that signals across sessions ask for of a session."""
    return frozenset(n for context in _CONTEXTS for s in _plan(context, "history") for n in s.needs)


def _plan(context: Any, scope: Any) -> tuple[Signal, ...]:
    return plan(context, scope)


def _histories(gists: list[Gist]) -> dict[str, History]:
    """How each session lies among those of its context: runs of an eval are nobody's earlier sessions."""
    by_session: dict[str, History] = {}
    for context in _CONTEXTS:
        here = [g for g in gists if g.header.context == context]
        where = places([_site(g) for g in here])
        by_session |= histories([_outline(g, where.get(g.header.session_id)) for g in here])
        for member in here:  # a data set is a place, which only the sessions together tell
            counted = _unfolded(member.values.get(SETS))
            if isinstance(counted, dict):
                place = where.get(member.header.session_id, counted["place"])
                member.values |= _folded({SETS: {**counted, "place": place}})
    return by_session


def _site(gist: Gist) -> Site:
    h, files, marks = gist.header, _unfolded(gist.values.get(FILES)), _unfolded(gist.values.get(MARKS))
    return Site(
        session_id=h.session_id,
        repo=h.repo,
        cwd=h.cwd,
        files=files if isinstance(files, list) else [],
        **(marks if isinstance(marks, dict) else {}),
    )


def _history_results(gist: Gist, history: History | None) -> list[Result]:
    if history is None:
        return []
    values = {name: _unfolded(value) for name, value in gist.values.items() if name in _of_histories()}
    return measure(SessionView(gist.header), values, history)


def _outline(gist: Gist, place: str | None) -> Outline:
    h, files, lines = gist.header, _unfolded(gist.values.get(FILES)), _unfolded(gist.values.get(LINES))
    return Outline(
        session_id=h.session_id,
        place=place,
        started_at=h.started_at,
        ended_at=h.ended_at,
        files=files if isinstance(files, list) else [],
        parent_session_id=h.parent_session_id,
        first_prompt=gist.first_prompt,
        user=user_of(h.cwd),
        n_turns=gist.n_turns,
        lines=lines if isinstance(lines, dict) else {},
    )


def _corpus_results(gists: list[Gist], bounds: set[str]) -> list[Result]:
    """The values over all sessions of each context there is; `bounds` are sessions whose output is a lower bound."""
    results: list[Result] = []
    for context in _CONTEXTS:
        here = [g for g in gists if g.header.context == context]
        if here or (not gists and context == "product"):
            results += _of_context(context, here, bounds)
    return results


def _of_context(context: Context, gists: list[Gist], bounds: set[str]) -> list[Result]:
    lists: dict[str, _Unfolded] = {}
    for gist in gists:
        for name, value in gist.values.items():
            if type(value) is not Absent:
                lists.setdefault(name, _Unfolded()).append(value)
    results = []
    for declared in plan(context, "corpus"):
        value = declared.function(**{need: lists.get(need, ()) for need in declared.needs})
        if declared.grows_with_output and any(g.header.session_id in bounds for g in gists):
            value = as_bound(value)
        detail = value.detail if isinstance(value, Measured) else None
        if context == "eval":
            detail = {**(detail or {}), "context": context}
        results.append(Result(declared, value.value if isinstance(value, Measured) else value, detail))
    return results
