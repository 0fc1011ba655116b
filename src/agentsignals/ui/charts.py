"""The two kinds of charts: those of studies, drawn by Vega in the page, and bars that are links, drawn here as SVG.

A study's chart is a Vega-Lite specification without colours; colours are CSS variables, so it serves light and dark.
The library comes out of the installed vl-convert (extra `charts`), which this module alone knows. Without it a page
says what each chart shows, in words and figures. Bars need no script and no extra; each leads to its sessions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agentsignals import private_files
from agentsignals.errors import install_command
from agentsignals.questions.charts import Buckets, next_start
from agentsignals.questions.question import Chart
from agentsignals.store import disk
from agentsignals.words.text import visible

_VEGA_LITE = "6.4"
_LICENCE = "/*! Vega, Vega-Lite and Vega-Embed (https://vega.github.io), under the BSD 3-Clause licence */"
_ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)
_PICK = {"name": "pick", "select": {"type": "point", "fields": ["name"], "toggle": "true"}, "bind": "legend"}
_ZOOM = {  # with the shift key: a bare wheel scrolls the page
    "name": "span",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}
_FADED = {"opacity": {"condition": {"param": "pick", "value": 1}, "value": 0.15}}
"""Marks of names that were not picked step back."""


def undrawn() -> str:
    """Say that charts are words, and what to install to have them drawn."""
    return f"Charts are shown as text. To have them drawn: {install_command('charts')}"


def can_draw() -> bool:
    """Return whether vl-convert is installed and can be loaded."""
    try:
        import vl_convert  # noqa: F401, PLC0415  (88 MB that only a page with charts needs)
    except ImportError:
        return False
    return True


@cache
def packing() -> Future[str]:
    """Begins to get `library` in the background: to pack it takes a second or two, which the studies take as well."""
    return ThreadPoolExecutor(1, "vega").submit(_from_cache)


def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, 0.9 MB, out of the installed vl-convert; empty where it is not.

    With Vega-Embed's `ast` option expressions are interpreted, so that the page's policy need not allow `eval`.
    """
    return packing().result() if can_draw() else ""


def _from_cache() -> str:
    """The script as it was packed for an earlier report, in the platform's folder for caches; else packed now."""
    import platformdirs  # noqa: PLC0415

    folder = Path(platformdirs.user_cache_dir("agentsignals"))
    kept = folder / f"vega-{version('vl-convert-python')}-{_VEGA_LITE}.js"
    with suppress(OSError, UnicodeDecodeError):
        script = kept.read_text("utf-8")
        if script.startswith(_LICENCE) and not _ENDS_SCRIPT.search(script):
            return script
    import vl_convert  # noqa: PLC0415

    bundle = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", _VEGA_LITE))
    if _ENDS_SCRIPT.search(bundle):
        raise AssertionError("this release of Vega would end the script element it is put in")
    script = f"{_LICENCE}\n{bundle}"
    with suppress(OSError):
        private_files.own_folder(folder)
        disk.write_atomically(kept, script.encode())
    return script


def data(charts: Iterable[Chart]) -> str:
    """Return the input of the library as JSON for a script element: specifications by the charts' ids, and
    configuration."""
    specs = {chart.id: interactive(legible(chart.spec)) for chart in charts}
    config = msgspec.json.decode(Path(__file__).with_name("vega.json").read_bytes())
    document = msgspec.json.encode({"config": config, "specs": specs}).decode()
    return document.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def legible(value: Any) -> Any:
    """The specification without characters that are no text: at a control character the renderer aborts the program."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: legible(item) for name, item in value.items()}
    return [legible(item) for item in value] if isinstance(value, list | tuple) else value


def interactive(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with what a hand can do: pick names in its legend, zoom and move along its time."""
    shared = spec.get("encoding", {})
    picks = "legend" in shared.get("color", {})
    span = shared.get("x", {}).get("scale", {}).get("domain") if shared.get("x", {}).get("type") == "temporal" else None
    if not (picks or span):
        return spec
    layers: list[dict[str, Any]] = spec.get("layer", [spec])
    units = [{**unit, "encoding": {**unit.get("encoding", {}), **(_FADED if picks else {})}} for unit in layers]
    units[0]["params"] = [_PICK] if picks else []
    whole = {**spec, "layer": units} if "layer" in spec else units[0]
    if not span:
        return whole
    # The span becomes the selection's first value: a scale with a domain of its own would not follow the hand.
    days = [datetime.fromisoformat(day).timestamp() * 1000 for day in span]
    units[0]["params"].append({**_ZOOM, "value": {"x": days}})
    x = whole["encoding"]["x"]
    free = {**x, "scale": {key: value for key, value in x["scale"].items() if key != "domain"}}
    return {**whole, "encoding": {**whole["encoding"], "x": free}}


# Small charts drawn by the server as SVG whose bars are links: they need no script and no extra.

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


def starts(buckets: Buckets) -> list[datetime]:
    """The start of every stretch of time, those in which nothing is with them."""
    days = [buckets.first]
    while days[-1] < buckets.last:
        days.append(next_start(days[-1], buckets.step))
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
