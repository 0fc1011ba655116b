"""Judgements of the store: who said what how often, how far they agree, and first of all where they do not."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from io import BufferedIOBase
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from agentsignals.errors import AgentSignalsError, SourceError, UsageError
from agentsignals.labels import annotation, matching
from agentsignals.labels.agreement import Several, classes, fitting
from agentsignals.labels.annotation import name_of
from agentsignals.labels.gold import GoldFile, GoldRow
from agentsignals.labels.labellers import quality
from agentsignals.labels.matching import Place
from agentsignals.labels.run import shares_of
from agentsignals.labels.tasks import Task, tasks
from agentsignals.labels.units import Unit, before, plain, units
from agentsignals.questions.label_shares import trust
from agentsignals.redaction import Redactor
from agentsignals.stats.intervals import Prevalence
from agentsignals.store.secrets import known_secrets, pseudonym_key
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Page, Query, Route, part_of, sql
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.session import SessionView
from agentsignals.words.classifier import classifier_of

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
    every_task = list(_by_number(every, "task"))
    # Where no task was chosen: one that several judged, of them the one with the most labels.
    judged_by = {name: {row["labeller"] for row in every if row["task"] == name} for name in every_task}
    task = query.choice("task", every_task, max(every_task, key=lambda name: len(judged_by[name]) > 1, default=""))
    every_of_task = [row for row in every if row["task"] == task]
    labellers = _by_number(every_of_task, "labeller")
    of_task = [row for row in counted if row["task"] == task]
    # The classes in the task's order, then others that were given; none where verdicts are numbers or words.
    declared = tasks()[task].values if task in tasks() else ()
    classes = list(dict.fromkeys([*declared, *(row["value"] for row in every_of_task)]))
    classes = classes if len(classes) <= MOST_CLASSES else []
    shares: dict[str, dict[str, Prevalence]] = {}  # of each classifier by class; nothing of one whose file is gone
    qualities: dict[str, str] = {}
    for name in _by_number(of_task, "labeller"):
        with suppress(SourceError):
            if task in tasks() and (measured := quality(name, tasks()[task])):
                qualities[name] = measured
            if model := classifier_of(name, task):
                values = {**filter_.where.values, "task": task, "labeller": name}
                made = snapshot.rows(sql("labels.details", sessions=chosen), values)
                shares[name] = shares_of(model, [(row["session_id"], row["value"], row["detail"]) for row in made])
    filled: dict[str, Any] = {
        "tasks": every_task,
        "task": task,
        "about": tasks()[task].says if task in tasks() else "",
        "labellers": {name: _by_number(of_task, "labeller").get(name, 0) for name in labellers},
        "classes": classes,
        "counts": {(row["labeller"], row["value"]): row["n"] for row in of_task},
        "shares": shares,
        "qualities": qualities,
        "trusts": {(name, value): trust(task, name, value) for name in labellers for value in classes},
        "unsure": sum(row["unsure"] for row in of_task),
        "can_annotate": task in tasks() and tasks()[task].level in _BY_HAND,
        "filter": filter_,
        "shown": SHOWN,
    }
    if task:
        filled |= _listed(snapshot, query, filter_, task, list(labellers), classes)
        agreement: Several | None = None  # of labels of people's sessions, where there is something to compare
        if task in tasks() and len(labellers) > 1:
            of, names = tasks()[task], list(labellers)[:MOST_COMPARED]
            if filter_.where.text():
                only = {row["session_id"] for row in snapshot.rows(filter_.sessions, filter_.where.values)}
                agreement = matching.among(snapshot.store, of, names, only)
            else:
                key = ("labels:agreement", task)
                agreement = snapshot.kept(key, lambda: matching.among(snapshot.store, of, names))
        filled["agreement"] = agreement
        a, b, pairs = filled["chosen"]["a"], filled["chosen"]["b"], agreement.pairs if agreement else []
        of_two = pairs[0] if len(pairs) == 1 and not (a and b) else None  # the only two there are
        filled["compared"] = of_two or next((pair for pair in pairs if {pair.a, pair.b} == {a, b}), None)
    return Page("labels.html.j2", "Labels", filled)


def _by_number(rows: Sequence[dict[str, Any]], column: str) -> dict[str, int]:
    n: dict[str, int] = {}
    for row in rows:
        n[row[column]] = n.get(row[column], 0) + row["n"]
    return dict(sorted(n.items(), key=lambda pair: (-pair[1], pair[0])))


def _listed(  # noqa: PLR0913  (what was chosen, and of what)
    snapshot: Snapshot, query: Query, filter_: Filter, task: str, labellers: list[str], classes: list[str]
) -> dict[str, Any]:
    """Return the labelled items that the page's filters select, a part at a time."""
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


