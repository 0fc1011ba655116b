"""In which order a session is read: its entries by kind, in parts. Texts are left in the store until a part is shown.

A session of 100,000 events is a few numbers an event here; what is shown of it is asked for a part at a time.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Container, Sequence
from functools import cached_property
from heapq import merge
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agentsignals.model import ABANDONED, MAIN, REPLAYED, decode_roles
from agentsignals.questions.question import Kind, formatted
from agentsignals.signals import Signal
from agentsignals.signals.catalog import catalogue
from agentsignals.ui import page as words
from agentsignals.ui.markup import Change, changes, coloured, file_text, rendered, texts_of
from agentsignals.ui.page import sql
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.calls import call_summary

if TYPE_CHECKING:
    from markupsafe import Markup


PART = 60
"""Entries of one part: two screens or three."""
MOST_OPENED = 400
"""A subagent of more entries is shown by itself, not opened where it began."""
_MOST_KEPT = 16
"""Conversations whose order is kept: a megabyte each, where they have 100,000 events."""

KINDS: dict[str, tuple[str, str]] = {
    "prompts": ("prompts", "e.kind = 'human_turn'"),
    "replies": ("replies", "e.kind = 'text'"),
    "thinking": ("thinking", "e.kind = 'thinking'"),
    "edits": ("edits", "d.seq IS NOT NULL OR c.class = 'edit'"),
    "reads": ("files read", "c.class = 'read'"),
    "searches": ("searches", "c.class IN ('search', 'web')"),
    "commands": ("commands", "c.class = 'shell'"),
    "tests": ("tests", "c.class = 'test'"),
    "subagents": ("subagents", "c.class = 'task'"),
    "calls": ("other calls", "c.class IN ('plan', 'ask', 'mcp', 'other')"),
    "failures": ("failures", "c.status = 'error' OR e.kind = 'api_error'"),
    "refusals": ("refusals", "c.outcome = 'refused' OR c.status = 'rejected' OR e.kind = 'hook_block'"),
    "interruptions": ("interruptions", "e.kind = 'interrupt' OR c.status = 'cancelled'"),
    "compactions": ("compactions", "e.kind = 'compaction'"),
    "notes": (
        "notes",
        "e.kind IN ('model_change', 'settings_change', 'resume', 'command_output', 'notification', 'user_shell',"
        " 'external_edit', 'phase', 'meta', 'harness', 'unknown', 'tool_result')",
    ),
}
"""Kinds of an entry by their word in an address: name and SQL condition. An entry may be of several."""
TROUBLE = ("failures", "refusals", "interruptions", "compactions")
"""Kinds a reader jumps to."""
_BITS = {name: 1 << n for n, name in enumerate(KINDS)}
_MASK = " + ".join(f"CASE WHEN {when} THEN {_BITS[name]} ELSE 0 END" for name, (_, when) in KINDS.items())


class Thread(Struct):
    """The entries of the agent or of one subagent: their events, and what they are, as bits."""

    seqs: array[int]
    masks: array[int]

    def count(self, *kinds: str) -> int:
        """Count the entries that are of one of these kinds."""
        bits = sum(_BITS[kind] for kind in kinds)
        return sum(1 for mask in self.masks if mask & bits)


class View(Struct):
    """The entries that are shown, in order, by their event. A subagent that is folded stands as its first."""

    seqs: array[int]
    folded: dict[int, str]
    """The thread that an entry stands for."""

    @property
    def last(self) -> int:
        return max((len(self.seqs) - 1) // PART, 0)

    def part(self, number: int) -> array[int]:
        return self.seqs[number * PART : (number + 1) * PART]

    def part_of(self, seq: int) -> int:
        """The part in which this entry stands, or the next that is shown."""
        return min(bisect_left(self.seqs, seq) // PART, self.last)


class Conversation:
    """The order of a session's entries."""

    along: Along | None
    """The session along its events."""

    def __init__(self, threads: dict[str, Thread], along: Along | None) -> None:
        self.threads = threads
        self.along = along
        self._thread_of = {seq: name for name, thread in threads.items() if name != MAIN for seq in thread.seqs}

    def thread_of(self, seq: int) -> str:
        return self._thread_of.get(seq, MAIN)

    def view(self, only: Collection[str] = (), thread: str = "", among: Container[int] | None = None) -> View:
        """All entries, subagents folded; those of some kinds or among some, wherever they are; those of one thread."""
        shown = {thread: self.threads[thread]} if thread in self.threads else self.threads
        if only or among is not None:
            bits = sum(_BITS[kind] for kind in only or KINDS)
            chosen = ([seq for seq, mask in zip(t.seqs, t.masks, strict=True) if mask & bits] for t in shown.values())
            seqs = merge(*chosen)
            return View(array("q", seqs if among is None else (seq for seq in seqs if seq in among)), {})
        return View(next(iter(shown.values())).seqs, {}) if thread else self._whole

    @cached_property
    def _whole(self) -> View:
        main = self.threads.get(MAIN)
        folded = {t.seqs[0]: name for name, t in self.threads.items() if name != MAIN}
        return View(array("q", merge(main.seqs if main else (), sorted(folded))), folded)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Entries of each kind, in the order of the kinds."""
        together = Counter(mask for thread in self.threads.values() for mask in thread.masks)
        return {kind: sum(n for mask, n in together.items() if mask & bit) for kind, bit in _BITS.items()}

    def marks(self, kind: str, thread: str = "") -> list[int]:
        """The events of a kind, in order."""
        return self.view((kind,), thread).seqs.tolist()


def conversation(snapshot: Snapshot, session_id: str) -> Conversation:
    """The order of a session of the store, kept while it is among the last that were asked for."""
    lately, lock = snapshot.kept(("conversations",), lambda: (OrderedDict[str, Conversation](), Lock()))
    with lock:
        if session_id in lately:
            lately.move_to_end(session_id)
            return lately[session_id]
    rows = snapshot.rows_of(session_id, sql("transcript.entries", mask=_MASK))
    threads = {row["thread"]: Thread(array("q", row["seqs"]), array("q", row["masks"])) for row in rows}
    made = Conversation(threads, along(snapshot, session_id))
    with lock:
        lately[session_id] = made
        while len(lately) > _MOST_KEPT:
            lately.popitem(last=False)
    return made


def holding(snapshot: Snapshot, session_id: str, words: str) -> set[int]:
    """The entries whose text, arguments or result hold these words, in whatever case."""
    return {row["seq"] for row in snapshot.rows_of(session_id, sql("transcript.containing"), {"words": words})}


def home(snapshot: Snapshot, session_id: str, seq: int) -> int:
    """The entry under which an event is shown: a result's is its call."""
    rows = snapshot.rows_of(session_id, sql("transcript.call_of_result"), {"seq": seq})
    return rows[0]["seq"] if rows else seq


