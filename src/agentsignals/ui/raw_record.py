"""The line of the file that an event was read from, and the pictures in it: asked of the file itself, as it is now."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from agentsignals.model import Session
from agentsignals.redaction import redacted
from agentsignals.sources import RawFile, Unreadable, by_name
from agentsignals.ui.page import NotFound, sql
from agentsignals.ui.snapshot import Snapshot
from agentsignals.ui.transcript import IMAGE, IMAGE_FILE

MOST_CHARS = 200_000
"""Characters of a line that are shown."""
MOST_PICTURES = 8
MOST_PICTURE_CHARS = 8_000_000
"""Characters of a picture as text; four thirds of its bytes."""
_LONG_CHARS = 20_000
"""A text without a blank in it is no words, from here on: its size is shown."""
_END_BYTES = 4
"""Bytes around the only line of a file: a mark of its encoding, an end of the line."""
_BEGINNING_BYTES = 4096
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_IMAGE = re.compile(r"image/(?:png|jpeg|gif|webp)")
_DATA = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]+={0,2}\s*")
_REASONS = {
    "file_gone": "the file no longer exists",
    "no_permission": "permission denied",
    "changed": "the file has changed; run `agentsignals analyze` to read it again",
    "remote": "the file is not on this machine",
    "no_text": "the file is not a text file",
    "no_line": "the file has no such line",
    "no_record": "the file is one document, so the event has no line of its own",
}


class Picture(Struct, frozen=True):
    """A picture that the line holds, as an address that carries it."""

    type: str
    source: str
    n_bytes: int


class RawLine(Struct, kw_only=True):
    """A line of the file; or why it can't be shown."""

    path: str
    line: int
    text: str = ""
    """Indented JSON with its secrets masked, or the line as it is."""
    cut_chars: int = 0
    pictures: list[Picture] = []
    why_not: str = ""


def raw_line(snapshot: Snapshot, session_id: str, seq: int) -> RawLine:
    """The line of an event. NotFound when the session has no such event."""
    events = snapshot.rows_of(session_id, sql("raw.event"), {"seq": seq})
    if not events:
        raise NotFound(f"This session has no event {seq}.")
    event = events[0]
    artifacts = snapshot.rows(sql("raw.artifact"), {"id": event["artifact_id"]})
    if not artifacts:
        return RawLine(path="", line=event["line"], why_not="the file is not in the store")
    made = RawLine(path=artifacts[0]["path"], line=event["line"])
    record = _record(snapshot, artifacts[0], event)
    if isinstance(record, str):
        made.why_not = _REASONS.get(record, record.replace("_", " "))
        return made
    made.pictures = list(islice(_pictures(record.value), MOST_PICTURES))
    text = redacted(
        msgspec.json.format(msgspec.json.encode(_without_data(record.value)), indent=2).decode()
        if record.is_json
        else str(record.value)[: 2 * MOST_CHARS]
    )
    made.text, made.cut_chars = text[:MOST_CHARS], max(len(text) - MOST_CHARS, 0)
    return made


class _Record(Struct):
    value: Any
    is_json: bool


def _record(snapshot: Snapshot, artifact: dict[str, Any], event: dict[str, Any]) -> _Record | str:
    """Return the record of an event as its log has it now, or why it cannot be shown."""
    entry = snapshot.store.manifest.files.get(artifact["path"])
    if entry is None or entry.source != "local":
        return "remote"
    file = RawFile(
        uri=artifact["path"],
        source=entry.source,
        spec=entry.spec,
        bytes=entry.bytes,
        stamp=entry.stamp,
        container=entry.container,
        key=entry.key,
    )
    data = next(by_name("local").read([file], None))
    if isinstance(data, Unreadable):
        return data.reason
    # A log that only grew since it was read is the same as far as it was read.
    if hashlib.sha256(memoryview(data)[: artifact["bytes"]]).hexdigest() != artifact["sha256"]:
        return "changed"
    if b"\0" in data[:_BEGINNING_BYTES]:
        return "no_text"
    at, line = 3 if data[:3] == b"\xef\xbb\xbf" else 0, b""
    for _ in range(event["line"] - 1):
        at = data.find(b"\n", at) + 1
        if not at:
            break
    else:
        stop = data.find(b"\n", at)
        line = bytes(data[at : stop if stop >= 0 else len(data)])
    is_whole = bool(line) and len(data) - len(line) < _END_BYTES
    of_document = _of_document(data, event) if not line or is_whole else "no_record"
    if not line or isinstance(of_document, _Record):
        return of_document
    try:
        return _Record(msgspec.json.decode(line), is_json=True)
    except _UNREADABLE:
        of_document = _of_document(data, event)
        return of_document if of_document != "no_line" else _Record(line.decode("utf-8", "replace"), is_json=False)


