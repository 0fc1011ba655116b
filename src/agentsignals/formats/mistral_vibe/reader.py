"""Reads Vibe sessions from history chunks, journals, states and messages. The structs hold only the fields that are
read."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, trimmed
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, whole
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import as_text, each, tally
from agentsignals.formats.documents import is_list as is_chunk
from agentsignals.formats.mistral_vibe import MESSAGES, PROFILE
from agentsignals.formats.records import decoded, decoder, document, lines, saw
from agentsignals.formats.usage import Tokens, close, tokens_of
from agentsignals.model import CallStatus, Session, Step, ToolCall, logged_iso, logged_ms


class Part(Struct, gc=False):
    type: str = ""
    text: str | None = None


class Place(Struct, gc=False, kw_only=True):
    """A changed place of a file, in whole lines."""

    old_start_line: object = None
    new_start_line: object = None
    old_lines: list[str] = field(default_factory=list)
    new_lines: list[str] = field(default_factory=list)


class Replaced(Struct, gc=False):
    blocks: list[Place] = field(default_factory=list)


class OutputMeta(Struct, gc=False):
    replaced: Replaced | None = field(default=None, name="mistralai.vibe.sdk.search_replace")


class Structured(Struct, gc=False, kw_only=True):
    """Structured output of a tool, whatever tool it is."""

    returncode: object = None
    stdout: str | None = None
    stderr: str | None = None
    timed_out: object = None


class Failure(Struct, gc=False):
    code: str = ""
    message: str = ""


class Output(Struct, gc=False, kw_only=True):
    content: list[Part] = field(default_factory=list)
    structured_content: Raw = Raw()
    meta: OutputMeta | None = field(default=None, name="_meta")


class State(Struct, gc=False, kw_only=True, rename="camel"):
    status: str = ""
    output: Output | None = None
    output_text: str = ""
    error: Failure | None = None
    reason: str = ""
    approval_source: str | None = None


class Detail(Struct, gc=False, kw_only=True, rename="camel"):
    kind: str = ""
    tool_name: str = ""
    input: Raw = Raw()


class Outcome(Struct, gc=False):
    type: str = ""


class Entry(Struct, gc=False, kw_only=True, rename="camel"):
    """An entry of the history, of any type. It is written again as it changes."""

    id: str
    session_id: str
    type: str = ""
    created_at: object = None
    updated_at: object = None
    role: str | None = None
    source: str | None = None
    content: list[Part] = field(default_factory=list)
    text: str | None = None
    message: str | None = None
    kind: str | None = None
    outcome: Outcome | None = None
    detail: Detail | None = None
    state: State | None = None


class Change(Struct, gc=False):
    """A change of an entry, or of something without one."""

    op: str = ""
    entry: Raw = Raw()


class Payload(Struct, gc=False):
    delta: list[Raw] = field(default_factory=list)


class Record(Struct, gc=False):
    """A record of the journal."""

    type: str = ""
    payload: Payload | None = None


class TokenUsage(Struct, gc=False, rename="camel"):
    """`input_tokens` includes cached ones."""

    input_tokens: object = None
    output_tokens: object = None
    cached_input_tokens: object = None


class SessionState(Struct, gc=False, kw_only=True, rename="camel"):
    token_usage: TokenUsage | None = None
    parent_session_id: str | None = None
    title: str | None = None


class Snapshot(Struct, gc=False):
    session: SessionState | None = None


class Projection(Struct, gc=False, kw_only=True):
    """The last state of a session."""

    session_id: str = ""
    snapshot_sequence: int = 0
    snapshot: Snapshot | None = None


class Environment(Struct, gc=False):
    working_directory: str | None = None


class Config(Struct, gc=False):
    model_name: str | None = None


class Stats(Struct, gc=False, kw_only=True):
    session_prompt_tokens: object = None
    session_completion_tokens: object = None
    session_cost: object = None


class Meta(Struct, gc=False, kw_only=True):
    session_id: str = ""
    parent_session_id: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    git_branch: str | None = None
    environment: Environment | None = None
    origin_directory: str | None = None
    title: str | None = None
    config: Config | None = None
    model: str | None = None
    stats: Stats | None = None


class Function(Struct, gc=False):
    name: str = ""
    arguments: object = None


class Call(Struct, gc=False):
    id: str = ""
    function: Function | None = None


class Shell(Struct, gc=False, kw_only=True):
    """A command that the person ran."""

    command: str = ""
    output_text: str = ""


class Message(Struct, gc=False, kw_only=True):
    """A line of `messages.jsonl`."""

    role: str = ""
    content: object = None
    message_id: str | None = None
    reasoning_content: object = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    injected: object = None
    manual_shell: Shell | None = None
    context_boundary: str | None = None


_RETURN_CODE = re.compile(r"^returncode: (-?\d{1,9})$", re.MULTILINE)
_PARTS = frozenset(("text", "image"))
_DENIED = "tool_denied"
_RUNNING = frozenset(("pending", "running", "blocked", ""))
_META = "meta.json"
_DISCARDED = "discarded"


class _Entry(Struct):
    """The last version of an entry, and its place."""

    entry: Entry
    artifact_id: str
    line: int

    @property
    def version(self) -> tuple[float, int]:
        at = self.entry.updated_at
        return (at if isinstance(at, int | float) else 0, len(self.entry.state.status) if self.entry.state else 0)


class _Parts(Struct, kw_only=True):
    """The records of one session."""

    first: Input
    folder: str | None = None
    """Folder of its `meta.json`."""
    entries: dict[str, _Entry] = field(default_factory=dict)
    messages: list[tuple[Input, int, Message]] = field(default_factory=list)
    meta: Meta = field(default_factory=Meta)
    projection: Projection = field(default_factory=Projection)


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Chunks repeat earlier ones: the last version of an entry counts."""
    sessions: dict[str, _Parts] = {}
    inputs = sorted(inputs, key=lambda i: i.artifact.path)
    for source in inputs:
        folder, name = posixpath.split(source.artifact.path)
        if name == _META and (meta := document(source.data, source.artifact, decoder(Meta).decode)) is not None:
            saw(source.artifact, "meta")
            parts = sessions.setdefault(meta.session_id or folder, _Parts(first=source))
            parts.meta, parts.folder = meta, folder
    for source in inputs:
        if posixpath.basename(source.artifact.path) != _META:
            _take(source, sessions)
    read = [_session(session_id, parts) for session_id, parts in sorted(sessions.items())]
    return Reading([session for session in read if session.events])


