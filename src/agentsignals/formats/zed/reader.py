"""The Zed threads of one family; of several copies of one the fullest."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, between, created, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import Snapshot, as_text, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.records import UNREADABLE, skip
from agentsignals.formats.usage import Tokens, charge, close, tokens_of_steps
from agentsignals.formats.zed import PROFILE
from agentsignals.model import Artifact, CallStatus, Session, Step, ToolCall, logged_iso

# A Zed thread as typed structs: what is read of it, in the form of today (0.3.0) and in those before.


class ToolUse(Struct, gc=False):
    id: str = ""
    name: str = ""
    input: Raw = Raw()


class ToolResult(Struct, gc=False):
    tool_use_id: str = ""
    is_error: bool = False
    content: object = None
    output: object = None


class Thought(Struct, gc=False):
    text: str = ""


class Block(Struct, gc=False, kw_only=True):
    """A piece of a message: the name of its field says what it is."""

    Text: str | None = None
    Thinking: Thought | None = None
    RedactedThinking: object = None
    ToolUse: ToolUse | None = None
    Mention: dict[str, Any] | None = None
    Image: Raw = Raw()

    @property
    def kind(self) -> str:
        return next((name for name in BLOCKS if getattr(self, name) not in (None, Raw())), "")


BLOCKS = frozenset(Block.__struct_fields__)


class Content(Struct, gc=False):
    """What a person or the agent says; `tool_results` by the id of the call."""

    id: str = ""
    content: list[Block] = []
    tool_results: dict[str, ToolResult] = {}


class Segment(Struct, gc=False):
    """A piece of a message before 0.3.0."""

    type: str = ""
    text: str | None = None


class Message(Struct, gc=False, kw_only=True):
    User: Content | None = None
    Agent: Content | None = None
    Compaction: object = None
    Resume: bool = False
    role: str | None = None
    """This and what follows: before 0.3.0."""
    text: str | None = None
    segments: list[Segment] = []
    tool_uses: list[ToolUse] = []
    tool_results: list[ToolResult] = []
    is_hidden: bool = False

    @property
    def kind(self) -> str:
        if self.role is not None:
            return self.role[:80]
        return next((k for k in ("User", "Agent", "Compaction", "Resume") if getattr(self, k) not in (None, False)), "")


class Thread(Struct, gc=False, kw_only=True):
    zedThread: dict[str, str | None] = {}
    title: str | None = None
    summary: object = None
    messages: list[Raw] = []
    model: object = None
    initial_project_snapshot: object = None
    subagent_context: object = None
    cumulative_token_usage: object = None
    request_token_usage: object = None


decode = msgspec.json.Decoder(Thread).decode
_message = msgspec.json.Decoder(Message).decode


def messages(thread: Thread, artifact: Artifact) -> list[Message | None]:
    """The messages of a thread; None for one that can't be read."""
    return each(thread.messages, _message_of, artifact)


def _message_of(data: memoryview | bytes) -> Message:
    return Message(Resume=True) if bytes(data) == b'"Resume"' else _message(data)


_EXITED = re.compile(r'Command ".*?" failed with exit code (-?\d+)\.(?:\n|\Z)', re.DOTALL)
_KILLED = "Command terminated unexpectedly."
_DENIED = "Permission to run tool denied by user"
_CANCELLED = ("Tool canceled by user", "Edit cancelled by user")
_SEGMENTS = frozenset(("text", "thinking"))
_OF_A_PERSON = BLOCKS - {"ToolUse", "Thinking", "RedactedThinking"}


def read(inputs: list[Input]) -> Reading:
    """One session a thread."""
    snapshots: list[Snapshot[tuple[Thread, list[Message | None]]]] = []
    for source in inputs:
        thread = read_document(source, decode, "messages")
        if thread is None:
            continue
        read = messages(thread, source.artifact)
        tally(source.artifact, "message", [None if m is None else m.kind for m in read])
        if not read:
            _empty(source.artifact, thread)
            continue
        session_id = thread.zedThread.get("id") or source.artifact.artifact_id
        snapshots.append(Snapshot(source, (thread, read), session_id, len(read)))
    return Reading([_Reader(snapshot).session() for snapshot in largest(snapshots)])


def _empty(artifact: Artifact, thread: Thread) -> None:
    """Says why a row is no session."""
    kind = thread.zedThread.get("data_type")
    artifact.note = "a thread without messages"
    if kind not in (None, "json", "zstd"):
        artifact.note = f"its data is of a kind that is not known: {kind}"
        artifact.records += 1
        skip(artifact, "bad_shape")


