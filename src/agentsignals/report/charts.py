"""Charts as SVG that follows the page's colours, light or dark. The only place that knows vl-convert.

The pictures are drawn when the report is written, so the page needs no script to show them, prints, and opens offline.
Colours are CSS variables: one picture serves both modes.
"""

from __future__ import annotations

from typing import Any

from agentsignals.analysis.study import Chart

WIDTH = 380
"""Pixels a chart is laid out for: one column on a phone, a third of the page on a screen."""
_VEGA_LITE = "6.4"
_INK, _SOFT, _LINE = "var(--ink)", "var(--soft)", "var(--line)"
_COLOURS = [f"var(--c{n})" for n in range(1, 7)]
_CONFIG: dict[str, Any] = {
    "background": None,
    "font": "sans-serif",
    "padding": {"left": 8, "right": 2, "top": 4, "bottom": 2},
    "view": {"stroke": None},
    "axis": {
        "labelColor": _SOFT,
        "titleColor": _SOFT,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 150,
        "gridColor": _LINE,
        "domain": False,
        "ticks": False,
        "labelPadding": 5,
        "labelFlush": False,
    },
    "axisYDiscrete": {"labelPadding": 10},
    "axisY": {"titleAnchor": "end", "titleAngle": 0, "titleAlign": "left", "titleY": -8, "titleX": 0},
    "axisTemporal": {"ticks": True, "tickColor": _LINE},
    "legend": {"labelColor": _SOFT, "labelFontSize": 11, "symbolType": "square", "symbolStrokeWidth": 0, "offset": 4},
    "range": {"category": _COLOURS},
    "bar": {"fill": _COLOURS[0]},
    "rect": {"fill": _COLOURS[0]},
    "point": {"fill": _COLOURS[0], "opacity": 1},
    "rule": {"stroke": _COLOURS[0]},
    "text": {"fill": _INK, "fontSize": 11},
}


def svg(chart: Chart) -> str:
    """The chart as an SVG element. Everything in it that came from a trace is escaped by the renderer."""
    import vl_convert  # noqa: PLC0415  (88 MB that only a page with charts needs)

    spec = {"width": WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}, **chart.spec}
    return str(vl_convert.vegalite_to_svg(spec, _VEGA_LITE, config=_CONFIG, allowed_base_urls=[]))
