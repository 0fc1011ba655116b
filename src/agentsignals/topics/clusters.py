"""Prompts in groups: where each lies, and what lies together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

from msgspec import Struct

from agentsignals.embedding import NONE, is_model, parsed
from agentsignals.embedding.vectors import Dense
from agentsignals.ingest.store_vectors import vectors_of
from agentsignals.model import Absent
from agentsignals.stats.density import dense_groups
from agentsignals.stats.grouping import NOISE, point_groups, settled, text_points
from agentsignals.store import Store

K_MEANS, DENSITY = "k-means", "umap+hdbscan"
METHODS = (K_MEANS, DENSITY)
"""How points become groups: the first unless another is asked for, whatever is installed."""
TFIDF = "tf-idf"
"""What stands for an embedder where prompts are compared by the words they share."""
SMALLEST = 8
"""Prompts of a topic at least, for HDBSCAN."""
SHARE = 150 / 19_400
"""The smallest topic of SWE-chat in its prompts (design/attribution.md#topics-of-swe-chat): in a greater corpus a
topic takes more."""
SMALLEST_OF_KMEANS = 5
"""As in the study of topics."""
MOST = 40
"""Topics that k-means is asked for at most."""


class Clusters(Struct, frozen=True):
    """Which topic each prompt has: 0 is the largest, -1 none."""

    method: str
    """One of `METHODS`."""
    embedder: str
    of: list[int]
    fit: list[float]
    """How well each is in the middle of its topic: HDBSCAN's probability; of k-means the silhouette."""
    smallest: int | None

    @property
    def count(self) -> int:
        return max(self.of, default=NOISE) + 1


def clustered(  # noqa: PLR0913  (what is grouped, how, and who is told)
    store: Store,
    texts: Sequence[str],
    spec: str,
    seed: int,
    tell: Callable[[str], None] | None = None,
    *,
    method: str = K_MEANS,
) -> Clusters | Absent:
    """The groups of these texts by the vectors of an embedder, kept in the store, or by the words they share. Texts
    without a word that another has are in no group. Absent where nothing can be grouped."""
    parsed(spec)
    placed = _points(store, texts, spec, seed, tell)
    if isinstance(placed, Absent):
        return placed
    embedder, points = placed
    with_words = [n for n, point in enumerate(points) if any(point)]
    if not with_words:
        return Absent("not_computable", "no word in two texts")
    grouped = (_by_density if method == DENSITY else _by_means)([points[n] for n in with_words], seed)
    if isinstance(grouped, Absent):
        return grouped
    groups, fits, smallest = grouped
    of, fit = [NOISE] * len(texts), [0.0] * len(texts)
    for n, group, near in zip(with_words, groups, fits, strict=True):
        of[n], fit[n] = group, near
    return Clusters(method, embedder, of, fit, smallest)


def _points(
    store: Store, texts: Sequence[str], spec: str, seed: int, tell: Callable[[str], None] | None
) -> tuple[str, Sequence[Sequence[float]]] | Absent:
    vectors = vectors_of(store, spec, tell) if is_model(spec) else Absent("backend_disabled", NONE)
    if isinstance(vectors, Absent):
        points = text_points(texts, seed)
        return points if isinstance(points, Absent) else (TFIDF, points)
    dense = cast("list[Dense]", vectors.of(texts))  # what a model gives; only counts of words are sparse
    return vectors.embedder.id, [list(vector.values) for vector in dense]


_Grouped = tuple[list[int], list[float], int | None]
"""Groups, how well each thing fits its own, and the fewest things of a group."""


def _by_density(points: Sequence[Sequence[float]], seed: int) -> _Grouped | Absent:
    smallest = max(SMALLEST, round(SHARE * len(points)))
    dense = dense_groups(points, smallest, seed)
    return dense if isinstance(dense, Absent) else (dense.of, dense.probability, smallest)


def _by_means(points: Sequence[Sequence[float]], seed: int) -> _Grouped | Absent:
    wanted = min(MOST, max(2, round(math.sqrt(len(points) / 2))))
    groups = point_groups(points, wanted, seed)
    if isinstance(groups, Absent):
        return groups
    return settled(groups.of, groups.fit, SMALLEST_OF_KMEANS), groups.fit, None
