"""How the person objects: in words, and by pulling the brake."""

from __future__ import annotations

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import corrections, failure_report, is_english, rejection

_STOPS = frozenset(("stop", "wait"))
"""Correction patterns that, queued while the agent works, are meant to halt it."""


@signal(
    "chat.pushback_type",
    type="enum",
    unit="label",
    level="turn",
    origin="swe-chat",
    source="regex",
    priority="P1",
    why="What kind of objection a turn makes to the work before it.",
    pitfalls="A flag, no share: patterns find about a tenth of what a reader finds; never beside a model's labels.",
)
def pushback_type(view: SessionView, why: Evidence) -> list[Measured | Absent]:
    """rejection, correction, failure_report or non_pushback, by word patterns over the head of the turn."""
    return [_pushback(t, why) for t in view.turns]


def _pushback(turn: Turn, why: Evidence) -> Measured | Absent:
    if turn.turn == 0:
        return Absent("not_applicable", "first_turn")
    if not is_english(turn.text):
        return Absent("not_computable", "language")
    label, pattern, matched = _label(turn.text, turn.kind)
    if matched:
        why.match(turn, f"{label} {pattern}", matched)
        return Measured(label, {"method": "regex", "pattern": pattern})
    why.counter([turn], "no pattern:")
    return Measured(label, {"method": "regex"})


def _label(text: str, kind: str) -> tuple[str, str, str]:
    refused = rejection(text, kind)
    if refused:
        return "rejection", "rejection", refused
    corrected = corrections(text, kind)
    if corrected:
        return ("correction", *corrected[0])
    failed = failure_report(text, kind)
    if failed:
        return "failure_report", "failure_report", failed
    return "non_pushback", "", ""


@signal(
    "chat.hard_interruption",
    type="bool",
    unit="flag",
    level="turn",
    origin="swe-chat",
    why="The person pulled the brake.",
    pitfalls="A permission denied by a rule is no interruption: nobody decided it then.",
)
def hard_interruption(view: SessionView, why: Evidence) -> list[bool]:
    """Whether the person cut the response: an interrupt, a refused tool call, or a queued "stop"."""
    stops = [t for t in view.turns if t.kind == "queued_prompt" and t.turn and _halts(t)]
    why.support(view.interrupts)
    why.support(view.rejected, "refused:")
    why.support(stops, "queued while the agent worked:")
    cut = {e.turn for e in view.interrupts} | {c.turn for c in view.rejected} | {t.turn - 1 for t in stops}
    why.denominator(view.turns)
    return [t.turn in cut for t in view.turns]


def _halts(turn: Turn) -> bool:
    return any(name in _STOPS for name, _ in corrections(turn.text, turn.kind))


@signal(
    "chat.pushback_rate",
    basis="heuristic",
    type="float",
    unit="ratio",
    origin="swe-chat",
    why="How often the person objects, in words or by pulling the brake.",
    pitfalls="At least so much: its words are chat.pushback_type's, which find about a tenth of what a reader finds."
    " Different labellers are not comparable: SWE-chat's 0.44 rests on a model's labels.",
)
def pushback_rate(
    view: SessionView,
    why: Evidence,
    pushback_type: list[Measured | Absent],
    hard_interruption: list[bool],
    user_turn_count: int,
) -> Measured | Absent:
    """Turns after the first that object or follow a cut response, and a last response cut, out of all human turns."""
    soft = {n for n, v in enumerate(pushback_type) if isinstance(v, Measured) and v.value != "non_pushback"}
    hard = {n + 1 for n, cut in enumerate(hard_interruption) if cut}
    either = soft | hard
    why.support([t for t in view.turns if t.turn in either])
    why.support(
        [t for t in view.turns if t.turn + 1 in hard and t.turn + 1 == len(view.turns)], "its response was cut:"
    )
    why.denominator(view.turns)
    return ratio(len(either), user_turn_count, soft=len(soft), hard=len(hard), method="regex")
