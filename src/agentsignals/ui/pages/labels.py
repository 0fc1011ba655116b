"""Judgements of the store: who said what how often, how far they agree, and first of all where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from agentsignals.errors import SourceError
from agentsignals.labels import matching
from agentsignals.labels.agreement import Several
from agentsignals.labels.classifier import classifier_of, corrected_shares
from agentsignals.labels.tasks import tasks
from agentsignals.stats.intervals import Prevalence
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Page, Query, Route, part_of
from agentsignals.ui.queries import sql
from agentsignals.ui.snapshot import Snapshot

SIZE = 20
MOST_COMPARED = 6
"""Labellers of a task whose agreement is computed, each with each: those with the most labels."""
MOST_CLASSES = 16
"""A task with more values than these is one of scores or of words: they are not counted one by one."""
SHOWN = {"apart": "where they differ", "alike": "where they agree", "all": "all that was labelled"}


def page(snapshot: Snapshot, query: Query) -> Page:
    """The labels of a task: counts, agreement, and the things labelled, those with different labels first."""
    filter_ = filtered(query, snapshot)
    every = snapshot.kept("labels:counted", lambda: snapshot.rows(sql("labels.counts", sessions="true")))
    chosen = f"session_id IN ({filter_.sessions})" if filter_.where.text() else "true"
    counted = every if chosen == "true" else snapshot.rows(sql("labels.counts", sessions=chosen), filter_.where.values)
    names = list(_by_number(every, "task"))
    # Where no task was chosen: one that several judged, of them the one with the most labels.
    judged_by = {name: {row["labeller"] for row in every if row["task"] == name} for name in names}
    task = query.choice("task", names, max(names, key=lambda name: len(judged_by[name]) > 1, default=""))
    every_of_task = [row for row in every if row["task"] == task]
    labellers = _by_number(every_of_task, "labeller")
    of_task = [row for row in counted if row["task"] == task]
    # The classes in the task's order, then others that were given; none where verdicts are numbers or words.
    declared = tasks()[task].values if task in tasks() else ()
    classes = list(dict.fromkeys([*declared, *(row["value"] for row in every_of_task)]))
    classes = classes if len(classes) <= MOST_CLASSES else []
    corrected: dict[str, dict[str, Prevalence]] = {}  # of each classifier by class; nothing of one whose file is gone
    for name in _by_number(of_task, "labeller"):
        with suppress(SourceError):
            if model := classifier_of(name, task):
                values = _by_number([row for row in of_task if row["labeller"] == name], "value")
                corrected[name] = corrected_shares(model, values)
    filled: dict[str, Any] = {
        "tasks": names,
        "task": task,
        "about": tasks()[task].says if task in tasks() else "",
        "labellers": {name: _by_number(of_task, "labeller").get(name, 0) for name in labellers},
        "classes": classes,
        "counts": {(row["labeller"], row["value"]): row["n"] for row in of_task},
        "corrected": corrected,
        "unsure": sum(row["unsure"] for row in of_task),
        "can_annotate": task in tasks() and tasks()[task].level != "repository",
        "query": query,
        "filter": filter_,
        "shown": SHOWN,
    }
    if task:
        filled |= _listed(snapshot, query, filter_, task, list(labellers), classes)
        filled["agreement"] = agreement = _agreement(snapshot, filter_, task, list(labellers))
        a, b, pairs = filled["chosen"]["a"], filled["chosen"]["b"], agreement.pairs if agreement else []
        of_two = pairs[0] if len(pairs) == 1 and not (a and b) else None  # the only two there are
        filled["compared"] = of_two or next((pair for pair in pairs if {pair.a, pair.b} == {a, b}), None)
    return Page("labels.html.j2", "Labels", filled)


def _by_number(rows: Sequence[dict[str, Any]], column: str) -> dict[str, int]:
    """Count labels by task or labeller, most first."""
    n: dict[str, int] = {}
    for row in rows:
        n[row[column]] = n.get(row[column], 0) + row["n"]
    return dict(sorted(n.items(), key=lambda pair: (-pair[1], pair[0])))


def _listed(  # noqa: PLR0913  (what was chosen, and of what)
    snapshot: Snapshot, query: Query, filter_: Filter, task: str, labellers: list[str], classes: list[str]
) -> dict[str, Any]:
    a, b = query.choice("a", labellers), query.choice("b", labellers)
    if a == b:
        b = ""
    chosen = {"a": a, "b": b, "class": query.choice("class", classes)}
    chosen |= {"by_a": query.choice("by_a", classes if a else ()), "by_b": query.choice("by_b", classes if b else ())}
    show = query.choice("show", SHOWN, "apart" if len(labellers) > 1 and not (a and not b) else "all")
    # With two labellers only what these said counts as different.
    things = [f"bool_or(labeller = ${name})" for name in ("a", "b") if chosen[name]]
    things += [
        f"bool_or(labeller = ${name} AND label.value = $by_{name})" for name in ("a", "b") if chosen[f"by_{name}"]
    ]
    things += ["bool_or(label.value = $class)"] if chosen["class"] else []
    items = sql(
        "labels.items",
        labels=" AND labeller IN ($a, $b)" if a and b else "",
        sessions=f"session_id IN ({filter_.sessions})" if filter_.where.text() else "true",
        things=" AND ".join(things or ["true"]),
    )
    values = {"task": task, **filter_.where.values, **{name: value for name, value in chosen.items() if value}}
    where = {"apart": "n > 1 AND n_values > 1", "alike": "n > 1 AND n_values = 1", "all": "true"}[show]
    if a and b:
        where += " AND n > 1"
    numbers = snapshot.rows(sql("labels.numbers", items=items, condition=where), values)[0]
    part = part_of(query, SIZE, numbers["shown"])
    rows = snapshot.rows(
        sql("labels.page", items=items, condition=where), {**values, "size": SIZE, "start": part.start}
    )
    return {"chosen": chosen, "show": show, "numbers": numbers, "part": part, "items": _with_texts(snapshot, rows)}


def _with_texts(snapshot: Snapshot, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each thing with the message that was judged, where it stands, and what it answers to."""
    if not rows:
        return []
    values = {f"id{n}": name for n, name in enumerate(sorted({row["session_id"] for row in rows}))}
    ids = ", ".join(f"${name}" for name in values)
    turns = {(r["session_id"], r["turn"]): r for r in snapshot.rows(sql("labels.turns", ids=ids), values)}
    ends = {(r["session_id"], r["turn"]): r["seq"] for r in snapshot.rows(sql("labels.answers", ids=ids), values)}
    answers = {_place(row): (row["session_id"], ends.get((row["session_id"], (row["turn"] or 0) - 1))) for row in rows}
    seqs = {seq for _, seq in answers.values() if seq is not None} | {r["seq"] for r in rows if r["seq"] is not None}
    asked = snapshot.rows(sql("labels.events", ids=ids), {**values, "seqs": sorted(seqs)}) if seqs else []
    events = {(r["session_id"], r["seq"]): r for r in asked}
    made = []
    for row in rows:
        session_id, turn, seq = _place(row)
        message = events.get((session_id, seq)) if seq is not None else turns.get((session_id, turn or 0))
        about = {"at": seq, "text": message and message["text"], "asked": None, "answered": None}
        if turn is not None:
            answered, end = answers[_place(row)]
            about["at"] = message and message["seq"]
            about["asked"] = turns.get((session_id, turn - 1), {}).get("text")
            about["answered"] = events.get((answered, end or -1), {}).get("ending")
        made.append(row | about)
    return made


def _place(row: dict[str, Any]) -> tuple[str, int | None, int | None]:
    return row["session_id"], row["turn"], row["seq"]


def _agreement(snapshot: Snapshot, filter_: Filter, task: str, labellers: list[str]) -> Several | None:
    """Return the agreement of labels of people's sessions; None where there is nothing to compare."""
    if task not in tasks() or len(labellers) < 2:
        return None
    names = labellers[:MOST_COMPARED]
    if not filter_.where.text():
        return snapshot.kept(("labels:agreement", task), lambda: matching.among(snapshot.store, tasks()[task], names))
    only = {row["session_id"] for row in snapshot.rows(filter_.sessions, filter_.where.values)}
    return matching.among(snapshot.store, tasks()[task], names, only)


PAGES = (Route(("labels",), page, "Labels", 50),)
