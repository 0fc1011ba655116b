"""infra.*: how long it took."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_code import PROFILE
from agentsignals.model import MAIN, CallStatus
from tests.build import Part, call, event, say, think, user, view, void
from tests.signals.ask import absent, by_turn, detail, lines, value

WALL, WORK = "infra.wall_time_s", "infra.work_time_s"


def at(part: Part, second: float) -> Part:
    """The part at another time than its place says."""
    return lambda b, _: part(b, int(second * 1_000_000))


def timeless(b: SessionBuilder, _: int) -> None:
    void(b.turn("prompt", "go", None))


def test_wall_time_runs_from_the_first_event_to_the_last_and_pauses_are_no_activity() -> None:
    one = view(
        at(user("go"), 100), at(say("done"), 130), at(user("more"), 1000), at(call("Bash", command="ls"), 1004.5)
    )
    assert value(one, WALL) == 905.0
    assert detail(one, WALL) == {"method": "timestamps"}
    assert value(one, WORK) == 30.0 + 5.0
    assert lines(one, WALL) == [1, 4]


def test_a_subagent_that_outlives_the_conversation_does_not_lengthen_it() -> None:
    one = view(at(user("go"), 0), at(say("done"), 10), at(say("still here", thread="agent-1"), 99))
    assert value(one, WALL) == 10.0


def test_what_comes_after_the_answer_is_no_activity() -> None:
    one = view(at(user("go"), 0), at(say("done"), 10), at(event("notification", "later"), 500))
    assert (value(one, WALL), value(one, WORK)) == (500.0, 10.0)


def test_a_session_without_a_person_is_active_from_its_first_act() -> None:
    one = view(at(event("meta", "task"), 0), at(say("a"), 5), at(say("b"), 25))
    assert (value(one, WALL), value(one, WORK)) == (25.0, 20.0)


def test_without_timestamps_the_field_is_missing() -> None:
    assert absent(view(timeless), WALL) == ("missing_field", "timestamps")


# infra.work_time_s and infra.waiting_time_s: each kind of stretch counts for as long as it can take.

WORK_TIME, WAITING, WALL_TIME, TURN = (
    "infra.work_time_s", "infra.waiting_time_s", "infra.wall_time_s", "chat.turn_autonomy_s",
)  # fmt: skip
NIGHT, LUNCH = 12 * 3600.0, 1800.0


def at_second(part: Part, second: float) -> Part:
    return lambda b, _: part(b, int(second * 1_000_000))


def opened(
    name: str, start: float, end: float, status: CallStatus = "ok", ran_s: float | None = None, thread: str = MAIN,
    **arguments: Any,
) -> Part:  # fmt: skip
    """A call that lay open from one second to another."""

    def part(b: SessionBuilder, _: int) -> None:
        made = b.call(
            f"c{len(b.session.tool_calls)}",
            name,
            json.dumps(arguments),
            PROFILE.tool(name),
            int(start * 1e6),
            None,
            thread,
        )
        b.result(made.call_id, "ok", status, int(end * 1e6), thread, ran_s=ran_s)

    return part


def worked(*parts: Part) -> tuple[Any, dict[str, Any]]:
    one = view(at_second(user("go"), 0), *parts)
    waiting, whole = value(one, WAITING), value(one, WORK_TIME)
    parts = {name: seconds for name, seconds in detail(one, WAITING).items() if seconds and name != "waits"}
    assert sum(parts.values()) - parts.get("left_alone_s", 0.0) == pytest.approx(waiting)
    assert by_turn(one, TURN) == [whole]
    return whole, parts


def waits(*parts: Part) -> list[tuple[str, float]]:
    """The tool and the seconds of each wait that is listed."""
    one = view(at_second(user("go"), 0), *parts)
    names = {call.seq: call.name for call in one.session.tool_calls}
    return [(names[wait["seq"]], wait["seconds"]) for wait in detail(one, WAITING).get("waits", ())]


@pytest.mark.parametrize(
    ("name", "arguments", "longest"),
    [
        ("Edit", {"file_path": "a.py"}, 10),
        ("TodoWrite", {"todos": []}, 10),
        ("Read", {"file_path": "a.py"}, 30),
        ("Grep", {"pattern": "x"}, 30),
        ("Bash", {"command": "cat a.py"}, 30),
        ("WebFetch", {"url": "x"}, 120),
        ("mcp__a__b", {}, 300),
        ("NobodyKnowsIt", {}, 300),
        ("Bash", {"command": "make all"}, 600),
        ("Bash", {"command": "pytest"}, 600),
        ("Task", {"prompt": "x"}, 1800),
        ("AskUserQuestion", {"questions": []}, 0),
        ("ExitPlanMode", {"plan": "x"}, 0),
    ],
)
def test_a_call_counts_for_as_long_as_its_kind_can_take(name: str, arguments: dict[str, Any], longest: int) -> None:
    cause = "calls_s" if longest else "asked_s"
    assert worked(opened(name, 1, 1 + longest + LUNCH, **arguments)) == (1 + longest, {cause: LUNCH})
    assert worked(opened(name, 1, 1 + NIGHT, **arguments)) == (1 + longest, {"left_alone_s": NIGHT - longest})
    assert worked(opened(name, 1, 1 + longest, **arguments)) == (1 + longest, {})
    assert waits(opened(name, 1, 1 + longest + LUNCH, **arguments)) == [(name, LUNCH)]
    assert waits(opened(name, 1, 1 + NIGHT, **arguments), opened(name, 1 + NIGHT, 2 + NIGHT, **arguments)) == []


@pytest.mark.parametrize(
    ("waited", "listed", "part"),
    [(59, False, "calls_s"), (60, True, "calls_s"), (3600, True, "calls_s"), (3601, False, "left_alone_s")],
)
def test_a_habit_is_a_wait_of_a_minute_to_an_hour(waited: int, listed: bool, part: str) -> None:
    edit = opened("Edit", 1, 11 + waited, file_path="a.py")
    assert worked(edit) == (11, {part: waited})
    assert waits(edit) == ([("Edit", waited)] if listed else [])


def test_calls_that_wait_together_are_one_wait_and_the_one_that_ran_after_it_names_it() -> None:
    together = opened("Edit", 1, 611, file_path="a.py"), opened("WebFetch", 1, 1201, url="x")
    assert worked(*together) == (1 + 10 + 120, {"calls_s": 600 + 470})
    assert waits(*together) == [("Edit", 600), ("WebFetch", 470)]


def test_a_wait_inside_a_subagent_is_of_the_subagents_tool() -> None:
    inside = (
        at_second(say("a", thread="agent-1"), 2),
        opened("Bash", 2, 1802, thread="agent-1", command="make all"),
        at_second(say("b", thread="agent-1"), 1803),
    )
    assert waits(opened("Task", 1, 1804, prompt="x"), *inside) == [("Bash", 1200)]


def test_a_subagent_that_waits_in_the_background_is_no_silence() -> None:
    """The main thread's call ended at once; its next answer comes 40 minutes later and may have taken ten."""
    inside = at_second(say("a", thread="agent-1"), 2), opened("Edit", 2, 1802, thread="agent-1", file_path="a.py")
    parts = opened("Task", 1, 2, prompt="x"), *inside, at_second(say("done"), 2402)
    assert worked(*parts) == (2 + 10 + 600, {"calls_s": 1790})
    assert waits(*parts) == [("Edit", 1790)]


