"""The Grok Build sessions of one family: updates of each, once, and what its summary says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, created, trimmed
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count, whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.grok_build import PROFILE
from agentsignals.formats.records import UNREADABLE, document, lines, saw
from agentsignals.formats.usage import Tokens as RunTotalsUsed
from agentsignals.formats.usage import close
from agentsignals.model import RAN, CallStatus, Session, Step, ToolCall, logged_ms

# The updates of a Grok Build session as typed structs: only what is read.


class Text(Struct, gc=False):
    type: str = ""
    text: str | None = None


class Place(Struct, gc=False, kw_only=True):
    """A changed place of a file."""

    old_string: str = ""
    new_string: str = ""
    old_line: object = None
    new_line: object = None


class Changed(Struct, gc=False):
    details: list[Place] = field(default_factory=list)


class Content(Struct, gc=False, kw_only=True, rename="camel"):
    """Of a tool's result: text, or the change of a file."""

    type: str = ""
    content: Text | None = None
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    beside: Changed | None = field(default=None, name="_meta")


class Tool(Struct, gc=False):
    name: str = ""


class OfUpdate(Struct, gc=False, kw_only=True):
    tool: Tool | None = field(default=None, name="x.ai/tool")
    model: str | None = field(default=None, name="modelId")
    prompt: object = field(default=None, name="promptIndex")


class Output(Struct, gc=False, kw_only=True):
    """What a tool gave back; the exit code of a search is no command's."""

    type: str = ""
    exit_code: object = None
    timed_out: object = None


class Tokens(Struct, gc=False, kw_only=True, rename="camel"):
    """`input_tokens` count the cached ones."""

    input_tokens: object = None
    output_tokens: object = None
    total_tokens: object = None
    cached_read_tokens: object = None
    cache_creation_tokens: object = None
    reasoning_tokens: object = None


class Used(Tokens, gc=False, kw_only=True, rename="camel"):
    model_usage: dict[str, Tokens] = field(default_factory=dict)


class Update(Struct, gc=False, kw_only=True, rename="camel"):
    session_update: str = ""
    content: Raw = Raw()
    tool_call_id: str = ""
    title: str = ""
    status: str | None = None
    raw_input: Raw = Raw()
    raw_output: Raw = Raw()
    usage: Used | None = None
    stop_reason: str | None = field(default=None, name="stop_reason")
    beside: OfUpdate | None = field(default=None, name="_meta")


class Meta(Struct, gc=False, kw_only=True, rename="camel"):
    event_id: str | None = None
    agent_timestamp_ms: object = None
    stream_start_ms: object = None


class Params(Struct, gc=False, kw_only=True):
    session_id: str = field(name="sessionId")
    update: Update
    beside: Meta = field(default_factory=Meta, name="_meta")


class Record(Struct, gc=False):
    params: Params
    timestamp: object = None


class Info(Struct, gc=False):
    id: str = ""
    cwd: str | None = None


class Summary(Struct, gc=False, kw_only=True):
    info: Info
    parent_session_id: str | None = None
    generated_title: str | None = None
    current_model_id: str | None = None
    head_branch: str | None = None
    session_kind: str | None = None


decode = msgspec.json.Decoder(Record).decode
decode_summary = msgspec.json.Decoder(Summary).decode
decode_text = msgspec.json.Decoder(Text).decode
decode_contents = msgspec.json.Decoder(list[Content]).decode
decode_output = msgspec.json.Decoder(Output).decode


_QUIET = frozenset(("background_tasks", "available_commands_update", "current_mode_update", "plan"))
"""What the screen shows beside; a plan stands in its call, too."""
_HEADLESS = "headless"
T = TypeVar("T")


