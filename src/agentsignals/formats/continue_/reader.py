"""The sessions of one folder of Continue, each from its fullest copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, created, edit_texts, of_whole_file, rewrites, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.builder import SessionBuilder, path_of_uri
from agentsignals.formats.continue_ import PROFILE
from agentsignals.formats.documents import Snapshot, each, is_list, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.usage import Tokens, close, tokens_of_steps
from agentsignals.model import RAN, Artifact, CallStatus, Session, Step, ToolCall, logged_ms

# A session file of Continue as typed structs (design/formats.md#continue): only what is read.


class Part(Struct, gc=False, kw_only=True):
    """Of a content that is a list; an image is never decoded."""

    type: str = ""
    text: str | None = None


class Function(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class Call(Struct, gc=False):
    id: str | None = None
    function: Function = field(default_factory=Function)


class Shown(Struct, gc=False, kw_only=True):
    """A piece of a result. `status` is the extensions', of a command."""

    content: str | None = None
    status: str | None = None


class State(Struct, gc=False, kw_only=True):
    """How a call stands; it holds its result."""

    toolCallId: str | None = None
    toolCall: Call = field(default_factory=Call)
    status: str | None = None
    output: list[Shown] | None = None


class PromptDetails(Struct, gc=False, kw_only=True):
    cached_tokens: object = None
    cache_read_tokens: object = None
    """Only where the provider counts what comes from the cache beside the prompt."""
    cache_write_tokens: object = None


class OutputDetails(Struct, gc=False):
    reasoning_tokens: object = None


class Usage(Struct, gc=False, kw_only=True):
    model: str | None = None
    prompt_tokens: object = None
    completion_tokens: object = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None


class Message(Struct, gc=False, kw_only=True):
    role: str = ""
    content: str | list[Part] | None = None
    toolCalls: list[Call] | None = None
    toolCallId: str | None = None
    usage: Usage | None = None

    @property
    def parts(self) -> list[Part]:
        if isinstance(self.content, str):
            return [Part(type="text", text=self.content)]
        return self.content or []

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.text)


class Reasoning(Struct, gc=False):
    text: str | None = None


class Item(Struct, gc=False, kw_only=True):
    message: Message
    toolCallStates: list[State] | None = None
    conversationSummary: str | None = None
    reasoning: Reasoning | None = None


class TotalDetails(Struct, gc=False):
    cachedTokens: object = None
    cacheWriteTokens: object = None


class Total(Struct, gc=False):
    promptTokens: object = None
    completionTokens: object = None
    promptTokensDetails: TotalDetails = field(default_factory=TotalDetails)


class Document(Struct, kw_only=True):
    sessionId: str
    history: list[Raw] = []
    title: str | None = None
    workspaceDirectory: str | None = None
    chatModelTitle: str | None = None
    usage: Total | None = None
    items: list[Item | None] = []
    """`history`, each item decoded by itself; None for one that can't be read."""


class Listed(Struct, gc=False):
    """An entry of `sessions.json`."""

    sessionId: str
    dateCreated: str | None = None


_item = msgspec.json.Decoder(Item).decode
_document = msgspec.json.Decoder(Document).decode
decode_list = msgspec.json.Decoder(list[Raw]).decode
decode_listed = msgspec.json.Decoder(Listed).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Document:
    """A session, item by item: one that is odd costs itself."""
    document = _document(data)
    document.items, document.history = each(document.history, _item, artifact), []
    return document


_DIFF = "\nDiff:\n"
_STDERR, _TIMED_OUT = "\nStderr: ", "[Command timed out after"
_EXIT_CODE = re.compile(r"\A(?:Error executing tool \S+: Error \(exit code|Command failed with exit code) (-?\d+)")
_RUNS = ("generating", "generated", "calling")
_PARTS = frozenset(("text", "imageUrl"))
_BUILT_IN = "builtin_"
"""Began the names of the extensions' tools once."""


def read(inputs: list[Input]) -> Reading:
    """All files of a folder; of several copies of a session the fullest."""
    lists = [source for source in inputs if is_list(source.data)]
    began = {session_id: at for source in lists for session_id, at in _listed(source)}
    documents = [source for source in inputs if all(source is not other for other in lists)]
    return Reading([_Reader(s, began.get(s.session_id)).session() for s in largest(_snapshots(documents))])


