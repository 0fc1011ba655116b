"""chat.*: pushback, interruptions, and whose lines were committed."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, Checkpoint
from agentsignals.signals.catalog import by_path, measure
from tests.build import Part, call, event, say, user, view
from tests.signals.ask import absent, by_turn, detail, evidence, lines, value

INTERRUPT = event("interrupt", "[Request interrupted by user]")
READ = call("Read", path="a.py")


def test_turns_per_session_is_the_number_of_prompts() -> None:
    assert value(view(user("a"), say("b"), user("c")), "chat.turns_per_session") == 2


def test_calls_belong_to_the_prompt_before_them() -> None:
    one = view(READ, user("a"), READ, READ, user("b"), user("c"), READ, call("Read", path="x", thread="agent-1"))
    assert by_turn(one, "chat.tool_calls_per_turn") == [2, 0, 1]
    assert lines(one, "chat.tool_calls_per_turn") == [1, 3, 4, 7]


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


def test_pushback_in_another_language_is_not_known() -> None:
    one = view(user("go"), user("нет, это неправильно, исправь"))
    assert by_turn(one, "chat.pushback_type")[1] == Absent("not_computable", "language")
    assert value(one, "chat.pushback_rate") == 0.0


@pytest.mark.parametrize(
    ("parts", "cut"),
    [
        ([user("a"), say("x"), INTERRUPT, user("b"), say("y")], [True, False]),
        ([user("a"), INTERRUPT], [True]),
        ([user("a"), call("Edit", path="a", status="rejected", result="x")], [True]),
        ([user("a"), call("Edit", path="a", status="error", result="Permission to use")], [False]),
        ([user("a"), say("x"), user("stop", "queued_prompt")], [True, False]),
        ([user("a"), say("x"), user("wait, why?", "queued_prompt")], [True, False]),
        ([user("a"), say("x"), user("also add a test", "queued_prompt")], [False, False]),
        ([user("a"), say("x"), user("stop")], [False, False]),
        ([INTERRUPT, user("a")], [False]),
    ],
)
def test_a_hard_interruption_is_the_persons_brake(parts: list[Part], cut: list[bool]) -> None:
    one = view(*parts)
    assert by_turn(one, "chat.hard_interruption") == cut
    if any(cut):
        assert evidence(one, "chat.hard_interruption").totals["support"] == 1


def test_pushback_rate_unites_words_and_brakes() -> None:
    one = view(
        user("go"),
        say("x"),
        INTERRUPT,
        user("no, use tabs"),  # soft, and behind a cut response: counted once
        say("x"),
        user("thanks"),
        say("x"),
        user("and the docs"),
        INTERRUPT,  # the last response, cut without a turn behind it
    )
    assert value(one, "chat.pushback_rate") == 0.5
    assert detail(one, "chat.pushback_rate") == {"num": 2, "den": 4, "soft": 1, "hard": 2, "method": "regex"}
    assert lines(one, "chat.pushback_rate") == [4, 8]


@pytest.mark.parametrize(("parts", "rate"), [([user("stop")], 0.0), ([user("a"), INTERRUPT], 1.0)])
def test_one_turn_objects_only_by_the_brake(parts: list[Part], rate: float) -> None:
    assert value(view(*parts), "chat.pushback_rate") == rate


def checkpoint(lines: int | None, total: int | None, percent: float | None = None) -> Checkpoint:
    return Checkpoint(checkpoint_id="c", agent_lines=lines, total_committed=total, agent_percentage=percent)


PERCENT, MODE = "chat.agent_percentage", "chat.coding_mode"


@pytest.mark.parametrize(
    ("recorded", "percent", "mode"),
    [
        ([checkpoint(0, 10, 0.0)], 0.0, "human_only"),
        ([checkpoint(5, 10, 50.0)], 50.0, "collaborative"),
        ([checkpoint(99, 100, 99.0)], 99.0, "vibe_coding"),
        ([checkpoint(989, 1000, 98.9)], 98.9, "collaborative"),
        ([checkpoint(10, 10)], 100.0, "vibe_coding"),
        ([checkpoint(1, 10, 10.0), checkpoint(9, 90, 10.0), checkpoint(None, None)], 10.0, "collaborative"),
        ([checkpoint(0, 0, 100.0)], 100.0, "vibe_coding"),
    ],
)
def test_the_agents_share_of_the_committed_lines(recorded: list[Checkpoint], percent: float, mode: str) -> None:
    one = view(user("go"), checkpoints=recorded)
    assert value(one, PERCENT) == pytest.approx(percent)
    assert value(one, MODE) == mode
    assert evidence(one, PERCENT).rules and evidence(one, MODE).items[-1].excerpt.startswith("chat.agent_percentage =")


def test_without_attribution_nobody_knows_whose_lines_they_are() -> None:
    assert absent(view(user("go")), PERCENT) == ("missing_artifact", "git_attribution")
    assert absent(view(user("go")), MODE) == ("dependency_null", "chat.agent_percentage")
    nothing = view(user("go"), checkpoints=[checkpoint(0, 0, 0.0)])
    assert absent(nothing, PERCENT) == ("not_computable", "zero_denominator")
