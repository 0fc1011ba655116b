"""What a task of judging is: what is asked of whom, the shape of the answer, and the verdict in it.

The answer's type is declared once, as a struct: its JSON Schema goes to the model, and the same struct reads what comes
back. Nothing is coerced: an answer that is not exactly of that type is `Unfit`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentsignals.model import Absent

_PROMPTS = Path(__file__).with_name("prompts")
_NOT_ASKED = ("title", "description")
"""What the schema of a struct says beyond its shape."""
_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
"""Templates that open a thought by themselves leave its end alone in the answer."""
_MOST_OBJECTS = 1000
"""Braces of an answer at which an object is looked for."""


class Unfit(Exception):
    """An answer that is none: `reason` is a word to count by, the message says more."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Verdict(Struct, frozen=True):
    """What an answer comes to: the label's value, its number where it is a score, why, and what else was said."""

    value: str
    reason: str | None = None
    number: float | None = None
    detail: dict[str, Any] | None = None


class Case(Struct, frozen=True):
    """What an answer is checked against: how many turns the session has, and the text that quotations must be from."""

    n_turns: int = 0
    shown: str = ""


Read = Callable[[Any, Case], Verdict | Absent]
"""The verdict in an answer; Absent when it says that there is nothing to judge. Unfit when it contradicts the case."""
Shown = Literal["message", "exchange", "restatement", "transcript", "repository"]
"""What the judge sees: the person's message; with what led to it; first request and first words; the whole session;
what sessions tell of a repository."""


class Task(Struct, frozen=True, dict=True, kw_only=True):
    """One declared task; its prompt is `prompts/<name>.md`."""

    name: str
    says: str
    """What is judged, in a line."""
    level: Literal["turn", "session", "repository"]
    """What is judged once. The label of a repository is one of each session in it."""
    shows: Shown
    answer: type[Struct]
    read: Read
    values: tuple[str, ...] = ()
    """The classes; empty where the verdict is a number."""
    gated: bool = False
    """Not asked of sessions whose first prompt is too vague to be misunderstood (anticipation.prompt_underspecification
    of 0.75 and more): what goes wrong there says nothing about the agent (Agent Signals)."""
    min_turns: int = 1
    needs_plan: bool = False
    answer_tokens: int = 400
    """Tokens an answer gets on the first try."""

    @cached_property
    def prompt(self) -> str:
        """What the model is told before it sees anything of the session."""
        return prompt(self.name)

    @property
    def codebook(self) -> str:
        """What a person goes by: the prompt without what it says of the answer's form."""
        return self.prompt.rpartition("\n\n")[0]

    @cached_property
    def prompt_hash(self) -> str:
        """The prompt's version."""
        return mark(self.prompt)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer: every field required, no other allowed, strings without bounds."""
        return schema_of(self.answer)

    def verdict(self, text: str, case: Case) -> Verdict | Absent:
        """What an answer as it came says. Unfit when it is none."""
        return self.read(read_as(self.answer, text), case)


def prompt(name: str) -> str:
    """The text of a prompt file."""
    return (_PROMPTS / f"{name}.md").read_text("utf-8").strip()


def mark(text: str) -> str:
    """A short name of exactly this text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def sections(parts: Sequence[tuple[str, str]]) -> str:
    """Texts by name, each between marks that none of them can contain, since they are made from all of them: what one
    says can't pass for another.
    """
    made_of = mark("\0".join("\0".join(part) for part in parts))
    return "\n".join(f"<{name}-{made_of}>\n{text}\n</{name}-{made_of}>" for name, text in parts)


def schema_of(answer: type[Struct]) -> dict[str, Any]:
    """The schema of a flat struct, without references, which not every server follows."""
    _, parts = msgspec.json.schema_components((answer,))
    schema: dict[str, Any] = {k: v for k, v in parts[answer.__name__].items() if k not in _NOT_ASKED}
    return schema


def read_as(answer: type[Struct], text: str) -> Any:
    """The answer as its type. Raw control characters inside strings pass, which some grammars let through (xgrammar
    with bounded strings); everything else that is no JSON of that shape is Unfit.
    """
    try:
        parsed = json.loads(text, strict=False, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise Unfit("invalid_json", str(problem)) from problem
    try:
        return msgspec.convert(parsed, answer)
    except msgspec.ValidationError as problem:
        raise Unfit("invalid_answer", str(problem)) from problem


def answer_in(answer: type[Struct], text: str) -> str:
    """The answer within what a model wrote: all of it, else the one JSON object of that shape which stands in a fence,
    a sentence or a list, outside a thought and outside other objects. Unfit where there is none, or two that differ.
    """
    try:
        read_as(answer, text)
        return text
    except Unfit as problem:
        unfit = problem
    spoken = _THOUGHT_END.sub("", _THOUGHT.sub("", text))
    answers: dict[str, str] = {}
    at = spoken.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            break
        try:
            parsed, end = _OBJECT.raw_decode(spoken, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            with suppress(msgspec.ValidationError):
                msgspec.convert(parsed, answer)
                answers[json.dumps(parsed, sort_keys=True)] = spoken[at:end]
        at = spoken.find("{", end)
    if len(answers) > 1:
        raise Unfit("several_answers", f"{len(answers)} answers that differ: {' '.join(answers)}")
    if not answers:
        raise unfit
    return next(iter(answers.values()))


class _StoredVerdict(Struct, frozen=True, omit_defaults=True):
    verdict: Verdict | None = None
    absent: Absent | None = None


def written(verdict: Verdict | Absent) -> str:
    """What a labeller that is no language model says, as text that can be kept."""
    return msgspec.json.encode(
        _StoredVerdict(absent=verdict) if isinstance(verdict, Absent) else _StoredVerdict(verdict)
    ).decode()


def read_back(text: str) -> Verdict | Absent:
    """What `written` wrote. Unfit for anything else."""
    try:
        stored = msgspec.json.decode(text, type=_StoredVerdict)
    except msgspec.DecodeError as problem:
        raise Unfit("invalid_answer", str(problem)) from problem
    if stored.verdict is not None:
        return stored.verdict
    return Absent("not_computable") if stored.absent is None else stored.absent


def is_strict(text: str) -> bool:
    """Whether a strict parser would have taken the answer, too."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        raise ValueError("a field stands twice")
    return parsed


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


_OBJECT = json.JSONDecoder(strict=False, object_pairs_hook=_once, parse_constant=_no_number)
