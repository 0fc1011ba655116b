"""Read Copilot CLI transcripts: unite snapshots of a session, and pair the events of each call.

An event is `{type, data, id, timestamp, parentId, agentId?}`. Sources: design/formats.md#copilot-cli, and the event
schema of Copilot's SDK for events that no transcript at hand holds. The structs hold only the fields that are read.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Union

import msgspec
from msgspec import Raw, Struct, defstruct, field

from agentsignals.changes.hunks import edit_texts, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count, whole
from agentsignals.formats.builder import (
    RESULT_CHARS_KEPT,
    SessionBuilder,
    Tokens,
    charge,
    close,
    first_file,
    record_arguments,
    summed,
    tokens_of,
)
from agentsignals.formats.copilot_cli import PROFILE
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import EDIT_ROLES, MCP, Profile
from agentsignals.formats.records import decoded, inside, saw, some_lines, string
from agentsignals.model import (
    MAIN,
    SESSION_TOTAL,
    CallStatus,
    EditOp,
    Session,
    Step,
    ToolCall,
    TurnKind,
    encode_roles,
    logged_iso,
)


class Event(Struct, gc=False, tag_field="type"):
    """An event. `agentId` names the subagent that it is of; the main agent has none."""

    id: str | None = None
    timestamp: str | None = None
    agentId: str | None = None


class Quiet(Event):
    """An event without a row of its own: it repeats another, or says nothing about the conversation."""


class Read(Event):
    """An event whose `data` has a shape of its own, by its type."""

    data: Any = None


class Unknown(Struct, gc=False):
    """An event of an unknown type, or with data of another shape than its type has."""

    type: str = "untyped"
    id: str | None = None
    timestamp: str | None = None
    agentId: str | None = None


class Context(Struct, gc=False):
    cwd: str | None = None
    branch: str | None = None
    repository: str | None = None


class Started(Struct, gc=False):
    sessionId: str | None = None
    copilotVersion: str | None = None
    selectedModel: str | None = None
    context: Context | None = None


class Prompt(Struct, gc=False):
    """A prompt. `content` is what the person typed. `transformedContent`, with the program's additions, is not read."""

    content: str = ""
    source: str | None = None
    delivery: str | None = None
    isAutopilotContinuation: bool | None = None
    attachments: Raw = Raw()


class ToolRequest(Struct, gc=False, kw_only=True):
    toolCallId: str = ""
    name: str = ""
    arguments: Raw = Raw()
    mcpServerName: str | None = None


class ToolStart(ToolRequest, gc=False, kw_only=True):
    name: str = field(default="", name="toolName")
    parentToolCallId: str | None = None


class Answer(Struct, gc=False, kw_only=True):
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


class ToolResult(Struct, gc=False):
    content: str | None = None
    detailedContent: str | None = None
    contents: list[dict[str, Any]] | None = None
    """Structured parts, such as the exit code of a shell."""


class Done(Struct, gc=False):
    toolCallId: str = ""
    success: bool | None = None
    result: ToolResult | None = None
    error: dict[str, Any] | None = None


class Permission(Struct, gc=False):
    toolCallId: str | None = None
    result: dict[str, Any] | None = None


class Notice(Struct, gc=False, kw_only=True):
    """The data of most small events: a line of text under one of several names."""

    content: str | None = None
    message: str | None = None
    reason: str | None = None
    summary: str | None = None
    name: str | None = None
    agentName: str | None = None
    newMode: str | None = None
    newModel: str | None = None
    title: str | None = None
    kind: dict[str, Any] | None = None
    """The shell that a notification is about."""
    upToEventId: str | None = None
    """In a rewind: the first event that was removed."""

    @property
    def text(self) -> str:
        texts = (self.content, self.message, self.summary, self.reason, self.name, self.agentName, self.newMode)
        return next((text for text in texts if text), "")


class Compaction(Struct, gc=False, kw_only=True):
    success: bool | None = None
    trigger: str | None = None
    preCompactionTokens: int | None = None
    postCompactionTokens: int | None = None
    summaryContent: str | None = None
    preTruncationTokensInMessages: int | None = None
    postTruncationTokensInMessages: int | None = None


