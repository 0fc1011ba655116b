"""Clustering of texts and points: k-means in NumPy, and UMAP with HDBSCAN (extra `topics`). Seeded, so results are
reproducible.

NumPy is loaded when something is clustered. scikit-learn's k-means would cost a CPU second to load.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agentsignals.errors import install_command
from agentsignals.model import Absent
from agentsignals.model.lazy import without_threads
from agentsignals.stats.intervals import SEED

MOST = 4000
"""More points are not clustered at once, because each is compared with each."""
DIMENSIONS = 50
NOISE = -1
_WORD = re.compile(r"[^\W\d_]{3,30}")
_UNSAYING = frozenset(Path(__file__).with_name("stop_words.txt").read_text("utf-8").split())
"""Stop words: pronouns, quantifiers, prepositions, conjunctions, auxiliary verbs, adverbs of degree, time and place,
small talk."""
MISSING = Absent("backend_disabled", "topics")


def install_hint() -> str:
    return f"NumPy is not installed: {install_command('topics')}"


class Groups(Struct, frozen=True):
    """Cluster of each point; 0 is the largest."""

    of: list[int]
    fit: list[float]
    """Silhouette of each point, -1 to 1 (Rousseeuw 1987). At 0 another cluster is as close."""
    distance: list[float]
    """Distance of each point from the centre of its cluster."""
    silhouette: float

    @property
    def count(self) -> int:
        return max(self.of) + 1


def grouped(points: Sequence[Sequence[float]], most: int) -> Groups | Absent:
    """Cluster points by k-means into 2 to `most` clusters: the number with the largest mean silhouette, the smaller if
    equal.

    Absent without NumPy, and if fewer than three points differ.
    """
    different = len({tuple(point) for point in points})
    if different < 3:
        return Absent("not_computable", "fewer than three distinct items") if _has_numpy() else MISSING
    candidates = _k_means(points, range(2, min(most, different - 1) + 1), SEED)
    if isinstance(candidates, Absent):
        return candidates
    return max(candidates, key=lambda groups: (round(groups.silhouette, 6), -groups.count))


def text_groups(texts: Sequence[str], k: int) -> Groups | Absent:
    """Cluster texts into `k` groups by shared words: tf-idf, latent semantic analysis, k-means.

    Absent without NumPy, and if the texts share too few words.
    """
    points = text_points(texts)
    return points if isinstance(points, Absent) else point_groups(points, k)


def text_points(texts: Sequence[str], seed: int = SEED) -> list[list[float]] | Absent:
    """Return each text as a point: tf-idf projected to at most `DIMENSIONS` main directions, length 1 (0 without a
    shared word)."""
    if not _has_numpy():
        return MISSING
    from agentsignals.stats.k_means import TfIdf, directions  # noqa: PLC0415

    table = TfIdf([[word for word in words_of(text) if word not in _UNSAYING] for text in texts])
    if not table.words:
        return Absent("not_computable", "no word occurs in two texts")
    size = min(DIMENSIONS, min(table.shape) - 1)
    if size < 2:
        return Absent("not_computable", "too few texts or words")
    return directions(table, size, seed)


def point_groups(points: Sequence[Sequence[float]], k: int, seed: int = SEED) -> Groups | Absent:
    """Cluster points into `k` groups by k-means; fewer if not so many points differ."""
    different = len({tuple(point) for point in points})
    if k >= len(points) or different < 3:
        return Absent("not_computable", "too few texts or words") if _has_numpy() else MISSING
    made = _k_means(points, [max(2, min(k, different - 1))], seed)
    return made if isinstance(made, Absent) else made[0]


def stable_groups(of: Sequence[int], fit: Sequence[float], smallest: int) -> list[int]:
    """Relabel clusters, 0 the largest. Points closer to another cluster, and clusters below `smallest` become noise."""
    labels = [group if near > 0 else NOISE for group, near in zip(of, fit, strict=True)]
    sizes = Counter(group for group in labels if group != NOISE)
    order = [group for group, n in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0])) if n >= smallest]
    return [order.index(group) if group in order else NOISE for group in labels]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case: runs of three letters or more."""
    return _WORD.findall(text.lower())


