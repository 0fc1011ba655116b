"""A session's events as a reader follows them: turns, calls with their results, subagents folded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from agentsignals.model import ABANDONED, MAIN, REPLAYED, Edit, Event, Session, ToolCall, Turn
from agentsignals.model.times import to_iso

BRIEF_CHARS = 600
"""A text up to this length is shown at once; of a longer one the beginning, the rest behind a click."""
MOST_CHARS = 20_000
"""No more of one text is sent; the artifact has it all."""
_ASIDE = frozenset(("thinking", "meta", "harness", "notification", "command_output", "hook_block", "unknown"))
_THREADS = {ABANDONED: "a branch that was given up", REPLAYED: "a history copied from another session"}


class Entry(Struct, kw_only=True):
    """One event as it is shown."""

    seq: int
    kind: str
    clock: str
    text: str
    brief: str
    """The beginning of a text that is folded; empty when it is shown whole."""
    cut_chars: int
    """Characters that were left out."""
    line: int
    turn: Turn | None = None
    call: ToolCall | None = None
    about: str = ""
    """What a call is about: its command, path or arguments."""
    result: Entry | None = None
    edits: list[Edit] = []
    aside: bool = False
    here: bool = False
    """Whether the reader was sent to it."""


class Block(Struct):
    """Entries of one thread in a row."""

    thread: str
    name: str
    """Who did it, when it was not the agent itself."""
    entries: list[Entry]
    open: bool

    @property
    def folded(self) -> bool:
        return self.thread != MAIN

    @property
    def n_calls(self) -> int:
        return sum(entry.call is not None for entry in self.entries)


def homes(session: Session) -> dict[int, int]:
    """The event under which each result of a call is shown."""
    return {c.result_seq: c.seq for c in session.tool_calls if c.result_seq is not None}


def blocks(session: Session, events: Sequence[Event], at: int = -1) -> list[Block]:
    """These events of a session, in order; `at` is the one that the reader was sent to."""
    calls = {call.seq: call for call in session.tool_calls}
    results = homes(session)
    edits: dict[int, list[Edit]] = defaultdict(list)
    for edit in session.edits:
        edits[edit.seq].append(edit)
    result = []
    for thread, of_thread in groupby(events, key=lambda event: event.thread):
        entries = [
            _entry(session, event, calls.get(event.seq), edits.get(event.seq, []), at)
            for event in of_thread
            if event.seq not in results
        ]
        if entries:
            name = "" if thread == MAIN else _THREADS.get(thread, f"subagent {thread}")
            result.append(Block(thread, name, entries, any(_holds(entry, at) for entry in entries)))
    return result


def _entry(session: Session, event: Event, call: ToolCall | None, edits: list[Edit], at: int) -> Entry:
    made = _event_entry(event, at)
    made.edits = edits
    if event.kind == "human_turn" and event.turn is not None and event.turn < len(session.turns):
        made.turn = session.turns[event.turn]
    if call is not None:
        made.call = call
        made.about = call.command or call.path or ("" if call.arguments in ("", "{}") else call.arguments)
        if call.result_seq is not None and 0 <= call.result_seq < len(session.events):
            made.result = _event_entry(session.events[call.result_seq], at)
    return made


def _event_entry(event: Event, at: int) -> Entry:
    text = event.text or ""
    whole = text[:MOST_CHARS]
    left_out = max(event.n_chars, len(text)) - len(whole)
    brief = whole[:BRIEF_CHARS] if len(whole) > BRIEF_CHARS else ""
    clock = (to_iso(event.timestamp) or "")[11:19]
    aside = event.kind in _ASIDE
    return Entry(
        seq=event.seq,
        kind=event.kind,
        clock=clock,
        text=whole,
        brief=brief,
        cut_chars=left_out,
        line=event.line,
        aside=aside,
        here=event.seq == at,
    )


def _holds(entry: Entry, at: int) -> bool:
    events: list[Any] = [entry, entry.result]
    return any(event is not None and event.seq == at for event in events)
