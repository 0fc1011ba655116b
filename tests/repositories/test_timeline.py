"""Who can have made a change that no call shows: only whoever alone had the chance."""

from __future__ import annotations

import pytest

from agentsignals.repositories.line_states import HUMAN, SHELL, UNKNOWN
from agentsignals.repositories.replay import Chances
from agentsignals.repositories.working_trees import Activity

S = 1_000_000


def chances(busy: list[tuple[int, int]], *writers: int, said: str = "") -> Chances:
    spans = [(a * S, b * S) for a, b in busy]
    return Chances(
        [
            Activity(
                session_id="s", busy=spans, writers=[w * S for w in writers], commands=[(w * S, said) for w in writers]
            )
        ]
    )


@pytest.mark.parametrize(
    ("busy", "writers", "expected"),
    [
        ([(0, 100)], [], UNKNOWN),
        ([(0, 100)], [50], SHELL),
        ([(0, 40), (60, 100)], [], HUMAN),
        ([(0, 40), (60, 100)], [50], UNKNOWN),
        ([(0, 40), (45, 100)], [30], SHELL),
        ([(0, 40)], [], HUMAN),
        ([(0, 100), (20, 60)], [], UNKNOWN),
        ([], [], HUMAN),
    ],
)
def test_a_change_is_somebodys_only_when_nobody_else_had_the_chance(
    busy: list[tuple[int, int]], writers: list[int], expected: int
) -> None:
    assert chances(busy, *writers).unseen(10 * S, 90 * S, None, False) == expected


@pytest.mark.parametrize(
    ("busy", "written", "is_new", "expected"),
    [
        ([(0, 100)], 50, False, SHELL),
        ([(0, 60)], 50, False, UNKNOWN),
        ([(0, 20), (40, 100)], 50, False, UNKNOWN),
        ([(0, 20), (40, 100)], 50, True, SHELL),
        ([(0, 20), (40, 100)], 5, False, UNKNOWN),
    ],
)
def test_a_file_that_a_command_wrote_is_the_commands_until_a_person_has_the_chance(
    busy: list[tuple[int, int]], written: int, is_new: bool, expected: int
) -> None:
    assert chances(busy, 50).unseen(10 * S, 90 * S, written * S, is_new) == expected


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("    total = compute(1)", 10, True),
        ("total = compute(1)", 60, False),
        ("total = compute(2)", 10, False),
        ("x = 1", 10, False),
        ("\tquoted('text')", 10, True),
    ],
)
def test_a_line_that_stands_in_a_command_came_from_there(line: str, after: int, expected: bool) -> None:
    said = "python3 -c \"\ntotal = compute(1)\nx = 1\ntext = 'a\\n\\tquoted(\\'text\\')\\nb'\n\""
    assert chances([(0, 100)], 50, said=said).typed_by_command(line, after * S, 90 * S) is expected


def test_rest_is_what_no_session_was_busy_in() -> None:
    told = chances([(0, 20), (10, 30), (50, 60)])
    assert told.idle_us(0, 100 * S) == 60 * S
    assert told.idle_us(55 * S, 70 * S) == 10 * S
    assert not told.idle(0, 30 * S)
    assert told.idle(0, 45 * S)
