"""infra.*: how long it took."""

from __future__ import annotations

from agentsignals.formats.builder import SessionBuilder
from tests.build import Part, call, event, say, user, view, void
from tests.signals.ask import absent, detail, lines, value

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


def test_a_single_moment_lasts_zero_seconds_and_has_no_response() -> None:
    one = view(user("go"))
    assert (value(one, WALL), absent(one, WORK)) == (0.0, ("missing_field", "timestamps"))


def test_a_session_without_a_person_is_active_from_its_first_act() -> None:
    one = view(at(event("meta", "task"), 0), at(say("a"), 5), at(say("b"), 25))
    assert (value(one, WALL), value(one, WORK)) == (25.0, 20.0)


def test_without_timestamps_the_field_is_missing() -> None:
    assert absent(view(timeless), WALL) == ("missing_field", "timestamps")
