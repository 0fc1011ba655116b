"""Plans that the person approved by going on in a fresh context: logged as a refusal, and then a hand-off of the plan.

The hand-off is in the same log or opens another; it holds the plan, and from 2.1 on names the log it was made in
(design/formats.md#claude-code-plans).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from agentsignals.formats import ANSWERS, ASKS
from agentsignals.formats.claude_code.results import WITH_WORDS
from agentsignals.formats.claude_code.user import PLAN
from agentsignals.formats.one_document import REDACTED
from agentsignals.model import MAIN, Session, ToolCall, Turn

HANDED_ON_WITHIN_US = 60_000_000
"""From the refusal to the hand-off: it is written within a second; a minute allows for a slow start of the new context.
Later the same plan was taken up again, which is no answer to the question."""
_TRANSCRIPT = re.compile(r"read the full transcript at: \S*?([^/\\\s]+)\.jsonl")
_POINTER = "\n\n\nIf you need specific details from before exiting plan mode"
_AGENT = frozenset(("text", "thinking", "tool_call", "human_turn"))


class _Arguments(Struct, gc=False):
    plan: str = ""


_decode = msgspec.json.Decoder(_Arguments, strict=False).decode


class _Handoff(Struct):
    """Where a plan was handed on, and the session that it says it was made in."""

    session: Session
    turn: Turn
    plan: str
    made_in: str | None


class _Refusal(Struct):
    """A plan that was refused without a word."""

    session: Session
    call: ToolCall
    plan: str


def approve(sessions: Sequence[Session]) -> set[str]:
    """Makes an approval of each refusal whose plan was handed on at once; a new session is a child of the old one.

    Gives the keys by which files of the other end, where they are read apart, belong to these.
    """
    handoffs = [handoff for session in sessions for handoff in _handoffs(session)]
    refusals = [refusal for session in sessions for refusal in _refusals(session)]
    waiting, keys = list(refusals), set()
    for handoff in handoffs:
        near = [(apart, refusal) for refusal in waiting if (apart := _apart_us(handoff, refusal)) is not None]
        answered = min(near, key=lambda pair: pair[0])[1] if near else None
        if answered is not None:
            waiting.remove(answered)
            _approved(answered, handoff)
        if handoff.made_in:
            keys.add(f"session:{handoff.made_in}")
        elif answered is not None and answered.session is handoff.session:
            refusals.remove(answered)  # both ends are always read together
        elif handoff.plan:
            keys.add(f"{ANSWERS}plan:{_digest(handoff.plan)}")
    return keys | {f"{ASKS}plan:{_digest(refusal.plan)}" for refusal in refusals if refusal.plan}


def _handoffs(session: Session) -> Iterator[_Handoff]:
    for turn in session.turns:
        if turn.kind == "plan_handoff":
            made_in = _TRANSCRIPT.search(turn.text, max(turn.text.rfind(_POINTER), 0))
            plan = _spaced(turn.text.removeprefix(PLAN).partition(_POINTER)[0])
            yield _Handoff(session, turn, plan, made_in[1] if made_in and REDACTED not in made_in[1] else None)


def _refusals(session: Session) -> Iterator[_Refusal]:
    for call in session.tool_calls:
        if call.purpose == "plan_handoff" and call.status == "rejected" and call.thread == MAIN:
            text = session.events[call.result_seq].text if call.result_seq is not None else None
            if WITH_WORDS not in (text or ""):
                yield _Refusal(session, call, _plan(call.arguments))


def _apart_us(handoff: _Handoff, refusal: _Refusal) -> int | None:
    """The time between the two ends of one approval; None where they are no such thing."""
    begun, call = handoff.turn.timestamp, refusal.call
    is_of_it = (refusal.plan and refusal.plan == handoff.plan) or handoff.made_in == refusal.session.session_id
    if begun is None or call.ended_at is None or not is_of_it:
        return None
    if handoff.session is refusal.session and handoff.turn.seq < call.seq:
        return None
    apart = abs(begun - call.ended_at)
    return apart if apart <= HANDED_ON_WITHIN_US else None


def _approved(refusal: _Refusal, handoff: _Handoff) -> None:
    session, call = refusal.session, refusal.call
    call.status, call.outcome = "ok", "done"
    for event in session.events[(call.result_seq or call.seq) + 1 :]:
        if event.thread != MAIN or event.kind in _AGENT:
            break
        if event.kind == "interrupt":
            event.kind = "meta"
    if handoff.session is not session and handoff.session.parent_session_id is None:
        handoff.session.parent_session_id = session.session_id


def _plan(arguments: str) -> str:
    try:
        return _spaced(_decode(arguments).plan)
    except msgspec.DecodeError:
        return ""


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _digest(plan: str) -> str:
    return hashlib.blake2b(plan.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