# The one thing that a page may write: labels into a gold file, where `serve --annotate` names one.
#
# A form that was made here carries the token of this process. What comes from another site is refused whatever it
# carries: by what the browser says of where it comes from, by the token, and by the name that it asked for.

ADDRESS = "/labels/annotate"
MOST_BODY_BYTES = 32 * 1024
"""A note of 2,000 characters takes 24 KB at most."""
MOST_FIELDS = 12
_NUMBER = re.compile("[0-9]{1,9}")
_FORM = "application/x-www-form-urlencoded"


class Refused(Exception):
    """A request that may not write: with which status it is answered, and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Annotations:
    """A gold file that is open for writing, and what a form must carry to write into it."""

    def __init__(self, file: GoldFile) -> None:
        self.file = file
        self.token = secrets.token_urlsafe(32)

    def form(self, headers: Message, body: BufferedIOBase, names: Collection[str]) -> dict[str, str]:
        """The fields of a form of ours. Refused for any other, before more of it is read than its head where that
        tells. `names`: those of this server.
        """
        # The browser has to say that one of our pages sent this. It says `null` for the origin of our forms, since our
        # pages tell nobody where they are; then only its word that the form is of the same origin counts
        # (https://www.w3.org/TR/fetch-metadata/).
        sites, origins = headers.get_all("Sec-Fetch-Site", []), headers.get_all("Origin", [])
        is_of_ours = sites in ([], ["same-origin"]) and origins in [[f"http://{name}"] for name in names]
        if not (sites == ["same-origin"] if origins == ["null"] else is_of_ours):
            raise Refused(HTTPStatus.FORBIDDEN, "Labels are accepted only from the form on this page.")
        if headers.get_content_type() != _FORM:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The request must be a form ({_FORM}).")
        lengths = headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not _NUMBER.fullmatch(lengths[0]) or "Transfer-Encoding" in headers:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "The request needs a Content-Length header.")
        if int(lengths[0]) > MOST_BODY_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The form is larger than {MOST_BODY_BYTES:,} bytes.")
        sent, fields = body.read(int(lengths[0])), dict[str, str]()  # each field once; none of what can't be read
        with suppress(ValueError):
            pairs = parse_qsl(sent.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
            is_whole = len(sent) == int(lengths[0]) and len(dict(pairs)) == len(pairs)
            fields = dict(pairs) if is_whole else {}
        if not secrets.compare_digest(fields.get("token", "").encode("utf-8", "replace"), self.token.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "This form is from an earlier server run. Reload the page.")
        return fields


# Labelling by hand: one thing at a time, blind to what others said of it, into the gold file of `serve --annotate`.

MOST_NOTE_CHARS = 2_000
MOST_SHOWN_CHARS = 60_000
"""A longer session is shown by its beginning and its end. The session's own page has it all."""
_BY_HAND = ("turn", "session")
"""Levels of the tasks that people label on the page."""
KEYS = "123456789abcdefghijklm"
"""Keys that choose a class, in their order; `n`, `s`, `u` do something else."""