@pytest.mark.parametrize(
    ("arguments", "ran_s", "longest"),
    [
        ({"command": "make all", "timeout": 1_200_000}, None, 1200),
        ({"command": "make all", "timeout": 5_000}, None, 5),
        ({"command": "make all", "timeout": "soon"}, None, 600),
        ({"command": "make all", "timeout": -1}, None, 600),
        ({"command": "cat a.py", "timeout": 1_200_000}, None, 30),
        ({"command": "cat a.py", "timeout": 2_000}, None, 2),
        ({"command": "make all", "timeout": 5_000}, 0.5, 0.5),
        ({"command": "make all"}, 7200.0, 7200),
    ],
)
def test_its_own_account_or_the_limit_set_for_it_says_more(
    arguments: dict[str, Any], ran_s: float | None, longest: float
) -> None:
    made = worked(opened("Bash", 1, 1 + longest + LUNCH, ran_s=ran_s, **arguments))
    assert made == (1 + longest, {"calls_s": LUNCH})


def test_a_refused_call_never_ran() -> None:
    assert worked(opened("Bash", 1, 61, "rejected", command="make all")) == (1, {"calls_s": 60})


@pytest.mark.parametrize("writes", [say("done"), think("hm")])
def test_between_model_calls_ten_minutes_count_and_a_laptop_that_slept_does_not(writes: Part) -> None:
    assert worked(at_second(say("a"), 5), at_second(writes, 5 + NIGHT)) == (605, {"left_alone_s": NIGHT - 600})
    assert worked(at_second(say("a"), 5), at_second(writes, 605 + LUNCH)) == (605, {"silence_s": LUNCH})
    assert worked(at_second(say("a"), 5), at_second(writes, 605)) == (605, {})


def test_a_call_runs_once_leave_is_given_so_that_calls_in_a_row_each_count() -> None:
    """Three calls are asked for at once; the second waits for the first, and both ran to their ends."""
    limit = {"command": "make", "timeout": 100_000}
    assert worked(opened("Bash", 1, 91, **limit), opened("Bash", 1, 181, **limit)) == (181, {})


def test_a_short_call_beside_a_long_one_waited_for_nobody() -> None:
    """Their results are logged together."""
    assert worked(opened("Read", 1, 201, file_path="a"), opened("mcp__a__b", 1, 201)) == (201, {})


def test_a_subagent_that_is_logged_tells_when_it_worked() -> None:
    inside = (
        at_second(say("a", thread="agent-1"), 10),
        opened("Edit", 10, 10 + NIGHT, thread="agent-1", file_path="a.py"),
    )
    end = 20 + NIGHT
    made = worked(opened("Task", 1, end, prompt="x"), *inside, at_second(say("b", thread="agent-1"), end))
    assert made == (1 + 9 + 10 + 10, {"left_alone_s": NIGHT - 10})


def test_the_persons_pauses_are_neither_work_nor_waiting() -> None:
    one = view(
        at_second(user("go"), 0),
        at_second(say("done"), 10),
        at_second(user("more"), 9000),
        at_second(say("done"), 9005),
    )
    assert (value(one, WORK_TIME), value(one, WAITING), value(one, WALL_TIME)) == (15, 0, 9005)


def test_prompts_queued_while_it_worked_count_no_moment_twice() -> None:
    one = view(
        at_second(user("go"), 0),
        at_second(say("a"), 100),
        at_second(user("more", "queued_prompt"), 50),
        at_second(say("b"), 110),
    )
    assert (value(one, WORK_TIME), by_turn(one, TURN)) == (110, [100, 60])


def test_where_no_response_is_timed_both_are_missing() -> None:
    one = view(at_second(user("go"), 0), lambda b, _: void(b.event("text", "done", None)))
    assert absent(one, WORK_TIME) == absent(one, WAITING) == ("missing_field", "timestamps")
