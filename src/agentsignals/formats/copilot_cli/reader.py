"""The events of Copilot CLI as typed structs: only what is read, everything else is skipped undecoded.

An event is `{type, data, id, timestamp, parentId, agentId?}`. Source: design/formats.md#copilot-cli, and for the
events that no
transcript at hand holds the event schema that Copilot's SDK publishes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Union

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import edit_texts, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.copilot_cli import PROFILE
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.edits import first_file, record_arguments
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import EDIT_ROLES, MCP, Profile
from agentsignals.formats.records import UNREADABLE, all_lines, saw
from agentsignals.model import MAIN, SESSION_TOTAL, CallStatus, Session, Step, ToolCall, encoded, logged_iso

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.


class Event(Struct, gc=False, tag_field="type"):
    """`agentId` names the subagent whose event this is; absent for the main agent."""

    id: str | None = None
    timestamp: str | None = None
    agentId: str | None = None


class Quiet(Event):
    """An event that repeats what another says, or says nothing about the conversation: counted, no event of its own."""


class Context(Struct, gc=False):
    cwd: str | None = None
    branch: str | None = None
    repository: str | None = None


class _Started(Struct, gc=False):
    sessionId: str | None = None
    copilotVersion: str | None = None
    selectedModel: str | None = None
    context: Context | None = None


class Start(Event, tag="session.start"):
    data: _Started = field(default_factory=_Started)


class Resume(Event, tag="session.resume"):
    data: _Started = field(default_factory=_Started)


class ContextChanged(Event, tag="session.context_changed"):
    data: Context = field(default_factory=Context)


class _Model(Struct, gc=False):
    newModel: str | None = None


class ModelChange(Event, tag="session.model_change"):
    data: _Model = field(default_factory=_Model)


class _UserWords(Struct, gc=False):
    """`content` is what the person typed; `transformedContent`, with the program's additions, is not read."""

    content: str = ""
    source: str | None = None
    delivery: str | None = None
    isAutopilotContinuation: bool | None = None
    attachments: Raw = Raw()


class UserMessage(Event, tag="user.message"):
    data: _UserWords = field(default_factory=_UserWords)


class ToolRequest(Struct, gc=False):
    toolCallId: str = ""
    name: str = ""
    arguments: Raw = Raw()
    mcpServerName: str | None = None


class _Answer(Struct, gc=False, kw_only=True):
    messageId: str | None = None
    apiCallId: str | None = None
    content: str | None = None
    model: str | None = None
    outputTokens: int | None = None
    toolRequests: list[ToolRequest] | None = None
    reasoningText: str | None = None
    reasoningOpaque: Raw = Raw()
    encryptedContent: Raw = Raw()
    parentToolCallId: str | None = None


class AssistantMessage(Event, tag="assistant.message"):
    data: _Answer = field(default_factory=_Answer)


class _Thought(Struct, gc=False):
    content: str = ""


class AssistantReasoning(Event, tag="assistant.reasoning"):
    data: _Thought = field(default_factory=_Thought)


class _Begun(Struct, gc=False):
    toolCallId: str = ""
    toolName: str = ""
    arguments: Raw = Raw()
    mcpServerName: str | None = None
    parentToolCallId: str | None = None


class ToolStart(Event, tag="tool.execution_start"):
    data: _Begun = field(default_factory=_Begun)


class ToolUserRequested(Event, tag="tool.user_requested"):
    data: _Begun = field(default_factory=_Begun)


class Content(Struct, gc=False):
    """A structured part of a result; of a shell's end its exit code."""

    type: str = ""
    exitCode: int | None = None


class ToolResult(Struct, gc=False):
    content: str | None = None
    detailedContent: str | None = None
    contents: list[Content] | None = None


class ToolError(Struct, gc=False):
    message: str | None = None
    code: str | None = None


class _Done(Struct, gc=False):
    toolCallId: str = ""
    success: bool | None = None
    result: ToolResult | None = None
    error: ToolError | None = None