def naming_words(texts: Sequence[str], of: Sequence[int], many: int, places: Sequence[str]) -> list[list[str]]:
    """Return the most telling words of each cluster, by class-based tf-idf (Grootendorst 2022). A word that one place
    alone uses names a project and does not count."""
    words_by_text = [set(words_of(text)) for text in texts]
    used: dict[str, set[str]] = {}
    for words_here, place in zip(words_by_text, places, strict=True):
        for word in words_here:
            used.setdefault(word, set()).add(place)
    counted = [Counter[str]() for _ in range(max(of) + 1)]
    for words_here, group in zip(words_by_text, of, strict=True):
        if group >= 0:
            counted[group].update(w for w in words_here if w not in _UNSAYING and len(used[w]) > 1)
    together = sum(counted, Counter[str]())
    average = together.total() / max(len(counted), 1)
    words = []
    for group_words in counted:
        weight = {w: n / group_words.total() * math.log(1 + average / together[w]) for w, n in group_words.items()}
        words.append(sorted(weight, key=lambda w: (-weight[w], w))[:many])
    return words


def _has_numpy() -> bool:
    try:
        with without_threads():
            import numpy  # noqa: F401, PLC0415  (pyarrow loads it where it is installed; this package does without)
    except ImportError:
        return False
    return True


def _k_means(points: Sequence[Sequence[float]], sizes: Sequence[int], seed: int) -> list[Groups] | Absent:
    if not _has_numpy():
        return MISSING
    from agentsignals.stats.k_means import k_means, silhouettes  # noqa: PLC0415

    made = [k_means(points, k, seed) for k in sizes]
    ordered = [_by_size(labels) for labels, _ in made]
    fits = silhouettes(points, ordered)
    return [
        Groups(
            of, fit, [math.dist(p, centres[n]) for p, n in zip(points, labels, strict=True)], math.fsum(fit) / len(fit)
        )
        for of, fit, (labels, centres) in zip(ordered, fits, made, strict=True)
    ]


def _by_size(labels: list[int]) -> list[int]:
    """Relabel clusters by size: 0 is the largest, the earlier if equal. Noise stays noise."""
    order = sorted(set(labels) - {NOISE}, key=lambda label: (-labels.count(label), labels.index(label)))
    number = {label: n for n, label in enumerate(order)}
    return [number.get(label, NOISE) for label in labels]


# -- density clusters --------------------------------------------------------------------------------------------------


UMAP_DIMENSIONS = 5
"""UMAP dimensions (design/labels.md#topics); SWE-chat's 20 make no published difference."""
NEIGHBOURS = 15
CORE = 5
"""HDBSCAN's `min_samples`, as in SWE-chat (design/attribution.md#topics-of-swe-chat)."""
UMAP_MISSING = Absent("backend_disabled", "umap")


class DensityGroups(Struct, frozen=True):
    """Density cluster of each point: 0 is the largest, -1 is noise."""

    of: list[int]
    probability: list[float]


def dense_groups(points: Sequence[Sequence[float]], smallest: int, seed: int) -> DensityGroups | Absent:
    """Cluster points by UMAP and HDBSCAN (McInnes et al. 2018; Campello et al. 2013), at least `smallest` points a
    cluster.

    Reproducible on the same machine. Absent without umap-learn, and with too few points for two clusters. HDBSCAN in
    the dimensions of the embedding calls four of five prompts noise, and finds next to nothing after a linear
    projection, so nothing is clustered without UMAP (design/labels.md#topics).
    """
    if len(points) < max(2 * smallest, NEIGHBOURS + 1):
        return Absent("not_computable", f"{len(points)} are too few")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells that tensorflow is not there, which nobody asked for
            import umap  # noqa: PLC0415  (compiles itself on first use: ten CPU seconds)
    except ImportError:
        return UMAP_MISSING
    from sklearn.cluster import HDBSCAN  # noqa: PLC0415  (a CPU second to load)

    with warnings.catch_warnings():  # on scattered points, equal points and threads: all of it expected here
        warnings.simplefilter("ignore")
        placed = umap.UMAP(
            n_components=UMAP_DIMENSIONS,
            n_neighbors=NEIGHBOURS,
            min_dist=0.0,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
        ).fit_transform(list(map(list, points)))
        clusters = HDBSCAN(min_cluster_size=smallest, min_samples=CORE, copy=True).fit(placed)
    return DensityGroups(_by_size(clusters.labels_.tolist()), clusters.probabilities_.tolist())
