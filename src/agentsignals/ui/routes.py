"""Which page an address names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from urllib.parse import unquote

from agentsignals.ui.page import NotFound, Page, Query
from agentsignals.ui.reading import Reading

ROUTES = {
    (): "overview:page",
    ("finding", "*"): "findings:page",
    ("sessions",): "sessions:page",
    ("session", "*"): "session:page",
    ("session", "*", "explain", "*"): "explanation:page",
    ("attempts",): "attempts:page",
    ("signals",): "signals:page",
    ("signal", "*"): "signal:page",
    ("studies",): "studies:contents",
    ("studies", "*"): "studies:page",
    ("artifacts",): "artifacts:page",
}
"""Paths, `*` for any one part, and the function in `pages` that makes each page of what stands there."""

LONGEST = 8
"""More parts than any path has."""


def page_of(reading: Reading, path: str, query: Query) -> Page:
    """The page of an address. NotFound when there is none."""
    parts = [unquote(part, errors="surrogateescape") for part in path.split("/", LONGEST)[1:]]
    while parts and not parts[-1]:
        parts.pop()
    for pattern, where in ROUTES.items():
        if len(pattern) == len(parts) and all(p in ("*", part) for p, part in zip(pattern, parts, strict=True)):
            named = [part for p, part in zip(pattern, parts, strict=True) if p == "*"]
            return _page_function(where)(reading, query, *named)
    raise NotFound(f"There is no page {path[:200]}.", "The pages there are stand above.")


def _page_function(where: str) -> Callable[..., Page]:
    module, _, name = where.partition(":")
    function: Callable[..., Page] = getattr(import_module(f"agentsignals.ui.pages.{module}"), name)
    return function
