"""One session: what happened in order, and after it what was measured."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.model import MAIN, RULES
from agentsignals.model.prices import exact_digits, total_line
from agentsignals.questions.label_shares import TASK_BY_SIGNAL, trust
from agentsignals.redaction import Redactor
from agentsignals.redaction.values import RandomValues
from agentsignals.signals import Signal
from agentsignals.signals.catalog import catalogue
from agentsignals.stats.validation import figures
from agentsignals.store.secrets import known_secrets, pseudonym_key, record_ids
from agentsignals.ui import page as words
from agentsignals.ui import sharing
from agentsignals.ui.markup import coloured
from agentsignals.ui.page import NotFound, Page, Query, Reply, Route, sql
from agentsignals.ui.raw_record import RawLine, raw_line
from agentsignals.ui.snapshot import Snapshot
from agentsignals.ui.transcript import (
    KINDS,
    MOST_OPENED,
    PART,
    TROUBLE,
    Conversation,
    EntryBuilder,
    View,
    by_turn,
    choices,
    conversation,
    holding,
    home,
    name_of,
    place,
    unusual,
)
from agentsignals.views.session import Item

OUTLINE = 150
"""Turns of the outline shown at once."""
_MOST_WORDS = 200


class Reader:
    """The entries of a session that an address asks for, and which part of them."""

    def __init__(self, snapshot: Snapshot, query: Query, session_id: str) -> None:
        self.snapshot, self.query = snapshot, query
        self.session_id = _whole(snapshot, session_id)
        self.facts = self.rows(sql("session.facts"))[0]
        self.conversation: Conversation = conversation(snapshot, self.session_id)
        asked = query.text("only").split(",")
        self.only = tuple(kind for kind in KINDS if kind in asked)
        at = query.number("at", -1)
        self.at = at if 0 <= at < (self.facts["n_events"] or 0) else -1
        self.home = home(snapshot, self.session_id, self.at) if self.at >= 0 else -1
        self.thread = query.choice("thread", self.conversation.threads)
        inside = self.conversation.thread_of(self.home)
        self.words = query.text("q")[:_MOST_WORDS]
        if not self.only and not self.words and not self.thread and inside != MAIN:
            is_long = len(self.conversation.threads[inside].seqs) > MOST_OPENED
            self.thread = inside if is_long else ""
        among = holding(snapshot, self.session_id, self.words) if self.words else None
        self.view: View = self.conversation.view(self.only, self.thread, among)
        self.number = min(max(query.number("page", 1) - 1, 0), self.view.last)
        if self.home >= 0:
            folded = {thread: seq for seq, thread in self.view.folded.items()}
            self.number = self.view.part_of(folded.get(inside, self.home))

    def rows(self, query: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        return self.snapshot.rows_of(self.session_id, query, values)

    def filled(self) -> dict[str, Any]:
        """Return the values that the template of a part needs."""
        seqs = self.view.part(self.number)
        builder = EntryBuilder(self.snapshot, self.session_id, self.facts["cwd"], self.at)
        entries = builder.entries(seqs.tolist(), self.conversation, self.view.folded, self.home)
        for entry in entries if self.view.folded or self.thread else ():
            for shown in (entry, *(entry.folds.entries if entry.folds else ())):
                shown.thread = ""  # it stands among its like
        of_turn: dict[int, list[dict[str, Any]]] = {}  # values that say something: of a flag that is raised
        if turns := [entry.turn["turn"] for entry in entries if entry.turn]:
            rows = _declared(self.rows(sql("session.turn_signals"), {"low": min(turns), "high": max(turns)}))
            of_turn = {turn: list(of_it) for turn, of_it in groupby(rows, key=lambda row: row["turn"])}
        return {
            "session_id": self.session_id,
            "entries": entries,
            "number": self.number,
            "last": self.view.last,
            "first_entry": self.number * PART + 1,
            "n_entries": len(self.view.seqs),
            "of_turn": of_turn,
        }

    def outline(self) -> dict[str, Any]:
        n_turns = self.facts["n_turns"] or 0
        first = self.query.number("turn", -1)
        if first < 0:
            seqs = self.view.part(self.number)
            rows = self.rows(sql("session.turn_at"), {"seq": max(self.home, seqs[0] if seqs else 0)})
            first = rows[0]["turn"] if rows else 0
        low = min(first, max(n_turns - 1, 0)) // OUTLINE * OUTLINE
        turns = self.rows(sql("session.outline"), {"low": low, "high": low + OUTLINE - 1})
        return {"turns": turns, "low": low, "step": OUTLINE, "n_turns": n_turns, "session_id": self.session_id}


def session_page(snapshot: Snapshot, query: Query, session_id: str) -> Page:
    """A session of the store; `at` names the event to begin from, `only` the kinds of entries that are shown."""
    reader = Reader(snapshot, query, session_id)
    facts = reader.facts
    whole = _declared(reader.rows(sql("session.signals")))
    prompts = reader.rows(sql("session.first_prompt"))
    title = facts["title"] or (prompts[0]["text"] if prompts else "") or f"Session {reader.session_id}"
    counts = reader.conversation.counts
    along_choices = choices(snapshot, reader.session_id)
    chosen = next((signal for signal in along_choices if signal.path == query.text("signal")), None)
    families = []  # those with a value, and those without
    for family, of_it in groupby(whole, key=lambda row: row["signal"].partition(".")[0]):
        listed = list(of_it)
        families.append((family, [r for r in listed if r["absent"] is None], [r for r in listed if r["absent"]]))
    filled = reader.filled() | {
        "facts": facts,
        "kinds": [(kind, KINDS[kind][0], counts[kind]) for kind in KINDS],
        "only": reader.only,
        "trouble": [(kind, counts[kind]) for kind in (*TROUBLE, "edits")],
        "thread": reader.thread,
        "thread_name": name_of(reader.thread) if reader.thread else "",
        "turns": reader.outline(),
        "along": reader.conversation.along,
        "along_choices": along_choices,
        "by_turn": by_turn(snapshot, reader.session_id, chosen, facts["n_events"] or 0) if chosen else None,
        "unusual": unusual(snapshot, facts["context"], whole),
        "families": families,
        "n_measured": len(whole),
        "n_absent": sum(row["absent"] is not None for row in whole),
        "children": snapshot.rows(sql("session.children"), {"session": reader.session_id}),
    }
    return Page("session.html.j2", words.cut(title, 140), filled)


def part(snapshot: Snapshot, query: Query, session_id: str) -> Page:
    """One part of the entries, for the script that puts it into the page."""
    return Page("session_part.html.j2", "", Reader(snapshot, query, session_id).filled())


def outline(snapshot: Snapshot, query: Query, session_id: str) -> Page:
    return Page("session_outline.html.j2", "", {"turns": Reader(snapshot, query, session_id).outline()})


def marks(snapshot: Snapshot, query: Query, session_id: str) -> Reply:
    """The events to jump to, by kind."""
    of = conversation(snapshot, _whole(snapshot, session_id))
    by_kind = {kind: of.marks(kind) for kind in ("prompts", "edits", *TROUBLE)}
    return Reply(msgspec.json.encode(by_kind), "application/json")


def _whole(snapshot: Snapshot, session_id: str) -> str:
    """The id of a session. UnknownSession when there is none; StoreError when it can't be read."""
    store = snapshot.store
    full = store.resolve(session_id)
    if store.manifest.sessions[full].shard not in store.readable_shards():
        store.session(full)  # says what is wrong with it
    return full


