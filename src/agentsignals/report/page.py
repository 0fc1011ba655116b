"""The report as one HTML page that opens offline: no request leaves it, and no text of a trace runs in it."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agentsignals.analysis import studies
from agentsignals.analysis.behind import mark_names, row_names
from agentsignals.analysis.figures import formatted, plain
from agentsignals.report import phrases
from agentsignals.report.chart_svg import can_draw, data, library, svg
from agentsignals.report.document import Document, Section
from agentsignals.report.drill_down import key_of
from agentsignals.words.text import visible

if TYPE_CHECKING:
    import jinja2


HEAD = (
    "cost_causes.bill",
    "attempts.outcomes",
    "attempts.solved",
    "errors.rate_by_class",
    "cost.over_time",
    "friction.ends",
)
"""The charts that stand beside the findings: the first `_CHARTS` of these that there are."""
_CHARTS = 4
_MOST = {"most_figures": 6, "most_charts": 2}
"""What of a study is open, so that it takes a screen; the rest is folded."""


def render(document: Document, short_ids: Mapping[str, str], static: bool = False) -> str:
    """The document as HTML. Jinja escapes whatever is put in, but our own style and scripts, and the charts, whose
    text the renderer has escaped. `static`: without the library that draws charts, 0.9 MB less; with it, pictures of
    the first charts alone are in the page, and the others are drawn in it."""
    style, scripts = _asset("page.css"), [_asset("page.js")]
    charts = [chart for section in document.sections for chart in section.charts]
    pictures = bool(charts) and can_draw()
    live = pictures and not static
    if live:
        scripts += [library(), _asset("live.js")]
    same = (section for section in document.sections if section.context == document.context)
    by_id = {chart.id: chart for section in same for chart in section.charts}
    head = [by_id[name] for name in HEAD if name in by_id][:_CHARTS] if document.findings else []
    above = {chart.id for chart in head}
    places = {session.session_id: f"#session-{n + 1}" for n, session in enumerate(document.named)}
    return _template().render(
        document=document,
        head=head,
        above=above,
        fold=document.findings is not None,
        session_url=places.get,
        words=phrases,
        counted=_counted,
        key=lambda section, figure: _key(document, section, figure),
        headlines=[] if document.findings else [f for s in document.sections for f in s.findings if f.headline],
        formatted=formatted,
        short_ids=short_ids,
        sort_key=_sort_key,
        svg=(lambda chart: svg(chart) if chart.id in above or not live or not above else "") if pictures else None,
        undrawn=phrases.UNDRAWN if charts and not pictures else "",
        style=style,
        charts=data(charts) if live else "",
        scripts=scripts,
        policy=_policy(style, scripts),
        **_MOST,
    )


def _counted(section: Section) -> list[tuple[str, str]]:
    """A figure of each kind whose sessions a command lists, with what it is of. None of a study of this report alone:
    the command line would not find it."""
    if section.study not in studies():
        return []
    marks = [(chart.id, mark_names(chart.spec["data"]["values"])) for chart in section.charts]
    return [
        *[("", finding.id) for finding in section.findings[:1]],
        *[("of a row, by its first cells,", f"{table.id}:{row_names(table)[0]}") for table in section.tables[:1]],
        *[
            ("of a bar, a cell or a point, by its name and where it stands,", f"{chart}:{names[0]}")
            for chart, names in marks[:1]
        ],
    ]


def _key(document: Document, section: Section, figure: str) -> str:
    """The key of a figure as a shell takes it, of the sessions that the section is about."""
    one_context = len(document.contexts) < 2 or section.context == "both"
    return shlex.quote(key_of(section.study, figure, "" if one_context else section.context))


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
