"""One Codex session in the making: what each kind of record adds to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.codex import records
from agentsignals.formats.codex.calls import Calls
from agentsignals.formats.codex.decode import Record, kind_of
from agentsignals.formats.codex.profile import PROFILE
from agentsignals.formats.codex.records import (
    PARTS,
    AgentMessage,
    Compacted,
    ContextCompacted,
    ExecEnd,
    ItemCompleted,
    Message,
    Notice,
    Reasoning,
    Renamed,
    RolledBack,
    SessionMeta,
    Task,
    TokenCount,
    TurnContext,
    UserMessage,
    kinds_of,
    text_of,
)
from agentsignals.formats.codex.usage import ModelCalls
from agentsignals.formats.codex.user import Reports, UserRecords
from agentsignals.model import EventKind, Session
from agentsignals.model.times import logged_iso

T = TypeVar("T")

_REMOTE = re.compile(r"(?:://[^/]+/|@[^/:]+[:/])(?:.*/)?([^/]+)/([^/]+?)(?:\.git)?/?$")


class Reader:
    """Takes the records of one session in order."""

    def __init__(
        self, session: Session, meta: SessionMeta | None, shapes: dict[type, list[Record]], inherits: bool
    ) -> None:
        """`shapes` are all records of the session: of facts that are logged twice, one twin is read, if it is there."""
        self.session = session
        self.builder = SessionBuilder(session, PROFILE)
        self._is_subagents = is_subagent(meta)
        counts: list[TokenCount] = _payloads(shapes, TokenCount)
        self.models = ModelCalls(self.builder, inherits, metered=any(payload.info is not None for payload in counts))
        self.calls = Calls(self.builder, self.models)
        prompts = {payload.message.strip() for payload in _payloads(shapes, UserMessage)}
        self.user = UserRecords(self.builder, not self._is_subagents, prompts or None)
        self._events_are_text = all(payload.role != "assistant" for payload in _payloads(shapes, Message))
        self._reports = Reports()
        self._handlers = self._table()
        if meta is not None:
            self._header(meta)
        self.builder.visits(payload.cwd for payload in _payloads(shapes, TurnContext) if payload.cwd)

    def take(self, line: int, record: Record) -> None:
        """Adds one record."""
        body = record.payload
        handler = self._handlers.get(type(body))
        if handler is not None:
            self.builder.line = line
            handler(body, logged_iso(record.timestamp))
        elif body is None:
            self.builder.line = line
            self.builder.event("unknown", kind_of(record)[:80], logged_iso(record.timestamp))

    def copied(self, record: Record) -> None:
        """A record that is a copy of another session's: only what it says of the state at the fork counts."""
        body = record.payload
        if isinstance(body, TokenCount) and body.info is not None:
            self.models.skip(body.info)
        elif isinstance(body, TurnContext):
            self.models.model = body.model or self.models.model

    def finish(self) -> Session:
        self._handlers.clear()  # they hold this reader, a circle that would keep all its rows until the collector comes
        self.calls.finish()
        if self.session.model is None and self._is_subagents:
            self.session.model = self.models.model
        return self.builder.finish()

    # -- what a record adds --------------------------------------------------------------------------------------

    def _header(self, meta: SessionMeta) -> None:
        session = self.session
        session.agent_version = session.agent_version or meta.cli_version
        git = meta.git
        self.builder.where(meta.cwd, git.branch if git is not None else None)
        session.repo = repo_name(git.repository_url if git is not None else None) or session.repo

    def _resumed(self, meta: SessionMeta, at: int | None) -> None:
        if meta.id in ("", self.session.session_id):
            self.builder.where(meta.cwd)

    def _context(self, context: TurnContext, at: int | None) -> None:
        self.builder.where(context.cwd)
        if context.model and context.model != self.models.model:
            if self.models.model is not None:
                self._event("model_change", f"{self.models.model} -> {context.model}", at)
            self.models.model = context.model

    def _message(self, message: Message, at: int | None) -> None:
        if message.role == "assistant":
            self.builder.event("text", text_of(message.content), at, self.models.item(at))
        elif message.role == "user":
            self.models.heard()
            self.user.item(message, at, self.models.model)
        else:
            self._event("meta", text_of(message.content), at)
        self.builder.unread(kinds_of(message.content), PARTS, at)

    def _agent_text_event(self, event: AgentMessage, at: int | None) -> None:
        if self._events_are_text:
            self.builder.event("text", event.message, at, self.models.item(at))

    def _thinking(self, reasoning: Reasoning, at: int | None) -> None:
        text = text_of(reasoning.summary) or text_of(reasoning.content)
        self.builder.event("thinking", text, at, self.models.item(at))
        for parts in (reasoning.summary, reasoning.content):
            self.builder.unread(kinds_of(parts), PARTS, at)

    def _prompt(self, message: UserMessage, at: int | None) -> None:
        self.models.heard()
        self.user.event(message, at, self.models.model)

    def _tokens(self, count: TokenCount, at: int | None) -> None:
        if count.info is not None:
            self.models.count(count.info, at)

    def _started(self, task: Task, at: int | None) -> None:
        self.models.close()
        self.user.task_started()

    def _ended(self, task: Task, at: int | None) -> None:
        self.models.close()
        self.user.task_ended()

    def _aborted(self, task: Task, at: int | None) -> None:
        self._ended(task, at)
        if task.reason in ("interrupted", "replaced", None):
            self.user.interrupted("event", task.reason or "interrupted", at)
        else:
            self._event("meta", f"turn aborted: {task.reason}", at)

    def _process_end(self, end: ExecEnd, at: int | None) -> None:
        if end.source == "user_shell":
            self.user.ran("event", end.command[-1] if end.command else "", at)
        else:
            self.calls.process_end(end, at)

    def _compacted(self, record: Compacted, at: int | None) -> None:
        if self._reports.is_first("compaction", "record"):
            facts = {"window": record.window_number, "summary": record.message or None}
            present = {key: value for key, value in facts.items() if value is not None}
            self._event("compaction", msgspec.json.encode(present).decode(), at)

    def _compacted_event(self, event: ContextCompacted, at: int | None) -> None:
        if self._reports.is_first("compaction", "event"):
            self._event("compaction", "{}", at)

    def _error(self, notice: Notice, at: int | None) -> None:
        self._event("api_error", notice.message, at)

    def _warning(self, notice: Notice, at: int | None) -> None:
        self._event("notification", notice.message, at)

    def _renamed(self, event: Renamed, at: int | None) -> None:
        self.session.title = event.thread_name or self.session.title

    def _rolled_back(self, event: RolledBack, at: int | None) -> None:
        self._event("meta", f"rolled back {event.num_turns} turns", at)

    def _completed(self, completed: ItemCompleted, at: int | None) -> None:
        item = completed.item
        if item is not None:
            self._event("meta", item.text or item.type, at)

    # -- parts ---------------------------------------------------------------------------------------------------

    def _event(self, kind: EventKind, text: str, at: int | None) -> None:
        self.builder.event(kind, text, at)

    def _table(self) -> dict[type, Callable[..., None]]:
        """What to do with a record, by its shape."""
        calls = self.calls
        return {
            SessionMeta: self._resumed,
            TurnContext: self._context,
            Compacted: self._compacted,
            Message: self._message,
            Reasoning: self._thinking,
            records.FunctionCall: calls.function,
            records.CustomCall: calls.custom,
            **{
                shape: partial(calls.hosted, name)
                for shape, name in (
                    (records.LocalShellCall, "local_shell"),
                    (records.WebSearchCall, "web_search"),
                    (records.ToolSearchCall, "tool_search"),
                    (records.ImageGenerationCall, "image_generation"),
                )
            },
            records.FunctionOutput: calls.output,
            records.CustomOutput: calls.output,
            records.ToolsFound: calls.tools_found,
            records.PatchEnd: calls.patch_end,
            records.McpEnd: calls.mcp_end,
            ExecEnd: self._process_end,
            TokenCount: self._tokens,
            UserMessage: self._prompt,
            AgentMessage: self._agent_text_event,
            records.TaskStarted: self._started,
            records.TurnStarted: self._started,
            records.TaskComplete: self._ended,
            records.TurnComplete: self._ended,
            records.TurnAborted: self._aborted,
            ContextCompacted: self._compacted_event,
            records.Error: self._error,
            records.StreamError: self._error,
            records.Warned: self._warning,
            Renamed: self._renamed,
            RolledBack: self._rolled_back,
            ItemCompleted: self._completed,
        }


def _payloads(shapes: dict[type, list[Record]], shape: type[T]) -> list[T]:
    return [record.payload for record in shapes.get(shape, ()) if isinstance(record.payload, shape)]


def is_subagent(meta: SessionMeta | None) -> bool:
    """Whether another agent, not a person, gave this session its prompts."""
    return meta is not None and isinstance(meta.source, dict) and "subagent" in meta.source


def parent_of(meta: SessionMeta) -> str | None:
    """The session this one was forked or spawned from."""
    value: object = meta.source
    for key in ("subagent", "thread_spawn", "parent_thread_id"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else meta.forked_from_id


def repo_name(url: str | None) -> str | None:
    """`owner/name` of a remote's address; None for one that redaction has eaten."""
    match = _REMOTE.search(url or "")
    if match is None or any(not part.strip(".") or "REDACTED" in part for part in match.groups()):
        return None
    return f"{match.group(1)}/{match.group(2)}"