class Hook(Struct, gc=False):
    output: dict[str, Any] | None = None


class Usage(Struct, gc=False):
    """Totals of a model's calls. Input holds cache reads and writes, output holds reasoning."""

    inputTokens: int = 0
    outputTokens: int = 0
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None
    reasoningTokens: int | None = None


class UsageRecord(Usage, gc=False, kw_only=True):
    """Tokens of one model call. The answer of the call has the same id."""

    model: str | None = None
    apiCallId: str | None = None


class Used(Struct, gc=False):
    usage: UsageRecord | None = None


class Metric(Struct, gc=False):
    requests: dict[str, Any] | None = None
    """`count` of model calls. The `cost` next to it counts premium requests, which are no money."""
    usage: Usage | None = None


class AgentMetric(Struct):
    modelMetrics: dict[str, Metric] = field(default_factory=dict)


class Shutdown(AgentMetric):
    agentMetrics: dict[str, AgentMetric] | None = None


ASIDES = frozenset((
    "session.context_cleared", "session.handoff", "session.mode_changed", "session.task_complete", "skill.invoked",
    "subagent.completed", "subagent.deselected", "subagent.failed", "subagent.selected", "subagent.started",
))  # fmt: skip
"""Events outside the conversation, recorded by their type and a line of text."""
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
_DATA: dict[type[Struct], tuple[str, ...]] = {
    Started: ("session.start", "session.resume"),
    Context: ("session.context_changed",),
    Prompt: ("user.message",),
    Answer: ("assistant.message",),
    ToolStart: ("tool.execution_start", "tool.user_requested"),
    Done: ("tool.execution_complete",),
    Permission: ("permission.completed",),
    Compaction: ("session.compaction_complete", "session.truncation"),
    Hook: ("hook.end",),
    Used: ("session.usage_record",),
    Shutdown: ("session.shutdown",),
    Notice: (
        "session.model_change", "assistant.reasoning", "system.notification", "session.info", "session.warning",
        "session.error", "abort", "session.title_changed", "session.snapshot_rewind", *sorted(ASIDES),
    ),
}  # fmt: skip
"""The shape of the data of each type of event that is read."""


def _shape(base: type[Event], name: str, data: type[Struct] | None = None) -> type[Struct]:
    fields = [("data", data, field(default_factory=data))] if data is not None else []
    return defstruct(name.replace(".", "_"), fields, bases=(base,), tag=name, gc=False)


_SHAPES = (
    *(_shape(Read, name, data) for data, names in _DATA.items() for name in names),
    *(_shape(Quiet, name) for name in _QUIET),
)
DECODER: msgspec.json.Decoder[Event | Unknown] = msgspec.json.Decoder(Union[_SHAPES])  # noqa: UP007  (made of a tuple)
_decode_any = msgspec.json.Decoder(Unknown).decode
_TYPES: dict[type, str] = {shape: str(shape.__struct_config__.tag) for shape in _SHAPES}
_READ_TYPES = frozenset(_TYPES.values())


def decode(data: memoryview | bytes) -> Event | Unknown:
    """Decode a line. An event of a known type that can't be decoded raises, for `records.lines` to recover."""
    try:
        return DECODER.decode(data)
    except msgspec.DecodeError:
        event = _decode_any(data)
        if event.type in _READ_TYPES:
            raise
        return event


def tally(events: Sequence[Event | Unknown]) -> dict[str, int]:
    shapes = Counter(map(type, events))
    counted = {_TYPES[shape]: times for shape, times in shapes.items() if shape is not Unknown}
    if Unknown in shapes:
        counted.update(Counter([kind_of(event) for event in events if isinstance(event, Unknown)]))
    return counted


def kind_of(event: Event | Unknown) -> str:
    """Return the event's type, as counted in the artifact."""
    return event.type if isinstance(event, Unknown) else _TYPES[type(event)]


# -- events in file order

