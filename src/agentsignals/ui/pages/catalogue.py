"""The catalogues: signals, with what this store holds of each, and studies."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from agentsignals.model import RULES
from agentsignals.model.registry import no_such
from agentsignals.questions.label_shares import TASK_BY_SIGNAL, trust
from agentsignals.questions.question import Finding, collecting_evidence, mark_names, row_names
from agentsignals.questions.studies import studies
from agentsignals.signals import Signal, Status, catalog
from agentsignals.signals.catalog import inventory
from agentsignals.ui.document import document
from agentsignals.ui.drawing import svg
from agentsignals.ui.figures import Spread, chosen, histogram, spreads
from agentsignals.ui.filter import Filter, carried, filtered, key_of, opening, sizes
from agentsignals.ui.page import NotFound, Page, Query, Route, address, short_ids, sql
from agentsignals.ui.snapshot import Snapshot


def signals_page(snapshot: Snapshot, query: Query) -> Page:
    """Signals that fit the words, with how many values the sessions chosen have and how they are spread."""
    filter_ = filtered(query, snapshot)
    context = query.choice("context", ("product", "eval"), snapshot.main_context)
    status = query.choice("status", get_args(Status))
    high_value = query.choice("high_value", ("1",)) == "1"
    seen = context if snapshot.contexts - {context} else ""
    by_signal = spreads(snapshot, seen, filter_)
    measured = {path for path, spread in spreads(snapshot, seen).items() if spread.figures["known"]}
    rows = inventory(query.text("name"), context, high_value, status or None, measured)
    filled = {
        "rows": [row | {"spread": by_signal.get(row["path"])} for row in rows],
        "statuses": get_args(Status),
        "status": status,
        "context": context,
        "high_value": high_value,
        "name": query.text("name"),
        "filter": filter_,
        "of": filter_.of_context(context),
    }
    return Page("signals.html.j2", "Signals", filled)


# One signal: its meaning, its spread over the sessions chosen, and those at its ends.

MOST = 10
"""Sessions shown at each end."""
MOST_VALUES = 20


def signal_page(snapshot: Snapshot, query: Query, path: str) -> Page:
    """A signal of the catalogue, in one context."""
    signal = catalog.by_path(path)
    default = signal.context if signal.context != "both" else snapshot.main_context
    context = query.choice("context", ("product", "eval") if signal.context == "both" else (signal.context,), default)
    seen = context if snapshot.contexts - {context} else ""
    filter_ = filtered(query, snapshot)
    of = filter_.of_context(context)

    def measured() -> dict[str, Any]:
        """Query what the page shows of the signal in the sessions `of` the filter: spread, histogram, reasons of absent
        values, and its value over the whole store."""
        spread = spreads(snapshot, seen, filter_).get(signal.path)
        values = {**of.where.values, "signal": signal.path}
        absent = snapshot.rows(sql("signal.absent", chosen=chosen(of)), values, seen)
        return {
            "spread": spread,
            "drawn": histogram(snapshot, seen, of, signal, spread) if spread else None,
            "absent": [row | {"link": of.also("/sessions", f"{signal.path} absent {row['reason']}")} for row in absent],
            "corpus": snapshot.rows(sql("signal.corpus_value"), {"signal": signal.path}, seen),
            **_values(snapshot, signal, of, spread, seen),
        }

    filled = {
        "one": signal,
        "row": next(row for row in catalog.inventory() if row["path"] == signal.path),
        "context": context,
        "contexts": ("product", "eval") if signal.context == "both" and len(snapshot.contexts) > 1 else (context,),
        "filter": filter_,
        "of": of,
        **snapshot.recent(("signal", signal.path, *sorted(of.words.items())), measured),
    }
    return Page("signal.html.j2", signal.path, filled)


def _values(snapshot: Snapshot, signal: Signal, of: Filter, spread: Spread | None, seen: str) -> dict[str, Any]:
    """The commonest values where there are few kinds; the sessions at both ends where there is an order."""
    if spread is None:
        return {"values": [], "ends": []}
    values = {**of.where.values, "signal": signal.path, "most": MOST}

    def ends(order: str, numbered: str = "") -> list[dict[str, Any]]:
        return snapshot.rows(sql("signal.extremes", chosen=chosen(of), order=order, numbered=numbered), values, seen)

    if signal.type in ("int", "float"):
        high, low = (ends(f"number {way}", "AND number IS NOT NULL") for way in ("DESC", "ASC"))
        return {"values": [], "ends": [("Highest", high), ("Lowest", low)]}
    if signal.type in ("bool", "str", "enum"):
        rows = snapshot.rows(sql("signal.values", chosen=chosen(of)), {**values, "most": MOST_VALUES}, seen)
        for row in rows:
            value = msgspec.json.decode(row["value"])
            plain = str(value).lower() if signal.type == "bool" else value
            # No link to a text that would be taken for more than one condition.
            is_one = ";" not in plain and plain == plain.strip()
            task, row["labeller"] = TASK_BY_SIGNAL.get(signal.path), row["labeller"] or RULES
            row["trust"] = trust(task, row["labeller"], plain) if task else None
            row["link"] = of.also("/sessions", f"{signal.path}={plain}") if is_one else ""
        return {"values": rows, "ends": []}
    return {"values": [], "ends": [("Longest", ends("length(value) DESC"))]}


# Studies: what the report shows of each, with its charts.

_FILTERS = {"agent": "agent", "model": "model", "path": "file"}
"""Columns whose cells name what sessions can be filtered by, and the word of the filter."""


HEADLINES = {
    "concentration": "concentration.half",
    "efficiency": "efficiency.recorded.usd",
    "intents": "intents.activity.writing",
    "oversight": "oversight.refused",
}
"""Figure of a study that stands for it in the index, where its first one says less or is another study's."""
WAIT_S = 2.0
"""Seconds the index waits for the headline numbers; the first time all studies run."""


