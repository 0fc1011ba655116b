"""Which line is which: exact first, then but for white space; never out of order, never slow."""

from __future__ import annotations

import random
import time

import pytest

from agentsignals.repositories.line_states import NEW, align, align_loosely


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a b c", "a b c", [0, 1, 2]),
        ("a b c", "a x c", [0, NEW, 2]),
        ("a b c", "a c", [0, 2]),
        ("", "a b", [NEW, NEW]),
        ("a b", "", []),
        ("} a }", "} a } b }", [0, 1, 2, NEW, NEW]),
        ("a b c d", "d a b c", [NEW, 0, 1, 2]),
        ("x x x", "x x", [0, 1]),
    ],
)
def test_lines_are_matched_in_order(old: str, new: str, expected: list[int]) -> None:
    assert align(old.split(), new.split()) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected", "loosely"),
    [
        (["\tif x:", "\t\treturn 1"], ["    if x:", "        return 1"], [0, 1], {0, 1}),
        (["f(a, b)"], ["f(", "    a,", "    b,", ")"], [0, 0, 0, 0], {0, 1, 2, 3}),
        (["x = 'y'"], ['x = "y"'], [0], {0}),
        (["keep", "x = 1", "end"], ["keep", "x = 2", "end"], [0, NEW, 2], set()),
        (["a = [1,", "     2]", "tail"], ["a = [1, 2]", "tail"], [0, 2], {0}),
        (["one()"], ["one()", "", "two()"], [0, NEW, NEW], set()),
    ],
)
def test_what_a_formatter_changes_still_matches(
    old: list[str], new: list[str], expected: list[int], loosely: set[int]
) -> None:
    matched, told = align_loosely(old, new)
    assert (matched, told) == (expected, loosely)


def test_a_match_is_always_of_equal_lines_in_rising_order() -> None:
    rng = random.Random(7)  # noqa: S311  (examples, no secrets)
    for _ in range(300):
        old = [rng.choice("abcde}") for _ in range(rng.randrange(40))]
        new = [rng.choice("abcde}x") for _ in range(rng.randrange(40))]
        found = [(x, y) for y, x in enumerate(align(old, new)) if x != NEW]
        assert [old[x] for x, _ in found] == [new[y] for _, y in found]
        assert [x for x, _ in found] == sorted({x for x, _ in found})


def test_as_much_is_matched_as_a_plain_longest_common_subsequence_nearly_has() -> None:
    rng = random.Random(11)  # noqa: S311  (examples, no secrets)
    ours = best = 0
    for _ in range(60):
        old = [f"line {rng.randrange(60)}" for _ in range(40)]
        new = [line for line in old if rng.random() > 0.2]
        for _ in range(6):
            new.insert(rng.randrange(len(new) + 1), f"line {rng.randrange(90)}")
        ours += sum(x != NEW for x in align(old, new))
        best += _longest(old, new)
    assert ours >= 0.97 * best


def _longest(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        last = 0
        for n, y in enumerate(b):
            last, row[n + 1] = row[n + 1], last + 1 if x == y else max(row[n], row[n + 1])
    return row[-1]


@pytest.mark.parametrize("kind", ["unique", "repeated", "reversed", "other"])
def test_fifty_thousand_lines_take_seconds(kind: str) -> None:
    old = [f"line {n if kind != 'repeated' else n % 5}" for n in range(50_000)]
    new = {
        "unique": [*old[:20_000], "new", *old[20_000:]],
        "repeated": [line for n, line in enumerate(old) if n % 7],
        "reversed": old[::-1],
        "other": [f"other {n}" for n in range(50_000)],
    }[kind]
    began = time.process_time()
    align_loosely(old, new)
    assert time.process_time() - began < 10
