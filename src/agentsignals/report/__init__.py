"""Studies as one file: a page that opens offline, Markdown, or data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentsignals.analysis import studies as every_study
from agentsignals.analysis import study
from agentsignals.errors import BaselineError, StoreError, UsageError
from agentsignals.store import Store, files

if TYPE_CHECKING:
    from agentsignals.analysis.study import Study
    from agentsignals.report.document import Document

FORMS = (".html", ".md", ".json")


def write(  # noqa: PLR0913  (each is a choice of the person at the command line)
    store: Store,
    path: Path,
    studies: Sequence[str] | None = None,
    *,
    context: str | None = None,
    static: bool = False,
    labeller: str | None = None,
    baseline: Path | None = None,
) -> Path:
    """Writes the report of a store in the form its ending names, in one rename, and gives its path.

    `studies`: only these, in this order. `context`: `product` or `eval`, whose figures; without one, people's sessions
    when there are any. `static`: a page whose charts are pictures. `labeller`: whose labels studies of labels take;
    without one, of those there are the one with most. `baseline`: a file that `export --to baseline` wrote, to hold
    these sessions against. UsageError for another ending or an unknown study, BaselineError when that file is none,
    StoreError when the report can't be written.
    """
    check(path, studies)
    form = path.suffix.lower()
    first = [_against(baseline)] if baseline else []
    if form == ".html" and store.manifest.sessions and not static:
        from agentsignals.report.chart_svg import can_draw, packing  # noqa: PLC0415

        if can_draw():
            packing()
    from agentsignals.report.document import document  # noqa: PLC0415  (DuckDB is loaded when a report is made)

    made = document(store, studies, context, labeller, first)
    text = _text(made, form, store, static)
    try:
        files.replace(path, text.encode())
    except OSError as problem:
        raise StoreError(
            f"The report {path} can't be written: {problem.strerror}.", "Name a file in a folder you may write."
        ) from problem
    return path


def check(path: Path, studies: Sequence[str] | None = None) -> None:
    """UsageError when `write` would refuse this ending or these studies: to know before the work, not after."""
    if path.suffix.lower() not in FORMS:
        came = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise UsageError(f"The report {path.name!r} {came}.", f"It is written as {', '.join(FORMS)}.")
    for name in studies or every_study():
        study(name)


def _against(file: Path) -> Study:
    from agentsignals.analysis import against, baseline  # noqa: PLC0415  (only when asked)

    try:
        data = file.read_bytes()
    except OSError as problem:
        raise BaselineError(f"The baseline {file} can't be read: {problem.strerror}.", "Name a file.") from problem
    return against.against(baseline.decode(data, file.name), str(file))


def _text(made: Document, form: str, store: Store, static: bool) -> str:
    if form == ".json":
        from agentsignals.report.data import render as as_data  # noqa: PLC0415

        return as_data(made)
    from agentsignals.report.short_ids import beginnings  # noqa: PLC0415

    short_ids = beginnings(store.manifest.sessions)
    if form == ".md":
        from agentsignals.report.markdown import render as as_markdown  # noqa: PLC0415

        return as_markdown(made, short_ids)
    from agentsignals.report.page import render as as_page  # noqa: PLC0415  (jinja2 and charts)

    return as_page(made, short_ids, static)
