"""Reads Vibe sessions from history chunks, journals, states, messages. The structs hold only fields that are read."""

import posixpath
import re
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, whole
from agentsignals.formats.builder import Tokens, close, place, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import Part, each, tally, texts_of
from agentsignals.formats.documents import is_list as is_chunk
from agentsignals.formats.mistral_vibe import MESSAGES, PROFILE
from agentsignals.formats.records import as_list, as_text, decoded, decoder, document, inside, lines, saw, string
from agentsignals.model import CallStatus, Session, Step, ToolCall, TurnKind, logged_iso, logged_ms


class Structured(Struct, gc=False, kw_only=True):
    returncode: object = None
    stdout: str | None = None
    stderr: str | None = None
    timed_out: object = None


class Output(Struct, gc=False, kw_only=True):
    content: list[Part] = field(default_factory=list)
    structured_content: Raw = Raw()
    meta: dict[str, Raw] | None = field(default=None, name="_meta")


class State(Struct, gc=False, kw_only=True, rename="camel"):
    status: str = ""
    output: Output | None = None
    output_text: str = ""
    error: dict[str, Any] | None = None
    reason: str = ""
    approval_source: str | None = None


class Detail(Struct, gc=False, kw_only=True, rename="camel"):
    kind: str = ""
    tool_name: str = ""
    input: Raw = Raw()


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
    outcome: dict[str, Any] | None = None
    detail: Detail | None = None
    state: State | None = None

    @property
    def created(self) -> float:
        return self.created_at if isinstance(self.created_at, int | float) else 0

    @property
    def version(self) -> tuple[float, int]:
        updated = self.updated_at if isinstance(self.updated_at, int | float) else 0
        return updated, len(self.state.status) if self.state else 0


class Change(Struct, gc=False):
    """A change of an entry, or of something without one."""

    op: str = ""
    entry: Raw = Raw()


class Record(Struct, gc=False):
    type: str = ""
    payload: dict[str, Raw] | None = None


class Message(Struct, gc=False, kw_only=True):
    """A line of `messages.jsonl`."""

    role: str = ""
    content: object = None
    message_id: str | None = None
    reasoning_content: object = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    injected: object = None
    manual_shell: dict[str, Any] | None = None
    """A command that the person ran."""
    context_boundary: str | None = None


_RETURN_CODE = re.compile(r"^returncode: (-?\d{1,9})$", re.MULTILINE)
_PARTS = frozenset(("text", "image"))
_DENIED = "tool_denied"
_RUNNING = frozenset(("pending", "running", "blocked", ""))
_META = "meta.json"
_DISCARDED = "discarded"


