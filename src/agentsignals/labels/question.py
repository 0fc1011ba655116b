"""What a language model is asked, word for word, and the key by which an answer is found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.labels.prompting import AS_IT_IS, Prompting
from agentsignals.labels.task import Case, Task, Unfit, Verdict, mark, prompt, read_as, schema_of, sections
from agentsignals.labels.units import Unit
from agentsignals.model import Absent, Turn

NOTES = "notes"
NOTES_TOKENS = 600
"""Tokens that the notes on one part get on the first try."""


class Notes(Struct, forbid_unknown_fields=True):
    """The answer to a request for notes."""

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
    """What an answer says: of notes their text, else the verdict. Unfit when it is none."""
    message: Turn | None = None
    temperature: float = 0.0
    """Of its first answer, where the server takes one."""
    answer_end: str | None = None
    """As the unit has it."""


class Asker:
    """Makes the questions of one task for one labeller."""

    def __init__(self, task: Task, labeller: str, prompting: Prompting = AS_IT_IS) -> None:
        self.task = task
        self._labeller = labeller
        self._prompting = prompting
        self._instructions = prompting.instructions(task)
        self._notes_prompt = prompt(NOTES).replace("{about}", task.says)

    def questions(self, unit: Unit, notes: list[str] | None = None) -> list[Question]:
        """The questions about a unit: the same as often as answers are wanted. About its last part, with the notes on
        those before."""
        question = self.question(unit, notes)
        return [_again(question, nth) for nth in range(self._prompting.answers)]

    def question(self, unit: Unit, notes: list[str] | None = None) -> Question:
        """The first of them."""
        n = len(unit.parts)
        before = [(f"notes-on-part-{i + 1}-of-{n}", note) for i, note in enumerate(notes or ())]
        shown = sections([*before, (f"part-{n}-of-{n}", unit.parts[-1])]) if notes else unit.parts[-1]
        task = self.task
        asked = self._made(
            self._instructions, shown, task.answer, task.answer_tokens, _Reader(task, unit.case), unit.message
        )
        return msgspec.structs.replace(
            asked,
            schema=self._prompting.schema(asked.schema),
            temperature=self._prompting.temperature,
            answer_end=unit.answer_end,
        )

    def notes(self, unit: Unit) -> list[Question]:
        """The questions for notes on all parts but the last."""
        return [self._made(self._notes_prompt, p, Notes, NOTES_TOKENS, _notes_in) for p in unit.parts[:-1]]

    def _made(  # noqa: PLR0913  (the fields of a question)
        self,
        instructions: str,
        shown: str,
        answer: type[Struct],
        tokens: int,
        read: Callable[[str], Any],
        message: Turn | None = None,
    ) -> Question:
        name = NOTES if answer is Notes else self.task.name
        return made(self._labeller, name, instructions, shown, answer, tokens, read, message)


def _again(question: Question, nth: int) -> Question:
    """The same question, to be answered another time."""
    return (
        msgspec.structs.replace(question, key=hashlib.sha256(f"{question.key} {nth}".encode()).hexdigest())
        if nth
        else question
    )


def made(  # noqa: PLR0913  (the fields of a question)
    labeller: str,
    name: str,
    instructions: str,
    shown: str,
    answer: type[Struct],
    tokens: int,
    read: Callable[[str], Any],
    message: Turn | None = None,
) -> Question:
    """A question whose key follows from who is asked, what is told and shown, and the answer's shape."""
    schema = schema_of(answer)
    material = _sayable(sections([("material", shown)]))
    asked = [labeller, mark(instructions), mark(json.dumps(schema, sort_keys=True)), material]
    key = hashlib.sha256("\0".join(asked).encode()).hexdigest()
    return Question(
        key=key,
        task=name,
        instructions=instructions,
        shown=material,
        answer=answer,
        schema=schema,
        tokens=tokens,
        read=read,
        message=message,
    )


class _Reader(Struct, frozen=True):
    """Reads an answer for its case."""

    task: Task
    case: Case

    def __call__(self, text: str) -> Verdict | Absent:
        return self.task.verdict(text, self.case)


def _notes_in(text: str) -> str:
    notes: str = read_as(Notes, text).notes.strip()
    if not notes:
        raise Unfit("invalid_answer", "notes without a word")
    return notes


def _sayable(text: str) -> str:
    """Without lone surrogates, which have no bytes to send."""
    return text.encode("utf-8", "replace").decode()
