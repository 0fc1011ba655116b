"""One value again, with the events, artifact lines and rule it rests on: the same function, in explaining mode."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agentsignals import catalog
from agentsignals.embedding import Vectors
from agentsignals.errors import EmbedderError
from agentsignals.ingest.across import history_of
from agentsignals.ingest.store_vectors import prepare, vectors_of
from agentsignals.model import Absent
from agentsignals.store import Store
from agentsignals.views.evidence import Item
from agentsignals.views.session import SessionView


class Explanation(Struct, kw_only=True):
    """The contract's document: a value or its absence, the rule, and the evidence."""

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
    """What it rests on (`catalog.Basis`)."""
    validation: str
    """How often it was right where the truth was at hand."""
    artifacts: dict[str, str]
    """Path of each artifact the evidence names."""


def explain(store: Store, session_id: str, path: str) -> Explanation:
    """Why a session has the value it has."""
    signal = catalog.by_path(path)
    session = store.session(session_id)
    view = SessionView(session)
    vectors = _vectors(store, view)
    values, history = catalog.values(view, {"vectors": vectors}), None
    if signal.scope == "history":
        history, across = history_of(store, session.session_id)
        values |= across
    value, detail, collected = catalog.explain(signal, view, values, history)
    if not collected.items and not isinstance(value, Absent):
        collected.denominator(session.turns, "searched:")
    absent = {"reason": value.reason, "detail": value.detail} if isinstance(value, Absent) else None
    wanted = {i.artifact for i in collected.items if i.artifact}
    return Explanation(
        session=session.session_id,
        signal=signal.path,
        value=None if isinstance(value, Absent) else catalog.plain(value),
        absent=absent,
        rule="; ".join(collected.rules) or signal.description,
        evidence=collected.items,
        totals=collected.totals,
        detail=detail,
        description=signal.description,
        version=signal.version,
        basis=signal.basis,
        validation=catalog.validation(signal),
        artifacts=store.artifact_paths(wanted),
    )


def _vectors(store: Store, view: SessionView) -> Vectors | Absent:
    """What compares this session's texts. What needs none of it is explained all the same when a model is gone."""
    try:
        vectors = vectors_of(store, store.manifest.embedder)
        prepare(vectors, view)
    except EmbedderError as problem:
        return Absent("backend_disabled", f"embedder: {problem.message}")
    return vectors