def _take(source: Input, sessions: dict[str, _Parts]) -> None:
    folder, name = posixpath.split(source.artifact.path)
    if name == MESSAGES:
        session_id = next((i for i, parts in sessions.items() if parts.folder == folder), None)
        session_id = session_id or source.session_hint or source.artifact.artifact_id
        parts = sessions.setdefault(session_id, _Parts(first=source))
        for number, message in lines(source.data, source.artifact, decoder(Message).decode):
            saw(source.artifact, f"message.{message.role}"[:80])
            parts.messages.append((source, number, message))
    elif is_chunk(source.data):
        raws = document(source.data, source.artifact, decoder(list[Raw]).decode)
        if raws is not None:
            source.artifact.records -= 1  # its entries are
            entries = each(raws, decoder(Entry).decode, source.artifact)
            tally(source.artifact, "entry", [None if e is None else e.type[:80] for e in entries])
            for number, entry in enumerate(entries, 1):
                if entry is not None:
                    _keep(entry, source, number, sessions)
    elif posixpath.basename(folder) == "journal":
        for number, record in lines(source.data, source.artifact, decoder(Record).decode):
            saw(source.artifact, f"journal.{record.type}"[:80])
            if record.payload is not None:
                _change(record.payload.delta, source, number, sessions)
    else:
        state = document(source.data, source.artifact, decoder(Projection).decode)
        if state is not None:
            saw(source.artifact, "projection")
            parts = sessions.setdefault(state.session_id, _Parts(first=source))
            if state.snapshot_sequence >= parts.projection.snapshot_sequence:
                parts.projection = state


