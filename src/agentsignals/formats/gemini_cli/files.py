"""The Gemini CLI chats of one family, and each as a session."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.figures import count as count_of
from agentsignals.formats.gemini_cli import log as logs
from agentsignals.formats.gemini_cli.profile import PROFILE
from agentsignals.formats.gemini_cli.records import PARTS, Chat, Content, Message, Tokens, decode, parts_of, text_of
from agentsignals.formats.gemini_cli.tools import project_folder, run
from agentsignals.formats.one_document import Snapshot, largest, tally
from agentsignals.formats.one_document import read as read_document
from agentsignals.model import ABANDONED, MAIN, Artifact, EventKind, Session, Step
from agentsignals.model.times import logged_iso

CANCELLED = "Request cancelled."
"""The notice that the person stopped the agent."""
REFERENCED = "--- Content from referenced files ---"
"""Behind this in a prompt stand the files it names with `@`, put there by the client."""

_SENT_BY_CLIENT = "Please continue."
"""What the client sends, word for word, when it finds that the model should go on by itself."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several snapshots of a session the fullest."""
    return Reading([_Reader(snapshot).session() for snapshot in largest(_snapshots(inputs))])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Chat]]:
    for source in inputs:
        if logs.is_log(source.data):
            chat: Chat | None = logs.fold(source)
        else:
            chat = read_document(source, partial(decode, artifact=source.artifact), "messages")
            if chat is not None:
                _count(source.artifact, chat)
        if chat is None:
            continue
        session_id = chat.sessionId or source.session_hint or source.artifact.artifact_id
        yield Snapshot(source, chat, session_id, len(chat.messages))


def _count(artifact: Artifact, chat: Chat) -> None:
    tally(artifact, "message", [None if m is None else m.type for m in chat.messages])


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Chat]) -> None:
        source, chat = snapshot.source, snapshot.document
        session = source.session(snapshot.session_id, "gemini-cli", "gemini-cli")
        session.title = chat.summary
        session.started_at = logged_iso(chat.startTime)
        self.chat = chat
        self.builder = SessionBuilder(session, PROFILE)
        self.builder.where(project_folder(chat))
        self.thread = MAIN
        log = chat if isinstance(chat, logs.Log) else None
        self.numbers = log.numbers if log is not None else range(1, len(chat.messages) + 1)
        self.rewound = log.rewound if log is not None else frozenset()
        if log is not None:
            self.builder.where(log.folder)
            session.parent_session_id = logs.parent_of(log, source.artifact.path)
        self.step: Step | None = None
        self.model: str | None = None
        self.call_ids: set[str] = set()

    def session(self) -> Session:
        for n, message in enumerate(self.chat.messages):
            self.builder.line = self.numbers[n]
            if message is not None:
                self._on_thread(message, ABANDONED if n in self.rewound else MAIN)
        return self.builder.finish()

    def _on_thread(self, message: Message, thread: str) -> None:
        """What the person went back from was paid for, but is no turn, nor part of one."""
        if thread != self.thread:
            self.step = None
        self.thread, turn = thread, self.builder.turn_index
        if thread != MAIN:
            self.builder.turn_index = None
        self._message(message)
        if thread != MAIN:
            self.builder.turn_index = turn

    def _message(self, message: Message) -> None:
        at = logged_iso(message.timestamp)
        if message.type == "gemini":
            self._gemini(message, at)
        elif message.type == "user":
            self._user(message, at)
        elif message.type in ("info", "warning", "error"):
            self._notice(message.type, text_of(message.content), at)
        else:
            self.builder.event("unknown", message.type or "message without a type", at, thread=self.thread)
        for content in (message.content, message.displayContent):
            self.builder.unread((part.kind for part in parts_of(content)), PARTS, at, self.thread)

    def _notice(self, type_: str, text: str, at: int | None) -> None:
        kind: EventKind = "api_error" if type_ == "error" else "meta"
        self.builder.event("interrupt" if text.strip() == CANCELLED else kind, text, at, thread=self.thread)

    def _user(self, message: Message, at: int | None) -> None:
        """`displayContent` is what was typed; `content` is what the model got, with the named files behind it."""
        builder = self.builder
        shown = message.displayContent if message.displayContent is not None else message.content
        prompt = typed(shown)
        kind = _not_said(prompt) if self.chat.kind != "subagent" and self.thread == MAIN else "meta"
        if kind is not None and (prompt or kind != "meta"):
            builder.event(kind, prompt, at, thread=self.thread)
        elif prompt:
            builder.turn("prompt", prompt, at)
        elif kind is None and any(p.inlineData or p.fileData for p in parts_of(message.content)):
            builder.turn("attachment", "", at)

    def _gemini(self, message: Message, at: int | None) -> None:
        builder = self.builder
        text = text_of(message.content)
        step = self._step(message, text, at)
        for thought in message.thoughts or ():
            thinking = ": ".join(filter(None, (thought.subject, thought.description)))
            builder.event("thinking", thinking, logged_iso(thought.timestamp), step, self.thread)
        if text:
            builder.event("text", text, at, step, self.thread)
        for call in message.toolCalls or ():
            run(builder, call, at, step, self._unique_id(call.id))

    def _unique_id(self, call_id: str) -> str:
        unique = call_id if call_id and call_id not in self.call_ids else f"{call_id or 'call'}#{len(self.call_ids)}"
        self.call_ids.add(unique)
        return unique

    def _step(self, message: Message, text: str, at: int | None) -> Step:
        """One message is one model call, save one with nothing but tool calls and no tokens.

        Such a message holds the calls of the model call before it, cut off from that by a notice.
        """
        builder = self.builder
        before = self.step
        if message.tokens is None and not text and message.toolCalls and before and before.turn == builder.turn_index:
            return before
        step = builder.step(None, message.model, at, self.thread)
        step.message_id = message.id
        if message.tokens is not None:
            count(step, message.tokens)
        if message.model and message.model != self.model:
            if self.model is not None:
                builder.event("model_change", f"{self.model} -> {message.model}", at, step, self.thread)
            self.model = message.model
        self.step = step
        return step


def count(step: Step, tokens: Tokens) -> None:
    """The tokens of a message, as they are billed (design/formats.md#token-usage).

    `cached` is taken out of the input; the prompt of a built-in tool (`tool`) is input, and `thoughts`, which the file
    counts beside `output`, is output, as reasoning is in every other format.
    """
    fresh, output, cached, thoughts, tool = (
        count_of(v) for v in (tokens.input, tokens.output, tokens.cached, tokens.thoughts, tokens.tool)
    )
    if not any((fresh, output, cached, thoughts, tool)):
        return
    if fresh is not None:
        step.input_tokens = max(fresh - (cached or 0), 0) + (tool or 0)
    if output is not None:
        step.output_tokens = output + (thoughts or 0)
    step.cache_read_tokens = cached
    step.reasoning_tokens = thoughts


def typed(content: Content) -> str:
    """The words of a prompt, without the files the client put behind them."""
    texts: list[str] = []
    for part in parts_of(content):
        text = part.text or ""
        at = text.find(REFERENCED)
        if at >= 0:
            texts.append(text[:at])
            break
        texts.append(text)
    return "\n".join(filter(None, (s.strip() for s in texts)))


def _not_said(text: str) -> EventKind | None:
    if text == _SENT_BY_CLIENT:
        return "meta"
    return PROFILE.machine_kind(text)
