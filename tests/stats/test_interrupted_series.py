"""A level change beside a trend: against the normal equations, and how often it sees what is not there."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from agentsignals.stats.interrupted_series import FEWEST, LevelChange, level_change


def by_normal_equations(values: list[float], n: int) -> list[float]:
    """Constant, trend and step by Gauss' elimination over fractions: another road."""
    rows = [[Fraction(1), Fraction(t), Fraction(int(t >= n))] for t in range(len(values))]
    system = [
        [sum((r[i] * r[j] for r in rows), Fraction(0)) for j in range(3)]
        + [sum((r[i] * Fraction(v) for r, v in zip(rows, values, strict=True)), Fraction(0))]
        for i in range(3)
    ]
    for i in range(3):
        system[i] = [x / system[i][i] for x in system[i]]
        for k in range(3):
            if k != i:
                system[k] = [a - system[k][i] * b for a, b in zip(system[k], system[i], strict=True)]
    return [float(row[3]) for row in system]


def test_the_estimate_is_that_of_the_normal_equations() -> None:
    chance = random.Random(4)  # noqa: S311
    values = [chance.random() for _ in range(31)]
    made = level_change(values[:12], values[12:])
    _, trend, step = by_normal_equations(values, 12)
    assert made.level == pytest.approx(step)
    assert made.trend == pytest.approx(trend)


def claims(made: LevelChange) -> bool:
    plain, beside = made.difference, made.level_interval
    assert plain is not None and beside is not None
    return (plain[0] > 0 and beside[0] > 0) or (plain[1] < 0 and beside[1] < 0)


def test_eight_on_either_side_are_needed() -> None:
    assert level_change([0.0] * FEWEST, [1.0] * (FEWEST - 1)).level is None
    made = level_change([0.0] * FEWEST, [1.0] * FEWEST)
    assert claims(made) and made.p is not None and made.p < 0.05


def test_a_trend_is_no_change() -> None:
    rising = [n / 39 for n in range(40)]
    made = level_change(rising[:20], rising[20:])
    assert made.difference is not None and made.difference[0] > 0
    assert not claims(made) and made.level == pytest.approx(0)


def test_neighbours_that_are_alike_widen_the_interval() -> None:
    chance = random.Random(8)  # noqa: S311
    alone = [float(chance.random() < 0.5) for _ in range(40)]
    alike = sorted(alone[:20], key=lambda v: -v) + sorted(alone[20:])
    widths = []
    for values in (alone, alike):
        interval = level_change(values[:20], values[20:]).level_interval
        assert interval is not None
        widths.append(interval[1] - interval[0])
    assert widths[1] > 1.3 * widths[0]


def test_a_share_is_within_0_and_1() -> None:
    with pytest.raises(ValueError, match="within 0 and 1"):
        level_change([0.0] * 8, [2.0] * 8)


@pytest.mark.parametrize(("n", "m", "p", "alike", "most"), [
    (8, 8, 0.5, 0.0, 0.05), (20, 20, 0.8, 0.0, 0.05), (8, 30, 0.5, 0.3, 0.06), (20, 20, 0.5, 0.6, 0.09),
])  # fmt: skip
def test_false_alarms_are_rare(n: int, m: int, p: float, alike: float, most: float) -> None:
    """`alike`: how often a session is as the one before it. As docs/rules.md says, with some room for chance."""
    chance, alarms = random.Random(2), 0  # noqa: S311
    for _ in range(400):
        values: list[float] = []
        for _ in range(n + m):
            same = values and chance.random() < alike
            values.append(values[-1] if same else float(chance.random() < p))
        alarms += claims(level_change(values[:n], values[n:]))
    assert alarms / 400 <= most


def test_a_large_change_is_mostly_seen() -> None:
    chance, seen = random.Random(3), 0  # noqa: S311
    for _ in range(200):
        seen += claims(level_change(*[[float(chance.random() < p) for _ in range(20)] for p in (0.1, 0.9)]))
    assert seen / 200 > 0.85
