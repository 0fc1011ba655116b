"""The threads of one family, each as a session."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.amp import PROFILE
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.bounds import whole
from agentsignals.formats.builder import SessionBuilder, path_of_uri, repo_name
from agentsignals.formats.documents import Snapshot, as_text, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import MAIN, RAN, REPLAYED, Artifact, CallStatus, Session, Step, ToolCall, logged_iso, logged_ms

# A thread of Amp as typed structs (design/formats.md#amp): only what is read.


class Problem(Struct, gc=False):
    message: str | None = None


class Run(Struct, gc=False, kw_only=True):
    """What became of a call; in `progress` what its subagent did."""

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
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    toolUseID: str | None = None
    run: Run = field(default_factory=Run)
    args: BashArguments | None = None
    toolRun: Run | None = None
    """Of a command that the person ran."""
    summary: Raw = Raw()


BLOCKS = frozenset(
    ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "manual_bash_invocation", "summary")
)


class State(Struct, gc=False):
    type: str | None = None
    stopReason: str | None = None
    error: Problem | None = None


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
    """What this thread is to the other one."""


class Thread(Struct, kw_only=True):
    id: str
    messages: list[Raw] = []
    created: object = None
    title: str | None = None
    env: Raw = Raw()
    meta: Raw = Raw()
    relationships: list[Relation] = []
    mainThreadID: str | None = None
    """Of a subagent's thread."""
    forkPointIndex: int | None = None
    """The last message that a fork copied from the thread it left."""
    read: list[Message | None] = []
    """`messages`, each decoded by itself; None for one that can't be read."""

    @property
    def initial(self) -> Initial:
        try:
            return msgspec.json.decode(self.env, type=Environment).initial if self.env else Initial()
        except UNREADABLE:
            return Initial()

    @property
    def traces(self) -> list[Trace]:
        try:
            return msgspec.json.decode(self.meta, type=Meta).traces if self.meta else []
        except UNREADABLE:
            return []


class SubagentCall(Struct, gc=False, kw_only=True):
    tool_name: str = ""
    status: str = ""
    input: Raw = Raw()
    result: Raw = Raw()
    error: Problem | None = None


class SubagentTurn(Struct, gc=False, kw_only=True):
    """An answer of a subagent with its calls."""

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


_message = msgspec.json.Decoder(Message).decode
_thread = msgspec.json.Decoder(Thread).decode
_progress = msgspec.json.Decoder(list[SubagentTurn]).decode
_result = msgspec.json.Decoder(Result | list[str] | str | None).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Thread:
    """A thread, message by message: one that is odd costs itself."""
    thread = _thread(data)
    thread.read, thread.messages = each(thread.messages, _message, artifact), []
    return thread


def subagent(run: Run) -> list[SubagentTurn]:
    """What the subagent of a call did; nothing where it had none."""
    try:
        return _progress(run.progress) if run.progress else []
    except UNREADABLE:
        return []


def result_of(raw: Raw) -> Result | str | None:
    """A result, the lines of a list as a text; its own JSON where it is of no shape that is read."""
    try:
        result = _result(raw) if raw else None
    except UNREADABLE:
        result = []
    if not isinstance(result, list):
        return result
    return "\n".join(result) or bytes(raw).decode("utf-8", "replace")


