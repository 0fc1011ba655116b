"""Read mini-SWE-agent trajectories of version 1 (text only) and 2 (function calls, usage, times), each an attempt."""

import math
import re
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, number, whole
from agentsignals.formats.builder import RESULT_CHARS_KEPT, Tokens, charge, close, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import messages_of, or_list, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.instances import canonical, of_submission, repo_of, root_of, run_of, run_of_model, stem_of
from agentsignals.formats.mini_swe_agent import PROFILE
from agentsignals.formats.profile import SHELL
from agentsignals.formats.records import decoded, decoder, inside, string
from agentsignals.model import Attempt, CallStatus, Ending, Session, Step, ToolCall, logged_ms
from agentsignals.model.prices import same_models


class Extra(Struct, gc=False, kw_only=True):
    """Notes of the harness on a message; version 2 only."""

    actions: object = None
    cost: object = None
    timestamp: object = None
    returncode: object = None
    raw_output: object = None
    exception_info: object = None
    response: Raw = Raw()
    exit_status: object = None
    submission: object = None
    model_response: object = None
    """Answer that could not be parsed."""


class Message(Struct, kw_only=True):
    """A message. The Responses API's answers are logged as they came: with `object` and `output`, without a role."""

    role: str | None = None
    content: object = None
    extra: Extra | None = None
    tool_calls: object = None
    tool_call_id: object = None
    call_id: object = None
    output: object = None
    shape: object = field(default=None, name="object")
    type: object = None
    reasoning_content: object = None

    @property
    def speaker(self) -> str:
        """`system`, `user`, `assistant`, `tool` or `exit`."""
        if self.role:
            return self.role
        if self.type == "function_call_output":
            return "tool"
        return "assistant" if self.shape == "response" else "untold"

    @property
    def text(self) -> str:
        return "\n".join(_texts(self.content if self.content is not None else self.output))


class Document(Struct):
    messages: list[Raw]
    info: dict[str, Any] | None = None
    """Configuration and end of the attempt."""
    instance_id: object = None


_DEEPEST = 4
_ROUNDED_USD = 1e-6
"""Difference of two sums of the same dollars."""
_FINISHED = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
"""First output of a command that submits the rest of its output."""
_FENCE_OPENS = re.compile(r"```(?:mswea_bash_command|bash)[ \t]{0,20}\r?\n")
_FENCE_CLOSES = "\n```"
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d{1,9})\s*</returncode>")
_OUTPUT = "<output>"
_ENDINGS: dict[str, Ending] = {
    "LimitsExceeded": "budget",
    "TimeExceeded": "time",
    "ContextWindowExceededError": "budget",
    "FormatError": "finished",
    "RepeatedFormatError": "finished",
}
_BROKEN_OFF = ("Error", "Exception", "Timeout", "Interrupt", "Interruption")
"""Suffixes of the exceptions of a provider, an environment, or a person who stopped the run."""


def ending_of(status: str) -> Ending:
    """Return the cause that an exit status names."""
    broken_off: Ending = "infrastructure" if status.endswith(_BROKEN_OFF) else "finished"
    return _ENDINGS.get(status, broken_off)