class ToolComplete(Event, tag="tool.execution_complete"):
    data: _Done = field(default_factory=_Done)


class Decision(Struct, gc=False):
    kind: str = ""
    feedback: str | None = None


class _Permission(Struct, gc=False):
    toolCallId: str | None = None
    result: Decision | None = None


class PermissionCompleted(Event, tag="permission.completed"):
    data: _Permission = field(default_factory=_Permission)


class Kind(Struct, gc=False):
    type: str = ""
    shellId: str | None = None
    exitCode: int | None = None


class _Notice(Struct, gc=False, kw_only=True):
    """What most of the small events say: a line of text under one of several names."""

    content: str | None = None
    message: str | None = None
    reason: str | None = None
    summary: str | None = None
    name: str | None = None
    agentName: str | None = None
    newMode: str | None = None
    title: str | None = None
    infoType: str | None = None
    kind: Kind | None = None

    @property
    def text(self) -> str:
        texts = (self.content, self.message, self.summary, self.reason, self.name, self.agentName, self.newMode)
        return next((text for text in texts if text), "")


class Notice(Event):
    data: _Notice = field(default_factory=_Notice)


class SystemNotification(Notice, tag="system.notification"): ...


class Info(Notice, tag="session.info"): ...


class Warned(Notice, tag="session.warning"): ...


class Error(Notice, tag="session.error"): ...


class Abort(Notice, tag="abort"): ...


class TitleChanged(Notice, tag="session.title_changed"): ...


class Aside(Notice):
    """Something that happened beside the conversation, told by its type and one line."""


class _Compaction(Struct, gc=False, kw_only=True):
    success: bool | None = None
    trigger: str | None = None
    preCompactionTokens: int | None = None
    postCompactionTokens: int | None = None
    summaryContent: str | None = None
    preTruncationTokensInMessages: int | None = None
    postTruncationTokensInMessages: int | None = None


class CompactionComplete(Event, tag="session.compaction_complete"):
    data: _Compaction = field(default_factory=_Compaction)


class Truncation(Event, tag="session.truncation"):
    data: _Compaction = field(default_factory=_Compaction)


class Verdict(Struct, gc=False):
    permissionDecision: str | None = None
    permissionDecisionReason: str | None = None


class _Hook(Struct, gc=False):
    hookType: str | None = None
    output: Verdict | None = None


class HookEnd(Event, tag="hook.end"):
    data: _Hook = field(default_factory=_Hook)


class Usage(Struct, gc=False):
    """Totals of a model's calls. Input contains cache reads and writes, output contains reasoning."""

    inputTokens: int = 0
    outputTokens: int = 0
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None
    reasoningTokens: int | None = None


class Requests(Struct, gc=False):
    """`cost` counts premium requests, which are no money."""

    count: int | None = None


class Metric(Struct, gc=False):
    requests: Requests | None = None
    usage: Usage | None = None


class AgentMetric(Struct):
    modelMetrics: dict[str, Metric] = field(default_factory=dict)


class _Totals(Struct):
    modelMetrics: dict[str, Metric] = field(default_factory=dict)
    agentMetrics: dict[str, AgentMetric] | None = None


class Shutdown(Event, tag="session.shutdown"):
    data: _Totals = field(default_factory=_Totals)


class Unknown(Struct, gc=False):
    """An event of a type that is not known, or with content of another shape than its type should have."""

    type: str = "untyped"
    id: str | None = None
    timestamp: str | None = None
    agentId: str | None = None


# Decodes the events of Copilot CLI, each in one go into the struct of its type.

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.


