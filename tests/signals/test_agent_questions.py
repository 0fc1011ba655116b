"""What the agent asks: for leave, for a choice, for what it must know; and what is no question to the person."""

from __future__ import annotations

import pytest

from agentsignals.model import Absent
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView
from tests.build import Part, call, say, user, view
from tests.signals.ask import absent, detail, evidence, lines, value

CONFIRM = "user.confirmation_requests"
SOUGHT = "anticipation.clarification_sought"
STOP = "chat.agent_clarification_stop"
EDIT = call("Edit", path="a.py")
READ = call("Read", path="a.py")


@pytest.mark.parametrize(
    "text",
    [
        "Should I proceed with the refactor?",
        "Do you want me to update the docs too?",
        "Would you like me to commit this?",
        "Want me to fix it (e.g. with a lock)?",
        "Does that look right?",
        "Ready to implement?",
        "**Shall we go on?**",
        "All good. OK to continue?",
        "Which file? No matter. Should I delete it?",
    ],
)
def test_a_request_for_leave_counts(text: str) -> None:
    assert value(view(user("go"), say(text)), CONFIRM) == 1


@pytest.mark.parametrize(
    ("text", "preferences"),
    [
        ("You should use X.", 0),
        ("What is the error?", 0),
        ("I should check the tests.", 0),
        ("Should be fine.", 0),
        ("`Should I proceed?`", 0),
        ("```\nShould I proceed?\n```", 0),
        ('It prints "Do you want me to continue?" and stops.', 0),
        ("> Should I proceed?\n\nNo.", 0),
        ("See https://example.org/?want me to=1", 0),
        ("Open /search?&should i?= there.", 0),
        ("| Should I? |\n|---|", 0),
        ("Let me confirm that (does it relocate?)", 0),
        ("Which option do you prefer?", 1),
        ("Which one should I fix?", 1),
        ("What would you like the message to be?", 1),
        ("Could you share the log?", 1),
        ("What would you like to do next?", 0),
        ("Anything else you'd like me to do?", 0),
    ],
)
def test_other_questions_ask_for_no_leave(text: str, preferences: int) -> None:
    one = view(user("go"), say(text))
    assert value(one, CONFIRM) == 0
    assert detail(one, CONFIRM)["preference_questions"] == preferences


def test_a_message_asks_for_leave_once_and_tools_count_too() -> None:
    one = view(
        user("go"),
        say("Should I fix it?", "m1"),
        say("Shall I commit it?", "m1"),
        say("Should I go on?", "m2"),
        call("ExitPlanMode", plan="1. Fix"),
        call("AskUserQuestion", questions=[{"question": "Should I push?"}, {"question": "Why?"}]),
        call("AskUserQuestion", questions=[{"question": "Which branch do you want?"}]),
        call("AskUserQuestion", questions="cut off"),
        say("Should I?", thread="agent-1"),
    )
    assert value(one, CONFIRM) == 4
    assert detail(one, CONFIRM) == {"by_text": 2, "by_tool": 2, "preference_questions": 0}
    assert lines(one, CONFIRM) == [2, 4, 5, 6]
    assert "confirmation: “Should I fix it?”" in evidence(one, CONFIRM).items[0].excerpt


def test_without_questions_nothing_is_requested() -> None:
    assert value(view(user("go"), say("Done.")), CONFIRM) == 0
    assert value(view(user("go")), CONFIRM) == 0


@pytest.mark.parametrize(
    ("parts", "how", "strict"),
    [
        ([call("AskUserQuestion", questions=[]), EDIT], "tool", False),
        ([READ, say("Which of the two parsers is meant?")], "question", False),
        ([say("Which of the two parsers is meant?")], "question", True),
        ([say("Which parser? " + "I ask because both exist. " * 5)], "question", True),
    ],
)
def test_clarification_is_sought_before_anything_is_done(parts: list[Part], how: str, strict: bool) -> None:
    one = view(user("fix the parser"), *parts)
    assert value(one, SOUGHT) is True
    assert detail(one, SOUGHT) == {"how": how, "strict": strict}
    assert lines(one, SOUGHT) != []


@pytest.mark.parametrize(
    "parts",
    [
        [say("Fixed.")],
        [EDIT, say("Which parser is meant?")],
        [call("Bash", command="make"), say("Which parser is meant?")],
        [READ, call("AskUserQuestion", questions=[]), EDIT],
        [say("It parses files. Want me to fix it?")],
        [say("It parses files. Anything else?")],
        [say("Which parser is meant?"), say("The first, I see.")],
        [say("Which parser? " + "I ask because both exist. " * 20)],
        [say("`which?`")],
        [say("Fixed."), user("and?"), say("Which one is meant?")],
    ],
)
def test_an_offer_or_a_question_afterwards_seeks_no_clarification(parts: list[Part]) -> None:
    assert value(view(user("fix the parser"), *parts), SOUGHT) is False


def test_without_a_response_nobody_could_ask() -> None:
    assert absent(view(user("go")), SOUGHT) == ("not_applicable", "no_response")
    assert absent(view(user("go"), user("now"), say("Done.")), SOUGHT) == ("not_applicable", "no_response")


def test_an_agent_that_speaks_another_language_can_not_be_understood() -> None:
    asks = say("Ich habe die Datei noch nicht geändert. Soll ich das jetzt für dich machen?")
    one = view(user("los"), asks, user("ja"), EDIT, user("und"), call("AskUserQuestion", questions=[]))
    assert absent(one, CONFIRM) == absent(one, SOUGHT) == ("not_computable", "language: de")
    assert by_turn(one) == ["not_computable", False, True]


def test_each_response_stops_to_ask_or_does_not() -> None:
    one = view(
        user("a"),
        call("AskUserQuestion", questions=[{"question": "Which?"}]),
        EDIT,
        say("Done."),
        user("b"),
        call("Bash", command="ls"),
        say("Which folder is meant?"),
        user("c"),
        EDIT,
        say("Which folder is meant?"),
        user("d"),
        say("Shall I go on?"),
        user("e"),
    )
    assert by_turn(one) == [True, True, False, False, "not_applicable"]
    assert lines(one, STOP) == [2, 7]


def by_turn(one: SessionView) -> list[bool | str]:
    found = [r.value for r in measure(one) if r.signal.path == STOP]
    return [v.reason if isinstance(v, Absent) else v for v in found]
