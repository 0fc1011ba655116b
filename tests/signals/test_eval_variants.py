"""Signals of both contexts on eval attempts: what the harness says beside what the transcript shows."""

from __future__ import annotations

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Absent, Statement
from agentsignals.signals.catalog import INTERNAL_ERROR, measure
from tests.build import START, call, say, user, view
from tests.signals.ask import absent, detail, value
from tests.signals.attempts import ran, unseen

TURNS, CALLS, EDITS = "behavior.turn_count", "behavior.tool_call_count", "behavior.edit_calls"
WALL, TIMED_OUT = "infra.wall_time_s", "infra.timed_out"
EDIT = call("Edit", path="a.py", hunks=[Hunk(start_line=1, end_line=1, added=1, removed=2)])


def test_without_a_duration_the_transcript_tells_and_the_verifiers_time_does_not_count() -> None:
    late = Statement(text="verified", artifact_id="harness-file", line=1, fields=[], at=START * 2)
    assert value(ran(say("a"), say("b"), statements=[late]), WALL) == 2.0
    assert absent(unseen(reward=1.0), WALL) == ("missing_field", "duration")
    assert absent(unseen(wall_time_s=float("nan")), WALL) == ("missing_field", "duration")


def test_an_eval_session_of_which_no_harness_tells_has_a_reason_for_each_eval_signal() -> None:
    one = view(user("fix it"), EDIT)
    one.session.context = "eval"
    found = {r.signal.path: r.value for r in measure(one) if r.signal.context == "eval"}
    assert {path for path, v in found.items() if not isinstance(v, Absent)} == set()
    assert not [v for v in found.values() if v.detail.startswith(INTERNAL_ERROR)]
    assert value(one, CALLS) == 1


def test_two_places_that_differ_are_a_conflict() -> None:
    one = unseen(timed_out=True, wall_time_s=5.0, reward=1.0)
    assert one.session.attempt is not None
    one.session.attempt.conflicts = ["timed_out", "wall_time_s", "reward"]
    for path in (TIMED_OUT, WALL, "verification.reward"):
        assert detail(one, path)["conflict"] is True
