"""A classifier's file, and what it makes of features: logistic regression, weighed without any package."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from math import exp, sqrt
from pathlib import Path

import msgspec
from msgspec import Struct, field

from agentsignals.errors import SourceError
from agentsignals.labels.classifier.features import TEXT_KINDS, VERSION
from agentsignals.labels.task import mark
from agentsignals.model import CLASSIFIER, ENCODER
from agentsignals.stats.prevalence import Corrected, OfClass, corrected

SHIPPED = Path(__file__).parent
"""Where the models of this package lie: `TASK.classifier.json` and `TASK.encoder.json`."""
MOST_BYTES = 16 << 20


class HeldOut(Struct, frozen=True, kw_only=True):
    """What a model was found to be worth on projects that it was not made from."""

    n: int
    sessions: int
    projects: int
    kappa: float | None
    low: float | None = None
    high: float | None = None
    kappa_without_largest: float | None = None
    """Over all projects but the one with the most rows, each left out."""
    random: dict[str, OfClass] = field(default_factory=dict)
    """By class, of the rows drawn at random from all projects but the largest, which were judged by models made from
    nearly all rows, as others' projects are: what shares are corrected by. Empty where none is known to be so drawn."""


class Model(Struct, frozen=True, kw_only=True, dict=True):
    """Weights, and what belongs to them."""

    task: str
    kind: str
    """Whose it is: `classifier`, or `encoder` where a vector is among the features."""
    features_version: int
    classes: list[str]
    intercept: list[float]
    weights: dict[str, list[float]]
    """By feature: what its value is multiplied by (of words their rarity, `idf`), then a weight for each class."""
    text_weight: float = 1.0
    uses_answer: bool = False
    """Whether the end of the answer before a message is looked at."""
    trained_on: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each training file, by its name."""
    rows: int = 0
    sessions: list[str] = field(default_factory=list)
    """Marks of the sessions whose messages it was made from (`session_mark`): it can't be judged by these."""
    annotators: list[str] = field(default_factory=list)
    strength: float = 0.0
    """The inverse strength of the ridge."""
    held_out: HeldOut | None = None

    @cached_property
    def seen(self) -> frozenset[str]:
        """The same as `sessions`."""
        return frozenset(self.sessions)

    @cached_property
    def version(self) -> str:
        """Names exactly these weights, training files and figures."""
        return mark(msgspec.json.encode(self).decode())

    @property
    def measured(self) -> str:
        """What it is worth, in a line."""
        held_out = self.held_out
        if held_out is None or held_out.kappa is None:
            return "never held against projects that it was not made from"
        interval = "" if held_out.low is None else f" ({held_out.low:.2f} to {held_out.high:.2f})"
        return (
            f"on projects left out kappa {held_out.kappa:.2f}{interval} with {', '.join(self.annotators) or 'its gold'}"
            f" (n {held_out.n}, {held_out.sessions} sessions, {held_out.projects} projects)"
        )

    def has_seen(self, session_id: str) -> bool:
        """Whether messages of this session were among those it was made from."""
        return session_mark(session_id) in self.seen

    def probabilities(self, counted: dict[str, float]) -> list[float]:
        """Of each class, given a message's features; those it does not know are passed over."""
        weights = self.weights
        weighed = [(value * row[0], row, name) for name, value in counted.items() if (row := weights.get(name))]
        texts = [value for value, _, name in weighed if name.partition(":")[0] in TEXT_KINDS]
        length = sqrt(sum(value * value for value in texts)) or 1.0
        scores = list(self.intercept)
        for value, row, name in weighed:
            scale = value * self.text_weight / length if name.partition(":")[0] in TEXT_KINDS else value
            for n, weight in enumerate(row[1:]):
                scores[n] += scale * weight
        highest = max(scores)
        parts = [exp(score - highest) for score in scores]
        return [part / sum(parts) for part in parts]


def session_mark(session_id: str) -> str:
    """What stands for a session in a model's file."""
    return hashlib.blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=6, person=b"trained").hexdigest()


def read(path: Path | str) -> Model:
    """The model in a file. SourceError where there is none, or it was made with other features."""
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise SourceError(f"{file} is larger than {MOST_BYTES >> 20} MB.", "Name a file that training wrote.")
        model = msgspec.json.decode(file.read_bytes(), type=Model)
    except OSError as problem:
        raise SourceError(f"{file} can't be read: {problem.strerror}.", "Name a classifier's file.") from problem
    except msgspec.DecodeError as problem:
        raise SourceError(f"{file} is no classifier: {problem}.", "Name a file that training wrote.") from problem
    n = len(model.classes)
    if n < 2 or len(model.intercept) != n or any(len(row) != n + 1 for row in model.weights.values()):
        raise SourceError(f"{file} has not one weight for each class.", "Train it again.")
    if model.features_version != VERSION:
        raise SourceError(
            f"{file} counts features of version {model.features_version}, this package {VERSION}.", "Train it again."
        )
    return model


def shipped(task: str, kind: str = CLASSIFIER) -> Model | None:
    """The model of a kind that this package has for a task; None where it has none."""
    return read(path) if (path := SHIPPED / f"{task}.{kind}.json").is_file() else None


def shipped_tasks(kind: str = CLASSIFIER) -> list[str]:
    """The tasks that there are models of a kind for."""
    return sorted(path.name.partition(".")[0] for path in SHIPPED.glob(f"*.{kind}.json"))


def classifier_of(labeller: str, task: str) -> Model | None:
    """The model behind a labeller's name; None where it is no classifier. SourceError where its file is gone, since
    what it was made from is not known then."""
    kind, _, file = labeller.partition(":")
    if kind not in (CLASSIFIER, ENCODER):
        return None
    return read(file) if file else shipped(task, kind)


def corrected_shares(model: Model, named: Mapping[str, int]) -> dict[str, Corrected]:
    """The share of each class behind how often a model named it, by what it was found to be worth on random rows of
    projects that it was not made from."""
    n = sum(named.values())
    by_class = model.held_out.random if model.held_out is not None else {}
    return {
        name: corrected(
            named.get(name, 0), n, hits=of.hits, true=of.true, false_alarms=of.false_alarms, others=of.others
        )
        for name, of in (by_class if n else {}).items()
    }
