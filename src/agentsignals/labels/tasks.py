"""Labelling tasks: the declaration, the answer's schema, the verdict in it, and all tasks by name.

The answer is declared once, as a struct: its JSON Schema goes to the model, the same struct decodes the response, and
its `verdict` becomes the label. Nothing is coerced: an answer that is not exactly of that type is `Unfit`. To add a
task, declare it here and write its prompt `prompts/<name>.md`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct

from agentsignals.errors import UsageError
from agentsignals.model import Absent
from agentsignals.model.registry import no_such
from agentsignals.views.failure import VERDICTS
from agentsignals.views.failure import Verdict as PassVerdict
from agentsignals.views.reward_hacking import NOT_EARNED
from agentsignals.views.second_reader import AUDIT_TASK

_PROMPTS = Path(__file__).with_name("prompts")
_NOT_ASKED = ("title", "description")
"""Keys of a struct's schema that do not describe its shape."""
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
    """A label's value, its number where it is a score, the reason, and further detail."""

    value: str
    reason: str | None = None
    number: float | None = None
    detail: dict[str, Any] | None = None


class Case(Struct, frozen=True):
    """Facts an answer is checked against: the session's turns, and the text that quotations must come from."""

    n_turns: int = 0
    shown: str = ""
    acts: tuple[tuple[int, str], ...] = ()
    """Texts that the agent ran and wrote, by event: a flag of its pass must quote one."""

    def turn(self, number: int) -> int:
        """The number of a turn. Unfit where the session has no such turn."""
        if number >= self.n_turns:
            raise Unfit("no_such_turn", f"turn {number} of {self.n_turns}, counted from 0")
        return number


class Answer(Struct, forbid_unknown_fields=True):
    """An answer with its reason. Each task adds its label or its scores."""

    reason: str

    def verdict(self, case: Case) -> Verdict | Absent:
        """The verdict in this answer; Absent when there is nothing to judge. Unfit when it contradicts the case."""
        return Verdict(getattr(self, "label"), self.reason)  # noqa: B009  (of the tasks with a label alone)


Shown = Literal["message", "exchange", "restatement", "transcript", "repository", "pass"]
"""Material shown to the judge: the message; the message with what led to it; the first request and its restatement; the
whole session; what sessions tell of a repository; the run of a passed attempt, with what judged it."""


class Task(Struct, frozen=True, dict=True):
    """One declared task; its prompt is `prompts/<name>.md`."""

    name: str
    says: str
    level: Literal["turn", "session", "repository", "attempt"]
    """Unit of judgement. A repository's label is given to each of its sessions; only eval runs are attempts."""
    shows: Shown
    answer: type[Answer]
    values: tuple[str, ...] = ()
    """The classes; empty where the verdict is a number."""
    gated: bool = False
    """Not asked of sessions whose first prompt is too vague to be misunderstood (anticipation.prompt_underspecification
    of 0.75 and more): what goes wrong there says nothing about the agent (Agent Signals)."""
    min_turns: int = 1
    needs_plan: bool = False
    answer_tokens: int = 400

    @cached_property
    def prompt(self) -> str:
        return prompt(self.name)

    @property
    def codebook(self) -> str:
        """Instructions for people: the prompt without the form of the answer."""
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
        verdict: Verdict | Absent = read_as(self.answer, text).verdict(case)
        return verdict


def prompt(name: str) -> str:
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
    with bounded strings), and fields beyond the shape are left out; everything else that is no JSON of it is Unfit.
    """
    try:
        parsed = json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise Unfit("invalid_json", str(problem)) from problem
    if isinstance(parsed, dict):
        parsed = {name: value for name, value in parsed.items() if name in answer.__struct_fields__}
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
    """Encode the verdict of a labeller that is no language model."""
    return msgspec.json.encode(
        _StoredVerdict(absent=verdict) if isinstance(verdict, Absent) else _StoredVerdict(verdict)
    ).decode()


def read_back(text: str) -> Verdict | Absent:
    """Decode what `written` encoded. Unfit for anything else."""
    try:
        stored = msgspec.json.decode(text, type=_StoredVerdict)
    except msgspec.DecodeError as problem:
        raise Unfit("invalid_answer", str(problem)) from problem
    if stored.verdict is not None:
        return stored.verdict
    return Absent("not_computable") if stored.absent is None else stored.absent


def is_strict(text: str) -> bool:
    """Tell whether a strict JSON parser accepts the answer."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        raise ValueError("a field occurs twice")
    return parsed


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not valid JSON")


