"""chat.turn_autonomy_s and chat.cost_per_100_committed_lines."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, Checkpoint
from agentsignals.views.session import SessionView
from tests.build import call, event, say, session, user, view
from tests.signals.ask import absent, by_turn, detail, evidence, value

AUTONOMY, COST = "chat.turn_autonomy_s", "chat.cost_per_100_committed_lines"


def committed(*lines: int | None, **more: Any) -> SessionView:
    made = session(
        user("go"),
        say("a", input_tokens=10, output_tokens=20, cache_read_tokens=300, cache_write_tokens=70, cost_usd=0.5),
        event("notification", "x"),
        user("more"),
        say("b", input_tokens=0, output_tokens=0),
        **more,
    )
    made.checkpoints = [Checkpoint(checkpoint_id=f"c{n}", total_committed=total) for n, total in enumerate(lines)]
    return SessionView(made)


def test_a_turns_autonomy_is_the_time_to_the_agents_last_sign_of_life() -> None:
    one = view(user("go"), say("a"), call("Read", path="a.py"), user("more"), user("again"), say("b"))
    assert by_turn(one, AUTONOMY) == [2.5, Absent("not_applicable", "no_response"), 1.0]


def test_a_response_without_a_time_is_a_missing_field() -> None:
    made = session(user("go"), say("a"), user("more"), say("b"))
    made.events[1].timestamp = None
    assert by_turn(SessionView(made), AUTONOMY) == [Absent("missing_field", "timestamp"), 1.0]


def test_without_any_time_the_field_is_missing() -> None:
    made = session(user("go"), say("a"))
    for row in (*made.events, *made.turns):
        row.timestamp = None
    assert by_turn(SessionView(made), AUTONOMY) == [Absent("missing_field", "timestamp")]


def test_costs_are_for_a_hundred_lines_of_all_recorded_commits_together() -> None:
    one = committed(30, None, 20)
    assert value(one, COST) == pytest.approx(
        {"usd": 1.0, "tokens": 800, "minutes": 2 * 4 / 60, "agent_minutes": 2 * 2 / 60, "user_turns": 4}
    )
    assert detail(one, COST).items() >= {"committed_lines": 50, "checkpoints": 2}.items()
    assert "2 commits of 50 lines" in evidence(one, COST).rules[0]


def test_what_is_unknown_is_null_and_leaves_the_others() -> None:
    made = session(user("go"), call("Read", path="a.py"))
    for row in (*made.events, *made.turns):
        row.timestamp = None
    made.checkpoints = [Checkpoint(checkpoint_id="c", total_committed=100)]
    made.steps.clear()
    found = value(SessionView(made), COST)
    assert found == {"usd": 0.0, "tokens": None, "minutes": None, "agent_minutes": None, "user_turns": 1}


def test_unpriced_calls_make_no_price() -> None:
    made = session(user("go"), say("a", model="no-such-model", input_tokens=10, output_tokens=20))
    made.checkpoints = [Checkpoint(checkpoint_id="c", total_committed=100)]
    found = value(SessionView(made), COST)
    assert (found["usd"], found["tokens"]) == (None, 30)


def test_no_recorded_commit_and_no_committed_line_are_told_apart() -> None:
    assert absent(committed(), COST) == ("not_applicable", "no_commit")
    assert absent(committed(None), COST) == ("not_applicable", "no_commit")
    assert absent(committed(0, 0), COST) == ("not_computable", "zero_denominator")
