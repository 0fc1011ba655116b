"""dynamics.gd_inaction."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Part, call, user, view
from tests.signals.ask import absent, detail, evidence, lines, value

PATH = "dynamics.gd_inaction"


def todo(*steps: str) -> Part:
    return call("TodoWrite", todos=[{"content": s, "status": "pending", "activeForm": s} for s in steps])


def edit(path: str, **more: Any) -> Part:
    return call("Edit", path=path, **more)


def test_what_the_plan_names_and_nothing_touches_is_counted() -> None:
    one = view(
        user("go"),
        todo("Change a.py and b.py", "Rewrite parse() in a.py"),
        edit("src/a.py", new_string="def parse(): ..."),
        edit("src/c.py"),
    )
    assert value(one, PATH) == pytest.approx(1 / 3)
    assert detail(one, PATH) == {"num": 1, "den": 3, "source": "todo", "untouched": ["b.py"]}
    assert lines(one, PATH) == [2]
    assert lines(one, PATH, "denominator") == [3, 4]
    assert evidence(one, PATH).rules == ["untouched: b.py"]


@pytest.mark.parametrize("secret", ["jo.doe@example.org", "C:\\Users\\jo.doe\\x", "ghp" + "_a1B2c3D4e5F6g7H8i9J0k1L2"])
def test_parts_of_what_is_masked_are_nothing_to_change(secret: str) -> None:
    assert detail(view(user("go"), todo(f"Change b.py, see {secret}", "Do it")), PATH)["untouched"] == ["b.py"]


@pytest.mark.parametrize(
    ("step", "items"),
    [
        ("Add camelCase and snake_case to src/deep/a.py", 3),
        ("Add `quoted.ts` and call()", 2),
        ("Update GitHub and Node.js docs, e.g. the guide", 0),
        ("Write the tests", 0),
        ("Change a.py, then a.py again", 1),
    ],
)
def test_files_calls_and_identifiers_are_items_each_once(step: str, items: int) -> None:
    one = view(user("go"), todo(step, "Do it"))
    if items:
        assert detail(one, PATH)["den"] == items
    else:
        assert absent(one, PATH) == ("not_applicable", "no_plan_items")


@pytest.mark.parametrize("verb", ["Read", "check", "**Look** at", "First, review", "Investigate", "Analyse", "Run"])
def test_steps_that_only_look_plan_no_change(verb: str) -> None:
    assert absent(view(user("go"), todo(f"{verb} a.py", "Do it")), PATH) == ("not_applicable", "no_plan_items")


@pytest.mark.parametrize(
    "later",
    [
        edit("deep/a.py"),
        call("Bash", command="sed -i s/x/y/ a.py"),
        call("Bash", command="pytest a.py"),
        edit("b.py", new_string="import a.py"),
    ],
    ids=["edited", "through the shell", "tested", "named in an edit"],
)
def test_an_item_is_touched_by_an_edit_a_shell_write_or_a_test(later: Part) -> None:
    assert value(view(user("go"), todo("Change a.py", "Do it"), later), PATH) == 0.0


@pytest.mark.parametrize(
    "later",
    [
        call("Read", path="a.py"),
        call("Bash", command="cat a.py"),
        edit("aa.py"),
        edit("b.py", new_string="a.python, x_a.py"),
        edit("a.py", status="rejected"),
    ],
)
def test_reading_it_changing_another_or_being_refused_touches_nothing(later: Part) -> None:
    assert value(view(user("go"), todo("Change a.py", "Do it"), later), PATH) == 1.0


def test_only_what_follows_the_first_plan_counts() -> None:
    one = view(user("go"), edit("a.py"), todo("Change a.py", "Do it"), todo("Change b.py", "Do it"), edit("b.py"))
    assert detail(one, PATH)["untouched"] == ["a.py"]


def test_a_plan_handed_over_with_the_first_turn_is_the_first_plan() -> None:
    text = "Implement the following plan:\n1. Change a.py\n2. Change b.py"
    one = view(user(text, "plan_handoff"), edit("a.py"), todo("Change c.py", "Do it"))
    assert detail(one, PATH) == {"num": 1, "den": 2, "source": "handoff", "untouched": ["b.py"]}
    assert lines(one, PATH) == [1]


def test_without_a_plan_there_is_nothing_to_leave_undone() -> None:
    assert absent(view(user("1. Change a.py\n2. Change b.py")), PATH) == ("not_applicable", "no_plan_items")
    assert absent(view(user("go"), call("TodoWrite", todos="broken")), PATH) == ("not_applicable", "no_plan_items")


@pytest.mark.parametrize("step", ["a_" * 30_000, "aB" * 30_000, "a/" * 30_000, "a." * 30_000, "a" * 60_000 + "("])
def test_a_step_of_any_shape_is_read_in_reasonable_time(step: str) -> None:
    view_ = view(user("go"), todo(step, "Do it"))
    evidence(view_, PATH)
