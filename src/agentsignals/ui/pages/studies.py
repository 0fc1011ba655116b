"""Studies on the page: what the report shows of each, with its charts."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from agentsignals.questions.question import collecting_evidence, mark_names, row_names
from agentsignals.questions.studies import studies
from agentsignals.ui.charts import UNDRAWN, can_draw, data
from agentsignals.ui.document import WHOSE, document
from agentsignals.ui.drill_down import key_of, opening, sizes
from agentsignals.ui.page import NotFound, Page, Query, Route, address, short_ids
from agentsignals.ui.snapshot import Snapshot

_FILTERS = {"agent": "agent", "model": "model", "path": "file"}
"""Columns whose cells name what sessions can be filtered by, and the word of the filter."""


def contents(snapshot: Snapshot, query: Query) -> Page:
    """The questions there are."""
    return Page("studies.html.j2", "Studies", {"studies": list(studies().values()), "whose": WHOSE})


def page(snapshot: Snapshot, query: Query, name: str) -> Page:
    """One study of this store, as the report tells it."""
    if name not in studies():
        raise NotFound(f"There is no study {name[:200]!r}.", f"The studies: {', '.join(studies())}.")
    context = query.choice("context", ("product", "eval"), snapshot.main_context)
    made: Page = snapshot.kept(("study", name, context), lambda: _page(snapshot, name, context))
    return made._replace(filled={**made.filled, "query": query})


def _page(snapshot: Snapshot, name: str, context: str) -> Page:
    with collecting_evidence() as notes:
        contents = document(snapshot.store, [name], context)
    opened = sizes(notes)
    of_context = "" if context == snapshot.main_context or studies()[name].context != "either" else context

    def opens(figure: str, of_all: bool = False) -> str:
        return opening(key_of(name, figure, of_context), opened.get(figure), of_all)

    charts = [chart for section in contents.sections for chart in section.charts]
    drawn = data(charts) if charts and can_draw() else ""
    every = list(studies().values())
    here = every.index(studies()[name])
    filled: dict[str, Any] = {
        "document": contents,
        "charts": drawn,
        "undrawn": UNDRAWN if charts and not drawn else "",
        "context": context,
        "contexts": sorted(snapshot.contexts, reverse=True),
        "why_not": " ".join(omission.reason for omission in contents.left_out),
        "short_ids": short_ids(snapshot.store.manifest.sessions),
        "sort_key": lambda value: "" if value is None else str(value),
        "session_url": lambda session_id: address("session", session_id),
        "opens": opens,
        "row_names": row_names,
        "mark_names": mark_names,
        "cell_url": _cell_url,
        "before": every[here - 1] if here else None,
        "after": every[here + 1] if here + 1 < len(every) else None,
        "study": every[here],
    }
    return Page("study.html.j2", every[here].title, filled)


def _cell_url(column: str, value: Any) -> str:
    """The sessions of an agent, a model, a tool or a file that a cell names; empty for other cells."""
    word = _FILTERS.get(column)
    if not word or not isinstance(value, str) or not value:
        return ""
    return f"/sessions?{urlencode({word: value}, errors='replace')}"


PAGES = (Route(("studies",), contents, "Studies", 70), Route(("studies", "*"), page, below="/studies"))
