"""A small classifier of single messages: its features, and a linear model that needs no package.

`labels.training` makes models and measures them on projects left out of training (docs/labels.md#classifier).
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, cached_property
from itertools import pairwise, repeat
from math import exp, fsum, log1p, sqrt
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from agentsignals.errors import SourceError
from agentsignals.model import CLASSIFIER, ENCODER, Turn
from agentsignals.model.lazy import deferred_pattern
from agentsignals.words.lexicon import RULES_BY_TASK

# -- Features are named `kind:what`: `w:` one word or two in a row, `b:` the first ones, `e:` the last, `c:` three to
# five letters, `p:` words of the answer before, `h:` a property of the message's form, `r:` a verdict of the rules,
# `n:` the logarithm of a class's probability by the fine-tuned encoder

VERSION = 2
"""Raise it when a feature would change: a model knows which it was made with."""
MOST_WORDS = 200
"""Later words of a message are mostly pasted."""
ANSWER_CHARS = 400
"""Characters taken from the end of the answer before the message."""
TEXT_KINDS = ("w", "b", "e", "c", "p")
"""Kinds whose counts share one length of 1 in a message; the others stand as they are."""
_BEGINNING_WORDS = 3
_LETTERS = (3, 4, 5)
_FEW_WORDS, _MANY_WORDS = 4, 60
_FENCE = deferred_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
_URL = deferred_pattern(r"https?://\S{1,500}")
_PATH = deferred_pattern(
    r"@?[\w.\-~]{0,100}/[\w./\-]{1,300}|\b[\w\-]{1,100}\.(?:go|py|tsx?|jsx?|md|json|ya?ml|sh|rs|toml|txt)\b"
)
_DIGITS = deferred_pattern(r"\d+")
_WORD = deferred_pattern(r"[^\W\d_][\w']{0,40}|<(?:code|url|path)>|0|[?!.,:;]{1,3}|[^\s\w]")
_ITEM = deferred_pattern(r"(?m)^[ \t]{0,20}(?:[-*]|\d{1,3}[.)])[ \t]")
_CAPITALS = deferred_pattern(r"\b[A-Z]{3,40}\b")
_ERROR = deferred_pattern(r"(?i)error|fail|exception|traceback|panic")
_FIRST_EMOJI = 0x1F000


def words(text: str) -> list[str]:
    """The words and marks of a text in lower case; code, links, paths and numbers each as one sign for all."""
    plain = _PATH.sub(" <path> ", _URL.sub(" <url> ", _FENCE.sub(" <code> ", text)))
    return _WORD.findall(_DIGITS.sub("0", plain).lower().replace("’", "'"))


def features(turn: Turn, answer_end: str | None) -> dict[str, float]:
    """The features of a message. `answer_end`: the end of what the agent wrote before it; None where that is not
    to be looked at (a task that judges the message alone)."""
    here = words(turn.text)[:MOST_WORDS]
    pairs = [f"{a} {b}" for a, b in pairwise(here)]
    line = f" {' '.join(here)} "
    letters = [f"c:{line[n : n + size]}" for size in _LETTERS for n in range(len(line) - size + 1)]
    beginnings = [f"b:{' '.join(here[:n])}" for n in range(1, min(_BEGINNING_WORDS, len(here)) + 1)]
    counted = dict.fromkeys(
        [*(f"w:{word}" for word in (*here, *pairs)), *beginnings, *(f"e:{word}" for word in here[-1:]), *letters], 1.0
    )
    if answer_end is not None:
        counted |= _of_answer(" ".join(answer_end.split())[-ANSWER_CHARS:], here, turn.text)
    text = turn.text
    form = {
        "length": min(log1p(len(text)) / 4, 2.0),
        "short": float(len(here) < _FEW_WORDS),
        "long": float(len(here) > _MANY_WORDS),
        "lines": min(text.count("\n"), 10) / 5,
        "question marks": min(text.count("?"), 3) / 2,
        "ends in a question mark": float(text.rstrip().endswith("?")),
        "exclamation mark": float("!" in text),
        "dots": float("..." in text or "…" in text),
        "code": float("```" in text),
        "emoji": float(any(ord(char) > _FIRST_EMOJI for char in text)),
        "items": float(len(_ITEM.findall(text)) > 1),
        "capitals": float(bool(_CAPITALS.search(text))),
        "error": float(bool(_ERROR.search(text))),
    }
    return (
        counted
        | {f"h:{name}": value for name, value in form.items() if value}
        | {f"r:{task}:{rule(turn).value}": 1.0 for task, rule in RULES_BY_TASK.items()}
    )


_ASKS = deferred_pattern(
    r"\?|\b(?:let me know|tell me|which (?:one|option|of)|would you (?:like|prefer)|do you want|want me to|shall i"
    r"|should i|if you want|say the word|reply with|pick|choose|your call|prefer)\b"
)
"""The agent leaves something to the person."""
_OPTION = deferred_pattern(
    r"(?m)(?:^|[\s(*\[|])(?:option )?([a-h]|\d{1,2})[)\].:*]|\boption ([a-h]|\d{1,2})\b|\[([a-z]{1,3})\]"
)
"""The sign of an option in the agent's list."""
_CHOICE = deferred_pattern(
    r"\A\W{0,3}(?:(?:yes|ok|okay|sure|go|let'?s|do|take|with|use|i|prefer|choose|pick|the|please|both)[ ,]{1,2}){0,4}"
    r"(?:option |number |#)?\(?([a-h]|\d{1,2}|[a-z]{1,3})\)?(?:\W|\Z)"
)
_ORDINAL = deferred_pattern(
    r"\b(?:(?:the )?(?:first|second|third|last|former|latter)(?: (?:one|option))?|both|neither|all of them)\b"
)
_MOST_CHOICE_WORDS = 14


