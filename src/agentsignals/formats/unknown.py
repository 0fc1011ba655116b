"""Files that no format reads and that say themselves whose they are; agents that are known here and not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentsignals.formats.head import Head

LOOKED_BY = 1
"""Raise it when others are known by other marks: files that nobody claims are looked at again."""
Reason = Literal["agent_not_read", "not_sessions", "other_export"]
"""Why it is not read: `agent_not_read`, an agent's sessions that no format reads yet; `not_sessions`, an agent's file
that holds none, or only what its sessions hold too; `other_export`, what another tool made of conversations."""


class Stranger(Struct, frozen=True, kw_only=True):
    """Somebody's files that are not read."""

    name: str
    what: str
    """What its files are, after the name."""
    reason: Reason
    looks: Callable[[Head], bool] | None = None
    """Whether a file is one of them, by its content; None where they are known by place or tables alone."""
    of_json: bool = True
    """Whether it begins as JSON does."""
    tables: frozenset[str] = frozenset()
    """Tables that its database has, all of them."""
    homes: tuple[str, ...] = ()
    """Where they are (as in `Profile.homes`)."""

    @property
    def note(self) -> str:
        """In the words of an artifact's note."""
        return f"{self.name}: {self.what}"


def stranger(head: Head) -> Stranger | None:
    """Whose file it is; None where it doesn't say."""
    is_json = head.looks_like_json
    return next((s for s in STRANGERS if s.looks is not None and s.of_json == is_json and s.looks(head)), None)


def database_of(tables: Set[str]) -> Stranger | None:
    """Whose database it is."""
    return next((s for s in STRANGERS if s.tables and s.tables <= tables), None)


def unread_homes() -> dict[str, tuple[str, ...]]:
    """Where agents keep sessions that are not read."""
    return {s.name: s.homes for s in STRANGERS if s.homes}


MOST_KEYS = 6
_KEY = re.compile(r"[A-Za-z_$][A-Za-z_-]{0,23}\Z")
"""What is taken for the name of a field: no id, path, address or word of a person."""


def first_fields(head: Head) -> str:
    """What a JSON file begins with, for a person to know it by: names of fields, at most six of them."""
    record = head.items[0] if head.items else head.document
    keys = [key for key in record if _KEY.match(key)]
    if not keys:
        return ""
    more = ", …" if len(record) > min(len(keys), MOST_KEYS) else ""
    return f"{'a list of ' if head.items else ''}JSON with {', '.join(keys[:MOST_KEYS])}{more}"


def _has(record: dict[str, Any], **types: type) -> bool:
    return all(isinstance(record.get(name), of) for name, of in types.items())


def _agent_trace(head: Head) -> bool:
    record = head.document
    files = record.get("files")
    return _has(record, version=str, id=str, timestamp=str, files=list) and any(
        isinstance(file, dict) and _has(file, path=str, conversations=list) for file in files or ()
    )


def _chat_messages(head: Head) -> bool:
    """Messages alone, a conversation a line: what models are trained on."""
    messages = head.document.get("messages")
    return (
        len(head.document) <= 3
        and isinstance(messages, list)
        and bool(messages)
        and all(isinstance(m, dict) and _has(m, role=str) and "content" in m for m in messages)
    )


_SENT_BY_GROK = frozenset(("system", "user", "assistant", "reasoning", "tool_result", "backend_tool_call"))


def _sent_by_grok(head: Head) -> bool:
    is_groks = any("synthetic_reason" in r or "prompt_index" in r for r in head.records)
    return is_groks and all(r.get("type") in _SENT_BY_GROK for r in head.records)


_OF_VIBE = frozenset(
    ("store_format", "last_finished_turn_id", "recovery_journal_segment", "runtime_state_version", "core_plugins")
)


def _beside_vibe(head: Head) -> bool:
    """What the runtime needs to go on with a session, and what it sends its model."""
    item = _first_item(head)
    return bool(_OF_VIBE & head.document.keys()) or ("turn_index" in item and "message" in item)


def _first_item(head: Head) -> dict[str, Any]:
    return head.items[0] if head.items else {}


