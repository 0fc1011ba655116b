"""Edits and plans that a person refused in a session, what came in their place, and the person's words
(docs/training.md).

A refusal makes a pair if the person said why and the agent then changed the same place another way, or had another plan
accepted. Other refused calls and interruptions were tried as well; fewer than half of their pairs were judgements.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
from msgspec import Struct

from agentsignals.changes.hunks import TRIVIAL_CHARS, edit_texts, patched
from agentsignals.model import MAIN, RAN, Event, Session, ToolCall, decode_roles

Rule = Literal["refused_edit", "refused_plan"]
RULES: tuple[Rule, ...] = get_args(Rule)
READ: dict[Rule, tuple[int, int]] = {"refused_edit": (15, 18), "refused_plan": (14, 15)}
"""Pairs of sessions that the rules' author had not seen: how many are right, of how many that were read."""
SAME_PLACE = 0.5
"""Share of the lines of the shorter of two changes that the other has too, from which both are of one place."""
_OF_AGENT = ("text", "thinking", "tool_call")
_SAID = ("prompt", "queued_prompt", "rejection_feedback")


class Refusal(Struct, frozen=True, kw_only=True):
    """A refused edit or plan of the main thread."""

    rule: Rule
    refused: ToolCall
    words: Event | None = None
    """What the person said to it."""
    kept: ToolCall | None = None
    """The call that came in its place; None if there is no pair."""
    why_no_pair: str = ""


def refusals(session: Session) -> list[Refusal]:
    calls = [call for call in session.tool_calls if call.thread == MAIN]
    refused = [(rule, call) for call in calls if call.status == "rejected" and (rule := _rule(call)) is not None]
    said = {turn.seq for turn in session.turns if turn.kind in _SAID}
    words = {call.seq: _words_after(session, call, said) for _, call in refused}
    made = []
    for rule, call in refused:
        spoken = words[call.seq]
        if spoken is None:
            made.append(Refusal(rule=rule, refused=call, why_no_pair="the person said nothing"))
            continue
        # The person's answers to further refusals of the same thing go on with the matter.
        alike = [c for r, c in refused if r == rule and (rule == "refused_plan" or _files(c) & _files(call))]
        same = {w.seq for c in alike if (w := words[c.seq]) is not None}
        end = next((t.seq for t in session.turns if t.seq > spoken.seq and t.seq not in same), len(session.events))
        later = [c for c in calls if spoken.seq < c.seq < end and c.status in RAN and _rule(c) == rule]
        kept = next((c for c in later if rule == "refused_plan" or _same_place(c, call)), None)
        why = "" if kept is not None else "nothing took its place in the person's turn"
        if kept is not None and texts(kept) == texts(call):
            kept, why = None, "the same was accepted afterwards"
        made.append(Refusal(rule=rule, refused=call, words=spoken, kept=kept, why_no_pair=why))
    return made


def _rule(call: ToolCall) -> Rule | None:
    if call.purpose == "plan_handoff":
        return "refused_plan"
    return "refused_edit" if call.class_ == "edit" else None


def _words_after(session: Session, call: ToolCall, said: set[int]) -> Event | None:
    """Return the person's words after a refusal, before the agent goes on. Calls that were asked for in the same step
    do not count as going on."""
    for event in session.events[call.seq + 1 :]:
        if event.thread == MAIN and event.kind == "human_turn":
            return event if event.seq in said else None
        if event.thread == MAIN and event.kind in _OF_AGENT and (event.step is None or event.step != call.step):
            return None
    return None


def texts(call: ToolCall) -> tuple[str, str]:
    """Return the text that an edit replaces and the one that it writes; of a plan nothing and its words."""
    if call.class_ == "edit":
        changes: list[tuple[str, str]] = []
        for text in edit_texts(call.arguments, call.argument_roles):
            files = patched(text.new, diffs=True) if text.kind == "patch" else []
            changes += [pair for file in files for pair in file.texts] if files else [(text.old, text.new)]
        return "\n".join(old for old, _ in changes), "\n".join(new for _, new in changes)
    try:
        passed = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        passed = None
    plans = [passed.get(name) for name in decode_roles(call.argument_roles).plan] if isinstance(passed, dict) else []
    return "", next((plan for plan in plans if isinstance(plan, str)), call.arguments)


def _files(call: ToolCall) -> set[str | None]:
    """Return the files that an edit names: those of a patch, which may be several, else the one of the call."""
    patches = [text.new for text in edit_texts(call.arguments, call.argument_roles) if text.kind == "patch"]
    return {file.path for patch in patches for file in patched(patch, diffs=True)} or {call.path}


def _same_place(one: ToolCall, other: ToolCall) -> bool:
    """Return whether two edits are of one place in a file: by the lines that they replace, else by all of them."""
    if not _files(one) & _files(other):
        return False
    (old, new), (their_old, their_new) = map(texts, (one, other))
    mine, theirs = _lines(old), _lines(their_old)
    if not mine or not theirs:
        mine, theirs = mine | _lines(new), theirs | _lines(their_new)
    least = min(len(mine), len(theirs))
    return least > 0 and len(mine & theirs) >= SAME_PLACE * least


def _lines(text: str) -> set[str]:
    return {line for row in text.split("\n") if len(line := row.strip()) > TRIVIAL_CHARS}