def chooses_option(text: str, answer_end: str) -> bool:
    """Return whether a message takes one of the options that the agent's answer ends in."""
    end, low = answer_end[-ANSWER_CHARS:].lower(), text.strip().lower()
    if not _ASKS.search(end) or len(low.split()) > _MOST_CHOICE_WORDS:
        return False
    options = {next(filter(None, found)) for found in _OPTION.findall(end)}
    chosen = _CHOICE.match(low)
    if options and ((chosen and chosen[1] in options) or _ORDINAL.search(low)):
        return True
    long = {word for word in _WORD.findall(low) if len(word) > 3}
    asked = set(_WORD.findall(" ".join(re.split(r"(?<=[.!?])\s", end)[-3:])))
    return bool(long) and " or " in end and len(long & asked) >= _TAKEN_UP * len(long)


_TAKEN_UP = 0.75
"""Share of a message's longer words that stand in the agent's last sentences where it takes up one of them."""


def _of_answer(end: str, here: list[str], text: str) -> dict[str, float]:
    """Return the features of the agent's answer before a message: its words, and whether it asked something."""
    before = words(end)
    if not before:
        return {"h:no answer before": 1.0}
    counted = dict.fromkeys((f"p:{word}" for word in before), 1.0)
    if "?" in re.split(r"(?<=[.!?])\s", end)[-1]:
        counted["h:answers a question"] = 1.0
        counted |= {"h:short answer to a question": 1.0} if len(here) <= _FEW_WORDS else {}
    if _ASKS.search(end.lower()):
        counted["h:agent leaves something to the person"] = 1.0
    if chooses_option(text, end):
        counted["h:chooses an option"] = 1.0
    long = {word for word in here if len(word) > 3}
    if shared := long & set(before):
        counted["h:words of the answer"] = len(shared) / len(long)
    return counted


# -- The linear model

SHIPPED = Path(__file__).parent
MOST_BYTES = 16 << 20


class Calibration(Struct, frozen=True, kw_only=True):
    """Turns scores into probabilities whose mean is a class's share: p ~ exp(slope * score + offset). Fitted to random
    rows of projects left out."""

    slope: float
    offsets: list[float]
    share_errors: list[float]
    """By class: standard deviation, over projects left out, of the mean probability's error beyond sampling error."""
    rows: int
    projects: int


class ClassCounts(Struct, frozen=True, kw_only=True):
    """Rows of one class: how many there are, how many the model named so, and how many of these are right."""

    true: int
    named: int
    hits: int


class Others(Struct, frozen=True, kw_only=True):
    """Scores without the largest project. The interval is over projects."""

    n: int
    kappa: float
    low: float | None = None
    high: float | None = None


class HeldOut(Struct, frozen=True, kw_only=True):
    """Scores of a model on projects that were left out of its training. The interval is over sessions."""

    n: int
    sessions: int
    projects: int
    kappa: float | None
    low: float | None = None
    high: float | None = None
    others: Others | None = None
    """Over all projects but the one with the most rows: trained as for a project of one's own."""
    classes: dict[str, ClassCounts] = field(default_factory=dict)


