"""What a run would ask and cost, without asking anything: no server is contacted, not even for its window."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from agentsignals.labels.answers import Answers
from agentsignals.labels.labellers import Labeller
from agentsignals.labels.prompting import AS_IT_IS, Prompting
from agentsignals.labels.question import NOTES, NOTES_TOKENS, Asker, Question
from agentsignals.labels.run import EXAMPLE, versioned
from agentsignals.labels.selection import Selection
from agentsignals.labels.task import Task
from agentsignals.labels.units import NotAsked, Unit
from agentsignals.prices import cost_usd
from agentsignals.store import Store, label_files
from agentsignals.words.text import estimate_tokens

ANSWER_TOKENS = {"turn": 40, "session": 120, "repository": 60, NOTES: 400}
"""What an answer usually takes: a label and a sentence, scores and a few, notes of 300 words."""


class Estimate(Struct, kw_only=True):
    """What is to be done. Tokens are characters / 4; a model that thinks before it answers uses more."""

    task: str
    labeller: str
    units: int = 0
    """Messages or sessions to judge."""
    not_asked: dict[str, int] = field(default_factory=dict)
    long: int = 0
    """Those that don't fit the window, and need notes first."""
    kept: int = 0
    """Questions answered by an earlier run."""
    repeated: int = 0
    """Questions that are the same as another."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    window: int = 0


def estimate(  # noqa: PLR0913  (as `run`)
    store: Store,
    task: Task,
    by: Labeller,
    selection: Selection,
    window: int,
    prompting: Prompting = AS_IT_IS,
) -> Estimate:
    """What `run` would ask. `window`: tokens of the labeller's model."""
    versioned(task, by, prompting)
    name = by.name + prompting.suffix
    totals = Estimate(task=task.name, labeller=name, window=window)
    folder = store.folder / label_files.FOLDER
    answers = Answers(folder) if by.keeps and folder.is_dir() else None
    asker = Asker(task, name, prompting)
    seen: set[str] = set()
    for unit in selection.units(store, task, window):
        if isinstance(unit, NotAsked) or prompting.shows(unit):
            why = unit.reason if isinstance(unit, NotAsked) else EXAMPLE
            totals.not_asked[why] = totals.not_asked.get(why, 0) + 1
            continue
        totals.units += 1
        totals.long += len(unit.parts) > 1
        for question in _questions(asker, unit):
            kept = answers.get(question.key) if answers else None
            if question.key in seen:
                totals.repeated += 1
            elif kept is not None and kept.text is not None:
                totals.kept += 1
            elif by.model is not None:
                totals.calls += 1
                totals.input_tokens += estimate_tokens(len(question.instructions) + len(question.shown))
                totals.output_tokens += ANSWER_TOKENS[NOTES if question.task == NOTES else task.level]
            seen.add(question.key)
    if answers is not None:
        answers.close()
    if by.model is not None:
        totals.cost_usd = cost_usd(by.model, totals.input_tokens, totals.output_tokens)
    return totals


def _questions(asker: Asker, unit: Unit) -> Iterator[Question]:
    """The questions about a unit; notes that are not there yet are taken to be as long as they may be."""
    yield from asker.notes(unit)
    yield from asker.questions(unit, ["n" * 4 * NOTES_TOKENS] * (len(unit.parts) - 1))
