"""HTML of pages: jinja escapes whatever is put in, and what could turn a line around is shown instead of obeyed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from html import escape
from typing import Any

import jinja2

from agentsignals.analysis.figures import MISSING, formatted
from agentsignals.catalog import caption
from agentsignals.report import phrases as report_words
from agentsignals.ui import words
from agentsignals.ui.filter import carried, words_of
from agentsignals.ui.page import Page, Query, address
from agentsignals.ui.reading import Reading
from agentsignals.ui.routes import above, navigation
from agentsignals.words.text import visible

_LINK = re.compile(r'(?<= )href="(?P<path>/[^"?#]*|(?=\?))(?P<query>\?[^"#]*)?(?P<mark>#[^"]*)?"')
_LISTS = ("/", "/sessions", "/signals", "/search", "/attempts")
"""Pages that choose by the filter: a link to one says itself what it is to show."""


def html(page: Page, path: str, reading: Reading | None = None, query: Query | None = None) -> str:
    """The page as HTML, with what is wrong with the store above all else. `query`: of its address, whose filter the
    navigation carries on."""
    template = _environment().get_template(page.template)
    chosen = words_of(query) if query else {}
    made = template.render(
        **page.filled,
        title=page.title,
        here=above(path),
        warnings=reading.store.warnings if reading else (),
        state=reading.state if reading else "",
        carried_words=chosen,
        carried=carried(chosen),
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
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader("agentsignals.ui", "templates"),
                jinja2.PackageLoader("agentsignals.report", "."),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.globals.update(
        address=address,
        caption=caption,
        formatted=formatted,
        words=words,
        report_words=report_words,
        navigation=navigation(),
    )
    return environment
