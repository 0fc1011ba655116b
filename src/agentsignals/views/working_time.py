"""Ledger of a session's time: work, waits for the person, and hours in which it was left alone.

Logs record the ends of periods: of a call from its record to its result's, of a model call from what went before to its
text. Some also date the start of a call. Elsewhere a period is work as far back from its end as its kind can take, and
waiting before that, because a call runs once permission is given (design/signals.md#time-at-work).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from msgspec import Struct

from agentsignals.model import MAIN, NO_SUBAGENT, Event, ToolCall, ToolClass
from agentsignals.model.lazy import once
from agentsignals.views.session import OF_AGENT, SessionView

SECOND = 1_000_000
LEFT_ALONE_S = 3600.0
"""A longer wait is a night or a meeting, not a habit: nobody was there to be asked."""
SHORTEST_WAIT_S = 60.0
"""Shorter waits are not listed: a limit by kind does not tell them from a slow call."""
MODEL_S = 600.0
"""Longest duration of a model call, from what went before to its text: the longest that providers' clients wait."""
LONGEST_S: dict[ToolClass, float] = {
    "ask": 0.0,
    "edit": 10.0,
    "plan": 10.0,
    "read": 30.0,
    "search": 30.0,
    "web": 120.0,
    "mcp": 300.0,
    "other": 300.0,
    "shell": 600.0,
    "test": 600.0,
    "task": 1800.0,
}
"""The longest a call of each class takes by itself (design/signals.md#time-at-work has where each is from)."""
_COMMANDS = frozenset(("shell", "test"))
_ASKS = frozenset(("plan_handoff",))
_THREAD = attrgetter("thread")
_READ = frozenset(("tool_result", "human_turn"))
"""Kinds of events that no model call wrote."""
_SPEAKING = OF_AGENT | _READ
_LONGEST_CALL = int(MODEL_S * SECOND)
_LEFT_ALONE = int(LEFT_ALONE_S * SECOND)
_SHORTEST_WAIT = int(SHORTEST_WAIT_S * SECOND)

Span = tuple[int, int]
"""From and to, in microseconds."""


class Time(Struct, frozen=True, kw_only=True):
    """Seconds of a period of a session by activity; they add up to its length."""

    work_s: float
    asked_s: float
    """Waiting for an answer to a question or a plan."""
    calls_s: float
    """With a call open for longer than it can have run: it waited for permission, or the machine slept."""
    silence_s: float
    """With no call open, for longer than a model call takes: the machine slept, or the provider did not answer."""
    left_alone_s: float
    """In waits of more than an hour, of any kind."""

    @property
    def waiting_s(self) -> float:
        return self.asked_s + self.calls_s + self.silence_s


class Wait(NamedTuple):
    """A wait of a minute to an hour with a question or a call open, and the call that ended it."""

    call: ToolCall
    seconds: float


class _Open(NamedTuple):
    """A call without the time in which it ran: from its record to the moment from which it counts as work."""

    start: int
    until: int
    end: int
    call: ToolCall


def longest_s(call: ToolCall) -> float:
    """Return how long a call can have run with its hooks, in seconds: as its log says, else its time limit, else that
    of its kind."""
    if call.status == "rejected" or call.purpose in _ASKS:
        return 0.0
    hooks_s = call.hooks_s or 0.0
    if call.ran_s is not None:
        return call.ran_s + hooks_s
    most = LONGEST_S[call.class_]
    if call.limit_s is not None:
        most = call.limit_s if call.class_ in _COMMANDS else min(call.limit_s, most)
    if call.not_before is not None and call.ended_at is not None:
        return max(0.0, min(most + hooks_s, (call.ended_at - call.not_before) / SECOND))
    return most + hooks_s


def longest_sql() -> str:
    """Return SQL over `tool_calls` for `longest_s`."""
    by_kind = " ".join(f"WHEN '{class_}' THEN {seconds}" for class_, seconds in LONGEST_S.items())
    commands = ", ".join(f"'{class_}'" for class_ in sorted(_COMMANDS))
    limit = (
        f"coalesce(CASE WHEN class IN ({commands}) THEN limit_s END,"
        f" least(coalesce(limit_s, 1e9), CASE class {by_kind} END)) + coalesce(hooks_s, 0)"
    )
    return (
        "CASE WHEN status = 'rejected' OR purpose = 'plan_handoff' THEN 0"
        " WHEN ran_s IS NOT NULL THEN ran_s + coalesce(hooks_s, 0)"
        f" ELSE greatest(0, least({limit}, coalesce(epoch(ended_at) - epoch(not_before), 1e9))) END"
    )