# A session's events as a reader follows them: turns, calls with their results and changes, subagents folded.

BRIEF_CHARS = 1_600
"""A text up to this length is shown at once; of a longer one the beginning, the rest when asked for."""
MOST_CHARS = 20_000
"""No more of one text is sent; the artifact has it all."""
MOST_COLOURED_CHARS = 120_000
"""Characters of all changes of a part that are coloured: a lexer takes three milliseconds for a thousand."""
LINE_CHARS = 160
"""Characters of the summary of a call."""
FAILED_CHARS = 700
"""Characters of a failed result that are shown at once."""
_ASIDE = frozenset(("thinking", "meta", "harness", "notification", "command_output", "hook_block", "unknown"))
_PROSE = frozenset(("human_turn", "text", "thinking", "compaction"))
_THREADS = {ABANDONED: "a branch that was given up", REPLAYED: "a history copied from another session"}
IMAGE = re.compile(r"\[Image\b|<image\b", re.IGNORECASE)
IMAGE_FILE = re.compile(r"\.(?:png|jpe?g|gif|webp)$", re.IGNORECASE)
_MARKS = re.compile(r"[*`#]+")
"""Marks of Markdown, left out of a beginning that is shown as it was written."""
_STATES = {"completed": "✓", "in_progress": "▸", "cancelled": "✗"}
"""Marks of the states of a to-do item."""
_DIFF = re.compile(r"(?:diff --git |--- |commit [0-9a-f]{7,40}\n)")


class Edited(Struct, kw_only=True):
    """The change of one file by a call, in numbers."""

    path: str
    op: str
    line: int | None
    added: int | None
    removed: int | None


class Shown(Struct, kw_only=True):
    html: Markup | str
    brief: str = ""
    """Its beginning, as it was written."""
    is_long: bool = False
    """True where only its beginning is seen until somebody asks for all."""
    n_chars: int = 0
    cut_chars: int = 0
    """Characters that were left out."""
    is_code: bool = False


