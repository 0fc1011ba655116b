"""Read Amp threads. The structs hold only the fields that are read."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import unified
from agentsignals.formats.amp import PROFILE
from agentsignals.formats.bounds import count, whole
from agentsignals.formats.builder import path_of_uri, repo_name
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import as_text
from agentsignals.formats.records import decoded
from agentsignals.model import MAIN, REPLAYED, CallStatus, Step, ToolCall, logged_iso, logged_ms


class Problem(Struct, gc=False):
    message: str | None = None


class Run(Struct, gc=False, kw_only=True):
    """The result of a call. `progress` holds the turns of its subagent."""

    status: str = ""
    result: Raw = Raw()
    error: Problem | None = None
    reason: str | None = None
    progress: Raw = Raw()


class BashArguments(Struct, gc=False):
    cmd: str | None = None


class Block(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str = ""
    name: str = ""
    input: Raw = Raw()
    toolUseID: str = ""
    run: Run = field(default_factory=Run)
    args: BashArguments = field(default_factory=BashArguments)
    toolRun: Run | None = None
    """Result of a command that the person ran."""
    summary: Raw = Raw()


class State(Struct, gc=False):
    type: str | None = None
    stopReason: str | None = None
    error: Problem = field(default_factory=Problem)


class Usage(Struct, gc=False, kw_only=True):
    model: str | None = None
    inputTokens: object = None
    outputTokens: object = None
    cacheCreationInputTokens: object = None
    cacheReadInputTokens: object = None
    timestamp: str | None = None


class Sent(Struct, gc=False):
    sentAt: object = None


class Message(Struct, gc=False, kw_only=True):
    role: str = ""
    messageId: int | None = None
    content: list[Block] = []
    state: State | None = None
    usage: Usage | None = None
    meta: Sent = field(default_factory=Sent)
    interrupted: bool = False


class Context(Struct, gc=False):
    messageId: int | None = None


class Trace(Struct, gc=False, kw_only=True):
    name: str = ""
    context: Context = field(default_factory=Context)
    endTime: str | None = None


class Meta(Struct, gc=False):
    traces: list[Trace] = []


class Repository(Struct, gc=False):
    url: str | None = None
    ref: str | None = None


class Tree(Struct, gc=False):
    uri: str | None = None
    repository: Repository = field(default_factory=Repository)


class Platform(Struct, gc=False):
    clientVersion: str | None = None


class Initial(Struct, gc=False):
    trees: list[Tree] = []
    platform: Platform = field(default_factory=Platform)


class Environment(Struct, gc=False):
    initial: Initial = field(default_factory=Initial)


class Relation(Struct, gc=False, kw_only=True):
    threadID: str | None = None
    type: str | None = None
    role: str | None = None
    """Role of this thread in the relation, such as `child`."""


class Thread(Document, kw_only=True):
    created: object = None
    title: str | None = None
    env: Raw = Raw()
    meta: Raw = Raw()
    relationships: list[Relation] = field(default_factory=list)
    mainThreadID: str | None = None
    """Set in a subagent's thread."""
    forkPointIndex: int | None = None
    """Index of the last message that a fork copied from its origin."""


class SubagentCall(Struct, gc=False, kw_only=True):
    tool_name: str = ""
    status: str = ""
    input: Raw = Raw()
    result: Raw = Raw()
    error: Problem | None = None


class SubagentTurn(Struct, gc=False, kw_only=True):
    """One subagent message with its calls."""

    message: str | None = None
    tool_uses: list[SubagentCall]


class Result(Struct, gc=False, kw_only=True):
    """A result that is an object."""

    output: object = None
    content: object = None
    diff: object = None
    exitCode: object = None
    stopCode: str | None = None
    stopReason: str | None = None


_STATUS: dict[str, CallStatus] = {
    "done": "ok", "error": "error", "cancelled": "cancelled", "rejected-by-user": "rejected",
}  # fmt: skip
_FEEDBACK = "This tool call was rejected by the user with feedback: "
_BRANCH = "refs/heads/"