_ASIDES = (
    "session.context_cleared", "session.handoff", "session.mode_changed", "session.snapshot_rewind",
    "session.task_complete", "skill.invoked", "subagent.completed", "subagent.deselected", "subagent.failed",
    "subagent.selected", "subagent.started",
)  # fmt: skip
_QUIET = (
    "assistant.idle", "assistant.intent", "assistant.message_start", "assistant.turn_end", "assistant.turn_start",
    "assistant.usage", "command.completed", "command.execute", "command.queued", "elicitation.completed",
    "elicitation.requested", "exit_plan_mode.completed", "exit_plan_mode.requested", "hook.progress", "hook.start",
    "permission.requested", "session.background_tasks_changed", "session.binary_asset", "session.compaction_start",
    "session.idle", "session.mcp_servers_loaded", "session.permissions_changed", "session.plan_changed",
    "session.remote_steerable_changed", "session.skills_loaded", "session.todos_changed", "session.tools_updated",
    "session.usage_checkpoint", "session.usage_info", "session.workspace_file_changed", "subagent.configured",
    "system.message", "tool.execution_partial_result", "tool.execution_progress", "tool.search_activated",
    "user_input.completed", "user_input.requested",
)  # fmt: skip


def _each(base: type[Event], names: tuple[str, ...]) -> tuple[type[Struct], ...]:
    return tuple(msgspec.defstruct(name.replace(".", "_"), [], bases=(base,), tag=name, gc=False) for name in names)


_SHAPES: tuple[type[Struct], ...] = (
    Start, Resume, ContextChanged, ModelChange, UserMessage, AssistantMessage, AssistantReasoning, ToolStart,
    ToolUserRequested, ToolComplete, PermissionCompleted, SystemNotification, Info, Warned, Error, Abort, TitleChanged,
    CompactionComplete, Truncation, HookEnd, Shutdown, *_each(Aside, _ASIDES), *_each(Quiet, _QUIET),
)  # fmt: skip


DECODER: msgspec.json.Decoder[Event | Unknown] = msgspec.json.Decoder(Union[_SHAPES])  # noqa: UP007  (made of a tuple)
_decode_any = msgspec.json.Decoder(Unknown).decode


_TYPES: dict[type, str] = {shape: str(shape.__struct_config__.tag) for shape in _SHAPES}
_READ_TYPES = frozenset(_TYPES.values())


def decode(data: memoryview | bytes) -> Event | Unknown:
    """One line. Of a known type, what can't be decoded raises, for records.lines to recover."""
    try:
        return DECODER.decode(data)
    except msgspec.DecodeError:
        event = _decode_any(data)
        if event.type in _READ_TYPES:
            raise
        return event


def tally(events: Sequence[Event | Unknown]) -> dict[str, int]:
    """How many events there are of each type."""
    shapes = Counter(map(type, events))
    counted = {_TYPES[shape]: times for shape, times in shapes.items() if shape is not Unknown}
    if Unknown in shapes:
        counted.update(Counter([kind_of(event) for event in events if isinstance(event, Unknown)]))
    return counted


def kind_of(event: Event | Unknown) -> str:
    """The event's type, as counted in the artifact."""
    return event.type if isinstance(event, Unknown) else _TYPES[type(event)]


# Copilot CLI's tools in shared words, and what their results say.

IN_VS_CODE = "run_in_terminal"
"""The editor's shell: `success` says that it could be started; older transcripts keep no results."""
_TAIL = 300
_ENDED = re.compile(r"<(?:shellId: (\S+) completed|(?:command )?exited|command) with exit code:? (-?\d+)>\s*\Z")
_LEFT = re.compile(r"<command (?:with shellId: (\S+) is still running|started in .*?shellId: (\S+?)>?[. ])")
_REFUSED = frozenset(("rejected", "denied"))
_STOPPED = frozenset(("aborted", "cancelled", "canceled", "interrupted"))


class Result(Struct, gc=False):
    """What a tool's result says: its text, what became of the call, the shell it is about or left running."""

    text: str
    status: CallStatus
    exit_code: int | None = None
    ended: str | None = None
    running: str | None = None


def unquoted(arguments: bytes) -> bytes:
    """Arguments without the quotes of VS Code's transcripts, which hold them as a text; a patch is one by itself."""
    try:
        text = msgspec.json.decode(arguments, type=str) if arguments[:1] == b'"' else ""
    except UNREADABLE:
        text = ""
    return text.encode() if text.startswith("{") else arguments


