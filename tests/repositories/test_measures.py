"""Shares with their interval, modes, and how they compare with the record."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.repositories.attribute import agreement
from agentsignals.repositories.outcomes import authored, mode_of, share_of
from agentsignals.repositories.replay import AddedLine
from agentsignals.store.tables import CommitRow


def lines(**tags: int) -> list[AddedLine]:
    return [AddedLine("a.py", n, tag, -1, False) for tag, many in tags.items() for n in range(many)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tags", "low", "high", "likely", "mode"),
    [
        ({"agent_exact": 10}, 1.0, 1.0, 1.0, "vibe"),
        ({"human_observed": 10}, 0.0, 0.0, 0.0, "human_only"),
        ({"agent_exact": 5, "human_observed": 5}, 0.5, 0.5, 0.5, "collaborative"),
        ({"agent_exact": 99, "human_observed": 1}, 0.99, 0.99, 0.99, "vibe"),
        ({"agent_exact": 90, "unknown": 10}, 0.9, 1.0, 0.95, "unknown"),
        ({"human_observed": 9, "unknown": 1}, 0.0, 0.1, 0.05, "unknown"),
        ({"agent_exact": 50, "unknown": 20, "human_observed": 30}, 0.5, 0.7, 0.6, "collaborative"),
        ({"agent_exact": 64, "unknown": 361}, 64 / 425, 1.0, 244.5 / 425, "unknown"),
        ({"agent_shell": 10}, 0.0, 1.0, 1.0, "unknown"),
        ({"agent_other_session": 5, "agent_ws": 5}, 1.0, 1.0, 1.0, "vibe"),
        ({"unknown": 4}, 0.0, 1.0, None, "unknown"),
        ({"moved": 5, "generated": 5, "preexisting": 5}, None, None, None, "unknown"),
        ({}, None, None, None, "unknown"),
    ],
)
def test_a_share_is_an_interval_and_a_mode_needs_all_of_it(
    tags: dict[str, int], low: float | None, high: float | None, likely: float | None, mode: str
) -> None:
    told = share_of(authored(lines(**tags)))
    assert (told.low, told.high, told.likely, mode_of(told.low, told.high)) == (
        low if low is None else pytest.approx(low),
        high if high is None else pytest.approx(high),
        likely if likely is None else pytest.approx(likely),
        mode,
    )


def test_blank_lines_and_what_nobody_wrote_decide_no_mode() -> None:
    blank = [AddedLine("a.py", n, "human_observed", -1, True) for n in range(50)]
    told = share_of(authored([*lines(agent_exact=10, moved=10), *blank]))
    assert (mode_of(told.low, told.high), told.n) == ("vibe", 10)


def test_a_border_belongs_to_the_mode_beyond_it() -> None:
    assert [mode_of(a, b) for a, b in ((0.0, 0.0), (0.01, 0.98), (0.99, 1.0), (0.5, 0.99))] == [
        "human_only", "collaborative", "vibe", "unknown",
    ]  # fmt: skip


def row(recorded: float | None, likely: float | None, *flags: str, **facts: Any) -> CommitRow:
    made = CommitRow(
        repo="r",
        commit_sha=f"{recorded}",
        parent_sha=None,
        authored_at=0,
        committed_at=0,
        author="me",
        subject="",
        is_merge=False,
        checkpoint_ids=[],
        relation="original",
        session_ids=["s"],
        added=100,
        **facts,
    )
    made.recorded_percentage, made.agent_likely, made.flags = recorded, likely, list(flags)
    return made


def test_only_rows_that_mean_the_same_are_compared() -> None:
    rows = [row(100.0, 1.0), row(90.0, 0.8), row(0.0, 1.0, "in_turn"), row(None, 1.0), row(50.0, None)]
    told = agreement(rows)
    assert (told.n, told.mae, told.all_rows) == (2, pytest.approx(5.0), 3)
    assert told.r == pytest.approx(1.0)
    assert told.all_mae == pytest.approx(110 / 3)


def test_a_large_difference_is_listed_with_what_most_likely_causes_it() -> None:
    told = agreement([row(20.0, 0.9, unknown=40, human_observed=10, agent_low=0.5, agent_high=0.9)])
    assert told.within_interval == 0
    assert agreement([row(70.0, 1.0, agent_low=0.5, agent_high=1.0)]).within_interval == 1
    assert [(d.low, d.high) for d in told.far] == [(50.0, 90.0)]
    assert [(d.recorded, d.replayed, d.cause) for d in told.far] == [
        (20.0, 90.0, "lines that nothing in the transcripts explains: 40 of 100")
    ]


def test_without_spread_there_is_no_correlation() -> None:
    assert agreement([row(100.0, 1.0), row(100.0, 1.0)]).r is None


def test_bounds_of_lines_that_are_all_known_meet() -> None:
    """1 - 10/13 is a little less than 3/13."""
    share = share_of(authored(lines(agent_exact=3, human_observed=10)))
    assert share.low == share.high == share.likely == 3 / 13


@pytest.mark.parametrize(
    ("recorded", "likely", "flags", "facts", "cause"),
    [
        (
            10.0,
            1.0,
            ["total_differs"],
            {"recorded_agent_lines": 100},
            "the record counts lines that are not in the commit",
        ),
        (
            10.0,
            1.0,
            ["total_differs", "in_turn"],
            {"recorded_agent_lines": 100},
            "the record counts lines that are not",
        ),
        (10.0, 1.0, ["total_differs", "in_turn"], {"recorded_agent_lines": 40}, "made in mid-turn"),
        (0.0, 1.0, ["total_differs"], {"recorded_agent_lines": 0}, "the record has none of the agent's lines"),
        (50.0, 1.0, ["metric_v2"], {"recorded_agent_lines": 50}, "the record's newer measure"),
    ],
)
def test_every_row_far_apart_has_a_cause(
    recorded: float, likely: float, flags: list[str], facts: dict[str, int], cause: str
) -> None:
    made = row(recorded, likely, *flags)
    made.recorded_agent_lines = facts["recorded_agent_lines"]
    ((words, n),) = agreement([made]).causes.items()
    assert words.startswith(cause)
    assert n == 1


def test_recorded_lines_are_compared_as_a_share_of_what_was_committed() -> None:
    counted_beside, near, unknown = row(7.1, 1.0, "total_differs"), row(90.0, 0.9), row(70.0, 0.85, unknown=30)
    counted_beside.recorded_agent_lines, near.recorded_agent_lines = 100, 90
    made = agreement([counted_beside, near, unknown])
    assert (made.lines_n, made.lines_mae) == (2, pytest.approx(0.0))
    assert made.all_mae == pytest.approx((92.9 + 0 + 15) / 3)
    assert (made.unknown_n, made.unknown_mae) == (1, pytest.approx(15.0))
