"""Charts of studies as SVG. A chart's form says how its marks are shown (`questions.charts`); this draws them.

Colours are CSS variables, so a picture serves light and dark. It needs no script and no extra; a mark can be a link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from textwrap import wrap
from typing import NamedTuple

from markupsafe import Markup, escape

from agentsignals.questions.question import Chart, Form, Row, cut, formatted, mark_names
from agentsignals.ui.page import COLOURS, colour_of
from agentsignals.words.text import visible

WIDTH = 420
_ROW, _SIZE, _CHAR = 24, 11, 6.1
"""Pixels of a row, of a letter's height, and of its mean width."""
_LONGEST_NAME = 30
"""Characters of a line of a name at the left, which has two at most."""
_LONGEST_LEGEND = 60
_PLOT = 170
"""Height of a chart over time, or of columns."""
_N_COLOURS = 6
_MOST_TICKS = 5
Link = Callable[[str], str]
"""The address of a mark's sessions by the mark's name; empty for none."""


def svg(chart: Chart, link: Link | None = None) -> Markup:
    """Draw a chart. `link`: gives each mark's address."""
    rows: list[Row] = [
        {name: visible(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in chart.marks
    ]
    canvas = _Canvas(rows, [link(name) for name in mark_names(chart.marks)] if link else [""] * len(rows))
    _DRAWN[chart.form.name](canvas, chart.form, rows)
    return canvas.picture(chart.says)


class _Canvas:
    """The pieces of a picture, in pixels, with every text escaped. A template a piece would take five times as long."""

    def __init__(self, rows: Sequence[Row], links: Sequence[str]) -> None:
        self._pieces: list[str] = []
        self._marks = {id(row): (escape(str(row["tip"])), where) for row, where in zip(rows, links, strict=True)}
        self._has_links = False
        self.height = 0.0

    def add(self, piece: str) -> None:
        self._pieces.append(piece)

    def text(  # noqa: PLR0913  (what is drawn is named at the call)
        self, x: float, y: float, words: str, anchor: str = "start", colour: str = "soft", turn: int = 0
    ) -> None:
        turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
        self._pieces.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="var(--{colour})" font-size="11"{turned}>'
            f"{escape(words)}</text>"
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self._pieces.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--line)"/>')

    def path(self, points: Sequence[tuple[float, float]], colour: int) -> None:
        held = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._pieces.append(f'<polyline points="{held}" fill="none" stroke="var(--c{colour})" stroke-width="1.5"/>')

    def mark(self, row: Row, *shapes: str) -> None:
        """Add the shapes of a row's mark, with its tip, inside its link."""
        tip, where = self._marks[id(row)]
        name, opening = ("a", f'<a href="{escape(where)}" tabindex="-1"') if where else ("g", "<g")
        self._pieces.append(f'{opening} class="mark" aria-label="{tip}"><title>{tip}</title>{"".join(shapes)}</{name}>')
        self._has_links = self._has_links or bool(where)

    def picture(self, says: str) -> Markup:
        role = "group" if self._has_links else "img"
        made = Markup('<svg viewBox="0 0 {} {:.0f}" role="{}" aria-label="{}">{}</svg>')
        return made.format(WIDTH, self.height, role, visible(says), Markup("".join(self._pieces)))  # noqa: S704  (escaped above)


def _rect(x: float, y: float, width: float, height: float, colour: int, opacity: float = 1) -> str:  # noqa: PLR0913  (likewise)
    faded = f' opacity="{opacity:.2f}"' if opacity < 1 else ""
    size = f'width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="var(--c{colour})"{faded}/>'


def _dot(x: float, y: float, colour: int, size: float = 3.5) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="var(--c{colour})"/>'


def _whisker(x1: float, y1: float, x2: float, y2: float, colour: int) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="var(--c{colour})" stroke-width="2"/>'


def tick_text(value: float, kind: str) -> str:
    """Return a value of an axis in words: `$0.70`, `30%`, `1.2 k`."""
    if kind == "share":
        return f"{100 * value:.3g}%"
    if kind == "usd":
        return (
            f"${value:,.0f}"
            if value >= 100 or value == round(value)
            else f"${value:.2g}"
            if value < 0.1
            else f"${value:.2f}"
        )
    if kind in ("tokens", "count") or value >= 1000:
        return formatted(value, "tokens") if value >= 1000 else f"{value:.3g}"
    return formatted(value, "number")


def _colours(names: Sequence[str]) -> dict[str, int]:
    made = {}
    for n, name in enumerate(names):
        meaning = colour_of(name.replace(" ", "_"))
        made[name] = COLOURS[meaning] if meaning in ("good", "bad", "unfinished") else 1 + n % _N_COLOURS
    return made


def _legend(canvas: _Canvas, names: Sequence[str], colours: Mapping[str, int], top: float) -> float:
    """Draw the names with their colours in lines from `top` on. Returns where they end."""
    x, y = 8.0, top + 10
    for name in names:
        shown = cut(name, _LONGEST_LEGEND)
        width = 18 + len(shown) * _CHAR + 14
        if x + width > WIDTH and x > 8:
            x, y = 8.0, y + 16
        canvas.add(_rect(x, y - 8, 9, 9, colours[name]))
        canvas.text(x + 14, y, shown)
        x += width
    return y + 6


def _names_at_left(canvas: _Canvas, names: Sequence[str], top: float = 0) -> float:
    shown = [wrap(name, _LONGEST_NAME, max_lines=2, placeholder="…") or [""] for name in names]
    left = 12 + max((len(line) for lines in shown for line in lines), default=0) * _CHAR
    for at, lines in enumerate(shown):
        for n, line in enumerate(lines):
            canvas.text(left - 8, top + at * _ROW + 16 + (n - (len(lines) - 1) / 2) * _SIZE, line, "end", "ink")
    return left


def _draw_bars(canvas: _Canvas, form: Form, rows: Sequence[Row]) -> None:
    left = _names_at_left(canvas, [str(row["name"]) for row in rows])
    told = [formatted(row["value"], form.kind, row.get("at_least", False)) for row in rows]
    room = max(map(len, told), default=0) * _CHAR + 10
    right = WIDTH - 8
    highest = max((row["value"] for row in rows), default=0) or 1
    canvas.height = len(rows) * _ROW + 4
    ticks = [value for value in axis(highest) if value <= highest * 1.2]
    scale = min((right - left - room) / highest, (right - left) / ticks[-1])
    for value in ticks:
        canvas.line(left + value * scale, 2, left + value * scale, canvas.height)
    for at, row in enumerate(rows):
        y = at * _ROW + 4
        canvas.mark(row, _rect(left, y, row["value"] * scale, _ROW - 6, 1))
        canvas.text(left + row["value"] * scale + 5, y + 14, told[at], colour="ink")
    for value in ticks:
        canvas.text(left + value * scale, canvas.height + 14, tick_text(value, form.kind), "middle")
    canvas.text(right, canvas.height + 30, form.title, "end")
    canvas.height += 36


def _draw_dots(canvas: _Canvas, form: Form, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    left = _names_at_left(canvas, names)
    highest = max((max(row["value"] or 0, row["high"] or 0) for row in rows), default=0) or 1
    bottom, ticks = len(names) * _ROW + 4.0, axis(highest)
    scale = (WIDTH - 24 - left) / ticks[-1]
    for value in ticks:
        canvas.line(left + value * scale, 2, left + value * scale, bottom)
        canvas.text(left + value * scale, bottom + 14, tick_text(value, form.kind), "middle")
    canvas.text(WIDTH - 24, bottom + 30, form.title, "end")
    canvas.height = bottom + 36
    for row in rows:
        y = names.index(str(row["name"])) * _ROW + _ROW / 2
        shapes = []
        if row["low"] is not None and row["high"] is not None:
            shapes.append(_whisker(left + row["low"] * scale, y, left + row["high"] * scale, y, 1))
        if row["value"] is not None:
            canvas.mark(row, *shapes, _dot(left + row["value"] * scale, y, 1, 4))


def _rows_up(canvas: _Canvas, highest: float, kind: str, title: str, whole: bool = False) -> tuple[float, float, float]:
    """Draw lines across with their values at the left, the axis's title above. Returns left, bottom, pixels a unit."""
    ticks = axis(highest, whole=whole)
    told = [tick_text(value, kind) for value in ticks]
    left = 10 + max(map(len, told)) * _CHAR
    bottom = 22.0 + _PLOT
    scale = _PLOT / (ticks[-1] or 1)
    canvas.text(0, 11, title)
    for value, words in zip(ticks, told, strict=True):
        y = bottom - value * scale
        canvas.line(left, y, WIDTH - 4, y)
        canvas.text(left - 5, y + 4, words, "end")
    return left, bottom, scale


def _draw_histogram(canvas: _Canvas, form: Form, rows: Sequence[Row]) -> None:
    highest = max((row["value"] for row in rows), default=0) or 1
    left, bottom, scale = _rows_up(canvas, highest, "count", form.title, whole=True)
    step = (WIDTH - 4 - left) / max(len(rows), 1)
    longest = max((len(str(row["name"])) for row in rows), default=0) * _CHAR
    every = max(1, -(-int(longest + 4) // int(max(step, 1))))
    for at, row in enumerate(rows):
        x, height = left + at * step, row["value"] * scale
        canvas.mark(row, _rect(x + step * 0.08, bottom - height, step * 0.84, height, 1))
        told = formatted(row["value"], "count")
        if row["value"] and len(told) * _CHAR <= step + 6:
            canvas.text(x + step / 2, bottom - height - 3, told, "middle", "ink")
        if at % every == 0:
            canvas.text(x + step / 2, bottom + 14, str(row["name"]), "middle")
    canvas.text(WIDTH - 4, bottom + 30, form.across, "end")
    canvas.height = bottom + 36


_LEAST_SHADE = 0.005
"""Least share that a cell writes: in percent it rounds to 1."""


def _draw_heatmap(canvas: _Canvas, form: Form, rows: Sequence[Row]) -> None:
    columns = form.names
    head = 14 + max((min(len(column), 16) for column in columns), default=0) * _CHAR * 0.72
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    left = _names_at_left(canvas, names, head)
    step = min((WIDTH - 30 - left) / max(len(columns), 1), 56)
    for at, column in enumerate(columns):
        canvas.text(left + at * step + step / 2, head - 5, cut(column, 16), turn=-45)
    for row in rows:
        x, y = left + columns.index(row["column"]) * step, head + names.index(str(row["name"])) * _ROW
        shade = 0.05 + 0.75 * min(max(row["value"], 0), 1)
        canvas.mark(row, _rect(x + 1, y + 1, step - 2, _ROW - 2, 1, shade))
        if row["value"] >= _LEAST_SHADE:
            canvas.text(x + step / 2, y + 16, f"{100 * row['value']:.0f}", "middle", "ink")
    canvas.height = head + len(names) * _ROW + 6


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class _Time:
    """A scale of time from the left end to the right."""

    def __init__(self, canvas: _Canvas, form: Form, left: float, bottom: float, is_short: bool) -> None:
        first, last = map(_when, form.span or ("", ""))
        self._first, self._left = first, left
        self._scale = (WIDTH - 12 - left) / (max((last - first).total_seconds(), 1))
        n = min(_MOST_TICKS, max((last - first).days, 1) + 1)
        shown: list[str] = []
        for at in range(n):
            moment = first + timedelta(seconds=(last - first).total_seconds() * at / max(n - 1, 1))
            words = f"{moment:%b} {moment.day}" if is_short else f"{moment:%b %Y}"
            if words not in shown:
                shown.append(words)
                canvas.text(
                    self.at(moment), bottom + 14, words, "start" if not at else "end" if at == n - 1 else "middle"
                )

    def at(self, moment: datetime) -> float:
        return self._left + (moment - self._first).total_seconds() * self._scale


def _draw_stacked_columns(canvas: _Canvas, form: Form, rows: Sequence[Row]) -> None:
    names = form.names
    colours, highest = _colours(names), max((row["high"] for row in rows), default=0) or 1
    left, bottom, scale = _rows_up(canvas, highest, form.kind, form.title, whole=form.kind == "count")
    times = _Time(canvas, form, left, bottom, bool(rows and rows[0].get("short")))
    for row in rows:
        x, end = times.at(_when(row["from"])), times.at(_when(row["to"]))
        height = (row["high"] - row["low"]) * scale
        canvas.mark(row, _rect(x, bottom - row["high"] * scale, end - x, height, colours[row["name"]]))
    canvas.height = _legend(canvas, names, colours, bottom + 22)


def _draw_lines(canvas: _Canvas, form: Form, rows: Sequence[Row]) -> None:
    names = form.names
    colours, highest = _colours(names), max((row["value"] for row in rows), default=0) or 1
    left, bottom, scale = _rows_up(canvas, highest, form.kind, form.title)
    times = _Time(canvas, form, left, bottom, True)
    for name in names:
        of_name = [row for row in rows if row["name"] == name]
        points = [(times.at(_when(row["from"])), bottom - row["value"] * scale) for row in of_name]
        canvas.path(points, colours[name])
        for row, (x, y) in zip(of_name, points, strict=True):
            reach = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="transparent"/>'  # of a small point
            canvas.mark(row, reach, _dot(x, y, colours[name], 2))
    canvas.height = _legend(canvas, names, colours, bottom + 22)


def _draw_intervals(canvas: _Canvas, form: Form, rows: Sequence[Row]) -> None:
    names = form.names
    colours = _colours(names)
    highest = max((max(row["value"] or 0, row["high"] or 0) for row in rows), default=0) or 1
    left, bottom, scale = _rows_up(canvas, highest, "share", form.title)
    positions = list(dict.fromkeys(row["at"] for row in rows))
    step = (WIDTH - 8 - left) / max(len(positions), 1)
    for at, position in enumerate(positions):
        canvas.text(left + at * step + step / 2, bottom + 14, str(position), "middle")
    for row in rows:
        beside = (names.index(row["name"]) + 1) / (len(names) + 1)
        x = left + positions.index(row["at"]) * step + step * beside
        shapes = []
        if row["low"] is not None and row["high"] is not None:
            shapes.append(
                _whisker(x, bottom - row["low"] * scale, x, bottom - row["high"] * scale, colours[row["name"]])
            )
        if row["value"] is not None:
            canvas.mark(row, *shapes, _dot(x, bottom - row["value"] * scale, colours[row["name"]]))
    canvas.text(WIDTH - 4, bottom + 30, form.across, "end")
    canvas.height = _legend(canvas, names, colours, bottom + 38)


_DRAWN: Mapping[str, Callable[[_Canvas, Form, Sequence[Row]], None]] = {
    "bars": _draw_bars,
    "dots": _draw_dots,
    "histogram": _draw_histogram,
    "heatmap": _draw_heatmap,
    "stacked_columns": _draw_stacked_columns,
    "lines": _draw_lines,
    "intervals_by_position": _draw_intervals,
}


BARS_WIDTH, BARS_HEIGHT = 400, 150
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
    scale = (BARS_HEIGHT - _TOP - _BOTTOM) / ticks[-1]
    step = (BARS_WIDTH - _LEFT - _RIGHT) / len(points)
    bars = []
    for n, point in enumerate(points):
        rectangles, reached = [], 0.0
        for part in point.parts:
            y = _y(reached + part.value, scale)
            if dots:
                rectangles.append(Rectangle(y, 0, part.colour))
            elif part.value > 0:
                rectangles.append(
                    Rectangle(min(y, BARS_HEIGHT - _BOTTOM - 1), max(part.value * scale, 1.0), part.colour)
                )
            reached += part.value
        line = (_y(point.interval[0], scale), max(_y(point.interval[1], scale), _TOP)) if point.interval else None
        gap = max(min(step * 0.15, 3), (step - _WIDEST) / 2)
        x, width = _LEFT + n * step + gap, step - 2 * gap
        bars.append(Bar(x=x, width=width, rectangles=rectangles, line=line, label=point.label, link=point.link))
    # Words below the first bar, the last and what fits between; or between two bars.
    names = edges or [point.name for point in points]
    last = len(names) - 1
    ends, anchors = {0: _LEFT, last: BARS_WIDTH - _RIGHT}, {0: "start", last: "end"}
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
    return BARS_HEIGHT - _BOTTOM - value * scale
