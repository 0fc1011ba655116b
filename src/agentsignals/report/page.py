"""The report as one HTML page that opens offline: no request leaves it, and no text of a trace runs in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agentsignals.analysis.figures import formatted, plain
from agentsignals.report import phrases
from agentsignals.report.chart_svg import can_draw, data, library, svg
from agentsignals.report.document import Document
from agentsignals.words.text import visible

if TYPE_CHECKING:
    import jinja2


def render(document: Document, short_ids: Mapping[str, str], static: bool = False) -> str:
    """The document as HTML. Jinja escapes whatever is put in, but our own style and scripts, and the charts, whose
    text the renderer has escaped. `static`: without the library that draws charts anew, 0.9 MB less."""
    style, scripts = _asset("page.css"), [_asset("page.js")]
    charts = [chart for section in document.sections for chart in section.charts]
    pictures = bool(charts) and can_draw()
    live = pictures and not static
    if live:
        scripts += [library(), _asset("live.js")]
    return _template().render(
        document=document,
        words=phrases,
        headlines=[f for s in document.sections for f in s.findings if f.headline],
        formatted=formatted,
        short_ids=short_ids,
        sort_key=_sort_key,
        svg=svg if pictures else None,
        undrawn=phrases.UNDRAWN if charts and not pictures else "",
        style=style,
        charts=data(charts) if live else "",
        scripts=scripts,
        policy=_policy(style, scripts),
    )


@cache
def _template() -> jinja2.Template:
    import jinja2  # noqa: PLC0415  (only a page needs it)

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agentsignals.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    return environment.get_template("page.html.j2")


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Nothing is loaded, and only our own style and scripts, named by their hashes, are applied. The one image is a
    chart on its way to being saved as PNG."""
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src {hashes}; img-src blob:; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _asset(name: str) -> str:
    return files("agentsignals.report").joinpath(name).read_text("utf-8")


def _sort_key(value: Any) -> str:
    """What a column is sorted by: the value itself, not the words it is shown in."""
    return "" if value is None else str(plain(value))
