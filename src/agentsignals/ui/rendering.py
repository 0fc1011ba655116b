"""HTML of pages: jinja escapes whatever is put in, and what could turn a line around is shown instead of obeyed."""

from __future__ import annotations

from datetime import datetime
from functools import cache
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


def html(page: Page, path: str, reading: Reading | None = None, query: Query | None = None) -> str:
    """The page as HTML, with what is wrong with the store above all else. `query`: of its address, whose filter the
    navigation carries on."""
    template = _environment().get_template(page.template)
    chosen = words_of(query) if query else {}
    return template.render(
        **page.filled,
        title=page.title,
        here=above(path),
        warnings=reading.store.warnings if reading else (),
        state=reading.state if reading else "",
        carried_words=chosen,
        carried=carried(chosen),
    )


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
