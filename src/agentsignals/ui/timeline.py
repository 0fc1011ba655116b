"""A session's events as a reader follows them: turns, calls with their results and changes, subagents folded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agentsignals.model import ABANDONED, MAIN, REPLAYED
from agentsignals.model.roles import decoded
from agentsignals.ui.changes import Change, changes, texts_of
from agentsignals.ui.conversation import Conversation
from agentsignals.ui.prose import coloured, file_text, rendered
from agentsignals.ui.reading import Reading
from agentsignals.views.call_words import about

if TYPE_CHECKING:
    from markupsafe import Markup

BRIEF_CHARS = 1_600
"""A text up to this length is shown at once; of a longer one the beginning, the rest when asked for."""
MOST_CHARS = 20_000
"""No more of one text is sent; the artifact has it all."""
MOST_COLOURED_CHARS = 120_000
"""Of all changes of a part together, so much is coloured: a lexer takes three milliseconds for a thousand."""
LINE_CHARS = 160
"""Of what a call is about."""
FAILED_CHARS = 700
"""Of a result that failed, so much is shown at once."""
_ASIDE = frozenset(("thinking", "meta", "harness", "notification", "command_output", "hook_block", "unknown"))
_PROSE = frozenset(("human_turn", "text", "thinking", "compaction"))
_THREADS = {ABANDONED: "a branch that was given up", REPLAYED: "a history copied from another session"}
IMAGE = re.compile(r"\[Image\b|<image\b", re.IGNORECASE)
IMAGE_FILE = re.compile(r"\.(?:png|jpe?g|gif|webp)$", re.IGNORECASE)
_MARKS = re.compile(r"[*`#]+")
"""Of Markdown, in a beginning that is shown as it was written."""
_STATES = {"completed": "✓", "in_progress": "▸", "cancelled": "✗"}
"""How far a thing to do is."""
_DIFF = re.compile(r"(?:diff --git |--- |commit [0-9a-f]{7,40}\n)")
_CALLS = """
SELECT seq, thread, name, class, path, command, arguments, argument_roles, status, outcome, error_class, exit_code,
  result_tokens, result_seq, ran_s