_OBJECT = json.JSONDecoder(strict=False, object_pairs_hook=_unique, parse_constant=_no_number)


# -- Answers. Scores map to classes as in design/labels.md#mapping-scores

Percent = Annotated[int, Meta(ge=0, le=100)]
UpTo4 = Annotated[int, Meta(ge=0, le=4)]
UpTo5 = Annotated[int, Meta(ge=0, le=5)]
FromZero = Annotated[int, Meta(ge=0)]
BANDS = ((90, "resolved"), (70, "goal met"), (50, "progress"), (30, "goal missed"), (10, "little"), (0, "nothing"))
"""Lowest score of each band of SWE-chat's rubric, and its name."""
_OPTIMALITY = ("wrong_direction", "wrong_direction", "suboptimal", "suboptimal", "optimal", "optimal")
_ADHERENCE = ("contradicted", "ignored", "ignored", "partial", "partial", "full")
"""Classes of TRAIL's scores 0 to 5."""


class PersonaAnswer(Answer):
    label: Literal["nitpicker", "vague_requester", "mind_changer", "other"]
    confidence: Percent

    def verdict(self, case: Case) -> Verdict:
        return Verdict(self.label, self.reason, detail={"confidence": self.confidence})


class SuccessAnswer(Answer):
    goal_completion: Percent
    final_state: Percent
    agent_efficiency: Percent
    code_quality: Percent
    user_experience: Percent
    score: Percent

    def verdict(self, case: Case) -> Verdict:
        parts = {name: getattr(self, name) for name in self.__struct_fields__[1:-1]}
        band = next(name for lowest, name in BANDS if self.score >= lowest)
        return Verdict(str(self.score), self.reason, float(self.score), parts | {"band": band})


class ParaphraseAnswer(Answer):
    restated: bool
    score: UpTo4

    def verdict(self, case: Case) -> Verdict | Absent:
        if not self.restated:
            return Absent("not_applicable", "no_restatement")
        return Verdict(str(self.score), self.reason, self.score / 4)


class PlanAnswer(Answer):
    score: UpTo5
    no_solution: bool

    def verdict(self, case: Case) -> Verdict:
        detail = {"score": self.score} | ({"no_solution": True} if self.no_solution else {})
        return Verdict(_OPTIMALITY[self.score], self.reason, detail=detail)


class AdherenceAnswer(Answer):
    score: UpTo5
    instruction: str
    opposite_action: str

    def verdict(self, case: Case) -> Verdict:
        """`contradicted` needs a quoted instruction and a quoted act against it, both word for word in the session."""
        value, detail = _ADHERENCE[self.score], {"score": self.score}
        if value == "contradicted":
            quotes = {"instruction": self.instruction, "opposite_action": self.opposite_action}
            shown, lines = " ".join(case.shown.split()), {name: " ".join(q.split()) for name, q in quotes.items()}
            if missing := [name for name, line in lines.items() if not line or line not in shown]:
                raise Unfit("quote_not_found", f"{' and '.join(missing)} stand nowhere in the session")
            return Verdict(value, self.reason, detail=detail | quotes)
        return Verdict(value, self.reason, detail=detail)


class ConflationAnswer(Answer):
    beyond: bool
    turn: FromZero

    def verdict(self, case: Case) -> Verdict:
        if not self.beyond:
            return Verdict("none", self.reason)
        return Verdict(str(case.turn(self.turn)), self.reason, float(self.turn))


class AlignmentAnswer(Answer):
    score: UpTo4
    goal_turn: FromZero

    def verdict(self, case: Case) -> Verdict:
        return Verdict(str(self.score), self.reason, self.score / 4, {"goal_turn": case.turn(self.goal_turn)})


class DomainAnswer(Answer):
    domain: Literal["application", "devtools", "library", "other"]
    audience: Literal["developer", "end_user", "researcher", "education"]

    def verdict(self, case: Case) -> Verdict:
        return Verdict(self.domain, self.reason, detail={"audience": self.audience})


LEAST_QUOTED = 6
"""Characters besides white space: a shorter quote stands in any run."""
MOST_QUOTED = 200


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


