"""Plans as agents write them, and how far two lie apart."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.formats.builder import SessionBuilder
from agentsignals.views.plans import Distance, distance, plans, text_steps
from tests.build import Part, call, user, view
from tests.signals.ask import absent, detail, lines, value

PATH = "dynamics.plan_ged"


def todo(*steps: str) -> Part:
    return call("TodoWrite", todos=[{"content": s, "status": "pending"} for s in steps])


def create(subject: str, n: int) -> Part:
    return call("TaskCreate", subject=subject, result=f"Task #{n} created successfully: {subject}")


def update(n: int, **changes: Any) -> Part:
    made = call("TaskUpdate")

    def part(builder: SessionBuilder, at: int) -> None:
        made(builder, at)
        builder.session.tool_calls[-1].arguments = json.dumps({"taskId": str(n), **changes})

    return part


def chain(n: int) -> set[tuple[int, int]]:
    return {(i, i + 1) for i in range(n - 1)}


def test_the_worked_example() -> None:
    """One step replaced, one appended with its edge: 3 of 12 (design/signals.md#repetition)."""
    session = view(
        user("go"),
        todo("read x", "edit x", "run tests"),
        todo("read x", "rewrite y", "run tests", "update docs"),
    )
    assert value(session, PATH) == 0.25
    assert detail(session, PATH)["raw"] == 3
    assert detail(session, PATH)["den"] == 12
    assert detail(session, PATH)["method"] == "exact"
    assert lines(session, PATH) == [2, 3]


def test_a_list_ticked_off_is_no_other_plan() -> None:
    done = call("TodoWrite", todos=[{"content": "read x", "status": "completed"}, {"content": "edit x"}])
    assert value(view(todo("read x", "edit x"), done), PATH) == 0


def test_one_plan_is_zero_and_none_not_applicable() -> None:
    assert value(view(todo("read x", "edit x")), PATH) == 0
    assert detail(view(todo("read x", "edit x")), PATH)["single_plan"] is True
    assert absent(view(user("go")), PATH) == ("not_applicable", "no_plan")


def test_a_step_in_other_words_is_the_same_and_in_other_order_is_not() -> None:
    assert value(view(todo("Update the CLI docs"), todo("Update CLI docs page")), PATH) == 0
    turned = view(todo("read alpha", "edit beta"), todo("edit beta", "read alpha"))
    assert detail(turned, PATH)["raw"] == 2


def test_tasks_created_one_by_one_are_one_plan() -> None:
    made = [create("write parser", 1), create("write lexer", 2)]
    assert [p.steps for p in plans(view(*made))] == [["write parser", "write lexer"]]
    later = [*made, update(1, status="in_progress"), create("write docs", 3)]
    assert [len(p.steps) for p in plans(view(*later))] == [2, 3]


def test_what_waits_for_another_task_is_an_edge() -> None:
    made = [create("write parser", 1), create("write lexer", 2), create("write docs", 3)]
    session = view(*made, update(3, addBlockedBy=["1"]))
    assert plans(session)[-1].after == {(0, 2)}


def test_a_task_deleted_when_done_was_still_planned() -> None:
    made = [create("write parser", 1), create("write lexer", 2), update(1, status="completed")]
    assert value(view(*made, update(1, status="deleted")), PATH) == 0
    assert detail(view(*made, update(2, status="deleted")), PATH)["steps"] == [2, 1]


def test_a_plan_shown_to_the_person_is_read_by_its_steps() -> None:
    text = "# Plan\n1. not numbered\n```\n1. code\n2. code\n```\n### 1. Split the module\ntext\n### 2. Move tests\n"
    assert text_steps(text) == ["not numbered", "Split the module", "Move tests"]
    assert text_steps("- one thing\n- another\n") == ["one thing", "another"]
    assert text_steps("just prose\n1. one") == []
    shown = call("ExitPlanMode", plan="1. read x\n2. edit x", status="rejected")
    assert [p.source for p in plans(view(shown))] == ["text"]


@pytest.mark.parametrize(
    "arguments", ["", "[]", '{"todos": 3}', '{"todos": [1, null, {"content": ""}]}', '{"plan": {}}', "{"]
)
def test_odd_arguments_are_no_plan(arguments: str) -> None:
    session = view(call("TodoWrite"))
    session.calls[0].arguments = arguments
    assert plans(session) == []


def test_only_the_first_twelve_steps_count() -> None:
    many = view(todo(*(f"step{n} alpha{n}" for n in range(40))), todo("other"))
    assert detail(many, PATH)["steps"] == [12, 1]


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [
        ("abc", "abc", 0),
        ("abc", "abd", 1),
        ("abc", "ac", 3),
        ("ab", "ba", 2),
        ("", "abc", 5),
        ("abcd", "bcda", 2),
        ("aab", "baa", 2),
    ],
)
def test_distances_of_chains(first: str, second: str, edits: int) -> None:
    """The same figures come out of networkx.graph_edit_distance."""
    alike = [[a == b for b in second] for a in first]
    found = distance(alike, len(second), chain(len(first)), chain(len(second)))
    assert (found.edits, found.exact) == (edits, True)


def test_a_hard_case_ends_with_a_bound_and_the_same_one_every_time() -> None:
    order = [7, 2, 11, 5, 0, 9, 3, 10, 1, 8, 4, 6]
    alike = [[i == j for j in order] for i in range(12)]
    found = distance(alike, 12, chain(12), chain(12))
    assert not found.exact
    assert 0 < found.edits <= 22
    assert found == distance(alike, 12, chain(12), chain(12))
    assert isinstance(found, Distance)


def _edges(n: int) -> st.SearchStrategy[set[tuple[int, int]]]:
    places = [(a, b) for a in range(n) for b in range(n) if a != b]
    return st.sets(st.sampled_from(places)) if places else st.just(set())


@settings(max_examples=60)
@given(st.data(), st.integers(0, 4), st.integers(0, 4))
def test_no_mapping_of_two_small_graphs_is_cheaper(data: st.DataObject, n: int, m: int) -> None:
    alike = data.draw(st.lists(st.lists(st.booleans(), min_size=m, max_size=m), min_size=n, max_size=n))
    first, second = data.draw(_edges(n)), data.draw(_edges(m))
    costs = []
    for places in product([*range(m), None], repeat=n):
        kept = [j for j in places if j is not None]
        if len(kept) == len(set(kept)):
            same = {(places[a], places[b]) for a, b in first}
            labels = sum(j is None or not alike[i][j] for i, j in enumerate(places))
            costs.append(labels + m - len(kept) + len(first) + len(second) - 2 * len(same & second))
    assert distance(alike, m, first, second) == Distance(min(costs), True, n + m + len(first) + len(second))
