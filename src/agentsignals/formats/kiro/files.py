"""The Kiro conversations of one family, and each as a session."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.kiro.profile import PROFILE
from agentsignals.formats.kiro.records import Answer, Conversation, Entry, Result, Results, User, decode
from agentsignals.formats.kiro.tools import Runs
from agentsignals.formats.one_document import Snapshot, largest, tally
from agentsignals.formats.one_document import read as read_document
from agentsignals.model import Artifact, Session, Step
from agentsignals.model.times import logged_iso, logged_ms

DENIED = "I deny this tool request. Ask a follow up question clarifying the expected action"
"""What the client sends when the person answers `n` to a tool request."""
STOPPED = "The user interrupted the tool execution."
_CLIENT_PROMPTS = (
    "In a few words, summarize our conversation so far.",
    "You took too long to respond - try to split up the work into smaller steps.",
    "[SYSTEM NOTE: This is an automated request, not from the user]",
)
_NOTICES = (
    "Tool uses were interrupted, waiting for the next user prompt",
    "Response was interrupted by the user",
    "Response timed out - message took too long to generate",
)
"""Replies the client writes in the agent's name: no model call."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several snapshots of a session the fullest."""
    return Reading([_Reader(snapshot).session() for snapshot in largest(_snapshots(inputs))])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Conversation]]:
    for source in inputs:
        conversation = read_document(source, partial(decode, artifact=source.artifact), "history")
        if conversation is None:
            continue
        _count(source.artifact, conversation)
        session_id = conversation.conversation_id or source.session_hint or source.artifact.artifact_id
        yield Snapshot(source, conversation, session_id, len(conversation.history))


def _count(artifact: Artifact, conversation: Conversation) -> None:
    tally(artifact, "entry", [None if e is None else _kind(e) for e in conversation.history])


def _kind(entry: Entry) -> str:
    return f"{_kind_of_user(entry.user)}+{_kind_of_answer(entry.assistant)}"


def _kind_of_user(user: User | None) -> str:
    content = user.content if user is not None else None
    if content is None:
        return "nothing"
    if content.Prompt is not None:
        return "prompt"
    if content.ToolUseResults is not None:
        return "results"
    return "cancelled" if content.CancelledToolUses is not None else "unknown"


def _kind_of_answer(answer: Answer | None) -> str:
    if answer is None:
        return "nothing"
    return "tool_use" if answer.ToolUse is not None else "response" if answer.Response is not None else "unknown"


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Conversation]) -> None:
        source = snapshot.source
        session = source.session(snapshot.session_id, "kiro", "kiro")
        self.conversation = snapshot.document
        self.builder = SessionBuilder(session, PROFILE)
        self.runs = Runs(self.builder)
        info = snapshot.document.model_info
        self.model = info.model_id if info is not None else None

    def session(self) -> Session:
        if bytes(self.conversation.latest_summary) not in (b"", b"null"):
            self.builder.line = 1  # the summary stands for the entries that are gone: before the first one left
            self.builder.event("compaction", "{}")
        for number, entry in enumerate(self.conversation.history, 1):
            self.builder.line = number
            if entry is not None:
                self._entry(entry)
        return self.builder.finish()

    def _entry(self, entry: Entry) -> None:
        meta = entry.request_metadata
        asked = logged_ms(meta.request_start_timestamp_ms) if meta is not None else None
        answered = logged_ms(meta.stream_end_timestamp_ms) if meta is not None else None
        model = (meta.model_id if meta is not None else None) or self.model
        if entry.user is not None:
            state = entry.user.env_context.env_state if entry.user.env_context is not None else None
            self.builder.where(state.current_working_directory if state is not None else None)
            said_at = logged_iso(entry.user.timestamp)
            self._user(entry.user, said_at if said_at is not None else asked, model)
        if entry.assistant is not None:
            self._answer(entry.assistant, asked, answered, model)

    def _user(self, user: User, at: int | None, model: str | None) -> None:
        content = user.content
        if content is None:
            self.runs.forget()  # a turn of tool results, which the collector left out
        elif content.Prompt is not None:
            self.runs.forget()
            self._prompt(content.Prompt.prompt or "", bool(user.images), at, model)
        elif content.ToolUseResults is not None:
            self._results(content.ToolUseResults.tool_use_results, at)
        elif content.CancelledToolUses is not None:
            self._cancelled(content.CancelledToolUses, at, model)
        else:
            self.builder.event("unknown", "user content of an unknown kind", at)

    def _prompt(self, text: str, has_images: bool, at: int | None, model: str | None) -> None:
        if text.startswith(_CLIENT_PROMPTS) or PROFILE.machine_kind(text.lstrip()):
            self.builder.event("meta", text, at)
        elif text.strip():
            self.builder.turn("prompt", text.strip(), at, model)
        elif has_images:
            self.builder.turn("attachment", "", at, model)

    def _results(self, results: list[Result] | None, at: int | None) -> None:
        for result in results or ():
            self.runs.answer(result, at)

    def _cancelled(self, cancelled: Results, at: int | None, model: str | None) -> None:
        """The person answered a tool request with words of their own, with `n`, or stopped a running tool."""
        prompt = (cancelled.prompt or "").strip()
        stopped = not prompt or prompt == STOPPED
        for result in cancelled.tool_use_results or ():
            self.runs.answer(result, at, "cancelled" if stopped else "rejected")
        if stopped or prompt == DENIED:
            self.builder.event("interrupt", prompt, at)
        else:
            self.builder.turn("rejection_feedback", prompt, at, model)

    def _answer(self, answer: Answer, asked: int | None, answered: int | None, model: str | None) -> None:
        builder = self.builder
        message = answer.ToolUse or answer.Response
        if message is None:
            builder.event("unknown", "answer of an unknown kind", asked)
            return
        text = message.content or ""
        if answer.ToolUse is None and text.strip() in _NOTICES:
            builder.event("meta", text, answered)
            return
        step = self._step(message.message_id, asked, model)
        if text:
            builder.event("text", text, answered if answered is not None else asked, step)
        for use in message.tool_uses or ():
            self.runs.call(use, answered if answered is not None else asked, step)

    def _step(self, message_id: str | None, at: int | None, model: str | None) -> Step:
        step = self.builder.step(None, model, at)
        step.message_id = message_id or None
        return step