class LabellingRound(NamedTuple):
    snapshot: Snapshot
    file: GoldFile
    task: Task
    person: str
    places: dict[Place, GoldRow | None]
    """Places to label, in order, each with the file's row where the file asks about it."""

    def standing(self) -> dict[Place, GoldRow]:
        """Return the places that have a label in the file."""
        held = self.file.rows(self.task)
        standing = {}
        for place, row in self.places.items():
            session_id, turn = place  # as the file names it: turns from 1
            named = held.get(
                (session_id, None if turn is None else turn + 1) if row is None else (row.session_id, row.turn)
            )
            if named is not None and named.label is not None:
                standing[place] = named
        return standing

    def next_after(self, place: Place | None, done: Mapping[Place, GoldRow]) -> Place | None:
        """The first thing without a label after that one, or from the beginning; None when all have one."""
        queue = list(self.places)
        at = queue.index(place) + 1 if place in self.places else 0
        return next((p for p in (*queue[at:], *queue[:at]) if p not in done), None)

    def address(self, place: Place | None) -> str:
        named = {"task": self.task.name, "as": self.person.partition(":")[2]}
        return f"{ADDRESS}?{urlencode(named | ({'at': _written(place)} if place is not None else {}))}"


def annotate_page(snapshot: Snapshot, query: Query) -> Page:
    """The thing to label; or what to choose first; or how to turn it on."""
    offered = [task for task in tasks().values() if task.level in _BY_HAND]
    name, person = query.choice("task", [task.name for task in offered]), query.text("as")
    try:
        person = name_of(person) if person else ""
    except UsageError:
        person = ""
    if snapshot.annotations is None or not name or not person:
        filled = {"offered": offered, "task": name, "person": query.text("as"), "open": snapshot.annotations}
        return Page("annotate_begin.html.j2", "Label by hand", filled)
    labelling = _labelling_round(snapshot, tasks()[name], person)
    done = labelling.standing()
    place = _read(query.text("at"))
    if place not in labelling.places:
        place = labelling.next_after(None, done)
    return _asking(labelling, done, place)


def taken(snapshot: Snapshot, fields: Mapping[str, str]) -> str | Page:
    """Writes what a form says; gives the address of the next thing, or the form again where it could not be written."""
    task, place = tasks().get(fields.get("task", "")), _read(fields.get("place", ""))
    if task is None or snapshot.annotations is None:
        raise UsageError("This labelling task does not exist.", "Choose a task on the labels page.")
    labelling = _labelling_round(snapshot, task, name_of(fields.get("as", "")))
    if place is None or place not in labelling.places:
        raise UsageError(
            "This item is not in the store.", "The store may have changed. Start again from the labels page."
        )
    label = fitting(task, fields.get("label"))
    note = fields.get("note", "").replace("\r\n", "\n").strip()[:MOST_NOTE_CHARS]
    unsure = fields.get("unsure") == "yes"
    try:
        if label is None:
            raise UsageError(
                f"{fields.get('label', '')[:40]!r} is not a label of {task.name}.", "Choose one of the labels."
            )
        row = labelling.places[place]
        if row is None:  # a new one with the message, masked, by which it is found elsewhere, too
            session_id, turn = place
            row = GoldRow(session_id=session_id, turn=None if turn is None else turn + 1)
            if turn is not None:
                redactor = Redactor(pseudonym_key(), known=known_secrets(snapshot.store))
                row.text = redactor.plain(snapshot.store.session(session_id).turns[turn].text)
        row.task, row.annotator, row.prompt_hash = task.name, labelling.person, task.prompt_hash
        row.label, row.reason, row.unsure = label, note or None, unsure
        labelling.file.put(task, row, fields.get("seen", ""))
    except AgentSignalsError as problem:
        typed = {"label": label or "", "note": note, "unsure": unsure, "problem": f"{problem.message} {problem.hint}"}
        return _asking(labelling, labelling.standing(), place, typed)
    done = labelling.standing()
    return labelling.address(labelling.next_after(place, done))


