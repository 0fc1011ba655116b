"""The questions that a language model is asked, and the examples it is shown before them.

The examples enter the name and the version of the labels: each set of them is a labeller of its own.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentsignals.errors import UsageError
from agentsignals.labels import gold
from agentsignals.labels.gold import GoldRow
from agentsignals.labels.tasks import Task, Unfit, Verdict, mark, prompt, read_as, schema_of, sections
from agentsignals.labels.units import Mask, Unit, plain, shortened
from agentsignals.model import ENCODER, Absent, Turn
from agentsignals.redaction import redacted
from agentsignals.redaction.values import without_pseudonyms
from agentsignals.stats.intervals import SEED

PER_CLASS = 2
"""Examples of each class."""
LEAST_CHARS = 20
"""A shorter message recurs ("go on"), and all that are like an example are not judged."""
MOST_CHARS = 1_500
"""Characters of an example, and of the text before it."""
_INTRODUCTION = (
    "Examples that were judged before, each part between marks. They show what the classes mean. They are material,"
    " too: judge none of them."
)


class Example(Struct, frozen=True, kw_only=True):
    session_id: str
    turn: int
    """From 0."""
    text: str
    label: str
    before: str | None = None
    reason: str | None = None


class Prompting(Struct, frozen=True, dict=True, kw_only=True):
    """The settings of one run."""

    examples: tuple[Example, ...] = ()

    @property
    def suffix(self) -> str:
        """Suffix of the labels' name and version; empty for the plain prompt."""
        shown = [(_line(e.before or ""), _line(e.text), e.label, _line(e.reason or "")) for e in self.examples]
        return f"+examples-{mark(json.dumps(shown))}" if shown else ""

    def instructions(self, task: Task) -> str:
        """The task's prompt, with the examples before what it says of the answer's form."""
        if not self.examples:
            return task.prompt
        about, _, form = task.prompt.rpartition("\n\n")
        parts = []
        for n, e in enumerate(self.examples, 1):
            named = {"before-": e.before, "": e.text, "label-of-": e.label, "reason-of-": e.reason}
            parts += [(f"{name}example-{n}", text) for name, text in named.items() if text]
        return "\n\n".join([about, _INTRODUCTION, sections(parts), form])

    def shows(self, unit: Unit) -> bool:
        """Tell whether a message is an example or says the same: the model has seen its label."""
        if unit.message is None or not self.examples:
            return False
        return not self._seen.isdisjoint(((unit.session_id, unit.turn), _line(unit.message.text)))

    @cached_property
    def _seen(self) -> frozenset[object]:
        return frozenset(seen for e in self.examples for seen in ((e.session_id, e.turn), _line(e.text)))


AS_IT_IS = Prompting()
"""The task's prompt and nothing else."""


def prompting(task: Task, examples: Path | str | None, column: str | None = None, mask: Mask = plain) -> Prompting:
    """The settings as a person gives them. `examples`: a gold file, which labels in `column`."""
    return Prompting(examples=examples_of(task, gold.read(examples, task, column).rows, mask) if examples else ())


def examples_of(task: Task, rows: list[GoldRow], mask: Mask) -> tuple[Example, ...]:
    """A few of each class, those that their annotator was sure of, drawn by a fixed seed: no class stands last, which
    models lean to. UsageError where the file has none."""
    if task.level != "turn" or not task.values:
        raise UsageError(f"The task {task.name} takes no --examples.", "Leave --examples out.")
    fit = [row for row in rows if not row.unsure and row.turn and len((row.text or "").strip()) >= LEAST_CHARS]
    chance = random.Random(SEED)  # noqa: S311  (draws, no secret)
    chance.shuffle(fit)
    drawn = [row for name in task.values for row in [row for row in fit if row.label == name][:PER_CLASS]]
    if not drawn:
        raise UsageError(
            "The --examples file has no labelled message that could be an example.",
            f"Rows need a text of at least {LEAST_CHARS} characters, a turn and a label.",
        )
    chance.shuffle(drawn)
    return tuple(
        Example(
            session_id=row.session_id,
            turn=(row.turn or 1) - 1,
            text=shortened(mask(row.text or ""), MOST_CHARS),
            label=row.label or "",
            before=mask(row.before)[-MOST_CHARS:] if row.before and task.shows == "exchange" else None,
            reason=shortened(mask(row.reason), MOST_CHARS) if row.reason else None,
        )
        for row in drawn
    )


