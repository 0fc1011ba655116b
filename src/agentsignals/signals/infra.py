"""Duration of an attempt, and how its harness ended it."""

from __future__ import annotations

from typing import Any

from agentsignals.model import Absent
from agentsignals.signals import Measured, signals_with
from agentsignals.views.session import Evidence, SessionView
from agentsignals.views.working_time import SECOND, Clock

signal = signals_with(level="attempt", harness=True, origin="Agent Signals")


@signal("infra.wall_time_s", "float", "seconds", version=3, hindsight="the verifier's time", context="both")
def wall_time_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """Time from the first to the last event of the main thread; of an eval attempt as its harness recorded it.

    max - min of `events.timestamp` with thread main; of an eval attempt wall_time_s of its facts, else ended_at -
    started_at, else that of the events without kind harness and phase.

    Pitfalls: The person's pauses count, and so does the sleep of a machine (left open overnight, a session is a day
    long): infra.work_time_s leaves them out. Cold start and server load count too: compare within a run only. In an
    eval it is the harness's time for the whole attempt, set-up and verification included: `agent_time_s` is the agent's
    own, where recorded.
    """
    attempt = view.session.attempt
    # Lines of harness and controller date themselves: between two of them lies no duration of the attempt.
    events = view.events if attempt is None else [e for e in view.events if e.kind not in ("harness", "phase")]
    times = [at for e in events if (at := e.timestamp) is not None]
    if attempt is not None:
        seconds, method = attempt.wall_time_s, "harness"
        if seconds is None and attempt.started_at is not None and attempt.ended_at is not None:
            seconds, method = (attempt.ended_at - attempt.started_at) / SECOND, "attempt_times"
        if seconds is not None and seconds >= 0:
            why.support(attempt.saying("wall_time_s" if method == "harness" else "ended_at"))
            detail: dict[str, Any] = {"method": method}
            if attempt.agent_time_s is not None:
                detail["agent_time_s"] = attempt.agent_time_s
            if "wall_time_s" in attempt.conflicts:
                detail["conflict"] = True
            if times:
                detail["timestamps_s"] = (max(times) - min(times)) / SECOND
            return Measured(float(seconds), detail)
    if not times:
        return Absent("missing_field", "timestamps" if attempt is None else "duration")
    times.sort()  # half the work of `min` and `max`: they nearly always are in order
    first, last = times[0], times[-1]
    why.support((e for e in events if e.timestamp == first), "first")
    why.support((e for e in events if e.timestamp == last), "last")
    return Measured((last - first) / SECOND, {"method": "timestamps"})


@signal("infra.timed_out", "bool", "flag", hindsight="the verifier's time", context="eval", source="harness")
def timed_out(view: SessionView, why: Evidence, timeout_s: int | Absent) -> Measured | Absent:
    """True if the time limit ended the agent; `inferred` from a duration that reaches the limit.

    `timed_out` of the attempt's facts; else true where agent_time_s, or without it wall_time_s, reaches
    treatment.timeout_s; else absent.

    Pitfalls: Depends on the tasks (slow test suites): segment before using. A patch may be graded all the same. One
    value on the project's corpus.
    """
    attempt = view.session.attempt
    if attempt is None:
        return Absent("missing_field", "timed_out")
    if attempt.timed_out is not None:
        why.support(attempt.saying("timed_out"))
        return Measured(attempt.timed_out, {"conflict": True} if "timed_out" in attempt.conflicts else {})
    seconds = attempt.agent_time_s if attempt.agent_time_s is not None else attempt.wall_time_s
    if isinstance(timeout_s, Absent) or seconds is None or seconds < timeout_s:
        return Absent("missing_field", "timed_out")
    why.support([*attempt.saying("agent_time_s"), *attempt.saying("wall_time_s")])
    why.rule("the attempt lasted as long as its timeout")
    return Measured(True, {"method": "inferred"})


@signal("infra.attempt_index", "int", "index", context="eval", source="harness")
def attempt_index(view: SessionView, why: Evidence) -> int | Absent:
    """Position of the attempt in its trial, 0 for the first: `attempts.attempt_index`.

    Pitfalls: First attempts and retries are reported apart: one mean over both hides whether first tries or recovery
    got better. One value on the project's corpus.
    """
    attempt = view.session.attempt
    if attempt is None or attempt.attempt_index is None:
        return Absent("missing_artifact", "result_json")
    why.support(attempt.statements)
    return attempt.attempt_index


