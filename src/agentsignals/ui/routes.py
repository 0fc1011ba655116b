"""Which page an address names. Pages are found by name: a module in `pages` that declares `PAGES` has what it lists."""

from __future__ import annotations

from functools import cache
from urllib.parse import unquote

from agentsignals.registry import Registry
from agentsignals.ui.page import NotFound, Page, Query, Reply, Route
from agentsignals.ui.reading import Reading

LONGEST = 8
"""More parts than any path has."""
_PAGES: Registry[tuple[Route, ...]] = Registry(
    "page", "agentsignals.ui.pages", "PAGES", lambda unit: isinstance(unit, tuple)
)


@cache
def routes() -> tuple[Route, ...]:
    """Every address there is."""
    return tuple(route for pages in _PAGES.all().values() for route in pages)


@cache
def navigation() -> tuple[tuple[str, str], ...]:
    """Address and name of what stands at the top of each page."""
    shown = sorted((route for route in routes() if route.title), key=lambda route: route.place)
    return tuple(("/" + "/".join(route.path), route.title) for route in shown)


def above(path: str) -> str:
    """The address in the navigation that a page belongs to; empty for none."""
    route, _ = _route(path)
    return "" if route is None else route.below or "/" + "/".join(route.path)


def answer_of(reading: Reading, path: str, query: Query) -> Page | Reply:
    """What stands at an address. NotFound when there is nothing."""
    route, named = _route(path)
    if route is None:
        raise NotFound(f"There is no page {path[:200]}.", "The pages there are stand above.")
    return route.answer(reading, query, *named)


def _route(path: str) -> tuple[Route | None, list[str]]:
    parts = [unquote(part, errors="surrogateescape") for part in path.split("/", LONGEST)[1:]]
    while parts and not parts[-1]:
        parts.pop()
    for route in routes():
        if len(route.path) == len(parts) and all(p in ("*", part) for p, part in zip(route.path, parts, strict=True)):
            return route, [part for p, part in zip(route.path, parts, strict=True) if p == "*"]
    return None, []