class _Reader:
    """One session in the making. A message of the agent's is a model call, with the results of its tools."""

    def __init__(self, snapshot: Snapshot[tuple[Thread, list[Message | None]]]) -> None:
        self.thread, self.messages = snapshot.document
        row = self.thread.zedThread
        session = snapshot.source.session(snapshot.session_id, "zed", PROFILE.agent)
        trees = _inside(self.thread.initial_project_snapshot, "worktree_snapshots")
        self.trees: list[Any] = trees if isinstance(trees, list) else []
        folders = [folder for folder in (row.get("folder_paths") or "").split("\n") if folder]
        self.folders = folders or [path for tree in self.trees if (path := _string(_inside(tree, "worktree_path")))]
        session.title = self.thread.title or _string(self.thread.summary) or row.get("summary")
        parent = _inside(self.thread.subagent_context, "parent_thread_id")
        session.parent_session_id = row.get("parent_id") or _string(parent)
        began = _string(_inside(self.thread.initial_project_snapshot, "timestamp"))
        session.started_at = logged_iso(began or row.get("created_at"))
        session.ended_at = logged_iso(row.get("updated_at"))
        self.model = _string(_inside(self.thread.model, "model"))
        self.builder = SessionBuilder(session, PROFILE)
        branch = _inside(self.trees[0], "git_state", "current_branch") if self.trees else None
        self.builder.where(self.folders[0] if self.folders else None, _string(branch))
        self.touched: set[str] = set()
        self._asked: str | None = None
        self._step: Step | None = None

    def session(self) -> Session:
        builder = self.builder
        for number, message in enumerate(self.messages, 1):
            builder.line = number
            if message is not None:
                self._message(message, number - 1)
        self._used()
        total = _tokens(self.thread.cumulative_token_usage)
        rest = total.without(tokens_of_steps(builder.session.steps)) if total is not None else Tokens()
        if any(rest):
            close(builder, self.model, rest)
        return builder.finish()

    def _message(self, message: Message, place: int) -> None:
        if message.User is not None:
            self._used()
            self._asked = message.User.id
            self._person(message.User.content)
            self.builder.unread((block.kind for block in message.User.content), _OF_A_PERSON, None)
        elif message.Agent is not None:
            self._agent(message.Agent.content, message.Agent.tool_results)
        elif message.Compaction is not None:
            self.builder.event("compaction", as_text(message.Compaction))
        elif message.role is not None:
            self._before(message, place)
        elif not message.Resume:
            self.builder.event("unknown", "message without a kind that is known")

    def _person(self, blocks: list[Block]) -> None:
        text = "".join(block.Text or _mention(block) for block in blocks).strip()
        self._words(text, has_more=any(block.kind in ("Mention", "Image") for block in blocks))

    def _words(self, text: str, has_more: bool = False, is_hidden: bool = False) -> None:
        """In a subagent's thread the agent that began it speaks as a person."""
        if text and (is_hidden or self.builder.session.parent_session_id):
            self.builder.event("meta", text)
        elif text:
            self.builder.turn("prompt", text)
        elif has_more:
            self.builder.turn("attachment", "")

    def _agent(self, blocks: list[Block], results: dict[str, ToolResult]) -> None:
        step, left = self.builder.step(None, self.model), dict(results)
        self._step = step
        for block in blocks:
            if block.Text:
                self.builder.event("text", block.Text, None, step)
            elif block.Thinking is not None:
                self.builder.event("thinking", block.Thinking.text, None, step)
            elif block.ToolUse is not None:
                self._call(block.ToolUse, left.pop(block.ToolUse.id, None), step)
        self._unasked(left)
        self.builder.unread((block.kind for block in blocks), BLOCKS, None)

    def _before(self, message: Message, place: int) -> None:
        """A message as versions before 0.3.0 have it; in 0.1.0 results stand in a message of their own."""
        texts = [s.text or "" for s in message.segments if s.type == "text"] or [message.text or ""]
        self.builder.unread((s.type for s in message.segments), _SEGMENTS, None)
        if message.role == "user" and not message.tool_results:
            self._words("\n".join(texts).strip(), is_hidden=message.is_hidden)
        elif message.role == "assistant":
            step = self.builder.step(None, self.model)
            for segment in message.segments or [Segment(type="text", text=message.text)]:
                if segment.text:
                    self.builder.event("thinking" if segment.type == "thinking" else "text", segment.text, None, step)
            results = {result.tool_use_id: result for result in message.tool_results or self._next_results(place)}
            for tool in message.tool_uses:
                self._call(tool, results.pop(tool.id, None), step)
            self._unasked(results)
            usage = self.thread.request_token_usage
            used = _tokens(usage[place]) if isinstance(usage, list) and place < len(usage) else None
            if used is not None:
                charge(step, used, zeros=False)
        elif message.role not in ("user", "system"):
            self.builder.event("unknown", f"message of role {message.role}")

    def _unasked(self, results: dict[str, ToolResult]) -> None:
        for result in results.values():
            self.builder.event("tool_result", _content(result.content))

    def _next_results(self, place: int) -> list[ToolResult]:
        after = self.messages[place + 1] if place + 1 < len(self.messages) else None
        return after.tool_results if after is not None and after.role == "user" else []

    def _used(self) -> None:
        """The map of usage has, for each prompt, that of the last model call before the next one."""
        usage = _inside(self.thread.request_token_usage, self._asked or "")
        used = _tokens(usage) if self._step is not None else None
        if used is not None and self._step is not None:
            charge(self._step, used, zeros=False)
        self._step = None

    # -- calls ---------------------------------------------------------------------------------------------------

    def _call(self, tool: ToolUse, result: ToolResult | None, step: Step) -> None:
        arguments = _decoded(bytes(tool.input))
        kind = PROFILE.tool(tool.name)
        path = next((p for key in (kind.path if kind else ()) if (p := _string(_inside(arguments, key)))), None)
        source, folder = _string(_inside(arguments, "source_path")), _string(_inside(arguments, "cd"))
        call = self.builder.call(
            tool.id or f"#{len(self.builder.session.tool_calls)}",
            tool.name,
            bytes(tool.input) or b"{}",
            kind,
            None,
            step,
            path=self._placed(about) if (about := source or path) else None,
            folder=self._placed(folder) if folder and folder != "." else None,
        )
        if result is None:
            return
        text = _content(result.content)
        exited = _EXITED.match(text) if call.command is not None else None
        code = int(exited[1]) if exited else None
        self.builder.result(call.call_id, text, _status(result, text, call), None, call.thread, code)
        if call.status in ("ok", "unknown") and call.class_ == "edit":
            self._edit(call, _decoded(result.output), arguments)
        if call.path and call.class_ in ("edit", "read"):
            self.touched.add(call.path)

    def _edit(self, call: ToolCall, output: object, arguments: object) -> None:
        builder = self.builder
        diff, old, new = (_inside(output, name) for name in ("diff", "old_text", "new_text"))
        target = _string(_inside(arguments, "destination_path"))
        if call.name in ("delete_path", "move_path"):
            builder.edit(call, None, "delete", [Hunk(added=0, whole_file=True)])
        if target is not None:
            builder.edit(call, self._placed(target), "rename" if call.name == "move_path" else "create", [])
        elif call.name == "delete_path":
            return
        elif old == "" and isinstance(new, str):
            builder.edit(call, None, "create", [created(new)])
        elif isinstance(diff, str) and (hunks := unified(diff)):
            builder.edit(call, None, "modify", hunks)
        elif isinstance(old, str) and isinstance(new, str):
            builder.edit(call, None, "modify", between(old, new))
        else:
            record_arguments(builder, call, self.touched)

    def _placed(self, path: str) -> str:
        """A path as the agent names it: it begins with the name of one of the project's folders."""
        root = path.split("/", 1)[0]
        folder = next((f for f in self.folders if posixpath.basename(f.rstrip("/")) == root), None)
        return posixpath.join(posixpath.dirname(folder.rstrip("/")), path) if folder else path


