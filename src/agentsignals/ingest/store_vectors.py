"""The vectors of a store's texts: by which embedder, on which scale, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentsignals.embedding import NONE, Vectors, is_model, light, model
from agentsignals.model import Absent
from agentsignals.store import Store
from agentsignals.views.session import SessionView


def while_reading(spec: str) -> str:
    """What compares texts in the workers that read: a model is loaded once, and later."""
    return NONE if is_model(spec) else spec


def vectors_of(store: Store, spec: str, tell: Callable[[str], None] | None = None) -> Vectors | Absent:
    """What the signals of this store compare texts with."""
    if not is_model(spec):
        return light(spec)
    from agentsignals.embedding.cache import Cache  # noqa: PLC0415  (models only)

    embedder = model(spec, tell=tell)
    cache = Cache(store.folder, embedder.id)
    return Vectors(embedder, embedder.profile or cache.profile(), cache)


def calibrated(store: Store, vectors: Vectors | Absent) -> Vectors | Absent:
    """The same on a scale of its own: fitted to the store's sessions once there are enough, and kept from then on."""
    from agentsignals.embedding.cache import Cache  # noqa: PLC0415  (models only)

    if isinstance(vectors, Absent) or vectors.profile.origin != "identity" or not isinstance(vectors.kept, Cache):
        return vectors
    from agentsignals.embedding.calibration import fit, opening  # noqa: PLC0415

    openings = (opening(view) for view in _views(store) if view.turns)
    profile = fit((o for o in openings if o is not None), vectors)
    if profile is None:
        return vectors
    vectors.kept.keep_profile(profile)
    return Vectors(vectors.embedder, profile, vectors.kept)


def _views(store: Store) -> Iterator[SessionView]:
    from agentsignals.store import shards  # noqa: PLC0415  (pyarrow is loaded when asked)

    for name in store.whole():
        for session in shards.read_sessions(store.folder, name):
            if session.context == "product":
                yield SessionView(session)


def prepare(vectors: Vectors | Absent, view: SessionView) -> None:
    """Has a model look at all texts of a session at once: one by one they would take several times as long."""
    if not isinstance(vectors, Absent) and vectors.kept is not None and view.session.context == "product":
        from agentsignals.embedding.passages import Passages  # noqa: PLC0415

        vectors.of(Passages(view).all())