class _Parts(Struct, kw_only=True):
    first: Input
    folder: str | None = None
    """Folder of its `meta.json`."""
    entries: dict[str, tuple[Entry, str, int]] = field(default_factory=dict)
    """The last version of each entry, with its file and line."""
    messages: list[tuple[Input, int, Message]] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    """The last state of the session."""
    n_states: int = 0

    def keep(self, entry: Entry, source: Input, line: int) -> None:
        earlier = self.entries.get(entry.id)
        if earlier is None or entry.version >= earlier[0].version:
            self.entries[entry.id] = entry, source.artifact.artifact_id, line


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Chunks repeat earlier ones: the last version of an entry counts."""
    sessions: dict[str, _Parts] = {}

    def parts_of(session_id: str, source: Input) -> _Parts:
        return sessions.setdefault(session_id, _Parts(first=source))

    def keep(raws: list[Raw], source: Input, line: int | None) -> list[Entry | None]:
        """Keep the entries of a chunk, which are numbered, or of a change in that line of the journal."""
        entries = each(raws, decoder(Entry).decode, source.artifact)
        for number, entry in enumerate(entries, 1):
            if entry is not None:
                parts_of(entry.session_id, source).keep(entry, source, number if line is None else line)
        return entries

    inputs = sorted(inputs, key=lambda i: (posixpath.basename(i.artifact.path) != _META, i.artifact.path))
    for source in inputs:
        artifact = source.artifact
        folder, name = posixpath.split(artifact.path)
        if name == _META:
            meta = document(source.data, artifact, decoder(dict[str, Any]).decode)
            if meta is not None:
                saw(artifact, "meta")
                parts = parts_of(string(meta.get("session_id")) or folder, source)
                parts.meta, parts.folder = meta, folder
        elif name == MESSAGES:
            session_id = next((i for i, parts in sessions.items() if parts.folder == folder), None)
            parts = parts_of(session_id or source.session_hint or artifact.artifact_id, source)
            for number, message in lines(source.data, artifact, decoder(Message).decode):
                saw(artifact, f"message.{message.role}"[:80])
                parts.messages.append((source, number, message))
        elif is_chunk(source.data):
            raws = document(source.data, artifact, decoder(list[Raw]).decode)
            if raws is not None:
                artifact.records -= 1  # its entries are
                tally(artifact, "entry", [None if e is None else e.type[:80] for e in keep(raws, source, None)])
        elif posixpath.basename(folder) == "journal":
            for number, record in lines(source.data, artifact, decoder(Record).decode):
                saw(artifact, f"journal.{record.type}"[:80])
                done: list[str | None] = []
                delta = decoded((record.payload or {}).get("delta"), list[Raw]) or []
                for change in each(delta, decoder(Change).decode, artifact):
                    is_read = change is not None and None not in keep(
                        [change.entry] if change.entry else [], source, number
                    )
                    done.append(change.op[:80] if change is not None and is_read else None)
                tally(artifact, "change", done)
        elif (projection := document(source.data, artifact, decoder(dict[str, Any]).decode)) is not None:
            saw(artifact, "projection")
            parts = parts_of(string(projection.get("session_id")) or "", source)
            n_states = whole(projection.get("snapshot_sequence")) or 0
            if n_states >= parts.n_states:
                state = inside(projection, "snapshot", "session")
                parts.state, parts.n_states = state if isinstance(state, dict) else {}, n_states
    read = [_session(session_id, parts) for session_id, parts in sorted(sessions.items())]
    return Reading([session for session in read if session.events])


def _session(session_id: str, parts: _Parts) -> Session:
    """Put a session together from its metadata, state, and entries or messages."""
    meta, state = parts.meta, parts.state
    session = parts.first.session(session_id, "mistral-vibe", PROFILE.agent)
    session.parent_session_id = string(meta.get("parent_session_id")) or string(state.get("parentSessionId"))
    session.title = string(meta.get("title")) or string(state.get("title"))
    session.model = string(meta.get("model")) or string(inside(meta, "config", "model_name"))
    reader = Reader(session)
    reader.is_subagent = session.parent_session_id is not None
    builder = reader.builder
    where = string(meta.get("origin_directory")) or string(inside(meta, "environment", "working_directory"))
    builder.where(where, string(meta.get("git_branch")))  # a session may move
    for entry, builder.artifact_id, builder.line in sorted(parts.entries.values(), key=lambda kept: kept[0].created):
        if inside(entry.outcome, "type") != _DISCARDED:
            reader.entry(entry)
    for source, builder.line, message in parts.messages if not parts.entries else ():
        builder.artifact_id = source.artifact.artifact_id
        reader.message(message)
    for step in session.steps:
        step.model = session.model
    # Tokens are logged for the session alone. Older versions do not log how many were cached.
    stats = meta.get("stats")
    prompted, completed = inside(stats, "session_prompt_tokens"), inside(stats, "session_completion_tokens")
    usage = state.get("tokenUsage")
    tokens = tokens_of(usage) if isinstance(usage, dict) else Tokens(count(prompted), count(completed))
    if any(tokens):
        step = close(builder, session.model, tokens)
        if cost := amount(inside(stats, "session_cost")):
            step.cost_usd, step.cost_source = cost, "recorded"
    session.started_at = logged_iso(string(meta.get("start_time")))
    builder.finish()
    session.ended_at = session.ended_at or logged_iso(string(meta.get("end_time")))
    return session


class Reader(Conversation):
    """Entries, or messages of versions before 3.0."""

    profile = PROFILE
    step: Step | None = None

    def entry(self, entry: Entry) -> None:
        at = logged_ms(entry.created_at)
        if entry.type == "message":
            text = texts_of(entry.content)
            self.builder.unread((part.type for part in entry.content), _PARTS, at)
            if entry.role == "assistant":
                self.step = self.builder.step(entry.id, None, at)
                self.event("text", text, at, self.step)
            elif entry.role != "user" or entry.source == "harness" or self.is_subagent:
                self.event("meta", text, at)
            else:
                said: TurnKind = "queued_prompt" if entry.source == "turn_steer" else "prompt"
                self.builder.turn(said if text.strip() else "attachment", text, at)
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
        printed = "\n".join(filter(None, (structured.stdout, structured.stderr)))
        if state.error is not None:
            text = string(state.error.get("message")) or string(state.error.get("code")) or ""
        elif printed or structured.stdout is not None:
            text = printed
        else:  # the text of a file that was read is in the structure alone
            raw = bytes(output.structured_content).decode("utf-8", "replace")
            text = state.output_text or texts_of(output.content) or raw or state.reason
        status: CallStatus = "ok"
        if state.status == "cancelled":
            status = "cancelled"
        elif state.status == "skipped" or inside(state.error, "code") == _DENIED:
            status = "rejected" if state.approval_source in (None, "user") else "error"
        elif state.status == "failed" or structured.timed_out is True:
            status = "error"
        self.result(entry.id, text, status, logged_ms(entry.updated_at), output, whole(structured.returncode))

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        meta = (detail.meta if detail is not None else None) or {}
        places = as_list(inside(decoded(meta.get("mistralai.vibe.sdk.search_replace"), Any), "blocks"))
        hunks = []
        for p in places:
            texts = [as_list(inside(p, name)) for name in ("old_lines", "new_lines")]
            hunks += place(inside(p, "old_start_line"), inside(p, "new_start_line"), *texts)
        if places:
            self.builder.edit(call, None, "modify", hunks)
        return bool(places)

    def message(self, message: Message) -> None:
        """Read a message of the older form, which has no time."""
        text = as_text(message.content)
        if message.context_boundary is not None:
            self.event("compaction", "{}")
        if message.manual_shell is not None:
            self.event("user_shell", string(message.manual_shell.get("command")) or "")
            self.event("command_output", string(message.manual_shell.get("output_text")) or "")
        elif message.role == "assistant":
            step = self.builder.step(message.message_id, None)
            if thought := as_text(message.reasoning_content):
                self.event("thinking", thought, None, step)
            if text:
                self.event("text", text, None, step)
            for call in message.tool_calls or ():
                if call.get("function") is None:
                    self.event("unknown", "call without a function", None, step)
                else:
                    name, arguments = inside(call, "function", "name"), inside(call, "function", "arguments")
                    self.call(string(call.get("id")) or "", string(name) or "", as_text(arguments), None, step)
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