def _change(delta: list[Raw], source: Input, number: int, sessions: dict[str, _Parts]) -> None:
    """Keep the entries that a record of the journal changes. Each change is counted by its operation."""
    changes = each(delta, decoder(Change).decode, source.artifact)
    done: list[str | None] = [None if change is None else change.op[:80] for change in changes]
    for n, change in enumerate(changes):
        if change is not None and change.entry:
            (entry,) = each([change.entry], decoder(Entry).decode, source.artifact)
            if entry is not None:
                _keep(entry, source, number, sessions)
            else:
                done[n] = None
    tally(source.artifact, "change", done)


def _keep(entry: Entry, source: Input, number: int, sessions: dict[str, _Parts]) -> None:
    parts = sessions.setdefault(entry.session_id, _Parts(first=source))
    fresh = _Entry(entry, source.artifact.artifact_id, number)
    earlier = parts.entries.get(entry.id)
    if earlier is None or fresh.version >= earlier.version:
        parts.entries[entry.id] = fresh


def _session(session_id: str, parts: _Parts) -> Session:
    meta = parts.meta
    state = parts.projection.snapshot.session if parts.projection.snapshot is not None else None
    session = parts.first.session(session_id, "mistral-vibe", PROFILE.agent)
    session.parent_session_id = meta.parent_session_id or (state.parent_session_id if state is not None else None)
    session.title = meta.title or (state.title if state is not None else None)
    session.model = meta.model or (meta.config.model_name if meta.config is not None else None)
    reader = Reader(session)
    reader.is_subagent = session.parent_session_id is not None
    builder = reader.builder
    where = meta.environment.working_directory if meta.environment is not None else None
    builder.where(meta.origin_directory or where, meta.git_branch)  # a session may move
    for latest in sorted(parts.entries.values(), key=lambda latest: _time(latest.entry.created_at)):
        builder.artifact_id, builder.line = latest.artifact_id, latest.line
        if latest.entry.outcome is None or latest.entry.outcome.type != _DISCARDED:
            reader.entry(latest.entry)
    for source, number, message in parts.messages if not parts.entries else ():
        builder.artifact_id, builder.line = source.artifact.artifact_id, number
        reader.message(message)
    for step in session.steps:
        step.model = session.model
    # Tokens are logged for the session alone. Older versions do not log how many were cached.
    if state is not None and state.token_usage is not None:
        tokens = tokens_of(state.token_usage)
    else:
        stats = meta.stats or Stats()
        tokens = Tokens(count(stats.session_prompt_tokens), count(stats.session_completion_tokens))
    if any(tokens):
        step = close(builder, session.model, tokens)
        if meta.stats is not None and (cost := amount(meta.stats.session_cost)):
            step.cost_usd, step.cost_source = cost, "recorded"
    session.started_at = logged_iso(meta.start_time)
    builder.finish()
    session.ended_at = session.ended_at or logged_iso(meta.end_time)
    return session


def _time(at: object) -> float:
    return at if isinstance(at, int | float) else 0


