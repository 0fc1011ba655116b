"""Signals computed again from the store: of shards with stale values, and one value with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from agentsignals.errors import CatalogError, EmbedderError, StoreError
from agentsignals.ingest.corpus_signals import CONTEXTS, corpus_value, session_history
from agentsignals.ingest.shard import count_errors, signal_versions
from agentsignals.model import MAIN, NO_SUBAGENT, Absent, Session, Step
from agentsignals.model.prices import CACHE_WRITES, PAID, CostLine, Kind, cost_lines, rounding_line
from agentsignals.signals import Signal, catalog
from agentsignals.signals.catalog import Result, measure
from agentsignals.store import Store, parquet, shards, sidecars
from agentsignals.store.index import SHARDS_FOLDER, ShardEntry
from agentsignals.store.parquet import signal_rows
from agentsignals.store.tables import totals
from agentsignals.views.session import MOST_ROWS, CollectedEvidence, Item, SessionView
from agentsignals.views.usage import is_lower_bound
from agentsignals.words.vectors import Vectors, counting_vectors, is_model

# Vectors


def store_vectors(store: Store, spec: str, tell: Callable[[str], None] | None = None) -> Vectors | Absent:
    """Return what the signals of this store compare texts with."""
    if not is_model(spec):
        return counting_vectors(spec)
    from agentsignals.store.embedders import Cache, model  # noqa: PLC0415  (models only)

    embedder = model(spec, tell=tell)
    cache = Cache(store.folder, embedder.id)
    return Vectors(embedder, embedder.profile or cache.profile(), cache)


def calibrate(store: Store, vectors: Vectors | Absent) -> Vectors | Absent:
    """Return these vectors on a scale that is fitted to the store's sessions once there are enough, and then kept."""
    from agentsignals.store.embedders import Cache  # noqa: PLC0415  (models only)

    if isinstance(vectors, Absent) or vectors.profile.origin != "identity" or not isinstance(vectors.kept, Cache):
        return vectors
    from agentsignals.views.passages import fit, opening  # noqa: PLC0415

    views = (
        SessionView(session)
        for name in store.readable_shards()
        for session in shards.read_sessions(store.folder, name, gone=store.manifest.shards[name].gone)
        if session.context == "product"
    )
    openings = (opening(view) for view in views if view.turns)
    profile = fit((o for o in openings if o is not None), vectors)
    if profile is None:
        return vectors
    vectors.kept.keep_profile(profile)
    return Vectors(vectors.embedder, profile, vectors.kept)


def embed_session(vectors: Vectors | Absent, view: SessionView) -> None:
    """Embed all texts of a session in one batch: one by one would take several times as long."""
    if not isinstance(vectors, Absent) and vectors.kept is not None and view.session.context == "product":
        from agentsignals.views.passages import Passages  # noqa: PLC0415

        vectors.of(Passages(view).all())


_COLUMNS = ["signal", "session_id", "turn", "value", "absent", "absent_detail", "detail"]
Values = Counter[tuple[object, ...]]


def measure_shard(
    store: Store,
    name: str,
    paths: Collection[str],
    vectors: Vectors | Absent,
    tell: Callable[[str], None] | None,
) -> tuple[int, Counter[str]]:
    """Compute the values of these signals for a shard's sessions and replace the shard by a copy with them alone.
    Return the number of sessions, and the number of changed values by signal."""
    rows, attempts = [], []
    errors: dict[str, int] = {}
    entry, labelled = store.manifest.shards[name], sidecars.labels_fingerprint(store.folder)
    for session, results in _measured(store, name, _with_paths(paths), vectors):
        made = [result for result in results if result.signal.path in paths]
        rows.append(signal_rows(session, made))
        attempts += shards.attempt_rows(session, made)
        count_errors(errors, made)
    old, new_name = store.signal_files(name), store.new_shard_name(name)
    tables = shards.copy_with_values(store.folder, name, new_name, entry.tables, rows, attempts)
    before = _values(old, entry.gone)
    if before is None and tell is not None:
        damaged = ", ".join(f"{SHARDS_FOLDER}/{name}/{path.name}" for path in old if _values([path]) is None)
        tell(f"{damaged} is damaged. Its values are recomputed and not compared.")
    entry.tables = tables
    store.replace_shards([name], new_name, entry)
    entry.signals, entry.internal_errors = _versions(paths), errors
    entry.embedder, entry.labels = store.manifest.embedder, labelled
    store.manifest.shards_changed()
    store.commit()
    return len(rows), changed_values(before, _values(store.signal_files(new_name)))


class Added(NamedTuple):
    shard: str
    entry: ShardEntry
    sessions: int
    values: Counter[str]
    """Number of values by signal."""
    problem: StoreError | None = None


