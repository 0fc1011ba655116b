"""Unknown files and fields: known files that no format reads, and fields that no file of a format had before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentsignals.formats.head import Head

UNREAD_VERSION = 2
"""Raise it when other files are recognised: then unclaimed files are looked at again."""
Reason = Literal["agent_not_read", "not_sessions", "other_export"]
"""`agent_not_read`: sessions that no format reads yet. `not_sessions`: an agent's file without sessions, or with what
its sessions hold too. `other_export`: another tool's export of conversations."""


class UnreadFile(Struct, frozen=True):
    """Known files that are not read."""

    name: str
    what: str
    """Description of its files, to follow the name."""
    reason: Reason
    looks: Callable[[Head], bool] | None = None
    """Recognises one of its files by content. None if they are known only by their place or tables."""
    of_json: bool = True
    """The files begin as JSON does."""
    tables: frozenset[str] = frozenset()
    """Tables that its database must have."""
    homes: tuple[str, ...] = ()
    """Their folders (as in `Profile.homes`)."""

    @property
    def note(self) -> str:
        """The text of an artifact's note."""
        return f"{self.name}: {self.what}"


def unread_file(head: Head) -> UnreadFile | None:
    """Return the known kind of a file that no format claims, or None."""
    is_json = head.looks_like_json
    return next((s for s in UNREAD_FILES if s.looks is not None and s.of_json == is_json and s.looks(head)), None)


def unread_database(tables: Set[str]) -> UnreadFile | None:
    """Return the known kind of a database that no format claims, or None."""
    return next((s for s in UNREAD_FILES if s.tables and s.tables <= tables), None)


def unread_homes() -> dict[str, tuple[str, ...]]:
    """Return folders of agents whose sessions are not read."""
    return {s.name: s.homes for s in UNREAD_FILES if s.homes}


MOST_KEYS = 6
_KEY = re.compile(r"[A-Za-z_$][A-Za-z_-]{0,23}\Z")
"""Names of fields that may be shown: no id, path, address or word of a person."""


def first_fields(head: Head) -> str:
    """Describe a JSON file by the names of its first fields, so that a person may recognise it."""
    record = head.items[0] if head.items else head.document
    keys = [key for key in record if _KEY.match(key)]
    if not keys:
        return ""
    more = ", …" if len(record) > min(len(keys), MOST_KEYS) else ""
    return f"{'a list of ' if head.items else ''}JSON with {', '.join(keys[:MOST_KEYS])}{more}"


def _has(record: dict[str, Any], **types: type) -> bool:
    return all(isinstance(record.get(name), of) for name, of in types.items())


def _agent_trace(head: Head) -> bool:
    return _has(head.document, version=str, id=str, timestamp=str, files=list) and any(
        isinstance(file, dict) and _has(file, path=str, conversations=list) for file in head.document["files"]
    )


def _chat_messages(head: Head) -> bool:
    """A conversation a line, as models are trained on."""
    messages = head.document.get("messages")
    return (
        len(head.document) <= 3
        and isinstance(messages, list)
        and bool(messages)
        and all(isinstance(m, dict) and _has(m, role=str) and "content" in m for m in messages)
    )


_SENT_BY_GROK = frozenset(("system", "user", "assistant", "reasoning", "tool_result", "backend_tool_call"))


_OF_VIBE = frozenset(
    ("store_format", "last_finished_turn_id", "recovery_journal_segment", "runtime_state_version", "core_plugins")
)


def _beside_vibe(head: Head) -> bool:
    """The state that the runtime needs to resume a session, and the messages that it sends its model."""
    return bool(_OF_VIBE & head.document.keys()) or {"turn_index", "message"} <= _first_item(head).keys()


def _first_item(head: Head) -> dict[str, Any]:
    return head.items[0] if head.items else {}