def _listed(source: Input) -> Iterator[tuple[str, int | None]]:
    """When each session of the list began: milliseconds, as a text."""
    raws = read_document(source, decode_list, "") or []
    entries = each(raws, decode_listed, source.artifact)
    tally(source.artifact, "list", ["entry" if entry is not None else None for entry in entries])
    for entry in entries:
        if entry is not None and entry.dateCreated:
            at = entry.dateCreated
            yield entry.sessionId, logged_ms(int(at) if at.isascii() and at.isdecimal() and len(at) < 20 else at)


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Document]]:
    for source in inputs:
        document = read_document(source, partial(decode, artifact=source.artifact), "history")
        if document is None:
            continue
        tally(source.artifact, "item", [None if item is None else item.message.role for item in document.items])
        session_id = document.sessionId or source.session_hint or source.artifact.artifact_id
        yield Snapshot(source, document, session_id, len(document.items))


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Document], began: int | None) -> None:
        self.document = snapshot.document
        session = snapshot.source.session(snapshot.session_id, "continue", PROFILE.agent)
        session.title, session.started_at = self.document.title, began
        self.builder = SessionBuilder(session, PROFILE)
        self.builder.where(path_of_uri(self.document.workspaceDirectory))
        self.touched: set[str] = set()
        self.model = self.document.chatModelTitle
        self.prompt_tokens = 0
        """Of all messages, as they count them."""
        self.counts_beside: bool | None = None
        """Whether cached tokens stand beside the prompt's; None where no message says."""

    def session(self) -> Session:
        for number, item in enumerate(self.document.items, 1):
            self.builder.line = number
            if item is not None:
                self._item(item)
        self._rest()
        return self.builder.finish()

    def _item(self, item: Item) -> None:
        message, builder = item.message, self.builder
        summary = item.conversationSummary
        if summary is not None:
            builder.event("compaction", "{}")
            builder.event("meta", summary)
        if message.role == "user":
            self._user(message)
        elif message.role == "assistant" and (summary is None or message.text != summary or message.toolCalls):
            self._assistant(item)
        elif message.role == "thinking":
            builder.event("thinking", message.text)
        elif message.role == "tool":
            self._result(message.toolCallId or "", message.text, "done", None)
        elif message.role == "system":
            builder.event("meta", message.text)
        elif message.role != "assistant":
            builder.event("unknown", message.role or "message without a role")
        builder.unread((part.type for part in message.parts), _PARTS, None)

    def _user(self, message: Message) -> None:
        text = message.text.strip()
        kind = PROFILE.machine_kind(text)
        if kind:
            self.builder.event(kind, text)
        elif text:
            self.builder.turn("prompt", text)
        elif message.parts:
            self.builder.turn("attachment", "")

    def _assistant(self, item: Item) -> None:
        builder, message = self.builder, item.message
        usage = message.usage
        step = builder.step(None, (usage.model if usage is not None else None) or self.model)
        if usage is not None:
            self._count(step, usage)
        if item.reasoning is not None and item.reasoning.text:
            builder.event("thinking", item.reasoning.text, None, step)
        if message.text:
            builder.event("text", message.text, None, step)
        states = {state.toolCallId: state for state in item.toolCallStates or ()}
        for call in message.toolCalls or [state.toolCall for state in states.values()]:
            name = (call.function.name or "").removeprefix(_BUILT_IN)
            builder.call(call.id or "", name, call.function.arguments or "{}", PROFILE.tool(name), None, step)
        for state in states.values():
            self._ended(state)

    def _ended(self, state: State) -> None:
        text = "\n".join(shown.content for shown in state.output or () if shown.content)
        for _ in (shown for shown in state.output or () if shown.content is None):
            self.builder.event("unknown", "piece of a result without content")
        if state.status not in _RUNS:
            status = next((shown.status for shown in state.output or () if shown.status), None)
            self._result(state.toolCallId or "", text, state.status, status)
        elif text:
            self.builder.event("meta", text)

    def _result(self, call_id: str, text: str, state: str | None, says: str | None) -> None:
        """A result, once: the extensions repeat it in a message of its own."""
        asked = self.builder.calls_of(call_id)
        if asked and self.builder.answered(call_id):
            return
        code = _code(text, says)
        status, error = _status(asked[0] if asked else None, text, state, says)
        call = self.builder.result(call_id, text, status, exit_code=code, error=error)
        if call is not None and call.status in RAN and call.class_ == "edit":
            self._edit(call, text)
        if call is not None and call.path:
            self.touched.add(call.path)

    def _edit(self, call: ToolCall, text: str) -> None:
        hunks = unified(text.partition(_DIFF)[2])
        whole = next((t.new for t in edit_texts(call.arguments, call.argument_roles) if t.kind == "whole"), None)
        if hunks:
            new = whole is not None and rewrites(hunks, whole)
            self.builder.edit(call, None, "modify", of_whole_file(hunks) if new else hunks)
        elif whole is not None and text.startswith("Successfully created file"):
            self.builder.edit(call, None, "create", [created(whole)])
        elif _DIFF in text:
            self.builder.edit(call, None, "modify", [Hunk(added=0, removed=0)])
        else:
            record_arguments(self.builder, call, self.touched)

    def _count(self, step: Step, usage: Usage) -> None:
        """The tokens of a call as they are billed (design/formats.md#token-usage)."""
        prompt, details = count_of(usage.prompt_tokens), usage.prompt_tokens_details
        beside = details is not None and details.cache_read_tokens is not None
        self.prompt_tokens += prompt or 0
        self.counts_beside = beside
        cached = count_of(details.cache_read_tokens if beside else details.cached_tokens) if details else None
        if prompt is not None:
            step.input_tokens = prompt if beside else max(prompt - (cached or 0), 0)
        step.output_tokens, step.cache_read_tokens = count_of(usage.completion_tokens), cached
        step.cache_write_tokens = count_of(details.cache_write_tokens) if details else None
        if usage.completion_tokens_details is not None:
            step.reasoning_tokens = count_of(usage.completion_tokens_details.reasoning_tokens)

    def _rest(self) -> None:
        """What the session's totals hold beyond its messages: those that a compaction took away, and subagents'."""
        total, steps = self.document.usage, self.builder.session.steps
        if total is None:
            return
        counted, details = tokens_of_steps(steps), total.promptTokensDetails
        output = (count_of(total.completionTokens) or 0) - (counted.output or 0)
        if not output > 0:
            return
        read, written = count_of(details.cachedTokens) or 0, count_of(details.cacheWriteTokens) or 0
        fresh = (count_of(total.promptTokens) or 0) - self.prompt_tokens
        used = Tokens(output=output)
        if self.counts_beside or (self.counts_beside is None and read):
            rest = Tokens(input=fresh, output=output, cache_read=read, cache_write=written)
            used = rest.without(Tokens(cache_read=counted.cache_read, cache_write=counted.cache_write))
        models = {step.model for step in steps}
        step = close(self.builder, models.pop() if len(models) == 1 else None, used)
        if not used.input:
            step.input_tokens = None


def _code(text: str, says: str | None) -> int | None:
    if says == "Command completed":
        return 0
    match = _EXIT_CODE.match(says or text)
    return int(match[1]) if match else None


def _status(call: ToolCall | None, text: str, state: str | None, says: str | None) -> tuple[CallStatus, str | None]:
    """How a call ended by its own record, and the class of its error where that says it: a command's exit code is
    lost, unless it wrote to stderr (`Error (exit code 3)`, or with 0 what it wrote behind `Stderr:`)."""
    if state == "canceled":
        if "blocked by security policy" in text:
            return "error", "permission"
        return ("rejected" if "denied by user" in text else "cancelled"), None
    if state == "errored" or (says or "").startswith("Command failed"):
        return "error", None
    is_command = call is not None and call.command is not None
    is_clear = not is_command or says == "Command completed" or _STDERR in text or _TIMED_OUT in text
    return ("ok" if is_clear else "unknown"), None
