"""The Cursor sessions of one family: conversations of its IDE (`composer`), else chats of its CLI (`store`), else
transcripts; the latter two are read here.

A session has a transcript beside what lies in a database, which says what calls came to.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk
from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.cursor_agent import PROFILE, composer, session_of, store
from agentsignals.formats.cursor_agent.database import BEGINS, inside, model_of, nonempty
from agentsignals.formats.documents import saw_again
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import lines, read_before, saw
from agentsignals.model import EPOCH, CallStatus, Session, Step, logged_ms

_QUERY, _END = "<user_query>", "</user_query>"
_CONTEXT = re.compile(r"\s*<([a-z_]+)>.*?</\1>\s*", re.DOTALL)
_TIME = re.compile(
    r"<timestamp>\w+, (\w{3} \d{1,2}, \d{4}, \d{1,2}:\d\d [AP]M) \(UTC([+-]\d{1,2})?(?::(\d\d))?\)</timestamp>"
)

_OF_A_PERSON = frozenset(("text", "image", "tool_result"))


class Block(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None
    status: CallStatus = "ok"


class Message(Struct, gc=False):
    content: str | list[Block] | None = None


class Record(Struct, gc=False, kw_only=True):
    """A message, or `{type: turn_ended, status, error}` of newer versions; of a chat's database (`store`) also what is
    said of the chat."""

    role: str | None = None
    message: Message | None = None
    type: str | None = None
    status: str | None = None
    error: str | None = None
    cursorChat: dict[str, Any] | None = None
    model: str | None = None
    is_summary: bool = False


_decode = msgspec.json.Decoder(Record).decode


def read(inputs: list[Input]) -> Reading:
    """One session an id: of several conversations the longest, and a conversation rather than anything else."""
    held: dict[str, list[tuple[Input, composer.Held]]] = {}
    named: dict[str, list[Input]] = {}
    for source in inputs:
        if bytes(source.data[: len(BEGINS)]) == BEGINS:
            conversation = composer.records(source)
            held.setdefault(conversation.session_id or source.artifact.artifact_id, []).append((source, conversation))
        else:
            named.setdefault(_session_of(source), []).append(source)
    sessions: list[Session] = []
    for session_id in sorted(held.keys() | named.keys()):
        kept = _conversation(session_id, held.get(session_id, []))
        if kept is not None:
            sessions.append(kept)
            for source in named.get(session_id, []):
                _repeats(source, "the conversation in the IDE's database")
        elif session_id in named:
            sessions += _read(session_id, named[session_id])
    return Reading(sessions)


def _conversation(session_id: str, copies: list[tuple[Input, composer.Held]]) -> Session | None:
    """The session that most bubbles tell of; None where there are none."""
    if not copies:
        return None
    source, kept = max(copies, key=lambda copy: (len(copy[1].bubbles), len(copy[0].data), copy[0].artifact.sha256))
    for other, _ in copies:
        if other is not source:
            other.artifact.note = f"an earlier copy of {source.artifact.path}, which counts"
            saw_again(other.artifact)
    return composer.read(source, session_id, kept)


def _is_chat(source: Input) -> bool:
    return bytes(source.data[: len(store.BEGINS)]) == store.BEGINS


def _session_of(source: Input) -> str:
    named = None
    if _is_chat(source):
        first = bytes(source.data[: source.data.find(b"\n") + 1])
        for _, record in lines(first, read_before(source.artifact), _decode):
            named = named or nonempty(inside(record.cursorChat, "agentId"))
    return named or source.session_hint or session_of(source.artifact.path) or source.artifact.artifact_id


def _worth(source: Input) -> tuple[int, int, str]:
    """A chat counts rather than a transcript, unless what came before a compaction is gone from it."""
    rank = 1 if not _is_chat(source) else 2 if source.data.find(store.COMPACTED) < 0 else 0
    return rank, len(source.data), source.artifact.sha256


def _read(session_id: str, copies: list[Input]) -> Iterator[Session]:
    kept = max(copies, key=_worth)
    for source in copies:
        if source is not kept:
            _repeats(source, kept.artifact.path)
    session = kept.session(session_id, "cursor-agent", PROFILE.agent)
    reader = _Reader(session)
    if not _is_chat(kept):
        session.conventions = ["thinking_not_logged"]
    for number, record in lines(kept.data, kept.artifact, _decode):
        saw(kept.artifact, _kind(record))
        reader.take(number, record)
    if reader.is_chat and not session.events:
        kept.artifact.note = "a draft: nothing was sent"
    else:
        yield reader.finish()


def _repeats(source: Input, kept: str) -> None:
    source.artifact.note = f"an earlier copy of {kept}, which counts"
    for _, record in lines(source.data, source.artifact, _decode):
        saw(source.artifact, _kind(record))
        saw(source.artifact, "repeated")


def _kind(record: Record) -> str:
    return ("conversation" if record.cursorChat is not None else record.role or record.type or "untyped")[:80]


def _blocks(message: Message | None) -> Sequence[Block]:
    if message is None or message.content is None:
        return ()
    return [Block(type="text", text=message.content)] if isinstance(message.content, str) else message.content


class _Reader:
    """One session in the making. Results carry no call id: each answers the oldest call without one."""

    def __init__(self, session: Session) -> None:
        self.builder = SessionBuilder(session, PROFILE)
        self._open: deque[str] = deque()
        self.is_chat = False
        self._model: str | None = None

    def take(self, number: int, record: Record) -> None:
        self.builder.line = number
        if record.cursorChat is not None:
            self._begin(record.cursorChat)
        elif record.is_summary:
            self.builder.event("compaction", _words(_blocks(record.message)))
        elif record.role == "user":
            self._user(_blocks(record.message))
        elif record.role == "assistant":
            self._assistant(_blocks(record.message), number, record.model or self._model)
        elif record.type == "turn_ended":
            self._ended(record)
        elif self.is_chat and record.role in ("system", "tool"):
            self._beside(_blocks(record.message), record.role)
        else:
            self.builder.event("unknown", _kind(record))

    def finish(self) -> Session:
        """A logged call has run. Where no results are logged at all, its edits are those it was asked to make."""
        calls = self.builder.session.tool_calls
        done = ("ok",) if any(call.status != "none" for call in calls) else ("none",)
        touched: set[str] = set()
        for call in calls:
            if call.class_ == "edit" and call.status in done:
                if call.name == "Delete":
                    self.builder.edit(call, None, "delete", [Hunk(added=0, whole_file=True)])
                else:
                    record_arguments(self.builder, call, touched)
            if call.path and call.class_ in ("edit", "read"):
                touched.add(call.path)
        return self.builder.finish()

    def _begin(self, about: dict[str, Any]) -> None:
        session, self.is_chat = self.builder.session, True
        session.title = nonempty(about.get("name"))
        session.parent_session_id = nonempty(inside(about, "subagentInfo", "parentAgentId"))
        session.started_at = logged_ms(about.get("createdAt"))
        self._model = model_of(about.get("lastUsedModel"))

    def _beside(self, blocks: Sequence[Block], role: str) -> None:
        """What a chat has besides its two sides: the system's prompt, and results."""
        for block in blocks:
            if block.type == "tool_result" and role == "tool":
                self._result(block)
            elif block.type == "text" and role == "system":
                self.builder.event("meta", block.text or "")
            else:
                self.builder.event("unknown", f"{role}: {block.type}"[:80])

    def _assistant(self, blocks: Sequence[Block], number: int, model: str | None) -> None:
        builder = self.builder
        step = builder.step(None, model_of(model))
        for n, block in enumerate(blocks):
            if block.type == "text":
                builder.event("text", block.text or "", step=step)
            elif block.type == "thinking":
                builder.event("thinking", block.thinking or block.text or "", step=step)
            elif block.type == "tool_use":
                self._call(block, f"{number}.{n}", step)
            elif block.type == "tool_result":
                self._result(block)
            else:
                builder.event("unknown", block.type[:80], step=step)

    def _call(self, block: Block, unnamed: str, step: Step) -> None:
        name, call_id = block.name or "", block.id or unnamed
        self._open.append(call_id)
        self.builder.call(call_id, name, bytes(block.input) or b"{}", PROFILE.tool(name), None, step)

    def _result(self, block: Block) -> None:
        call_id = block.tool_use_id or (self._open[0] if self._open else "")
        if call_id in self._open:
            self._open.remove(call_id)
        inner = block.content
        text = (inner if isinstance(inner, str) else _words(inner or ())) or block.text or ""
        tool = PROFILE.tool(block.name or "")
        code = exit_code(text) if self.is_chat and tool is not None and tool.class_ == "shell" else None
        self.builder.result(call_id, text, "error" if block.is_error else block.status, exit_code=code)

    def _user(self, blocks: Sequence[Block]) -> None:
        self.builder.unread((block.type for block in blocks), _OF_A_PERSON, None)
        for block in blocks:
            if block.type == "tool_result":
                self._result(block)
        text = _words([block for block in blocks if block.type == "text"]).strip()
        if text:
            self._prompt(text)
        elif any(block.type == "image" for block in blocks):
            self.builder.turn("attachment", "")

    def _prompt(self, text: str) -> None:
        """The words in `<user_query>`; without one (older versions) what is left after the blocks of context."""
        at = _time(text)
        start, stop = text.find(_QUERY), text.rfind(_END)
        if start >= 0:
            words = text[start + len(_QUERY) : stop if stop > start else len(text)].strip()
            around = (text[:start] + (text[stop + len(_END) :] if stop > start else "")).strip()
        else:
            around, words = _apart(text)
        if around:
            self.builder.event("meta", around, at)
        if words and (PROFILE.machine_kind(words) or self.builder.session.parent_session_id):
            self.builder.event("meta", words, at)
        elif words:
            self.builder.turn("prompt", words, at)

    def _ended(self, record: Record) -> None:
        if record.status == "aborted":
            self.builder.event("interrupt", record.error or "aborted")
        elif record.status == "error":
            self.builder.event("api_error", record.error or "error")


def _words(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if block.text)


def _apart(text: str) -> tuple[str, str]:
    """The blocks of context a message begins with, and the words after them."""
    end = 0
    while (block := _CONTEXT.match(text, end)) is not None:
        end = block.end()
    return text[:end].strip(), text[end:].strip()


def _time(text: str) -> int | None:
    """The time newer versions put before the words, to the minute; None when there is none."""
    match = _TIME.search(text)
    if match is None:
        return None
    hours, minutes = int(match.group(2) or 0), int(match.group(3) or 0)
    zone = timezone(timedelta(hours=hours, minutes=minutes if hours >= 0 else -minutes)) if abs(hours) < 24 else UTC
    try:
        moment = datetime.strptime(match.group(1), "%b %d, %Y, %I:%M %p").replace(tzinfo=zone)
    except ValueError:
        return None
    return (moment - EPOCH) // timedelta(microseconds=1)
