"""Reads Grok Build sessions: the updates of each, once, and its summary. The structs hold only fields that are read."""

from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import created
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import whole
from agentsignals.formats.builder import close, place, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import Part, by_session, once
from agentsignals.formats.grok_build import PROFILE
from agentsignals.formats.records import as_list, as_text, decoded, decoder, document, inside, lines, saw, string
from agentsignals.model import CallStatus, Session, Step, ToolCall, TurnKind, logged_ms


class Content(Struct, gc=False, kw_only=True, rename="camel"):
    """A piece of a tool's result: text, or the change of a file."""

    type: str = ""
    content: Part | None = None
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Update(Struct, gc=False, kw_only=True, rename="camel"):
    session_update: str = ""
    content: Raw = Raw()
    tool_call_id: str = ""
    title: str = ""
    status: str | None = None
    raw_input: Raw = Raw()
    raw_output: Raw = Raw()
    usage: dict[str, Any] | None = None
    """Tokens of a turn, also by model. Input includes cached ones."""
    stop_reason: str | None = field(default=None, name="stop_reason")
    meta: object = field(default=None, name="_meta")


class Meta(Struct, gc=False, kw_only=True, rename="camel"):
    event_id: str | None = None
    agent_timestamp_ms: object = None
    stream_start_ms: object = None

    @property
    def key(self) -> str | None:
        """The id of an update with its time, since a resumed session numbers its updates anew."""
        return f"{self.event_id}|{self.agent_timestamp_ms}" if self.event_id else None


class Params(Struct, gc=False, kw_only=True):
    session_id: str = field(name="sessionId")
    update: Update
    meta: Meta = field(default_factory=Meta, name="_meta")


class Record(Struct, gc=False):
    params: Params
    timestamp: object = None


class Summary(Struct, gc=False, kw_only=True):
    info: dict[str, Any]
    parent_session_id: str | None = None
    generated_title: str | None = None
    current_model_id: str | None = None
    head_branch: str | None = None
    session_kind: str | None = None


_IGNORED = frozenset(("background_tasks", "available_commands_update", "current_mode_update", "plan"))
"""State of the screen. A plan is in its call too."""
_HEADLESS = "headless"


class _File:
    """The updates of one file. A summary has none."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.summary: Summary | None = None
        self.records: list[tuple[int, Record]] = []
        if b'"chat_format_version"' in source.data[-65536:]:
            self.summary = document(source.data, source.artifact, decoder(Summary).decode)
            if self.summary is not None:
                saw(source.artifact, "summary")
        else:
            self.records = list(lines(source.data, source.artifact, decoder(Record).decode))
        for _, record in self.records:
            saw(source.artifact, record.params.update.session_update[:80] or "untyped")
        named = string(self.summary.info.get("id")) if self.summary is not None else None
        named = self.records[0][1].params.session_id if self.records else named
        self.session_id = named or source.session_hint or source.artifact.artifact_id
        self.order = (-len(self.records), source.artifact.path, source.artifact.sha256)


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Those of one session are united by update."""
    sessions: list[Session] = []
    for session_id, files in sorted(by_session(inputs, _File).items()):
        summary = next((file.summary for file in files if file.summary is not None), Summary(info={}))
        reader = Reader(files[0].source.session(session_id, "grok-build", PROFILE.agent), summary)
        for file, number, record in once(files, lambda file: file.records, lambda record: record.params.meta.key):
            reader.place = (file.source.artifact.artifact_id, number)
            reader.take(record)
        reader.flush()
        sessions.append(reader.builder.finish())
    return Reading([session for session in sessions if session.events])


