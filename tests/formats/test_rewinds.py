"""What the person went back from, by one rule for all agents: billed, on the thread `abandoned`, none of it a turn."""

from __future__ import annotations

import pytest

from agentsignals.formats.conversation import returns


@pytest.mark.parametrize(
    ("parents", "prompts", "found"),
    [
        ([-1, 0, 1, 2], [0, 2], []),
        ([-1, 0, 1, 2, 1, 4], [0, 2, 4], [4]),
        ([-1, 0, -1], [0, 2], [2]),
        ([-1, 0, 0, 0], [0, 1, 2, 3], [2, 3]),
        ([-1, 0, 0, 2], [0, 3], []),
        ([5, 0], [0, 1], []),
    ],
)
def test_a_prompt_returns_where_it_follows_on_another_than_the_last(
    parents: list[int], prompts: list[int], found: list[int]
) -> None:
    assert sorted(returns(parents, [n in prompts for n in range(len(parents))])) == found
