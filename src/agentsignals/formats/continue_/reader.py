"""Reads Continue's sessions. The structs hold only the fields that are read."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, created, edit_texts, of_whole_file, rewrites, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import Tokens, charge, close, path_of_uri, tokens_of, tokens_of_steps
from agentsignals.formats.continue_ import PROFILE
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import Part, each, is_list, tally, texts_of
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import decoder, inside, string
from agentsignals.model import CallStatus, Step, ToolCall, logged_ms


class Call(Struct, gc=False):
    id: str | None = None
    function: object = None


class Shown(Struct, gc=False, kw_only=True):
    """A piece of a result. The extensions log the `status` of a command."""

    content: str | None = None
    status: str | None = None


class State(Struct, gc=False, kw_only=True):
    toolCallId: str | None = None
    toolCall: Call = field(default_factory=Call)
    status: str | None = None
    output: list[Shown] | None = None


class Message(Struct, gc=False, kw_only=True):
    role: str = ""
    content: str | list[Part] | None = None
    toolCalls: list[Call] | None = None
    toolCallId: str | None = None
    usage: object = None

    @property
    def parts(self) -> list[Part]:
        if isinstance(self.content, str):
            return [Part(type="text", text=self.content)]
        return self.content or []

    @property
    def text(self) -> str:
        return texts_of(self.content)


class Item(Struct, gc=False, kw_only=True):
    message: Message
    toolCallStates: list[State] | None = None
    conversationSummary: str | None = None
    reasoning: object = None

    @property
    def parts(self) -> list[Part]:
        return self.message.parts


class SessionFile(Document, kw_only=True):
    id: str = field(name="sessionId")
    messages: list[Raw] = field(name="history", default_factory=list)
    title: str | None = None
    workspaceDirectory: str | None = None
    chatModelTitle: str | None = None
    usage: object = None


class Listed(Struct, gc=False):
    sessionId: str
    dateCreated: str | None = None


_DIFF = "\nDiff:\n"
_STDERR, _TIMED_OUT = "\nStderr: ", "[Command timed out after"
_EXIT_CODE = re.compile(r"\A(?:Error executing tool \S+: Error \(exit code|Command failed with exit code) (-?\d+)")
_RUNNING = ("generating", "generated", "calling")
_BUILT_IN = "builtin_"
"""Former prefix of the extensions' tool names."""


def read(inputs: list[Input]) -> Reading:
    """Read a folder: the sessions, and the list that says when each began."""
    lists = [source for source in inputs if is_list(source.data)]
    began = {session_id: at for source in lists for session_id, at in _listed(source)}
    return Reader.read([source for source in inputs if all(source is not other for other in lists)], began)


def _listed(source: Input) -> Iterator[tuple[str, int | None]]:
    raws = read_document(source, decoder(list[Raw]).decode, "") or []
    entries = each(raws, decoder(Listed).decode, source.artifact)
    tally(source.artifact, "list", ["entry" if entry is not None else None for entry in entries])
    for entry in entries:
        if entry is not None and entry.dateCreated:
            at = entry.dateCreated  # milliseconds as text
            yield entry.sessionId, logged_ms(int(at) if at.isascii() and at.isdecimal() and len(at) < 20 else at)