def add_values(store: Store, vectors: Vectors | Absent, task: tuple[str, Collection[str]]) -> Added:
    """Compute the values of the task's signals, which its shard has none of, and write them into a further file of it.
    The index stays as it is: a worker may do this."""
    name, paths = task
    entry = store.manifest.shards[name]
    rows, errors = [], dict(entry.internal_errors)
    counted = Counter[str]()
    wanted = _with_paths(paths)
    held = {session.context for session in store.manifest.sessions.where("shard", [name]).values()}
    try:
        if any(s.path in paths for c in CONTEXTS if c in held for s in catalog.plan(c, "session", wanted)):
            for session, results in _measured(store, name, wanted, vectors):
                made = [result for result in results if result.signal.path in paths]
                rows.append(signal_rows(session, made))
                counted.update(result.signal.path for result in made)
                count_errors(errors, made)
            shards.add_values(store.folder, name, entry.tables, rows)
            entry.internal_errors = errors
    except StoreError as problem:
        return Added(name, entry, 0, counted, problem)
    entry.signals = {**entry.signals, **_versions(paths)}
    return Added(name, entry, len(rows), counted)


def _with_paths(paths: Collection[str]) -> frozenset[str]:
    """Return the names of these signals and of those that they need."""
    return catalog.with_needs(frozenset(s.name for s in catalog.catalogue().values() if s.path in paths))


def _versions(paths: Collection[str]) -> dict[str, int]:
    return {path: version for path, version in signal_versions().items() if path in paths}


def _measured(
    store: Store, shard: str, names: frozenset[str], vectors: Vectors | Absent
) -> Iterator[tuple[Session, list[Result]]]:
    compares = any("vectors" in catalog.catalogue()[name].parameters for name in names)
    for session in shards.read_sessions(store.folder, shard, gone=store.manifest.shards[shard].gone):
        view = SessionView(session)
        if compares:
            embed_session(vectors, view)
        yield session, measure(view, {"vectors": vectors}, among=names)


def compare_texts(paths: Iterable[str]) -> bool:
    """Return True where one of these signals, or of those that they need, compares texts by their vectors."""
    return any("vectors" in catalog.catalogue()[name].parameters for name in _with_paths(frozenset(paths)))


def comparing_signals() -> frozenset[str]:
    """Return the signals that compare texts by their vectors."""
    return frozenset(signal.path for signal in catalog.catalogue().values() if "vectors" in signal.parameters)


NO_VECTORS: Vectors | Absent = Absent("backend_disabled", "no computed signal compares texts")


def corpus_values(store: Store, every: bool) -> Values | None:
    """Return the stored places of sessions, with `every` all values across sessions, also those of former shards; None
    where they can't be read."""
    files = (store.manifest.places, store.manifest.across if every else None)
    return _values([store.folder / file.file for file in files if file is not None])


def changed_values(before: Values | None, after: Values | None) -> Counter[str]:
    """Count by signal the values that are new, gone or changed; none where there is nothing to compare."""
    if before is None or after is None:
        return Counter()
    came, went = Counter[str](), Counter[str]()
    for counted, more, less in ((came, after, before), (went, before, after)):
        for row, n in (more - less).items():
            counted[str(row[0])] += n
    return came | went


def _values(paths: Iterable[Path], gone: Collection[str] = ()) -> Values | None:
    counted: Values = Counter()
    try:
        for path in paths:
            columns = parquet.without_values(parquet.read(path, _COLUMNS), "session_id", gone).to_pydict()
            counted.update(zip(*(columns[name] for name in _COLUMNS), strict=True))
    except StoreError:  # damaged or gone: what is computed in its place can't be compared
        return None
    return counted


# Explanations


class Explanation(Struct, kw_only=True):
    """A value or its absence, its rule, and its evidence."""

    session: str
    signal: str
    value: Any
    absent: dict[str, str] | None
    rule: str
    evidence: list[Item]
    totals: dict[str, int]
    detail: dict[str, Any]
    description: str
    version: int
    basis: str
    """Kind of evidence (`signals.Basis`)."""
    validation: str
    """Accuracy of the signal where the truth is known."""
    unit: str
    pitfalls: str
    artifacts: dict[str, str]
    """Path of each artifact that the evidence names."""
    bill: list[CostLine]
    """For a value in tokens or money: all that the session used and paid, line by line. Lines with `counts` add up to
    the value."""


def explain(store: Store, session_id: str, path: str) -> Explanation:
    """Explain the value of a session. `path` is a signal's, or `sessions.` with a total of tokens or money."""
    return explain_session(store, store.session(session_id), path)


