"""Groups by density: UMAP lays things out in few dimensions, HDBSCAN finds where they lie close together; what lies
between is noise (McInnes et al. 2018; Campello et al. 2013). The only place that loads umap-learn (extra `topics`).

HDBSCAN in the dimensions of the embedding calls four of five prompts noise, and after a linear projection finds next to
nothing: without UMAP nothing is grouped here (design/labels.md#topics).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from agentsignals.model import Absent
from agentsignals.stats.grouping import NOISE

DIMENSIONS = 5
"""Those of the measurement in design/labels.md#topics; SWE-chat's 20 make no difference that anybody published."""
NEIGHBOURS = 15
"""UMAP's own default: how many things around one make up its surroundings."""
CORE = 5
"""HDBSCAN's `min_samples`, as SWE-chat has it (design/attribution.md#topics-of-swe-chat)."""
MISSING = Absent("backend_disabled", "umap")


class Dense(Struct, frozen=True):
    """Which group each thing is in: 0 is the largest, -1 none."""

    of: list[int]
    probability: list[float]
    """How surely each belongs to its group, 0 to 1; 0 for noise."""


def dense_groups(points: Sequence[Sequence[float]], smallest: int, seed: int) -> Dense | Absent:
    """Groups of at least `smallest` points. The same points and seed give the same groups on the same machine.

    Absent without umap-learn, and where there are fewer points than two such groups need.
    """
    if len(points) < max(2 * smallest, NEIGHBOURS + 1):
        return Absent("not_computable", f"{len(points)} are too few")
    umap = _umap()
    if umap is None:
        return MISSING
    from sklearn.cluster import HDBSCAN  # noqa: PLC0415  (a CPU second to load)

    with warnings.catch_warnings():  # on scattered points, equal points and threads: all of it expected here
        warnings.simplefilter("ignore")
        placed = umap.UMAP(
            n_components=DIMENSIONS, n_neighbors=NEIGHBOURS, min_dist=0.0, metric="cosine", random_state=seed, n_jobs=1
        ).fit_transform(list(map(list, points)))
        clusters = HDBSCAN(min_cluster_size=smallest, min_samples=CORE, copy=True).fit(placed)
    raw: list[int] = clusters.labels_.tolist()
    order = sorted(set(raw) - {NOISE}, key=lambda label: (-raw.count(label), raw.index(label)))
    number = {label: n for n, label in enumerate(order)}
    surely: list[float] = clusters.probabilities_.tolist()
    return Dense([number.get(label, NOISE) for label in raw], surely)


def _umap() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells that tensorflow is not there, which nobody asked for
            import umap  # noqa: PLC0415  (compiles itself on first use: ten CPU seconds)
    except ImportError:
        return None
    return umap
