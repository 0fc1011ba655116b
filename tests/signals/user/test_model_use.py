"""user.model_changes[]."""

from __future__ import annotations

from typing import Any

from agentsignals.formats.builder import SessionBuilder
from agentsignals.model import MAIN
from agentsignals.views.session import SessionView
from tests.build import event, say, session, user, view
from tests.signals.ask import absent, lines, value

PATH = "user.model_changes[]"


def switched(line_of_its_own: bool) -> SessionView:
    def shown(b: SessionBuilder, at: int) -> None:
        b.event("model_change", "a -> b", at)
        if line_of_its_own:
            b.line += 100
        step = b.step(None, "b", at)
        b.event("text", "hello", at, step, MAIN)

    return view(user("go"), say("x", model="a"), user("more"), shown)


def change(before: str | None, after: str, turn: int, second: int, explicit: bool) -> dict[str, Any]:
    return {
        "from_model": before,
        "to_model": after,
        "turn_index": turn,
        "timestamp": f"2026-01-01T00:00:0{second}.000Z",
        "explicit": explicit,
    }


def test_one_model_all_along_is_no_change() -> None:
    assert value(view(user("go"), say("x"), say("y")), PATH) == []
    assert value(view(user("go")), PATH) == []


def test_another_models_message_is_a_change_that_nobody_logged() -> None:
    one = view(user("go"), say("x", model="a"), user("more"), say("y", model="b"), say("z", model="b"))
    assert value(one, PATH) == [change("a", "b", 1, 3, False)]
    assert lines(one, PATH) == [4]


def test_an_entry_with_a_line_of_its_own_is_explicit_and_counts_once() -> None:
    assert value(switched(True), PATH) == [change("a", "b", 1, 3, True)]
    assert value(switched(False), PATH) == [change("a", "b", 1, 3, False)]


def test_a_choice_before_the_first_message_changes_from_nothing() -> None:
    one = view(user("go"), event("model_change", "a -> b"), say("x", model="b"))
    assert value(one, PATH) == [change(None, "b", 0, 1, True)]


def test_there_and_back_without_a_message_are_two_changes() -> None:
    one = view(
        user("go"), say("x", model="a"), event("model_change", "a -> b"), event("model_change", "b -> a"),
        say("y", model="a"),
    )  # fmt: skip
    assert [(r["from_model"], r["to_model"]) for r in value(one, PATH)] == [("a", "b"), ("b", "a")]


def test_the_same_model_chosen_again_is_no_change() -> None:
    again = view(user("go"), say("x", model="a"), event("model_change", "b -> a"), say("y", model="a"))
    assert value(again, PATH) == []


def test_messages_a_program_made_up_and_subagents_are_no_change() -> None:
    one = view(user("go"), say("x", model="a"), say("", model="<synthetic>"), say("s", model="b", thread="agent-1"))
    assert value(one, PATH) == []
    ended = view(user("go"), say("x", model="a"), event("model_change", "a -> <synthetic>"), say("y", model="a"))
    assert value(ended, PATH) == []


def test_a_trace_that_names_no_model_cannot_tell() -> None:
    made = session(user("go"), say("x"))
    made.steps[0].model = None
    assert absent(SessionView(made), PATH) == ("missing_field", "model")