class Entry(Struct, kw_only=True):
    """One event as it is shown."""

    seq: int
    kind: str
    clock: str
    line: int
    text: Shown
    thread: str
    """The actor, where it was not the agent itself and stands among its entries."""
    turn: dict[str, Any] | None = None
    call: dict[str, Any] | None = None
    about: str = ""
    """A call's summary: its command, path or arguments."""
    whole: Markup | str = ""
    """Its command or arguments, where the line does not hold them all."""
    plan: Markup | str = ""
    """The plan or the list of things to do that a call writes."""
    result: Entry | None = None
    edits: list[Edited] = []
    changes: list[Change] = []
    folds: Folded | None = None
    """The subagent that stands here, folded."""
    pictures: int | None = None
    """The event whose line may hold pictures."""
    aside: bool = False
    here: bool = False
    """True where the reader was sent to it."""

    @property
    def failed(self) -> bool:
        return self.call is not None and self.call["status"] not in ("ok", "none", "unknown")


class Folded(Struct, kw_only=True):
    """A subagent's work, which stands where it began."""

    thread: str
    name: str
    n_entries: int
    n_calls: int
    n_failed: int
    entries: list[Entry]
    """Empty unless it is open."""
    open: bool


def name_of(thread: str) -> str:
    """Name the actor of a thread; empty for the agent itself."""
    return "" if thread == MAIN else _THREADS.get(thread, f"subagent {thread}")


class EntryBuilder:
    """Makes the entries of one session. `cwd` is left out of paths; `at`: the event that the reader was sent to."""

    def __init__(self, snapshot: Snapshot, session_id: str, cwd: str | None, at: int = -1) -> None:
        self._reading = snapshot
        self._session = session_id
        self._cwd = f"{cwd.rstrip('/')}/" if cwd else ""
        self._at = at
        self._coloured_chars = 0

    def entries(
        self, seqs: Sequence[int], conversation: Conversation, folded: dict[int, str] | None = None, at: int = -1
    ) -> list[Entry]:
        """The entries of these events. `folded`: the threads that some of them stand for; `at`: the entry in which the
        reader's event is."""
        if not seqs:
            return []
        calls = {row["seq"]: row for row in self._rows(sql("transcript.calls"), seqs)}
        results = [row["result_seq"] for row in calls.values() if row["result_seq"] is not None]
        events = {row["seq"]: row for row in self._rows(sql("transcript.events"), [*seqs, *results], most=MOST_CHARS)}
        turns = {row["seq"]: row for row in self._rows(sql("transcript.turns"), seqs)}
        edits: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._rows(sql("transcript.edits"), seqs):
            edits[row["seq"]].append(row)
        made: list[Entry] = []
        for seq in seqs:
            if seq not in events:
                continue
            thread = (folded or {}).get(seq, "")
            entry = self._event(events[seq])
            if thread:
                rows = conversation.threads[thread]
                is_open = conversation.thread_of(at) == thread
                entry.folds = Folded(
                    thread=thread,
                    name=name_of(thread),
                    n_entries=len(rows.seqs),
                    n_calls=rows.count("edits", "reads", "searches", "commands", "tests", "subagents", "calls"),
                    n_failed=rows.count("failures"),
                    entries=self.entries(rows.seqs.tolist(), conversation) if is_open else [],
                    open=is_open,
                )
                made.append(entry)
                continue
            entry.turn = turns.get(seq)
            is_attached = entry.turn is not None and entry.turn["kind"] == "attachment"
            if is_attached or IMAGE.search(events[seq]["text"] or ""):
                entry.pictures = seq
            if seq in calls:
                self._add_call(entry, calls[seq], events, edits.get(seq, []))
            made.append(entry)
        return made

    def _rows(self, query: str, seqs: Sequence[int], **values: Any) -> list[dict[str, Any]]:
        bounds = {} if query == sql("transcript.turns") else {"low": min(seqs), "high": max(seqs)}
        return self._reading.rows_of(self._session, query, {"seqs": list(seqs), **bounds, **values})

    def _event(self, row: dict[str, Any]) -> Entry:
        text, n_chars = row["text"] or "", row["n_chars"] or 0
        html = rendered(text) if row["kind"] in _PROSE else text
        moment = row["timestamp"]
        return Entry(
            seq=row["seq"],
            kind=row["kind"],
            clock=f"{moment:%H:%M:%S}" if moment else "",
            line=row["line"],
            text=Shown(
                html=html,
                brief=_MARKS.sub("", text[:200]) if row["kind"] in _PROSE else text[:200],
                is_long=len(text) > BRIEF_CHARS,
                n_chars=n_chars,
                cut_chars=n_chars - len(text),
            ),
            thread=name_of(row["thread"]),
            aside=row["kind"] in _ASIDE,
            here=row["seq"] == self._at,
        )

    def _add_call(
        self, entry: Entry, call: dict[str, Any], events: dict[int, dict[str, Any]], edits: list[dict[str, Any]]
    ) -> None:
        """Add to a transcript's entry what is shown of its call: summary, changes, result, pictures."""
        entry.call = call
        entry.about = self._near(call_summary(call["class"], call["path"], call["command"], call["arguments"]))
        entry.whole = _whole(call, entry.about)
        entry.plan = rendered(_plan(call))
        self._coloured_chars += len(call["arguments"])
        in_colours = self._coloured_chars <= MOST_COLOURED_CHARS
        entry.changes = changes(texts_of(call, edits), edits, in_colours)
        for change in entry.changes:
            change.path = self._near(change.path)
        for path in dict.fromkeys(row["path"] for row in edits):
            rows = [edit for edit in edits if edit["path"] == path]
            added, removed = ([row[name] for row in rows if row[name] is not None] for name in ("added", "removed"))
            counts = {"added": sum(added) if added else None, "removed": sum(removed) if removed else None}
            op, line = rows[0]["op"], rows[0]["start_line"]
            entry.edits.append(Edited(path=self._near(path), op=op, line=line, **counts))
        result = events.get(call["result_seq"])
        if result is not None:
            entry.result = self._event(result)
            # Return a call's result, in the colours of the file that was read.
            failed = entry.failed
            text, n_chars = result["text"] or "", result["n_chars"] or 0
            brief = text[:FAILED_CHARS] if failed else text[:110]
            shown = Shown(html=text, brief=brief, n_chars=n_chars, cut_chars=n_chars - len(text), is_code=True)
            if call["class"] in ("task", "web") and not failed:
                shown.html, shown.is_code = rendered(text), False
            elif _DIFF.match(text):
                shown.html = coloured(text, "diff")
            elif call["class"] == "read" and call["path"] and not failed:
                shown.html = file_text(text, call["path"])
            entry.result.text = shown
            if IMAGE_FILE.search(call["path"] or "") or (call["class"] in ("mcp", "other") and not result["n_chars"]):
                entry.pictures = result["seq"]

    def _near(self, text: str) -> str:
        """Without the folder that the session worked in."""
        return text.replace(self._cwd, "") if self._cwd else text