STRANGERS = (
    Stranger(
        name="windsurf",
        what="conversations that it encrypts; the transcripts that its hook writes are read",
        reason="agent_not_read",
        homes=("~/.codeium/windsurf/cascade",),
    ),
    Stranger(
        name="kiro",
        what="database of the command line, whose conversations are read from exports alone",
        reason="agent_not_read",
        tables=frozenset(("conversations", "auth_kv")),
        homes=(
            "~/.local/share/kiro-cli/data.sqlite3",
            "~/.local/share/amazon-q/data.sqlite3",
            "~/Library/Application Support/kiro-cli/data.sqlite3",
            "~/Library/Application Support/amazon-q/data.sqlite3",
        ),
    ),
    Stranger(
        name="antigravity",
        what="conversations",
        reason="agent_not_read",
        homes=("~/.gemini/antigravity/conversations",),
    ),
    Stranger(name="gptme", what="logs", reason="agent_not_read", homes=("~/.local/share/gptme/logs",)),
    Stranger(name="iflow", what="sessions", reason="agent_not_read", homes=("~/.iflow/projects",)),
    Stranger(
        name="aider",
        what="chat history, which says no results and no times of its calls",
        reason="agent_not_read",
        looks=lambda head: head.data.lstrip().startswith(b"# aider chat started at "),
        of_json=False,
    ),
    Stranger(
        name="git-ai",
        what="note on a commit: who wrote its lines, no session",
        reason="agent_not_read",
        looks=lambda head: b'"authorship/' in head.data and b"\n---\n" in head.data,
        of_json=False,
    ),
    Stranger(
        name="Agent Trace",
        what="record of who wrote lines, no session",
        reason="agent_not_read",
        looks=_agent_trace,
    ),
    Stranger(
        name="claude-code",
        what="list of what was typed, which its sessions hold too",
        reason="not_sessions",
        looks=lambda head: _has(head.document, display=str, pastedContents=dict),
    ),
    Stranger(
        name="codex",
        what="list of what was typed, which its sessions hold too",
        reason="not_sessions",
        looks=lambda head: head.document.keys() == {"session_id", "ts", "text"},
    ),
    Stranger(
        name="grok-build",
        what="what its model was sent; the log that is read is updates.jsonl beside it",
        reason="not_sessions",
        looks=_sent_by_grok,
    ),
    Stranger(
        name="cursor-agent",
        what="facts about a chat of the command line, beside the database that holds it",
        reason="not_sessions",
        looks=lambda head: _has(head.document, createdAtMs=int, hasConversation=bool),
    ),
    Stranger(
        name="mistral-vibe",
        what="its runtime's own state, beside the history of a session",
        reason="not_sessions",
        looks=_beside_vibe,
    ),
    Stranger(
        name="ChatGPT",
        what="export of chats",
        reason="other_export",
        looks=lambda head: _has(_first_item(head), mapping=dict, current_node=str),
    ),
    Stranger(
        name="claude.ai",
        what="export of chats",
        reason="other_export",
        looks=lambda head: _has(_first_item(head), uuid=str, chat_messages=list),
    ),
    Stranger(
        name="chat messages",
        what="as models are trained on, without an agent's calls and times",
        reason="other_export",
        looks=_chat_messages,
    ),
)
"""An agent whose sessions come to be read leaves this list."""


# Fields that no file of a format had before (design/formats.md#unknown-fields): an agent has changed what it
# writes.
#
# Each format may have a vocabulary beside this module, `<format>.txt`, made by `python -m tests.vocabulary` of what
# was met. A few records of each file are held against it.

Vocabulary = dict[str, Any]
"""The fields below a place, each with its own; None for an object whose keys are data, as arguments are."""
FEWEST_RECORDS, MOST_RECORDS, RECORD_BYTES = 3, 8, 32 * 1024
"""So many records of JSON Lines are looked at, one more in so many bytes; a longer one is not."""
DOCUMENT_BYTES = 16 * 1024
"""A longer document is looked at whole one time in as many as it is longer, as its content decides."""
MOST_FIELDS, MOST_DEPTH, MOST_ITEMS, LONGEST_CHARS = 8, 8, 4, 100
"""So many names are kept of a file, so deep is looked, at so many things of a list, and so long is a name."""
IS_FIELD = re.compile(r"(?!.*[0-9]{4})[A-Za-z_$][A-Za-z0-9_$-]{0,39}\Z")
"""What may be a field's name: other keys are data (paths, ids, words)."""
_LEFT_OUT = "*"


