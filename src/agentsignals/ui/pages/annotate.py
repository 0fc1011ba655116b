"""The one thing that a page may write: labels into a gold file, where `serve --annotate` names one.

A form that was made here carries the token of this process. What comes from another site is refused whatever it
carries: by what the browser says of where it comes from, by the token, and by the name that it asked for.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Collection, Mapping
from email.message import Message
from http import HTTPStatus
from io import BufferedIOBase
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from agentsignals.errors import AgentSignalsError, UsageError
from agentsignals.labels import annotation
from agentsignals.labels.agreement import classes, fitting
from agentsignals.labels.annotation import name_of
from agentsignals.labels.gold import GoldFile, GoldRow
from agentsignals.labels.matching import Place
from agentsignals.labels.tasks import Task, tasks
from agentsignals.labels.units import Unit, before, plain, units
from agentsignals.redaction import Redactor
from agentsignals.store.secrets import known_secrets, pseudonym_key
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.session import SessionView

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
        if not _is_of_ours(headers, names):
            raise Refused(HTTPStatus.FORBIDDEN, "Labels are taken from this page's own form only.")
        if headers.get_content_type() != _FORM:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"A form is wanted ({_FORM}).")
        lengths = headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not _NUMBER.fullmatch(lengths[0]) or "Transfer-Encoding" in headers:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "How long the form is must stand before it.")
        if int(lengths[0]) > MOST_BODY_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {MOST_BODY_BYTES:,} bytes are read.")
        fields = _fields(body.read(int(lengths[0])), int(lengths[0]))
        if not secrets.compare_digest(fields.get("token", "").encode("utf-8", "replace"), self.token.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "This form is none of this run: load the page again.")
        return fields


def _is_of_ours(headers: Message, names: Collection[str]) -> bool:
    """Return whether the browser says that one of our pages sent this. It says `null` for the origin of our forms,
    since our pages tell nobody where they are; then only its word that the form is of the same origin counts
    (https://www.w3.org/TR/fetch-metadata/)."""
    sites, origins = headers.get_all("Sec-Fetch-Site", []), headers.get_all("Origin", [])
    if origins == ["null"]:
        return sites == ["same-origin"]
    return sites in ([], ["same-origin"]) and origins in [[f"http://{name}"] for name in names]


def _fields(body: bytes, length: int) -> dict[str, str]:
    """Each field once; none of what can't be read or was cut."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}
    return dict(pairs) if len(body) == length and len(dict(pairs)) == len(pairs) else {}


# Labelling by hand: one thing at a time, blind to what others said of it, into the gold file of `serve --annotate`.

MOST_NOTE_CHARS = 2_000
MOST_SHOWN_CHARS = 60_000
"""A longer session is shown by its beginning and its end. The session's own page has it all."""
KEYS = "123456789abcdefghijklm"
"""Keys that choose a class, in their order; `n`, `s`, `u` do something else."""


class LabellingRound(NamedTuple):
    """A person, a task and a gold file."""

    snapshot: Snapshot
    file: GoldFile
    task: Task
    person: str
    places: dict[Place, GoldRow | None]
    """Places to label, in order, each with the file's row where the file asks about it."""

    def standing(self) -> dict[Place, GoldRow]:
        """Return the places that have a label in the file."""
        held = self.file.rows(self.task)
        rows = {place: held.get(_key(place, row)) for place, row in self.places.items()}
        return {place: row for place, row in rows.items() if row is not None and row.label is not None}

    def next_after(self, place: Place | None, done: Mapping[Place, GoldRow]) -> Place | None:
        """The first thing without a label after that one, or from the beginning; None when all have one."""
        queue = list(self.places)
        at = queue.index(place) + 1 if place in self.places else 0
        return next((p for p in (*queue[at:], *queue[:at]) if p not in done), None)

    def address(self, place: Place | None) -> str:
        named = {"task": self.task.name, "as": self.person.partition(":")[2]}
        return f"{ADDRESS}?{urlencode(named | ({'at': _written(place)} if place is not None else {}))}"


def page(snapshot: Snapshot, query: Query) -> Page:
    """The thing to label; or what to choose first; or how to turn it on."""
    offered = [task for task in tasks().values() if task.level != "repository"]
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
        raise UsageError("There is no such task.", "Go on from the page of labels.")
    labelling = _labelling_round(snapshot, task, name_of(fields.get("as", "")))
    if place is None or place not in labelling.places:
        raise UsageError(
            "There is no such thing to label.", "The store may have changed; go on from the page of labels."
        )
    label = fitting(task, fields.get("label"))
    note = fields.get("note", "").replace("\r\n", "\n").strip()[:MOST_NOTE_CHARS]
    unsure = fields.get("unsure") == "yes"
    try:
        if label is None:
            raise UsageError(f"{fields.get('label', '')[:40]!r} is no label of {task.name}.", "Choose one.")
        row = _row(labelling, place)
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
    filled |= _shown(labelling, place) if place is not None else {}
    return Page("annotate.html.j2", f"Label: {labelling.task.name.replace('_', ' ')}", filled)


def _shown(labelling: LabellingRound, place: Place) -> dict[str, Any]:
    """Return what a judge is shown: the message and what led to it, or the session."""
    session_id, turn = place
    view = SessionView(labelling.snapshot.store.session(session_id))
    row = labelling.places[place]
    shown: dict[str, Any] = {"by_labeller": row.by_labeller if row is not None else {}, "why_not": "", "before": ""}
    if turn is not None:
        asked = view.turns[turn]
        return {**shown, "text": asked.text, "before": before(view, asked, plain), "event": asked.seq}
    unit = next(units(labelling.task, view.session, sys.maxsize))
    text = "".join(unit.parts) if isinstance(unit, Unit) else ""
    if len(text) > MOST_SHOWN_CHARS:
        half = MOST_SHOWN_CHARS // 2
        text = f"{text[:half]}\n\n[… {len(text) - 2 * half:,} characters between …]\n\n{text[-half:]}"
    return {**shown, "text": text, "event": None, "why_not": "" if isinstance(unit, Unit) else unit.reason}


def _row(labelling: LabellingRound, place: Place) -> GoldRow:
    """A row for that thing: the file's, or a new one with the message, masked, by which it is found elsewhere, too."""
    row = labelling.places[place]
    if row is None:
        session_id, turn = place
        row = GoldRow(session_id=session_id, turn=None if turn is None else turn + 1)
        if turn is not None:
            store = labelling.snapshot.store
            redactor = Redactor(pseudonym_key(), known=known_secrets(store))
            row.text = redactor.plain(store.session(session_id).turns[turn].text)
    row.task, row.annotator, row.prompt_hash = labelling.task.name, labelling.person, labelling.task.prompt_hash
    return row


def _key(place: Place, row: GoldRow | None) -> Place:
    """The thing as the file names it."""
    if row is not None:
        return row.session_id, row.turn
    session_id, turn = place
    return session_id, None if turn is None else turn + 1


def _written(place: Place) -> str:
    """A thing as a field of a form says it: no character of an id can be lost or shown otherwise on the way."""
    session_id, turn = place
    return f"{'' if turn is None else turn}:{quote(session_id, safe='', errors='surrogateescape')}"


def _read(text: str) -> Place | None:
    turn, colon, session_id = text.partition(":")
    if not colon or (turn and not (turn.isascii() and turn.isdigit() and len(turn) < 10)):
        return None
    return unquote(session_id, errors="surrogateescape"), int(turn) if turn else None


PAGES = (Route(("labels", "annotate"), page, below="/labels"),)
