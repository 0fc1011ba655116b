"""Reads Zed threads, of today (0.3.0) and before. The structs hold only the fields that are read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, between, created, unified
from agentsignals.formats import Input
from agentsignals.formats.builder import Tokens, charge, close, record_arguments, tokens_of, tokens_of_steps
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import Messages, Part, Snapshot
from agentsignals.formats.records import as_list, as_text, decoded, inside, skip, string
from agentsignals.formats.zed import PROFILE
from agentsignals.model import CallStatus, Step, ToolCall, logged_iso


class ToolUse(Struct, gc=False):
    id: str = ""
    name: str = ""
    input: Raw = Raw()


class ToolResult(Struct, gc=False):
    tool_use_id: str = ""
    is_error: bool = False
    content: object = None
    output: object = None


class Block(Struct, gc=False, kw_only=True):
    """A piece of a message. The name of its one field is its kind."""

    Text: str | None = None
    Thinking: dict[str, Any] | None = None
    RedactedThinking: object = None
    ToolUse: ToolUse | None = None
    Mention: dict[str, Any] | None = None
    Image: Raw = Raw()

    @property
    def kind(self) -> str:
        return next((name for name in _BLOCKS if getattr(self, name) not in (None, Raw())), "")


_BLOCKS = frozenset(Block.__struct_fields__)


class Content(Struct, gc=False):
    id: str = ""
    content: list[Block] = []
    tool_results: dict[str, ToolResult] = {}


class Message(Struct, gc=False, kw_only=True):
    User: Content | None = None
    Agent: Content | None = None
    Compaction: object = None
    Resume: bool = False
    role: str | None = None
    """This field and those after it: before 0.3.0."""
    text: str | None = None
    segments: list[Part] = []
    tool_uses: list[ToolUse] = []
    tool_results: list[ToolResult] = []
    is_hidden: bool = False

    @property
    def kind(self) -> str:
        if self.role is not None:
            return self.role[:80]
        return next((k for k in ("User", "Agent", "Compaction", "Resume") if getattr(self, k) not in (None, False)), "")


class Thread(Document, kw_only=True):
    id: str = field(name="zedThread.id", default="")  # no key: the row has it
    zedThread: dict[str, str | None] = field(default_factory=dict)
    """The columns of the database row."""
    title: str | None = None
    summary: object = None
    model: object = None
    initial_project_snapshot: object = None
    subagent_context: object = None
    cumulative_token_usage: object = None
    request_token_usage: object = None


_EXITED = re.compile(r'Command ".*?" failed with exit code (-?\d+)\.(?:\n|\Z)', re.DOTALL)
_KILLED = "Command terminated unexpectedly."
_DENIED = "Permission to run tool denied by user"
_CANCELLED = ("Tool canceled by user", "Edit cancelled by user")
_SEGMENTS = frozenset(("text", "thinking"))
_USER_BLOCKS = _BLOCKS - {"ToolUse", "Thinking", "RedactedThinking"}


class Reader(DocumentReader[Thread, Message]):
    """An agent message is a model call, with the results of its tools."""

    profile, document_type, message_type = PROFILE, Thread, Message
    prompt_id: str | None = None
    step: Step | None = None

    @classmethod
    def snapshots(cls, inputs: Iterable[Input]) -> Iterator[Snapshot[tuple[Thread, Messages[Message]]]]:
        for snapshot in super().snapshots(inputs):
            artifact, row = snapshot.source.artifact, snapshot.document[0].zedThread
            if snapshot.messages:
                snapshot.session_id = row.get("id") or artifact.artifact_id
                yield snapshot
            elif row.get("data_type") in (None, "json", "zstd"):
                artifact.note = "a thread without messages"
            else:
                artifact.note = f"its data is of a kind that is not known: {row['data_type']}"
                artifact.records += 1
                skip(artifact, "bad_shape")

    @classmethod
    def message(cls, raw: memoryview | bytes) -> Message:
        return Message(Resume=True) if bytes(raw) == b'"Resume"' else super().message(raw)

    @staticmethod
    def role(message: Message) -> str:
        return message.kind

    def begin(self) -> None:
        thread, session, row = self.document, self.session, self.document.zedThread
        trees = as_list(inside(thread.initial_project_snapshot, "worktree_snapshots"))
        folders = [folder for folder in (row.get("folder_paths") or "").split("\n") if folder]
        self.folders = folders or [path for tree in trees if (path := string(inside(tree, "worktree_path")))]
        session.title = thread.title or string(thread.summary) or row.get("summary")
        parent = inside(thread.subagent_context, "parent_thread_id")
        session.parent_session_id = row.get("parent_id") or string(parent)
        self.is_subagent = bool(session.parent_session_id)
        began = string(inside(thread.initial_project_snapshot, "timestamp"))
        session.started_at = logged_iso(began or row.get("created_at"))
        session.ended_at = logged_iso(row.get("updated_at"))
        self.model = string(inside(thread.model, "model"))
        branch = inside(trees[0], "git_state", "current_branch") if trees else None
        self.builder.where(self.folders[0] if self.folders else None, string(branch))

    def end(self) -> None:
        self.charge_last()
        total = _tokens(self.document.cumulative_token_usage)
        rest = total.without(tokens_of_steps(self.session.steps))
        if any(rest):
            close(self.builder, self.model, rest)

    def take(self, message: Message) -> None:
        if message.User is not None:
            self.charge_last()
            self.prompt_id, blocks = message.User.id, message.User.content
            text = "".join(block.Text or _mention(block) for block in blocks).strip()
            self.prompt(text, attached=any(block.kind in ("Mention", "Image") for block in blocks))
            self.builder.unread((block.kind for block in blocks), _USER_BLOCKS, None)
        elif message.Agent is not None:
            self.agent(message.Agent.content, dict(message.Agent.tool_results))
        elif message.Compaction is not None:
            self.event("compaction", as_text(message.Compaction))
        elif message.role is not None:
            self.old_message(message, self.builder.line - 1)
        elif not message.Resume:
            self.event("unknown", "message without a kind that is known")

    def agent(self, blocks: list[Block], results: dict[str, ToolResult]) -> None:
        step = self.step = self.builder.step(None, self.model)
        for block in blocks:
            if block.Text:
                self.event("text", block.Text, None, step)
            elif block.Thinking is not None:
                self.event("thinking", as_text(block.Thinking.get("text")), None, step)
            elif block.ToolUse is not None:
                self.tool_use(block.ToolUse, results.pop(block.ToolUse.id, None), step)
        self.uncalled(results)
        self.builder.unread((block.kind for block in blocks), _BLOCKS, None)

    def uncalled(self, results: dict[str, ToolResult]) -> None:
        """Record results whose calls are not in the message."""
        for result in results.values():
            self.event("tool_result", _content(result.content))

    def old_message(self, message: Message, place: int) -> None:
        """Read a message from before 0.3.0. In 0.1.0 results are in a message of their own."""
        texts = [s.text or "" for s in message.segments if s.type == "text"] or [message.text or ""]
        self.builder.unread((s.type for s in message.segments), _SEGMENTS, None)
        if message.role == "user" and not message.tool_results:
            text = "\n".join(texts).strip()
            if text and message.is_hidden:
                self.event("meta", text)
            else:
                self.prompt(text)
        elif message.role == "assistant":
            step = self.builder.step(None, self.model)
            for segment in message.segments or [Part(type="text", text=message.text)]:
                if segment.text:
                    self.event("thinking" if segment.type == "thinking" else "text", segment.text, None, step)
            after = self.messages[place + 1] if place + 1 < len(self.messages) else None
            later = after.tool_results if after is not None and after.role == "user" else []
            results = {result.tool_use_id: result for result in message.tool_results or later}
            for tool in message.tool_uses:
                self.tool_use(tool, results.pop(tool.id, None), step)
            self.uncalled(results)
            usage = self.document.request_token_usage
            charge(step, _tokens(usage[place] if isinstance(usage, list) and place < len(usage) else None), zeros=False)
        elif message.role not in ("user", "system"):
            self.event("unknown", f"message of role {message.role}")

    def charge_last(self) -> None:
        """Set the tokens of the last model call before a prompt: the map of usage has one entry for each prompt."""
        if self.step is not None:
            charge(self.step, _tokens(inside(self.document.request_token_usage, self.prompt_id or "")), zeros=False)
        self.step = None

    def tool_use(self, tool: ToolUse, result: ToolResult | None, step: Step) -> None:
        arguments, kind = decoded(bytes(tool.input), Any), PROFILE.tool(tool.name)
        path = next((p for key in (kind.path if kind else ()) if (p := string(inside(arguments, key)))), None)
        about, folder = string(inside(arguments, "source_path")) or path, string(inside(arguments, "cd"))
        call = self.builder.call(
            tool.id or f"#{len(self.session.tool_calls)}", tool.name, bytes(tool.input) or b"{}", kind, None, step,
            path=self.full_path(about) if about else None,
            folder=self.full_path(folder) if folder and folder != "." else None,
        )  # fmt: skip
        if result is None:
            return
        text = _content(result.content)
        exited = _EXITED.match(text) if call.command is not None else None
        status: CallStatus = "error" if call.command is not None and text.startswith(_KILLED) else "ok"
        if result.is_error:  # a failed command is no error to Zed; its text says so
            status = "rejected" if text.startswith(_DENIED) else "error"
            status = "cancelled" if text.startswith(_CANCELLED) else status
        self.result(call.call_id, text, status, None, (result.output, arguments), int(exited[1]) if exited else None)
        if call.path and call.class_ in ("edit", "read"):
            self.touched.add(call.path)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        output, arguments = detail
        diff, old, new = (inside(output, name) for name in ("diff", "old_text", "new_text"))
        target = string(inside(arguments, "destination_path"))
        if call.name in ("delete_path", "move_path"):
            self.builder.edit(call, None, "delete", [Hunk(added=0, whole_file=True)])
        if target is not None:
            self.builder.edit(call, self.full_path(target), "rename" if call.name == "move_path" else "create", [])
        elif call.name == "delete_path":
            pass
        elif old == "" and isinstance(new, str):
            self.builder.edit(call, None, "create", [created(new)])
        elif isinstance(diff, str) and (hunks := unified(diff)):
            self.builder.edit(call, None, "modify", hunks)
        elif isinstance(old, str) and isinstance(new, str):
            self.builder.edit(call, None, "modify", between(old, new))
        else:
            record_arguments(self.builder, call, existed=call.path in self.touched)
        return True

    def full_path(self, path: str) -> str:
        """Return the path on disk. Zed's paths begin with the name of one of the project's folders."""
        root = path.split("/", 1)[0]
        folder = next((f for f in self.folders if posixpath.basename(f.rstrip("/")) == root), None)
        return posixpath.join(posixpath.dirname(folder.rstrip("/")), path) if folder else path


def _tokens(usage: object) -> Tokens:
    """Return logged tokens. A missing figure is 0; where all are, nothing was counted."""
    tokens = tokens_of(usage if isinstance(usage, dict) else None, "apart")
    return Tokens(*(n or 0 for n in tokens[:4]))


def _mention(block: Block) -> str:
    if block.Mention is None:
        return ""
    uri = block.Mention.get("uri")
    about = next(iter(uri.values()), None) if isinstance(uri, dict) else uri
    named = [inside(about, name) for name in ("name", "abs_path", "path", "url")]
    return "@" + posixpath.basename(next((text for text in named if isinstance(text, str)), "")).strip()


def _content(value: object) -> str:
    """Return the text of a result, which is a string or pieces by kind."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_content, value)))
    if isinstance(value, dict):
        fields = {key.lower(): inner for key, inner in value.items()}
        if fields.keys() & {"image", "source"}:
            return "(an image)"
        return fields["text"] if isinstance(fields.get("text"), str) else as_text(value)
    return as_text(value)


read = Reader.read