IN_VS_CODE = "run_in_terminal"
"""The editor's shell. `success` says that it could be started; older transcripts keep no results."""
_TAIL = 300
_ENDED = re.compile(r"<(?:shellId: (\S+) completed|(?:command )?exited|command) with exit code:? (-?\d+)>\s*\Z")
_LEFT = re.compile(r"<command (?:with shellId: (\S+) is still running|started in .*?shellId: (\S+?)>?[. ])")
_DENIED = "denied-interactively-by-user"
_FILE_OF_DIFF = re.compile(r"^diff --git ", re.MULTILINE)
_STATUS: dict[str | None, CallStatus] = {
    **dict.fromkeys(("rejected", "denied"), "rejected"),
    **dict.fromkeys(("aborted", "cancelled", "canceled", "interrupted"), "cancelled"),
}
"""Status of a failed call by its error code."""
_HUMAN_SOURCES = ("user", "human")


class Result(Struct, gc=False):
    """A tool's result: its text, the end of the call, the shell that ended or was left running."""

    text: str
    status: CallStatus
    exit_code: int | None = None
    ended: str | None = None
    running: str | None = None


def _result(done: Done, call: ToolCall | None, refused: bool) -> Result:
    """Read a result. `success` only means that the tool ran: a shell's exit code is in its result."""
    result = done.result or ToolResult()
    text = result.content or ""
    if done.error is not None or done.success is False:
        said, code = string(inside(done.error, "message")), string(inside(done.error, "code"))
        return Result(said or text, "rejected" if refused else _STATUS.get(code, "error"))
    if call is not None and call.name == IN_VS_CODE:
        return Result(text, "ok" if done.result is not None else "unknown", exit_code(text))
    if call is None or not call.name.endswith(("bash", "powershell", "shell")):
        return Result(text, "ok")
    ended, left = _ENDED.search(text[-_TAIL:]), _LEFT.search(text[-_TAIL:])
    printed = int(ended[2]) if ended else None
    codes = (part["exitCode"] for part in result.contents or () if part.get("exitCode") is not None)
    shell_code = whole(next(codes, printed))
    return Result(text, "ok", shell_code, ended[1] if ended else None, (left[1] or left[2]) if left else None)