class Reader(Conversation):
    """A session while it is read. Text comes in chunks, which are held until another kind of update comes."""

    profile = PROFILE

    def __init__(self, session: Session, summary: Summary) -> None:
        super().__init__(session)
        session.parent_session_id, session.title = summary.parent_session_id, summary.generated_title
        self.builder.where(string(summary.info.get("cwd")), summary.head_branch)
        self.is_scripted = summary.session_kind == _HEADLESS
        self.is_subagent = "subagent" in (summary.session_kind or "")
        self.model = summary.current_model_id
        self.chunks: list[str] = []
        self.message: tuple[str, object] = ("", None)
        """Kind of the chunks that are held, and their prompt or model call."""
        self.began: int | None = None
        self.place = (self.builder.artifact_id, 0)
        """File and line of the current record."""
        self.step: Step | None = None
        self.in_turn = False

    def take(self, record: Record) -> None:
        update, meta = record.params.update, record.params.meta
        kind, at = update.session_update, logged_ms(meta.agent_timestamp_ms)
        if kind.endswith("_chunk"):
            self.chunk(kind, update, meta, at)
            return
        self.flush()
        self.builder.artifact_id, self.builder.line = self.place
        if kind == "tool_call":
            self.step = self.model_call(meta, at)
            name = string(inside(update.meta, "x.ai/tool", "name")) or update.title
            self.call(update.tool_call_id, name, bytes(update.raw_input), at, self.step)
        elif kind == "tool_call_update":
            self.answer(update, at)
        elif kind == "turn_completed":
            self.complete(update, at)
        elif kind not in _IGNORED:
            self.event("unknown", kind[:80] or "update without a kind", at)

    def chunk(self, kind: str, update: Update, meta: Meta, at: int | None) -> None:
        piece = decoded(update.content, Part) or Part()
        is_agent = kind.startswith("agent_")
        message = (kind, meta.stream_start_ms if is_agent else inside(update.meta, "promptIndex"))
        if self.message != message:
            self.flush()
            self.builder.artifact_id, self.builder.line = self.place
            self.message, self.began = message, at
            self.step = self.model_call(meta, at) if is_agent else None
        self.model = string(inside(update.meta, "modelId")) or self.model
        self.chunks.append(piece.text or ("" if piece.type == "text" else f"[{piece.type[:40]}]"))

    def flush(self) -> None:
        """Record the text that is held."""
        kind, text, at = self.message[0], "".join(self.chunks), self.began
        self.message, self.chunks = ("", None), []
        if kind == "user_message_chunk":
            if self.is_subagent:
                self.event("meta", text, at)
            else:
                queued: TurnKind = "queued_prompt" if self.in_turn else "prompt"
                self.builder.turn("scripted_prompt" if self.is_scripted else queued, text, at)
            self.in_turn = True
        elif kind == "agent_message_chunk":
            self.event("text", text, at, self.step)
        elif kind == "agent_thought_chunk":
            self.event("thinking", text, at, self.step)
        elif kind:
            self.event("unknown", kind[:80], at)

    def model_call(self, meta: Meta, at: int | None) -> Step:
        """Return the model call, which is known by the time at which its answer began."""
        began = logged_ms(meta.stream_start_ms)
        return self.builder.step(str(began) if began is not None else None, self.model, at)

    def answer(self, update: Update, at: int | None) -> None:
        if update.status not in ("completed", "failed", "cancelled"):
            return  # shown while it runs
        contents: list[Content] = decoded(update.content, list[Content]) or []
        text = "\n".join(c.content.text for c in contents if c.content is not None and c.content.text)
        output = decoded(update.raw_output, Any)
        code = whole(inside(output, "exit_code")) if inside(output, "type") == "Bash" else None  # a search has one, too
        is_ok = update.status == "completed" and inside(output, "timed_out") is not True
        status: CallStatus = "cancelled" if update.status == "cancelled" else "ok" if is_ok else "error"
        self.result(update.tool_call_id, text, status, at, [c for c in contents if c.type == "diff"], code)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        for change in detail:
            if not change.old_text and change.new_text:
                self.builder.edit(call, change.path, "create", [created(change.new_text)])
            else:
                hunks = []
                for p in as_list(inside(change.meta, "details")):
                    texts = [as_text(inside(p, name)).splitlines() for name in ("old_string", "new_string")]
                    hunks += place(inside(p, "old_line"), inside(p, "new_line"), *texts)
                self.builder.edit(call, change.path, "modify", hunks)
        return bool(detail)

    def complete(self, update: Update, at: int | None) -> None:
        self.in_turn = False
        if update.stop_reason == "cancelled":
            self.event("interrupt", update.stop_reason, at)
        if update.usage is not None:
            by_model = update.usage.get("modelUsage")
            used = by_model if isinstance(by_model, dict) and by_model else {self.model or "": update.usage}
            for model, usage in used.items():
                tokens = tokens_of(usage)
                if any(tokens):
                    close(self.builder, model or None, tokens, at)
