"""Which sentence decides? Each is left out, replaced, hidden from later tokens, and watched for who attends to it.

After Thought Anchors (arXiv 2506.19143), with feedback sentences and attempts as units and the bad outcome as what they
decide. Position explains much of such scores, so it is taken out of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, get_args

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from agentsignals_lab import directions
from agentsignals_lab.experiments import Progress, replacements
from agentsignals_lab.experiments.answering import read
from agentsignals_lab.experiments.chosen_setting import setting
from agentsignals_lab.experiments.learning import calibrated, learnt
from agentsignals_lab.experiments.receivers import Stretch, kurtosis, vertical_scores, without_position
from agentsignals_lab.experiments.setting import Scene, Setting, SettingConfig, chosen_layers
from agentsignals_lab.residual.interface import Message, Positions, ResidualModel, Role, Sampling, Suppress
from agentsignals_lab.runs import Row, Run, seed_of


class Config(Struct, frozen=True, kw_only=True):
    """`samples`: answers drawn with and without each unit; 0: the outcome is read off the model, without drawing."""

    setting: SettingConfig = SettingConfig(tasks=20)
    samples: int = 0
    max_new_tokens: int = 360
    temperature: float = 1.0
    replacements: Annotated[int, Meta(ge=0)] = 8
    """Drawn for each unit (`replacements.drawn`)."""
    cosine: Annotated[float, Meta(ge=-1, le=1)] | None = None
    """A replacement counts where its states' cosine with the unit's is below; None: below the run's median."""
    heads: int = 16
    """Receiver heads, the most peaked ones."""
    ignore: int = 4
    """The nearest later units, which are not counted among those that attend."""