def _whole(call: dict[str, Any], line: str) -> Markup | str:
    """The command of a call or its arguments, where one line has no place for them."""
    if call["command"] and call["class"] != "search":
        return coloured(call["command"], "bash") if len(line) > LINE_CHARS or "\n" in line else ""
    is_all = call["class"] in ("read", "search") or ("[" not in call["arguments"] and call["arguments"].count("{") < 2)
    return "" if is_all and len(line) <= LINE_CHARS else call["arguments"][:MOST_CHARS]


def _plan(call: dict[str, Any]) -> str:
    """The plan that a call writes, or its things to do with their state, as Markdown; empty where it writes none."""
    roles = decode_roles(call["argument_roles"])
    try:
        passed = msgspec.json.decode(call["arguments"]) if roles.plan or roles.steps else None
    except (msgspec.DecodeError, RecursionError):
        return ""
    if not isinstance(passed, dict):
        return ""
    plans = [text for name in roles.plan if isinstance(text := passed.get(name), str)]
    items = next((held for name in roles.steps if isinstance(held := passed.get(name), list)), [])
    steps = [
        f"- {_STATES.get(str(item.get(roles.state)), '○')} {next((str(item[n]) for n in roles.step if n in item), '')}"
        for item in items
        if isinstance(item, dict)
    ]
    return "\n\n".join([*plans[:1], "\n".join(steps)])[:MOST_CHARS].strip()


# A session along its events: how full the context was, what it had cost, where it failed and where turns began.

WIDTH, HEIGHT = 720, 96
"""The picture's own units: as wide as the column it stands in, and stretched with it."""
BINS = 240
"""Points of a line, at most: of more model calls each stands for several, by its largest."""
_MOST_MARKS = 240
_MOST_TURNS = 60
"""Lines of more turns would cover what they are to divide."""


