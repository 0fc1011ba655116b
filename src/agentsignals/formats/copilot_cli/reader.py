"""Read Copilot CLI transcripts: unite snapshots of a session, and pair the events of each call."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec import Struct

from agentsignals.changes.hunks import edit_texts, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.copilot_cli import PROFILE, records
from agentsignals.formats.copilot_cli.records import Event, Metric, ToolComplete, ToolRequest, Unknown, Usage
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.edits import first_file, record_arguments
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import EDIT_ROLES, MCP, Profile
from agentsignals.formats.records import all_lines, decoded, saw
from agentsignals.formats.usage import charge, tokens_of
from agentsignals.model import (
    MAIN,
    SESSION_TOTAL,
    CallStatus,
    EditOp,
    EventKind,
    Session,
    Step,
    ToolCall,
    TurnKind,
    encode_roles,
    logged_iso,
)

# -- calls: requested, started and completed in up to four events

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


class Result(Struct, gc=False):
    """A tool's result: its text, the end of the call, the shell that ended or was left running."""

    text: str
    status: CallStatus
    exit_code: int | None = None
    ended: str | None = None
    running: str | None = None


class _Command(Struct, gc=False):
    command: str = ""


def unquoted(arguments: bytes) -> bytes:
    """Return arguments without the quotes of VS Code's transcripts, which hold them as a text. A patch stays one."""
    text = decoded(arguments, str) if arguments[:1] == b'"' else None
    return text.encode() if text is not None and text.startswith("{") else arguments


def read_result(event: ToolComplete, call: ToolCall | None, refused: bool) -> Result:
    """Read a `tool.execution_complete`. `success` only means that the tool ran: a shell's exit code is in its
    result."""
    done = event.data
    text = (done.result.content if done.result is not None else None) or ""
    if done.error is not None or done.success is False:
        message = done.error.message if done.error is not None else None
        code = done.error.code if done.error is not None else None
        return Result(message or text, "rejected" if refused else _STATUS.get(code, "error"))
    if call is not None and call.name == IN_VS_CODE:
        return Result(text, "ok" if done.result is not None else "unknown", exit_code(text))
    if call is None or not call.name.endswith(("bash", "powershell", "shell")):
        return Result(text, "ok")
    ended, left = _ENDED.search(text[-_TAIL:]), _LEFT.search(text[-_TAIL:])
    parts = (done.result.contents if done.result is not None else None) or ()
    printed = int(ended[2]) if ended else None
    shell_code = next((part.exitCode for part in parts if part.exitCode is not None), printed)
    return Result(text, "ok", shell_code, ended[1] if ended else None, (left[1] or left[2]) if left else None)


class Calls:
    """Pairs the events of each call."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._by_id: dict[str, ToolCall] = {}
        self._of_user: set[str] = set()
        self._refused: dict[str, str] = {}
        """Words of the person when refusing a call, by call id; often none."""
        self._running: dict[str, ToolCall] = {}

    def begin(self, request: ToolRequest, at: int | None, step: Step | None = None, thread: str = MAIN) -> None:
        """Add a call with the first event that tells of it."""
        call_id, name = request.toolCallId, request.name
        arguments = unquoted(bytes(request.arguments)) or b"{}"
        path = None
        if name == "apply_patch":  # the patch is the whole arguments, or one of them
            texts = edit_texts(arguments.decode("utf-8", "replace"), encode_roles(EDIT_ROLES))
            path = first_file(texts[0].new) if texts and texts[0].kind == "patch" else None
        tool = MCP if request.mcpServerName else self._builder.profile.tool(name)
        self._by_id[call_id] = self._builder.call(call_id, name, arguments, tool, at, step, thread, path=path)

    def started(self, event: records.ToolStart, at: int | None) -> None:
        """Take the start of a call. The message that requested it told of it, unless the transcript is a slice."""
        data = event.data
        call = self._by_id.get(data.toolCallId)
        if call is None and data.toolCallId not in self._of_user:
            thread = event.agentId or data.parentToolCallId or MAIN
            request = ToolRequest(data.toolCallId, data.toolName, data.arguments, data.mcpServerName)
            self.begin(request, at, None, thread)
        elif call is not None and data.mcpServerName:
            call.class_ = "mcp"

    def user_requested(self, event: records.ToolUserRequested, at: int | None) -> None:
        """Take a command that the person ran by hand (`!`): it is no call of the agent."""
        self._of_user.add(event.data.toolCallId)
        arguments = decoded(event.data.arguments, _Command)
        self._builder.event("user_shell", arguments.command if arguments is not None else event.data.toolName, at)

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
            # The diff in the detailed result tells the lines; without one, what the arguments say.
            detail = (event.data.result.detailedContent if event.data.result is not None else None) or ""
            kinds = {text.kind for text in edit_texts(call.arguments, call.argument_roles)}
            diffs = len(_FILE_OF_DIFF.findall(detail))
            if diffs and "whole" not in kinds and (diffs == 1 or "patch" not in kinds):
                op: EditOp = "delete" if "\ndeleted file mode" in detail else "modify"
                self._builder.edit(call, None, op, unified(detail))
            else:
                record_arguments(self._builder, call, existed=False)
        # Words given when refusing are a turn. A bare refusal is an interruption.
        feedback = self._refused.pop(call.call_id, None)
        if feedback and call.thread == MAIN:
            self._builder.turn("rejection_feedback", feedback, at)
        elif feedback is not None:
            self._builder.event("interrupt", f"refused {call.name}", at, None, call.thread)

    def decided(self, event: records.PermissionCompleted, at: int | None) -> None:
        """Take a permission. Policies refuse, too, which is an error and not the person's word."""
        decision, call_id = event.data.result, event.data.toolCallId
        if decision is not None and call_id is not None and decision.kind == _DENIED:
            self._refused[call_id] = (decision.feedback or "").strip()

    def shell_ended(self, shell: str | None, code: int, text: str, at: int | None) -> None:
        """Note that a command that was left running has ended."""
        call = self._running.pop(shell or "", None)
        if call is not None:
            self._builder.exited(call, code, text, at)


