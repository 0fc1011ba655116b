"""Codex's tools in shared words, and what their results say: each generation of shell tools prints its code anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cached_property, partial
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import created, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats import bounds as figures
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.codex import PATCH, PROFILE, records
from agentsignals.formats.codex.records import (
    DECODER,
    PARTS,
    AgentMessage,
    Compacted,
    ContextCompacted,
    CustomCall,
    ExecEnd,
    FunctionCall,
    HostedCall,
    ItemCompleted,
    McpEnd,
    Message,
    Notice,
    Output,
    Part,
    PatchEnd,
    Reasoning,
    Record,
    Renamed,
    RolledBack,
    SessionMeta,
    Task,
    TokenCount,
    TokenInfo,
    ToolsFound,
    TurnContext,
    Usage,
    UserMessage,
    Wrapped,
    by_shape,
    decode,
    kind_of,
    kinds_of,
    tally,
    text_of,
)
from agentsignals.formats.documents import by_session
from agentsignals.formats.edits import first_file, record_deletion, record_modification, record_patch
from agentsignals.formats.profile import Tool, tagged
from agentsignals.formats.records import UNREADABLE, all_lines, saw
from agentsignals.model import MAIN, CallStatus, EventKind, Session, Step, ToolCall, TurnKind, logged_iso, logged_ms

_HEAD = 600
"""Result headers are a few short lines; what follows is the tool's own output and may quote anything."""
_HEADED = ("Exit code:", "Chunk ID:", "Wall time:", "Process ")
_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)", re.MULTILINE)
_TOOK = re.compile(r"^Wall time: (\d+(?:\.\d+)?) seconds", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_ENDED = "\nProcess exited with code "
_FAILED = (
    "apply_patch verification failed", "exec_command failed", "execution error", "failed to ", "tool call error",
    "unable to ", "unsupported call", "write_stdin failed",
)  # fmt: skip
_REFUSED = re.compile(r"rejected by (?:the )?user|user (?:rejected|cancelled) ")


class Arguments(Struct, gc=False):
    """The arguments of a shell tool that say more than its command."""

    session_id: int | str | None = None
    command: object = None
    input: str | None = None


class Result(Struct, gc=False):
    """What a tool's output says: its text, what became of the call, the process it left running."""

    text: str
    status: CallStatus = "ok"
    exit_code: int | None = None
    running: str | None = None
    ran_s: float | None = None


NO_ARGUMENTS = Arguments()
_wrapped = msgspec.json.Decoder(Wrapped).decode
_arguments = msgspec.json.Decoder(Arguments).decode


def full_name(name: str, namespace: str) -> str:
    """The tool's name as older versions wrote it: an MCP tool with its server (`mcp__server__tool`)."""
    if not namespace.startswith("mcp__"):
        return name
    return namespace + name if name.startswith("_") or namespace.endswith("__") else f"{namespace}__{name}"


def says_more(name: str, arguments: str) -> bool:
    """Whether a shell tool's arguments may hold what `more_arguments` reads."""
    return name == "write_stdin" or "patch" in arguments


def more_arguments(arguments: str) -> Arguments:
    """Which running process a call is about, the patch it applies."""
    try:
        return _arguments(arguments)
    except UNREADABLE:
        return NO_ARGUMENTS


def patch_of(arguments: Arguments) -> str | None:
    """The patch of an `apply_patch` call made as a function tool, or as the words of a shell command."""
    words = arguments.command
    if isinstance(words, list) and len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
        return words[1] if isinstance(words[1], str) else None
    return arguments.input


def read_result(output: str | list[Part] | Wrapped | None, failed: bool) -> Result:
    """A tool's output; `failed`: another record has said that the call failed."""
    if isinstance(output, Wrapped):
        return _unwrapped(output)
    text = output if isinstance(output, str) else text_of(output)
    if text.startswith(_HEADED):
        return _headed(text, failed)
    if text.startswith('{"output":'):
        try:
            return _unwrapped(_wrapped(text))
        except UNREADABLE:
            pass  # a tool's own JSON
    return Result(text, _status(text, failed))


def _headed(text: str, failed: bool) -> Result:
    end = text.find("\nOutput:", 0, _HEAD)
    if end < 0:
        end = _HEAD
    ended_at = text.find(_ENDED, 0, end)  # how it usually begins; a pattern takes ten times as long to get there
    code = _CODE.search(text, ended_at + 1 if ended_at > 0 else 0, end)
    took = _TOOK.search(text, 0, end)
    ran_s = float(took.group(1)) if took else None
    if code:
        return _with_code(text, int(code.group(1)), ran_s)
    running = _RUNNING.search(text, 0, end)
    if running:
        return Result(text, running=running.group(1), ran_s=ran_s)
    return Result(text, "error" if failed else "ok", ran_s=ran_s)


def _status(text: str, failed: bool) -> CallStatus:
    if failed:
        return "error"
    if text.startswith("aborted"):
        return "cancelled"
    head = text[:_HEAD]
    if "user" in head and _REFUSED.search(head):
        return "rejected"
    return "error" if text.startswith(_FAILED) else "ok"


def _unwrapped(wrapped: Wrapped) -> Result:
    text = wrapped.output if wrapped.output is not None else wrapped.content or ""
    if wrapped.metadata is not None and wrapped.metadata.exit_code is not None:
        return _with_code(text, wrapped.metadata.exit_code, figures.number(wrapped.metadata.duration_seconds))
    return Result(text, "error" if wrapped.success is False else "ok")


def _with_code(text: str, code: int, ran_s: float | None) -> Result:
    return Result(text, "ok" if code == 0 else "error", code, ran_s=ran_s)


# Model calls of a Codex rollout. A call has no id there: it is what the model said up to the next count of tokens.
#
# `token_count` events repeat (same totals, nothing new), and miss calls that were stopped. The totals are
# cumulative, so their growth is what was used, and a session's steps add up to the last total. In a session without
# any count, a call ends where the results of its tools do, or where somebody else speaks.

_NOTHING = Usage()


class ModelCalls:
    """Opens a step with the first thing the model says, closes it when its tokens are counted."""

    def __init__(self, builder: SessionBuilder, inherits: bool, metered: bool) -> None:
        """`inherits`: the totals may begin with another session's; `metered`: there are counts."""
        self.model: str | None = None
        self._builder = builder
        self._inherits = inherits
        self._metered = metered
        self._total: Usage | None = None
        self._open: Step | None = None
        self._answered = False
        self._unmetered: Step | None = None

    def item(self, at: int | None) -> Step:
        """The step of something the model says now."""
        if self._answered and not self._metered:
            self.close()
        self._answered = False
        if self._open is None:
            self._open = self._builder.step(None, self.model, at)
        return self._open

    def result(self, call: ToolCall | None) -> None:
        """A tool's result was logged."""
        if call is not None and self._open is not None and call.step == self._open.step:
            self._answered = True

    def heard(self) -> None:
        """Somebody else spoke: what the model says next is another call."""
        self._answered = True

    def close(self) -> None:
        """The call ended, or was stopped, before its tokens were counted; a later count may still include it."""
        if self._open is not None:
            self._unmetered = self._open
            self._open = None

    def skip(self, info: TokenInfo) -> None:
        """Totals that another session has already counted."""
        self._total = info.total_token_usage or self._total

    def count(self, info: TokenInfo, at: int | None) -> None:
        """A count of tokens: nothing when the total has not grown, otherwise the end of a call."""
        last = info.last_token_usage
        total = info.total_token_usage
        if total is None:
            return
        before = self._total
        if before is None:
            before = _minus(total, last) if self._inherits and last is not None else _NOTHING
        grown = _minus(total, before)
        if _is_nothing(grown):
            return
        if grown == last:
            self._total = total
            _charge(self._open or self._new(at), last)
            self._open = self._unmetered = None
            return
        if _any_negative(grown):
            grown = last if last is not None else total  # the program counts from zero again
        self._total = total
        used = last if last is not None and not _is_nothing(last) and not _any_negative(_minus(grown, last)) else grown
        rest = _minus(grown, used)
        if not _is_nothing(rest):
            _charge(self._unmetered or self._new(at), rest)
        _charge(self._open or self._new(at), used)
        self._open = self._unmetered = None

    def _new(self, at: int | None) -> Step:
        """The step of a call that left nothing but its count of tokens."""
        step = self._builder.step(None, self.model, at)
        self._builder.event("meta", "tokens of a model call that is not logged", at, step)
        return step


def _charge(step: Step, used: Usage) -> None:
    cached, whole = count(used.cached_input_tokens), count(used.input_tokens)
    step.input_tokens = None if whole is None else max(whole - (cached or 0), 0)
    step.cache_read_tokens, step.output_tokens = cached, count(used.output_tokens)
    step.reasoning_tokens = count(used.reasoning_output_tokens)


def _minus(a: Usage, b: Usage) -> Usage:
    return Usage(
        _less(a.input_tokens, b.input_tokens),
        _less(a.cached_input_tokens, b.cached_input_tokens),
        _less(a.output_tokens, b.output_tokens),
        _less(a.reasoning_output_tokens, b.reasoning_output_tokens),
    )


def _less(a: int | None, b: int | None) -> int | None:
    return a if a is None or b is None else a - b


def _fields(usage: Usage) -> tuple[int | None, ...]:
    return usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, usage.reasoning_output_tokens


def _is_nothing(usage: Usage) -> bool:
    return not any(_fields(usage))


def _any_negative(usage: Usage) -> bool:
    return any(n is not None and n < 0 for n in _fields(usage))


# Which words in a Codex rollout are the person's (design/formats.md#codex: a `role=user` item need not be).

_INTERRUPTED = "<turn_aborted>"
_USER_SHELL = "<user_shell_command>"

_REQUEST = re.compile(r"^## My request for Codex:?\s*\n", re.MULTILINE)
_PLANS = ("PLEASE IMPLEMENT THIS PLAN:", "Implement the following plan:")
_PLAN_BUTTON = "Implement the plan."


class Reports:
    """Facts that are logged as an item and as an event, by some versions as one of the two only."""

    def __init__(self) -> None:
        self._reports: dict[str, Counter[str]] = {}

    def is_first(self, fact: str, source: str) -> bool:
        """Whether this report is news: the n-th of its source, and no other source has told of n."""
        counts = self._reports.setdefault(fact, Counter())
        reported = max(counts.values(), default=0)
        counts[source] += 1
        return counts[source] > reported


class UserRecords:
    """What stands in a user's place: prompts, commands run by hand, interruptions, and what the program puts there.

    `prompts` are the texts of all `user_message` events; None in a session that has none, whose items are all there is.
    In a subagent's session, which `is_person` denies, the words are those of the agent that started it.
    """

    def __init__(self, builder: SessionBuilder, is_person: bool, prompts: set[str] | None) -> None:
        self._builder = builder
        self._is_person = is_person
        self._prompts = prompts
        self._reports = Reports()
        self._running = False
        self._prompted = False

    def task_started(self) -> None:
        self._running, self._prompted = True, False

    def task_ended(self) -> None:
        self._running = False

    def event(self, message: UserMessage, at: int | None, model: str | None) -> None:
        """A `user_message` event: what the person sent."""
        if message.message.strip() or _has_any(message.images) or _has_any(message.local_images):
            self._turn(message.message, at, model)

    def item(self, message: Message, at: int | None, model: str | None) -> None:
        """A `role=user` item: context that the program puts there, and the person's words, which an event repeats."""
        content = message.content
        parts = [content] if isinstance(content, str) else [part.text for part in content or () if part.text]
        words = [text for text in parts if not self._injected(text, at)]
        text = "\n".join(words)
        if self._prompts is None:
            if words or (content and not parts):
                self._turn(text, at, model)
        elif words and text.strip() not in self._prompts:
            self._event("meta", text, at)

    def interrupted(self, source: str, text: str, at: int | None) -> None:
        if self._reports.is_first("interrupt", source):
            self._event("interrupt", text, at)

    def ran(self, source: str, command: str, at: int | None) -> None:
        """The person ran a command by hand (`!`)."""
        if self._reports.is_first("user_shell", source):
            self._event("user_shell", command, at)

    def _injected(self, text: str, at: int | None) -> bool:
        if PROFILE.machine_kind(text.lstrip()) is None:
            return False
        if text.startswith(_INTERRUPTED):
            self.interrupted("item", text, at)
        elif text.startswith(_USER_SHELL):
            command = tagged(text, "command")
            self.ran("item", text if command is None else command, at)
        else:
            self._event("meta", text, at)
        return True

    def _turn(self, text: str, at: int | None, model: str | None) -> None:
        words = request_of(text)
        if not self._is_person or PROFILE.machine_kind(words):
            self._event("meta", text, at)
            return
        queued = self._running and self._prompted
        self._builder.turn(turn_kind(words, queued) if words else "attachment", words, at, model)
        self._prompted = True

    def _event(self, kind: EventKind, text: str, at: int | None) -> None:
        self._builder.event(kind, text, at)


def _has_any(pictures: Raw) -> bool:
    """Whether a list, which may hold whole pictures, is more than `[]` or `null`."""
    return memoryview(pictures).nbytes > len("null")


def request_of(text: str) -> str:
    """The person's own words: without the editor context that the IDE extension puts before the request."""
    if text.lstrip().startswith("# "):
        match = _REQUEST.search(text)
        if match:
            return text[match.end() :].strip()
    return text.strip()


def turn_kind(words: str, queued: bool) -> TurnKind:
    """The kind of a turn; `queued`: the agent was at work on an earlier prompt when the words came."""
    if words.startswith(_PLANS) or words == _PLAN_BUTTON:
        return "plan_handoff"
    return "queued_prompt" if queued else "prompt"


# Tool calls of a Codex session and what became of them, read off up to four records each.


class _McpResult(msgspec.Struct, gc=False):
    class _Ok(msgspec.Struct, gc=False):
        isError: bool | None = None

    Ok: _Ok | None = None
    Err: Raw = Raw()


_decode_mcp = msgspec.json.Decoder(_McpResult).decode


class Calls:
    """Pairs calls with their outputs, and with what other records say of them before or after."""

    def __init__(self, builder: SessionBuilder, models: ModelCalls) -> None:
        self._builder = builder
        self._models = models
        self._by_id: dict[str, ToolCall] = {}
        self._patches: list[tuple[ToolCall, str]] = []
        self._failed: set[str] = set()
        self._codes: dict[str, int] = {}
        self._polls: dict[str, str] = {}
        self._running: dict[str, ToolCall] = {}
        """Processes left running, by the number that later `write_stdin` calls name."""

    def function(self, body: FunctionCall, at: int | None) -> None:
        name = full_name(body.name, body.namespace) if body.namespace else body.name
        tool = PROFILE.tool(name)
        patch = session_id = None
        if tool is PATCH or (tool is not None and tool.class_ == "shell" and says_more(name, body.arguments)):
            arguments = more_arguments(body.arguments)
            patch, session_id = patch_of(arguments), arguments.session_id
        call = self._begin(name, body.call_id or "", body.arguments, tool, patch, at)
        if name == "write_stdin" and session_id is not None:
            self._polls[call.call_id] = str(session_id)

    def custom(self, body: CustomCall, at: int | None) -> None:
        patch = body.input if body.name == "apply_patch" else None
        arguments = msgspec.json.encode({"input": body.input})
        self._begin(body.name, body.call_id or "", arguments, PROFILE.tool(body.name), patch, at)

    def hosted(self, name: str, body: HostedCall, at: int | None) -> None:
        """A tool that the model's provider runs: the rollout holds the call, and of most no result."""
        call_id = body.call_id or body.id or f"line:{self._builder.line}"
        arguments = bytes(body.arguments or body.action) or b"{}"
        call = self._begin(name, call_id, arguments, PROFILE.tool(name), None, at)
        if body.call_id is None and body.status == "completed":
            self._builder.result(call_id, "", "ok", at)
            call.result_tokens = None  # what was found went to the model, not to the log

    def output(self, body: Output, at: int | None) -> None:
        self._result(body.call_id or "", read_result(body.output, body.call_id in self._failed), at)
        self._builder.unread(kinds_of(body.output), PARTS, at)

    def tools_found(self, body: ToolsFound, at: int | None) -> None:
        self._result(body.call_id or "", Result(bytes(body.tools).decode("utf-8", "replace")), at)

    def patch_end(self, body: PatchEnd, at: int | None) -> None:
        call = self._by_id.get(body.call_id or "")
        if call is not None and body.success and body.changes:
            for path, change in body.changes.items():
                if change.type == "add":
                    self._builder.edit(call, path, "create", [created(change.content or "")])
                elif change.type == "delete":
                    record_deletion(self._builder, call, path, change.content)
                else:
                    record_modification(self._builder, call, path, change.move_path, unified(change.unified_diff or ""))

    def mcp_end(self, body: McpEnd, at: int | None) -> None:
        if body.call_id and _is_mcp_error(body.result):
            self._failed.add(body.call_id)

    def process_end(self, end: ExecEnd, at: int | None) -> None:
        """The end of a command, logged by some versions: before its output, or long after for one left running."""
        call = self._by_id.get(end.call_id or "")
        if call is None or end.exit_code is None:
            return
        if call.result_seq is None:
            self._codes[call.call_id] = end.exit_code
        elif call.exit_code is None:
            self._builder.exited(call, end.exit_code, at=at)

    def finish(self) -> None:
        """Patches that no record gives the lines of are read off their text."""
        recorded = {edit.seq for edit in self._builder.session.edits}
        for call, patch in self._patches:
            if call.status == "ok" and call.seq not in recorded:
                record_patch(self._builder, call, patch)

    def _begin(  # noqa: PLR0913  (what any kind of record tells of a call)
        self, name: str, call_id: str, arguments: bytes | str, tool: Tool | None, patch: str | None, at: int | None
    ) -> ToolCall:
        step = self._models.item(at)
        if patch is None:
            call = self._builder.call(call_id, name, arguments, tool, at, step)
        else:
            call = self._builder.call(call_id, name, arguments, PATCH, at, step, path=first_file(patch))
            self._patches.append((call, patch))
        self._by_id[call_id] = call
        return call

    def _result(self, call_id: str, result: Result, at: int | None) -> None:
        status, code = result.status, result.exit_code
        if code is None and result.running is None and call_id in self._codes:
            code = self._codes.pop(call_id)
            status = "error" if code else status
        process = self._polls.get(call_id)
        begun = self._running.get(process) if process is not None else None
        if process is not None and begun is not None and code is not None:
            self._builder.exited(begun, code, result.text, at)
            del self._running[process]
            status, code = "ok", None  # the code is the command's; the poll that saw it end did what it should
        call = self._builder.result(call_id, result.text, status, at, MAIN, code, ran_s=result.ran_s)
        self._models.result(call)
        if call is not None and result.running is not None and begun is None:
            self._running[result.running] = call


def _is_mcp_error(raw: Raw) -> bool:
    try:
        result = _decode_mcp(raw)
    except UNREADABLE:
        return False
    return bool(result.Err) or (result.Ok is not None and result.Ok.isError is True)


# One Codex session in the making: what each kind of record adds to it.

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


# The rollouts of one family: snapshots of a session united, and what forks copied of each other counted once.

_BURST_US = 2_000_000
"""A fork copies its parent's history in one go; records this much later than the first are its own."""


def read(inputs: list[Input]) -> Reading:
    """Snapshots of a session are united; history that a fork copied counts for the parent, if the parent is there."""
    sessions = by_session(inputs, _File)
    firsts = _first_own({session_id: files[0] for session_id, files in sessions.items()})
    return Reading([_session(session_id, files, firsts[session_id]) for session_id, files in sessions.items()])


class _File:
    """The records of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.numbers, self.records = all_lines(source.data, source.artifact, DECODER, decode)
        self.shapes = by_shape(self.records)
        for kind, times in tally(self.shapes).items():
            saw(source.artifact, kind, times)
        headers = [
            record.payload for record in self.shapes.get(SessionMeta, ()) if isinstance(record.payload, SessionMeta)
        ]
        self.meta = headers[0] if headers else None
        named = self.meta.id if self.meta is not None else ""
        self.session_id = named or source.session_hint or source.artifact.artifact_id
        parents = [h.id for h in headers if h.id and h.id != self.session_id]
        if self.meta is not None and self.meta.forked_from_id:
            parents.insert(0, self.meta.forked_from_id)
        self.parents = set(parents)
        self.parent = (parent_of(self.meta) if self.meta is not None else None) or next(iter(parents), None)
        first = next((record.timestamp for record in self.records if record.timestamp), "")
        # Of two snapshots that begin together the longer comes first, so that most of a session points into one file.
        self.order = (first, -len(self.records), source.artifact.sha256, source.artifact.artifact_id)

    @cached_property
    def copied(self) -> int:
        """How many records at the top were copied from other sessions."""
        if self.meta is None or not self.parents:
            return 0
        begins = self.begins(self.session_id)
        if begins is not None:
            return begins
        first = logged_iso(self.records[0].timestamp)
        for n, record in enumerate(self.records):
            at = logged_iso(record.timestamp)
            if at is not None and first is not None and at > first + _BURST_US:
                return n
        return len(self.records)

    def begins(self, session_id: str) -> int | None:
        """Where the turns of a session begin, its own or an ancestor's: what is copied is older than the session."""
        began = _minted(session_id)
        if began is not None:
            for n, record in enumerate(self.records):
                if isinstance(record.payload, Task | TurnContext) and _is_since(record.payload, began):
                    return n
        return None

    def left_out(self, first_own: str | None) -> int:
        """How many leading records count elsewhere, when those of session `first_own` are the first that count here."""
        if first_own is None:
            return 0
        return self.copied if first_own == self.session_id else min(self.begins(first_own) or 0, self.copied)


def _first_own(sessions: dict[str, _File]) -> dict[str, str | None]:
    """By session, whose turns are the first to count for it: its own, where the history it copied is here itself.

    Of forks whose parent is missing, the one that copied most of it keeps the copy, and with it what the parent had
    copied from a session that is missing too (None: everything).
    """
    first_own: dict[str, str | None] = {session_id: session_id for session_id in sessions}
    keepers: dict[str, _File] = {}
    for session_id, file in sessions.items():
        parent = file.parent
        if parent is not None and parent not in sessions and file.copied:
            best = keepers.get(parent)
            if best is None or file.copied > best.copied:
                keepers[parent] = file
                first_own[session_id] = parent if file.parents & sessions.keys() else None
                if best is not None:
                    first_own[best.session_id] = best.session_id
    return first_own


def _session(session_id: str, files: list[_File], first_own: str | None) -> Session:
    first = files[0]
    session = first.source.session(session_id, "codex", "codex")
    session.parent_session_id = first.parent
    left_out = [file.left_out(first_own) for file in files]
    shapes = first.shapes
    if len(files) > 1 or any(left_out):
        shapes = by_shape([record for file, n in zip(files, left_out, strict=True) for record in file.records[n:]])
    reader = Reader(session, first.meta, shapes, inherits=bool(first.parents))
    several = len(files) > 1
    seen: set[tuple[str | None, str, int]] = set()
    for file, copied in zip(files, left_out, strict=True):
        reader.builder.artifact_id = file.source.artifact.artifact_id
        nth: Counter[tuple[str | None, str]] = Counter()
        for n, (number, record) in enumerate(zip(file.numbers, file.records, strict=True)):
            if n < copied and n > 0:
                saw(file.source.artifact, "repeated")
                if file is first:
                    reader.copied(record)
                continue
            if several:
                key = (record.timestamp, kind_of(record))
                nth[key] += 1
                if (*key, nth[key]) in seen:
                    saw(file.source.artifact, "repeated")
                    continue
                seen.add((*key, nth[key]))
            reader.take(number, record)
    return reader.finish()


def _minted(uuid: str) -> int | None:
    """When a version 7 UUID was made, in microseconds UTC; None for another id."""
    digits = uuid.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return int(digits[:12], 16) * 1000
    except ValueError:
        return None


def _is_since(body: Task | TurnContext, began: int) -> bool:
    """Whether a turn is as young as a session: by its id, or by when it says it began."""
    minted = _minted(body.turn_id or "")
    if minted is not None:
        return minted >= began
    started = logged_ms(body.started_at * 1000) if isinstance(body, Task) and body.started_at is not None else None
    return started is not None and started >= began - began % 1_000_000
