"""What is judged, one by one: the messages of a session, or the session; and why some are not asked about."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

from msgspec import Struct

from agentsignals import catalog
from agentsignals.labels.task import Case, Task, sections
from agentsignals.labels.transcript import MESSAGE_CHARS, Mask, segments, shortened, tokens, turns_of
from agentsignals.model import Session, Turn, TurnKind
from agentsignals.views.session import SessionView

SPOKEN: frozenset[TurnKind] = frozenset(("prompt", "queued_prompt", "rejection_feedback"))
"""Kinds of turns that are a person's words to the agent."""
BEFORE_CHARS = 4_000
"""Of the request and of the answer before a message that is judged by what led to it."""
RESTATEMENT_CHARS = 4_000
_HEADINGS = {"last-request": "The person's last request:", "end-of-answer": "The end of the agent's answer:"}
TOO_VAGUE = 0.75
"""prompt_underspecification from which a session is not asked about in the gated tasks
(design/signals.md#underspecification)."""
LEAST_TOKENS = 4
"""A shorter first prompt has nothing to restate (design/signals.md#underspecification)."""


class Unit(Struct, frozen=True, kw_only=True):
    """One thing to judge."""

    session_id: str
    turn: int | None
    """None: the whole session."""
    message: Turn | None
    """The message, where one is judged: what rules and classifiers read."""
    parts: tuple[str, ...]
    """What a language model is shown; where there are several, notes are made of all but the last."""
    case: Case
    answer_end: str | None = None
    """The end of the agent's answer before the message, where the task shows it: what classifiers read."""
    also: tuple[str, ...] = ()
    """Other sessions that the label holds for, where a repository is judged."""


class NotAsked(Struct, frozen=True):
    """A thing that the task is not about, and why."""

    session_id: str
    turn: int | None
    reason: str


def plain(text: str) -> str:
    """Masks nothing."""
    return text


def units(task: Task, session: Session, room: int, mask: Mask = plain) -> Iterator[Unit | NotAsked]:
    """What a session gives a task to judge. `room`: tokens that a model's window has for the material. `mask`: what is
    done to every text that a model is shown.
    """
    view = SessionView(session)
    if task.level == "turn":
        for turn in view.turns:
            why = _not_asked_of_turn(task, turn)
            yield NotAsked(session.session_id, turn.turn, why) if why else _message(task, view, turn, mask)
        return
    why = _not_asked(task, view)
    if why:
        yield NotAsked(session.session_id, None, why)
        return
    parts = (_restatement(view, mask),) if task.shows == "restatement" else tuple(_transcript(view, room, mask))
    yield Unit(
        session_id=session.session_id, turn=None, message=None, parts=parts, case=Case(len(view.turns), "".join(parts))
    )


def _not_asked_of_turn(task: Task, turn: Turn) -> str:
    if turn.kind not in SPOKEN:
        return turn.kind
    if not turn.text.strip():
        return "no_text"
    return "first_turn" if turn.turn + 1 < task.min_turns else ""


def _not_asked(task: Task, view: SessionView) -> str:
    if not view.turns:
        return "no_turns"
    if not any(e.text for e in view.by_kind.get("text", ())):
        return "session without assistant text"
    if len(view.turns) < task.min_turns:
        return "too_few_turns"
    if task.shows == "restatement" and view.turns[0].kind == "slash_command":
        return "slash_command"
    if task.shows == "restatement" and view.turns[0].n_tokens < LEAST_TOKENS:
        return "prompt_too_short"
    return _gate(task, view) if task.gated else ""


def _gate(task: Task, view: SessionView) -> str:
    values = catalog.values(view)
    vague = catalog.plain(values["prompt_underspecification"]) if "prompt_underspecification" in values else None
    if isinstance(vague, int | float) and vague >= TOO_VAGUE:
        return "underspecified_prompt"
    return "no_plan" if task.needs_plan and not catalog.plain(values["plan_steps_detected"]) else ""


def _message(task: Task, view: SessionView, turn: Turn, mask: Mask) -> Unit:
    shown = _alone(turn, mask)
    answer_end = None
    if task.shows == "exchange":
        parts = _before(view, turn, mask)
        answer_end = dict(parts).get("end-of-answer", "")
        shown = sections([*parts, ("message-to-judge", shown)])
    return Unit(
        session_id=view.session.session_id,
        turn=turn.turn,
        message=turn,
        parts=(shown,),
        case=Case(len(view.turns)),
        answer_end=answer_end,
    )


def _alone(turn: Turn, mask: Mask) -> str:
    return shortened(mask(turn.text), MESSAGE_CHARS)


def before(view: SessionView, turn: Turn, mask: Mask) -> str:
    """The request before a message, and the end of the answer to it: what a person replies to stands there. For people:
    what is quoted stands behind bars, so that none of it looks like a heading."""
    return "\n\n".join(
        f"{_HEADINGS[name]}\n{indent(text, '| ', lambda _: True)}" for name, text in _before(view, turn, mask)
    )


def answer_end_in(text: str) -> str:
    """The end of the agent's answer in what `before` made; a text without its headings is taken whole."""
    if not text.startswith(tuple(_HEADINGS.values())):
        return text
    _, _, quoted = text.partition(f"{_HEADINGS['end-of-answer']}\n")
    return "\n".join(line.removeprefix("| ") for line in quoted.splitlines())


def _before(view: SessionView, turn: Turn, mask: Mask) -> list[tuple[str, str]]:
    if not turn.turn:
        return []
    asked = shortened(mask(view.turns[turn.turn - 1].text), BEFORE_CHARS)
    events = view.responses[turn.turn - 1]
    answer = mask("\n\n".join(e.text for e in events if e.kind == "text" and e.text))
    if len(answer) > BEFORE_CHARS:
        answer = f"[… {len(answer) - BEFORE_CHARS:,} characters before …]\n{answer[-BEFORE_CHARS:]}"
    return [("last-request", asked), *([("end-of-answer", answer)] if answer else [])]


def _restatement(view: SessionView, mask: Mask) -> str:
    """The first request, and the first thinking block of the response, else its first text."""
    events = [e for e in (*view.responses[0], *view.by_kind["text"]) if e.text]
    first = next((e for e in view.responses[0] if e.kind == "thinking" and e.text), None)
    first = first or next(e for e in events if e.kind == "text")
    response = shortened(mask(first.text or ""), RESTATEMENT_CHARS)
    return sections([("first-request", _alone(view.turns[0], mask)), ("beginning-of-response", response)])


def _transcript(view: SessionView, room: int, mask: Mask) -> list[str]:
    """The transcript whole where there is room; else in parts of half the room, which leaves the rest for the notes."""
    turns = turns_of(view, mask)
    whole = "".join("".join(turn) for turn in turns)
    return [whole] if tokens(whole) <= room else segments(turns, room // 2)