# -- tokens: output is logged with each message, the rest only as totals at shutdown

_MAIN_AGENT = "main"


class Totals:
    """The steps since the last shutdown, and what the next shutdown says of them.

    The totals of a model with one call are that call's. Of a model with more calls nothing says how they were shared
    out: what is not yet counted becomes one closing step with `stop_reason` "session_total", so that the session's sums
    are those of the totals and no call is given a context size it did not have. Output of messages whose model the
    totals do not name, or that is more than the totals say, is left to the closing steps: it would count twice. A
    session without shutdown (a crash, one still running) has no such step, and its input stays unknown. A resumed
    session shuts down again, with totals that begin at zero.
    """

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        self._steps.append(step)

    def begin(self) -> None:
        """Note a new run. Steps that the run before it left without a shutdown are in no totals."""
        self._steps.clear()

    def close(self, shutdown: records.Shutdown, at: int | None) -> None:
        """Take the totals of a shutdown, by agent if it counts agents separately."""
        by_thread: dict[str | None, dict[str, Metric]] = {None: shutdown.data.modelMetrics}
        if shutdown.data.agentMetrics:
            by_thread = {
                MAIN if agent == _MAIN_AGENT else agent: metrics.modelMetrics
                for agent, metrics in shutdown.data.agentMetrics.items()
            }
        for thread, metrics in by_thread.items():
            if len(metrics) == 1:  # old versions name no model at a message: an agent that used only one used that
                for step in self._steps:
                    if step.model is None and (thread is None or step.thread == thread):
                        step.model = next(iter(metrics))
        in_totals: set[int] = set()
        closing: Step | None = None
        for thread, metrics in by_thread.items():
            for model, metric in metrics.items():
                steps = [s for s in self._steps if s.model == model and (thread is None or s.thread == thread)]
                if metric.usage is not None:
                    in_totals.update(step.step for step in steps)
                    calls = metric.requests.count if metric.requests is not None else None
                    closing = self._model(model, metric.usage, calls, steps, thread, at) or closing
        if closing is not None:
            _leave_to(closing, [step for step in self._steps if step.step not in in_totals])
        self._steps.clear()

    def _model(  # noqa: PLR0913  (one line of the totals and what it is about)
        self, model: str, usage: Usage, calls: int | None, steps: list[Step], thread: str | None, at: int | None
    ) -> Step | None:
        """Take the totals of a model. Return the closing step, if they say more than its messages."""
        output, counted = count(usage.outputTokens) or 0, sum(step.output_tokens or 0 for step in steps)
        if len(steps) == 1 and calls == 1:
            _charge(steps[0], usage, output or None)
            return None
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


