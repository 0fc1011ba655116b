"""Groups of alike things. Seeded: same things, same groups.

Needs NumPy, loaded when something is grouped; scikit-learn, which has the same, takes a CPU second to load. `density`
groups by where things lie close together, and needs more.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any

from msgspec import Struct

from agentsignals.model import Absent
from agentsignals.stats.intervals import SEED

MOST = 4000
"""More things are not grouped at once: each is compared with each."""
DIMENSIONS = 50
NOISE = -1
"""The group of what is in none."""
_WORD = re.compile(r"[^\W\d_]{3,30}")
_WORDS_OF_TALK = """
all another any anybody anyone anything both each eight either enough every everybody everyone everything few
fewer first five four her hers herself him himself his its itself last least less many mine more most much
myself neither next nine nobody none nothing one ones other others our ours ourselves own same second seven
several she six some somebody someone something such ten that the their theirs them themselves these they third
this those three two what whatever which whichever who whoever whole whom whose you your yours yourself
yourselves
about above across after against along although among amongst and around because before behind below beneath
beside besides between beyond but despite down due during except for from how into like near nor off onto out
over past per since than though through throughout till toward towards under underneath unless until unto upon
via when whenever where whereas wherever whether while why with within without yet
ain are aren been being can cannot could couldn did didn does doesn doing don done get gets getting going gone
got had hadn has hasn have haven having isn let lets may might must mustn ought shall should shouldn was wasn
were weren will won would wouldn
actually afterwards again almost already also always anyhow anyway anywhere else elsewhere etc even ever
everywhere furthermore hence here however indeed instead just later maybe meanwhile moreover mostly nearly never
nevertheless not now often once only otherwise perhaps quite rather somehow sometime sometimes somewhat
somewhere soon still then there thereby therefore thus together too usually very well whence
look looks make need okay please really right sure thank thanks thing things think try use want way yes
"""
_UNSAYING = frozenset(_WORDS_OF_TALK.split())
"""Words that say nothing of what a text is about: pronouns and what counts, prepositions and conjunctions, verbs that
stand by others (and short forms without their end), adverbs of degree, time and place, words of talk."""
MISSING = Absent("backend_disabled", "topics")
"""What is answered where NumPy is not installed."""
INSTALL = "It takes NumPy: pip install 'agentsignals[topics]'."


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
    smaller of equals. Absent without NumPy, and where fewer than three points differ."""
    different = len({tuple(point) for point in points})
    if different < 3:
        return Absent("not_computable", "fewer than three different things") if _has_numpy() else MISSING
    candidates = _k_means(points, range(2, min(most, different - 1) + 1), SEED)
    if isinstance(candidates, Absent):
        return candidates
    return max(candidates, key=lambda groups: (round(groups.silhouette, 6), -groups.count))


def text_groups(texts: Sequence[str], k: int) -> Groups | Absent:
    """`k` groups of texts by what words they share: tf-idf, its main directions (latent semantic analysis), k-means.

    Absent without NumPy, and where the texts share too few words to have that many groups.
    """
    points = text_points(texts)
    return points if isinstance(points, Absent) else point_groups(points, k)


def text_points(texts: Sequence[str], seed: int = SEED) -> list[list[float]] | Absent:
    """Where each text lies by its words: tf-idf, its main directions, at most `DIMENSIONS`, length 1 (or 0 for a text
    without a word that another has)."""
    if not _has_numpy():
        return MISSING
    from agentsignals.stats.k_means import TfIdf, directions  # noqa: PLC0415

    table = TfIdf([[word for word in words_of(text) if word not in _UNSAYING] for text in texts])
    if not table.words:
        return Absent("not_computable", "no word in two texts")
    size = min(DIMENSIONS, min(table.shape) - 1)
    if size < 2:
        return Absent("not_computable", "too few texts or words")
    return directions(table, size, seed)


def point_groups(points: Sequence[Sequence[float]], k: int, seed: int = SEED) -> Groups | Absent:
    """`k` groups of points by k-means; fewer where not so many differ."""
    different = len({tuple(point) for point in points})
    if k >= len(points) or different < 3:
        return Absent("not_computable", "too few texts or words") if _has_numpy() else MISSING
    made = _k_means(points, [max(2, min(k, different - 1))], seed)
    return made if isinstance(made, Absent) else made[0]


