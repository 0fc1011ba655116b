"""Read Amp threads. The structs hold only the fields that are read."""

import re
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.amp import PROFILE
from agentsignals.formats.bounds import whole
from agentsignals.formats.builder import charge, path_of_uri, repo_name, tokens_of
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import each
from agentsignals.formats.records import as_list, as_text, decoded, decoder, inside, string
from agentsignals.model import MAIN, REPLAYED, CallStatus, ToolCall, logged_iso, logged_ms


class Run(Struct, gc=False, kw_only=True):
    """The result of a call. `progress` holds the turns of its subagent."""

    status: str = ""
    result: Raw = Raw()
    error: object = None
    reason: str | None = None
    progress: Raw = Raw()


class Block(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str = ""
    name: str = ""
    input: Raw = Raw()
    toolUseID: str = ""
    run: Run = field(default_factory=Run)
    args: object = None
    toolRun: Run | None = None
    """Result of a command that the person ran."""
    summary: Raw = Raw()


class Message(Struct, gc=False, kw_only=True):
    role: str = ""
    messageId: int | None = None
    content: list[Block] = []
    state: object = None
    usage: object = None
    meta: object = None
    interrupted: bool = False


class Thread(Document, kw_only=True):
    created: object = None
    title: str | None = None
    env: object = None
    meta: object = None
    relationships: list[Any] = field(default_factory=list)
    """Other threads, each with the role of this one in the relation, such as `child`."""
    mainThreadID: str | None = None
    """Set in a subagent's thread."""
    originThreadID: str | None = None
    forkPointIndex: int | None = None
    """Index of the last message that a fork copied from its origin."""


class SubagentCall(Run, gc=False, kw_only=True):
    tool_name: str = ""
    input: Raw = Raw()


class SubagentTurn(Struct, gc=False, kw_only=True):
    message: str | None = None
    tool_uses: list[SubagentCall]


class Result(Struct, gc=False, kw_only=True):
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
        self.is_subagent = thread.mainThreadID is not None
        session.title, session.started_at = thread.title, logged_ms(thread.created)
        session.agent_version = string(inside(thread.env, "initial", "platform", "clientVersion"))
        began_it = (
            string(inside(r, "threadID"))
            for r in thread.relationships
            if inside(r, "role") == "child" and inside(r, "type") in ("fork", "handoff")
        )
        session.parent_session_id = thread.mainThreadID or next(began_it, None)
        for tree in as_list(inside(thread.env, "initial", "trees"))[:1]:
            ref = string(inside(tree, "repository", "ref")) or ""
            session.repo = repo_name(string(inside(tree, "repository", "url"))) or session.repo
            branch = ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else None
            self.builder.where(path_of_uri(string(inside(tree, "uri"))), branch)
        self.ends = {
            as_text(inside(trace, "context", "messageId")): logged_iso(string(inside(trace, "endTime")))
            for trace in as_list(inside(thread.meta, "traces"))
            if inside(trace, "name") == "tools"
        }

    def take(self, message: Message) -> None:
        copied = self.document.forkPointIndex
        is_copy = copied is not None and self.builder.line <= copied + 1
        self.thread = REPLAYED if is_copy else MAIN
        if not (is_copy and self.document.originThreadID in self.extra):  # the original counts
            super().take(message)

    def at(self, message: Message) -> int | None:
        return logged_ms(inside(message.meta, "sentAt"))

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
                self.event("user_shell", string(inside(block.args, "cmd")) or "", at)
                if block.toolRun is not None:
                    self.event("command_output", _text(block.toolRun), at)
            elif block.type == "summary":
                self.event("compaction", "{}", at)
                self.event("meta", bytes(block.summary).decode("utf-8", "replace"), at)
            elif block.text:
                self.event("meta", block.text, at)

    def on_assistant(self, message: Message, _: int | None) -> None:
        usage, model = message.usage, string(inside(message.usage, "model"))
        at = logged_iso(string(inside(usage, "timestamp")))
        step = self.builder.step(None, model, at, self.thread)
        if message.messageId is not None:
            step.message_id = str(message.messageId)
        tokens = tokens_of(usage, "apart")
        if tokens.input == 0 and not (model or "").startswith("claude"):
            # For providers other than Anthropic Amp logs the uncached input as cache writes, and 0 input tokens.
            tokens = tokens._replace(input=tokens.cache_write, cache_write=None)
        charge(step, tokens)
        for block in message.content:
            if block.type in ("thinking", "redacted_thinking"):
                self.event("thinking", block.thinking or "", at, step)
            elif block.type == "text" and (block.text or "").strip():
                self.event("text", block.text, at, step)
            elif block.type == "tool_use":
                self.call(block.id, block.name, bytes(block.input), at, step)
        calls = sum(block.type == "tool_use" for block in message.content)
        self.ended = self.ends.get(as_text(message.messageId)) if calls == 1 else None
        step.stop_reason, state = string(inside(message.state, "stopReason")), inside(message.state, "type")
        if state == "cancelled":
            self.event("interrupt", "", at, step)
        elif state == "error":
            self.event("api_error", string(inside(message.state, "error", "message")) or "", at, step)

    def run(self, call_id: str, run: Run, at: int | None) -> None:
        """Record a call's result. Its subagent's turns go to a thread named after the call, without times."""
        turns = each(decoded(run.progress, list[Raw]) or [], decoder(SubagentTurn).decode, self.source.artifact)
        for number, answer in enumerate(turns):
            if answer is None:  # what another tool reports while it runs
                continue
            with self.aside(call_id):
                step = self.builder.step(None, None, None, call_id)
                if answer.message:
                    self.event("text", answer.message, None, step)
                for n, use in enumerate(answer.tool_uses):
                    self.call(f"{call_id}#{number}.{n}", use.tool_name, bytes(use.input), None, step)
                    self.run(f"{call_id}#{number}.{n}", use, None)
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
    if run.error is not None:
        return string(inside(run.error, "message")) or ""
    result = _result(run.result)
    if not isinstance(result, Result):
        return result or run.reason or ""
    shown = next((v for v in (result.output, result.content, result.diff) if v is not None), None)
    return as_text(shown) if shown is not None else bytes(run.result).decode("utf-8", "replace")


_OWN_ID = re.compile(rb'"id"\s*:\s*"(T-[^"\\]{1,100})"')


def read(inputs: list[Input]) -> Reading:
    """Read threads, with the ids of all: what a fork copied counts in its origin, if that is among them."""
    found = (_OWN_ID.search(source.data) for source in inputs)
    return Reader.read(inputs, {own[1].decode("utf-8", "replace") for own in found if own is not None})
