"""Reasoning: the phases of the work, and how much the model thought."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent, Event
from agentsignals.model.times import to_iso
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.text import estimate_tokens

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
_THINK_TAG = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)


class _State(Struct):
    """What a phase event says: `{"event": "plannotator-phase", "phase": …}` on stdout, the extension's state in Pi."""

    event: object = None
    phase: object = None
    data: object = None


_decode = msgspec.json.Decoder(_State).decode


@signal(
    "reasoning.plannotator_phases[]",
    type="list[obj]",
    unit="events",
    context="both",
    level="attempt",
    version=2,
    origin="Agent Signals",
    harness=True,
    pitfalls="The public extension has other phases than the harness has: `phase_raw` keeps the word, `phase`"
    " is null for idle and for words nobody mapped."
    " No value on the project's corpus.",
    why="Phases the agent itself announced; nothing is inferred.",
)
def plannotator_phases(view: SessionView, why: Evidence) -> Measured | Absent:
    """Phase events in order: the word used, the phase it means, time, line, and where it came from."""
    attempt = view.session.attempt
    rows = [(event, row) for event in view.by_kind.get("phase", []) if (row := _announced(event)) is not None]
    kept = "phases_logged" in view.session.conventions or (attempt is not None and "stdout" in attempt.kinds)
    if not rows and not kept:
        return Absent("missing_artifact", "stdout")
    why.support(event for event, _ in rows)
    why.rule("events that announce a phase as JSON")
    return Measured([row for _, row in rows], {"instrumented": bool(rows)})


@signal(
    "reasoning.phase_transitions[]",
    type="list[str]",
    unit="labels",
    context="both",
    level="attempt",
    version=2,
    origin="Agent Signals",
    harness=True,
    pitfalls="With method heuristic the phases are guessed from the calls, looking ahead to the next edit: never pool"
    " the two methods.",
)
def phase_transitions(
    view: SessionView, why: Evidence, plannotator_phases: list[dict[str, Any]] | Absent
) -> Measured | Absent:
    """Phases of the work with repeats collapsed: explore, localize, implement, verify."""
    rows = [] if isinstance(plannotator_phases, Absent) else plannotator_phases
    announced = [row["phase"] for row in rows if row["phase"]]
    if announced:
        why.support(view.by_kind.get("phase", []))
        return Measured(_collapsed(announced), {"method": "plannotator"})
    if not view.calls:
        return Absent("missing_artifact", "no_phases_and_no_calls")
    segments = _segments(_labels(view))
    calls: dict[str, int] = {}
    for phase, first, last in segments:
        calls[phase] = calls.get(phase, 0) + last - first + 1
    for phase in calls:
        why.support((view.calls[first] for p, first, _ in segments if p == phase), f"{phase} from")
    why.rule("phases guessed from tool calls (design/signals.md#phases)")
    return Measured([phase for phase, _, _ in segments], {"method": "heuristic", "calls": calls})


@signal(
    "reasoning.has_reasoning_blocks",
    type="bool",
    unit="flag",
    context="both",
    level="attempt",
    origin="Agent Signals",
    priority="P1",
    pitfalls="Presence says little, the length more. `redacted`: blocks are there, their text was not kept.",
)
def has_reasoning_blocks(view: SessionView, why: Evidence) -> Measured | Absent:
    """Whether the model thought in the open on the main thread: a thinking block, or text between <think> tags."""
    blocks = view.by_kind.get("thinking", [])
    reasoning: Sequence[Event] = blocks or [e for e in view.by_kind.get("text", []) if e.text and "<think>" in e.text]
    if not reasoning and "thinking_not_logged" in view.session.conventions:
        return Absent("missing_field", "format_records_no_thinking")
    why.support(reasoning)
    why.denominator(view.steps)
    return Measured(
        bool(reasoning),
        {"blocks": len(reasoning), "redacted": bool(reasoning) and all(e.n_chars == 0 for e in reasoning)},
    )


@signal(
    "reasoning.reasoning_tokens_total",
    type="int",
    unit="tokens",
    context="both",
    level="attempt",
    origin="Agent Signals",
    priority="P1",
    pitfalls="Method chars4 is an estimate from text that providers may have shortened or dropped. More is not better.",
)
def reasoning_tokens_total(view: SessionView, why: Evidence) -> Measured | Absent:
    """Reasoning tokens of the main thread: as the provider reports them (usage), else characters of thinking / 4."""
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
    """What a phase event announces; None when it is of another kind, such as a client's switch of modes."""
    try:
        announcement = _decode(event.text or "")
    except msgspec.DecodeError:
        return None
    phase = (
        announcement.data.get("phase")
        if isinstance(announcement.data, dict) and announcement.phase is None
        else announcement.phase
    )
    if not isinstance(phase, str):
        return None
    return {
        "phase_raw": phase,
        "phase": PHASE_MAP.get(phase.strip().lower()),
        "ts": to_iso(event.timestamp),
        "line_no": event.line,
        "source": "stdout" if announcement.event == "plannotator-phase" else "custom_message",
    }


def _collapsed(labels: Sequence[str]) -> list[str]:
    return [label for n, label in enumerate(labels) if n == 0 or labels[n - 1] != label]


def _labels(view: SessionView) -> list[str | None]:
    """A phase for each main-thread call; None before the first call that has one (design/signals.md#phases)."""
    labels: list[str | None] = []
    current: str | None = None
    edited = False
    changed = view.changed_files
    for call, class_, files in zip(view.calls, view.classes, _next_edited(view), strict=True):
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


def _next_edited(view: SessionView) -> list[set[str]]:
    """For each call the files of the next call that changed the repository, which may be the call itself."""
    changed = view.changed_files
    following: set[str] = set()
    if not changed:
        return [following] * len(view.calls)
    next_edits = []
    for call in reversed(view.calls):
        following = changed.get(call.seq, following)
        next_edits.append(following)
    next_edits.reverse()
    return next_edits


def _segments(labels: list[str | None]) -> list[tuple[str, int, int]]:
    """Runs of a phase (phase, first call, last call); a glance of one call inside another phase is part of that."""
    runs: list[tuple[str, int, int]] = []
    start = 0
    for label, members in groupby(labels):
        end = start + len(list(members))
        if label is not None:
            runs.append((label, start, end - 1))
            while len(runs) > 2 and _is_glance(runs[-2]) and runs[-3][0] == label:
                after, _, before = runs.pop(), runs.pop(), runs.pop()
                runs.append((label, before[1], after[2]))
        start = end
    return runs


def _is_glance(run: tuple[str, int, int]) -> bool:
    return run[0] in _GLANCES and run[1] == run[2]