UNREAD_FILES = (
    UnreadFile(
        "windsurf",
        "conversations that it encrypts; the transcripts that its hook writes are read",
        "agent_not_read",
        homes=("~/.codeium/windsurf/cascade",),
    ),
    UnreadFile(
        "antigravity",
        "a conversation in Protocol Buffers, whose transcript is read; its tokens are here alone",
        "not_sessions",
        tables=frozenset(("gen_metadata", "trajectory_metadata_blob")),
    ),
    UnreadFile(
        "hermes",
        "database with the tokens of its sessions; they are read as JSON",
        "agent_not_read",
        homes=("~/.hermes/state.db",),
    ),
    UnreadFile(
        "warp",
        "database of the terminal: its agent's questions and their tokens, without what tools answered",
        "agent_not_read",
        tables=frozenset(("agent_conversations", "ai_queries")),
        homes=(
            "~/Library/Group Containers/2BBY89MBSN.dev.warp/Library/Application Support/dev.warp.*/warp.sqlite",
            "~/.local/state/warp-terminal/warp.sqlite",
        ),
    ),
    UnreadFile("junie", "events of a session (`events.jsonl`)", "agent_not_read", homes=("~/.junie/sessions",)),
    UnreadFile("augment", "sessions of Auggie as JSON", "agent_not_read", homes=("~/.augment/sessions",)),
    UnreadFile("codebuff", "chats (`chat-messages.json`)", "agent_not_read", homes=("~/.config/manicode/projects",)),
    UnreadFile("rovo-dev", "sessions (`session_context.json`)", "agent_not_read", homes=("~/.rovodev/sessions",)),
    UnreadFile(
        "devin",
        "transcripts of its command line; what `devin --export` writes is ATIF, which is read",
        "agent_not_read",
        homes=("~/.local/share/devin/cli/transcripts",),
    ),
    UnreadFile("letta-code", "sessions of its command line", "agent_not_read", homes=("~/.letta",)),
    UnreadFile(
        "trae",
        "state of the editor",
        "agent_not_read",
        homes=("~/.config/Trae/User/globalStorage", "~/Library/Application Support/Trae/User/globalStorage"),
    ),
    UnreadFile("gptme", "logs", "agent_not_read", homes=("~/.local/share/gptme/logs",)),
    UnreadFile("iflow", "sessions", "agent_not_read", homes=("~/.iflow/projects",)),
    UnreadFile(
        "SpecStory",
        "an agent's session as Markdown; the agent's own log says more",
        "agent_not_read",
        looks=lambda head: head.text.lstrip().startswith("<!-- Generated by SpecStory"),
        of_json=False,
    ),
    UnreadFile(
        "git-ai",
        "note on a commit: who wrote its lines, no session",
        "agent_not_read",
        looks=lambda head: b'"authorship/' in head.data and b"\n---\n" in head.data,
        of_json=False,
    ),
    UnreadFile("Agent Trace", "record of who wrote lines, no session", "agent_not_read", looks=_agent_trace),
    UnreadFile(
        "claude-code",
        "list of what was typed, which its sessions hold too",
        "not_sessions",
        looks=lambda head: _has(head.document, display=str, pastedContents=dict),
    ),
    UnreadFile(
        "codex",
        "list of what was typed, which its sessions hold too",
        "not_sessions",
        looks=lambda head: head.document.keys() == {"session_id", "ts", "text"},
    ),
    UnreadFile(
        "grok-build",
        "what its model was sent; the log that is read is updates.jsonl beside it",
        "not_sessions",
        looks=lambda head: (
            any("synthetic_reason" in r or "prompt_index" in r for r in head.records)
            and all(str(r.get("type")) in _SENT_BY_GROK for r in head.records)
        ),
    ),
    UnreadFile(
        "cursor-agent",
        "facts about a chat of the command line, beside the database that holds it",
        "not_sessions",
        looks=lambda head: _has(head.document, createdAtMs=int, hasConversation=bool),
    ),
    UnreadFile(
        "mistral-vibe",
        "its runtime's own state, beside the history of a session",
        "not_sessions",
        looks=_beside_vibe,
    ),
    UnreadFile(
        "ChatGPT",
        "export of chats",
        "other_export",
        looks=lambda head: _has(_first_item(head), mapping=dict, current_node=str),
    ),
    UnreadFile(
        "claude.ai",
        "export of chats",
        "other_export",
        looks=lambda head: _has(_first_item(head), uuid=str, chat_messages=list),
    ),
    UnreadFile(
        "chat messages",
        "as models are trained on, without an agent's calls and times",
        "other_export",
        looks=_chat_messages,
    ),
)
"""Remove an agent when a format reads its sessions."""


# -- fields that no file of a format had before: an agent has changed what it writes (design/formats.md#unknown-fields)
# A format may have a vocabulary, `fields/<format>.txt`, made by `python -m tests.vocabulary` from files that were read.
# A few records of each file are compared with it.

Vocabulary = dict[str, Any]
"""The fields at a path, each with its own. None for an object whose keys are data, as arguments are."""
FEWEST_RECORDS, MOST_RECORDS, RECORD_BYTES = 3, 8, 32 * 1024
"""Number of records of JSON Lines that are checked: one more for every `RECORD_BYTES`. Longer ones are not checked."""
DOCUMENT_BYTES = 16 * 1024
"""A longer document is checked at random by its digest: the longer, the less often."""
MOST_FIELDS, MOST_DEPTH, MOST_ITEMS, LONGEST_CHARS = 8, 8, 4, 100
"""Limits: names kept of a file, depth, items of a list, characters of a name."""
IS_FIELD = re.compile(r"(?!.*[0-9]{4})[A-Za-z_$][A-Za-z0-9_$-]{0,39}\Z")
"""Names of fields. Other keys are data (paths, ids, words)."""
_LEFT_OUT = "*"


def unknown_fields(name: str, data: bytes, sha256: str) -> list[str]:
    """Return fields of a file that no file of that format had before, sorted; `a.b` is a field inside of `a`.

    A sample of the records is checked, always the same one for the same file.
    """
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
    """Return the known fields of a format. None if there is no list."""
    try:
        text = (Path(__file__).parent / "fields" / f"{name}.txt").read_text(encoding="utf-8")
    except OSError:
        return None
    return parsed(text)


def parsed(text: str) -> Vocabulary:
    """Parse a vocabulary: a line a path, with its fields; `*` if the keys are data."""
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
    """Return the text of a vocabulary."""
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
    """Add the fields of a value that are not in the vocabulary to `met`."""
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
    """Yield some records of JSON Lines, spread over the file, or a document. Unreadable ones are left to the reader."""
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