def read_result(event: ToolComplete, call: ToolCall | None, refused: bool) -> Result:
    """A `tool.execution_complete`. `success` only means that the tool ran: a shell's exit code is in its result."""
    done = event.data
    text = (done.result.content if done.result is not None else None) or ""
    if done.error is not None or done.success is False:
        message = done.error.message if done.error is not None else None
        return Result(message or text, _failure(done.error.code if done.error is not None else None, refused))
    if call is not None and call.name == IN_VS_CODE:
        return Result(text, "ok" if done.result is not None else "unknown", exit_code(text))
    if call is None or not _is_shell(call.name):
        return Result(text, "ok")
    tail = text[-_TAIL:]
    ended, left = _ENDED.search(tail), _LEFT.search(tail)
    parts = (done.result.contents if done.result is not None else None) or ()
    code = next((part.exitCode for part in parts if part.exitCode is not None), int(ended.group(2)) if ended else None)
    return Result(
        text,
        "ok",
        code,
        ended.group(1) if ended else None,
        (left.group(1) or left.group(2)) if left else None,
    )


def _failure(code: str | None, refused: bool) -> CallStatus:
    if refused or code in _REFUSED:
        return "rejected"
    return "cancelled" if code in _STOPPED else "error"


def _is_shell(name: str) -> bool:
    return name.endswith(("bash", "powershell", "shell"))


# What an edit tool of Copilot CLI changed: the diff in its detailed result, else what its arguments say.

_FILE = re.compile(r"^diff --git ", re.MULTILINE)


def patch_of(name: str, arguments: bytes) -> str | None:
    """The patch of an `apply_patch` call: its whole arguments, or one of them."""
    texts = edit_texts(arguments.decode("utf-8", "replace"), encoded(EDIT_ROLES)) if name == "apply_patch" else []
    return texts[0].new if texts and texts[0].kind == "patch" else None


def record(builder: SessionBuilder, call: ToolCall, detail: str) -> None:
    """The change of a successful call."""
    texts = edit_texts(call.arguments, call.argument_roles)
    kinds = {text.kind for text in texts}
    diffs = len(_FILE.findall(detail))
    if diffs and "whole" not in kinds and (diffs == 1 or "patch" not in kinds):
        builder.edit(call, None, "delete" if "\ndeleted file mode" in detail else "modify", unified(detail))
    else:
        record_arguments(builder, call, set())


# Tokens of a Copilot CLI session: output is logged with each message, the rest only as totals at shutdown.
#
# The totals of a model with one call are that call's. Of a model with more calls nothing says how they were shared
# out: what is not yet counted becomes one closing step with `stop_reason` "session_total", so that the session's
# sums are those of the totals and no call is given a context size it did not have. Output of messages whose model
# the totals do not name, or that is more than the totals say, is left to the closing steps: it would count twice. A
# session without shutdown (a crash, one still running) has no such step, and its input stays unknown. A resumed
# session shuts down again, with totals that begin at zero.

_MAIN_AGENT = "main"


