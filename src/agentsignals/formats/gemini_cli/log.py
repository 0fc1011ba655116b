"""Gemini CLI's JSON Lines (0.40 on) folded into a chat.

A message is written anew, whole, whenever something of it changes: the last version counts, at its first place.
`$rewindTo` takes back a message and all after it. `$set` changes the header; its `messages` are what the model is shown
from now on, not what was said: after a compression they are a summary and copies under new ids, before the first prompt
they are the client's own words about the machine.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input
from agentsignals.formats.gemini_cli.records import Chat, Message, decode_message, text_of
from agentsignals.formats.head import HEAD_BYTES, MAX_RECORDS, Head
from agentsignals.formats.one_document import each, tally
from agentsignals.formats.records import lines, saw
from agentsignals.model import Artifact

_SHA256_DIGITS = 64
_CONTEXT, _SUMMARY = "<session_context>", "<state_snapshot>"
_FOLDER = re.compile(r"Workspace Directories:\*{0,2}\s*\n\s*-\s+([^\n]+)")


class Log(Chat, kw_only=True):
    """A chat, where its messages stand in the file, and which of them were taken back."""

    numbers: Sequence[int] = ()
    rewound: frozenset[int] = frozenset()
    """Places in `messages`."""
    folder: str | None = None


class Header(Struct, gc=False, kw_only=True):
    """Facts about the session: of the first line, and of each `$set`."""

    sessionId: str | None = None
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None
    directories: object = None
    messages: list[Raw] | None = None


class _Line(Struct, gc=False, kw_only=True):
    id: object = None
    type: object = None
    sessionId: object = None
    set: Header | None = msgspec.field(default=None, name="$set")
    rewind: str | None = msgspec.field(default=None, name="$rewindTo")
    snapshot: object = msgspec.field(default=None, name="$snapshot")


_line = msgspec.json.Decoder(_Line).decode
_header = msgspec.json.Decoder(Header).decode
_Record = Message | Header | str | None
"""A message, the header or a change of it, the message that the person went back to, or a line of another kind."""


def is_log(data: bytes) -> bool:
    """Whether the file is JSON Lines: one of the first lines is an object by itself, whatever stands torn before it.

    A line with `messages` may be a whole chat of the older kind: then another object must follow.
    """
    end = -1
    for _ in range(MAX_RECORDS):  # a first prompt may be longer than what files are recognised by
        at = data.find(b"\n", end + 1)
        if at < 0:
            break
        end = at
    start = bytes(data[: max(HEAD_BYTES, end + 1)])
    records = Head(start, complete=len(data) <= HEAD_BYTES).records
    if not records:
        return False
    rest = start.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[2]
    return "messages" not in records[0] or rest.lstrip()[:1] == b"{"


def decode(data: memoryview | bytes) -> _Record:
    """One line."""
    line = _line(data)
    if line.rewind is not None:
        return line.rewind
    if line.set is not None:
        return line.set
    if isinstance(line.sessionId, str) or line.snapshot is True:
        return _header(data)
    if isinstance(line.id, str) and isinstance(line.type, str):
        return decode_message(data)
    return None


def fold(source: Input) -> Log | None:
    """The chat that a file tells; None when it names no session."""
    folded = _Fold(source.artifact)
    for number, record in lines(source.data, source.artifact, decode):
        saw(source.artifact, folded.take(number, record))
    return folded.log()


class _Fold:
    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self.facts = Header()
        self.places: dict[str, int] = {}
        """The place of each message by id; copies have that of their original."""
        self.messages: list[Message] = []
        self.numbers: list[int] = []
        self.rewound: set[int] = set()
        self.spoken = False
        """Whether a message was logged by itself."""

    def take(self, number: int, record: _Record) -> str:
        """Adds a line; gives its kind, as counted in the artifact."""
        if record is None:
            return "other"
        if isinstance(record, str):
            at = self.places.get(record)
            if at is not None:
                self.rewound.update(range(at, len(self.messages)))
            return "$rewindTo"
        if isinstance(record, Message):
            self.spoken = True
            self._add(number, record)
            return f"message.{record.type}"
        first = self.facts.sessionId is None
        for name in ("sessionId", "projectHash", "startTime", "kind", "summary", "directories"):
            value = getattr(record, name)
            if value is not None:
                setattr(self.facts, name, value)
        if record.messages is not None:
            shown = each(record.messages, decode_message, self._artifact)
            tally(self._artifact, "$set.message", [None for m in shown if m is None])
            self._shown(number, [m for m in shown if m is not None])
            return "$set.messages"
        return "header" if first else "$set"

    def _add(self, number: int, message: Message) -> None:
        at = self.places.get(message.id or "")
        if at is not None and at not in self.rewound:
            self.messages[at] = message
            return
        self.places[message.id or ""] = len(self.messages)
        self.messages.append(message)
        self.numbers.append(number)

    def _shown(self, number: int, messages: list[Message]) -> None:
        """What the model is shown. Once messages were logged by themselves, only a summary is new among it.

        Until then all of it is: the client's words about the machine; or everything, as some writers log it.
        """
        by_likeness = {_likeness(m): n for n, m in enumerate(self.messages)}
        for message in messages:
            if message.id in self.places:
                if not self.spoken:
                    self._add(number, message)
                continue  # else an older output may have been blanked out in it, to save tokens
            same = by_likeness.get(_likeness(message))
            if same is not None:
                self.places[message.id or ""] = same
            elif not self.spoken or text_of(message.content).lstrip().startswith(_SUMMARY):
                self._add(number, message)

    def log(self) -> Log | None:
        facts = self.facts
        if facts.sessionId is None or not self.messages:
            return None
        shown = next((text for m in self.messages if (text := text_of(m.content)).startswith(_CONTEXT)), "")
        named = _FOLDER.search(shown[:HEAD_BYTES])
        listed = facts.directories[0] if isinstance(facts.directories, list) and facts.directories else None
        folders = (named.group(1).strip() if named else None, listed)
        return Log(
            sessionId=facts.sessionId,
            messages=cast("list[Message | None]", self.messages),
            projectHash=facts.projectHash,
            startTime=facts.startTime,
            kind=facts.kind,
            summary=facts.summary,
            numbers=self.numbers,
            rewound=frozenset(self.rewound),
            folder=next((f for f in folders if isinstance(f, str) and _is_project(f, facts.projectHash)), None),
        )


def _likeness(message: Message) -> tuple[str, str]:
    calls = ",".join(call.id for call in message.toolCalls or ())
    return message.type, calls or text_of(message.content).strip()


def _is_project(folder: str, project: str | None) -> bool:
    """Whether a folder is the session's: the header names it by SHA-256, newer versions by a word."""
    if not project or len(project) != _SHA256_DIGITS:
        return True
    return hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest() == project


def parent_of(log: Log, path: str) -> str | None:
    """The session that started a subagent's: its file lies in a folder of that name, below `chats`."""
    above, parent = posixpath.split(posixpath.dirname(path))
    return parent if log.kind == "subagent" and posixpath.basename(above) == "chats" else None