FROM tool_calls WHERE session_id = $session AND seq IN (SELECT unnest($seqs)) AND seq BETWEEN $low AND $high
"""
_EVENTS = """
SELECT seq, turn, thread, kind, left(text, $most) AS text, greatest(n_chars, length(text)) AS n_chars, timestamp, line
FROM events WHERE session_id = $session AND seq IN (SELECT unnest($seqs)) AND seq BETWEEN $low AND $high ORDER BY seq
"""
_EDITS = """
SELECT seq, path, op, via, hunk, start_line, end_line, old_start, added, removed, whole_file
FROM edits WHERE session_id = $session AND seq IN (SELECT unnest($seqs)) AND seq BETWEEN $low AND $high
ORDER BY seq, hunk
"""
_TURNS = "SELECT turn, kind, seq FROM turns WHERE session_id = $session AND seq IN (SELECT unnest($seqs))"


class Edited(Struct, kw_only=True):
    """What a call did to one file, in numbers."""

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
    """Whether only its beginning is seen until somebody asks for all."""
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
    """Who did it, when it was not the agent itself, and it stands among what the agent did."""
    turn: dict[str, Any] | None = None
    call: dict[str, Any] | None = None
    about: str = ""
    """What a call is about: its command, path or arguments."""
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
    """Whether the reader was sent to it."""

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
    """Who acts in a thread; empty for the agent itself."""
    return "" if thread == MAIN else _THREADS.get(thread, f"subagent {thread}")


class Teller:
    """Makes the entries of one session. `cwd` is left out of paths; `at`: the event that the reader was sent to."""

    def __init__(self, reading: Reading, session_id: str, cwd: str | None, at: int = -1) -> None:
        self._reading = reading
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
        calls = {row["seq"]: row for row in self._rows(_CALLS, seqs)}
        results = [row["result_seq"] for row in calls.values() if row["result_seq"] is not None]
        events = {row["seq"]: row for row in self._rows(_EVENTS, [*seqs, *results], most=MOST_CHARS)}
        turns = {row["seq"]: row for row in self._rows(_TURNS, seqs)}
        edits: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._rows(_EDITS, seqs):
            edits[row["seq"]].append(row)
        made: list[Entry] = []
        for seq in seqs:
            if seq not in events:
                continue
            thread = (folded or {}).get(seq, "")
            if thread:
                made.append(self._folded(events[seq], thread, conversation, at))
                continue
            entry = self._event(events[seq])
            entry.turn = turns.get(seq)
            is_attached = entry.turn is not None and entry.turn["kind"] == "attachment"
            if is_attached or IMAGE.search(events[seq]["text"] or ""):
                entry.pictures = seq
            if seq in calls:
                self._add_call(entry, calls[seq], events, edits.get(seq, []))
            made.append(entry)
        return made

    def _rows(self, query: str, seqs: Sequence[int], **values: Any) -> list[dict[str, Any]]:
        bounds = {} if query is _TURNS else {"low": min(seqs), "high": max(seqs)}
        return self._reading.rows_of(self._session, query, {"seqs": list(seqs), **bounds, **values})

    def _folded(self, first: dict[str, Any], thread: str, conversation: Conversation, at: int) -> Entry:
        entry = self._event(first)
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
        return entry

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
        entry.about = self._near(about(call["class"], call["path"], call["command"], call["arguments"]))
        entry.whole = _whole(call, entry.about)
        entry.plan = rendered(_plan(call))
        self._coloured_chars += len(call["arguments"])
        in_colours = self._coloured_chars <= MOST_COLOURED_CHARS
        entry.changes = changes(texts_of(call, edits), edits, in_colours)
        for change in entry.changes:
            change.path = self._near(change.path)
        entry.edits = [self._edited(path, [e for e in edits if e["path"] == path]) for path in _each(edits, "path")]
        result = events.get(call["result_seq"])
        if result is not None:
            entry.result = self._event(result)
            entry.result.text = _result(call, result, entry.failed)
            if IMAGE_FILE.search(call["path"] or "") or (call["class"] in ("mcp", "other") and not result["n_chars"]):
                entry.pictures = result["seq"]

    def _near(self, text: str) -> str:
        """Without the folder that the session worked in."""
        return text.replace(self._cwd, "") if self._cwd else text

    def _edited(self, path: str, rows: list[dict[str, Any]]) -> Edited:
        added, removed = ([row[name] for row in rows if row[name] is not None] for name in ("added", "removed"))
        return Edited(
            path=self._near(path),
            op=rows[0]["op"],
            line=rows[0]["start_line"],
            added=sum(added) if added else None,
            removed=sum(removed) if removed else None,
        )


def _whole(call: dict[str, Any], line: str) -> Markup | str:
    """The command of a call or its arguments, where one line has no place for them."""
    if call["command"] and call["class"] != "search":
        return coloured(call["command"], "bash") if len(line) > LINE_CHARS or "\n" in line else ""
    is_all = call["class"] in ("read", "search") or ("[" not in call["arguments"] and call["arguments"].count("{") < 2)
    return "" if is_all and len(line) <= LINE_CHARS else call["arguments"][:MOST_CHARS]


def _plan(call: dict[str, Any]) -> str:
    """The plan that a call writes, or its things to do with their state, as Markdown; empty where it writes none."""
    roles = decoded(call["argument_roles"])
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


def _each(rows: Collection[dict[str, Any]], column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def _result(call: dict[str, Any], row: dict[str, Any], failed: bool) -> Shown:
    """What a call gave back, in the colours of the file that was read."""
    text, n_chars = row["text"] or "", row["n_chars"] or 0
    brief = text[:FAILED_CHARS] if failed else text[:110]
    shown = Shown(html=text, brief=brief, n_chars=n_chars, cut_chars=n_chars - len(text), is_code=True)
    if call["class"] in ("task", "web") and not failed:
        shown.html, shown.is_code = rendered(text), False
    elif _DIFF.match(text):
        shown.html = coloured(text, "diff")
    elif call["class"] == "read" and call["path"] and not failed:
        shown.html = file_text(text, call["path"])
    return shown
