"""The agent's reasoning: phases of the work, plans, self-corrections."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.model import Absent, Event, ToolCall, decode_roles, to_iso
from agentsignals.model.lazy import deferred_pattern
from agentsignals.signals import Measured, signals_with
from agentsignals.views.session import Evidence, SessionView
from agentsignals.words.lexicon import other_language, seed_self_corrections
from agentsignals.words.lexicon import self_corrections as found_self_corrections
from agentsignals.words.text import estimate_tokens, word_lists

signal = signals_with(context="both", level="attempt", priority="P1", origin="Agent Signals")

PHASE_MAP = {
    "explore": "explore",
    "localize": "localize",
    "implement": "implement",
    "verify": "verify",
    "planning": "localize",
    "executing": "implement",
    "reviewing": "verify",
}
"""Phases as emitters name them (a private harness; the public Plannotator extension) and as they are compared."""
_LOOKING = frozenset(("read", "search"))
_CHANGING = frozenset(("edit", "shell_write"))
_CHECKING = frozenset(("test", "build"))
_GLANCES = ("explore", "localize")
_THINK_TAG = deferred_pattern(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)


class _State(Struct):
    """A phase event: `{"event": "plannotator-phase", "phase": …}` on stdout, or the extension's state in Pi."""

    event: object = None
    phase: object = None
    data: object = None


_decode = msgspec.json.Decoder(_State).decode


@signal("reasoning.plannotator_phases[]", "list[obj]", "events", version=2, priority="P0", harness=True)
def plannotator_phases(view: SessionView, why: Evidence) -> Measured | Absent:
    """Phase events in order: the word used, the phase it means, time, line, and where it came from.

    Main-thread events of kind phase whose text is JSON with `phase`. Keys: phase_raw; phase (planning is localize,
    executing implement, reviewing verify; explore, localize, implement and verify are themselves); ts; line_no; source
    (stdout for event plannotator-phase, else custom_message). Absent where there is none, `sessions.conventions` lacks
    phases_logged, and no stdout was collected.

    Pitfalls: The public extension has other phases than the harness has: `phase_raw` keeps the word, `phase` is null
    for idle and for words nobody mapped. No value on the project's corpus.
    Why: Phases the agent itself announced; nothing is inferred.
    """
    attempt = view.session.attempt
    rows = [(event, row) for event in view.by_kind.get("phase", []) if (row := _announced(event)) is not None]
    kept = "phases_logged" in view.session.conventions or (attempt is not None and "stdout" in attempt.kinds)
    if not rows and not kept:
        return Absent("missing_artifact", "stdout")
    why.support(event for event, _ in rows)
    why.rule("events that announce a phase as JSON")
    return Measured([row for _, row in rows], {"instrumented": bool(rows)})


@signal("reasoning.phase_transitions[]", "list[str]", "labels", version=2, priority="P0", harness=True)
def phase_transitions(
    view: SessionView, why: Evidence, plannotator_phases: list[dict[str, Any]] | Absent
) -> Measured | Absent:
    """Phases of the work with repeats collapsed: explore, localize, implement, verify.

    Announced phases, else by main-thread call: read or search is localize where its `path` is among the files of
    the next call that changes the repository, else explore (not within verify; a read within localize stays there).
    edit or shell_write of the repository is implement. test or build is verify after the first change, else
    explore. Other calls keep the phase. Successive equal phases are one; a single call of explore or localize
    between two runs of one phase joins them. Absent without announced phases and calls.

    Pitfalls: With method heuristic the phases are guessed from the calls, looking ahead to the next edit: never pool
    the two methods.
    """
    rows = [] if isinstance(plannotator_phases, Absent) else plannotator_phases
    announced = [row["phase"] for row in rows if row["phase"]]
    if announced:
        why.support(view.by_kind.get("phase", []))
        return Measured([phase for phase, _ in groupby(announced)], {"method": "plannotator"})
    if not view.calls:
        return Absent("missing_artifact", "no_phases_and_no_calls")
    # Runs of a phase (phase, first call, last call); one call of looking inside another phase joins that.
    segments: list[tuple[str, int, int]] = []
    start = 0
    for label, members in groupby(_phases_of_calls(view)):
        end = start + len(list(members))
        if label is not None:
            segments.append((label, start, end - 1))
            while len(segments) > 2 and segments[-3][0] == label and segments[-2][0] in _GLANCES:
                after, glance, before = segments[-1], segments[-2], segments[-3]
                if glance[1] != glance[2]:
                    break
                segments[-3:] = [(label, before[1], after[2])]
        start = end
    calls: dict[str, int] = {}
    for phase, first, last in segments:
        calls[phase] = calls.get(phase, 0) + last - first + 1
    for phase in calls:
        why.support((view.calls[first] for p, first, _ in segments if p == phase), f"{phase} from")
    why.rule("phases guessed from tool calls (design/signals.md#phases)")
    return Measured([phase for phase, _, _ in segments], {"method": "heuristic", "calls": calls})