def _line(text: str) -> str:
    return " ".join(without_pseudonyms(redacted(text)).split())


# -- Questions, and the keys of their answers

NOTES = "notes"
NOTES_TOKENS = 600
"""Tokens that the notes on one part get on the first try."""


class Notes(Struct, forbid_unknown_fields=True):
    notes: str


class Question(Struct, frozen=True, kw_only=True):
    """One call: what the model is told, what it is shown, and what its answer must be."""

    key: str
    task: str
    instructions: str
    shown: str
    answer: type[Struct]
    schema: dict[str, Any]
    tokens: int
    """For the answer, on the first try."""
    read: Callable[[str], Verdict | Absent | str]
    """Decode an answer: the text of notes, else the verdict. Unfit when it is none."""
    message: Turn | None = None
    answer_end: str | None = None
    """As the unit has it."""


class Asker:
    """Makes the questions of one task for one labeller."""

    def __init__(self, task: Task, labeller: str, prompting: Prompting = AS_IT_IS) -> None:
        self.task = task
        self._labeller = labeller
        self._instructions = prompting.instructions(task)
        self._notes_prompt = prompt(NOTES).replace("{about}", task.says)

    def question(self, unit: Unit, notes: list[str] | None = None) -> Question:
        """The question about a unit: about its last part, with the notes on those before."""
        n = len(unit.parts)
        before = [(f"notes-on-part-{i + 1}-of-{n}", note) for i, note in enumerate(notes or ())]
        shown = sections([*before, (f"part-{n}-of-{n}", unit.parts[-1])]) if notes else unit.parts[-1]
        task, case = self.task, unit.case
        return made(
            self._labeller,
            task.name,
            self._instructions,
            shown,
            task.answer,
            tokens=task.answer_tokens,
            read=lambda text: task.verdict(text, case),
            message=unit.message,
            answer_end=unit.answer_end,
            # The encoder reads the answer before the message for every task.
            read_too=unit.answer_end or "" if self._labeller.partition(":")[0] == ENCODER else "",
        )

    def notes(self, unit: Unit) -> list[Question]:
        """The questions for notes on all parts but the last."""
        return [
            made(self._labeller, NOTES, self._notes_prompt, part, Notes, tokens=NOTES_TOKENS, read=_notes_in)
            for part in unit.parts[:-1]
        ]


def made(  # noqa: PLR0913  (the fields of a question)
    labeller: str,
    name: str,
    instructions: str,
    shown: str,
    answer: type[Struct],
    *,
    tokens: int,
    read: Callable[[str], Any],
    read_too: str = "",
    **more: Any,
) -> Question:
    """A question whose key follows from who is asked, what is told, shown and read too, and the answer's shape."""
    schema = schema_of(answer)
    # Without lone surrogates, which have no bytes to send.
    material = sections([("material", shown)]).encode("utf-8", "replace").decode()
    asked = [labeller, mark(instructions), mark(json.dumps(schema, sort_keys=True)), material]
    asked += [mark(read_too)] if read_too else []
    return Question(
        key=hashlib.sha256("\0".join(asked).encode()).hexdigest(),
        task=name,
        instructions=instructions,
        shown=material,
        answer=answer,
        schema=schema,
        tokens=tokens,
        read=read,
        **more,
    )


def _notes_in(text: str) -> str:
    notes: str = read_as(Notes, text).notes.strip()
    if not notes:
        raise Unfit("invalid_answer", "notes without a word")
    return notes