def _declared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Values of signals that there still are, each with what it means and how sure it is: empty for what is recorded,
    the precision of its labeller's class, or `~`. A class that is wrong as often as right is left out, and so are
    labels in a list: they stand at their turns."""
    signals: dict[str, Signal] = {signal.path: signal for signal in catalogue().values()}
    shown = []
    for row in rows:
        if (one := signals.get(row["signal"])) is None or one.unit == "labels by labeller":
            continue
        sure = "" if one.basis == "record" or row["absent"] else "~"
        if sure and one.path in TASK_BY_SIGNAL:
            labeller, value = row.get("labeller") or RULES, str(msgspec.json.decode(row["value"]))
            of = trust(TASK_BY_SIGNAL[one.path], labeller, value)
            if of.precision is not None:
                if not of.is_shown:
                    continue
                sure = f"{of.precision:.0%}"
        shown.append(row | {"one": one, "sure": sure})
    return shown


# One value with what it rests on: the signal's own function, asked again.

ROLES = {
    "support": "counted in the value",
    "denominator": "denominator of the share",
    "counter": "evidence against, or excluded",
    "input": "input from another signal",
}
"""Roles of a piece of evidence (`evidence.Evidence`), in words."""


class Line(Struct, kw_only=True):
    """A piece of evidence as it is read."""

    item: Item
    event: dict[str, Any] | None
    """The event, with time and actor; None where no event is named."""
    thread: str
    signal: str
    """The signal whose value went in; empty where it is an event."""


def explanation_page(snapshot: Snapshot, query: Query, session_id: str, path: str) -> Page:
    """Why a session has this value of a signal, or this total of tokens or money, or none."""
    from agentsignals.ingest.measure import explain_session  # noqa: PLC0415  (0.2 s, which no other page needs)

    explanation = explain_session(snapshot.store, snapshot.session(session_id), path)
    about = snapshot.rows(sql("explanation.title"), {"session": explanation.session})[0]
    seqs = sorted({item.seq for item in explanation.evidence if item.seq is not None})
    rows = snapshot.rows(sql("explanation.events"), {"session": explanation.session, "seqs": seqs}) if seqs else []
    events = {row["seq"]: row for row in rows}
    paths = {signal.path for signal in catalogue().values()}
    lines = []
    for item in explanation.evidence:
        event = events.get(item.seq) if item.seq is not None else None
        thread = name_of(event["thread"]) if event else ""
        signal = item.excerpt.split(" ", 1)[0] if item.role == "input" else ""
        lines.append(Line(item=item, event=event, thread=thread, signal=signal if signal in paths else ""))
    roles = [role for role in ROLES if any(line.item.role == role for line in lines)]
    # Only a number has a rank among those of the store.
    context = about["context"]
    value = explanation.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # The sessions with a value, and with this one; not of numbers and of what is no single word.
    same = None
    if isinstance(value, bool | str):
        asked = {"signal": explanation.signal, "value": msgspec.json.encode(value).decode()}
        seen = context if snapshot.contexts - {context} else ""
        same = snapshot.rows(sql("explanation.same_value"), asked, seen)[0]
    # What the signal was validated with: a row of figures for each truth, the largest first.
    measured = [figure for figure in figures() if figure.signal == explanation.signal]
    truths = [list(of_it) for _, of_it in groupby(measured, key=lambda figure: figure.truth)]
    filled = {
        "found": explanation,
        "about": about,
        "roles": [(role, ROLES[role], [line for line in lines if line.item.role == role]) for role in roles],
        "shown": Counter(line.item.role for line in lines),
        "sum": total_line(explanation.bill),
        "in_digits": exact_digits,
        "place": (place(snapshot, context, explanation.signal, value) if is_number else None),
        "same": same,
        "truths": [(of_truth[0], of_truth) for of_truth in sorted(truths, key=lambda of_truth: -of_truth[0].n)],
        "is_flat": all(not isinstance(value, dict | list) for value in explanation.detail.values()),
    }
    return Page("explanation.html.j2", f"{explanation.signal} of {explanation.session}", filled)


# The line of the file behind an event, and the pictures it holds.


def raw_page(snapshot: Snapshot, query: Query, session_id: str, seq: str) -> Page:
    """Show the line of the file that an event was read from."""
    full = snapshot.store.resolve(session_id)
    return Page(
        "session_raw.html.j2",
        f"Event {seq}",
        {"raw": _raw(snapshot, full, seq), "session_id": full, "seq": seq, "coloured": coloured},
    )


def pictures(snapshot: Snapshot, query: Query, session_id: str, seq: str) -> Page:
    """The pictures of an event, for the script that puts them into the page."""
    return Page("session_pictures.html.j2", "", {"raw": _raw(snapshot, snapshot.store.resolve(session_id), seq)})


def _raw(snapshot: Snapshot, session_id: str, seq: str) -> RawLine:
    if not (seq.isascii() and seq.isdigit() and len(seq) <= 12):
        raise NotFound(f"{seq[:80]!r} is not an event number.")
    return raw_line(snapshot, session_id, int(seq))


def share(snapshot: Snapshot, query: Query, session_id: str) -> Reply:
    """The session as one masked file, as `agentsignals share` writes it."""
    session = snapshot.store.session(snapshot.store.resolve(session_id))
    drawn = RandomValues(record_ids(snapshot.store, [session.session_id]))
    redactor = Redactor(pseudonym_key(), known=known_secrets(snapshot.store), random=drawn)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.html"
        sharing.write(session, path, redactor)
        content = path.read_bytes()
    return Reply(content, "text/html", {"Content-Disposition": 'attachment; filename="session.html"'})


PAGES = (
    Route(("session", "*", "share"), share, below="/sessions"),
    Route(("session", "*"), session_page, below="/sessions"),
    Route(("session", "*", "part"), part, below="/sessions"),
    Route(("session", "*", "turns"), outline, below="/sessions"),
    Route(("session", "*", "marks"), marks, below="/sessions"),
    Route(("session", "*", "explain", "*"), explanation_page, below="/sessions"),
    Route(("session", "*", "raw", "*"), raw_page, below="/sessions"),
    Route(("session", "*", "image", "*"), pictures, below="/sessions"),
)