def unknown_fields(name: str, data: bytes, sha256: str) -> list[str]:
    """The fields in a file of that format that none had before, as far as is looked: in order of name, `a.b` for what
    stands inside of `a`. The same file always gives the same; nothing where the format has no vocabulary."""
    words = vocabulary(name)
    if words is None:
        return []
    met: set[str] = set()
    for record in looked_at(data, sha256):
        walk(record, words, "", met, MOST_DEPTH)
        if len(met) >= MOST_FIELDS:
            break
    return sorted(name[:LONGEST_CHARS] for name in met)[:MOST_FIELDS]


@cache
def vocabulary(name: str) -> Vocabulary | None:
    """The fields of a format; None where nobody has listed them."""
    try:
        text = (Path(__file__).parent / "fields" / f"{name}.txt").read_text(encoding="utf-8")
    except OSError:
        return None
    return parsed(text)


def parsed(text: str) -> Vocabulary:
    """A vocabulary as it is written: a line a place, with its fields; `*` where the keys are data."""
    root: Vocabulary = {}
    for line in text.splitlines():
        place, _, names = line.partition(": ")
        *above, last = ["", *place.split(".")] if place != "." else [""]
        node: Any = {"": root}
        for step in above:
            node = node[step]
        if names == _LEFT_OUT:
            node[last] = None
        else:
            node[last].update({name: {} for name in names.split()})
    return root


def written(words: Vocabulary) -> str:
    """The text of a vocabulary."""
    return "".join(f"{place or '.'}: {names}\n" for place, names in _lines(words, ""))


def _lines(words: Vocabulary, place: str) -> Iterator[tuple[str, str]]:
    yield place, " ".join(sorted(words))
    for name in sorted(words):
        below = f"{place}.{name}" if place else name
        if words[name] is None:
            yield below, _LEFT_OUT
        elif words[name]:
            yield from _lines(words[name], below)


def walk(value: Any, words: Vocabulary, place: str, met: set[str], depth: int) -> None:
    """Adds the fields of a value that are not among these words to those met."""
    if type(value) is list:
        for item in (*value[: MOST_ITEMS - 1], *value[MOST_ITEMS - 1 :][-1:]):
            walk(item, words, place, met, depth)
    elif type(value) is dict and depth:
        for name, inner in value.items():
            below = words.get(name, _LEFT_OUT)
            if below is _LEFT_OUT:
                if IS_FIELD.match(name):
                    met.add(f"{place}.{name}" if place else name)
            elif below is not None and type(inner) in _OBJECTS:
                walk(inner, below, f"{place}.{name}" if place else name, met, depth - 1)


_OBJECTS = (dict, list)
_decode = msgspec.json.Decoder().decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def looked_at(data: bytes, sha256: str) -> Iterator[Any]:
    """Some records of JSON Lines, spread over the file, or a document. What can't be read its reader accounts for."""
    size = len(data)
    n = min(MOST_RECORDS, FEWEST_RECORDS + size // RECORD_BYTES)
    is_lines = False
    for i in range(n):
        start = data.find(b"\n", i * size // n - 1) + 1 if i else 0
        stop = data.find(b"\n", start, start + RECORD_BYTES)
        if (i and not start) or (stop < 0 and size - start > RECORD_BYTES):
            continue
        try:
            yield _decode(memoryview(data)[start : stop if stop >= 0 else size])
        except _UNREADABLE:
            if not i:
                break
        else:
            is_lines = True
    if is_lines or not sha256 or int(sha256[:8], 16) % (1 + size // DOCUMENT_BYTES):
        return
    try:
        yield _decode(data)
    except _UNREADABLE:
        return