class Totals:
    """The steps since the last shutdown, and what the next one says of them."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        self._steps.append(step)

    def begin(self) -> None:
        """A new run: what one before it left without a shutdown is in no totals."""
        self._steps.clear()

    def close(self, shutdown: Shutdown, at: int | None) -> None:
        """A shutdown: its totals, by agent where it tells them apart."""
        data = shutdown.data
        if data.agentMetrics:
            by_thread: dict[str | None, dict[str, Metric]] = {
                MAIN if agent == _MAIN_AGENT else agent: metrics.modelMetrics
                for agent, metrics in data.agentMetrics.items()
            }
        else:
            by_thread = {None: data.modelMetrics}
        self._name_models(by_thread)
        in_totals: set[int] = set()
        closing: Step | None = None
        for thread, metrics in by_thread.items():
            for model, metric in metrics.items():
                steps = [s for s in self._steps if s.model == model and (thread is None or s.thread == thread)]
                if metric.usage is not None:
                    in_totals.update(step.step for step in steps)
                    closing = self._model(model, metric.usage, _calls(metric), steps, thread, at) or closing
        if closing is not None:
            _leave_to(closing, [step for step in self._steps if step.step not in in_totals])
        self._steps.clear()

    def _name_models(self, by_thread: dict[str | None, dict[str, Metric]]) -> None:
        """Old versions name no model at a message: where an agent used only one, it is that."""
        for thread, metrics in by_thread.items():
            if len(metrics) == 1:
                for step in self._steps:
                    if step.model is None and (thread is None or step.thread == thread):
                        step.model = next(iter(metrics))

    def _model(  # noqa: PLR0913  (one line of the totals and what it is about)
        self, model: str, usage: Usage, calls: int | None, steps: list[Step], thread: str | None, at: int | None
    ) -> Step | None:
        """What the totals of one model say beyond its messages; the closing step, when there is something to say."""
        output, counted = count(usage.outputTokens) or 0, sum(step.output_tokens or 0 for step in steps)
        if len(steps) == 1 and calls == 1:
            _charge(steps[0], usage, output or None)
            return None
        if not usage.inputTokens and not output > counted:
            return None
        threads = {step.thread for step in steps}
        closing = self._closing(model, thread or (threads.pop() if len(threads) == 1 else MAIN), at)
        if output and output < counted:
            _leave_to(closing, steps)
            counted = 0
        _charge(closing, usage, output - counted or None)
        if usage.inputTokens:
            for step in steps:
                step.input_in_step = closing.step
        return closing

    def _closing(self, model: str, thread: str, at: int | None) -> Step:
        step = self._builder.step(None, model, at, thread)
        step.stop_reason = SESSION_TOTAL
        self._builder.event("meta", f"session totals of {model}", at, step, thread)
        return step


def _calls(metric: Metric) -> int | None:
    return metric.requests.count if metric.requests is not None else None


def _leave_to(closing: Step, steps: list[Step]) -> None:
    """Output that the totals hold already, under another name or another thread."""
    for step in steps:
        step.output_tokens, step.input_in_step = None, closing.step


def _charge(step: Step, usage: Usage, output: int | None) -> None:
    """Input of 0 is input not reported: no call goes without."""
    step.output_tokens = output if output is not None else step.output_tokens
    if usage.inputTokens:
        read, written = count(usage.cacheReadTokens), count(usage.cacheWriteTokens)
        step.input_tokens = max((count(usage.inputTokens) or 0) - (read or 0) - (written or 0), 0)
        step.cache_read_tokens, step.cache_write_tokens = read, written
        step.reasoning_tokens = count(usage.reasoningTokens)


# Tool calls of a Copilot CLI session: requested, started and completed in up to four events, counted once.

_REFUSED_CALLS = "denied-interactively-by-user"


class _Command(msgspec.Struct, gc=False):
    command: str = ""


_decode_command = msgspec.json.Decoder(_Command).decode


class Calls:
    """Pairs the events of each call."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._by_id: dict[str, ToolCall] = {}
        self._of_user: set[str] = set()
        self._refused: dict[str, str] = {}
        """What the person said when refusing a call, by call id; often nothing."""
        self._running: dict[str, ToolCall] = {}

    def begin(self, request: ToolRequest, at: int | None, step: Step | None = None, thread: str = MAIN) -> None:
        """A call, first heard of."""
        call_id, name = request.toolCallId, request.name
        arguments = unquoted(bytes(request.arguments)) or b"{}"
        patch = patch_of(name, arguments)
        tool = MCP if request.mcpServerName else self._builder.profile.tool(name)
        path = first_file(patch) if patch is not None else None
        self._by_id[call_id] = self._builder.call(call_id, name, arguments, tool, at, step, thread, path=path)

    def started(self, event: ToolStart, at: int | None) -> None:
        """Its execution begins; the message that requested it has told of it, unless the transcript is a slice."""
        data = event.data
        call = self._by_id.get(data.toolCallId)
        if call is None and data.toolCallId not in self._of_user:
            thread = event.agentId or data.parentToolCallId or MAIN
            request = ToolRequest(data.toolCallId, data.toolName, data.arguments, data.mcpServerName)
            self.begin(request, at, None, thread)
        elif call is not None and data.mcpServerName:
            call.class_ = "mcp"

    def user_requested(self, event: ToolUserRequested, at: int | None) -> None:
        """The person ran a command by hand (`!`): no call of the agent's."""
        self._of_user.add(event.data.toolCallId)
        try:
            command = _decode_command(event.data.arguments).command
        except UNREADABLE:
            command = event.data.toolName
        self._builder.event("user_shell", command, at)

    def completed(self, event: ToolComplete, at: int | None) -> None:
        call_id = event.data.toolCallId
        call = self._by_id.get(call_id)
        result = read_result(event, call, call_id in self._refused)
        if call_id in self._of_user:
            self._builder.event("command_output", result.text[:RESULT_CHARS_KEPT], at, n_chars=len(result.text))
            return
        code, status = result.exit_code, result.status
        if code is not None and result.ended in self._running:
            self.shell_ended(result.ended, code, result.text, at)
            code, status = None, "ok"  # the code is that of the command that ran on, not of the look at it
        self._builder.result(call_id, result.text, status, at, MAIN, code)
        if call is None:
            return
        if result.running is not None and result.running not in self._running:
            self._running[result.running] = call
        if status == "ok" and call.class_ == "edit":
            detail = event.data.result.detailedContent if event.data.result is not None else None
            record(self._builder, call, detail or "")
        self._after_refusal(call, at)

    def decided(self, event: PermissionCompleted, at: int | None) -> None:
        """Permission was given, or not; policies refuse too, which is an error, not the person's word."""
        decision, call_id = event.data.result, event.data.toolCallId
        if decision is not None and call_id is not None and decision.kind == _REFUSED_CALLS:
            self._refused[call_id] = (decision.feedback or "").strip()

    def shell_ended(self, shell: str | None, code: int, text: str, at: int | None) -> None:
        """A command that was left running has ended."""
        call = self._running.pop(shell or "", None)
        if call is not None:
            self._builder.exited(call, code, text, at)

    def _after_refusal(self, call: ToolCall, at: int | None) -> None:
        """Words given when refusing are a turn; a bare refusal is an interruption."""
        feedback = self._refused.pop(call.call_id, None)
        if feedback and call.thread == MAIN:
            self._builder.turn("rejection_feedback", feedback, at)
        elif feedback is not None:
            self._builder.event("interrupt", f"refused {call.name}", at, None, call.thread)