class Curve(Struct, kw_only=True):
    """A line over the session's events, from 0 to its largest value."""

    name: str
    points: str
    """As SVG has them."""
    most: str
    n: int
    """Model calls of which the value is there."""


class Mark(Struct):
    """A failure or the beginning of a turn: `x` in the picture's units, and the event to go to."""

    x: float
    seq: int
    n: int
    """Several that stand at the same place."""
    share: float
    """Share of the most marks at one position."""


class Along(Struct, kw_only=True):
    """The picture of a session along its events."""

    curves: list[Curve]
    failures: list[Mark]
    turns: list[Mark]
    n_events: int
    n_calls: int
    width: int = WIDTH
    height: int = HEIGHT


def along(snapshot: Snapshot, session_id: str) -> Along | None:
    """The picture of a session; None where there is nothing to draw."""
    n_events = snapshot.rows_of(session_id, sql("trajectory.length"))[0]["n"] or 0
    counted = snapshot.rows_of(session_id, sql("trajectory.counts"))[0]
    rows = snapshot.rows_of(session_id, sql("trajectory.steps"), {"bins": BINS})
    of_context = [(x_of(row["seq"], n_events), row["context"]) for row in rows if row["context"] is not None]
    of_cost = [(x_of(row["seq"], n_events), row["cost"]) for row in rows if row["cost"] is not None]
    curves = [
        _curve("context size", of_context, "tokens", counted["with_context"]),
        _curve("cost so far", of_cost, "usd", counted["with_cost"]),
    ]
    turns = _marks(snapshot, session_id, n_events, "turns", "")
    drawn = Along(
        curves=[curve for curve in curves if curve is not None],
        failures=_marks(snapshot, session_id, n_events, "tool_calls", "AND status = 'error'"),
        turns=turns if len(turns) <= _MOST_TURNS else [],
        n_events=n_events,
        n_calls=counted["n"],
    )
    return drawn if drawn.curves or drawn.failures else None


def _curve(name: str, values: list[tuple[float, float]], unit: Kind, n: int) -> Curve | None:
    most = max((value for _, value in values), default=0)
    if len(values) < 2 or not most:
        return None
    points = " ".join(f"{x},{HEIGHT * (1 - value / most):.1f}" for x, value in values)
    return Curve(name=name, points=points, most=formatted(most, unit), n=n)


def _marks(snapshot: Snapshot, session_id: str, n_events: int, table: str, when: str) -> list[Mark]:
    query = sql("trajectory.marks", table=table, when=when)
    rows = snapshot.rows_of(session_id, query, {"bins": _MOST_MARKS, "n": n_events})
    most = max((row["n"] for row in rows), default=1)
    return [Mark(x_of(row["seq"], n_events), row["seq"], row["n"], row["n"] / most) for row in rows]


def x_of(seq: int, n_events: int) -> float:
    return round(WIDTH * seq / max(n_events - 1, 1), 1)


# One signal along a session: its values by turn, each where its turn began.

MOST_BARS = 240
"""Bars of a line; of more turns each stands for several, by its largest."""
MOST_LINES = 6
"""Words that have a line of their own."""
MOST_ROWS = 500
"""Turns that the table lists."""


class Line(Struct, kw_only=True):
    """Bars along the session: how large a number is, or the turns of which one word is the value."""

    name: str
    note: str
    marks: list[Mark]
    height: int


class ByTurn(Struct, kw_only=True):
    """A signal's values along a session."""

    signal: Signal
    lines: list[Line]
    rows: list[dict[str, Any]]
    """The first `MOST_ROWS` turns with a value: `turn`, `seq`, `value` in words."""
    n: int
    n_words: int
    """Different words; more than `MOST_LINES` of them are in the table alone."""
    width: int = WIDTH


def choices(snapshot: Snapshot, session_id: str) -> list[Signal]:
    """The signals that have a value in more than one turn of the session."""
    of_path = {signal.path: signal for signal in catalogue().values()}
    rows = snapshot.rows_of(session_id, sql("trajectory.signals"))
    return [of_path[row["signal"]] for row in rows if row["signal"] in of_path]