@signal("reasoning.has_reasoning_blocks", "bool", "flag")
def has_reasoning_blocks(view: SessionView, why: Evidence) -> Measured | Absent:
    """Whether the model thought in the open on the main thread: a thinking block, or text between <think> tags.

    True for a main-thread event of kind thinking, or a text event with `<think>`. Absent where there is none and
    `sessions.conventions` has thinking_not_logged.

    Pitfalls: Presence says little, the length more. `redacted`: blocks are there, their text was not kept.
    """
    blocks = view.by_kind.get("thinking", [])
    reasoning: Sequence[Event] = blocks or [e for e in view.by_kind.get("text", []) if e.text and "<think>" in e.text]
    if not reasoning and "thinking_not_logged" in view.session.conventions:
        return Absent("missing_field", "format_records_no_thinking")
    why.support(reasoning)
    why.denominator(view.steps)
    redacted = bool(reasoning) and all(e.n_chars == 0 for e in reasoning)
    return Measured(bool(reasoning), {"blocks": len(reasoning), "redacted": redacted})


@signal("reasoning.reasoning_tokens_total", "int", "tokens")
def reasoning_tokens_total(view: SessionView, why: Evidence) -> Measured | Absent:
    """Reasoning tokens of the main thread: as the provider reports them (usage), else characters of thinking / 4.

    Sum of `steps.reasoning_tokens` of the main thread where any has it; else ceil(n_chars / 4) of all thinking events,
    or of the text between <think> tags. Absent where all thinking events are empty, and as
    reasoning.has_reasoning_blocks.

    Pitfalls: Method chars4 is an estimate from text that providers may have shortened or dropped. More is not better.
    """
    reported = [s for s in view.steps if s.reasoning_tokens is not None]
    if reported:
        why.support(reported)
        why.bill(reported, {"reasoning"})
        return Measured(sum(s.reasoning_tokens or 0 for s in reported), {"method": "usage"})
    blocks = view.by_kind.get("thinking", [])
    tagged = [] if blocks else [e for e in view.by_kind.get("text", []) if e.text and "<think>" in e.text]
    if not blocks and not tagged and "thinking_not_logged" in view.session.conventions:
        return Absent("missing_field", "format_records_no_thinking")
    redacted = sum(e.n_chars == 0 for e in blocks)
    if blocks and redacted == len(blocks):
        why.counter(blocks, "no text kept")
        return Absent("missing_field", "all_blocks_redacted")
    why.support([*blocks, *tagged])
    why.denominator(view.steps)
    chars = sum(e.n_chars for e in blocks) + sum(len(t) for e in tagged for t in _THINK_TAG.findall(e.text or ""))
    return Measured(estimate_tokens(chars), {"method": "chars4", "redacted_blocks": redacted})


def _announced(event: Event) -> dict[str, Any] | None:
    """Return the phase that an event announces; None for other events, such as a client's switch of modes."""
    try:
        announcement = _decode(event.text or "")
    except msgspec.DecodeError:
        return None
    phase, data = announcement.phase, announcement.data
    if phase is None and isinstance(data, dict):
        phase = data.get("phase")
    if not isinstance(phase, str):
        return None
    return {
        "phase_raw": phase,
        "phase": PHASE_MAP.get(phase.strip().lower()),
        "ts": to_iso(event.timestamp),
        "line_no": event.line,
        "source": "stdout" if announcement.event == "plannotator-phase" else "custom_message",
    }


def _phases_of_calls(view: SessionView) -> list[str | None]:
    """Return a phase for each main-thread call; None before the first that has one (design/signals.md#phases)."""
    # For each call the files of the next call that changed the repository, which may be the call itself.
    changed = view.changed_files
    next_edited: list[set[str]] = []
    following: set[str] = set()
    for call in reversed(view.calls):
        following = changed.get(call.seq, following)
        next_edited.append(following)
    labels: list[str | None] = []
    current: str | None = None
    edited = False
    for call, class_, files in zip(view.calls, view.classes, reversed(next_edited), strict=True):
        if class_ in _LOOKING:
            if files and call.path is not None and call.path in files:
                current = "localize"
            elif current != "verify" and not (current == "localize" and class_ == "read"):
                current = "explore"
        elif class_ in _CHANGING:
            # A plan written to the home folder is no implementation: it opens no phase.
            current = "implement" if call.path is None or view.in_repo(call.path) else current
            edited = edited or call.seq in changed
        elif class_ in _CHECKING:
            current = "verify" if edited else "explore"
        labels.append(current)
    return labels


