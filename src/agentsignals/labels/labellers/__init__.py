"""Who judges: one protocol, and labellers by name.

`rules` needs nothing. The others load what they need when they are asked; a package that is missing is said with what
to install.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from agentsignals.errors import UsageError
from agentsignals.labels.answers import Outcome
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Task, Verdict
from agentsignals.model import Absent
from agentsignals.model.registry import Registry

Done = Callable[[Question, Outcome], None]
"""Told of each question as soon as something came of it; from any thread."""
DEFAULT_WINDOW_TOKENS = 32_768
"""Where neither the person nor the model says how much it can read."""


class Labeller(Protocol):
    """Judges questions."""

    name: str
    """As the labels say it."""
    model: str | None
    leaves: bool
    """Texts shown to it leave this machine."""
    keeps: bool
    """Answers cost time or money, so they are kept."""

    def version(self, task: Task) -> str:
        """Return the `prompt_hash` of its labels. UsageError for a task it can't do."""

    def window(self) -> int:
        """Tokens its model can read and write at once."""

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        """Asks all of them. Returns when something came of each; LabelError when there is no point in going on."""

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        """Return the verdict in a kept answer."""

    def run_figures(self) -> dict[str, Any]:
        """Figures of this run beside those of the answers: retries, waits, settings."""


class Kind(NamedTuple):
    """A kind of labeller, as its module declares it."""

    make: Callable[..., Labeller]
    """Gets what followed the kind's name and a colon, empty where nothing did, and the settings of the command line."""
    model: str = ""
    """Form of its argument, `MODEL[@URL]`; empty for a kind that takes none."""
    optional: bool = False
    """The argument is optional."""
    own_version: bool = False
    """Its labels carry a version of its own code or model (known without loading one) instead of the prompt's hash."""


LABELLERS = Registry[Kind]("labeller", __name__, "LABELLER", lambda unit: isinstance(unit, Kind))


def labeller(spec: str, **settings: Any) -> Labeller:
    """Return the labeller of a name: `rules`, `classifier[:FILE]`, `encoder[:FILE]`, `openai:MODEL[@URL]` or what is
    added.

    UsageError for what is none; LabelError when something it needs is missing. Settings it has no use for are ignored.
    """
    name, _, model = spec.partition(":")
    kind = LABELLERS.get(name)
    if bool(model) != bool(kind.model) and not (kind.optional and not model):
        form = f"{name}:{kind.model}" if kind.model else name
        raise UsageError(f"There is no labeller {spec!r}.", f"It is written {form}.")
    return kind.make(model, **settings)