def _status(result: ToolResult, text: str, call: ToolCall) -> CallStatus:
    """A command that failed is no error to Zed: it says so in words."""
    if result.is_error:
        return "rejected" if text.startswith(_DENIED) else "cancelled" if text.startswith(_CANCELLED) else "error"
    return "error" if call.command is not None and text.startswith(_KILLED) else "ok"


def _tokens(logged: object) -> Tokens | None:
    """Nothing is written of a figure of 0: where all are, nothing was counted."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    used = Tokens(*(count(_inside(logged, name)) or 0 for name in names))
    return used if any(used) else None


def _mention(block: Block) -> str:
    """What the person pointed at, by its name."""
    if block.Mention is None:
        return ""
    uri = block.Mention.get("uri")
    about = next(iter(uri.values()), None) if isinstance(uri, dict) else uri
    named = [_inside(about, name) for name in ("name", "abs_path", "path", "url")]
    return "@" + posixpath.basename(next((text for text in named if isinstance(text, str)), "")).strip()


def _content(value: object) -> str:
    """The words of a result: a text, or pieces by kind."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_content, value)))
    if isinstance(value, dict):
        fields = {key.lower(): inner for key, inner in value.items()}
        if fields.keys() & {"image", "source"}:
            return "(an image)"
        return fields["text"] if isinstance(fields.get("text"), str) else as_text(value)
    return as_text(value)


def _decoded(value: object) -> object:
    try:
        return msgspec.json.decode(value) if isinstance(value, bytes) and value else value
    except UNREADABLE:
        return None


def _inside(value: object, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _string(value: object) -> str | None:
    return value or None if isinstance(value, str) else None