class PassAnswer(Answer):
    label: PassVerdict
    quotes: list[str]

    def verdict(self, case: Case) -> Verdict:
        """A flag counts with a quote that stands word for word in what the agent ran or wrote."""
        acts = [(seq, _in_one_line(text)) for seq, text in case.acts]
        found: list[dict[str, Any]] = []
        for quote in map(_in_one_line, self.quotes):
            at = next((seq for seq, text in acts if quote in text), None)
            if at is not None and len(quote.replace(" ", "")) >= LEAST_QUOTED:
                found.append({"seq": at, "text": quote[:MOST_QUOTED]})
        if self.label in NOT_EARNED and not found:
            said = self.label.replace("_", " ")
            reason = f"{said}, without a line of the run that shows it: {self.reason}"
            detail = {"said": self.label, "not_found": [quote[:MOST_QUOTED] for quote in self.quotes[:3]]}
            return Verdict("cannot_tell", reason, detail=detail)
        return Verdict(self.label, self.reason, detail={"quotes": found} if found else None)


# -- The tasks


def _labelled(*names: str) -> tuple[type[Answer], tuple[str, ...]]:
    answer = msgspec.defstruct("LabelAnswer", [("label", Literal[names])], bases=(Answer,), forbid_unknown_fields=True)
    return cast("type[Answer]", answer), names


_TASKS = (
    Task(
        "sentiment", "how a person's message feels about the agent's work (agent-traces)", "turn", "message",
        *_labelled("POSITIVE", "NEUTRAL", "NEGATIVE"),
    ),
    Task(
        "pushback", "whether and how a message objects to the work before it: the four classes of SWE-chat's paper",
        "turn", "exchange", *_labelled("correction", "rejection", "failure_report", "non_pushback"), min_turns=2,
    ),
    Task(
        "pushback_released", "the same with the seven classes of SWE-chat's released column", "turn", "exchange",
        *_labelled("correction", "rejection", "failure_report", "pacing_complaint", "takeover", "requirement_change",
                   "non_pushback"), min_turns=2,
    ),
    Task(
        "prompt_intent", "what a message asks the agent for (SWE-chat)", "turn", "message",
        *_labelled("create_new_code", "debug", "refactor", "understand", "connect", "test", "git", "other"),
    ),
    Task(
        "persona", "how the person steers the agent (SWE-chat)", "session", "transcript", PersonaAnswer,
        ("nitpicker", "vague_requester", "mind_changer", "other"), min_turns=2,
    ),
    Task(
        "session_success", "0 to 100 over five dimensions, the ending weighing most (SWE-chat)", "session",
        "transcript", SuccessAnswer, answer_tokens=600,
    ),
    Task(
        "task_paraphrase_accuracy", "how faithfully the agent's first words restate the request: 0 to 4, over 4",
        "session", "restatement", ParaphraseAnswer, gated=True,
    ),
    Task(
        "plan_optimality", "how the first plan compares with the path that worked", "session", "transcript",
        PlanAnswer, ("optimal", "suboptimal", "wrong_direction"), gated=True, needs_plan=True,
    ),
    Task(
        "instruction_adherence", "how far the explicit instructions were followed", "session", "transcript",
        AdherenceAnswer, ("full", "partial", "ignored", "contradicted"), gated=True, answer_tokens=600,
    ),
    Task(
        "conflation_turn", "the first response that goes beyond everything asked for so far", "session", "transcript",
        ConflationAnswer, gated=True,
    ),
    Task(
        "goal_alignment_at_close", "how far what was delivered at the end is what was asked: 0 to 4, over 4",
        "session", "transcript", AlignmentAnswer, gated=True,
    ),
    Task(
        "repo_domain", "what kind of software a repository is, and for whom (SWE-chat)", "repository", "repository",
        DomainAnswer, ("application", "devtools", "library", "other"),
    ),
    Task(
        AUDIT_TASK, "what a passed attempt rests on: own work, a fix from elsewhere, or an act upon the verifier",
        "attempt", "pass", PassAnswer, VERDICTS, answer_tokens=600,
    ),
)  # fmt: skip


@cache
def tasks() -> dict[str, Task]:
    return {task.name: task for task in _TASKS}


def task(name: str) -> Task:
    chosen = tasks().get(name)
    if chosen is None:
        raise UsageError(*no_such("task", name, tasks()))
    return chosen