class Totals:
    """The steps since the last shutdown, and what the next shutdown says of them.

    Output is logged with each message, the rest only as totals at shutdown. The totals of a model with one call are
    that call's. Of a model with more calls nothing says how they were shared out: what is not yet counted becomes one
    closing step with `stop_reason` "session_total", so that the session's sums are those of the totals and no call is
    given a context size it did not have. Output of messages whose model the totals do not name, or that is more than
    the totals say, is left to the closing steps: it would count twice. A session without shutdown (a crash, one still
    running) has no such step, and its input stays unknown. A resumed session shuts down again, with totals that begin
    at zero.

    From 1.0.102 on each call has a usage record, and the totals of a resumed session go on: only the records count.
    Those of calls without an answer in the log, such as a title's, are summed into a closing step by model.
    """

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self.steps: list[Step] = []
        """Steps of the current run. What a run left without a shutdown is in no totals."""
        self.records: list[UsageRecord] = []
        """Usage records of the current run."""

    def charge_calls(self, at: int | None) -> None:
        """Give the calls of a run that ended the tokens of their records."""
        steps = {step.message_id: step for step in self.steps}
        others: dict[str | None, list[Tokens]] = {}
        for usage in self.records:
            step = steps.pop(usage.apiCallId, None) if usage.apiCallId else None
            if step is not None:
                _charge(step, usage, count(usage.outputTokens) or None)
            else:
                others.setdefault(usage.model, []).append(tokens_of(usage))
        for model, tokens in others.items():
            close(self._builder, model, summed(tokens), at)
        self.steps.clear()
        self.records.clear()

    def close(self, shutdown: Shutdown, at: int | None) -> None:
        """Take the totals of a shutdown, by agent if it counts agents separately."""
        if self.records:
            self.charge_calls(at)
            return
        by_thread: dict[str | None, dict[str, Metric]] = {None: shutdown.modelMetrics}
        if shutdown.agentMetrics:
            by_thread = {agent: metrics.modelMetrics for agent, metrics in shutdown.agentMetrics.items()}
        for thread, metrics in by_thread.items():
            if len(metrics) == 1:  # old versions name no model at a message: an agent that used only one used that
                for step in self.steps:
                    if step.model is None and (thread is None or step.thread == thread):
                        step.model = next(iter(metrics))
        in_totals: set[int] = set()
        closing: Step | None = None
        for thread, metrics in by_thread.items():
            for model, metric in metrics.items():
                steps = [s for s in self.steps if s.model == model and (thread is None or s.thread == thread)]
                if metric.usage is None:
                    continue
                in_totals.update(step.step for step in steps)
                if len(steps) == 1 and inside(metric.requests, "count") == 1:
                    _charge(steps[0], metric.usage, count(metric.usage.outputTokens) or None)
                else:
                    closing = self._rest(model, metric.usage, steps, thread, at) or closing
        if closing is not None:
            _leave_to(closing, [step for step in self.steps if step.step not in in_totals])
        self.steps.clear()

    def _rest(self, model: str, usage: Usage, steps: list[Step], thread: str | None, at: int | None) -> Step | None:
        """Add the closing step of a model's totals, if they say more than its messages."""
        output, counted = count(usage.outputTokens) or 0, sum(step.output_tokens or 0 for step in steps)
        if not usage.inputTokens and not output > counted:
            return None
        threads = {step.thread for step in steps}
        thread = thread or (threads.pop() if len(threads) == 1 else MAIN)
        closing = self._builder.step(None, model, at, thread)
        closing.stop_reason = SESSION_TOTAL
        self._builder.event("meta", f"session totals of {model}", at, closing, thread)
        if output and output < counted:
            _leave_to(closing, steps)
            counted = 0
        _charge(closing, usage, output - counted or None)
        if usage.inputTokens:
            for step in steps:
                step.input_in_step = closing.step
        return closing


def _leave_to(closing: Step, steps: list[Step]) -> None:
    """Take output from steps that the totals count already, under another name or in another thread."""
    for step in steps:
        step.output_tokens, step.input_in_step = None, closing.step


def _charge(step: Step, usage: Usage, output: int | None) -> None:
    """Set a step's tokens. Input of 0 is input that is not reported: no call goes without."""
    output = output if output is not None else step.output_tokens
    if usage.inputTokens:
        charge(step, tokens_of(usage))
    step.output_tokens = output


