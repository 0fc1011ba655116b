"""Our own style and scripts. Pages carry neither inside them, so that the policy can forbid it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

_OF_REPORT = {"page.css": "text/css", "page.js": "text/javascript", "live.js": "text/javascript"}
_OF_PAGE = {"ui.css": "text/css"}
_LIBRARY = "vega.js"
FOLDER = "/static/"


class Asset(NamedTuple):
    """A file as it is sent."""

    content: bytes
    type: str


def asset(path: str) -> Asset | None:
    """The file of that address; None when it is none of ours."""
    name = path.removeprefix(FOLDER)
    names = {*_OF_REPORT, *_OF_PAGE, _LIBRARY}
    return _asset(name) if path.startswith(FOLDER) and name in names else None


@cache
def _asset(name: str) -> Asset:
    if name == _LIBRARY:
        from agentsignals.report.chart_svg import library  # noqa: PLC0415  (packing it takes a second)

        return Asset(library().encode(), "text/javascript")
    package, kinds = ("agentsignals.report", _OF_REPORT) if name in _OF_REPORT else ("agentsignals.ui", _OF_PAGE)
    return Asset(files(package).joinpath(name).read_bytes(), kinds[name])
