"""Routes, assets and templates: from an address to HTML. A module in `pages` that declares `PAGES` adds its routes."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import jinja2

from agentsignals.formats import resumed
from agentsignals.model.registry import Registry
from agentsignals.questions.question import MISSING, formatted
from agentsignals.signals.catalog import caption
from agentsignals.ui import document as report_words
from agentsignals.ui import page as words
from agentsignals.ui.filter import DAYS, carried, words_of
from agentsignals.ui.page import NotFound, Page, Query, Reply, Route, address
from agentsignals.ui.snapshot import Snapshot
from agentsignals.words.text import visible

LONGEST = 8
"""More parts than any path has."""
_PAGES: Registry[tuple[Route, ...]] = Registry(
    "page", "agentsignals.ui.pages", "PAGES", lambda unit: isinstance(unit, tuple)
)


@cache
def routes() -> tuple[Route, ...]:
    """Every address there is."""
    return tuple(route for pages in _PAGES.all().values() for route in pages)


MAIN_PLACES = 50
"""Routes with a place up to this are tabs; later ones stand at the foot of each page."""


def navigation(snapshot: Snapshot | None) -> list[tuple[str, str, bool]]:
    """Address and name of each page that has anything to show, and whether it is a tab."""
    shown = sorted((route for route in routes() if route.title), key=lambda route: route.place)
    return [
        ("/" + "/".join(route.path), route.title, route.place <= MAIN_PLACES)
        for route in shown
        if snapshot is None or route.holds(snapshot)
    ]


def ranges(query: Query | None) -> list[tuple[str, str, bool]]:
    """Name and address of each time range for the page of this query, and whether it is chosen."""
    query = query or Query()
    chosen = query.choice("days", DAYS)
    is_other = bool(query.text("from") or query.text("to"))
    reset = {"from": "", "to": "", "page": ""}
    return [
        (f"{days} d" if days else "all", query.with_(days=days, **reset), not is_other and days == chosen)
        for days in (*DAYS, "")
    ]


def above(path: str) -> str:
    """The address in the navigation that a page belongs to; empty for none."""
    route, _ = _route(path)
    return "" if route is None else route.below or "/" + "/".join(route.path)


def answer_of(snapshot: Snapshot, path: str, query: Query) -> Page | Reply:
    """Return the page or reply of an address. NotFound when there is none."""
    route, named = _route(path)
    if route is None:
        raise NotFound(f"Page not found: {path[:200]}", "Choose a page from the menu.")
    if route.is_ranged and (days := query.choice("days", DAYS)):
        snapshot = snapshot.of_last(int(days))
    return route.answer(snapshot, query, *named)


def _route(path: str) -> tuple[Route | None, list[str]]:
    parts = [unquote(part, errors="surrogateescape") for part in path.split("/", LONGEST)[1:]]
    while parts and not parts[-1]:
        parts.pop()
    for route in routes():
        if len(route.path) == len(parts) and all(p in ("*", part) for p, part in zip(route.path, parts, strict=True)):
            return route, [part for p, part in zip(route.path, parts, strict=True) if p == "*"]
    return None, []


# Our own style and scripts. Pages carry neither inside them, so that the policy can forbid it.

_TYPES = {".css": "text/css", ".js": "text/javascript"}
FOLDER = "/static/"
_STATIC = files("agentsignals.ui").joinpath("static")
_NAMES = {file.name for file in _STATIC.iterdir() if PurePosixPath(file.name).suffix in _TYPES}


def asset(path: str) -> Reply | None:
    """The file of that address; None when it is none of ours."""
    return _asset(path.removeprefix(FOLDER)) if is_asset(path) else None


def is_asset(path: str) -> bool:
    """Return whether an address is that of a style or script, which holds no data."""
    return path.startswith(FOLDER) and path.removeprefix(FOLDER) in _NAMES


def text_of_asset(name: str) -> str:
    """Return a style or script of ours as text, for a file that has it inside."""
    return _asset(name).content.decode()


def content_hash(text: str) -> str:
    """Return the hash by which a page's policy lets a style or a script inside it."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _asset(name: str) -> Reply:
    return Reply(_STATIC.joinpath(name).read_bytes(), _TYPES[PurePosixPath(name).suffix])


# HTML of pages: jinja escapes whatever is put in, and what could turn a line around is shown instead of obeyed.

_LINK = re.compile(r'(?<= )href="(?P<path>/[^"?#]*|(?=\?))(?P<query>\?[^"#]*)?(?P<mark>#[^"]*)?"')
_LISTS = ("/", "/sessions", "/signals", "/search", "/attempts")
"""Pages that choose by the filter: a link to one says itself what it is to show."""


def html(page: Page, path: str, snapshot: Snapshot | None = None, query: Query | None = None) -> str:
    """The page as HTML, with what is wrong with the store above all else. `query`: of its address, whose filter the
    navigation carries on."""
    template = environment().get_template(page.template)
    chosen = words_of(query) if query else {}
    route, _ = _route(path)
    made = template.render(
        **page.filled,
        query=query or Query(),
        title=page.title,
        here=above(path),
        warnings=snapshot.store.warnings if snapshot else (),
        state=snapshot.state if snapshot else "",
        carried_words=chosen,
        carried=carried(chosen),
        tabs=navigation(snapshot),
        ranges=ranges(query) if "filter" in page.filled or (route is not None and route.is_ranged) else [],
    )
    return _carrying(made, chosen, path in _LISTS or "filter" in page.filled) if chosen else made


def _carrying(made: str, chosen: Mapping[str, str], chooses: bool) -> str:
    """The page with the filter in its links, so that one that only passes it on need not name it. A link that chooses
    what a list shows is left as it is, and so are those of a page to itself where it `chooses`. No text of a trace
    holds a quote that could be taken for an attribute's."""

    def with_filter(link: re.Match[str]) -> str:
        path, query, mark = link["path"], link["query"] or "", link["mark"] or ""
        if path.startswith("/static/") or (path in _LISTS and query) or (chooses and not path):
            return link[0]
        here = {part.partition("=")[0] for part in query.removeprefix("?").replace("&amp;", "&").split("&")}
        rest = escape(carried({word: value for word, value in chosen.items() if word not in here}))
        return f'href="{path}{query}{rest.replace("?", "&amp;", 1) if query else rest}{mark}"'

    return _LINK.sub(with_filter, made)


def _shown(value: Any) -> Any:
    if value is None:
        return MISSING
    if hasattr(value, "__html__"):
        return value
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return visible(value) if isinstance(value, str) else value


@cache
def environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agentsignals.ui", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["with_code"] = words.with_code
    environment.globals.update(
        address=address,
        caption=caption,
        colour_of=words.colour_of,
        formatted=formatted,
        words=words,
        page_words=words,
        notes=words.Notes,
        report_words=report_words,
        resumed=resumed,
    )
    return environment
