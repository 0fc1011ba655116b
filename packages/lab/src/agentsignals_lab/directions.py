"""Directions in a residual stream: how they are made of recorded states, and how well they part classes held out.

States are (texts, layers, d) means over tokens, one array a class of texts; a direction is (layers, d). The published
recipe is kept beside better ones so that its numbers can be met (design/lab.md#directions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from agentsignals import private_files
from agentsignals.errors import LabError
from agentsignals.stats.intervals import t_quantile, wilson
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab.statistics import p_random

Array = NDArray[np.floating[Any]]
S = TypeVar("S", bound=Struct)
Recipe = Literal["published", "grand_mean", "grand_mean_cleaned", "contrast", "probe"]

_FLOOR = 1e-8
"""Least denominator of a cosine, as published."""
_NEUTRAL_SHARE = 0.5
"""The share of the variance of neutral dialogues whose main directions are taken out (Anthropic's recipe, b)."""


class DirectionSet(Struct, frozen=True, kw_only=True):
    """Named directions at some layers, the point that projections are measured from, and how they came about."""

    names: tuple[str, ...]
    layers: tuple[int, ...]
    vectors: Array
    """(names, layers, d)"""
    centre: Array
    """(layers, d)"""
    recipe: Recipe
    texts: str
    """The fingerprint of the text sets they were made of."""
    model: str
    counts: dict[str, int] = {}
    """Texts a name."""

    def of(self, name: str, layer: int) -> Array:
        """The direction `name` at `layer`, as made. LabError when there is none."""
        if name not in self.names or layer not in self.layers:
            raise LabError(
                f"There is no direction {name!r} at layer {layer}.",
                f"There are {', '.join(self.names)} at layers {', '.join(map(str, self.layers))}.",
            )
        vector: Array = self.vectors[self.names.index(name), self.layers.index(layer)]
        return vector


def published(states: Mapping[str, Array], neutral: Array) -> tuple[Array, Array]:
    """Mean of an emotion's texts less the mean of technical neutral ones, not normalised; that mean is the centre.

    Measures being told of a person more than the emotion (a.12): made to meet published numbers.
    """
    centre = neutral.mean(axis=0)
    return np.stack([texts.mean(axis=0) - centre for texts in states.values()]), centre


def grand_mean(states: Mapping[str, Array], neutral: Array | None = None) -> tuple[Array, Array]:
    """Mean of an emotion's texts less the mean over the emotions, of length 1; that mean is the centre.

    With `neutral` (texts, layers, d) the main directions among those, which hold half of their variance, are taken out
    first.
    """
    means = np.stack([texts.mean(axis=0) for texts in states.values()])
    centre = means.mean(axis=0)
    vectors = means - centre
    if neutral is not None:
        vectors = np.stack([without(vectors[:, i], main_directions(neutral[:, i])) for i in range(vectors.shape[1])], 1)
    return unit(vectors), centre


def contrast(of: Array, against: Array) -> tuple[Array, Array]:
    """The mean difference of two sets of texts, of length 1, measured from the point between them."""
    high, low = of.mean(axis=0), against.mean(axis=0)
    return unit(high - low), (high + low) / 2


def probe(of: Array, against: Array, ridge: float = 1.0) -> tuple[Array, Array]:
    """The direction of a ridge regression that tells two sets of texts apart, of length 1.

    In its dual form, since there are fewer texts than dimensions. `ridge`: a fraction of a state's mean squared length.
    """
    wanted = np.concatenate([np.ones(len(of)), -np.ones(len(against))])
    together = np.concatenate([of, against]).astype(np.float64)
    centre = (of.mean(axis=0) + against.mean(axis=0)) / 2
    vectors_by_layer = []
    for layer in range(together.shape[1]):
        rows = together[:, layer] - centre[layer]
        kernel = rows @ rows.T
        weights = np.linalg.solve(kernel + ridge * np.trace(kernel) / len(rows) * np.eye(len(rows)), wanted)
        vectors_by_layer.append(rows.T @ weights)
    return unit(np.stack(vectors_by_layer).astype(np.float32)), centre.astype(np.float32)


def unit(vectors: Array) -> Array:
    """Each vector with length 1; one of length 0 stays as it is."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    normed: Array = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return normed


def main_directions(states: Array, share: float = _NEUTRAL_SHARE) -> Array:
    """The fewest principal components of (texts, d) that hold `share` of its variance: (components, d), orthonormal."""
    centred = states - states.mean(axis=0)
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    held = np.cumsum(lengths**2) / max(float((lengths**2).sum()), _FLOOR)
    return axes[: int(np.searchsorted(held, share)) + 1].astype(np.float32)


def without(vectors: Array, axes: Array) -> Array:
    """The vectors (n, d) less their parts along the orthonormal `axes` (m, d)."""
    left: Array = vectors - (vectors @ axes.T) @ axes
    return left


def project(states: Array, direction: Array, centre: Array, kind: Literal["cosine", "coordinate"] = "cosine") -> Array:
    """Project states (..., layers, d) on a direction (layers, d), seen from `centre`: (..., layers).

    `cosine`: of the angle, in [-1, 1], as published. `coordinate`: in the units of the residual stream.
    """
    seen = states - centre
    along = (seen * unit(direction)).sum(axis=-1)
    if kind == "coordinate":
        return np.asarray(along, np.float32)
    length = np.linalg.norm(seen, axis=-1) * np.linalg.norm(unit(direction), axis=-1)
    return np.asarray(along / np.maximum(length, _FLOOR), np.float32)


def random_like(direction: Array, count: int, seed: int) -> Array:
    """`count` random directions of the same length: (count, ...)."""
    drawn = np.random.default_rng(seed).standard_normal((count, *direction.shape)).astype(np.float32)
    scaled: Array = unit(drawn) * np.linalg.norm(direction, axis=-1, keepdims=True)
    return scaled


def made(  # noqa: PLR0913  (what a set is made of, and what is written down about it)
    recipe: Recipe, states: Mapping[str, Array], neutral: Array, layers: Sequence[int], texts: str, model: str
) -> DirectionSet:
    """Directions of every class in `states` by a recipe. `neutral`: technical texts for `published`, dialogues for
    `grand_mean_cleaned`; `contrast` and `probe` hold each class against all others."""
    if recipe == "published":
        vectors, centre = published(states, neutral)
    elif recipe in ("grand_mean", "grand_mean_cleaned"):
        vectors, centre = grand_mean(states, neutral if recipe == "grand_mean_cleaned" else None)
    else:
        against = {n: np.concatenate([s for m, s in states.items() if m != n]) for n in states}
        make = contrast if recipe == "contrast" else probe
        vectors = np.stack([make(states[n], against[n])[0] for n in states])
        centre = np.stack([s.mean(axis=0) for s in states.values()]).mean(axis=0)
    return DirectionSet(
        names=tuple(states),
        layers=tuple(layers),
        vectors=vectors,
        centre=centre,
        recipe=recipe,
        texts=texts,
        model=model,
        counts={name: len(rows) for name, rows in states.items()},
    )


def write(what: Struct, path: Path) -> None:
    """An .npz of a struct that any NumPy reads without pickles; what is no array is JSON in it."""
    fields = {name: getattr(what, name) for name in what.__struct_fields__}
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    card = msgspec.json.encode({name: value for name, value in fields.items() if name not in arrays})
    with private_files.open_file(path, "wb") as out:
        np.savez_compressed(out, allow_pickle=False, card=np.frombuffer(card, np.uint8), **arrays)


def read(path: Path) -> DirectionSet:
    """Read a file of `write`; LabError when it is none."""
    return read_as(DirectionSet, path, "emotion directions", "Name a file that `lab run directions` wrote.")


def read_as(kind: type[S], path: Path, named: str, hint: str) -> S:
    """Read a struct of this kind as `write` wrote it. LabError when the file holds none."""
    try:
        with np.load(path, allow_pickle=False) as held:
            card: dict[str, Any] = msgspec.json.decode(held["card"].tobytes())
            card = {name: tuple(value) if isinstance(value, list) else value for name, value in card.items()}
            return kind(**card, **{name: held[name] for name in held.files if name != "card"})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(f"{path} cannot be read as {named}: {error}", hint) from error


# -- separation: by scores, and by chance

FEWEST_GROUPS = 3
"""With two groups, one left out leaves no spread to be seen."""
_ROUNDING = 1e-12


class Separation(Struct, frozen=True, kw_only=True):
    """An AUROC on held-out texts: .5 is chance, 1 is perfect order."""

    auroc: float
    low: float | None
    high: float | None
    """95 % interval over groups; None of fewer than three."""
    null_high: float
    """The 95th percentile of |AUROC - .5| + .5 of directions from shuffled labels, on the same held-out texts. Classes
    far apart make it high: an AUROC that is not above it proves nothing (design/lab.md#directions)."""
    p: float
    """The share of shuffled directions that part the classes at least as well, counted with the real one among them."""
    p_best: float
    """The same of the layer that parts best in each shuffle: what any layer of several must be held against."""
    n: int


def auroc(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """The chance that a positive scores above a negative, ties half; NaN when one class is empty."""
    high, low = scores[positive], np.sort(scores[~positive])
    if not len(high) or not len(low):
        return float("nan")
    below = np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")
    return float(below.sum() / (2 * len(high) * len(low)))


def interval(
    scores: NDArray[np.floating], positive: NDArray[np.bool_], groups: Sequence[str]
) -> tuple[float, float] | None:
    """95 % interval of the AUROC over groups (topics, tasks): Student's on the scale of log-odds, with the standard
    error of the jackknife that leaves out whole groups (design/statistics.md#the-lab). Where no group makes a
    difference, Wilson's for as many observations as there are groups. None where `half_width` is."""
    value = auroc(scores, positive)
    half = half_width(lambda kept: auroc(scores[kept], positive[kept]), groups)
    if half is None:
        return None
    if half <= _ROUNDING or not 0 < value < 1:
        n = len(set(groups))
        return wilson(value * n, n)
    centre, spread = np.log(value / (1 - value)), half / (value * (1 - value))
    low, high = (float(1 / (1 + np.exp(-end))) for end in (centre - spread, centre + spread))
    return low, high


def half_width(estimate: Callable[[NDArray[np.bool_]], float], groups: Sequence[str]) -> float | None:
    """Student's quantile times the jackknife's standard error of an estimate made of the rows that are kept. None of
    fewer than three groups, and where a class stands in one group alone."""
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    n = len(names)
    if n < FEWEST_GROUPS:
        return None
    without = np.asarray([estimate(member != group) for group in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return None if np.isnan(error) else float(t_quantile(n - 1) * error)


def split(groups: Sequence[str], share: float = 0.5, seed: int = 0) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows to learn from and which to hold out; a group is wholly one or the other."""
    names = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(names))
    kept = {names[i] for i in order[: max(1, round(share * len(names)))]}
    learns = np.asarray([g in kept for g in groups])
    return learns, ~learns


class Grouped(Struct, frozen=True):
    """States (texts, layers, d) and the topic or task of each."""

    states: Array
    groups: Sequence[str]


def held_out(of: Grouped, against: Grouped, *, shuffles: int = 200, seed: int = 0) -> list[Separation]:
    """A contrast direction learnt on half of the groups and judged on the other half; one Separation a layer."""
    learns, tests = split([*of.groups, *against.groups], seed=seed)
    (learn_of, learn_against), (test_of, test_against) = (np.split(m, [len(of.groups)]) for m in (learns, tests))
    direction, centre = contrast(of.states[learn_of], against.states[learn_against])
    taught, n_of, chance = of.states[learn_of], int(learn_of.sum()), np.random.default_rng(seed)
    together = np.concatenate([taught, against.states[learn_against]])
    orders = (chance.permutation(len(together)) for _ in range(shuffles))
    shuffled = [contrast(together[order[:n_of]], together[order[n_of:]])[0] for order in orders]  # of shuffled labels
    tested = np.concatenate([of.states[test_of], against.states[test_against]])
    positive = np.arange(len(tested)) < int(test_of.sum())
    groups = [g for g, t in zip([*of.groups, *against.groups], tests, strict=True) if t]
    scores = project(tested, direction, centre, "coordinate")
    by_layer = np.asarray(
        [
            [abs(auroc(tested[:, layer] @ vector[layer], positive) - 0.5) + 0.5 for layer in range(tested.shape[1])]
            for vector in shuffled
        ]
    )
    best = by_layer.max(axis=1)
    rows = []
    for layer, by_chance in enumerate(by_layer.T):
        value = auroc(scores[:, layer], positive)
        low, high = interval(scores[:, layer], positive, groups) or (None, None)
        rows.append(
            Separation(
                auroc=value,
                low=low,
                high=high,
                null_high=float(np.percentile(by_chance, 95)),
                p=p_random(value, by_chance.tolist()),
                p_best=p_random(value, best.tolist()),
                n=len(tested),
            )
        )
    return rows
