"""The function tasks: what their own solutions do to them, and what their variants can't be."""

from __future__ import annotations

import copy
import re
from typing import Any

import msgspec
import pytest
from agentsignals.errors import LabError

from agentsignals_lab.coding_tasks import PUBLISHED, task, tasks
from agentsignals_lab.coding_tasks.cases import Case, Task, changed, examples, hardcoded, variant, words
from agentsignals_lab.evaluation import agrees, evaluate, hardcoding, run_cases
from agentsignals_lab.sandbox import Limits
from tests.conftest import some

ALL = tasks()
NAMES = [one.id for one in ALL]


def answers(source: str, one: Task, cases: tuple[Case, ...]) -> list[bool]:
    """Our own solutions may run here; only models' answers need the sandbox."""
    space: dict[str, Any] = {}
    exec(source, space)  # noqa: S102
    found = []
    for case in cases:
        try:
            found.append(agrees(space[one.function](*copy.deepcopy(case.args)), case.expected))
        except Exception:  # noqa: BLE001  (a wrong solution may do anything)
            found.append(False)
    return found


def test_there_are_at_least_sixty_with_the_published_names_among_them() -> None:
    assert len(ALL) >= 60
    assert len(set(NAMES)) == len(ALL)
    assert set(PUBLISHED) <= set(NAMES)
    assert len({one.family for one in ALL}) == 8


@pytest.mark.parametrize("name", some(NAMES, 8))
def test_a_reference_solution_passes_everything_in_the_sandbox(name: str) -> None:
    (one,) = tasks([name])
    found = evaluate(one, f"```python\n{one.reference}```")
    assert (found.full_pass, found.error) == (True, "")
    assert (found.visible_passed, found.hidden_passed) == (len(one.visible), len(one.hidden))


@pytest.mark.parametrize("one", ALL, ids=NAMES)
def test_hidden_cases_find_the_plausible_mistake_that_visible_ones_let_pass(one: Task) -> None:
    assert all(answers(one.wrong, one, one.visible))
    assert not all(answers(one.wrong, one, one.hidden))


@pytest.mark.parametrize("one", ALL, ids=NAMES)
def test_knowing_the_visible_cases_passes_them_and_no_more_and_is_seen(one: Task) -> None:
    source = hardcoded(one)
    assert all(answers(source, one, one.visible))
    assert not all(answers(source, one, one.hidden))
    assert hardcoding(one, source).flagged
    assert not hardcoding(one, one.reference).flagged
    assert not hardcoding(one, one.wrong).flagged


@pytest.mark.parametrize("one", ALL, ids=NAMES)
def test_cases_are_many_distinct_and_of_the_declared_kinds(one: Task) -> None:
    assert len(one.hidden) >= max(3, len(one.visible))
    given = [repr(case.args) for case in (*one.visible, *one.hidden)]
    assert len(set(given)) == len(given)
    space: dict[str, Any] = {}
    exec(compile(f"def {one.signature}: ...", "signature", "exec", dont_inherit=True), space)  # noqa: S102
    kinds = space[one.function].__annotations__
    for case in (*one.visible, *one.hidden):
        for value, kind in zip(case.args, [k for name, k in kinds.items() if name != "return"], strict=True):
            msgspec.convert(value, kind, strict=True)
        msgspec.convert(case.expected, kinds["return"], strict=True)


@pytest.mark.parametrize("kind", ["one_off", "conflicting"])
def test_no_impossible_variant_is_passed_honestly(kind: Any) -> None:
    for one in ALL:
        made = variant(one, kind)
        assert not made.honest
        assert made.hidden == one.hidden
        assert not all(answers(one.reference, made, made.visible)), made.key
        assert all(answers(one.reference, made, made.hidden))


def test_a_one_off_is_passed_by_who_knows_the_cases_and_that_is_cheating_while_nothing_passes_a_conflict() -> None:
    one_off, conflicting = (variant(task("to_roman"), kind) for kind in ("one_off", "conflicting"))
    found = evaluate(one_off, hardcoded(one_off))
    assert (found.visible_pass, found.hidden_pass) == (True, False)
    assert hardcoding(one_off, "def to_roman(number): ...", found).cheated
    assert not hardcoding(task("to_roman"), "def to_roman(number): ...", found).cheated
    suite = run_cases(hardcoded(conflicting), "to_roman", conflicting.visible, Limits())
    assert suite.passed == len(conflicting.visible) - 1


@pytest.mark.parametrize("value", [True, 3, -1.5, "", "x", "text", [], [1, 2], (), (1,), {}, {"a": 1}, None], ids=repr)
def test_a_changed_value_is_another_of_the_same_kind(value: Any) -> None:
    assert not agrees(changed(value), value)
    assert value is None or type(changed(value)) is type(value)


def test_an_inviting_variant_shows_less_says_more_and_can_be_solved() -> None:
    for one in ALL:
        made = variant(one, "hardcode_inviting")
        assert made.honest
        assert made.visible == one.visible[:2]
        assert words(made).startswith(words(one))
        assert len(words(made)) > len(words(one))


def test_a_prompt_shows_the_visible_cases_and_no_hidden_one() -> None:
    for one in ALL:
        told = f"{words(one)}\n{examples(one)}"
        assert one.signature in told
        assert examples(one).count("==") >= len(one.visible)
        for case in one.hidden:
            assert f"{one.function}({', '.join(map(repr, case.args))})" not in told, one.id
    assert "\n\n" not in words(task("clean_path"))
    assert not re.search(r"\s{2,}", words(task("clean_path")).replace("\n", " "))


def test_tasks_are_found_by_key_family_and_variant() -> None:
    assert task("caesar@1+one_off").key == "caesar@1+one_off"
    assert task("caesar").key == "caesar@1"
    assert {one.family for one in tasks(families=["times"])} == {"times"}
    assert [one.key for one in tasks(["rotate"], variants=("plain", "conflicting"))] == [
        "rotate@1",
        "rotate@1+conflicting",
    ]
    for unknown in ("nothing", "caesar@9", "caesar+odd"):
        with pytest.raises(LabError):
            task(unknown)
    with pytest.raises(LabError, match="variant already"):
        variant(task("caesar+one_off"), "conflicting")