class Model(Struct, frozen=True, kw_only=True, dict=True):
    """Weights, and what belongs to them."""

    task: str
    kind: str
    """Its labeller: `classifier`, or `encoder` where the judgement of a net is among the features."""
    features_version: int
    classes: list[str]
    intercept: list[float]
    weights: dict[str, list[float]]
    """By feature: the factor of its value (of words their rarity, `idf`), then a weight for each class."""
    text_weight: float = 1.0
    uses_answer: bool = False
    """The features include the end of the answer before the message."""
    net: str | UnsetType = UNSET
    """SHA-256 of the file of the fine-tuned encoder beside it; unset for a `classifier`."""
    trained_on: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each training file, by its name."""
    rows: int = 0
    sessions: list[str] = field(default_factory=list)
    """Marks of the sessions it was trained on (`session_mark`): it can't be judged by these."""
    annotators: list[str] = field(default_factory=list)
    strength: float = 0.0
    held_out: HeldOut | None = None
    calibration: Calibration | None = None

    @cached_property
    def seen(self) -> frozenset[str]:
        return frozenset(self.sessions)

    @cached_property
    def _products(self) -> dict[str, tuple[bool, tuple[float, ...]]]:
        """By feature that a message had: whether it is of `TEXT_KINDS`, the square of its factor, and its factor times
        the weight of each class."""
        return {}

    @cached_property
    def version(self) -> str:
        """Name exactly these weights, training files and figures."""
        return hashlib.blake2b(msgspec.json.encode(self), digest_size=6).hexdigest()

    @property
    def measured(self) -> str:
        held_out = self.held_out
        if held_out is None or held_out.kappa is None:
            return "never measured on projects left out of its training"
        interval = "" if held_out.low is None else f" [{held_out.low:.2f}, {held_out.high:.2f}]"
        return (
            f"kappa {held_out.kappa:.2f}{interval} on {held_out.n:,} messages of {held_out.projects} projects,"
            f" each left out of training; read by {', '.join(self.annotators) or 'whoever made its gold'}"
        )

    def has_seen(self, session_id: str) -> bool:
        return session_mark(session_id) in self.seen

    def scores(self, counted: dict[str, float]) -> list[float]:
        """Return a score for each class from a message's features; unknown features are ignored."""
        texts: list[tuple[float, ...]] = []
        others: list[tuple[float, ...]] = []
        for name, value in counted.items():
            known = self._products.get(name)
            if known is None:
                if (row := self.weights.get(name)) is None:
                    continue
                is_text = name.partition(":")[0] in TEXT_KINDS
                factor = row[0] * (self.text_weight if is_text else 1.0)
                known = self._products[name] = is_text, (row[0] ** 2, *[factor * weight for weight in row[1:]])
            is_text, products = known
            if value != 1:
                products = value**2 * products[0], *[value * product for product in products[1:]]
            (texts if is_text else others).append(products)
        square, *sums = map(fsum, zip(*texts, strict=True)) if texts else repeat(0.0, 1 + len(self.intercept))
        length = sqrt(square) or 1.0
        of_texts = [of_class / length for of_class in sums]
        return list(map(fsum, zip(self.intercept, of_texts, *(of[1:] for of in others), strict=True)))

    def probabilities(self, scores: list[float]) -> list[float]:
        """Return the calibrated probability of each class; without a calibration, the regression's own."""
        calibration = self.calibration
        if calibration is not None:
            scores = [
                calibration.slope * score + offset for score, offset in zip(scores, calibration.offsets, strict=True)
            ]
        return softmax(scores)


def softmax(scores: list[float]) -> list[float]:
    """Return the probabilities of a logistic regression's scores."""
    highest = max(scores)
    parts = [exp(score - highest) for score in scores]
    return [part / sum(parts) for part in parts]


class Judgement(NamedTuple):
    value: str
    probabilities: dict[str, float]


def judged(model: Model, counted: dict[str, float]) -> Judgement:
    """Return a model's judgement of a message by its features."""
    scores = model.scores(counted)
    chances = [round(chance, 4) for chance in model.probabilities(scores)]
    return Judgement(model.classes[scores.index(max(scores))], dict(zip(model.classes, chances, strict=True)))


def session_mark(session_id: str) -> str:
    return hashlib.blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=6, person=b"trained").hexdigest()


def read(path: Path | str) -> Model:
    """Read a model. SourceError where there is none, or it was made with other features."""
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise SourceError(f"{file} is larger than {MOST_BYTES >> 20} MB.", "Name the file of a trained classifier.")
        model = msgspec.json.decode(file.read_bytes(), type=Model)
    except OSError as problem:
        raise SourceError(
            f"{file} can't be read: {problem.strerror}.", "Name the file of a trained classifier."
        ) from problem
    except msgspec.DecodeError as problem:
        raise SourceError(f"{file} is no classifier: {problem}.", "Name the file of a trained classifier.") from problem
    n = len(model.classes)
    if (model.kind == ENCODER) != (model.net is not UNSET):
        raise SourceError(f"The model {file} has no fine-tuned encoder.", "Train it again with --encoder.")
    if n < 2 or len(model.intercept) != n or any(len(row) != n + 1 for row in model.weights.values()):
        raise SourceError(f"The classifier file {file} lacks weights for a class.", "Train the classifier again.")
    if model.features_version != VERSION:
        raise SourceError(
            f"The classifier {file} is of version {model.features_version}, not {VERSION}.", "Train it again."
        )
    return model


@cache
def shipped(task: str, kind: str = CLASSIFIER) -> Model | None:
    return read(path) if (path := SHIPPED / f"{task}.{kind}.json").is_file() else None


def shipped_tasks(kind: str = CLASSIFIER) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in SHIPPED.glob(f"*.{kind}.json"))


def classifier_of(labeller: str, task: str) -> Model | None:
    """Return the model behind a labeller's name; None where it is no classifier. SourceError where its file is gone:
    its training sessions are unknown then."""
    kind, _, file = labeller.partition(":")
    if kind not in (CLASSIFIER, ENCODER):
        return None
    return read(file) if file else shipped(task, kind)
