"""Comparing is done outside, by structure."""

from __future__ import annotations

from typing import Any

import pytest
from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import inside, same, shown

NAN = float("nan")


@pytest.mark.parametrize(
    ("actual", "expected", "equal"),
    [
        (1, 1, True),
        (True, 1, False),
        (1, 1.0, False),
        (0.0, -0.0, True),
        (NAN, NAN, False),
        ([NAN], [NAN], False),
        ({NAN: 1}, {NAN: 1}, False),
        (complex(1, NAN), complex(1, NAN), False),
        (float("inf"), float("inf"), True),
        ((1, 2), (1, 2), True),
        ((1, 2), [1, 2], False),
        ({1, 2}, {2, 1}, True),
        ({1}, frozenset({1}), False),
        ({1: "a", 2: "b"}, {2: "b", 1: "a"}, True),
        ({1: "a"}, {True: "a"}, False),
        ({1: "a"}, {1: "a", 2: "b"}, False),
        ({(1, 2): None}, {(1, 2): None}, True),
        (b"a", "a", False),
        (b"a", bytearray(b"a"), False),
        ("a,b", ["a", "b"], False),
        (["a,b"], ["a", "b"], False),
        ([["a"], "b"], [["a", "b"]], False),
        ("\ud800", "\ud800", True),
        (None, False, False),
        ("inf", float("inf"), False),
    ],
)
def test_equal_is_equal_in_type_and_content(actual: Any, expected: Any, equal: bool) -> None:
    assert same(actual, expected) is equal
    assert same(expected, actual) is equal


def test_sequences_and_numbers_can_be_told_alike() -> None:
    assert same([(1, 2)], [[1, 2]], sequences_alike=True)
    assert same({"a": 1}, {"a": 1.0}, numbers_alike=True)
    assert not same(True, 1.0, numbers_alike=True)
    assert not same((1,), {1}, sequences_alike=True)
    assert not same(1.5, 1, numbers_alike=True)


def test_an_object_is_never_the_same() -> None:
    class Any_:  # noqa: N801 - the name does not matter
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]  # as Python does for such a class

    assert not same(Any_(), 1)
    assert not same([Any_()], [1])
    with pytest.raises(SandboxError, match="no plain data"):
        same(1, Any_())


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, -5, 1 << 13_999, 1.5, 1e-320, float("-inf"), "", "\ud800\0é", b"\xff", bytearray(b"a"), 1 + 2j),
        *([], (), set(), {1: {2: (3, [4])}}, {frozenset({1, (2,)})}, {(): 1}, {None: 0, "None": 1}),
    ],
)
def test_a_plain_value_comes_back_as_it_was(value: Any) -> None:
    back = inside.decode(inside.loads(inside.json.dumps(inside.encode(value)).encode()))
    assert same(back, value)
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"tuple": [1], "list": [2]}',
        b"{}",
        b'{"object": []}',
        b'{"tuple": 1}',
        b'{"set": [[1]]}',
        b'{"dict": [[1]]}',
        b'{"dict": [[[1], 2]]}',
        b'{"float": 1}',
        b'{"float": "one"}',
        b'{"bytes": "zz"}',
        b'{"complex": [1]}',
        b'{"complex": [[], {}]}',
        b"[" * 100_000,
        b"[" * 500 + b"]" * 500,
        b"9" * 5000,
    ],
)
def test_a_forged_value_is_refused(line: bytes) -> None:
    with pytest.raises(inside.Refused) as refused:
        inside.decode(inside.loads(line))
    assert refused.value.kind == "protocol"


def test_keys_chosen_to_collide_do_not_cost_us_their_square() -> None:
    prime = (1 << 61) - 1
    keys = ",".join(str(n * prime) for n in range(1, 40_000))
    with pytest.raises(inside.Refused, match="collide"):
        inside.decode(inside.loads(f'{{"set": [{keys}]}}'.encode()))


def test_a_value_is_shown_in_characters_that_can_be_stored() -> None:
    assert shown("\ud800").encode() == b"'\\ud800'"
    assert shown([1, "a"]) == "[1, 'a']"
    assert len(shown("x" * 10_000, 50)) == 50
    assert len(shown((1 << 13_999), 80)) == 80