class Reader(Conversation):
    """Entries, or messages of versions before 3.0."""

    profile = PROFILE
    step: Step | None = None

    def entry(self, entry: Entry) -> None:
        at = logged_ms(entry.created_at)
        if entry.type == "message":
            text = _text(entry.content)
            self.builder.unread((part.type for part in entry.content), _PARTS, at)
            if entry.role == "assistant":
                self.step = self.builder.step(entry.id, None, at)
                self.event("text", text, at, self.step)
            elif entry.role != "user" or entry.source == "harness" or self.is_subagent:
                self.event("meta", text, at)
            else:
                steered = entry.source == "turn_steer"
                self.builder.turn(
                    ("queued_prompt" if steered else "prompt") if text.strip() else "attachment", text, at
                )
                self.step = None
        elif entry.type == "reasoning":
            self.event("thinking", entry.text or "", at, self.step)
        elif entry.type == "effect":
            self.effect(entry, at)
        elif entry.type in ("notice", "callback"):
            self.event("meta", entry.message or entry.type, at)
        elif entry.type == "checkpoint":
            is_compaction = "compact" in (entry.kind or "")
            self.event("compaction" if is_compaction else "meta", entry.message or entry.kind, at)
        else:
            self.event("unknown", entry.type[:80] or "entry without a type", at)

    def effect(self, entry: Entry, at: int | None) -> None:
        detail, state = entry.detail or Detail(), entry.state
        name = detail.tool_name.rpartition(".")[2] or detail.kind
        if self.step is None:  # it said nothing before it acted
            self.step = self.builder.step(f"before {entry.id}", None, at)
        self.call(entry.id, name, bytes(detail.input), at, self.step)
        if state is None or state.status in _RUNNING:
            return
        output = state.output or Output()
        self.builder.unread((part.type for part in output.content), _PARTS, at)
        structured = decoded(output.structured_content, Structured) or Structured()
        printed = "\n".join(text for text in (structured.stdout, structured.stderr) if text)
        if state.error is not None:
            text = state.error.message or state.error.code
        elif printed or structured.stdout is not None:
            text = printed
        else:  # the text of a file that was read is in the structure alone
            raw = bytes(output.structured_content).decode("utf-8", "replace")
            text = state.output_text or _text(output.content) or raw or state.reason
        status = _status(state, structured)
        self.result(entry.id, text, status, logged_ms(entry.updated_at), output, whole(structured.returncode))

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        meta = detail.meta if detail is not None else None
        places = meta.replaced.blocks if meta is not None and meta.replaced is not None else ()
        if places:
            self.builder.edit(call, None, "modify", [hunk for place in places if (hunk := _hunk(place)) is not None])
        return bool(places)

    def message(self, message: Message) -> None:
        """Read a message of the older form, which has no time."""
        text = as_text(message.content)
        if message.context_boundary is not None:
            self.event("compaction", "{}")
        if message.manual_shell is not None:
            self.event("user_shell", message.manual_shell.command)
            self.event("command_output", message.manual_shell.output_text)
        elif message.role == "assistant":
            step = self.builder.step(message.message_id, None)
            if thought := as_text(message.reasoning_content):
                self.event("thinking", thought, None, step)
            if text:
                self.event("text", text, None, step)
            for call in message.tool_calls or ():
                if call.function is None:
                    self.event("unknown", "call without a function", None, step)
                else:
                    self.call(call.id, call.function.name, as_text(call.function.arguments), None, step)
        elif message.role == "tool":
            returned = _RETURN_CODE.search(text[-400:])
            status: CallStatus = "error" if text.startswith("<tool_error>") else "ok"
            code = int(returned[1]) if returned else None
            self.result(message.tool_call_id or "", text, status, None, None, code)
        elif message.role == "user" and not message.injected and not self.is_subagent:
            self.builder.turn("prompt" if text.strip() else "attachment", text)
        elif message.role in ("user", "system"):
            self.event("meta", text)
        else:
            self.event("unknown", f"message of role {message.role}"[:80])


def _text(parts: list[Part]) -> str:
    return "\n".join(part.text for part in parts if part.text)


def _status(state: State, structured: Structured) -> CallStatus:
    if state.status == "cancelled":
        return "cancelled"
    if state.status == "skipped" or (state.error is not None and state.error.code == _DENIED):
        return "rejected" if state.approval_source in (None, "user") else "error"
    return "error" if state.status == "failed" or structured.timed_out is True else "ok"


def _hunk(place: Place) -> Hunk | None:
    old, new = whole(place.old_start_line), whole(place.new_start_line)
    lines = [*(f"-{line}" for line in place.old_lines), *(f"+{line}" for line in place.new_lines)]
    return trimmed(old, new, lines) if old and new else None