_STATUS: dict[str, CallStatus] = {
    "done": "ok", "error": "error", "cancelled": "cancelled", "rejected-by-user": "rejected",
}  # fmt: skip
_FEEDBACK = "This tool call was rejected by the user with feedback: "
_BRANCH = "refs/heads/"


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of a thread the fullest."""
    return Reading([_Reader(snapshot).session() for snapshot in largest(_snapshots(inputs))])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Thread]]:
    for source in inputs:
        thread = read_document(source, partial(decode, artifact=source.artifact), "messages")
        if thread is None:
            continue
        tally(source.artifact, "message", [None if m is None else m.role for m in thread.read])
        yield Snapshot(source, thread, thread.id or source.artifact.artifact_id, len(thread.read))


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Thread]) -> None:
        self.thread = snapshot.document
        session = snapshot.source.session(snapshot.session_id, "amp", PROFILE.agent)
        self.builder = SessionBuilder(session, PROFILE)
        self._describe(session)
        self.ends = {t.context.messageId: logged_iso(t.endTime) for t in self.thread.traces if t.name == "tools"}
        """When the calls of a message had all ended."""
        self.ended: int | None = None
        """The same for the calls whose results come next, where it is one."""
        self.touched: set[str] = set()
        self.on = MAIN

    def _describe(self, session: Session) -> None:
        thread, initial = self.thread, self.thread.initial
        session.title, session.started_at = thread.title, logged_ms(thread.created)
        session.agent_version = initial.platform.clientVersion
        began_it = (r.threadID for r in thread.relationships if r.role == "child" and r.type in ("fork", "handoff"))
        session.parent_session_id = thread.mainThreadID or next(began_it, None)
        for tree in initial.trees[:1]:
            ref = tree.repository.ref or ""
            session.repo = repo_name(tree.repository.url) or session.repo
            self.builder.where(path_of_uri(tree.uri), ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else None)

    def session(self) -> Session:
        copied = -1 if self.thread.forkPointIndex is None else self.thread.forkPointIndex
        for n, message in enumerate(self.thread.read):
            self.builder.line = n + 1
            self.on = REPLAYED if n <= copied else MAIN
            if message is not None:
                self._message(message)
        return self.builder.finish()

    def _message(self, message: Message) -> None:
        at = logged_ms(message.meta.sentAt)
        if message.role == "user":
            self._user(message, at)
        elif message.role == "assistant":
            self._assistant(message)
        elif message.role == "info":
            for block in message.content:
                self._told_by_program(block, at)
        else:
            self.builder.event("unknown", message.role or "message without a role", at, thread=self.on)
        self.builder.unread((block.type for block in message.content), BLOCKS, at, self.on)

    def _user(self, message: Message, at: int | None) -> None:
        """Results come first; with words of the person behind them where they spoke meanwhile."""
        builder = self.builder
        for block in message.content:
            if block.type == "tool_result":
                self._result(block.toolUseID or "", block.run, self.ended)
        text = "\n".join(block.text for block in message.content if block.type == "text" and block.text).strip()
        kind = PROFILE.machine_kind(text)
        if text and (kind or self.on != MAIN or self.thread.mainThreadID is not None):
            builder.event(kind or "meta", text, at, thread=self.on)
        elif text:
            builder.turn("prompt", text, at)
        elif any(block.type == "image" for block in message.content):
            builder.turn("attachment", "", at)
        if message.interrupted:
            builder.event("interrupt", "", at, thread=self.on)

    def _told_by_program(self, block: Block, at: int | None) -> None:
        builder = self.builder
        if block.type == "manual_bash_invocation":
            builder.event("user_shell", (block.args and block.args.cmd) or "", at, thread=self.on)
            if block.toolRun is not None:
                builder.event("command_output", _text(block.toolRun), at, thread=self.on)
        elif block.type == "summary":
            builder.event("compaction", "{}", at, thread=self.on)
            builder.event("meta", bytes(block.summary).decode("utf-8", "replace"), at, thread=self.on)
        elif block.text:
            builder.event("meta", block.text, at, thread=self.on)

    def _assistant(self, message: Message) -> None:
        builder, usage, state = self.builder, message.usage, message.state
        at = logged_iso(usage.timestamp) if usage is not None else None
        step = builder.step(None, usage.model if usage is not None else None, at, self.on)
        if message.messageId is not None:
            step.message_id = str(message.messageId)
        if usage is not None:
            count(step, usage)
        for block in message.content:
            if block.type in ("thinking", "redacted_thinking"):
                builder.event("thinking", block.thinking or "", at, step, self.on)
            elif block.type == "text" and (block.text or "").strip():
                builder.event("text", block.text, at, step, self.on)
            elif block.type == "tool_use":
                self._call(block.id or "", block.name or "", block.input, at, step)
        calls = sum(block.type == "tool_use" for block in message.content)
        self.ended = self.ends.get(message.messageId) if calls == 1 else None
        if state is not None:
            step.stop_reason = state.stopReason
            if state.type == "cancelled":
                builder.event("interrupt", "", at, step, self.on)
            elif state.type == "error":
                builder.event("api_error", (state.error and state.error.message) or "", at, step, self.on)

    def _call(self, call_id: str, name: str, arguments: Raw, at: int | None, step: Step) -> None:
        self.builder.call(call_id, name, bytes(arguments) or b"{}", PROFILE.tool(name), at, step, step.thread)

    def _result(self, call_id: str, run: Run, at: int | None) -> None:
        builder = self.builder
        for number, answer in enumerate(subagent(run)):
            self._subagent(call_id, number, answer)
        status, text = _STATUS.get(run.status), _text(run)
        if status is None:
            return  # it was waiting or running when the thread was last written
        feedback = text.removeprefix(_FEEDBACK) if text.startswith(_FEEDBACK) else None
        result = result_of(run.result)
        code = whole(result.exitCode) if isinstance(result, Result) else None
        if isinstance(result, Result) and result.stopCode is not None:
            text = "\n".join(filter(None, (text, result.stopReason)))
            status, code = ("cancelled" if result.stopCode == "user-stop" else "error"), None
        call = builder.result(call_id, text, "rejected" if feedback else status, at, self.on, code)
        if feedback and self.on == MAIN:
            builder.turn("rejection_feedback", feedback, at)
        if call is None:
            return
        if call.status in RAN and call.class_ == "edit":
            self._edit(call, result)
        if call.path:
            self.touched.add(call.path)

    def _edit(self, call: ToolCall, result: Result | str | None) -> None:
        diff = result.diff if isinstance(result, Result) else None
        hunks = unified(diff.removesuffix("```")) if isinstance(diff, str) else []
        if hunks:
            self.builder.edit(call, None, "modify", hunks)
        else:
            record_arguments(self.builder, call, self.touched)

    def _subagent(self, call_id: str, number: int, answer: SubagentTurn) -> None:
        """What a subagent said and did, on the thread of the call that began it; nothing says when."""
        builder, thread, turn = self.builder, call_id, self.builder.turn_index
        builder.turn_index = None
        step = builder.step(None, None, None, thread)
        if answer.message:
            builder.event("text", answer.message, None, step, thread)
        for n, use in enumerate(answer.tool_uses):
            own_id = f"{call_id}#{number}.{n}"
            self._call(own_id, use.tool_name, use.input, None, step)
            self._result(own_id, Run(status=use.status, result=use.result, error=use.error), None)
        builder.turn_index = turn


def _text(run: Run) -> str:
    """What the model got of a call."""
    if run.error is not None:
        return run.error.message or ""
    result = result_of(run.result)
    if not isinstance(result, Result):
        return result or run.reason or ""
    shown = next((v for v in (result.output, result.content, result.diff) if v is not None), None)
    return as_text(shown) if shown is not None else bytes(run.result).decode("utf-8", "replace")


def count(step: Step, usage: Usage) -> None:
    """The tokens of a call (design/formats.md#token-usage). Of every provider but Anthropic Amp writes an input of 0,
    and what did not come from the cache as if it had been written to it."""
    fresh, written = count_of(usage.inputTokens), count_of(usage.cacheCreationInputTokens)
    if fresh == 0 and not (usage.model or "").startswith("claude"):
        fresh, written = written, None
    step.input_tokens, step.cache_write_tokens = fresh, written
    step.output_tokens, step.cache_read_tokens = count_of(usage.outputTokens), count_of(usage.cacheReadInputTokens)
