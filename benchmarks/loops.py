"""How often `watch` is right when it calls something a loop: limits chosen on one half of the sessions, figures from
the other.

    python -m benchmarks.loops STORE… [--read] [--write src/agentsignals/stats/validation/loops.json]

A session is in the half that its id's digest names. What an alarm is held against is what came after it, never what
raised it (`in_vain`). `--read` prints what surrounds each alarm of the half that chose nothing, to be read by eye.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from agentsignals.model import Attempt, Session, ToolCall
from agentsignals.stats.intervals import poisson, wilson
from agentsignals.stats.validation import LoopFigure, Loops
from agentsignals.store import Store
from agentsignals.views.repeats import Count, alarms, thing

AHEAD = 10
"""Calls of the thread after an alarm that tell whether it was right."""
MORE, MOSTLY = 2, 5
"""Failures of the same thing among them, or of anything, from which it was."""
QUIET = 10
"""Calls after an alarm in which the next one is of the same loop."""
GRID = {"failing": range(2, 7), "alike": range(2, 6), "same": range(2, 6), "undone": range(1, 6), "mostly": range(3, 9)}
FEWEST = 3
"""Alarms on the choosing half from which a limit can be chosen."""
HALF = 0.5


class Judged(Struct, frozen=True, kw_only=True):
    """An alarm, and what came of it."""

    session_id: str
    count: Count
    why: str
    """Why it was right; empty where it was not."""
    calls: int
    """From the alarm to where the loop ended by itself, was ended by the person, or the session was over."""
    minutes: float | None


def chooses(session_id: str) -> bool:
    """Whether a session is of the half that chooses the limits."""
    return hashlib.sha256(session_id.encode()).digest()[0] < 128


def judged(session: Session, limits: Mapping[str, int]) -> Iterator[Judged]:
    """The alarms of a session; one stands for all of the next calls of its thread."""
    threads: dict[str, list[ToolCall]] = defaultdict(list)
    for call in session.tool_calls:
        threads[call.thread].append(call)
    of_call = {call.seq: call for call in session.tool_calls}
    until: dict[str, int] = {}
    for count in alarms(session, limits):
        thread = of_call[count.seq].thread
        calls = threads[thread]
        at = next(n for n, call in enumerate(calls) if call.seq == count.seq)
        if at >= until.get(thread, 0):
            until[thread] = at + 1 + QUIET
            yield _judged(session, calls, at, count)


def _judged(session: Session, calls: list[ToolCall], at: int, count: Count) -> Judged:
    why, after = _seen(session, calls, at)
    same = [n for n, c in enumerate(after) if c.status == "error" and thing(c) == thing(calls[at])]
    lead = same[-1] + 1 if why and same else 0
    ends = [c.ended_at or c.started_at for c in (after[lead - 1] if lead else calls[at], calls[at])]
    minutes = (ends[0] - ends[1]) / 60e6 if ends[0] is not None and ends[1] is not None else None
    return Judged(session_id=session.session_id, count=count, why=why, calls=lead, minutes=minutes)


def _seen(session: Session, calls: list[ToolCall], at: int) -> tuple[str, list[ToolCall]]:
    """Why an alarm at that call is right, and the calls that came after it before a person spoke."""
    spoken = min((t.seq for t in session.turns if t.seq > calls[at].seq), default=None)
    after = [c for c in calls[at + 1 :] if spoken is None or c.seq < spoken]
    ahead = after[:AHEAD]
    stop = ahead[-1].seq if len(ahead) == AHEAD else (spoken or session.events[-1].seq + 1)
    return in_vain(session, calls[at], ahead, stop), after


def in_vain(session: Session, alarm: ToolCall, ahead: Sequence[ToolCall], stop: int) -> str:
    """Why what came within the next calls, before a person spoke, shows a loop; empty where it does not: the same thing
    failed twice more, half of all calls failed, the person broke in, or it ended there with a failure or unsolved."""
    if sum(c.status == "error" and thing(c) == thing(alarm) for c in ahead) >= MORE:
        return "failed on"
    if sum(c.status == "error" for c in ahead) >= MOSTLY:
        return "failed on"
    broke_in = any(e.kind == "interrupt" and alarm.seq < e.seq <= stop for e in session.events)
    if broke_in or any(c.status in ("rejected", "cancelled") for c in ahead):
        return "person broke in"
    if len(ahead) < AHEAD and (ahead[-1] if ahead else alarm).status == "error":
        return "ended in failure"
    return "ended unsolved" if len(ahead) < AHEAD and session.attempt is not None and _unsolved(session.attempt) else ""


def _unsolved(attempt: Attempt) -> bool:
    return attempt.reward == 0 or (attempt.verification is not None and bool(attempt.verification.unfixed))


def chosen(sessions: Sequence[Session]) -> dict[str, int]:
    """Of each kind the lowest limit at which at least half of its alarms were right; where there is no such, the lowest
    at which none was wrong, if any."""
    limits: dict[str, int] = {}
    for kind, grid in GRID.items():
        without_wrong: list[int] = []
        for limit in grid:
            made = [j for s in sessions for j in judged(s, {kind: limit})]
            right = sum(bool(j.why) for j in made)
            print(f"  {kind} from {limit}: {right} of {len(made)} right", file=sys.stderr)
            if len(made) >= FEWEST and right >= HALF * len(made):
                limits.setdefault(kind, limit)
            if right == len(made):
                without_wrong.append(limit)
        if kind not in limits and without_wrong:
            limits[kind] = without_wrong[0]
    return limits


def base(session: Session) -> list[bool]:
    """Of each failed call whether an alarm at it would be right: what an alarm without any rule is worth."""
    threads: dict[str, list[ToolCall]] = defaultdict(list)
    for call in session.tool_calls:
        threads[call.thread].append(call)
    return [
        bool(_seen(session, calls, at)[0])
        for calls in threads.values()
        for at, call in enumerate(calls)
        if call.status == "error"
    ]


def figure(name: str, sessions: Sequence[Session], limits: Mapping[str, int]) -> LoopFigure:
    """How the limits do on these sessions."""
    made = [j for s in sessions for j in judged(s, limits)]
    right = [j for j in made if j.why]
    every = [is_right for s in sessions for is_right in base(s)]
    wrong = len(made) - len(right)
    minutes = [j.minutes for j in right if j.minutes is not None]
    interval = poisson(wrong, len(sessions) / 100)
    return LoopFigure(
        of=name,
        sessions=len(sessions),
        alarms=len(made),
        right=len(right),
        precision=round(len(right) / len(made), 3) if made else None,
        precision_interval=_rounded(wilson(len(right), len(made))),
        base=round(sum(every) / len(every), 3) if every else None,
        lead_calls=statistics.median(j.calls for j in right) if right else None,
        lead_minutes=round(statistics.median(minutes), 1) if minutes else None,
        false_in_100=round(100 * wrong / len(sessions), 1) if sessions else None,
        false_in_100_interval=_rounded(interval),
    )


def _rounded(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (round(interval[0], 3), round(interval[1], 3))


def _sessions(stores: Iterable[str]) -> list[Session]:
    read = (session for store in map(Store, stores) for session in store.read(set(store.manifest.sessions)))
    return [session for session in read if session.tool_calls]


def _show(session: Session, alarm: Judged) -> None:
    print(f"\n=== {session.session_id} {alarm.count.kind} x{alarm.count.times} -> {alarm.why or 'not right'}")
    text = {e.seq: e.text or "" for e in session.events}
    calls = session.tool_calls
    at = next(n for n, c in enumerate(calls) if c.seq == alarm.count.seq)
    for n, call in enumerate(calls[max(0, at - 8) : at + AHEAD + 1], max(0, at - 8)):
        about = " ".join((call.command or call.path or call.arguments).split())[:110]
        result = " ".join(text.get(call.result_seq or -1, "").split())[:90]
        print(f"{'>>' if n == at else '  '} {call.status:8} {call.name[:12]:12} {about} -> {result}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", metavar="STORE")
    parser.add_argument("--read", action="store_true")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    sessions = _sessions(options.stores)
    people = [s for s in sessions if s.context == "product"]
    limits = chosen([s for s in people if chooses(s.session_id)])
    others = [s for s in sessions if not chooses(s.session_id)]
    figures = [
        figure(name, [s for s in others if s.context == context], limits)
        for name, context in (("people's sessions", "product"), ("eval runs", "eval"))
    ]
    loops = Loops(limits=limits, figures=figures)
    print(msgspec.json.format(msgspec.json.encode(loops), indent=1).decode())
    if options.read:
        for session in others:
            for alarm in judged(session, limits):
                _show(session, alarm)
    if options.write:
        Path(options.write).write_bytes(msgspec.json.format(msgspec.json.encode(loops), indent=1) + b"\n")


if __name__ == "__main__":
    main()