class Reader:
    """Takes the events of one session in file order, each by the method of its type."""

    def __init__(self, session: Session, profile: Profile) -> None:
        self.session = session
        self.builder = SessionBuilder(session, profile)
        self.totals = Totals(self.builder)
        self.model: str | None = None
        self.selected: str | None = None
        self.thoughts: set[str] = set()
        self.calls: dict[str, ToolCall] = {}
        self.of_user: set[str] = set()
        """Ids of commands that the person ran."""
        self.refused: dict[str, str] = {}
        """Words of the person when refusing a call, by call id; often none."""
        self.running: dict[str, ToolCall] = {}
        """Commands that were left running, by shell."""
        self.places: dict[str | None, int] = {}
        """The first row of each event, by the event's id."""

    def take(self, event: Event | Unknown) -> None:
        if isinstance(event, Quiet):
            return
        at, thread, kind = logged_iso(event.timestamp), event.agentId or MAIN, kind_of(event)
        self.places[event.id] = len(self.session.events)
        if isinstance(event, Read):
            _METHODS[kind](self, event.data, at, thread)
        else:
            self.builder.event("unknown", kind[:80], at, None, thread)

    def start(self, data: Started, at: int | None, thread: str) -> None:
        session = self.session
        session.agent_version = session.agent_version or data.copilotVersion
        self.selected = data.selectedModel or self.selected
        self.totals.charge_calls(at)
        if data.context is not None:
            self.move(data.context, at, thread)
            session.repo = data.context.repository or session.repo

    def move(self, context: Context, at: int | None, thread: str) -> None:
        self.builder.where(context.cwd, context.branch)

    def use(self, data: Used, at: int | None, thread: str) -> None:
        if data.usage is not None:
            self.totals.records.append(data.usage)

    def select(self, data: Notice, at: int | None, thread: str) -> None:
        self.selected = data.newModel or self.selected
        if self.model is not None:
            self.model = self.builder.model_changed(self.model, self.selected, at)

    def prompt(self, message: Prompt, at: int | None, thread: str) -> None:
        text = message.content.strip()
        sent = message.isAutopilotContinuation or (message.source and message.source not in _HUMAN_SOURCES)
        if thread != MAIN or sent or self.builder.profile.machine_kind(text):
            self.builder.event("meta", text, at, None, thread)
        else:
            kind: TurnKind = "queued_prompt" if message.delivery in ("steering", "queued") else "prompt"
            attached = bytes(message.attachments) not in (b"", b"[]", b"null")
            self.builder.prompt(text, at, kind, attached=attached, model=self.model or self.selected)

    def answer(self, answer: Answer, at: int | None, thread: str) -> None:
        """Add one message. The parts of one answer share its call id, and repeat its count of tokens."""
        builder = self.builder
        thread = answer.parentToolCallId or MAIN if thread == MAIN else thread
        model = answer.model or self.model or self.selected
        n_steps = len(self.session.steps)
        step = builder.step(answer.apiCallId or answer.messageId, model, at, thread)
        if len(self.session.steps) > n_steps:
            self.totals.steps.append(step)
        # A call that said something took tokens: a 0 here is a provider that reports none.
        step.output_tokens = max(count(answer.outputTokens) or 0, step.output_tokens or 0) or None
        if thread == MAIN:
            self.model = builder.model_changed(self.model, model, at, step)
        if answer.reasoningText:
            self.think(answer.reasoningText, at, thread, step if step.message_id is not None else None)
        elif answer.reasoningOpaque or answer.encryptedContent:
            builder.event("thinking", "", at, step, thread)
        if answer.content or not (answer.toolRequests or answer.reasoningText):
            builder.event("text", answer.content or "", at, step, thread)
        for request in answer.toolRequests or ():
            self.call(request, at, step, thread)

    def think(self, text: str, at: int | None, thread: str, step: Step | None = None) -> None:
        """Add thinking once. It is logged with its message, by some versions also before it."""
        if text not in self.thoughts:
            self.thoughts.add(text)
            self.builder.event("thinking", text, at, step, thread)

    def call(self, request: ToolRequest, at: int | None, step: Step | None, thread: str) -> None:
        """Add a call with the first event that tells of it."""
        arguments = bytes(request.arguments)
        # VS Code's transcripts hold arguments as a text. A patch stays one.
        if arguments[:1] == b'"' and (text := decoded(arguments, str)) and text.startswith("{"):
            arguments = text.encode()
        path = None
        if request.name == "apply_patch":  # the patch is the whole arguments, or one of them
            texts = edit_texts(arguments.decode("utf-8", "replace") or "{}", encode_roles(EDIT_ROLES))
            path = first_file(texts[0].new) if texts and texts[0].kind == "patch" else None
        tool = MCP if request.mcpServerName else self.builder.profile.tool(request.name)
        self.calls[request.toolCallId] = self.builder.call(
            request.toolCallId, request.name, arguments or b"{}", tool, at, step, thread, path=path
        )

    def call_started(self, data: ToolStart, at: int | None, thread: str) -> None:
        """Take the start of a call. The message that requested it told of it, unless the transcript is a slice."""
        call = self.calls.get(data.toolCallId)
        if call is None and data.toolCallId not in self.of_user:
            self.call(data, at, None, data.parentToolCallId or MAIN if thread == MAIN else thread)
        elif call is not None and data.mcpServerName:
            call.class_ = "mcp"

    def user_command(self, data: ToolStart, at: int | None, thread: str) -> None:
        """Take a command that the person ran by hand (`!`): it is no call of the agent."""
        self.of_user.add(data.toolCallId)
        arguments = decoded(data.arguments, dict[str, Any])
        command = data.name if arguments is None else string(arguments.get("command")) or ""
        self.builder.event("user_shell", command, at)

    def call_completed(self, done: Done, at: int | None, thread: str) -> None:
        call = self.calls.get(done.toolCallId)
        result = _result(done, call, done.toolCallId in self.refused)
        if done.toolCallId in self.of_user:
            self.builder.event("command_output", result.text[:RESULT_CHARS_KEPT], at, n_chars=len(result.text))
            return
        code, status = result.exit_code, result.status
        if code is not None and result.ended in self.running:
            self.shell_ended(result.ended, code, result.text, at)
            code, status = None, "ok"  # the code is that of the command that ran on, not of the look at it
        self.builder.result(done.toolCallId, result.text, status, at, MAIN, code)
        if call is None:
            return
        if result.running is not None and result.running not in self.running:
            self.running[result.running] = call
        if status == "ok" and call.class_ == "edit":
            # The diff in the detailed result tells the lines; without one, what the arguments say.
            detail = (done.result.detailedContent if done.result is not None else None) or ""
            kinds = {text.kind for text in edit_texts(call.arguments, call.argument_roles)}
            diffs = len(_FILE_OF_DIFF.findall(detail))
            if diffs and "whole" not in kinds and (diffs == 1 or "patch" not in kinds):
                op: EditOp = "delete" if "\ndeleted file mode" in detail else "modify"
                self.builder.edit(call, None, op, unified(detail))
            else:
                record_arguments(self.builder, call, existed=False)
        # Words given when refusing are a turn. A bare refusal is an interruption.
        feedback = self.refused.pop(call.call_id, None)
        if feedback and call.thread == MAIN:
            self.builder.turn("rejection_feedback", feedback, at)
        elif feedback is not None:
            self.builder.event("interrupt", f"refused {call.name}", at, None, call.thread)

    def decide(self, data: Permission, at: int | None, thread: str) -> None:
        """Take a permission. Policies refuse, too, which is an error and not the person's word."""
        if data.toolCallId is not None and inside(data.result, "kind") == _DENIED:
            self.refused[data.toolCallId] = (string(inside(data.result, "feedback")) or "").strip()
        elif data.toolCallId is not None and (string(inside(data.result, "kind")) or "").startswith("approved"):
            self.builder.permitted(data.toolCallId, at)

    def shell_ended(self, shell: str | None, code: int, text: str, at: int | None) -> None:
        """Note that a command that was left running has ended."""
        call = self.running.pop(shell or "", None)
        if call is not None:
            self.builder.exited(call, code, text, at)

    def notify(self, notice: Notice, at: int | None, thread: str) -> None:
        self.builder.event("notification", notice.text, at, None, thread)
        shell, code = string(inside(notice.kind, "shellId")), whole(inside(notice.kind, "exitCode"))
        if shell is not None and code is not None:
            self.shell_ended(shell, code, "", at)

    def name(self, notice: Notice, at: int | None, thread: str) -> None:
        self.session.title = notice.title or self.session.title

    def rewind(self, notice: Notice, at: int | None, thread: str) -> None:
        """Take a rewind. The program removes what the person went back from, but a copy of the log may hold it."""
        if notice.upToEventId in self.places:
            self.builder.abandon(self.places[notice.upToEventId])
        self.builder.event("rewind", None, at)

    def aside(self, notice: Notice, at: int | None, thread: str, kind: str) -> None:
        self.builder.event("meta", f"{kind} {notice.text}".strip(), at, None, thread)

    def hook(self, hook: Hook, at: int | None, thread: str) -> None:
        if inside(hook.output, "permissionDecision") == "deny":
            why = string(inside(hook.output, "permissionDecisionReason")) or ""
            self.builder.event("hook_block", why, at, None, thread)

    def compact(self, done: Compaction, at: int | None, thread: str, kind: str | None = None) -> None:
        if done.success is False:
            self.builder.event("meta", "compaction failed", at, None, thread)
            return
        facts = {
            "kind": kind,
            "trigger": done.trigger,
            "preTokens": done.preCompactionTokens or done.preTruncationTokensInMessages,
            "postTokens": done.postCompactionTokens or done.postTruncationTokensInMessages,
            "summary": done.summaryContent,
        }
        present = {key: value for key, value in facts.items() if value is not None}
        self.builder.event("compaction", msgspec.json.encode(present).decode(), at, None, thread)


