"""Loop detection: calls that an agent repeats in vain, counted call by call, so that a watcher can ask while it works.

Five counts for each thread, reset when a person speaks. One that reaches its limit is an alarm; docs/watch.md has the
choice of the limits, and how often an alarm is right.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Literal, get_args

import msgspec
from msgspec import Struct, field

from agentsignals.changes.hunks import edit_texts
from agentsignals.model import Session, ToolCall, decode_roles
from agentsignals.model.lazy import deferred_pattern

Kind = Literal["failing", "alike", "same", "undone", "mostly"]
"""`failing`: failures of one thing (`thing`) with no success of it between. `alike`: failing calls with one result,
whatever they were. `same`: equal calls with equal results and no edit between. `undone`: edits that put back what an
edit had taken away. `mostly`: failures among the last ten calls."""
KINDS: tuple[Kind, ...] = get_args(Kind)
LATELY = 10
"""Calls in which `mostly` counts failures."""
UNREPEATABLE = frozenset(("plan", "task", "ask"))
"""Classes whose calls are the same by nature: a to-do list is rewritten, a question asked again."""
_UNDONE = frozenset(("none", "rejected", "cancelled"))
"""Statuses of calls that never ran, or that the person stopped."""
STATUS = deferred_pattern(r"(?:cd \S+ *(?:&&|;) *)?(?:git (?:-\S+ )*(?:status|log|diff)|ls|pwd)\b")
"""Commands that look around, which nobody makes in vain."""
_FOLDER = deferred_pattern(r"\s*cd \S+ *(?:&&|;)\s*")
_NUMBERS = deferred_pattern(r"\d+")
_END_CHARS = 2_000
"""Characters compared at either end of a result."""
_SMALL_CHARS = 8
"""A text put back that is shorter (a bracket, a blank line) is no circle; a result that is shorter is like many."""


class Count(Struct, frozen=True, kw_only=True):
    """Number of repetitions of a thing when a call's result is there."""

    kind: Kind
    times: int
    seq: int
    """The call."""
    name: str
    """Its tool."""
    thing: str
    """The repeated thing (`thing`); the file of an edit that was undone."""


class _Thread(Struct, kw_only=True):
    """State of a thread since a person last spoke."""

    failing: dict[str, int] = field(default_factory=dict)
    alike: dict[str, int] = field(default_factory=dict)
    same: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Keyed by call: times, edits before, result."""
    undone: dict[str, int] = field(default_factory=dict)
    taken: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """The edits keyed by file: the old text and the new."""
    lately: deque[bool] = field(default_factory=lambda: deque(maxlen=LATELY))


def counts(session: Session) -> Iterator[Count]:
    """Yield a count for each call that repeats something, in order of the calls."""
    by_seq = {e.seq: e for e in session.events}
    spoken = sorted(t.seq for t in session.turns)
    failed = {call.seq for call in session.tool_calls if call.status == "error"}
    edited = sorted({e.seq for e in session.edits} - failed)  # what fails again writes again what it wrote before
    threads: dict[tuple[str, int], _Thread] = defaultdict(_Thread)
    for call in session.tool_calls:
        if call.class_ not in UNREPEATABLE and call.purpose != "poll" and call.status not in _UNDONE:
            thread = threads[call.thread, bisect_left(spoken, call.seq)]
            event = by_seq.get(call.result_seq) if call.result_seq is not None else None
            text = (event.text or "") if event is not None else ""
            if len(text) > 2 * _END_CHARS:
                text = f"{text[:_END_CHARS]}\0{text[-_END_CHARS:]}"
            # Numbers (seconds, lines) differ between two runs of the same command.
            yield from _counted(call, thread, bisect_left(edited, call.seq), _NUMBERS.sub("0", text))


def alarms(session: Session, limits: Mapping[str, int]) -> Iterator[Count]:
    """Yield the counts that reach their limit, or a multiple of it."""
    for count in counts(session):
        limit = limits.get(count.kind, 0)
        if limit and count.times % limit == 0:
            yield count


def standing(session: Session, limits: Mapping[str, int]) -> Count | None:
    """Return the alarm that the last call with a result raises; None where it raises none."""
    tried = [call.seq for call in session.tool_calls if call.status not in _UNDONE]
    return next((alarm for alarm in alarms(session, limits) if alarm.seq == tried[-1]), None)


def _counted(call: ToolCall, thread: _Thread, edited: int, result: str) -> Iterator[Count]:
    """Yield what a call repeats in its thread: failures of one thing, equal results, equal calls."""
    failed = call.status == "error"
    what = thing(call)
    thread.lately.append(failed)

    def count(kind: Kind, times: int, what: str = what) -> Count:
        return Count(kind=kind, times=times, seq=call.seq, name=call.name, thing=what)

    if failed:
        thread.failing[what] = thread.failing.get(what, 0) + 1
        yield count("failing", thread.failing[what])
        if len(result) >= _SMALL_CHARS:
            thread.alike[result] = thread.alike.get(result, 0) + 1
            yield count("alike", thread.alike[result])
        yield count("mostly", sum(thread.lately))
    else:
        thread.failing.pop(what, None)
    if call.class_ == "edit" and not failed:
        path = call.path or ""
        edits, restored = thread.taken[path], 0
        for text in edit_texts(call.arguments, call.argument_roles):
            if text.kind == "replace" and max(len(text.old), len(text.new)) >= _SMALL_CHARS and text.old != text.new:
                restored += (text.new, text.old) in edits
                edits.add((text.old, text.new))
        for _ in range(restored):
            thread.undone[path] = thread.undone.get(path, 0) + 1
            yield count("undone", thread.undone[path], path)
    elif call.command is None or not STATUS.match(call.command):
        key = signature(call)
        times, *before = thread.same.get(key, (0, edited, result))
        times = times + 1 if before == [edited, result] else 1
        thread.same[key] = times, edited, result
        if times > 1:
            yield count("same", times)


def thing(call: ToolCall) -> str:
    """Return the coarse subject of a call: a command's first two words, else the tool and the file."""
    if call.command is not None:
        return " ".join(_FOLDER.sub("", call.command, count=1).split(maxsplit=2)[:2])
    return f"{call.name} {call.path or ''}"


def signature(call: ToolCall) -> str:
    """Return a text that is equal for equal requests: a command as it runs, else the arguments in any order."""
    if call.command is not None:
        return f"{call.name}\0{single_spaced(call.command)}"
    return f"{call.name}\0{canonical(call.arguments, decode_roles(call.argument_roles).manner)!r}"


def single_spaced(command: str) -> str:
    """Return a command with single spaces between its words."""
    if "\n" in command or "  " in command or "\t" in command:
        return " ".join(command.split())
    return command


def canonical(arguments: str, manner: tuple[str, ...]) -> object:
    """Return the arguments as sorted JSON, without those on how a command runs; as logged when they are no object."""
    try:
        passed = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if not isinstance(passed, dict):
        return arguments
    if manner:
        passed = {k: single_spaced(v) if isinstance(v, str) else v for k, v in passed.items() if k not in manner}
    return msgspec.json.encode(passed, order="sorted")
