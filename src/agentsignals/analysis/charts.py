"""Charts as Vega-Lite specifications: what is drawn, without colours, fonts and sizes, which the page chooses.

Every row brings its own `tip`, the words shown when it is pointed at and read aloud.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf
from typing import Any

from agentsignals.analysis.figures import formatted
from agentsignals.analysis.study import Kind, Row

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_STEP = 24
_FEW = 5
_FORMATS: dict[Kind, str] = {"share": "~%", "usd": "$~s", "tokens": "~s", "count": "~s", "number": ",~f"}
_TIP = {"field": "tip", "type": "nominal"}
_LEGEND = {"orient": "bottom", "columns": 3}
OTHERS = "others"


def _spec(rows: Sequence[Row], **more: Any) -> dict[str, Any]:
    return {"$schema": _SCHEMA, "data": {"values": list(rows)}, **more}


def _amount(field: str, title: str, kind: Kind, most: float = inf, **more: Any) -> dict[str, Any]:
    """A quantity's axis. `most`: the greatest value, where it may be so small that a count would get half ticks."""
    axis: dict[str, Any] = {"format": _FORMATS.get(kind, "~s"), "tickCount": 5}
    if kind in ("count", "tokens") and most <= _FEW:
        axis["values"] = list(range(ceil(most) + 1))
    return {"field": field, "type": "quantitative", "title": title, "axis": axis, **more}


def _names(rows: Sequence[Row], title: str | None = None) -> dict[str, Any]:
    order = list(dict.fromkeys(row["name"] for row in rows))
    return {"field": "name", "type": "nominal", "title": title, "sort": order}


def bars(rows: Sequence[Row], title: str, kind: Kind = "count") -> dict[str, Any]:
    """A horizontal bar a row, in the order given, its value at the end. Rows: name, value, tip; at_least
    where the value is a lower bound."""
    shown = [{**row, "told": formatted(row["value"], kind, row.get("at_least", False))} for row in rows]
    most = max((row["value"] for row in rows), default=0)
    room = {"scale": {"domain": [0, most * 1.25 or 1]}}  # for the figure at the end of the longest bar
    return _spec(
        shown,
        height={"step": _STEP},
        encoding={"y": _names(rows), "x": _amount("value", title, kind, most, **room), "description": _TIP},
        layer=[
            {"mark": "bar"},
            {"mark": {"type": "text", "align": "left", "dx": 5}, "encoding": {"text": {"field": "told"}}},
        ],
    )


def dots(rows: Sequence[Row], title: str, kind: Kind = "share") -> dict[str, Any]:
    """An estimate a row with its interval. Rows: name, value, low, high, tip; low and high may be missing."""
    x = _amount("value", title, kind, scale={"zero": True, "nice": True})
    return _spec(
        rows,
        height={"step": _STEP},
        encoding={"y": _names(rows), "description": _TIP},
        layer=[
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {"mark": {"type": "point", "filled": True, "size": 70}, "encoding": {"x": x}},
        ],
    )


def histogram(rows: Sequence[Row], title: str, counted: str) -> dict[str, Any]:
    """A column a class of values, in the order given, its count on top. Rows: name, value, tip."""
    shown = [{**row, "told": formatted(row["value"], "count") if row["value"] else ""} for row in rows]
    x = {**_names(rows, title), "axis": {"labelAngle": 0, "labelOverlap": False}}
    most = max((row["value"] for row in rows), default=0)
    return _spec(
        shown,
        height=170,
        encoding={
            "x": x,
            "y": _amount("value", counted, "count", most, scale={"domain": [0, most * 1.12 or 1]}),
            "description": _TIP,
        },
        layer=[
            {"mark": "bar"},
            {"mark": {"type": "text", "baseline": "bottom", "dy": -3}, "encoding": {"text": {"field": "told"}}},
        ],
    )


def heat(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Any]:
    """Shares as a table of shaded cells. Rows: name, column, value, tip."""
    shown = [{**row, "told": f"{100 * row['value']:.0f}" if row["value"] >= 0.005 else ""} for row in rows]
    x = {"field": "column", "type": "nominal", "title": None, "sort": list(columns)}
    axis = {"orient": "top", "labelAngle": -45, "ticks": False, "domain": False}
    shade = {"field": "value", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0.05, 0.8]}}
    return _spec(
        shown,
        height={"step": _STEP},
        encoding={"y": _names(rows), "x": {**x, "axis": axis}, "description": _TIP},
        layer=[
            {"mark": "rect", "encoding": {"opacity": {**shade, "legend": None}}},
            {"mark": "text", "encoding": {"text": {"field": "told"}}},
        ],
    )


def over_time(
    rows: Sequence[Row], title: str, kind: Kind, names: Sequence[str], span: tuple[str, str]
) -> dict[str, Any]:
    """Columns stacked by name over time. Rows: name, from, to (ISO dates), low, high (of the stack), tip."""
    scale = {"type": "utc", "domain": list(span), "nice": False}
    axis = {"format": "%b %-d" if rows and rows[0].get("short") else "%b %Y", "tickCount": 5, "labelOverlap": True}
    return _spec(
        rows,
        height=190,
        mark={"type": "rect"},
        encoding={
            "x": {"field": "from", "type": "temporal", "title": None, "scale": scale, "axis": {**axis, "grid": False}},
            "x2": {"field": "to"},
            "y": _amount("low", title, kind, max((row["high"] for row in rows), default=0)),
            "y2": {"field": "high"},
            "color": _colour(names),
            "description": _TIP,
        },
    )


def lines(rows: Sequence[Row], title: str, kind: Kind, names: Sequence[str], span: tuple[str, str]) -> dict[str, Any]:
    """A line a name over time. Rows: name, from (ISO date), value, tip."""
    scale = {"type": "utc", "domain": list(span), "nice": False}
    axis = {"format": "%b %-d", "tickCount": 5, "labelOverlap": True, "grid": False}
    most = max((row["value"] for row in rows), default=0)
    return _spec(
        rows,
        height=190,
        encoding={
            "x": {"field": "from", "type": "temporal", "title": None, "scale": scale, "axis": axis},
            "y": _amount("value", title, kind, most, scale={"zero": True}),
            "color": _colour(names),
        },
        layer=[
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"detail": {"field": "name"}}},
            {"mark": {"type": "point", "filled": True, "size": 14}, "encoding": {"description": _TIP}},
        ],
    )


def by_position(rows: Sequence[Row], across: str, title: str, names: Sequence[str]) -> dict[str, Any]:
    """Estimates with intervals along positions, one mark a name. Rows: name, at, value, low, high, tip."""
    order = list(dict.fromkeys(row["at"] for row in rows))
    x = {"field": "at", "type": "nominal", "title": across, "sort": order, "axis": {"labelAngle": 0}}
    y = _amount("value", title, "share", scale={"zero": True})
    beside = {"field": "name", "sort": list(names)}
    return _spec(
        rows,
        height=190,
        encoding={"x": x, "xOffset": beside, "color": _colour(names), "description": _TIP},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {"mark": {"type": "point", "filled": True, "size": 60}, "encoding": {"y": y, "shape": _colour(names)}},
        ],
    )


def _colour(names: Sequence[str]) -> dict[str, Any]:
    return {"field": "name", "type": "nominal", "title": None, "scale": {"domain": list(names)}, "legend": _LEGEND}