def _texts(value: object, depth: int = 0) -> list[str]:
    """Return the texts of a message's content, which may be nested lists of parts."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and depth < _DEEPEST:
        return [text for part in value for text in _texts(part, depth + 1)]
    if isinstance(value, dict) and depth < _DEEPEST:
        return _texts(value.get("text", value.get("content")), depth + 1)
    return []


def read(inputs: list[Input]) -> Reading:
    """Read each file as an attempt of its own."""
    reading, decode = Reading(), decoder(Message).decode
    for source in inputs:
        document = read_document(source, or_list(Document), "messages")
        if document is None:
            continue
        messages = messages_of(source.data, document.messages, lambda raw, _: decode(raw), source.artifact)
        tally(source.artifact, "message", [None if m is None else m.speaker for m in messages])
        reader = Reader(source, document)
        for n, message in enumerate(messages, 1):
            reader.builder.line = n
            if message is not None:
                reader.take(message)
        reader.settle()
        reading.sessions.append(reader.builder.finish())
        reading.attempts.append(reader.attempt(max(len(messages), 1)))
    return reading


class Reader(Conversation):
    profile = PROFILE

    def __init__(self, source: Input, document: Document) -> None:
        self.source, self.info = source, document.info or {}
        self.instance = string(document.instance_id) or stem_of(source.artifact.path)
        self.knobs = _knobs(self.info)
        session = Session(
            session_id="",
            context="eval",
            format="mini-swe-agent",
            agent="mini-swe-agent",
            artifact_id=source.artifact.artifact_id,
            agent_version=string(self.info.get("mini_version")),
            repo=repo_of(self.instance),
        )
        super().__init__(session)
        self.builder.where(string(inside(self.info, "config", "environment", "cwd")))
        self.model: str | None = self.knobs.get("model_id")
        self.submitted = ""
        """Output of the command that declared the task done."""
        self.ended: Extra | None = None
        """Notes of the harness on the end of the attempt."""
        self.open: list[ToolCall] = []

    def take(self, message: Message) -> None:
        speaker, extra = message.speaker, message.extra
        seconds = number(extra.timestamp) if extra is not None else None
        at = None if seconds is None else logged_ms(seconds * 1000)
        is_billed = extra is not None and (amount(extra.cost) or decoded(extra.response, dict[str, Any]) is not None)
        if extra is not None and is_billed and speaker != "assistant":
            # The harness took no command from the answer, and keeps the call with its own message.
            step = self.bill(extra, at)
            self.open = []
            if unread := "\n".join(_texts(extra.model_response)).strip():
                self.builder.event("text", unread, at, step)
        if speaker == "assistant":
            self.answer(message, at)
        elif speaker == "system":
            self.note(message.text, at)
        elif speaker == "user" and not self.session.turns:
            self.builder.turn("prompt", message.text.strip(), at, self.model)
        elif speaker in ("user", "tool", "exit"):
            if speaker == "exit":
                self.ended = extra
            self.observe(message, at)
        else:
            self.event("unknown", f"message of {speaker}"[:80], at)

    def note(self, text: str, at: int | None) -> None:
        self.builder.event("meta", text[:RESULT_CHARS_KEPT], at, n_chars=len(text))

    def answer(self, message: Message, at: int | None) -> None:
        builder, extra, text = self.builder, message.extra or Extra(), message.text
        step = self.bill(extra, at)
        self.open = []
        if thought := string(message.reasoning_content):
            builder.event("thinking", thought, at, step)
        commands: list[tuple[str, str]] = []
        # The harness notes the commands that it took from the reply. Else function calls have them, or a fence.
        for calls in (extra.actions, message.tool_calls):
            logged = calls if isinstance(calls, list) else []
            read = [found for call in logged if (found := _command(call)) is not None]
            for _ in range(len(logged) - len(read)):
                builder.event("unknown", "call without a command", at, step)
            commands = commands or read
        if not commands:
            fenced: list[str] = []
            opens = _FENCE_OPENS.search(text)
            while opens is not None and (closes := text.find(_FENCE_CLOSES, opens.end() - 1)) >= 0:
                fenced.append(text[opens.end() : closes])
                opens = _FENCE_OPENS.search(text, closes + len(_FENCE_CLOSES))
            if len(fenced) == 1:  # more than one is an error of form: none of them ran
                commands = [("", fenced[0].strip())]
        if len(commands) == 1:
            text = text.replace(commands[0][1], "").replace("```mswea_bash_command\n\n```", "")
            text = text.replace("```bash\n\n```", "")
        if text.strip():
            builder.event("text", text.strip(), at, step)
        for n, (call_id, command) in enumerate(commands):
            arguments = msgspec.json.encode({"command": command})
            named = call_id or f"message-{builder.line}.{n}"
            self.open.append(builder.call(named, "bash", arguments, SHELL, at, step))

    def bill(self, extra: Extra, at: int | None) -> Step:
        """Add a model call with the usage that the harness noted. The model is the one that served the call."""
        response = decoded(extra.response, dict[str, Any]) or {}
        served = string(response.get("model"))
        is_named = served is None or self.model is None or len(set(same_models({served, self.model}).values())) == 1
        step = self.builder.step(None, self.model if is_named and self.model else served, at)
        if cost := amount(extra.cost):  # 0 is the cost of a model without a price
            step.cost_usd, step.cost_source = cost, "recorded"
        charge(step, tokens_of(response.get("usage") or None))
        return step

    def settle(self) -> None:
        """Add what the harness paid for beyond the calls of its log, or mark that the log has fewer calls."""
        steps, stats = self.session.steps, inside(self.info, "model_stats")
        told = [step.cost_usd for step in steps if step.cost_usd is not None]
        calls, paid = whole(inside(stats, "api_calls")) or 0, amount(inside(stats, "instance_cost")) or 0.0
        if not told:
            return
        missing = calls - len(steps)
        if len(told) == len(steps) and (rest := paid - math.fsum(told)) > _ROUNDED_USD:
            step = close(self.builder, self.model, Tokens(None, None, None, None, None))
            step.cost_usd, step.cost_source = rest, "recorded"
        elif missing > 0:
            steps[-1].unpriced = f"{missing} model calls of which only the number is logged"

    def observe(self, message: Message, at: int | None) -> None:
        """Record the answer to a command. After a reply without a command it says what the reply should have been."""
        named, text = message.tool_call_id or message.call_id, message.text
        call = next((c for c in self.open if c.call_id == named), None) if named else None
        if call is None and self.open and not (named and message.speaker == "tool"):
            call = self.open[0]
        if call is None:
            if text:  # the end of an attempt at its limits has no text
                self.note(text, at)
            return
        self.open.remove(call)
        exception = (string(message.extra.exception_info) if message.extra is not None else None) or ""
        status: CallStatus = "ok"
        error = None
        if text.startswith("Command not executed. The user rejected"):
            status = "rejected"
        elif exception == "action was not executed":
            status = "cancelled"
        elif "timed out and has been killed" in text[:RESULT_CHARS_KEPT] or "timed out" in exception:
            status, error = "error", "timeout"
        elif exception and message.speaker != "exit":
            status, error = "error", "other"
        output, code = _output(message)
        if any(mark in (call.command or "") for mark in _FINISHED):
            self.submitted = output
        self.builder.result(call.call_id, output, status, at, exit_code=code, error=error)

    def attempt(self, line: int) -> Attempt:
        """Return the treatment, the submission and the end of the attempt."""
        path, info, session = self.source.artifact.path, self.info, self.session
        run = run_of(path)
        # An evaluation names its folders for the model (`provider__name`), else for the run.
        by_model = run is not None and not of_submission(path) and self.model is not None
        part = Attempt(
            root=root_of(path),
            task_id=canonical(self.instance),
            run_id=(run or "").rpartition("/")[0] or None,
            goes_by=run_of_model(self.model or "", (run or "").rpartition("/")[2]) if by_model else run,
            session_artifact=session.artifact_id,
            knobs=self.knobs,
            started_at=session.started_at,
            ended_at=session.ended_at,
        )
        ended = self.ended or Extra()
        status = string(info.get("exit_status")) or string(ended.exit_status)
        submission = string(info.get("submission")) or string(info.get("result")) or string(ended.submission)
        if submission is None:
            submission = "" if status else self.submitted
        if status:
            part.exit_status, part.ending = status, ending_of(status)
            part.timed_out = status == "TimeExceeded"
        if looks_like_diff(submission):
            part.patch, part.patch_text_bytes = patched_files(submission), len(submission.encode("utf-8", "replace"))
        elif status and not submission.strip():
            part.patch, part.patch_text_bytes = [], 0
        text, fields = f"exit status {status or 'unknown'}", ["exit_status", "timed_out"]
        if part.patch is not None:
            text, fields = f"{text}, submitted {', '.join(f.path for f in part.patch) or 'nothing'}", [*fields, "patch"]
        if status or part.patch is not None:
            part.statements += self.source.states(text, fields, line)
        configured = ", ".join(f"{k} {v}" for k, v in part.knobs.items())
        part.statements += self.source.states(f"configured: {configured}", [f"knobs.{k}" for k in part.knobs])
        if cost := amount(inside(info, "model_stats", "instance_cost")):
            part.cost_usd = cost
            part.statements += self.source.states(f"model stats: cost_usd {cost}", ["cost_usd"], line)
        return part


def _knobs(info: dict[str, Any]) -> dict[str, Any]:
    """Return the configured treatment. A limit of 0 means no limit and becomes None."""
    agent, model = inside(info, "config", "agent"), inside(info, "config", "model")
    treatment: dict[str, Any] = {"agent_type": "mini-swe-agent"}
    if name := string(inside(model, "model_name")):
        treatment["model_id"] = name
    for limit in ("step_limit", "cost_limit", "wall_time_limit_seconds"):
        if number(value := inside(agent, limit)) is not None:
            treatment["timeout_s" if limit == "wall_time_limit_seconds" else limit] = value or None
    for name in ("temperature", "top_p", "seed", "max_tokens"):
        if number(value := inside(model, "model_kwargs", name)) is not None:
            treatment[name] = value
    if isinstance(effort := inside(model, "model_kwargs", "reasoning_effort"), str):
        treatment["reasoning_effort"] = effort
    if number(timeout := inside(info, "config", "environment", "timeout")) is not None:
        treatment["execution_timeout_s"] = timeout
    return treatment


def _command(call: object) -> tuple[str, str] | None:
    """Return id and text of a command that the harness noted, or that a function call has."""
    command, call_id = inside(call, "command"), inside(call, "tool_call_id")
    if command is None:
        arguments, call_id = inside(call, "function", "arguments"), inside(call, "id")
        command = inside(decoded(arguments, Any) if isinstance(arguments, str) else arguments, "command")
    return (string(call_id) or "", command) if isinstance(command, str) else None


def _output(message: Message) -> tuple[str, int | None]:
    """Return a command's output and exit code: as noted by the harness, else as shown to the model."""
    extra, text = message.extra, message.text
    code = whole(extra.returncode) if extra is not None else None
    stated = _RETURN_CODE.search(text[:RESULT_CHARS_KEPT])
    if code is None and stated is not None:
        code = int(stated[1])
    if extra is not None and isinstance(extra.raw_output, str):
        return extra.raw_output, code
    begin = text.find(_OUTPUT)
    if stated is not None and begin >= 0:
        text = text[begin + len(_OUTPUT) :].strip("\n").removesuffix("</output>").removesuffix("\n")
    elif stated is not None and "<output_head>" in text:
        text = text[stated.end() :].strip()
    return text, code
