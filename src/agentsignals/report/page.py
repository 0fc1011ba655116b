"""The report as one HTML page that opens offline: no request leaves it, and no text of a trace runs in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from agentsignals.analysis.figures import told
from agentsignals.report import words
from agentsignals.report.charts import svg
from agentsignals.report.document import Document


def render(document: Document, short_ids: Mapping[str, str]) -> str:
    """The document as HTML. Jinja escapes whatever is put in, but our own style and script, and the charts, whose
    text the renderer has escaped."""
    import jinja2  # noqa: PLC0415  (only a page needs it)

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agentsignals.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _asset("page.css"), _asset("page.js")
    return environment.get_template("page.html.j2").render(
        document=document,
        words=words,
        headlines=[f for s in document.sections for f in s.findings if f.headline],
        told=told,
        short_ids=short_ids,
        sort_key=_sort_key,
        svg=svg,
        style=style,
        script=script,
        policy=_policy(style, script),
    )


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and only our own style and script, named by their hashes, are applied."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _asset(name: str) -> str:
    return files("agentsignals.report").joinpath(name).read_text("utf-8")


def _sort_key(value: Any) -> str:
    """What a column is sorted by: the value itself, not the words it is shown in."""
    return "" if value is None else str(value)
