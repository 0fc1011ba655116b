"""Stored directions and projections of the published runs: how alike the directions are, and what of their rise
over attempts is left once what they share is taken out (design/lab.md#stored-states)."""

from __future__ import annotations

import zipfile
from collections import defaultdict
from typing import Any

import numpy as np
from agentsignals.errors import LabError
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab.directions import Array, unit
from published_emotion_study import Run

NEGATIVE = ("frustrated", "desperate", "stuck", "stressed")
POSITIVE = ("calm", "patient", "confident")
_MOST_VALUES = 50_000_000


class Stored(Struct, frozen=True):
    """The directions of a run: vectors (emotions, layers, d), and the mean of the neutral texts (layers, d)."""

    emotions: tuple[str, ...]
    layers: tuple[int, ...]
    vectors: NDArray[np.float64]
    neutral_mean: NDArray[np.float64]


def stored_directions(run: Run) -> Stored | None:
    """None when the run keeps none. LabError when the file is no such; nothing in it is executed."""
    path = run.folder / "emotion_directions.npz"
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            named = {name: arrays[name] for name in ("emotions", "layers", "vectors", "neutral_mean")}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as problem:
        raise LabError(
            f"{path} cannot be read as emotion directions: {problem}.",
            "Give the .npz file of emotion directions that the emotion-lab study published.",
        ) from problem
    n, layers, width = (*named["vectors"].shape, 0, 0, 0)[:3]
    fits = named["emotions"].shape == (n,) and named["layers"].shape == (layers,)
    if not fits or named["neutral_mean"].shape != (layers, width) or named["vectors"].size > _MOST_VALUES:
        raise LabError(
            f"The arrays in {path} have shapes that do not match.",
            "Give the .npz file of emotion directions that the emotion-lab study published.",
        )
    return Stored(
        tuple(str(e) for e in named["emotions"]),
        tuple(int(layer) for layer in named["layers"]),
        named["vectors"].astype(np.float64),
        named["neutral_mean"].astype(np.float64),
    )


def alike(stored: Stored) -> list[dict[str, float]]:
    """Return how alike the directions of a run are, a row a layer. LabError when a direction is missing.

    `shared_energy`: mean squared cosine of a direction with the mean of all, 1 when they are one. `neutral_top5`: share
    of the neutral mean's squared length in its five largest dimensions. `negative_without_prompt`, the same in each
    row: mean projection on the negative directions of a text whose states are nothing, −cos(direction, neutral mean).
    Where it equals the published level, that level says nothing of the prompts.
    """
    calm, desperate = _place(stored, "calm"), _place(stored, "desperate")
    negative = stored.vectors[[_place(stored, name) for name in NEGATIVE]]
    without_prompt = -(unit(negative) * unit(stored.neutral_mean)).sum(axis=-1).mean()
    rows = []
    for n in range(len(stored.layers)):
        vectors = stored.vectors[:, n]
        table = cosines(vectors)
        row = {
            "layer": n,
            "calm_desperate": table[calm, desperate],  # two directions that should be opposites
            "mean_cosine": table[np.triu_indices(len(table), 1)].mean(),
            "shared_energy": ((unit(vectors) @ unit(vectors.mean(axis=0))) ** 2).mean(),
            "neutral_top5": sink_share(stored.neutral_mean[n]),
            "negative_without_prompt": without_prompt,
        }
        rows.append({name: float(value) for name, value in row.items()})
    return rows


def cosines(vectors: Array) -> NDArray[np.float64]:
    """(names, names)"""
    rows = unit(vectors.astype(np.float64))
    return np.asarray(rows @ rows.T, np.float64)


def sink_share(centre: Array) -> float:
    """Return the share of a vector's squared length that its five largest dimensions hold."""
    squares = np.sort(centre.astype(np.float64) ** 2)[::-1]
    return float(squares[:5].sum() / squares.sum())


def rises(run: Run, stored: Stored) -> list[dict[str, float]]:
    """Return the change of projections from the first attempt to the second, a row a (task, condition) that has both.

    `negative`, `positive`: the published scores. `shared`: along the mean of all directions; `desperate` and `calm`
    along their direction less that mean; `contrast` the negative directions less the positive ones, each less the mean.
    A stored score is cos(state, direction), so score times the direction's length is linear in the direction: sums of
    directions can be projected on without the states.
    """
    changes = _changes(run, stored)
    lengths = np.linalg.norm(stored.vectors, axis=-1)
    dots = changes * lengths  # (runs, emotions, layers): what remains is divided by the length of the state
    negative = [_place(stored, name) for name in NEGATIVE]
    positive = [_place(stored, name) for name in POSITIVE]

    def along(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        length = np.linalg.norm(np.tensordot(weights, stored.vectors, axes=1), axis=-1)
        return np.asarray((np.einsum("e,rel->rl", weights, dots) / length).mean(axis=-1))

    n = len(stored.emotions)
    along_each = np.stack([along(np.eye(n)[e] - 1 / n) for e in range(n)], axis=1)
    columns = {
        "negative": changes[:, negative].mean(axis=(1, 2)),
        "positive": changes[:, positive].mean(axis=(1, 2)),
        "shared": along(np.full(n, 1 / n)),
        "contrast": along_each[:, negative].mean(axis=1) - along_each[:, positive].mean(axis=1),
        "desperate": along_each[:, _place(stored, "desperate")],
        "calm": along_each[:, _place(stored, "calm")],
    }
    return [{name: float(values[row]) for name, values in columns.items()} for row in range(len(changes))]


def _changes(run: Run, stored: Stored) -> NDArray[np.float64]:
    """(runs, emotions, layers): scores of attempt 1 less those of attempt 0, of the runs that have all of both."""
    scores: dict[tuple[str, str], dict[str, Any]] = defaultdict(lambda: defaultdict(dict))
    for row in run.rows("agent_activation_scores"):
        try:
            place = row["emotion"], int(row["layer"])
            scores[row["task_id"], row["condition"]][row["attempt"]][place] = float(row["score"])
        except (KeyError, TypeError, ValueError):
            continue  # such a row can't say whose score it is; its run is left out below for want of it
    wanted = [(emotion, layer) for emotion in stored.emotions for layer in stored.layers]
    changes = [
        [attempts["1"][place] - attempts["0"][place] for place in wanted]
        for attempts in scores.values()
        if all(place in attempts["0"] and place in attempts["1"] for place in wanted)
    ]
    return np.array(changes).reshape(len(changes), len(stored.emotions), len(stored.layers))


def _place(stored: Stored, emotion: str) -> int:
    if emotion not in stored.emotions:
        raise LabError(f"The file has no direction for {emotion!r}.", f"It has: {', '.join(stored.emotions)}.")
    return stored.emotions.index(emotion)