# One Copilot CLI session in the making: what each kind of event adds to it.

_HUMAN_SOURCES = ("user", "human")


class Reader:
    """Takes the events of one session in order."""

    def __init__(self, session: Session, profile: Profile) -> None:
        self.session = session
        self.builder = SessionBuilder(session, profile)
        self.calls = Calls(self.builder)
        self.totals = Totals(self.builder)
        self.model: str | None = None
        self.selected: str | None = None
        self._thoughts: set[str] = set()
        self._handlers = self._table()

    def take(self, event: Event | Unknown) -> None:
        """Adds one event."""
        if isinstance(event, Quiet):
            return
        at = logged_iso(event.timestamp)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, at)
        elif isinstance(event, Aside):
            self._aside(event, at)
        else:
            self.builder.event("unknown", kind_of(event)[:80], at, None, event.agentId or MAIN)

    def finish(self) -> Session:
        """The session, when all events are in it."""
        self._handlers.clear()  # they hold this reader, a circle that would keep all its rows until the collector comes
        return self.builder.finish()

    # -- what an event adds --------------------------------------------------------------------------------------

    def _start(self, event: Start | Resume, at: int | None) -> None:
        session, data = self.session, event.data
        session.agent_version = session.agent_version or data.copilotVersion
        self.selected = data.selectedModel or self.selected
        self.totals.begin()
        if data.context is not None:
            self.builder.where(data.context.cwd, data.context.branch)
            session.repo = data.context.repository or session.repo

    def _context(self, event: ContextChanged, at: int | None) -> None:
        self.builder.where(event.data.cwd, event.data.branch)

    def _model_change(self, event: ModelChange, at: int | None) -> None:
        self.selected = event.data.newModel or self.selected
        if self.model is not None and self.selected != self.model:
            self.builder.event("model_change", f"{self.model} -> {self.selected}", at)
            self.model = self.selected

    def _user(self, event: UserMessage, at: int | None) -> None:
        message = event.data
        text = message.content.strip()
        if (
            event.agentId
            or message.isAutopilotContinuation
            or (message.source and message.source not in _HUMAN_SOURCES)
            or self.builder.profile.machine_kind(text)
        ):
            self.builder.event("meta", text, at, None, event.agentId or MAIN)
        elif text:
            queued = message.delivery in ("steering", "queued")
            self.builder.turn("queued_prompt" if queued else "prompt", text, at, self.model or self.selected)
        elif bytes(message.attachments) not in (b"", b"[]", b"null"):
            self.builder.turn("attachment", "", at, self.model or self.selected)

    def _assistant(self, event: AssistantMessage, at: int | None) -> None:
        """One message; the parts of one answer share its call id, and repeat its count of tokens."""
        builder, answer = self.builder, event.data
        thread = event.agentId or answer.parentToolCallId or MAIN
        model = answer.model or self.model or self.selected
        n_steps = len(self.session.steps)
        step = builder.step(answer.apiCallId or answer.messageId, model, at, thread)
        if len(self.session.steps) > n_steps:
            self.totals.add(step)
        # A call that said something took tokens: a 0 here is a provider that reports none.
        step.output_tokens = max(count(answer.outputTokens) or 0, step.output_tokens or 0) or None
        if thread == MAIN and model is not None and model != self.model:
            if self.model is not None:
                builder.event("model_change", f"{self.model} -> {model}", at, step)
            self.model = model
        if answer.reasoningText:
            self._think(answer.reasoningText, at, thread, step.message_id)
        elif answer.reasoningOpaque or answer.encryptedContent:
            builder.event("thinking", "", at, step, thread)
        if answer.content or not (answer.toolRequests or answer.reasoningText):
            builder.event("text", answer.content or "", at, step, thread)
        for request in answer.toolRequests or ():
            self.calls.begin(request, at, step, thread)

    def _reasoning(self, event: AssistantReasoning, at: int | None) -> None:
        self._think(event.data.content, at, event.agentId or MAIN, None)

    def _think(self, text: str, at: int | None, thread: str, message_id: str | None) -> None:
        """Thinking is logged with its message, by some versions also before it: once is enough."""
        if text in self._thoughts:
            return
        self._thoughts.add(text)
        step = self.builder.step(message_id, None, at, thread) if message_id is not None else None
        self.builder.event("thinking", text, at, step, thread)

    def _abort(self, event: Abort, at: int | None) -> None:
        self.builder.event("interrupt", event.data.text, at, None, event.agentId or MAIN)

    def _notification(self, event: SystemNotification, at: int | None) -> None:
        self.builder.event("notification", event.data.text, at, None, event.agentId or MAIN)
        kind = event.data.kind
        if kind is not None and kind.shellId is not None and kind.exitCode is not None:
            self.calls.shell_ended(kind.shellId, kind.exitCode, "", at)

    def _warning(self, event: Warned, at: int | None) -> None:
        self.builder.event("notification", event.data.text, at)

    def _info(self, event: Info, at: int | None) -> None:
        self.builder.event("meta", event.data.text, at)

    def _error(self, event: Error, at: int | None) -> None:
        self.builder.event("api_error", event.data.text, at, None, event.agentId or MAIN)

    def _title(self, event: TitleChanged, at: int | None) -> None:
        self.session.title = event.data.title or self.session.title

    def _aside(self, event: Aside, at: int | None) -> None:
        text = f"{kind_of(event)} {event.data.text}".strip()
        self.builder.event("meta", text, at, None, event.agentId or MAIN)

    def _hook(self, event: HookEnd, at: int | None) -> None:
        verdict = event.data.output
        if verdict is not None and verdict.permissionDecision == "deny":
            self.builder.event("hook_block", verdict.permissionDecisionReason or "", at, None, event.agentId or MAIN)

    def _compaction(self, event: CompactionComplete | Truncation, at: int | None) -> None:
        done = event.data
        if done.success is False:
            self.builder.event("meta", "compaction failed", at, None, event.agentId or MAIN)
            return
        facts = {
            "kind": "truncation" if isinstance(event, Truncation) else None,
            "trigger": done.trigger,
            "preTokens": done.preCompactionTokens or done.preTruncationTokensInMessages,
            "postTokens": done.postCompactionTokens or done.postTruncationTokensInMessages,
            "summary": done.summaryContent,
        }
        text = msgspec.json.encode({k: v for k, v in facts.items() if v is not None}).decode()
        self.builder.event("compaction", text, at, None, event.agentId or MAIN)

    def _shutdown(self, event: Shutdown, at: int | None) -> None:
        self.totals.close(event, at)

    def _table(self) -> dict[type, Callable[..., None]]:
        """What to do with an event, by its type."""
        calls = self.calls
        return {
            Start: self._start,
            Resume: self._start,
            ContextChanged: self._context,
            ModelChange: self._model_change,
            UserMessage: self._user,
            AssistantMessage: self._assistant,
            AssistantReasoning: self._reasoning,
            ToolStart: calls.started,
            ToolUserRequested: calls.user_requested,
            ToolComplete: calls.completed,
            PermissionCompleted: calls.decided,
            SystemNotification: self._notification,
            Info: self._info,
            Warned: self._warning,
            Error: self._error,
            Abort: self._abort,
            TitleChanged: self._title,
            CompactionComplete: self._compaction,
            Truncation: self._compaction,
            HookEnd: self._hook,
            Shutdown: self._shutdown,
        }


