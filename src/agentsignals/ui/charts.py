"""Bars over time or over ranges of values, drawn as SVG. They need no script; each bar leads to its sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 400, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 4, 10, 20
_WIDEST = 48
_FEWEST_SEEN = 30
"""The interval of fewer observations is cut off at the top of the axis instead of stretching it."""

_LEAST = 1e-300
"""Below it steps have no size."""


class Part(NamedTuple):
    """A piece of a bar: its value, and which of the colours it has."""

    value: float
    colour: int = 1


class Point(NamedTuple):
    """One period, or one range of values, of a chart."""

    name: str
    """Its words on the axis."""
    parts: tuple[Part, ...]
    """From the axis up; none where there is no value."""
    label: str
    link: str
    interval: tuple[float, float] | None = None
    n: float = 0


class Tick(NamedTuple):
    """A mark of an axis in pixels, and its words."""

    at: float
    label: str
    anchor: str = "middle"


class Rectangle(NamedTuple):
    """A piece of a bar, in pixels."""

    y: float
    height: float
    colour: int


class Bar(NamedTuple):
    """A point in pixels."""

    x: float
    width: float
    rectangles: list[Rectangle]
    line: tuple[float, float] | None
    """The ends of its interval."""
    label: str
    link: str


class BarChart(NamedTuple):
    title: str
    unit: str
    note: str
    bars: list[Bar]
    across: list[Tick]
    up: list[Tick]
    dots: bool
    """Values are dots with intervals, not bars from 0."""
    legend: list[tuple[str, int, str]]
    """Names, colours and addresses of the pieces."""


SPARK_WIDTH, SPARK_HEIGHT = 132, 24


class Spark(NamedTuple):
    """A sparkline: bars in pixels, without axes."""

    says: str
    bars: list[tuple[float, float, float, float]]
    """Left end, top, width and height of each."""


def spark(values: Sequence[float | None], says: str) -> Spark | None:
    """Return a bar a value, from 0 to the highest; no bar where there is no value. None for fewer than two."""
    highest = max((value for value in values if value is not None), default=0.0)
    if len(values) < 2 or highest <= 0:
        return None
    step = SPARK_WIDTH / len(values)
    width = max(step * 0.8, 0.6)
    bars = []
    for n, value in enumerate(values):
        if value is not None and value > 0:
            height = max(value / highest * SPARK_HEIGHT, 1.0)
            bars.append((n * step, SPARK_HEIGHT - height, width, height))
    return Spark(says, bars)


def strip(  # noqa: PLR0913  (what is drawn is named at the call)
    points: Sequence[Point],
    *,
    title: str,
    unit: str,
    written: Callable[[float], str],
    note: str = "",
    dots: bool = False,
    legend: Sequence[tuple[str, int, str]] = (),
    whole: bool = False,
    edges: Sequence[str] = (),
) -> BarChart | None:
    """The chart; None where there is nothing to show. `written`: a value of the axis in words; `whole`: counts, whose
    axis has no halves; `edges`: words between the bars, and at both ends, instead of below each."""
    if not any(point.parts for point in points):
        return None
    highest = 0.0
    for point in points:
        total = sum(part.value for part in point.parts)
        is_seen = point.interval is not None and point.n >= _FEWEST_SEEN
        highest = max(highest, total, point.interval[1] if point.interval and is_seen else total)
    ticks = axis(highest, whole=whole)
    scale = (HEIGHT - _TOP - _BOTTOM) / ticks[-1]
    step = (WIDTH - _LEFT - _RIGHT) / len(points)
    bars = []
    for n, point in enumerate(points):
        rectangles, reached = [], 0.0
        for part in point.parts:
            y = _y(reached + part.value, scale)
            if dots:
                rectangles.append(Rectangle(y, 0, part.colour))
            elif part.value > 0:
                rectangles.append(Rectangle(min(y, HEIGHT - _BOTTOM - 1), max(part.value * scale, 1.0), part.colour))
            reached += part.value
        line = (_y(point.interval[0], scale), max(_y(point.interval[1], scale), _TOP)) if point.interval else None
        gap = max(min(step * 0.15, 3), (step - _WIDEST) / 2)
        x, width = _LEFT + n * step + gap, step - 2 * gap
        bars.append(Bar(x=x, width=width, rectangles=rectangles, line=line, label=point.label, link=point.link))
    # Words below the first bar, the last and what fits between; or between two bars.
    names = edges or [point.name for point in points]
    last = len(names) - 1
    ends, anchors = {0: _LEFT, last: WIDTH - _RIGHT}, {0: "start", last: "end"}
    across = []
    for n in sorted({0, last, *((last // 3, last - last // 3) if last >= 9 else ())}):
        middle = _LEFT + (n + 0.5) * step
        if edges:
            across.append(Tick(_LEFT + n * step, names[n], "end" if n == last else "middle"))
        elif step > _WIDEST:
            across.append(Tick(middle, names[n]))
        else:
            across.append(Tick(ends.get(n, middle), names[n], anchors.get(n, "middle")))
    up = [Tick(_y(value, scale), written(value), "end") for value in ticks]
    return BarChart(
        title=title,
        unit=unit,
        note=note,
        bars=bars,
        across=across,
        up=up,
        dots=dots,
        legend=[*legend],
    )


def axis(highest: float, *, whole: bool = False) -> list[float]:
    """Round values from 0 to no less than the highest, three to six of them."""
    if highest < _LEAST:
        return [0.0, 1.0]
    step = 1.0
    while step * 5 < highest:
        step *= 10
    while step / 10 * 5 >= highest:
        step /= 10
    step = next(size for size in (step / 5, step / 2, step) if size * 5 >= highest)
    if whole:
        step = max(1.0, step)
    count = 1
    while step * count < highest * (1 - 1e-9):
        count += 1
    return [float(f"{step * n:.12g}") for n in range(count + 1)]


def _y(value: float, scale: float) -> float:
    return HEIGHT - _BOTTOM - value * scale