@signal("infra.recovery_mode", "str", "label", hindsight="the verdict", context="eval", source="harness", priority="P1")
def recovery_mode(view: SessionView, why: Evidence, attempt_index: int) -> str | Absent:
    """How the controller had the trial recover (`trialRecoveryMode`), on its retries.

    trialRecoveryMode of `localization` in the attempt's facts; absent where attempt_index is 0, and without it.

    Pitfalls: The words are the harness's own. No value on the project's corpus.
    """
    if attempt_index == 0:
        return Absent("not_applicable", "first_attempt")
    return _mode(view, why, "trialRecoveryMode")


@signal(
    "infra.final_failure_mode", "str", "label", hindsight="the verdict", context="eval", source="harness", priority="P1"
)
def final_failure_mode(view: SessionView, why: Evidence, reward: float | Absent) -> Measured | Absent:
    """How the trial failed in the end (`finalFailureMode`), on its last attempt.

    finalFailureMode of `localization` in the attempt's facts, where is_last is not false; absent without it.

    Pitfalls: The words are the harness's own. `inconsistent`: named although the trial was solved. No value on the
    project's corpus.
    """
    attempt = view.session.attempt
    if attempt is not None and attempt.is_last is False:
        return Absent("not_applicable", "not_the_last_attempt")
    mode = _mode(view, why, "finalFailureMode")
    if isinstance(mode, Absent):
        return Absent("not_applicable", "solved") if reward == 1 else mode
    return Measured(mode, {"inconsistent": True} if reward == 1 else {})


def _mode(view: SessionView, why: Evidence, name: str) -> str | Absent:
    attempt = view.session.attempt
    if attempt is None or attempt.localization is None:
        return Absent("missing_artifact", "harbor_result")
    mode = attempt.localization.get(name)
    if not isinstance(mode, str):
        return Absent("missing_field", name)
    why.support(attempt.saying("localization"))
    return mode


@signal("infra.work_time_s", "float", "seconds", version=2, context="both", harness=False, origin="this project")
def work_time_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """How long the agent or its subagents worked for the person's turns: model calls, and tools with their hooks while
    they ran, each moment once.

    The union of spans, cut to the responses (from a turn's time to the last event of its response; a session without
    turns is one). (1) Each call of the main thread and of subagents: the last R seconds before `ended_at`, not before
    `started_at`. R is ran_s + hooks_s; without ran_s the limit of its class + hooks_s, at most ended_at - not_before.
    Limits: ask 0, edit and plan 10, read and search 30, web 120, mcp and other 300, shell and test 600, task 1800;
    `limit_s` replaces that of shell and test and lowers the others. R is 0 for rejected calls, purpose plan_handoff,
    and task calls of the main thread where subagents are logged. (2) Each event of kind text, thinking or tool_call:
    from the thread's event before of these kinds, tool_result or human_turn, at most 600 s; a subagent's first one from
    the start of the last task call before.

    Pitfalls: Where no record dates the start of a call or its permission, short waits for permission are inside, and
    the rest of a longer run is not (design/signals.md#time-at-work has the sources of the limits).
    Why: Neither the person's pauses nor a laptop that slept is work.
    """
    time = view.derived(Clock).whole
    if time is None:
        return Absent("missing_field", "timestamps")
    why.support(view.turns or view.events[:1])
    return Measured(time.work_s, {"waiting_s": time.waiting_s, "left_alone_s": time.left_alone_s})


@signal("infra.waiting_time_s", "float", "seconds", version=2, context="both", harness=False, origin="this project")
def waiting_time_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """How long the agent waited within its responses, in waits of at most an hour; longer ones are `left_alone_s`.
    `waits` names the call and the seconds of each wait of a minute or more with a call open.

    The stretches of the responses outside the spans of infra.work_time_s, those of at most 3,600 s. asked_s lies within
    calls of class ask or purpose plan_handoff, calls_s within others, silence_s is the rest.

    Pitfalls: `calls_s` is a wait for permission or a machine that slept: most logs don't say which. Of eval runs one
    value on the project's corpus.
    Why: What approvals, questions and sleep cost; work_time_s is without it.
    """
    time = view.derived(Clock).whole
    if time is None:
        return Absent("missing_field", "timestamps")
    waits = view.derived(Clock).waits
    why.support([wait.call for wait in waits], "waited for a minute or more before it ran:")
    why.denominator(view.turns or view.events[:1])
    detail: dict[str, Any] = {
        "asked_s": time.asked_s,
        "calls_s": time.calls_s,
        "silence_s": time.silence_s,
        "left_alone_s": time.left_alone_s,
    }
    if waits:
        detail["waits"] = [{"seq": wait.call.seq, "seconds": wait.seconds} for wait in waits]
    return Measured(time.waiting_s, detail)
