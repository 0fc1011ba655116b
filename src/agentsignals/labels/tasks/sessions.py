"""Tasks about a whole session, or the repository of several.

Scores become the words of Agent Signals as design/labels.md#mapping-scores says.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from agentsignals.labels.task import Case, Task, Unfit, Verdict
from agentsignals.model import Absent

Percent = Annotated[int, Meta(ge=0, le=100)]
UpTo4 = Annotated[int, Meta(ge=0, le=4)]
UpTo5 = Annotated[int, Meta(ge=0, le=5)]
Persona = Literal["nitpicker", "vague_requester", "mind_changer", "other"]
Optimality = Literal["optimal", "suboptimal", "wrong_direction"]
Adherence = Literal["full", "partial", "ignored", "contradicted"]
Domain = Literal["application", "devtools", "library", "other"]
Audience = Literal["developer", "end_user", "researcher", "education"]

BANDS = ((90, "resolved"), (70, "goal met"), (50, "progress"), (30, "goal missed"), (10, "little"), (0, "nothing"))
"""Lowest score of each band of SWE-chat's rubric, and what it stands for."""
_OPTIMALITY: tuple[Optimality, ...] = (
    "wrong_direction", "wrong_direction", "suboptimal", "suboptimal", "optimal", "optimal",
)  # fmt: skip
_ADHERENCE: tuple[Adherence, ...] = ("contradicted", "ignored", "ignored", "partial", "partial", "full")
"""What TRAIL's scores of 0 to 5 mean here."""


class PersonaAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    label: Persona
    confidence: Percent


class SuccessAnswer(Struct, forbid_unknown_fields=True, kw_only=True):
    reason: str
    goal_completion: Percent
    final_state: Percent
    agent_efficiency: Percent
    code_quality: Percent
    user_experience: Percent
    score: Percent


class ParaphraseAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    restated: bool
    score: UpTo4


class PlanAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    score: UpTo5
    no_solution: bool


class AdherenceAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    score: UpTo5
    instruction: str
    opposite_action: str


class ConflationAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    beyond: bool
    turn: Annotated[int, Meta(ge=0)]


class AlignmentAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    score: UpTo4
    goal_turn: Annotated[int, Meta(ge=0)]


class DomainAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    domain: Domain
    audience: Audience


def _persona(answer: PersonaAnswer, _: Case) -> Verdict:
    return Verdict(answer.label, answer.reason, detail={"confidence": answer.confidence})


def _success(answer: SuccessAnswer, _: Case) -> Verdict:
    names = ("goal_completion", "final_state", "agent_efficiency", "code_quality", "user_experience")
    band = next(name for lowest, name in BANDS if answer.score >= lowest)
    detail = {name: getattr(answer, name) for name in names} | {"band": band}
    return Verdict(str(answer.score), answer.reason, float(answer.score), detail)


def _paraphrase(answer: ParaphraseAnswer, _: Case) -> Verdict | Absent:
    if not answer.restated:
        return Absent("not_applicable", "no_restatement")
    return Verdict(str(answer.score), answer.reason, answer.score / 4)


def _plan(answer: PlanAnswer, _: Case) -> Verdict:
    detail = {"score": answer.score} | ({"no_solution": True} if answer.no_solution else {})
    return Verdict(_OPTIMALITY[answer.score], answer.reason, detail=detail)


def _adherence(answer: AdherenceAnswer, case: Case) -> Verdict:
    """`contradicted` needs a quoted instruction and a quoted act against it, both word for word in the session."""
    value = _ADHERENCE[answer.score]
    quotes = {"instruction": answer.instruction, "opposite_action": answer.opposite_action}
    if value == "contradicted":
        shown = _one_line(case.shown)
        missing = [name for name, quote in quotes.items() if not quote.strip() or _one_line(quote) not in shown]
        if missing:
            raise Unfit("quote_not_found", f"{' and '.join(missing)} stand nowhere in the session")
        return Verdict(value, answer.reason, detail={"score": answer.score, **quotes})
    return Verdict(value, answer.reason, detail={"score": answer.score})


def _conflation(answer: ConflationAnswer, case: Case) -> Verdict:
    if not answer.beyond:
        return Verdict("none", answer.reason)
    return Verdict(str(_turn(answer.turn, case)), answer.reason, float(answer.turn))


def _alignment(answer: AlignmentAnswer, case: Case) -> Verdict:
    detail = {"goal_turn": _turn(answer.goal_turn, case)}
    return Verdict(str(answer.score), answer.reason, answer.score / 4, detail)


def _domain(answer: DomainAnswer, _: Case) -> Verdict:
    return Verdict(answer.domain, answer.reason, detail={"audience": answer.audience})


def _turn(turn: int, case: Case) -> int:
    if turn >= case.n_turns:
        raise Unfit("no_such_turn", f"turn {turn} of {case.n_turns}, counted from 0")
    return turn


def _one_line(text: str) -> str:
    return " ".join(text.split())


SESSION_TASKS = (
    Task(
        name="persona",
        says="how the person steers the agent (SWE-chat)",
        level="session",
        shows="transcript",
        answer=PersonaAnswer,
        read=_persona,
        values=get_args(Persona),
        min_turns=2,
    ),
    Task(
        name="session_success",
        says="0 to 100 over five dimensions, the ending weighing most (SWE-chat)",
        level="session",
        shows="transcript",
        answer=SuccessAnswer,
        read=_success,
        answer_tokens=600,
    ),
    Task(
        name="task_paraphrase_accuracy",
        says="how faithfully the agent's first words restate the request: 0 to 4, over 4",
        level="session",
        shows="restatement",
        answer=ParaphraseAnswer,
        read=_paraphrase,
        gated=True,
    ),
    Task(
        name="plan_optimality",
        says="how the first plan compares with the path that worked",
        level="session",
        shows="transcript",
        answer=PlanAnswer,
        read=_plan,
        values=get_args(Optimality),
        gated=True,
        needs_plan=True,
    ),
    Task(
        name="instruction_adherence",
        says="how far the explicit instructions were followed",
        level="session",
        shows="transcript",
        answer=AdherenceAnswer,
        read=_adherence,
        values=get_args(Adherence),
        gated=True,
        answer_tokens=600,
    ),
    Task(
        name="conflation_turn",
        says="the first response that goes beyond everything asked for so far",
        level="session",
        shows="transcript",
        answer=ConflationAnswer,
        read=_conflation,
        gated=True,
    ),
    Task(
        name="goal_alignment_at_close",
        says="how far what was delivered at the end is what was asked: 0 to 4, over 4",
        level="session",
        shows="transcript",
        answer=AlignmentAnswer,
        read=_alignment,
        gated=True,
    ),
    Task(
        name="repo_domain",
        says="what kind of software a repository is, and for whom (SWE-chat)",
        level="repository",
        shows="repository",
        answer=DomainAnswer,
        read=_domain,
        values=get_args(Domain),
    ),
)