# -- events in file order

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
        self._handlers: dict[type, Callable[..., object]] = {
            records.Start: self._start,
            records.Resume: self._start,
            records.ContextChanged: lambda event, at: self.builder.where(event.data.cwd, event.data.branch),
            records.ModelChange: self._model_change,
            records.UserMessage: self._user,
            records.AssistantMessage: self._assistant,
            records.AssistantReasoning: lambda event, at: self._think(
                event.data.content, at, event.agentId or MAIN, None
            ),
            records.ToolStart: self.calls.started,
            records.ToolUserRequested: self.calls.user_requested,
            records.ToolComplete: self.calls.completed,
            records.PermissionCompleted: self.calls.decided,
            records.SystemNotification: self._notification,
            records.Info: lambda event, at: self.builder.event("meta", event.data.text, at),
            records.Warned: lambda event, at: self.builder.event("notification", event.data.text, at),
            records.Error: lambda event, at: self._told(event, "api_error", event.data.text, at),
            records.Abort: lambda event, at: self._told(event, "interrupt", event.data.text, at),
            records.TitleChanged: self._title,
            records.CompactionComplete: self._compaction,
            records.Truncation: self._compaction,
            records.HookEnd: self._hook,
            records.Shutdown: self.totals.close,
        }

    def take(self, event: Event | Unknown) -> None:
        """Add one event."""
        if isinstance(event, records.Quiet):
            return
        at = logged_iso(event.timestamp)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, at)
        elif isinstance(event, records.Aside):
            self._told(event, "meta", f"{records.kind_of(event)} {event.data.text}".strip(), at)
        else:
            self._told(event, "unknown", records.kind_of(event)[:80], at)

    def finish(self) -> Session:
        """Return the session, when all events are in it."""
        self._handlers.clear()  # they hold this reader, a circle that would keep all its rows until the collector comes
        return self.builder.finish()

    def _told(self, event: Event | Unknown, kind: EventKind, text: str, at: int | None) -> None:
        self.builder.event(kind, text, at, None, event.agentId or MAIN)

    def _start(self, event: records.Start | records.Resume, at: int | None) -> None:
        session, data = self.session, event.data
        session.agent_version = session.agent_version or data.copilotVersion
        self.selected = data.selectedModel or self.selected
        self.totals.begin()
        if data.context is not None:
            self.builder.where(data.context.cwd, data.context.branch)
            session.repo = data.context.repository or session.repo

    def _model_change(self, event: records.ModelChange, at: int | None) -> None:
        self.selected = event.data.newModel or self.selected
        if self.model is not None and self.selected != self.model:
            self.builder.event("model_change", f"{self.model} -> {self.selected}", at)
            self.model = self.selected

    def _user(self, event: records.UserMessage, at: int | None) -> None:
        message = event.data
        text = message.content.strip()
        if (
            event.agentId
            or message.isAutopilotContinuation
            or (message.source and message.source not in _HUMAN_SOURCES)
            or self.builder.profile.machine_kind(text)
        ):
            self._told(event, "meta", text, at)
        else:
            queued = message.delivery in ("steering", "queued")
            attached = bytes(message.attachments) not in (b"", b"[]", b"null")
            kind: TurnKind = "queued_prompt" if queued else "prompt"
            self.builder.prompt(text, at, kind, attached=attached, model=self.model or self.selected)

    def _assistant(self, event: records.AssistantMessage, at: int | None) -> None:
        """Add one message. The parts of one answer share its call id, and repeat its count of tokens."""
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

    def _think(self, text: str, at: int | None, thread: str, message_id: str | None) -> None:
        """Add thinking once. It is logged with its message, by some versions also before it."""
        if text in self._thoughts:
            return
        self._thoughts.add(text)
        step = self.builder.step(message_id, None, at, thread) if message_id is not None else None
        self.builder.event("thinking", text, at, step, thread)

    def _notification(self, event: records.SystemNotification, at: int | None) -> None:
        self._told(event, "notification", event.data.text, at)
        kind = event.data.kind
        if kind is not None and kind.shellId is not None and kind.exitCode is not None:
            self.calls.shell_ended(kind.shellId, kind.exitCode, "", at)

    def _title(self, event: records.TitleChanged, at: int | None) -> None:
        self.session.title = event.data.title or self.session.title

    def _hook(self, event: records.HookEnd, at: int | None) -> None:
        verdict = event.data.output
        if verdict is not None and verdict.permissionDecision == "deny":
            self._told(event, "hook_block", verdict.permissionDecisionReason or "", at)

    def _compaction(self, event: records.CompactionComplete | records.Truncation, at: int | None) -> None:
        done = event.data
        if done.success is False:
            self._told(event, "meta", "compaction failed", at)
            return
        facts = {
            "kind": "truncation" if isinstance(event, records.Truncation) else None,
            "trigger": done.trigger,
            "preTokens": done.preCompactionTokens or done.preTruncationTokensInMessages,
            "postTokens": done.postCompactionTokens or done.postTruncationTokensInMessages,
            "summary": done.summaryContent,
        }
        present = {key: value for key, value in facts.items() if value is not None}
        self._told(event, "compaction", msgspec.json.encode(present).decode(), at)


# -- files of a session


class _File:
    """The events of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.numbers, self.events = all_lines(source.data, source.artifact, records.DECODER, records.decode)
        for kind, times in records.tally(self.events).items():
            saw(source.artifact, kind, times)
        starts = (event.data.sessionId for event in self.events if isinstance(event, records.Start))
        named = next((session_id for session_id in starts if session_id), None)
        self.session_id = named or source.session_hint or source.artifact.artifact_id
        first = next((e.timestamp for e in self.events if e.timestamp), "")
        # Of two snapshots that begin together the longer comes first, so that most of a session points into one file.
        self.order = (first, -len(self.events), source.artifact.sha256, source.artifact.artifact_id)


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
        read.append(reader.finish())
    return read