class _File:
    """The updates of one file; a summary has none."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.summary: Summary | None = None
        self.records: list[tuple[int, Record]] = []
        if b'"chat_format_version"' in source.data[-65536:]:
            self.summary = document(source.data, source.artifact, decode_summary)
            if self.summary is not None:
                saw(source.artifact, "summary")
        else:
            self.records = list(lines(source.data, source.artifact, decode))
        for _, record in self.records:
            saw(source.artifact, record.params.update.session_update[:80] or "untyped")
        named = self.summary.info.id if self.summary is not None else ""
        first = self.records[0][1].params.session_id if self.records else named
        self.session_id = first or source.session_hint or source.artifact.artifact_id
        self.order = (-len(self.records), source.artifact.path, source.artifact.sha256)


def read(inputs: list[Input]) -> Reading:
    """All files of one family: those of one session are united by update."""
    sessions = [_read(session_id, files) for session_id, files in sorted(by_session(inputs, _File).items())]
    return Reading([session for session in sessions if session.events])


def _read(session_id: str, files: list[_File]) -> Session:
    summary = next((file.summary for file in files if file.summary is not None), Summary(info=Info()))
    builder = SessionBuilder(files[0].source.session(session_id, "grok-build", PROFILE.agent), PROFILE)
    session = builder.session
    session.parent_session_id, session.title = summary.parent_session_id, summary.generated_title
    builder.where(summary.info.cwd, summary.head_branch)
    talk = _Talk(builder, summary)
    for file, number, record in once(files, lambda file: file.records, _key):
        talk.at(file.source.artifact.artifact_id, number)
        talk.take(record)
    talk.flush()
    return builder.finish()


def _key(record: Record) -> str | None:
    """Ids are numbered anew when a session is resumed: with its time one is the same in every copy."""
    meta = record.params.beside
    return f"{meta.event_id}|{meta.agent_timestamp_ms}" if meta.event_id else None


class _Talk:
    """One session in the making. Words come in pieces: they are held until something else comes."""

    def __init__(self, builder: SessionBuilder, summary: Summary) -> None:
        self.builder = builder
        self.is_scripted = summary.session_kind == _HEADLESS
        self.is_subagents = "subagent" in (summary.session_kind or "")
        self.model = summary.current_model_id
        self._held: list[str] = []
        self._of: tuple[str, object] = ("", None)
        """Which words are held: what they are, and of which prompt or model call."""
        self._place = (builder.artifact_id, 0)
        self._since: int | None = None
        self._step: Step | None = None
        self._busy = False
        self._touched: set[str] = set()

    def at(self, artifact_id: str, number: int) -> None:
        """Where the next record stands."""
        self._place = (artifact_id, number)

    def take(self, record: Record) -> None:
        update, meta = record.params.update, record.params.beside
        kind, when = update.session_update, logged_ms(meta.agent_timestamp_ms)
        if kind.endswith("_chunk"):
            self._chunk(kind, update, meta, when)
            return
        self.flush()
        self.builder.artifact_id, self.builder.line = self._place
        if kind == "tool_call":
            self._call(update, meta, when)
        elif kind == "tool_call_update":
            self._result(update, when)
        elif kind == "turn_completed":
            self._completed(update, when)
        elif kind not in _QUIET:
            self.builder.event("unknown", kind[:80] or "update without a kind", when)

    def _chunk(self, kind: str, update: Update, meta: Meta, when: int | None) -> None:
        piece = _inside(update.content, decode_text) or Text()
        is_agents = kind.startswith("agent_")
        prompt = update.beside.prompt if update.beside is not None else None
        if self._of != (of := (kind, meta.stream_start_ms if is_agents else prompt)):
            self.flush()
            self.builder.artifact_id, self.builder.line = self._place
            self._of, self._since = of, when
            self._step = self._stepped(meta, when) if is_agents else None
        if update.beside is not None and update.beside.model:
            self.model = update.beside.model
        self._held.append(piece.text or ("" if piece.type == "text" else f"[{piece.type[:40]}]"))

    def flush(self) -> None:
        """Writes down the words that are held."""
        (kind, _), text, when = self._of, "".join(self._held), self._since
        self._of, self._held = ("", None), []
        if kind == "user_message_chunk":
            self._asked(text, when)
        elif kind == "agent_message_chunk":
            self.builder.event("text", text, when, self._step)
        elif kind == "agent_thought_chunk":
            self.builder.event("thinking", text, when, self._step)
        elif kind:
            self.builder.event("unknown", kind[:80], when)

    def _asked(self, text: str, when: int | None) -> None:
        if self.is_subagents:
            self.builder.event("meta", text, when)
        elif self.is_scripted:
            self.builder.turn("scripted_prompt", text, when)
        else:
            self.builder.turn("queued_prompt" if self._busy else "prompt", text, when)
        self._busy = True

    def _stepped(self, meta: Meta, when: int | None) -> Step:
        """A model call is told by when its answer began."""
        began = logged_ms(meta.stream_start_ms)
        return self.builder.step(str(began) if began is not None else None, self.model, when)

    def _call(self, update: Update, meta: Meta, when: int | None) -> None:
        self._step = self._stepped(meta, when)
        tool = update.beside.tool if update.beside is not None else None
        name = (tool.name if tool is not None else "") or update.title
        arguments = bytes(update.raw_input) or b"{}"
        self.builder.call(update.tool_call_id, name, arguments, PROFILE.tool(name), when, self._step)

    def _result(self, update: Update, when: int | None) -> None:
        if update.status not in ("completed", "failed", "cancelled"):
            return  # how it is shown while it runs
        contents = _inside(update.content, decode_contents) or []
        text = "\n".join(c.content.text for c in contents if c.content is not None and c.content.text)
        output = _inside(update.raw_output, decode_output) or Output()
        code = whole(output.exit_code) if output.type == "Bash" else None
        status: CallStatus = "ok" if update.status == "completed" else "error"
        status = "cancelled" if update.status == "cancelled" else "error" if output.timed_out is True else status
        call = self.builder.result(update.tool_call_id, text, status, when, exit_code=code)
        if call is not None and call.status in RAN and call.class_ == "edit":
            self._edit(call, [c for c in contents if c.type == "diff"])
        if call is not None and call.path:
            self._touched.add(call.path)

    def _edit(self, call: ToolCall, changes: list[Content]) -> None:
        for change in changes:
            hunks = [_hunk(place) for place in change.beside.details] if change.beside is not None else []
            if not change.old_text and change.new_text:
                self.builder.edit(call, change.path, "create", [created(change.new_text)])
            else:
                self.builder.edit(call, change.path, "modify", [hunk for hunk in hunks if hunk is not None])
        if not changes:
            record_arguments(self.builder, call, self._touched)

    def _completed(self, update: Update, when: int | None) -> None:
        self._busy = False
        if update.stop_reason == "cancelled":
            self.builder.event("interrupt", update.stop_reason, when)
        if update.usage is None:
            return
        for model, tokens in (update.usage.model_usage or {self.model or "": update.usage}).items():
            used = _used(tokens)
            if any(used):
                close(self.builder, model or None, used, when)


def _used(tokens: Tokens) -> RunTotalsUsed:
    prompt, cached, written = map(count, (tokens.input_tokens, tokens.cached_read_tokens, tokens.cache_creation_tokens))
    fresh = max(prompt - (cached or 0) - (written or 0), 0) if prompt is not None else None
    return RunTotalsUsed(fresh, count(tokens.output_tokens), cached, written, count(tokens.reasoning_tokens))


def _hunk(place: Place) -> Hunk | None:
    old, new = whole(place.old_line), whole(place.new_line)
    removed = [f"-{line}" for line in place.old_string.splitlines()]
    added = [f"+{line}" for line in place.new_string.splitlines()]
    return trimmed(old, new, removed + added) if old and new else None


def _inside(raw: Raw, decoded: Callable[[Raw], T]) -> T | None:
    """A part of an update; None where it is of another shape."""
    try:
        return decoded(raw) if raw else None
    except UNREADABLE:
        return None
