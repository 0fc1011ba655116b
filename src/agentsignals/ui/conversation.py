"""In which order a session is read: its entries by kind, in parts. Texts are left in the store until a part is shown.

A session of 100,000 events is a few numbers an event here; what is shown of it is asked for a part at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Collection, Container
from functools import cached_property
from heapq import merge
from threading import Lock

from msgspec import Struct

from agentsignals.model import MAIN
from agentsignals.ui.along import Along, along
from agentsignals.ui.reading import Reading

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
        "e.kind IN ('model_change', 'command_output', 'notification', 'user_shell', 'external_edit', 'phase', 'meta',"
        " 'harness', 'unknown', 'tool_result')",
    ),
}
"""What an entry may be, by its word in an address: how it is called, and when it is one. It may be several."""
TROUBLE = ("failures", "refusals", "interruptions", "compactions")
"""What a reader jumps to."""
_BITS = {name: 1 << n for n, name in enumerate(KINDS)}
_MASK = " + ".join(f"CASE WHEN {when} THEN {_BITS[name]} ELSE 0 END" for name, (_, when) in KINDS.items())
_ENTRIES = f"""
SELECT thread, list(seq ORDER BY seq) AS seqs, list(mask ORDER BY seq) AS masks
FROM (
  SELECT e.seq, e.thread, {_MASK} AS mask
  FROM (SELECT seq, thread, kind FROM events WHERE session_id = $session) e
  LEFT JOIN (SELECT seq, class, status, outcome FROM tool_calls WHERE session_id = $session) c USING (seq)
  LEFT JOIN (SELECT DISTINCT seq FROM edits WHERE session_id = $session) d USING (seq)
  ANTI JOIN (SELECT result_seq FROM tool_calls WHERE session_id = $session AND result_seq IS NOT NULL) r
    ON e.seq = r.result_seq
) GROUP BY thread ORDER BY min(seq)
"""  # noqa: S608  (conditions of ours)
_HOLDING = """
SELECT coalesce(c.seq, e.seq) AS seq FROM (
  SELECT seq FROM events WHERE session_id = $session AND contains(lower(text), lower($words))
) e LEFT JOIN (
  SELECT seq, result_seq FROM tool_calls WHERE session_id = $session AND result_seq IS NOT NULL
) c ON c.result_seq = e.seq
UNION SELECT seq FROM tool_calls WHERE session_id = $session AND contains(lower(arguments), lower($words))
"""
_HOME = "SELECT seq FROM tool_calls WHERE session_id = $session AND result_seq = $seq"


class Thread(Struct):
    """The entries of the agent or of one subagent: their events, and what they are, as bits."""

    seqs: array[int]
    masks: array[int]

    def count(self, *kinds: str) -> int:
        """How many entries are of one of these kinds."""
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
        """How many entries of each kind there are, in the order of the kinds."""
        together = Counter(mask for thread in self.threads.values() for mask in thread.masks)
        return {kind: sum(n for mask, n in together.items() if mask & bit) for kind, bit in _BITS.items()}

    def marks(self, kind: str, thread: str = "") -> list[int]:
        """The events of a kind, in order."""
        return self.view((kind,), thread).seqs.tolist()


def conversation(reading: Reading, session_id: str) -> Conversation:
    """The order of a session of the store, kept while it is among the last that were asked for."""
    lately, lock = reading.kept(("conversations",), lambda: (OrderedDict[str, Conversation](), Lock()))
    with lock:
        if session_id in lately:
            lately.move_to_end(session_id)
            return lately[session_id]
    rows = reading.rows_of(session_id, _ENTRIES)
    threads = {row["thread"]: Thread(array("q", row["seqs"]), array("q", row["masks"])) for row in rows}
    made = Conversation(threads, along(reading, session_id))
    with lock:
        lately[session_id] = made
        while len(lately) > _MOST_KEPT:
            lately.popitem(last=False)
    return made


def holding(reading: Reading, session_id: str, words: str) -> set[int]:
    """The entries whose text, arguments or result hold these words, in whatever case."""
    return {row["seq"] for row in reading.rows_of(session_id, _HOLDING, {"words": words})}


def home(reading: Reading, session_id: str, seq: int) -> int:
    """The entry under which an event is shown: a result's is its call."""
    rows = reading.rows_of(session_id, _HOME, {"seq": seq})
    return rows[0]["seq"] if rows else seq