def explain_session(store: Store, session: Session, path: str) -> Explanation:
    """Explain a value of a session that was read. Only what the signal needs is computed again."""
    if path.startswith(OF_SESSIONS):
        return _of_total(store, session, path)
    signal = catalog.by_path(path)
    if signal.context not in ("both", session.context):
        raise CatalogError(
            f"{path} applies to {signal.context} sessions, but {session.session_id} is a {session.context} session.",
            "Run `agentsignals inventory` to see the context of each signal.",
        )
    if signal.scope != "session":
        store.require([signal.path])
    if signal.scope == "corpus":
        # Explain a value over all sessions of the session's context by each session's inputs.
        whole = corpus_value(store, signal, session.context, MOST_ROWS)
        why = CollectedEvidence(SessionView(session))
        for session_id, by_need in whole.inputs.items():
            is_bound = store.manifest.sessions[session_id].visible_output_tokens is not None
            for need, of_it in by_need.items():
                needed = catalog.catalogue()[need]
                why.input(f"{session_id} {needed.path}", of_it, is_bound and needed.grows_with_output)
        why.totals["input"], why.items = whole.sessions * len(signal.needs), why.items[:MOST_ROWS]
        return _explanation(store, session, signal, whole.value, whole.detail, why, [])
    view = SessionView(session)
    among = catalog.with_needs(frozenset(signal.needs))
    inputs = {"vectors": _vectors(store, view)} if compare_texts([path]) else {}
    values, history = catalog.values(view, inputs, among), None
    if signal.scope == "history":
        among = catalog.with_needs(frozenset((signal.name,)))
        history, across = session_history(store, session.session_id, among)
        values |= across
    value, detail, collected = catalog.explain(signal, view, values, history)
    if not collected.items and not isinstance(value, Absent):
        collected.denominator(session.turns, "searched:")
    is_usd = signal.unit == "USD"
    return _explanation(store, session, signal, value, detail, collected, _bill(session, collected, value, is_usd))


def _explanation(  # noqa: PLR0913  (what an explanation is made of)
    store: Store,
    session: Session,
    signal: Signal,
    value: Any,
    detail: dict[str, Any],
    why: CollectedEvidence,
    bill: list[CostLine],
) -> Explanation:
    return Explanation(
        signal=signal.path,
        value=None if isinstance(value, Absent) else catalog.plain(value),
        absent={"reason": value.reason, "detail": value.detail} if isinstance(value, Absent) else None,
        rule="; ".join(why.rules) or signal.description,
        detail=detail,
        description=signal.description,
        version=signal.version,
        basis=signal.basis,
        validation=catalog.validation(signal),
        unit=signal.unit,
        pitfalls=signal.pitfalls,
        bill=bill,
        **_evidence(store, session, why),
    )


def _evidence(store: Store, session: Session, why: CollectedEvidence) -> dict[str, Any]:
    artifacts = store.artifact_paths({i.artifact for i in why.items if i.artifact}, session.session_id)
    return {"session": session.session_id, "evidence": why.items, "totals": why.totals, "artifacts": artifacts}


def _bill(session: Session, why: CollectedEvidence, value: Any, is_usd: bool) -> list[CostLine]:
    if not why.billed:
        return []
    bill = cost_lines(session.steps, why.billed, is_lower_bound(session))
    rest = rounding_line(value, bill) if is_usd and isinstance(value, float) else None
    return [*bill, rest] if rest is not None else bill


OF_SESSIONS = "sessions."
_KINDS: dict[str, Collection[Kind]] = {
    "input_tokens": {"input"},
    "output_tokens": {"output"},
    "cache_read_tokens": {"cache read"},
    "cache_write_tokens": CACHE_WRITES,
    "cost_usd": PAID,
}
_THREADS: dict[str, Callable[[Step], bool]] = {
    "": lambda step: True,
    "main_": lambda step: step.thread == MAIN,
    "subagent_": lambda step: step.thread not in NO_SUBAGENT,
}
_TOTALS: dict[str, tuple[Collection[Kind], Callable[[Step], bool]]] = {
    **{part + name: (kinds, of) for part, of in _THREADS.items() for name, kinds in _KINDS.items()},
    "recorded_cost_usd": (PAID, lambda step: step.cost_source == "recorded"),
    "subagent_summed_tokens": ({"not split"}, _THREADS["subagent_"]),
}
"""Totals of a session by their column in `sessions`: the kinds of tokens, and of which model calls."""


def _of_total(store: Store, session: Session, path: str) -> Explanation:
    """Explain a total of tokens or cost by the model calls that it sums."""
    column = path.removeprefix(OF_SESSIONS)
    if column not in _TOTALS:
        raise CatalogError(f"{path!r} is not a total of tokens or cost.", f"The totals: {', '.join(_TOTALS)}.")
    kinds, of = _TOTALS[column]
    value, unit = totals(session)[column], "USD" if column.endswith("_usd") else "tokens"
    why = CollectedEvidence(SessionView(session))
    why.support(s for s in session.steps if of(s))
    why.bill((s for s in session.steps if of(s)), kinds)
    is_bound = is_lower_bound(session) and column.endswith(("output_tokens", "cost_usd"))
    meaning = f"The column {column} of the table `sessions`: the sum over the session's model calls."
    return Explanation(
        signal=path,
        value=value,
        absent={"reason": "missing_field", "detail": "usage"} if value is None else None,
        rule="lower bound: output tokens are under-reported" if is_bound else meaning,
        detail={"at_least": True} if is_bound else {},
        description=meaning,
        version=0,
        basis="record",
        validation="",
        unit=unit,
        pitfalls="",
        bill=_bill(session, why, value, unit == "USD"),
        **_evidence(store, session, why),
    )


def _vectors(store: Store, view: SessionView) -> Vectors | Absent:
    """Vectors of this session's texts, or the reason why there are none. Other values are explained all the same."""
    try:
        vectors = store_vectors(store, store.manifest.embedder)
        embed_session(vectors, view)
    except EmbedderError as problem:
        return Absent("backend_disabled", f"embedder: {problem.message}")
    return vectors
