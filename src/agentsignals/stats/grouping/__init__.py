"""Groups of alike things, found by scikit-learn; the only place that loads it. Seeded: same things, same groups.

`density` groups by where things lie close together, and needs more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any

from msgspec import Struct

from agentsignals.model import Absent
from agentsignals.stats.estimates import SEED

STARTS = 10
"""K-means begins anew so often, and the best end counts."""
MOST = 4000
"""More things are not grouped at once: each is compared with each."""
DIMENSIONS = 50
NOISE = -1
"""The group of what is in none."""
_WORD = re.compile(r"[^\W\d_]{3,30}")
_FILLERS = frozenset((
    "also", "can", "could", "does", "doesn", "doing", "don", "get", "going", "got", "just", "let", "lets", "like",
    "look", "looks", "make", "maybe", "need", "now", "okay", "please", "really", "right", "should", "sure", "thing",
    "things", "think", "thanks", "try", "use", "want", "way", "well", "would", "yes",
))  # fmt: skip
"""Words of talk that say nothing of what it is about, beside those that scikit-learn knows."""
MISSING = Absent("backend_disabled", "topics")
"""What is answered where scikit-learn is not installed."""
INSTALL = "It takes scikit-learn: pip install 'agentsignals[topics]'."


class Groups(Struct, frozen=True):
    """Which group each thing is in: 0 is the largest."""

    of: list[int]
    fit: list[float]
    """The silhouette of each, -1 to 1: at 0 it is as near to another group as to its own (Rousseeuw 1987)."""
    distance: list[float]
    """The distance of each from the middle of its group."""
    silhouette: float
    """The mean of them."""

    @property
    def count(self) -> int:
        return max(self.of) + 1


def grouped(points: Sequence[Sequence[float]], most: int) -> Groups | Absent:
    """Groups of points by k-means. Of 2 to `most` groups it takes the number with the greatest mean silhouette, the
    smaller of equals. Absent without scikit-learn, and where fewer than three points differ."""
    learn = _learn()
    if learn is None:
        return MISSING
    different = len({tuple(point) for point in points})
    if different < 3:
        return Absent("not_computable", "fewer than three different things")
    candidates = [_kmeans(learn, list(map(list, points)), k) for k in range(2, min(most, different - 1) + 1)]
    return max(candidates, key=lambda groups: (round(groups.silhouette, 6), -groups.count))


def text_groups(texts: Sequence[str], k: int) -> Groups | Absent:
    """`k` groups of texts by what words they share: tf-idf, its main directions (latent semantic analysis), k-means.

    Absent without scikit-learn, and where the texts share too few words to have that many groups.
    """
    points = text_points(texts)
    return points if isinstance(points, Absent) else point_groups(points, k)


def text_points(texts: Sequence[str], seed: int = SEED) -> list[list[float]] | Absent:
    """Where each text lies by its words: tf-idf, its main directions, at most `DIMENSIONS`, length 1 (or 0 for a text
    without a word that another has)."""
    learn = _learn()
    if learn is None:
        return MISSING
    try:
        counted = learn.words(texts)
    except ValueError:  # no word is left
        return Absent("not_computable", "no word in two texts")
    size = min(DIMENSIONS, min(counted.shape) - 1)
    if size < 2:
        return Absent("not_computable", "too few texts or words")
    points: list[list[float]] = learn.normal(learn.directions(counted, size, seed)).tolist()
    return points


def point_groups(points: Sequence[Sequence[float]], k: int, seed: int = SEED) -> Groups | Absent:
    """`k` groups of points by k-means; fewer where not so many differ."""
    learn = _learn()
    if learn is None:
        return MISSING
    different = len({tuple(point) for point in points})
    if k >= len(points) or different < 3:
        return Absent("not_computable", "too few texts or words")
    return _kmeans(learn, list(map(list, points)), min(k, different - 1), seed)


def settled(of: Sequence[int], fit: Sequence[float], smallest: int) -> list[int]:
    """The group of each thing, 0 the largest; -1 for those as near to another group, and in groups of under so many."""
    labels = [group if near > 0 else NOISE for group, near in zip(of, fit, strict=True)]
    sizes = Counter(group for group in labels if group != NOISE)
    order = [group for group, n in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0])) if n >= smallest]
    return [order.index(group) if group in order else NOISE for group in labels]


def words_of(text: str) -> list[str]:
    """The words of a text that may tell what it is about, in lower case: runs of letters, three and more."""
    return _WORD.findall(text.lower())


def naming_words(texts: Sequence[str], of: Sequence[int], many: int, shared: Container[str]) -> list[list[str]]:
    """The words that tell each group from the others, the most telling first, by class-based tf-idf (Grootendorst
    2022): how many texts of the group use a word, times how rare it is in all. Only `shared` words name anything."""
    learn = _learn()
    unsaying: frozenset[str] = learn.unsaying if learn is not None else frozenset()
    counted = [Counter[str]() for _ in range(max(of) + 1)]
    for text, group in zip(texts, of, strict=True):
        if group >= 0:
            counted[group].update(w for w in set(words_of(text)) if w not in unsaying and w in shared)
    together = sum(counted, Counter[str]())
    average = together.total() / max(len(counted), 1)
    words = []
    for group_words in counted:
        weight = {w: n / group_words.total() * math.log(1 + average / together[w]) for w, n in group_words.items()}
        words.append(sorted(weight, key=lambda w: (-weight[w], w))[:many])
    return words


class _Learn:
    """What is used of scikit-learn."""

    def __init__(self) -> None:
        from sklearn.cluster import KMeans  # noqa: PLC0415  (a CPU second to load)
        from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer  # noqa: PLC0415
        from sklearn.metrics import silhouette_samples  # noqa: PLC0415
        from sklearn.preprocessing import normalize  # noqa: PLC0415

        self.unsaying = _FILLERS | ENGLISH_STOP_WORDS
        self._vectorizer = TfidfVectorizer(
            stop_words=list(self.unsaying), min_df=2, max_df=0.5, sublinear_tf=True, tokenizer=words_of,
            token_pattern=None,
        )  # fmt: skip
        self._svd = TruncatedSVD
        self.kmeans = KMeans
        self.silhouettes = silhouette_samples
        self.normal = normalize

    def words(self, texts: Sequence[str]) -> Any:
        return self._vectorizer.fit_transform(texts)

    def directions(self, counted: Any, size: int, seed: int) -> Any:
        return self._svd(size, random_state=seed).fit_transform(counted)


def _learn() -> _Learn | None:
    try:
        return _Learn()
    except ImportError:
        return None


def _kmeans(learn: _Learn, points: list[list[float]], k: int, seed: int = SEED) -> Groups:
    made = learn.kmeans(max(k, 2), n_init=STARTS, random_state=seed).fit(points)
    raw: list[int] = made.labels_.tolist()
    order = sorted(set(raw), key=lambda label: (-raw.count(label), raw.index(label)))
    of = [order.index(label) for label in raw]
    centres = made.cluster_centers_.tolist()
    away = [math.dist(point, centres[label]) for point, label in zip(points, raw, strict=True)]
    fit: list[float] = learn.silhouettes(points, of).tolist()
    return Groups(of, fit, away, math.fsum(fit) / len(fit))