_CODE = deferred_pattern(r"\n[ \t>]*```[^`\n]*(?=\n|\Z)")
_NUMBERED = deferred_pattern(
    r"\n[ \t]{0,6}(?:\*\*|#{1,4} )?(?:step |phase |task )?\d{1,2}[.):]\s+(?:\*\*)?(.{0,60})", re.IGNORECASE
)
_BULLET = deferred_pattern(r"\n[ \t]{0,6}(?:[-*\u2022]|(?:- )?\[[ xX]\])[ \t]+(?:\*\*)?(.{0,60})")
_LISTED = deferred_pattern(r"\n {0,1}(?:\d{1,2}[.)]|[-*\u2022])[ \t]+\S")
_BEGINS = deferred_pattern(
    r"(?:step \d+[:.]? ?)?(?:\[[ x]\] )?"
    r"(?:(?:first|then|next|finally),? |i'll |i will |we'll |we will |let me |need to )?([a-z]+)"
)
_ACTIONS = frozenset(word_lists("requests")["plan_verbs"].split())
"""First words of a plan's steps; a finding does not begin with one."""


@signal("reasoning.plan_steps_detected", "int", "steps", source="regex")
def plan_steps_detected(view: SessionView, why: Evidence) -> Measured | Absent:
    """Steps of the plan the agent gave in its first response before it changed anything: in text, as to-dos, or a plan
    shown for approval; the most of these.

    Before the first call of fine class edit or shell_write in turn 0. In a text: numbered items, if half of them
    begin with a verb of action, or bullets that do. By tool: items of the first to-do list or plan; tasks added one
    by one are one plan. The value is the largest count; 0 without any, and absent where an agent that writes another
    language than English planned by no tool.

    Pitfalls: Fragile: a soft feature only. The source's count, of the first message alone (`text_steps`), is zero in
    nearly all sessions.
    Why: Whether the agent planned before it acted.
    """
    first = view.responses[0] if view.turns else view.events
    turn = view.turns[0].turn if view.turns else None
    classes = zip(view.calls, view.classes, strict=True)
    until = next((c.seq for c, class_ in classes if c.turn == turn and class_ in _CHANGING), math.inf)
    texts = [e for e in first if e.kind == "text" and e.text and e.seq < until]
    calls = [c for c in view.calls if c.class_ == "plan" and c.turn == turn and c.seq < until]
    steps = [(_steps(e.text or ""), e) for e in texts]
    # Plans by tool; tasks that are created one by one make one plan.
    created = [c for c in calls if c.purpose == "add_task"]
    planned = [(len(created), c) for c in created[-1:]]
    for call in calls:
        if n := _items(call):
            planned.append((n, call))
            if call.purpose != "plan_handoff":
                break  # a later list is the plan revised
    if not planned and (other := other_language(view.prose)) is not None:
        return other
    why.support((e for n, e in steps if n), "a list of steps:")
    why.support((c for _, c in planned), "a plan by tool:")
    why.rule("lists whose items begin with an action, before the first edit; the largest count")
    counts = [n for n, _ in steps] + [n for n, _ in planned]
    return Measured(max(counts, default=0), {"text_steps": steps[0][0] if steps else 0})


def _steps(text: str) -> int:
    """Count the steps of a plan in a message: numbered, if half of them begin with an action, or bullets that do."""
    text = "\n" + text
    if "```" in text:
        text = "\n".join(_CODE.split(text)[::2])
    numbered = [_is_action(item) for item in _NUMBERED.findall(text)]
    bullets = sum([_is_action(item) for item in _BULLET.findall(text)])
    return max(len(numbered) if 2 * sum(numbered) >= len(numbered) else 0, bullets)


def _is_action(item: str) -> bool:
    match = _BEGINS.match(item.lower())
    return match is not None and match[1] in _ACTIONS


def _items(call: ToolCall) -> int:
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return 0  # arguments cut off or of another shape hold no plan that could be read
    roles = decode_roles(call.argument_roles)
    listed = next((x for name in (*roles.steps, *roles.plan) if (x := arguments.get(name))), None)
    if isinstance(listed, str):
        return len(_LISTED.findall("\n" + listed))
    return len(listed) if isinstance(listed, list) else 0


@signal("reasoning.self_correction_count", "int", "matches", version=3, source="regex")
def self_correction_count(view: SessionView, why: Evidence, has_reasoning_blocks: bool | Absent) -> Measured | Absent:
    """Sentences of the main thread's thinking and prose in which the agent takes back what it said or did ("Wait,
    that's not"): those with a match of the pattern table `self_corrections`.

    Absent where reasoning.has_reasoning_blocks is, and where the agent writes another language.

    Pitfalls: The sign is ambiguous: read it with the outcome. Models that hide their thinking show few.
    Why: The agent notices its own mistakes, or repeats them.
    """
    if isinstance(has_reasoning_blocks, Absent):
        return Absent("missing_field", has_reasoning_blocks.detail)
    for prose in (view.prose, view.thoughts):
        if (other := other_language(prose)) is not None:
            return other
    counts = []
    for prose in (view.thoughts, view.prose):
        spans = prose.spans(found_self_corrections)
        why.matches(prose.matches(spans))
        counts.append(len(spans))
    literal = len(seed_self_corrections(view.thoughts)) + len(seed_self_corrections(view.prose))
    return Measured(sum(counts), {"thinking": counts[0], "text": counts[1], "seed_literal": literal})