# The Copilot CLI transcripts of one family: snapshots of a session united.


def read(inputs: list[Input]) -> Reading:
    """Snapshots of a session are united by event id."""
    return Reading(sessions(inputs, PROFILE))


def sessions(
    inputs: list[Input], profile: Profile, folder_of: Callable[[Input], str | None] = lambda _: None
) -> list[Session]:
    """The sessions of these files, in the words of the agent whose they are: its format is called as it is. What lies
    beside a file may say the folder that it does not."""
    united = by_session(inputs, _File).items()
    return [_session(session_id, files, profile, folder_of(files[0].source)) for session_id, files in united]


class _File:
    """The events of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.numbers, self.events = all_lines(source.data, source.artifact, DECODER, decode)
        for kind, times in tally(self.events).items():
            saw(source.artifact, kind, times)
        named = next((e.data.sessionId for e in self.events if isinstance(e, Start) and e.data.sessionId), None)
        self.session_id = named or source.session_hint or source.artifact.artifact_id
        first = next((e.timestamp for e in self.events if e.timestamp), "")
        # Of two snapshots that begin together the longer comes first, so that most of a session points into one file.
        self.order = (first, -len(self.events), source.artifact.sha256, source.artifact.artifact_id)


def _session(session_id: str, files: list[_File], profile: Profile, folder: str | None) -> Session:
    reader = Reader(files[0].source.session(session_id, profile.agent, profile.agent), profile)
    reader.builder.where(folder)
    for file, number, event in once(files, lambda file: zip(file.numbers, file.events, strict=True), lambda e: e.id):
        reader.builder.artifact_id, reader.builder.line = file.source.artifact.artifact_id, number
        reader.take(event)
    return reader.finish()