def _labelling_round(snapshot: Snapshot, task: Task, person: str) -> LabellingRound:
    assert snapshot.annotations is not None  # noqa: S101  (both that call it looked)
    file = snapshot.annotations.file
    rows = file.rows(task)
    places: dict[Place, GoldRow | None]
    if annotation.asks(rows):
        asked = snapshot.kept(("annotate", task.name, tuple(rows)), lambda: annotation.of_file(snapshot.store, rows))
        places = {place: rows[key] for place, key in asked.items()}
    else:
        places = dict.fromkeys(snapshot.kept(("annotate", task.name), lambda: annotation.of_store(snapshot.rows, task)))
    return LabellingRound(snapshot, file, task, person, places)


def _asking(
    labelling: LabellingRound,
    done: Mapping[Place, GoldRow],
    place: Place | None,
    typed: Mapping[str, Any] | None = None,
) -> Page:
    """The form for one thing. `typed`: what was sent and could not be written, and why."""
    queue = list(labelling.places)
    standing = done.get(place) if place is not None else None
    at = queue.index(place) if place is not None else 0
    names = classes(labelling.task)
    filled: dict[str, Any] = {
        "task": labelling.task,
        "person": labelling.person,
        "file": str(labelling.file.path),
        "drawn": any(labelling.places.values()),
        "token": labelling.snapshot.annotations.token if labelling.snapshot.annotations else "",
        "total": len(queue),
        "n_done": len(done),
        "number": at + 1,
        "place": place,
        "written": _written(place) if place is not None else "",
        "classes": list(zip(KEYS, names, strict=False)),
        "seen": standing.label if standing else "",
        "label": standing.label if standing else "",
        "note": (standing.reason or "") if standing else "",
        "unsure": standing.unsure if standing else False,
        "problem": "",
        "most_note_chars": MOST_NOTE_CHARS,
        "back": labelling.address(queue[at - 1]) if place is not None and at else "",
        "forth": labelling.address(queue[at + 1]) if place is not None and at + 1 < len(queue) else "",
        "later": labelling.address(labelling.next_after(place, {**done, place: GoldRow(session_id="")}))
        if place
        else "",
        **(typed or {}),
    }
    if place is not None:  # what a judge is shown: the message and what led to it, or the session
        session_id, turn = place
        view = SessionView(labelling.snapshot.store.session(session_id))
        row = labelling.places[place]
        filled |= {"by_labeller": row.by_labeller if row is not None else {}, "why_not": "", "before": ""}
        if turn is not None:
            asked = view.turns[turn]
            filled |= {"text": asked.text, "before": before(view, asked, plain), "event": asked.seq}
        else:
            unit = next(units(labelling.task, view.session, sys.maxsize))
            text = "".join(unit.parts) if isinstance(unit, Unit) else ""
            if len(text) > MOST_SHOWN_CHARS:
                half = MOST_SHOWN_CHARS // 2
                text = f"{text[:half]}\n\n[… {len(text) - 2 * half:,} characters between …]\n\n{text[-half:]}"
            filled |= {"text": text, "event": None, "why_not": "" if isinstance(unit, Unit) else unit.reason}
    return Page("annotate.html.j2", f"Label: {labelling.task.name.replace('_', ' ')}", filled)


def _written(place: Place) -> str:
    """A thing as a field of a form says it: no character of an id can be lost or shown otherwise on the way."""
    session_id, turn = place
    return f"{'' if turn is None else turn}:{quote(session_id, safe='', errors='surrogateescape')}"


def _read(text: str) -> Place | None:
    turn, colon, session_id = text.partition(":")
    if not colon or (turn and not (turn.isascii() and turn.isdigit() and len(turn) < 10)):
        return None
    return unquote(session_id, errors="surrogateescape"), int(turn) if turn else None


PAGES = (
    Route(("labels",), page, "Labels", 50, holds=lambda s: s.annotations is not None or s.holds("labels")),
    Route(("labels", "annotate"), annotate_page, below="/labels"),
)