class Reader(DocumentReader[Thread, Message]):
    profile, document_type, message_type = PROFILE, Thread, Message
    part_types = frozenset(
        ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "manual_bash_invocation",
         "summary")
    )  # fmt: skip
    ended: int | None = None
    """End time of the previous message's call, if it made exactly one."""

    def begin(self) -> None:
        thread, session = self.document, self.session
        initial = (decoded(thread.env, Environment) or Environment()).initial
        self.is_subagent = thread.mainThreadID is not None
        session.title, session.started_at = thread.title, logged_ms(thread.created)
        session.agent_version = initial.platform.clientVersion
        began_it = (r.threadID for r in thread.relationships if r.role == "child" and r.type in ("fork", "handoff"))
        session.parent_session_id = thread.mainThreadID or next(began_it, None)
        for tree in initial.trees[:1]:
            ref = tree.repository.ref or ""
            session.repo = repo_name(tree.repository.url) or session.repo
            self.builder.where(path_of_uri(tree.uri), ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else None)
        traces = (decoded(thread.meta, Meta) or Meta()).traces
        self.ends = {t.context.messageId: logged_iso(t.endTime) for t in traces if t.name == "tools"}

    def take(self, message: Message) -> None:
        copied = self.document.forkPointIndex
        self.thread = REPLAYED if copied is not None and self.builder.line <= copied + 1 else MAIN
        super().take(message)

    def at(self, message: Message) -> int | None:
        return logged_ms(message.meta.sentAt)

    def types(self, message: Message) -> list[str]:
        return [block.type for block in message.content]

    def on_user(self, message: Message, at: int | None) -> None:
        """Results come first; text that the person typed meanwhile follows."""
        for block in message.content:
            if block.type == "tool_result":
                self.run(block.toolUseID, block.run, self.ended)
        text = "\n".join(block.text for block in message.content if block.type == "text" and block.text).strip()
        self.prompt(text, at, attached=any(block.type == "image" for block in message.content))
        if message.interrupted:
            self.event("interrupt", "", at)

    def on_info(self, message: Message, at: int | None) -> None:
        for block in message.content:
            if block.type == "manual_bash_invocation":
                self.event("user_shell", block.args.cmd or "", at)
                if block.toolRun is not None:
                    self.event("command_output", _text(block.toolRun), at)
            elif block.type == "summary":
                self.event("compaction", "{}", at)
                self.event("meta", bytes(block.summary).decode("utf-8", "replace"), at)
            elif block.text:
                self.event("meta", block.text, at)

    def on_assistant(self, message: Message, _: int | None) -> None:
        usage, state = message.usage or Usage(), message.state
        at = logged_iso(usage.timestamp)
        step = self.builder.step(None, usage.model, at, self.thread)
        if message.messageId is not None:
            step.message_id = str(message.messageId)
        _count(step, usage)
        for block in message.content:
            if block.type in ("thinking", "redacted_thinking"):
                self.event("thinking", block.thinking or "", at, step)
            elif block.type == "text" and (block.text or "").strip():
                self.event("text", block.text, at, step)
            elif block.type == "tool_use":
                self.call(block.id, block.name, bytes(block.input), at, step)
        calls = sum(block.type == "tool_use" for block in message.content)
        self.ended = self.ends.get(message.messageId) if calls == 1 else None
        if state is not None:
            step.stop_reason = state.stopReason
            if state.type == "cancelled":
                self.event("interrupt", "", at, step)
            elif state.type == "error":
                self.event("api_error", state.error.message or "", at, step)

    def run(self, call_id: str, run: Run, at: int | None) -> None:
        """Record a call's result. Its subagent's turns go to a thread named after the call, without times."""
        for number, answer in enumerate(decoded(run.progress, list[SubagentTurn]) or ()):
            with self.aside(call_id):
                step = self.builder.step(None, None, None, call_id)
                if answer.message:
                    self.event("text", answer.message, None, step)
                for n, use in enumerate(answer.tool_uses):
                    self.call(f"{call_id}#{number}.{n}", use.tool_name, bytes(use.input), None, step)
                    self.run(
                        f"{call_id}#{number}.{n}", Run(status=use.status, result=use.result, error=use.error), None
                    )
        status, text, result = _STATUS.get(run.status), _text(run), _result(run.result)
        if status is None:
            return  # still running when the thread was last written
        feedback = text.removeprefix(_FEEDBACK) if text.startswith(_FEEDBACK) else None
        code = whole(result.exitCode) if isinstance(result, Result) else None
        if isinstance(result, Result) and result.stopCode is not None:
            text = "\n".join(filter(None, (text, result.stopReason)))
            status, code = ("cancelled" if result.stopCode == "user-stop" else "error"), None
        self.result(call_id, text, "rejected" if feedback else status, at, result, code)
        if feedback and self.thread == MAIN:
            self.builder.turn("rejection_feedback", feedback, at)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        diff = detail.diff if isinstance(detail, Result) else None
        hunks = unified(diff.removesuffix("```")) if isinstance(diff, str) else []
        if hunks:
            self.builder.edit(call, None, "modify", hunks)
        return bool(hunks)


def _result(raw: Raw) -> Result | str | None:
    """Decode a result. A list becomes lines of text, an unknown shape its JSON."""
    result: Result | list[str] | str | None = decoded(raw, Result | list[str] | str | None)
    if isinstance(result, list) or (result is None and raw and bytes(raw) != b"null"):
        return "\n".join(result or ()) or bytes(raw).decode("utf-8", "replace")
    return result


def _text(run: Run) -> str:
    """Return the text that the model received."""
    if run.error is not None:
        return run.error.message or ""
    result = _result(run.result)
    if not isinstance(result, Result):
        return result or run.reason or ""
    shown = next((v for v in (result.output, result.content, result.diff) if v is not None), None)
    return as_text(shown) if shown is not None else bytes(run.result).decode("utf-8", "replace")


def _count(step: Step, usage: Usage) -> None:
    """Set the tokens of a model call (design/formats.md#token-usage). For providers other than Anthropic, Amp logs 0
    input tokens and logs the uncached input as cache writes."""
    fresh, written = count(usage.inputTokens), count(usage.cacheCreationInputTokens)
    if fresh == 0 and not (usage.model or "").startswith("claude"):
        fresh, written = written, None
    step.input_tokens, step.cache_write_tokens = fresh, written
    step.output_tokens, step.cache_read_tokens = count(usage.outputTokens), count(usage.cacheReadInputTokens)


read = Reader.read
