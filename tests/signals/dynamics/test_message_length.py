"""dynamics.user_msg_length_slope."""

from __future__ import annotations

import pytest

from tests.build import say, user, view
from tests.signals.ask import absent, detail, lines, value

PATH = "dynamics.user_msg_length_slope"


def words(n: int) -> str:
    return " ".join(["word"] * n)


@pytest.mark.parametrize(
    ("lengths", "slope", "norm"),
    [
        ([5, 5, 5], 0.0, 0.0),
        ([2, 4, 6], 2.0, 1.0),
        ([6, 4, 2], -2.0, -1.0),
        ([1, 2, 6], 2.5, 5 / 3),
        ([0, 0, 0], 0.0, None),
    ],
)
def test_the_slope_is_the_least_squares_line_through_the_lengths(
    lengths: list[int], slope: float, norm: float | None
) -> None:
    one = view(*[part for n in lengths for part in (user(words(n)), say("ok"))])
    assert value(one, PATH) == pytest.approx(slope)
    assert detail(one, PATH) == {"n": 3, "norm": norm if norm is None else pytest.approx(norm)}
    assert lines(one, PATH) == [1, 3, 5]


def test_a_fourth_turn_allows_to_leave_the_first_out() -> None:
    one = view(*[user(words(n)) for n in (100, 2, 4, 6)])
    assert value(one, PATH) < 0
    assert detail(one, PATH)["excl_first"] == pytest.approx(2.0)
    assert detail(one, PATH)["excl_first_norm"] == pytest.approx(1.0)


def test_a_long_paste_counts_four_hundred_tokens() -> None:
    one = view(user(words(1)), user(words(60_000)), user(words(799)))
    assert value(one, PATH) == pytest.approx((400 - 1) / 2)


def test_code_and_quoted_lines_are_not_counted() -> None:
    fenced = "look at\n```\n" + "x = 1\n" * 50 + "```"
    assert value(view(user("one two"), user(fenced), user("one two")), PATH) == pytest.approx(0.0)


def test_plan_handoffs_and_bare_attachments_are_no_messages() -> None:
    said = [user(words(3)), say("ok"), user(words(3)), say("ok")]
    two = view(user(words(200), "plan_handoff"), *said, user("", "attachment"), say("ok"))
    assert absent(two, PATH) == ("not_applicable", "fewer_than_3_turns")
    three = view(user(words(200), "plan_handoff"), *said, user("", "attachment"), user(words(3)))
    assert value(three, PATH) == pytest.approx(0.0)