def _of_document(data: bytes, event: dict[str, Any]) -> _Record | str:
    """The record of that number in a file that is one document: in the list that has the event's words there."""
    try:
        document = msgspec.json.decode(bytes(data))
    except _UNREADABLE:
        return "no_line"
    held = [document] if isinstance(document, list) else document.values()
    lists = [v for v in held if v is document or (isinstance(v, list) and all(isinstance(i, dict | list) for i in v))]
    words = (event["text"] or "").strip()[:60]
    if not lists and event["line"] == 1:
        return _Record(document, is_json=True)  # the file is the record
    for records in sorted(lists, key=len, reverse=True):
        if 0 < event["line"] <= len(records):
            record = records[event["line"] - 1]
            if not words or any(words in text for text, _ in _texts(record)):
                # The part of a message that has the words, where a message has parts.
                parts = record.get("parts") if words and isinstance(record, dict) else None
                part = next((p for p in parts or () if any(words in text for text, _ in _texts(p))), record)
                return _Record(part, is_json=True)
    return "no_record"


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the type of picture that is named beside it."""
    waiting = [(value, "")]
    while waiting:
        at, type_ = waiting.pop(0)
        if isinstance(at, str):
            yield at, type_
        elif isinstance(at, dict):
            type_ = next((v for v in at.values() if isinstance(v, str) and _IMAGE.fullmatch(v)), "")
            yield from ((v, type_) for v in at.values() if isinstance(v, str))
            waiting += [(v, "") for v in at.values() if isinstance(v, dict | list)]
        elif isinstance(at, list):
            waiting += [(v, "") for v in at]


def _without_data(value: Any) -> Any:
    """Replace data that is no words by its size: a picture is a million letters."""
    if isinstance(value, str):
        return f"[{len(value):,} characters]" if len(value) > _LONG_CHARS and " " not in value[:_LONG_CHARS] else value
    if isinstance(value, list):
        return [_without_data(item) for item in value]
    return {name: _without_data(item) for name, item in value.items()} if isinstance(value, dict) else value


def _pictures(value: Any) -> Iterator[Picture]:
    """The pictures in a record: a text that is a picture's address, or one beside the name of its type."""
    for text, type_ in _texts(value):
        begins = _DATA.match(text)
        data, named = (text[begins.end() :], begins[1]) if begins else (text, type_)
        if named and 64 < len(data) <= MOST_PICTURE_CHARS and _BASE64.fullmatch(data):
            yield Picture(named, f"data:{named};base64,{''.join(data.split())}", len(data) * 3 // 4)


# The pictures of a session that is handed on: out of the lines of its trace, as they are.

MOST_BYTES = 12 << 20
"""Bytes of all pictures of a file, as many as of its conversation."""


class Pictures(NamedTuple):
    """The pictures of a session by event, as numbers, and what each is."""

    of_event: dict[int, list[int]]
    each: list[Picture]
    left_out: int
    """For which there was no room."""
    mark: str
    """Stands for them in the page until all of it was looked through: in so much Base64 a pattern would see keys. No
    text can hold it, as it is drawn by chance."""

    def put_into(self, document: str) -> str:
        """The page with its pictures."""
        return re.sub(rf'src="{self.mark}:(\d+)"', lambda at: f'src="{self.each[int(at[1])].source}"', document)


def pictures_of(snapshot: Snapshot, session: Session) -> Pictures:
    """Return the pictures of a session. None of a file that was changed since `analyze` read it, or is gone."""
    made = Pictures({}, [], 0, f"picture-{secrets.token_hex(16)}")
    room = MOST_BYTES
    # Events whose line may hold pictures, as on the page of a session.
    attached = {turn.seq for turn in session.turns if turn.kind == "attachment"}
    seqs = {event.seq for event in session.events if event.seq in attached or IMAGE.search(event.text or "")}
    for call in session.tool_calls:
        if call.result_seq is not None and 0 <= call.result_seq < len(session.events):
            is_empty = call.class_ in ("mcp", "other") and not session.events[call.result_seq].n_chars
            if is_empty or IMAGE_FILE.search(call.path or ""):
                seqs.add(call.result_seq)
    for seq in sorted(seqs):
        for picture in raw_line(snapshot, session.session_id, seq).pictures:
            room -= len(picture.source)
            if room < 0:
                made = made._replace(left_out=made.left_out + 1)
            else:
                made.of_event.setdefault(seq, []).append(len(made.each))
                made.each.append(picture)
    return made
