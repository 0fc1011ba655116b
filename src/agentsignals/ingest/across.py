"""The second pass: values that look at a session among the others, and values of the whole store.

A run reads what its own shards hold; of the others what their briefs say, and of their sessions those that lie
otherwise now among the rest (docs/decisions/016).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import Struct

from agentsignals.catalog import Measured, Result, Signal, as_bound, catalogue, measure, plan
from agentsignals.errors import StoreError
from agentsignals.ingest import briefs, standing
from agentsignals.ingest.briefs import CONTEXTS, READ, SETS, Brief, brief_of, decoded, site_id, summed, values_of
from agentsignals.model import Context, Session
from agentsignals.model.attempt import Attempt
from agentsignals.store import Store, shards
from agentsignals.store.files import Part
from agentsignals.store.signal_rows import signal_rows, signal_table
from agentsignals.views.history import History
from agentsignals.views.session import SessionView

_HEADER = [
    "session_id", "context", "format", "agent", "artifact_id", "repo", "cwd", "parent_session_id", "started_at",
    "ended_at", "trial_id", "attempt_index",
]  # fmt: skip


def versions() -> dict[str, int]:
    """The signals across sessions, and their versions now."""
    return {s.path: s.version for s in catalogue().values() if s.scope != "session"}


def measure_across(store: Store) -> tuple[int, Part | None, Part | None]:
    """Computes the history and corpus signals that changed and writes them beside the shards. Gives what the index says
    of it then: the run, the file of the values, that of the standings."""
    manifest, now = store.manifest, versions()
    before = standing.read(store, now) if manifest.across is not None else None
    manifest.run += 1
    try:
        _measure(store, before, now)
    except StoreError:
        if before is None:
            raise
        _measure(store, None, now)  # the former values can't be read
    briefs.sweep(store)
    return manifest.run, manifest.across, manifest.standings


def _measure(store: Store, before: dict[str, standing.Standing] | None, now: dict[str, int]) -> None:
    manifest = store.manifest
    held = {name: brief_of(store.folder, name, keep=True) for name in store.whole(*READ)}
    made = standing.standings(store, held, before or {})
    manifest.across = shards.write_across(store.folder, manifest.run, _tables(store, held, made, before is not None))
    manifest.standings = standing.write(store, manifest.run, made, now)


def _tables(store: Store, held: dict[str, Brief], made: standing.Standings, carries: bool) -> Iterator[Any]:
    """The values across sessions: of the former those that stand (`carries`), the new, and those of the whole store."""
    later = _later(CONTEXTS)
    former = store.manifest.across
    if carries and former is not None:
        yield from _noted(shards.read_across(store.folder, former, made.changed | made.gone), later)
    yield from _noted(_history_tables(store, held, made), later)
    yield signal_table([signal_rows(None, _corpus_results(store, held, made, later))])


def _later(contexts: Iterable[Context]) -> dict[str, dict[str, Any]]:
    """By signal across sessions that goes into values over all of them, an empty place for its values by session."""
    return {s.name: {} for context in contexts for s in summed(context) if s.scope == "history"}


def _noted(tables: Iterator[Any], later: dict[str, dict[str, Any]]) -> Iterator[Any]:
    """Passes tables of values on, and notes those that go into values over all sessions."""
    paths = {catalogue()[name].path: name for name in later}
    for table in tables:
        for session_id, path, value, absent, _ in shards.chosen(table, set(paths), None) if paths else ():
            if not absent:
                later[paths[path]][session_id] = decoded(value or "")
        yield table


def history_of(store: Store, session_id: str) -> tuple[History, dict[str, Any]]:
    """How one session lies among the others, and the values that signals across sessions have for it."""
    now, entry = versions(), store.manifest.sessions[session_id]
    is_done = bool(store.manifest.history_of) and store.manifest.history_of == store.fingerprint(now)
    kept = standing.read(store, now) if is_done else None
    if kept is None:
        held = {name: brief_of(store.folder, name) for name in store.whole(*READ)}
        kept = {s.session_id: s for s in standing.standings(store, held, {}).now}
    history = kept[session_id].history()
    ((header, values),) = _measurable(store, entry.shard, {session_id})
    return history, {r.signal.name: r.value for r in measure(SessionView(header), values, history)}


class OverAll(Struct):
    """A value over all sessions of a context, and what went in."""

    value: Any
    detail: dict[str, Any]
    sessions: int
    inputs: dict[str, dict[str, Any]]
    """By session, of the first of them in order of id."""


def over_all(store: Store, signal: Signal, context: Context, most: int) -> OverAll:
    """The value of a signal over all sessions of a context, with the inputs of so many sessions at most."""
    held = {name: brief_of(store.folder, name) for name in store.whole(*READ)}
    made = standing.standings(store, held, {}, only_places=True)
    later = _later([context])
    if later and store.manifest.across is not None:
        for _ in _noted(shards.read_across(store.folder, store.manifest.across), later):
            pass
    (result,) = (r for r in _of_context(store, context, held, made, later) if r.signal.path == signal.path)
    there = {e.session_id: (name, e) for name, brief in held.items() for e in brief.sessions if e.context == context}
    first = {session_id: there[session_id] for session_id in sorted(there)[:most]}
    values: dict[str, dict[str, Any]] = {session_id: {} for session_id in first}
    for name in {name for name, _ in first.values()}:
        only = {session_id for session_id, (of, _) in first.items() if of == name}
        values |= values_of(store.folder, name, [n for n in signal.needs if n not in later], only)
    for session_id, (_, entry) in first.items():
        values[session_id] |= {n: of[session_id] for n, of in later.items() if session_id in of}
        if isinstance(sets := values[session_id].get(SETS), dict):
            values[session_id][SETS] = {**sets, "place": made.places[context][site_id(entry.repo, entry.cwd)]}
    inputs = {session_id: {n: values[session_id].get(n) for n in signal.needs} for session_id in first}
    return OverAll(result.value, result.detail or {}, len(there), inputs)


def _history_tables(store: Store, held: dict[str, Brief], made: standing.Standings) -> Iterator[Any]:
    """The rows of the sessions that lie otherwise than they did, shard by shard."""
    by_id = {s.session_id: s for s in made.now if s.session_id in made.changed}
    for name, brief in held.items():
        only = {entry.session_id for entry in brief.sessions if entry.session_id in by_id}
        rows = []
        for header, values in _measurable(store, name, only):
            results = measure(SessionView(header), values, by_id[header.session_id].history())
            rows.append(signal_rows(header, results))
        if rows:
            yield signal_table(rows)


def _measurable(store: Store, shard: str, only: set[str]) -> Iterator[tuple[Session, dict[str, Any]]]:
    """These sessions of a shard in order of id: each without its rows, and with the values that signals across sessions
    ask for."""
    if not only:
        return
    values = values_of(store.folder, shard, _of_histories(), only)
    for row in sorted(shards.read_header(store.folder, shard, _HEADER, only), key=lambda row: str(row["session_id"])):
        trial_id, index = row.pop("trial_id"), row.pop("attempt_index")
        attempt = Attempt(root="", trial_id=trial_id, attempt_index=index) if trial_id is not None else None
        yield Session(**row, attempt=attempt), values.get(row["session_id"], {})


@cache
def _of_histories() -> frozenset[str]:
    """The values of a session that signals across sessions ask for."""
    signals = catalogue()
    needs = {n for context in CONTEXTS for s in plan(context, "history") for n in s.needs}
    return frozenset(n for n in needs if signals[n].scope == "session")


def _corpus_results(
    store: Store, held: dict[str, Brief], made: standing.Standings, later: dict[str, dict[str, Any]]
) -> list[Result]:
    """The values over all sessions of each context there is."""
    there = {entry.context for brief in held.values() for entry in brief.sessions}
    contexts = [context for context in CONTEXTS if context in (there or {"product"})]
    return [result for context in contexts for result in _of_context(store, context, held, made, later)]


def _of_context(
    store: Store, context: Context, held: dict[str, Brief], made: standing.Standings, later: dict[str, dict[str, Any]]
) -> list[Result]:
    lists = {
        s.name: _summed(s, context, held, made) if s.scope == "session" else _listed(later[s.name], context, held)
        for s in summed(context)
    }
    is_bound = any(
        e.context == context and e.visible_output_tokens is not None and e.shard in held
        for e in store.manifest.sessions.values()
    )
    results = []
    for declared in plan(context, "corpus"):
        value = declared.function(**{need: lists[need] for need in declared.needs})
        if declared.grows_with_output and is_bound:
            value = as_bound(value)
        detail = value.detail if isinstance(value, Measured) else None
        if context == "eval":
            detail = {**(detail or {}), "context": context}
        results.append(Result(declared, value.value if isinstance(value, Measured) else value, detail))
    return results


def _summed(signal: Signal, context: Context, held: dict[str, Brief], made: standing.Standings) -> list[Any]:
    """The values that go into those over all sessions: pooled, else in order of the sessions' ids."""
    parts = [part for brief in held.values() for part in brief.sums.get(context, {}).get(signal.name, ())]
    if signal.name == SETS:  # a data set is a place, which only the sessions together tell
        parts = [{**part, "place": made.places[context][part["place"]]} for part in parts]
    return parts if signal.pool is not None else [value for _, value in sorted(parts, key=lambda pair: str(pair[0]))]


def _listed(values: dict[str, Any], context: Context, held: dict[str, Brief]) -> list[Any]:
    """The values of a context's sessions in order of their ids."""
    there = {entry.session_id for brief in held.values() for entry in brief.sessions if entry.context == context}
    return [values[session_id] for session_id in sorted(there & values.keys())]
