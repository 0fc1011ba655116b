"""In which order a session is read: its entries by kind, in parts. Texts are left in the store until a part is shown.

A session of 100,000 events is a few numbers an event here; what is shown of it is asked for a part at a time.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Container, Sequence
from functools import cached_property
from heapq import merge
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agentsignals.model import ABANDONED, MAIN, REPLAYED, decode_roles
from agentsignals.ui.markup import Change, changes, coloured, file_text, rendered, texts_of
from agentsignals.ui.page import sql
from agentsignals.ui.snapshot import Snapshot
from agentsignals.ui.trajectory import Along, along
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
        """The last part, from 0."""
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
    """A text as it is shown."""

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
