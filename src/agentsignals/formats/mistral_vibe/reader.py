"""The Vibe sessions of one family: chunks of history, journals, states and messages, put together by session."""

from __future__ import annotations

import posixpath
import re

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, trimmed
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import as_text, each, tally
from agentsignals.formats.documents import is_list as is_chunk
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.mistral_vibe import MESSAGES, PROFILE
from agentsignals.formats.records import UNREADABLE, document, lines, saw
from agentsignals.formats.usage import Tokens, close
from agentsignals.model import RAN, CallStatus, Step, ToolCall, logged_iso, logged_ms
from agentsignals.model import Session as ModelSession

# The entries, messages and states of a Vibe session as typed structs: only what is read.


class Part(Struct, gc=False):
    type: str = ""
    text: str | None = None


class Place(Struct, gc=False, kw_only=True):
    """A changed place of a file, by whole lines."""

    old_start_line: object = None
    new_start_line: object = None
    old_lines: list[str] = field(default_factory=list)
    new_lines: list[str] = field(default_factory=list)


class Replaced(Struct, gc=False):
    blocks: list[Place] = field(default_factory=list)


class Beside(Struct, gc=False):
    replaced: Replaced | None = field(default=None, name="mistralai.vibe.sdk.search_replace")


class Structured(Struct, gc=False, kw_only=True):
    """What a tool gave back, of whatever tool."""

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
    beside: Beside | None = field(default=None, name="_meta")


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
    """An entry of the history, of any type: it is written anew as it changes."""

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
    """Of an entry, or of something else that has none."""

    op: str = ""
    entry: Raw = Raw()


class Payload(Struct, gc=False):
    delta: list[Raw] = field(default_factory=list)


class Record(Struct, gc=False):
    """Of the journal."""

    type: str = ""
    payload: Payload | None = None


class TokenUsage(Struct, gc=False, rename="camel"):
    """`input_tokens` count the cached ones."""

    input_tokens: object = None
    output_tokens: object = None
    cached_input_tokens: object = None


class Session(Struct, gc=False, kw_only=True, rename="camel"):
    token_usage: TokenUsage | None = None
    parent_session_id: str | None = None
    title: str | None = None


class Snapshot(Struct, gc=False):
    session: Session | None = None


class Projection(Struct, gc=False, kw_only=True):
    """What the runtime last knew of a session."""

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


decode_entry = msgspec.json.Decoder(Entry).decode
decode_entries = msgspec.json.Decoder(list[Raw]).decode
decode_change = msgspec.json.Decoder(Change).decode
decode_record = msgspec.json.Decoder(Record).decode
decode_projection = msgspec.json.Decoder(Projection).decode
decode_meta = msgspec.json.Decoder(Meta).decode
decode_message = msgspec.json.Decoder(Message).decode
decode_structured = msgspec.json.Decoder(Structured).decode


def text_of(parts: list[Part]) -> str:
    """The texts joined."""
    return "\n".join(part.text for part in parts if part.text)


# One Vibe session in the making: entries of its history, or messages of versions before it had one.

_RETURNED = re.compile(r"^returncode: (-?\d{1,9})$", re.MULTILINE)
_READ = frozenset(("text", "image"))
"""Parts of a message or a result."""
_DENIED = "tool_denied"
_NOT_ENDED = frozenset(("pending", "running", "blocked", ""))


