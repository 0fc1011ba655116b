"""Small charts drawn by the server as SVG whose bars are links: they need no script and no extra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from agentsignals.analysis.calendar import Buckets, following

WIDTH, HEIGHT = 400, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 4, 10, 20
_WIDEST = 48
_FEWEST_SEEN = 30
"""Of fewer observations an interval is cut off at the top of the axis instead of stretching it."""

_LEAST = 1e-300
"""Below it steps have no size."""


class Part(NamedTuple):
    """A piece of a bar: its value, and which of the colours it has."""

    value: float
    colour: int = 1


class Point(NamedTuple):
    """What one stretch of time, or of values, shows."""

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
    """What a point shows, in pixels."""

    x: float
    width: float
    rectangles: list[Rectangle]
    line: tuple[float, float] | None
    """The ends of its interval."""
    label: str
    link: str


class Strip(NamedTuple):
    """A chart, in pixels."""

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


def starts(buckets: Buckets) -> list[datetime]:
    """The start of every stretch of time, those in which nothing is with them."""
    days = [buckets.first]
    while days[-1] < buckets.last:
        days.append(following(days[-1], buckets.step))
    return days


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
) -> Strip | None:
    """The chart; None where there is nothing to show. `written`: a value of the axis in words; `whole`: counts, whose
    axis has no halves; `edges`: words between the bars, and at both ends, instead of below each."""
    highest = max((_height(point) for point in points), default=0.0)
    if not any(point.parts for point in points):
        return None
    ticks = axis(highest, whole=whole)
    scale = (HEIGHT - _TOP - _BOTTOM) / ticks[-1]
    step = (WIDTH - _LEFT - _RIGHT) / len(points)
    bars = [_bar(point, _LEFT + n * step, step, scale, dots) for n, point in enumerate(points)]
    up = [Tick(_y(value, scale), written(value), "end") for value in ticks]
    return Strip(
        title=title,
        unit=unit,
        note=note,
        bars=bars,
        across=_edges(edges, step) if edges else _across([point.name for point in points], step),
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


def _height(point: Point) -> float:
    total = sum(part.value for part in point.parts)
    return max(total, point.interval[1]) if point.interval and point.n >= _FEWEST_SEEN else total


def _y(value: float, scale: float) -> float:
    return HEIGHT - _BOTTOM - value * scale


def _bar(point: Point, x: float, step: float, scale: float, dots: bool) -> Bar:
    rectangles, reached = [], 0.0
    for part in point.parts:
        y = _y(reached + part.value, scale)
        height = part.value * scale
        if dots:
            rectangles.append(Rectangle(y, 0, part.colour))
        elif part.value > 0:
            rectangles.append(Rectangle(min(y, HEIGHT - _BOTTOM - 1), max(height, 1.0), part.colour))
        reached += part.value
    line = (_y(point.interval[0], scale), max(_y(point.interval[1], scale), _TOP)) if point.interval else None
    gap = max(min(step * 0.15, 3), (step - _WIDEST) / 2)
    return Bar(x=x + gap, width=step - 2 * gap, rectangles=rectangles, line=line, label=point.label, link=point.link)


def _across(names: Sequence[str], step: float) -> list[Tick]:
    """The first, the last and what fits between, each below its own bar."""
    last = len(names) - 1
    places = _spaced(last)
    anchors = {0: "start", last: "end"}
    middles = {n: _LEFT + (n + 0.5) * step for n in places}
    if step > _WIDEST:
        return [Tick(middles[n], names[n]) for n in places]
    ends = {0: _LEFT, last: WIDTH - _RIGHT}
    return [Tick(ends.get(n, middles[n]), names[n], anchors.get(n, "middle")) for n in places]


def _edges(names: Sequence[str], step: float) -> list[Tick]:
    last = len(names) - 1
    return [Tick(_LEFT + n * step, names[n], "end" if n == last else "middle") for n in _spaced(last)]


def _spaced(last: int) -> list[int]:
    return sorted({0, last, *((last // 3, last - last // 3) if last >= 9 else ())})