class Reader(DocumentReader[SessionFile, Item]):
    profile, document_type, message_type = PROFILE, SessionFile, Item
    list_key, noun = "history", "item"
    part_types = frozenset(("text", "imageUrl"))
    prompt_tokens = 0
    """Sum over all messages, as they count them."""
    cached_apart: bool | None = None
    """True if prompt tokens exclude cached ones; None if no message says."""

    def begin(self) -> None:
        self.session.title, self.session.started_at = self.document.title, self.extra.get(self.session.session_id)
        self.builder.where(path_of_uri(self.document.workspaceDirectory))
        self.model = self.document.chatModelTitle

    @staticmethod
    def role(message: Item) -> str:
        return message.message.role

    def take(self, message: Item) -> None:
        if message.conversationSummary is not None:
            self.event("compaction", "{}")
            self.event("meta", message.conversationSummary)
        super().take(message)

    def on_user(self, item: Item, at: None) -> None:
        self.prompt(item.message.text.strip(), attached=bool(item.parts))

    def on_thinking(self, item: Item, at: None) -> None:
        self.event("thinking", item.message.text)

    def on_system(self, item: Item, at: None) -> None:
        self.event("meta", item.message.text)

    def on_assistant(self, item: Item, at: None) -> None:
        message = item.message
        if item.conversationSummary is not None and message.text == item.conversationSummary and not message.toolCalls:
            return
        step = self.builder.step(None, string(inside(message.usage, "model")) or self.model)
        if message.usage is not None:
            self.charge(step, message.usage)
        if thought := string(inside(item.reasoning, "text")):
            self.event("thinking", thought, None, step)
        if message.text:
            self.event("text", message.text, None, step)
        states = {state.toolCallId: state for state in item.toolCallStates or ()}
        for call in message.toolCalls or [state.toolCall for state in states.values()]:
            name = (string(inside(call.function, "name")) or "").removeprefix(_BUILT_IN)
            self.call(call.id or "", name, string(inside(call.function, "arguments")) or "", None, step)
        for state in states.values():
            pieces = state.output or ()
            text = "\n".join(shown.content for shown in pieces if shown.content)
            for _ in (shown for shown in pieces if shown.content is None):
                self.event("unknown", "piece of a result without content")
            if state.status not in _RUNNING:
                status = next((shown.status for shown in pieces if shown.status), None)
                self.answer(state.toolCallId or "", text, state.status, status)
            elif text:
                self.event("meta", text)

    def on_tool(self, item: Item, at: None) -> None:
        self.answer(item.message.toolCallId or "", item.message.text, "done", None)

    def answer(self, call_id: str, text: str, state: str | None, says: str | None) -> None:
        """Record a result once: the extensions repeat it in a message of its own."""
        calls = self.builder.calls_of(call_id)
        if calls and self.builder.answered(call_id):
            return
        exited = None if says == "Command completed" else _EXIT_CODE.match(says or text)
        code = 0 if says == "Command completed" else int(exited[1]) if exited else None
        status, error = _status(calls[0] if calls else None, text, state, says)
        self.result(call_id, text, status, None, None, code, error)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
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
            return False
        return True

    def charge(self, step: Step, usage: object) -> None:
        """Set the tokens of a call as they are billed (design/formats.md#token-usage).

        `cache_read_tokens` is there only if the provider's `prompt_tokens` exclude cached ones, read or written.
        """
        self.cached_apart = inside(usage, "prompt_tokens_details", "cache_read_tokens") is not None
        self.prompt_tokens += count(inside(usage, "prompt_tokens")) or 0
        charge(step, tokens_of(usage, "apart" if self.cached_apart else "within"))

    def end(self) -> None:
        """Record what the session's totals hold beyond its messages: subagents, and what a compaction removed."""
        total, steps = self.document.usage, self.session.steps
        counted = tokens_of_steps(steps)
        output = (count(inside(total, "completionTokens")) or 0) - (counted.output or 0)
        if not output > 0:
            return
        details = inside(total, "promptTokensDetails")
        read, written = (count(inside(details, name)) or 0 for name in ("cachedTokens", "cacheWriteTokens"))
        tokens = Tokens(output=output)
        if self.cached_apart or (self.cached_apart is None and read):
            fresh = (count(inside(total, "promptTokens")) or 0) - self.prompt_tokens
            rest = Tokens(input=fresh, output=output, cache_read=read, cache_write=written)
            tokens = rest.without(Tokens(cache_read=counted.cache_read, cache_write=counted.cache_write))
        models = {step.model for step in steps}
        step = close(self.builder, models.pop() if len(models) == 1 else None, tokens)
        if not tokens.input:
            step.input_tokens = None


def _status(call: ToolCall | None, text: str, state: str | None, says: str | None) -> tuple[CallStatus, str | None]:
    """Return the status of a call and its error class, as far as its record states them.

    The exit code of a command is lost unless it wrote to stderr (`Error (exit code 3)`, or `Stderr:` after a 0).
    """
    if state == "canceled":
        if "blocked by security policy" in text:
            return "error", "permission"
        return ("rejected" if "denied by user" in text else "cancelled"), None
    if state == "errored" or (says or "").startswith("Command failed"):
        return "error", None
    is_command = call is not None and call.command is not None
    is_clear = not is_command or says == "Command completed" or _STDERR in text or _TIMED_OUT in text
    return ("ok" if is_clear else "unknown"), None