def by_turn(snapshot: Snapshot, session_id: str, signal: Signal, n_events: int) -> ByTurn:
    """The values of a signal along a session of so many events."""
    rows = snapshot.rows_of(session_id, sql("trajectory.values_by_turn"), {"signal": signal.path})
    for row in rows:
        row["value"] = words.worth(row["value"], row["number"], signal.type, signal.unit, bool(row["at_least"]))
    counted = Counter(row["value"] for row in rows)
    lines = []
    if signal.type in ("int", "float"):
        numbers = [(row["seq"], row["number"]) for row in rows if row["number"] is not None]
        largest = max(rows, key=lambda row: row["number"] or 0)
        note = f"up to {largest['value']}, {words.times(len(numbers), 'turn')}"
        lines = [Line(name="", note=note, marks=_marks_by_turn(numbers, n_events), height=HEIGHT)]
    else:
        for value, n in counted.most_common(MOST_LINES):
            marks = _marks_by_turn([(row["seq"], 1.0) for row in rows if row["value"] == value], n_events)
            lines.append(Line(name=value, note=words.times(n, "turn"), marks=marks, height=20))
    return ByTurn(signal=signal, lines=lines, rows=rows[:MOST_ROWS], n=len(rows), n_words=len(counted))


def _marks_by_turn(values: list[tuple[int, float]], n_events: int) -> list[Mark]:
    """Return marks of values; of turns at one position the largest, which is linked."""
    most = max((value for _, value in values), default=0) or 1
    bins: dict[int, list[tuple[float, int]]] = {}
    for seq, value in values:
        bins.setdefault(seq * MOST_BARS // max(n_events, 1), []).append((value, -seq))
    tops = [(max(of_bin), len(of_bin)) for of_bin in bins.values()]
    return [Mark(x_of(-seq, n_events), -seq, n, max(value, 0) / most) for (value, seq), n in tops]


# Which values of a session lie farthest from those of all other sessions.

MOST = 5
LEAST_SESSIONS = 20
"""Among fewer no value is called far."""
FAR = 0.1
"""Share of sessions that lie as far out on that side, up to which a value is shown."""


class Place(Struct, frozen=True):
    """The rank of a value among those of all sessions that have one, itself included."""

    n: int
    below: int
    ties: int
    """Sessions with the same value, this one among them."""
    median: float
    at_least: bool
    """True where some values, and so the median, are lower bounds."""

    @property
    def share(self) -> float:
        """Share of the sessions at this value or beyond, on the nearer side."""
        return min(self.below + self.ties, self.n - self.below) / self.n

    @property
    def is_high(self) -> bool:
        return self.n - self.below < self.below + self.ties

    @property
    def percentile(self) -> float:
        """Per cent of the sessions that lie below it, half of those with the same value among them."""
        return 100 * (self.below + self.ties / 2) / self.n


class Unusual(Struct):
    """The values farthest out, and among how many they were looked for."""

    rows: list[tuple[dict[str, Any], Place]]
    n_compared: int
    """Signals with a number here and in enough sessions."""
    n_far: int
    """Signals of which at most `FAR` of the sessions lie as far out."""


def place(snapshot: Snapshot, context: str, signal: str, number: float | None) -> Place | None:
    """Return the rank of a number among a signal's numbers; None where there is no number, or too few."""
    seen = context if snapshot.contexts - {context} else ""

    def asked() -> dict[str, tuple[array[float], bool]]:  # of each signal in order, and whether some are lower bounds
        rows = snapshot.rows(sql("signals.numbers"), None, seen)
        return {row["signal"]: (array("d", row["numbers"]), row["at_least"]) for row in rows}

    numbers, at_least = snapshot.kept(("numbers", seen), asked).get(signal, (array("d"), False))
    if number is None or len(numbers) < LEAST_SESSIONS:
        return None
    below = bisect_left(numbers, number)
    return Place(len(numbers), below, bisect_right(numbers, number) - below, numbers[len(numbers) // 2], at_least)


def unusual(snapshot: Snapshot, context: str, values: list[dict[str, Any]]) -> Unusual:
    """The few values of a session that lie farthest from its context's other sessions, the farthest of each
    family first."""
    placed = [(row, at) for row in values if (at := place(snapshot, context, row["signal"], row["number"])) is not None]
    far = sorted((pair for pair in placed if pair[1].share <= FAR), key=lambda pair: (pair[1].share, pair[0]["signal"]))
    of_family: Counter[str] = Counter()
    rounds: list[int] = []  # a long session is long in all its counts: each family comes once before any comes again
    for row, _ in far:
        family = row["signal"].partition(".")[0]
        rounds.append(of_family[family])
        of_family[family] += 1
    shown = [far[n] for n in sorted(range(len(far)), key=lambda n: (rounds[n], n))[:MOST]]
    return Unusual(shown, len(placed), len(far))
