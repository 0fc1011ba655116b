"""Functions for a notebook: directions of texts, curves over layers and doses, heat maps, lens, probes, vectors.

All take the model that `load` gives. Layers are blocks, from 0; a state is what a block puts out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from agentsignals import private_files
from agentsignals.errors import LabError
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab import directions
from agentsignals_lab.directions import Array, DirectionSet
from agentsignals_lab.residual import EVERYWHERE, Add, Loading, Message, Piece, Positions, Prompt, load
from agentsignals_lab.residual.model import HookedModel
from agentsignals_lab.statistics import RANDOMS, p_random

__all__ = [
    "Loading",
    "Piece",
    "Probe",
    "chat",
    "control_vector",
    "directions_of",
    "dose_curve",
    "head_attribution",
    "heat_map",
    "layer_curve",
    "load",
    "logit_lens",
    "patched_head",
    "token_projections",
    "train_probe",
]

Outcome = Callable[[NDArray[np.floating[Any]]], NDArray[np.floating[Any]]]
"""Makes one number a prompt of log-probabilities of the next token: (prompts, vocabulary) to (prompts,)."""


def chat(model: HookedModel, *turns: str) -> Prompt:
    """Return a chat as a prompt: the user's turn, the assistant's, and so on, ready for an answer."""
    pieces = ((Piece("text", turn),) for turn in turns)
    return model.encode([Message("assistant" if n % 2 else "user", piece) for n, piece in enumerate(pieces)])


def directions_of(
    model: HookedModel,
    texts: Mapping[str, Sequence[str]],
    layers: Sequence[int],
    recipe: directions.Recipe = "contrast",
) -> DirectionSet:
    """Return a direction for each class of texts. `calibrate` the model first to leave attention sinks out."""
    states = {name: model.record(_prompts(model, rows), layers) for name, rows in texts.items()}
    neutral = states[next(iter(states))]
    return directions.made(recipe, states, neutral, layers, "notebook", model.card.name)


def layer_curve(
    model: HookedModel, high: Mapping[str, Sequence[str]], low: Mapping[str, Sequence[str]], shuffles: int = 200
) -> list[dict[str, Any]]:
    """Separate two classes of texts, given by topic, at every layer: a row a layer, with AUROC on topics that the
    direction was not learnt from, its interval over topics, and the 95th percentile of shuffled labels."""
    layers = range(model.card.layers)
    grouped = []
    for by_topic in (high, low):
        rows = [(topic, text) for topic, texts in by_topic.items() for text in texts]
        states = model.record(_prompts(model, [text for _, text in rows]), layers)
        grouped.append(directions.Grouped(states, [topic for topic, _ in rows]))
    found = directions.held_out(*grouped, shuffles=shuffles)
    fields = ("auroc", "low", "high", "null_high", "p", "p_best", "n")
    return [{"layer": n, **{f: getattr(one, f) for f in fields}} for n, one in enumerate(found)]


def dose_curve(  # noqa: PLR0913  (what a curve is of)
    model: HookedModel,
    prompts: Sequence[Prompt],
    direction: Array,
    layer: int,
    outcome: Outcome,
    doses: Sequence[float] = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0),
    positions: Positions = EVERYWHERE,
    randoms: int = RANDOMS,
) -> list[dict[str, float]]:
    """Steer along a direction at one layer: a row a dose (in median norms of the prompts' states), with the mean effect
    on the outcome, the same of random directions of equal length (mean and 95 % of them), and how many go as far."""
    norm = model.calibrate(prompts).median_norm[layer]
    plain = outcome(model.next_logprobs(prompts))
    drawn = directions.random_like(directions.unit(direction), randoms, seed=1)

    def effect(vector: Array, dose: float) -> float:
        steered = model.next_logprobs(prompts, [Add(layer, vector, dose * norm, positions)])
        return float((outcome(steered) - plain).mean())

    rows = []
    for dose in doses:
        value, chance = effect(direction, dose), [effect(vector, dose) for vector in drawn]
        low, high = np.quantile(chance, (0.025, 0.975))
        sign = 1.0 if value >= 0 else -1.0
        rows.append(
            {
                "dose": dose, "effect": value, "random_mean": float(np.mean(chance)), "random_low": float(low),
                "random_high": float(high), "p_random": p_random(sign * value, [sign * one for one in chance]),
            }
        )  # fmt: skip
    return rows


def token_projections(model: HookedModel, prompt: Prompt, of: DirectionSet, name: str) -> tuple[list[str], Array]:
    """Return a prompt's tokens as text and their coordinates along a direction, (layers, tokens): a heat map's rows."""
    (states,) = model.states([prompt], of.layers)
    vectors = directions.unit(of.vectors[of.names.index(name)])
    along = ((states - of.centre[:, None]) * vectors[:, None]).sum(axis=-1)
    return model.token_texts(prompt.tokens), np.asarray(along, np.float32)


class HeatMap(Struct, frozen=True):
    """Tokens with a value each, which a notebook shows as coloured text: red above 0, blue below."""

    words: tuple[str, ...]
    values: tuple[float, ...]

    def _repr_html_(self) -> str:
        most = max(map(abs, self.values), default=0.0) or 1.0
        spans = (
            f'<span title="{value:+.3g}" style="background:rgba({"220,60,40" if value > 0 else "40,90,220"},'
            f'{abs(value) / most:.2f})">{escape(word)}</span>'
            for word, value in zip(self.words, self.values, strict=True)
        )
        return f'<p style="white-space:pre-wrap">{"".join(spans)}</p>'


def heat_map(words: Sequence[str], values: Array) -> HeatMap:
    """Return a prompt's tokens with one layer of `token_projections`, or a probe's chances, for a notebook to show."""
    return HeatMap(tuple(words), tuple(map(float, values)))


def logit_lens(model: HookedModel, prompt: Prompt, layers: Sequence[int], top: int = 5) -> list[list[list[str]]]:
    """Return the `top` next tokens that each layer's states already give: by layer, then by token of the prompt."""
    (states,) = model.states([prompt], layers)
    found = []
    for of_layer in states:
        best = np.argsort(model.lens(of_layer), axis=-1)[:, ::-1][:, :top]
        found.append([model.token_texts(row.tolist()) for row in best])
    return found


def head_attribution(model: HookedModel, prompt: Prompt, other: Prompt, better: str, worse: str) -> Array:
    """Estimate by one gradient what each head's output in `other` would do in `prompt`, to the log-odds of the next
    word being `worse` and not `better`: (layers, heads). The prompts have as many tokens. Load with
    `Loading(packed=False)`; `patched_head` measures one head exactly."""
    return model.heads(prompt, other, worse, better).attributed()


def patched_head(  # noqa: PLR0913  (what is patched, and what is read)
    model: HookedModel, prompt: Prompt, other: Prompt, better: str, worse: str, layer: int, head: int
) -> float:
    """Measure the effect of one head's output in `other`, put into `prompt`, as `head_attribution` estimates it."""
    return model.heads(prompt, other, worse, better).patched(layer, head)


class Probe(Struct, frozen=True):
    """A logistic regression on the states of one layer."""

    layer: int
    weights: Array
    """(d,), on states less `centre`, over `scale`."""
    bias: float
    centre: Array
    scale: Array
    model: str

    def of_states(self, states: Array) -> Array:
        """Return the chance of the class for states (…, d)."""
        scores = ((states - self.centre) / self.scale) @ self.weights + self.bias
        return np.asarray(1 / (1 + np.exp(-scores)), np.float32)

    def tokens(self, model: HookedModel, prompt: Prompt) -> Array:
        """Return the chance at each token of a prompt."""
        (states,) = model.states([prompt], [self.layer])
        return self.of_states(states[0])

    def save(self, path: Path) -> None:
        """Write an .npz that any NumPy reads without pickles."""
        directions.write(self, path)

    @classmethod
    def read(cls, path: Path) -> Probe:
        """Read a file of `save`. LabError when it is none."""
        return directions.read_as(cls, path, "a probe", "Name a file that Probe.save wrote.")


def train_probe(
    model: HookedModel, positive: Sequence[str], negative: Sequence[str], layer: int, strength: float = 1.0
) -> Probe:
    """Train a probe on the mean states of texts of a class and of others. `strength`: of the ridge."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  (a second to load)

    states = model.record(_prompts(model, [*positive, *negative]), [layer])[:, 0].astype(np.float64)
    centre, scale = states.mean(axis=0), states.std(axis=0) + 1e-6
    labels = np.arange(len(states)) < len(positive)
    fitted = LogisticRegression(C=1 / strength, max_iter=1000).fit((states - centre) / scale, labels)
    arrays = (np.asarray(a, np.float32) for a in (fitted.coef_[0], centre, scale))
    weights, middle, spread = arrays
    return Probe(layer, weights, float(fitted.intercept_[0]), middle, spread, model.card.name)


def control_vector(of: DirectionSet, name: str, path: Path, hint: str = "") -> None:
    """Write a direction as a control vector for llama.cpp, in the form of repeng: GGUF, a tensor a layer, each of
    length 1, from layer 1 on. `hint`: the model's architecture. LabError when there is no such layer."""
    vectors = directions.unit(of.vectors[of.names.index(name)]).astype("<f4")
    tensors = [(f"direction.{layer}", v) for layer, v in zip(of.layers, vectors, strict=True) if layer > 0]
    if not tensors:
        raise LabError(f"{name} has no layer above 0.", "llama.cpp applies control vectors from layer 1 on.")

    def text(value: str) -> bytes:
        encoded = value.encode()
        return struct.pack("<Q", len(encoded)) + encoded

    uint32, string, float32, alignment = 4, 8, 0, 32
    fields = [("general.architecture", "controlvector"), ("controlvector.model_hint", hint)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields) + 1)
    for key, value in fields:
        head += text(key) + struct.pack("<I", string) + text(value)
    head += text("controlvector.layer_count") + struct.pack("<II", uint32, len(tensors))
    data = b""
    for key, vector in tensors:
        head += text(key) + struct.pack("<IQIQ", 1, len(vector), float32, len(data))
        data += vector.tobytes().ljust(-(-vector.nbytes // alignment) * alignment, b"\0")
    with private_files.open_file(path, "wb") as out:
        out.write(head.ljust(-(-len(head) // alignment) * alignment, b"\0") + data)


def _prompts(model: HookedModel, texts: Sequence[str]) -> list[Prompt]:
    return [model.encode_text([Piece("text", text)]) for text in texts]