def stable_groups(of: Sequence[int], fit: Sequence[float], smallest: int) -> list[int]:
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
    counted = [Counter[str]() for _ in range(max(of) + 1)]
    for text, group in zip(texts, of, strict=True):
        if group >= 0:
            counted[group].update(w for w in set(words_of(text)) if w not in _UNSAYING and w in shared)
    together = sum(counted, Counter[str]())
    average = together.total() / max(len(counted), 1)
    words = []
    for group_words in counted:
        weight = {w: n / group_words.total() * math.log(1 + average / together[w]) for w, n in group_words.items()}
        words.append(sorted(weight, key=lambda w: (-weight[w], w))[:many])
    return words


def _has_numpy() -> bool:
    try:
        import numpy  # noqa: F401, PLC0415  (pyarrow loads it where it is installed; this package does without)
    except ImportError:
        return False
    return True


def _k_means(points: Sequence[Sequence[float]], sizes: Sequence[int], seed: int) -> list[Groups] | Absent:
    """Groups of points, of each of these numbers."""
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
    """Labels anew: 0 is the largest group, the earlier of equals."""
    order = sorted(set(labels), key=lambda label: (-labels.count(label), labels.index(label)))
    number = {label: n for n, label in enumerate(order)}
    return [number[label] for label in labels]


# Groups by density: UMAP lays things out in few dimensions, HDBSCAN finds where they lie close together; what lies
# between is noise (McInnes et al. 2018; Campello et al. 2013). The only place that loads umap-learn (extra
# `topics`).
#
# HDBSCAN in the dimensions of the embedding calls four of five prompts noise, and after a linear projection finds
# next to nothing: without UMAP nothing is grouped here (design/labels.md#topics).

DIMENSIONS_DENSITY = 5
"""Those of the measurement in design/labels.md#topics; SWE-chat's 20 make no difference that anybody published."""
NEIGHBOURS = 15
"""UMAP's own default: how many things around one make up its surroundings."""
CORE = 5
"""HDBSCAN's `min_samples`, as SWE-chat has it (design/attribution.md#topics-of-swe-chat)."""
MISSING_DENSITY = Absent("backend_disabled", "umap")


class DensityGroups(Struct, frozen=True):
    """Which group each thing is in: 0 is the largest, -1 none."""

    of: list[int]
    probability: list[float]
    """How surely each belongs to its group, 0 to 1; 0 for noise."""


def dense_groups(points: Sequence[Sequence[float]], smallest: int, seed: int) -> DensityGroups | Absent:
    """Groups of at least `smallest` points. The same points and seed give the same groups on the same machine.

    Absent without umap-learn, and where there are fewer points than two such groups need.
    """
    if len(points) < max(2 * smallest, NEIGHBOURS + 1):
        return Absent("not_computable", f"{len(points)} are too few")
    umap = _umap()
    if umap is None:
        return MISSING_DENSITY
    from sklearn.cluster import HDBSCAN  # noqa: PLC0415  (a CPU second to load)

    with warnings.catch_warnings():  # on scattered points, equal points and threads: all of it expected here
        warnings.simplefilter("ignore")
        placed = umap.UMAP(
            n_components=DIMENSIONS_DENSITY,
            n_neighbors=NEIGHBOURS,
            min_dist=0.0,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
        ).fit_transform(list(map(list, points)))
        clusters = HDBSCAN(min_cluster_size=smallest, min_samples=CORE, copy=True).fit(placed)
    raw: list[int] = clusters.labels_.tolist()
    order = sorted(set(raw) - {NOISE}, key=lambda label: (-raw.count(label), raw.index(label)))
    number = {label: n for n, label in enumerate(order)}
    surely: list[float] = clusters.probabilities_.tolist()
    return DensityGroups([number.get(label, NOISE) for label in raw], surely)


def _umap() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells that tensorflow is not there, which nobody asked for
            import umap  # noqa: PLC0415  (compiles itself on first use: ten CPU seconds)
    except ImportError:
        return None
    return umap