class AnchorRow(Row, frozen=True, kw_only=True):
    """One unit of one prompt."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "unit")
    task: str
    unit: str
    """Its label."""
    place: float
    """0: the first unit, 1: the last."""
    removed: float
    """The outcome with it less that without it."""
    removed_sampled: float | None
    """Effect on the share of drawn answers with hardcoded cases; None where none were drawn."""
    replaced: float | None
    """The outcome less the mean of that with replacements that differ in meaning; None where none does."""
    kept: int
    copies: int
    empty: int
    alike: int
    unclear: int
    """Replacements that differ; and those left out: word for word the unit, without a word, too much like it in
    meaning, and of unknown meaning (`replacements.Counted`)."""
    hidden: float
    """The outcome less that when no later token attends to it."""
    later: float
    """Mean change, either way, of the log probability of a later token when it is hidden, in nats."""
    received: float | None
    """Mean attention from later units, in the receiver heads; None where too few units follow."""
    step: float
    """Projection of its tokens on the high-against-low direction of texts, less that of the tokens before, in median
    norms at the middle layer."""
    removed_beyond_place: float
    hidden_beyond_place: float
    """Rest when the place is regressed out over all units."""


_COUNTS = ("kept", "copies", "empty", "alike", "unclear")


class MeasuredUnit(Struct, kw_only=True):
    """Measures of a unit before places are taken out."""

    task: str
    unit: str
    place: float
    removed: float
    hidden: float
    later: float
    step: float
    scores: NDArray[np.float64]
    """(layers, heads)"""
    removed_sampled: float | None = None
    drawn: replacements.Drawn


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Table `anchors`; summaries `receiver_heads`, the most peaked heads as (layer, head, kurtosis), and
    `counterfactuals`: the limit of the cosine, how many count, how many were left out for each reason."""
    at = setting(model, config.setting)
    calibration, layers = calibrated(at), chosen_layers(model, ())
    middle = layers[len(layers) // 2]
    along = learnt(at, "stories", [middle], ())
    vector, norm = directions.unit(along.vectors[0, 0]), calibration.median_norm[middle]
    scenes = at.anchored()
    all_units: list[MeasuredUnit] = []
    peaks = []
    for number, (scene, states) in enumerate(
        zip(scenes, model.states([scene.prompt for scene in scenes], [middle]), strict=True)
    ):
        coordinates = (states[0] @ vector) / norm
        units = list(_units(at, scene, config, coordinates, middle))
        peaks.append(kurtosis(np.stack([unit.scores for unit in units], axis=-1)))
        all_units += units
        progress(number + 1, len(scenes))
    heads = _receivers(np.stack(peaks), config.heads)
    alike = replacements.cosines([unit.drawn for unit in all_units])
    below = config.cosine if config.cosine is not None else replacements.limit(alike)
    counted = [replacements.counted(unit.drawn, row, below) for unit, row in zip(all_units, alike, strict=True)]
    run.table("anchors", AnchorRow).add(_rows(all_units, heads, counted))
    run.write_summary("receiver_heads", heads)
    sums = {name: sum(getattr(row, name) for row in counted) for name in _COUNTS}
    run.write_summary("counterfactuals", {"cosine_below": below, **sums})


def _units(
    at: Setting, scene: Scene, config: Config, coordinates: NDArray[np.floating], layer: int
) -> Iterator[MeasuredUnit]:
    labels = [piece.label for message in scene.chat for piece in message.pieces if piece.label]
    spans = {span.label: (span.start, span.end) for span in scene.prompt.spans if span.label in labels}
    labels = [label for label in labels if label in spans]
    stretches: list[Stretch] = [spans[label] for label in labels]
    answer = (max(end for _, end in stretches), len(scene.prompt.tokens))
    attention = at.model.attention(scene.prompt)
    scores = vertical_scores(attention, [*stretches, answer], config.ignore)
    plain, logprobs = at.outcome([scene])[0], at.model.logprobs_of([scene.prompt])[0]
    for number, (label, (start, end)) in enumerate(zip(labels, stretches, strict=True)):
        hides = [Suppress(Positions("roles", roles=get_args(Role), labels=(label,), skip_sinks=False))]
        without = at.scene(scene.task, scene.tone, without_unit(scene.chat, label))
        changed = np.abs(at.model.logprobs_of([scene.prompt], hides)[0][end:] - logprobs[end:])
        before = float(coordinates[:start].mean()) if start else 0.0
        yield MeasuredUnit(
            task=scene.task.key,
            unit=label,
            place=number / max(1, len(labels) - 1),
            removed=float(plain - at.outcome([without])[0]),
            hidden=float(plain - at.outcome([scene], hides)[0]),
            later=float(changed.mean()),
            step=float(coordinates[start:end].mean()) - before,
            scores=scores[:, :, number],
            removed_sampled=_share(at, scene, config) - _share(at, without, config) if config.samples else None,
            drawn=replacements.drawn(at, scene, label, layer, _sampling(scene, config, config.replacements, label)),
        )


def without_unit(chat: Sequence[Message], label: str) -> list[Message]:
    """The chat without the pieces of that label; a message that has no others stays, empty."""
    return [Message(m.speaker, tuple(piece for piece in m.pieces if piece.label != label)) for m in chat]


def _share(at: Setting, scene: Scene, config: Config) -> float:
    """Return the share of drawn answers with hardcoded cases, with equal random numbers with and without a unit."""
    answers = at.answers([scene] * config.samples, _sampling(scene, config, config.samples))
    return sum(read(scene, answer.text).hardcoded for answer in answers) / config.samples


def _sampling(scene: Scene, config: Config, count: int, *of: str) -> list[Sampling]:
    return [
        Sampling(config.max_new_tokens, config.temperature, seed=seed_of(config.setting.seed, scene.task.key, *of, n))
        for n in range(count)
    ]


def _receivers(peaks: NDArray[np.float64], count: int) -> list[tuple[int, int, float]]:
    """Heads by mean kurtosis over prompts, the highest first. `peaks`: (prompts, layers, heads)."""
    defined = ~np.isnan(peaks)
    mean = np.where(defined, peaks, 0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    mean[~defined.any(axis=0)] = -np.inf
    order = np.argsort(mean, axis=None)[::-1][:count]
    heads = [(int(at // mean.shape[1]), int(at % mean.shape[1]), float(mean.flat[at])) for at in order]
    return [head for head in heads if np.isfinite(head[2])]


def _rows(
    units: Sequence[MeasuredUnit],
    heads: Sequence[tuple[int, int, float]],
    counted: Sequence[replacements.Counted],
) -> Iterator[AnchorRow]:
    places = [unit.place for unit in units]
    removed = without_position([unit.removed for unit in units], places)
    hidden = without_position([unit.hidden for unit in units], places)
    for unit, counts, beyond, hides in zip(units, counted, removed, hidden, strict=True):
        got = [float(unit.scores[layer, head]) for layer, head, _ in heads]
        yield AnchorRow(
            task=unit.task,
            unit=unit.unit,
            place=unit.place,
            removed=unit.removed,
            removed_sampled=unit.removed_sampled,
            replaced=counts.change,
            **{name: getattr(counts, name) for name in _COUNTS},
            hidden=unit.hidden,
            later=unit.later,
            received=float(np.mean(got)) if got and not np.isnan(got).any() else None,
            step=unit.step,
            removed_beyond_place=float(beyond),
            hidden_beyond_place=float(hides),
        )