class History:
    """Adds entries or messages in order. A subagent's session is asked by another agent: no person talks in it."""

    def __init__(self, builder: SessionBuilder) -> None:
        self.builder = builder
        self._step: Step | None = None
        self._touched: set[str] = set()

    def entry(self, entry: Entry) -> None:
        builder, at = self.builder, logged_ms(entry.created_at)
        if entry.type == "message":
            self._words(entry, at)
        elif entry.type == "reasoning":
            builder.event("thinking", entry.text or "", at, self._step)
        elif entry.type == "effect":
            self._effect(entry, at)
        elif entry.type in ("notice", "callback"):
            builder.event("meta", entry.message or entry.type, at)
        elif entry.type == "checkpoint":
            is_compaction = "compact" in (entry.kind or "")
            builder.event("compaction" if is_compaction else "meta", entry.message or entry.kind, at)
        else:
            builder.event("unknown", entry.type[:80] or "entry without a type", at)

    def _words(self, entry: Entry, at: int | None) -> None:
        builder, text = self.builder, text_of(entry.content)
        builder.unread((part.type for part in entry.content), _READ, at)
        if entry.role == "assistant":
            self._step = builder.step(entry.id, None, at)
            builder.event("text", text, at, self._step)
        elif entry.role != "user" or entry.source == "harness" or builder.session.parent_session_id is not None:
            builder.event("meta", text, at)
        else:
            steered = entry.source == "turn_steer"
            builder.turn(("queued_prompt" if steered else "prompt") if text.strip() else "attachment", text, at)
            self._step = None

    def _effect(self, entry: Entry, at: int | None) -> None:
        detail, state = entry.detail, entry.state
        name = (detail.tool_name if detail is not None else "").rpartition(".")[2] or (detail.kind if detail else "")
        arguments = bytes(detail.input) if detail is not None and detail.input else b"{}"
        if self._step is None:  # it said nothing before it acted
            self._step = self.builder.step(f"before {entry.id}", None, at)
        call = self.builder.call(entry.id, name, arguments, PROFILE.tool(name), at, self._step)
        if state is None or state.status in _NOT_ENDED:
            return
        if state.output is not None:
            self.builder.unread((part.type for part in state.output.content), _READ, at)
        back = _structured(state)
        code = whole(back.returncode)
        self.builder.result(
            entry.id, _text(state, back), _status(state, back), logged_ms(entry.updated_at), exit_code=code
        )
        if call.status in RAN and call.class_ == "edit":
            self._edit(call, state)
        if call.path:
            self._touched.add(call.path)

    def _edit(self, call: ToolCall, state: State) -> None:
        beside = state.output.beside if state.output is not None else None
        hunks = [_hunk(place) for place in beside.replaced.blocks] if beside is not None and beside.replaced else []
        if hunks:
            self.builder.edit(call, None, "modify", [hunk for hunk in hunks if hunk is not None])
        else:
            record_arguments(self.builder, call, self._touched)

    def message(self, message: Message) -> None:
        """A message of the older form, which has no time."""
        builder, text = self.builder, as_text(message.content)
        if message.context_boundary is not None:
            builder.event("compaction", "{}")
        if message.manual_shell is not None:
            builder.event("user_shell", message.manual_shell.command)
            builder.event("command_output", message.manual_shell.output_text)
        elif message.role == "assistant":
            self._answer(message, text)
        elif message.role == "tool":
            self._result(message, text)
        elif message.role == "user" and not message.injected and builder.session.parent_session_id is None:
            builder.turn("prompt" if text.strip() else "attachment", text)
        elif message.role in ("user", "system"):
            builder.event("meta", text)
        else:
            builder.event("unknown", f"message of role {message.role}"[:80])

    def _answer(self, message: Message, text: str) -> None:
        step = self.builder.step(message.message_id, None)
        if thought := as_text(message.reasoning_content):
            self.builder.event("thinking", thought, None, step)
        if text:
            self.builder.event("text", text, None, step)
        for asked in message.tool_calls or ():
            if asked.function is None:
                self.builder.event("unknown", "call without a function", None, step)
            else:
                name, arguments = asked.function.name, as_text(asked.function.arguments)
                self.builder.call(asked.id, name, arguments or "{}", PROFILE.tool(name), None, step)

    def _result(self, message: Message, text: str) -> None:
        returned = _RETURNED.search(text[-400:])
        status: CallStatus = "error" if text.startswith("<tool_error>") else "ok"
        code = int(returned[1]) if returned else None
        call = self.builder.result(message.tool_call_id or "", text, status, exit_code=code)
        if call is not None and call.status in RAN and call.class_ == "edit":
            record_arguments(self.builder, call, self._touched)
        if call is not None and call.path:
            self._touched.add(call.path)


def _structured(state: State) -> Structured:
    raw = state.output.structured_content if state.output is not None else None
    try:
        return decode_structured(raw) if raw else Structured()
    except UNREADABLE:
        return Structured()


def _text(state: State, back: Structured) -> str:
    """What came back; of a file that was read the text stands in its structure alone."""
    if state.error is not None:
        return state.error.message or state.error.code
    printed = "\n".join(words for words in (back.stdout, back.stderr) if words)
    content = text_of(state.output.content) if state.output is not None else ""
    if printed or back.stdout is not None:
        return printed
    raw = state.output.structured_content if state.output is not None else b""
    return state.output_text or content or bytes(raw or b"").decode("utf-8", "replace") or state.reason


def _status(state: State, back: Structured) -> CallStatus:
    if state.status == "cancelled":
        return "cancelled"
    denied = state.error is not None and state.error.code == _DENIED
    if denied or state.status == "skipped":
        return "rejected" if state.approval_source in (None, "user") else "error"
    return "error" if state.status == "failed" or back.timed_out is True else "ok"


def _hunk(place: Place) -> Hunk | None:
    old, new = whole(place.old_start_line), whole(place.new_start_line)
    lines = [*(f"-{line}" for line in place.old_lines), *(f"+{line}" for line in place.new_lines)]
    return trimmed(old, new, lines) if old and new else None


_META = "meta.json"
_DISCARDED = "discarded"


class _Entry(Struct):
    """An entry as it was last written, and where it was."""

    entry: Entry
    artifact_id: str
    line: int

    @property
    def version(self) -> tuple[float, int]:
        at = self.entry.updated_at
        return (at if isinstance(at, int | float) else 0, len(self.entry.state.status) if self.entry.state else 0)


class _Parts(Struct, kw_only=True):
    """What the files say of one session."""

    first: Input
    folder: str | None = None
    """Of its `meta.json`."""
    entries: dict[str, _Entry] = field(default_factory=dict)
    messages: list[tuple[Input, int, Message]] = field(default_factory=list)
    meta: Meta = field(default_factory=Meta)
    projection: Projection = field(default_factory=Projection)


