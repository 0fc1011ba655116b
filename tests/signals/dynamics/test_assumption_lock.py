"""An assumption that a correction did not move."""

from __future__ import annotations

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.embedding import DISABLED
from agentsignals.signals.catalog import measure
from tests.build import Part, call, say, user, view
from tests.signals.ask import absent, detail, lines, value

PATH = "dynamics.assumption_lock_turn"
ASKED = user("Read the settings from the environment")
WRONG = say("I read the settings from the YAML file in the config folder.")
NO = user("no, that's wrong: settings come from environment variables")
AGAIN = user("that's still not right, environment variables please")
RIGHT = say("Settings come from environment variables now.")


def test_an_answer_that_stays_where_it_was_is_locked() -> None:
    locked = view(ASKED, WRONG, NO, WRONG, AGAIN, WRONG)
    assert value(locked, PATH) == 1
    assert detail(locked, PATH)["second_turn"] == 2
    assert detail(locked, PATH)["moved"] == 0
    assert lines(locked, PATH) == [3, 5]


def test_an_answer_that_came_nearer_is_not() -> None:
    assert absent(view(ASKED, WRONG, NO, RIGHT, AGAIN, RIGHT), PATH) == ("none_found", "2 corrections")


@pytest.mark.parametrize(
    ("between", "is_locked"),
    [([user("ok")], True), ([user("great, thanks!")], False), ([user("ok"), WRONG] * 3, False)],
    ids=["a word", "an acceptance", "three turns"],
)
def test_what_lies_between_two_corrections_matters(between: list[Part], is_locked: bool) -> None:
    found = value(view(ASKED, WRONG, NO, WRONG, *between, WRONG, AGAIN, WRONG), PATH)
    assert (found == 1) is is_locked


def test_a_report_of_failure_counts_as_a_correction() -> None:
    failing = user("the settings test is still failing")
    assert value(view(ASKED, WRONG, failing, WRONG, failing, WRONG), PATH) == 1


def test_a_correction_in_the_first_message_corrects_nothing() -> None:
    assert absent(view(NO, WRONG, AGAIN, WRONG, user("ok"), WRONG), PATH) == ("none_found", "1 corrections")


def test_two_turns_are_too_few() -> None:
    assert absent(view(ASKED, WRONG, NO, WRONG), PATH) == ("not_applicable", "few_turns")


def edit(path: str) -> Part:
    return call("Edit", path=path, hunks=[Hunk(start_line=1, end_line=2, added=2, removed=2, old_start=1)])


@pytest.mark.parametrize(("then", "is_locked"), [("a.py", True), ("b.py", False)])
def test_without_an_embedder_the_edited_places_decide(then: str, is_locked: bool) -> None:
    session = view(ASKED, edit("a.py"), NO, edit(then), AGAIN, edit(then), cwd="/repo")
    (found,) = [r for r in measure(session, {"vectors": DISABLED}) if r.signal.path == PATH]
    assert (found.value == 1) is is_locked
    assert not is_locked or found.detail["method"] == "region"