def studies_page(snapshot: Snapshot, query: Query) -> Page:
    """The studies there are, each with its headline number."""
    context = query.choice("context", ("product", "eval"), snapshot.main_context)

    def headlines() -> dict[str, Finding]:
        made = document(snapshot.store, list(studies()), context)
        first = {}
        for section in made.sections:
            known = [f for f in section.findings if f.value is not None and f.kind != "text"]
            if known:
                chosen_id = HEADLINES.get(section.study)
                first[section.study] = next((f for f in known if f.headline or f.id == chosen_id), known[0])
        return first

    made = snapshot.soon(("headlines", context), headlines, WAIT_S) if snapshot.store.manifest.sessions else {}
    every = list(studies().values())
    filled = {
        "shown": [one for one in every if made is None or one.name in made],
        "empty": [one for one in every if made is not None and one.name not in made],
        "headlines": made,
        "context": context,
        "others": sorted(snapshot.contexts - {context}),
    }
    return Page("studies.html.j2", "Studies", filled)


def study_page(snapshot: Snapshot, query: Query, name: str) -> Page:
    """One study of this store, as the report tells it."""
    if name not in studies():
        raise NotFound(" ".join(no_such("study", name[:200], studies())))
    context = query.choice("context", ("product", "eval"), snapshot.main_context)
    made: Page = snapshot.kept(("study", name, context), lambda: _page(snapshot, name, context))
    return made


def _page(snapshot: Snapshot, name: str, context: str) -> Page:
    """Return a study's page, with links from its numbers to the sessions behind them."""
    with collecting_evidence() as notes:
        contents = document(snapshot.store, [name], context)
    opened = sizes(notes)
    of_context = "" if context == snapshot.main_context or studies()[name].context != "either" else context

    def cell_url(column: str, value: Any) -> str:  # sessions of an agent, a model or a file that a cell names
        word = _FILTERS.get(column)
        return f"/sessions{carried({word: value})}" if word and isinstance(value, str) and value else ""

    def opens(figure: str, of_all: bool = False) -> str:
        return opening(key_of(name, figure, of_context), opened.get(figure), of_all)

    every = list(studies().values())
    here = every.index(studies()[name])
    filled: dict[str, Any] = {
        "document": contents,
        "draw": lambda chart: svg(chart, lambda name: opens(f"{chart.id}:{name}")),
        "context": context,
        "contexts": sorted(snapshot.contexts, reverse=True),
        "why_not": " ".join(omission.reason for omission in contents.left_out),
        "short_ids": short_ids(snapshot.store.manifest.sessions),
        "sort_key": lambda value: "" if value is None else str(value),
        "session_url": lambda session_id: address("session", session_id),
        "opens": opens,
        "row_names": row_names,
        "mark_names": mark_names,
        "cell_url": cell_url,
        "before": every[here - 1] if here else None,
        "after": every[here + 1] if here + 1 < len(every) else None,
        "study": every[here],
    }
    return Page("study.html.j2", every[here].title, filled)


PAGES = (
    Route(("signals",), signals_page, "Signals", 90),
    Route(("signal", "*"), signal_page, below="/signals"),
    Route(("studies",), studies_page, "Studies", 35, is_ranged=True),
    Route(("studies", "*"), study_page, below="/studies", is_ranged=True),
)