def read(inputs: list[Input]) -> Reading:
    """All files of one family. Chunks repeat what earlier ones held: an entry counts as it was last written."""
    sessions: dict[str, _Parts] = {}
    inputs = sorted(inputs, key=lambda i: i.artifact.path)
    for source in inputs:
        folder, name = posixpath.split(source.artifact.path)
        if name == _META and (meta := document(source.data, source.artifact, decode_meta)) is not None:
            saw(source.artifact, "meta")
            parts = sessions.setdefault(meta.session_id or folder, _Parts(first=source))
            parts.meta, parts.folder = meta, folder
    for source in inputs:
        if posixpath.basename(source.artifact.path) != _META:
            _take(source, sessions)
    made = [_session(session_id, parts) for session_id, parts in sorted(sessions.items())]
    return Reading([session for session in made if session.events])


def _take(source: Input, sessions: dict[str, _Parts]) -> None:
    folder, name = posixpath.split(source.artifact.path)
    if name == MESSAGES:
        beside = next((i for i, parts in sessions.items() if parts.folder == folder), None)
        session_id = beside or source.session_hint or source.artifact.artifact_id
        parts = sessions.setdefault(session_id, _Parts(first=source))
        for number, message in lines(source.data, source.artifact, decode_message):
            saw(source.artifact, f"message.{message.role}"[:80])
            parts.messages.append((source, number, message))
    elif is_chunk(source.data):
        raws = document(source.data, source.artifact, decode_entries)
        if raws is not None:
            source.artifact.records -= 1  # its entries are
            entries = each(raws, decode_entry, source.artifact)
            tally(source.artifact, "entry", [None if e is None else e.type[:80] for e in entries])
            for number, entry in enumerate(entries, 1):
                if entry is not None:
                    _keep(entry, source, number, sessions)
    elif posixpath.basename(folder) == "journal":
        for number, record in lines(source.data, source.artifact, decode_record):
            saw(source.artifact, f"journal.{record.type}"[:80])
            if record.payload is not None:
                _change(record.payload.delta, source, number, sessions)
    else:
        state = document(source.data, source.artifact, decode_projection)
        if state is not None:
            saw(source.artifact, "projection")
            parts = sessions.setdefault(state.session_id, _Parts(first=source))
            if state.snapshot_sequence >= parts.projection.snapshot_sequence:
                parts.projection = state


def _change(delta: list[Raw], source: Input, number: int, sessions: dict[str, _Parts]) -> None:
    """Keeps the entries that a record of the journal puts there. Each change is counted by what it does."""
    changes = each(delta, decode_change, source.artifact)
    done: list[str | None] = [None if change is None else change.op[:80] for change in changes]
    for n, change in enumerate(changes):
        if change is not None and change.entry:
            (entry,) = each([change.entry], decode_entry, source.artifact)
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


def _session(session_id: str, parts: _Parts) -> ModelSession:
    meta = parts.meta
    state = parts.projection.snapshot.session if parts.projection.snapshot is not None else None
    session = parts.first.session(session_id, "mistral-vibe", PROFILE.agent)
    builder = SessionBuilder(session, PROFILE)
    session.parent_session_id = meta.parent_session_id or (state.parent_session_id if state is not None else None)
    session.title = meta.title or (state.title if state is not None else None)
    session.model = meta.model or (meta.config.model_name if meta.config is not None else None)
    where = meta.environment.working_directory if meta.environment is not None else None
    builder.where(meta.origin_directory or where, meta.git_branch)  # a session may move
    history = History(builder)
    for kept in sorted(parts.entries.values(), key=_began):
        builder.artifact_id, builder.line = kept.artifact_id, kept.line
        if kept.entry.outcome is None or kept.entry.outcome.type != _DISCARDED:
            history.entry(kept.entry)
    for source, number, message in parts.messages if not parts.entries else ():
        builder.artifact_id, builder.line = source.artifact.artifact_id, number
        history.message(message)
    for step in session.steps:
        step.model = session.model
    _close(builder, parts)
    session.started_at, ended = logged_iso(meta.start_time), logged_iso(meta.end_time)
    made = builder.finish()
    made.ended_at = made.ended_at or ended
    return made


def _began(kept: _Entry) -> float:
    at = kept.entry.created_at
    return at if isinstance(at, int | float) else 0


def _close(builder: SessionBuilder, parts: _Parts) -> None:
    """TokenUsage are told of the session alone. Those of older versions do not say how many were cached."""
    snapshot, stats = parts.projection.snapshot, parts.meta.stats
    tokens = snapshot.session.token_usage if snapshot is not None and snapshot.session is not None else None
    if tokens is not None:
        prompt, cached = count(tokens.input_tokens), count(tokens.cached_input_tokens)
        fresh = None if prompt is None else max(prompt - (cached or 0), 0)
        used = Tokens(fresh, count(tokens.output_tokens), cached)
    elif stats is not None:
        used = Tokens(count(stats.session_prompt_tokens), count(stats.session_completion_tokens))
    else:
        return
    if any(used):
        step = close(builder, builder.session.model, used)
        if stats is not None and (paid := amount(stats.session_cost)):
            step.cost_usd, step.cost_source = paid, "recorded"