_METHODS: dict[str, Callable[[Reader, Any, int | None, str], object]] = {
    "session.start": Reader.start,
    "session.resume": Reader.start,
    "session.context_changed": Reader.move,
    "session.model_change": Reader.select,
    "session.usage_record": Reader.use,
    "user.message": Reader.prompt,
    "assistant.message": Reader.answer,
    "assistant.reasoning": lambda reader, data, at, thread: reader.think(data.content or "", at, thread),
    "tool.execution_start": Reader.call_started,
    "tool.user_requested": Reader.user_command,
    "tool.execution_complete": Reader.call_completed,
    "permission.completed": Reader.decide,
    "system.notification": Reader.notify,
    "session.info": lambda reader, data, at, _: reader.builder.event("meta", data.text, at),
    "session.warning": lambda reader, data, at, _: reader.builder.event("notification", data.text, at),
    "session.error": lambda reader, data, at, thread: reader.builder.event("api_error", data.text, at, None, thread),
    "abort": lambda reader, data, at, thread: reader.builder.event("interrupt", data.text, at, None, thread),
    "session.title_changed": Reader.name,
    "session.snapshot_rewind": Reader.rewind,
    "session.compaction_complete": Reader.compact,
    "session.truncation": lambda reader, data, at, thread: reader.compact(data, at, thread, "truncation"),
    "hook.end": Reader.hook,
    "session.shutdown": lambda reader, data, at, _: reader.totals.close(data, at),
    **{kind: partial(Reader.aside, kind=kind) for kind in ASIDES},
}


