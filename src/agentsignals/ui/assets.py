"""Our own style and scripts. Pages carry neither inside them, so that the policy can forbid it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import NamedTuple

_OF_REPORT = ("page.css", "page.js", "live.js")
_LIBRARY = "vega.js"
_TYPES = {".css": "text/css", ".js": "text/javascript"}
FOLDER = "/static/"


class Asset(NamedTuple):
    """A file as it is sent."""

    content: bytes
    type: str


def asset(path: str) -> Asset | None:
    """The file of that address; None when it is none of ours."""
    name = path.removeprefix(FOLDER)
    return _asset(name) if path.startswith(FOLDER) and name in _names() else None


@cache
def _names() -> frozenset[str]:
    ours = (file.name for file in files("agentsignals.ui").joinpath("static").iterdir())
    return frozenset((*_OF_REPORT, _LIBRARY, *(name for name in ours if PurePosixPath(name).suffix in _TYPES)))


@cache
def _asset(name: str) -> Asset:
    if name == _LIBRARY:
        from agentsignals.report.chart_svg import library  # noqa: PLC0415  (packing it takes a second)

        return Asset(library().encode(), "text/javascript")
    folder = files("agentsignals.report") if name in _OF_REPORT else files("agentsignals.ui").joinpath("static")
    return Asset(folder.joinpath(name).read_bytes(), _TYPES[PurePosixPath(name).suffix])
