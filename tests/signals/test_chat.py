"""chat.file_types_touched and the composition of sessions by position."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, Checkpoint, Edit
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, measure, plain
from agentsignals.views.session import SessionView
from tests.build import call, event, say, session, user, view
from tests.signals.ask import by_turn, detail, evidence, lines, value, values_over_sessions

TYPES, POSITIONS, SHARES = (
    "chat.file_types_touched",
    "chat.tool_calls_by_position",
    "chat.tool_composition_by_position",
)


def test_shares_are_of_the_calls_of_all_sessions_in_a_tenth() -> None:
    sessions = [{"read": [3] + [1] * 9}, {"edit": [1] + [0] * 9, "read": [0] * 10}]
    found = values_over_sessions(by_path(SHARES), {"tool_calls_by_position": sessions})
    assert isinstance(found, Measured)
    assert plain(found.value)[:3] == [
        {"position_bin": 0, "class": "edit", "share": 0.25, "n": 4},
        {"position_bin": 0, "class": "read", "share": 0.75, "n": 4},
        {"position_bin": 1, "class": "read", "share": 1.0, "n": 1},
    ]
    assert len(found.value) == 11
    assert found.detail == {"n_sessions": 2, "n_calls": 13}


def test_without_a_long_enough_session_there_is_no_composition() -> None:
    assert values_over_sessions(by_path(SHARES), {}) == Absent("not_applicable", "no_sessions")


# chat.turn_autonomy_s and chat.cost_per_100_committed_lines.

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


# chat.agent_self_overwrite_share.

PATH = "chat.agent_self_overwrite_share"


def test_many_edits_of_one_file_are_followed_in_reasonable_time() -> None:
    made = session(user("go"))
    made.edits = [
        Edit(
            seq=n,
            turn=0,
            thread="main",
            call_id="c",
            path="a.py",
            op="modify",
            via="edit_tool",
            hunk=0,
            start_line=2 * n + 1,
            end_line=2 * n + 1,
            added=1,
            removed=0,
            old_start=2 * n + 1,
        )
        for n in range(2_000)
    ]
    assert value(SessionView(made), PATH) == 0.0


# chat.*: pushback, interruptions, and whose lines were committed.


@pytest.mark.parametrize(
    ("text", "kind", "label", "pattern"),
    [
        ("No.", "prompt", "rejection", "rejection"),
        ("revert that", "prompt", "rejection", "rejection"),
        ("no, use the other helper", "prompt", "correction", "no_initial"),
        ("undo that and use a dict instead", "prompt", "correction", "undo_revert"),
        ("you forgot to update the tests", "prompt", "correction", "you_erred"),
        ("tests are failing", "prompt", "failure_report", "failure_report"),
        ("commit this", "prompt", "non_pushback", None),
        ("why did you use a list here?", "prompt", "non_pushback", None),
        ("why did you use a list here?", "rejection_feedback", "correction", "why_did_you"),
        ("Implement the following plan: no, that is wrong", "plan_handoff", "non_pushback", None),
        ("", "attachment", "non_pushback", None),
    ],
)
def test_the_type_of_pushback(text: str, kind: Any, label: str, pattern: str | None) -> None:
    one = view(user("go"), say("ok"), user(text, kind))
    wanted = by_path("chat.pushback_type")
    found = [r for r in measure(one) if r.signal is wanted]
    assert found[0].value == Absent("not_applicable", "first_turn")
    assert (found[1].value, (found[1].detail or {}).get("pattern"), found[1].turn) == (label, pattern, 1)
    assert (found[1].detail or {})["method"] == "regex"
    assert lines(one, "chat.pushback_type") == ([3] if pattern else [])


@pytest.mark.parametrize(
    ("texts", "rate"),
    [
        (
            ["go", "Das ist völlig falsch!", "schon wieder kaputt, das geht so nicht"],
            Absent("not_computable", "language: de"),
        ),
        (["go", "no, the other file", "Das ist völlig falsch!"], 1 / 2),
        (["mach das bitte", "no, the other file"], 0.5),
        (["go"], 0.0),
    ],
)
def test_a_session_in_another_language_has_no_rate_of_pushback(texts: list[str], rate: float | Absent) -> None:
    one = view(*(part for text in texts for part in (user(text), say("ok"))))
    assert value(one, "chat.pushback_rate") == rate