class _File:
    def __init__(self, source: Input) -> None:
        self.source = source
        self.named: str | None = None
        self.first = ""
        self.numbers, self.events = some_lines(source.data, source.artifact, DECODER, decode, self._look)
        self.session_id = self.named or source.session_hint or source.artifact.artifact_id
        # Of two snapshots that begin together the longer comes first, so that most of a session points into one file.
        self.order = (self.first, -len(self.events), source.artifact.sha256, source.artifact.artifact_id)

    def _look(self, events: Sequence[Event | Unknown]) -> None:
        for kind, times in tally(events).items():
            saw(self.source.artifact, kind, times)
        begun = (e.data for e in events if isinstance(e, Read) and isinstance(e.data, Started))
        self.named = self.named or next((data.sessionId for data in begun if data.sessionId), None)
        self.first = self.first or next((e.timestamp for e in events if e.timestamp), "")


def read(inputs: list[Input]) -> Reading:
    """Unite snapshots of a session by event id."""
    return Reading(sessions(inputs, PROFILE))


def sessions(
    inputs: list[Input], profile: Profile, folder_of: Callable[[Input], str | None] = lambda _: None
) -> list[Session]:
    """Read the sessions of these files, which an agent of this profile wrote.

    `folder_of` returns the folder of a session whose file does not say it.
    """
    read: list[Session] = []
    for session_id, files in by_session(inputs, _File).items():
        source = files[0].source
        reader = Reader(source.session(session_id, profile.agent, profile.agent), profile)
        reader.builder.where(folder_of(source))
        events = once(files, lambda file: zip(file.numbers, file.events, strict=True), lambda event: event.id)
        for file, number, event in events:
            reader.builder.artifact_id, reader.builder.line = file.source.artifact.artifact_id, number
            reader.take(event)
        reader.totals.charge_calls(reader.session.ended_at)
        read.append(reader.builder.finish())
    return read
