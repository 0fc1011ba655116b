"""The measures of SWE-chat (SWE-chat): pushback, interruptions, and whose lines were committed."""

from __future__ import annotations

from collections import Counter

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import corrections, failure_report, is_english, rejection

VIBE_PERCENT = 99
_STOPS = frozenset(("stop", "wait"))
"""Correction patterns that, queued while the agent works, are meant to halt it."""


@signal(
    "chat.turns_per_session",
    type="int",
    unit="turns",
    origin="swe-chat",
    why="The size of a conversation in SWE-chat's unit.",
    pitfalls="Publish quantiles: the distribution is skewed. SWE-chat leaves machine-made repositories out.",
)
def turns_per_session(view: SessionView, why: Evidence, user_turn_count: int) -> int:
    """Human prompts, each with everything the agent did until the next."""
    why.support(view.turns)
    return user_turn_count


@signal(
    "chat.tool_calls_per_turn",
    type="int",
    unit="tool_calls",
    level="turn",
    origin="swe-chat",
    priority="P1",
    why="How much work one prompt sets off.",
    pitfalls="Calls before the first prompt belong to no turn.",
)
def tool_calls_per_turn(view: SessionView, why: Evidence) -> list[int]:
    """Main-thread tool calls in the response to the turn."""
    why.support(view.calls)
    n = Counter([c.turn for c in view.calls])
    return [n[t.turn] for t in view.turns]


@signal(
    "chat.pushback_type",
    type="enum",
    unit="label",
    level="turn",
    origin="swe-chat",
    source="regex",
    priority="P1",
    why="What kind of objection a turn makes to the work before it.",
    pitfalls="Patterns find a tenth to a third of what a reader finds; never compare with labels by a model.",
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
    type="float",
    unit="ratio",
    origin="swe-chat",
    why="How often the person objects, in words or by pulling the brake.",
    pitfalls="Different labellers are not comparable: SWE-chat's 0.44 rests on a model's labels.",
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


@signal(
    "chat.agent_percentage",
    type="float",
    unit="percent",
    origin="swe-chat",
    source="git",
    priority="P1",
    why="Whose lines went into the commits of the session.",
    pitfalls="The collector's attribution is taken as recorded; the attribution audit tells how good it is.",
)
def agent_percentage(view: SessionView, why: Evidence) -> Measured | Absent:
    """The agent's share of the committed lines, 0..100, as recorded beside the session."""
    recorded = [c for c in view.session.checkpoints if c.agent_lines is not None or c.agent_percentage is not None]
    if not recorded:
        return Absent("missing_artifact", "git_attribution")
    lines = sum(c.agent_lines or 0 for c in recorded)
    total = sum(c.total_committed or 0 for c in recorded)
    detail = {"num": lines, "den": total, "checkpoints": len(recorded)}
    why.rule(f"attribution recorded with the session: {lines} of {total} committed lines are the agent's")
    only = recorded[0].agent_percentage if len(recorded) == 1 else None
    if only is not None and (total or only):
        # The recorded figure also knows the lines the agent removed; a commit that only deletes adds up to 0 of 0.
        return Measured(float(only), detail)
    return Measured(100 * lines / total, detail) if total else Absent("not_computable", "zero_denominator")


@signal(
    "chat.coding_mode",
    type="enum",
    unit="label",
    origin="swe-chat",
    source="derived",
    priority="P1",
    why="Who writes the code: the person, the agent, or both.",
    pitfalls="A cut through a continuous share; 98 and 99 percent are neighbours.",
)
def coding_mode(why: Evidence, agent_percentage: float) -> str:
    """human_only at 0 percent of agent lines, vibe_coding from 99, collaborative between."""
    why.rule("0: human_only; 99 and more: vibe_coding; otherwise collaborative")
    if agent_percentage <= 0:
        return "human_only"
    return "vibe_coding" if agent_percentage >= VIBE_PERCENT else "collaborative"
