"""Reads Antigravity transcripts. The records of a session's files are united by their index."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.formats import ANSWERS, ASKS, Input, Reading
from agentsignals.formats.antigravity import PROFILE, session_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.profile import tagged, without_tagged
from agentsignals.formats.records import decoded, decoder, inside, lines, saw, string
from agentsignals.model import CallStatus, EventKind, Session, logged_iso


class Call(Struct, gc=False):
    name: str = ""
    args: Any = None


class Record(Struct, gc=False, kw_only=True):
    step_index: int = 0
    source: str = ""
    type: str = ""
    status: str = ""
    created_at: str | None = None
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None
    error: Any = None


_TIMES = re.compile(r"\A(?:(Created|Completed) At: (\S+)[ \t]*\n+)+")
_COMPLETED = re.compile(r"Completed At: (\S+)")
_CHOSEN = re.compile(r"`?Model Selection`? from (?:.*?) to `?([^`\n]+?)`?\.(?:\s|<|\Z)")
_TAGS = re.compile(r"<([A-Z][A-Z_]+)>")
_CHILD = re.compile(r'"conversationId":\s*"([\w-]{8,})"')
_STATUS: dict[str, CallStatus] = {
    "DONE": "ok", "ERROR": "error", "CANCELED": "cancelled", "CANCELLED": "cancelled", "REJECTED": "rejected",
}  # fmt: skip
_ENDED = re.compile(r"The command (?:(completed successfully)|failed(?: with exit code:? (-?\d+))?)")
_OF_SYSTEM: dict[str, EventKind] = {"CHECKPOINT": "compaction", "ERROR_MESSAGE": "api_error"}
_TOOLS_OF = {
    "LIST_DIRECTORY": {"list_dir"},
    "CODE_ACTION": {"write_to_file", "replace_file_content", "multi_replace_file_content"},
}
"""Tools by the type of their results, where this is not the tool's name in capitals."""
_ANSWERS = ("PLANNER_RESPONSE", "GENERATE_RESPONSE")


def read(inputs: list[Input]) -> Reading:
    """Read a group of files: a session each, and those of the subagents that it started."""
    reading = Reading()
    parents: dict[str, str] = {}
    sessions = by_session(inputs, _File)
    for session_id, files in sessions.items():
        started = {child for file in files for child in file.children}
        parents |= {child: session_id for child in started if child != session_id}
        reading.keys |= {f"{ANSWERS}antigravity {session_id}", *(f"{ASKS}antigravity {child}" for child in started)}
    for session_id, files in sorted(sessions.items()):
        reader = Reader(files[0].source.session(session_id, "antigravity", PROFILE.agent))
        reader.session.parent_session_id = parents.get(session_id)
        reader.is_subagent = session_id in parents
        records = list(once(files, lambda file: file.records, lambda record: str(record.step_index)))
        for file, number, record in sorted(records, key=lambda placed: placed[2].step_index):
            reader.builder.artifact_id, reader.builder.line = file.source.artifact.artifact_id, number
            reader.take(record)
        reading.sessions.append(reader.builder.finish())
    return reading


class _File:
    """The decoded records of one file. The fuller of two files comes first."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.records = list(lines(source.data, source.artifact, decoder(Record).decode))
        for _, record in self.records:
            saw(source.artifact, record.type[:80] or "untyped")
        self.session_id = session_of(source.artifact.path) or source.session_hint or source.artifact.artifact_id
        self.children = [
            child for _, record in self.records if record.type == "INVOKE_SUBAGENT" and record.source == "MODEL"
            for child in _CHILD.findall(record.content or "")
        ]  # fmt: skip
        self.order = (-len(source.data), source.artifact.sha256)


class Reader(Conversation):
    profile = PROFILE

    model: str | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.open: list[tuple[str, str]] = []
        """Ids and names of calls without a result, oldest first."""

    def take(self, record: Record) -> None:
        at = logged_iso(record.created_at)
        if record.source.startswith("USER"):
            self.said(record, at)
        elif record.source == "SYSTEM":
            self.event(_OF_SYSTEM.get(record.type, "meta"), record.content, at)
        elif record.source != "MODEL":
            self.event("unknown", f"step of source {record.source or 'unknown'}"[:80], at)
        elif record.tool_calls or record.type in _ANSWERS:
            self.answer(record, at)
        else:
            self.answered(record, at)

    def said(self, record: Record, at: int | None) -> None:
        """The person's words are inside a tag, next to what the program adds."""
        content = record.content or ""
        if (chosen := _CHOSEN.search(tagged(content, "USER_SETTINGS_CHANGE") or "")) is not None:
            self.model = self.builder.model_changed(self.model, chosen[1], at)
        words = tagged(content, "USER_REQUEST")
        if words is None:
            words = without_tagged(content, _TAGS).strip()
        if record.type != "USER_INPUT" or record.source != "USER_EXPLICIT":
            self.event("meta", content, at)
        elif words:
            self.prompt(words, at)

    def answer(self, record: Record, at: int | None) -> None:
        step = self.builder.step(f"step {record.step_index}", self.model, at)
        if record.thinking:
            self.event("thinking", record.thinking, at, step)
        if record.content:
            self.event("text", record.content, at, step)
        for n, call in enumerate(record.tool_calls or ()):
            call_id, name = f"{record.step_index}.{n}", call.name.removeprefix("default_api:")
            arguments: Any = call.args if call.args is not None else {}
            if isinstance(arguments, dict):  # some versions write each value as JSON text
                arguments = {argument: _plain(value) for argument, value in arguments.items()}
            self.builder.where(self.session.cwd or string(inside(arguments, "Cwd")))
            self.call(call_id, name, msgspec.json.encode(arguments), at, step)
            self.open.append((call_id, name))
        if record.status == "ERROR":
            self.event("api_error", record.content or "", at, step)
        elif record.status in ("CANCELED", "CANCELLED"):
            self.event("interrupt", "", at, step)

    def answered(self, record: Record, at: int | None) -> None:
        """Take a result. It names no call, only its tool: the oldest call of that tool without a result is answered. A
        type that is no known tool's answers the oldest call."""
        text = record.content or ("" if record.error is None else str(record.error))
        own = _TOOLS_OF.get(record.type, {record.type.lower()})
        is_known = not own.isdisjoint(PROFILE.tools)
        named = next((n for n, (_, name) in enumerate(self.open) if name in own or not is_known), None)
        if named is None:
            self.event("unknown", f"result without a call: {record.type}"[:80], at)
            return
        call_id, _ = self.open.pop(named)
        completed = None
        if (header := _TIMES.match(text)) is not None:
            completed, text = _COMPLETED.search(header[0]), text[header.end() :]
        status = _STATUS.get(record.status, "unknown")
        code = None
        if self.is_command(call_id) and (ended := _ENDED.match(text)) is not None:
            status = "ok" if ended[1] and status == "ok" else "error"
            code = 0 if ended[1] else int(ended[2]) if ended[2] else None
        self.result(call_id, text, status, (logged_iso(completed[1]) if completed else None) or at, code=code)


def _plain(value: Any) -> Any:
    if not isinstance(value, str) or value[:1] not in ('"', "[", "{"):
        return value
    inner = decoded(value.encode("utf-8", "surrogatepass"), Any)
    return value if inner is None else inner