class Clock:
    """The times of a session: of its main thread, and of what subagents did meanwhile."""

    def __init__(self, view: SessionView) -> None:
        session = view.session
        subagents = {e.thread for e in session.events} - NO_SUBAGENT
        if subagents:
            subagents &= {e.thread for e in session.events if e.timestamp is not None}
        heeded = {MAIN, *subagents}
        work: list[Span] = []
        asked: list[Span] = []
        called: list[Span] = []
        self._open: list[_Open] = []
        for call in session.tool_calls:
            start, end = call.started_at, call.ended_at
            if start is None or end is None or end <= start or call.thread not in heeded:
                continue
            # A subagent that is logged tells by itself when it worked.
            longest = 0.0 if call.class_ == "task" and call.thread == MAIN and subagents else longest_s(call)
            until = max(start, end - int(longest * SECOND))
            work.append((until, end))
            (asked if call.class_ == "ask" or call.purpose in _ASKS else called).append((start, end))
            if until - start >= _SHORTEST_WAIT:
                self._open.append(_Open(start, until, end, call))
        if subagents:
            sent = [at for c in session.tool_calls if c.class_ == "task" and (at := c.started_at) is not None]
            events = sorted([e for e in session.events if e.thread in heeded], key=_THREAD)
            for _, of_thread in groupby(events, _THREAD):
                work += _written(of_thread, sent)
        else:
            work += _written(view.events, [])
        self._work, self._asked, self._called = _united(work), _united(asked), _united(called)
        for spans in (work, asked, called):
            spans.clear()  # of a long session they take as much as its rows: not held while the next are made
        self.turns = [
            (turn.timestamp, end)
            if turn.timestamp is not None
            and (
                end := next(
                    (e.timestamp for e in reversed(done) if e.timestamp is not None and e.kind in OF_AGENT), None
                )
            )
            is not None
            else None
            for turn, done in zip(view.turns, view.responses, strict=True)
        ]
        """From each human turn to the agent's last event before the next; None where either has no time."""
        if not view.turns:
            times = [e.timestamp for e in view.events if e.timestamp is not None and e.kind in OF_AGENT]
            self.turns = [(min(times), max(times))] if times else []

    def between(self, *spans: Span) -> Time:
        """Split the time in these spans by activity, each moment once."""
        window = _united(spans)
        idle = _without(window, self._work)
        short = [span for span in idle if span[1] - span[0] <= _LEFT_ALONE]
        not_asked = _without(short, self._asked)
        silent = _without(not_asked, self._called)
        n = [sum([end - start for start, end in part]) for part in (window, idle, short, not_asked, silent)]
        return Time(
            work_s=(n[0] - n[1]) / SECOND,
            left_alone_s=(n[1] - n[2]) / SECOND,
            asked_s=(n[2] - n[3]) / SECOND,
            calls_s=(n[3] - n[4]) / SECOND,
            silence_s=n[4] / SECOND,
        )

    @property
    def waits(self) -> list[Wait]:
        """Waits of a minute to an hour within the responses, each once however many calls were open."""
        if not self._open:
            return []
        made = []
        for start, end in _without(_united(span for span in self.turns if span is not None), self._work):
            if end - start > _LEFT_ALONE:
                continue
            open_ = [each for each in self._open if each.start < end and each.until > start]
            spans = _united((each.start, each.until) for each in open_)
            waited = sum(min(end, until) - max(start, since) for since, until in spans)
            if waited >= _SHORTEST_WAIT:
                made.append(Wait(max(open_, key=lambda each: _ended_it(each, end)).call, waited / SECOND))
        return made

    @once
    def whole(self) -> Time | None:
        """Times of all responses together; None when none is timed."""
        timed = [span for span in self.turns if span is not None]
        return self.between(*timed) if timed else None


def _ended_it(open_: _Open, end: int) -> tuple[bool, bool, int, int]:
    """Order calls that were open during a wait: the one that ran once the wait was over is what was waited for. A call
    that holds a subagent's calls is none while one of those is open."""
    call = open_.call
    return call.class_ != "task", open_.until == end, open_.start, call.seq


def _written(events: Iterable[Event], sent: list[int]) -> list[Span]:
    """Return the periods in which one thread's model calls can have written. `sent`: start times of subagents."""
    spans: list[Span] = []
    before: int | None = None
    for event in events:
        at, kind = event.timestamp, event.kind
        if at is None or kind not in _SPEAKING:
            continue
        if before is None:
            if event.thread != MAIN:
                before = max((start for start in sent if start <= at), default=None)
            if before is None:
                before = at
                continue
        if at > before:
            if kind not in _READ:
                spans.append((max(before, at - _LONGEST_CALL), at))
            before = at
    return spans


def _united(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that touch or overlap, in order."""
    united: list[Span] = []
    begin = until = None
    for start, end in sorted(spans):
        if until is not None and start <= until:
            until = max(until, end)
        elif end > start:
            if begin is not None and until is not None:
                united.append((begin, until))
            begin, until = start, end
    if begin is not None and until is not None:
        united.append((begin, until))
    return united


_END = itemgetter(1)


def _without(spans: list[Span], taken: list[Span]) -> list[Span]:
    """Return the moments of the first that are not in the second, both united."""
    if not spans or not taken:
        return spans
    left: list[Span] = []
    n = 0
    for start, end in spans:
        at = start
        n = bisect_right(taken, at, n, key=_END)  # a turn among ten thousand looks at its own moments alone
        k = n
        while k < len(taken) and taken[k][0] < end:
            if taken[k][0] > at:
                left.append((at, taken[k][0]))
            at = max(at, taken[k][1])
            k += 1
        if at < end:
            left.append((at, end))
    return left
