"""What a mini-SWE-agent trajectory holds, of version 1 (text only) and 2 (function calls, usage, times)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, number, whole
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.documents import each, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.instances import canonical, of_submission, repo_of, root_of, run_of, run_of_model, stem_of
from agentsignals.formats.mini_swe_agent import PROFILE
from agentsignals.formats.profile import SHELL
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import Attempt, CallStatus, Ending, Session, Statement, Step, ToolCall, logged_ms


class Extra(Struct, gc=False, kw_only=True):
    """What the harness notes on a message; version 2 only."""

    actions: object = None
    cost: object = None
    timestamp: object = None
    returncode: object = None
    raw_output: object = None
    exception_info: object = None
    response: Raw = Raw()
    exit_status: object = None
    submission: object = None
    interrupt_type: object = None


class Message(Struct, kw_only=True):
    """One message. A model of the Responses API leaves its answer as it came: `object` and `output`, without a role."""

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
        """Who speaks: `system`, `user`, `assistant`, `tool`, `exit`."""
        if self.role:
            return self.role
        if self.type == "function_call_output":
            return "tool"
        return "assistant" if self.shape == "response" else "untold"

    @property
    def text(self) -> str:
        """Its words."""
        if isinstance(self.content, str):
            return self.content
        texts: list[str] = []
        _texts(self.content if self.content is not None else self.output, texts, 0)
        return "\n".join(texts)


class ModelStats(Struct, gc=False):
    instance_cost: object = None
    api_calls: object = None


class Info(Struct, kw_only=True):
    """How the attempt was configured and how it ended."""

    exit_status: object = None
    submission: object = None
    result: object = None
    mini_version: object = None
    config: object = None
    model_stats: ModelStats | None = None


class Document(Struct):
    messages: list[Raw]
    info: Info | None = None
    instance_id: object = None


_message = msgspec.json.Decoder(Message).decode
_document = msgspec.json.Decoder(Document).decode
_list = msgspec.json.Decoder(list[Raw]).decode
_any = msgspec.json.Decoder().decode
_DEEPEST = 4


def decode(data: memoryview | bytes) -> Document:
    """A trajectory in either shape."""
    if bytes(data[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        return Document(_list(data))
    return _document(data)


def decode_message(data: memoryview | bytes) -> Message:
    return _message(data)


def count_usage(step: Step, extra: Extra | None) -> None:
    """Tokens and cost of a model call. The prompt's tokens hold the cached ones, and those written to the cache."""
    if extra is None:
        return
    cost = amount(extra.cost)
    if cost:  # 0 is what a model without a price costs
        step.cost_usd, step.cost_source = cost, "recorded"
    try:
        response = _any(extra.response) if extra.response else None
    except UNREADABLE:
        return
    usage = response.get("usage") if isinstance(response, dict) else None
    if not isinstance(usage, dict):
        return
    cached = _first(_inner(usage, "prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    written = _first(usage, "cache_creation_input_tokens")
    prompt = _first(usage, "prompt_tokens", "input_tokens")
    if prompt is not None:
        step.input_tokens = max(prompt - (cached or 0) - (written or 0), 0)
    step.cache_read_tokens, step.cache_write_tokens = cached, written
    step.output_tokens = _first(usage, "completion_tokens", "output_tokens")
    step.reasoning_tokens = _first(
        _inner(usage, "completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
    )


def _inner(of: dict[str, Any], *names: str) -> dict[str, Any]:
    return next((of[n] for n in names if isinstance(of.get(n), dict)), {})


def _first(of: dict[str, Any], *names: str) -> int | None:
    return next((value for n in names if (value := count(of.get(n))) is not None), None)


def _texts(value: object, texts: list[str], depth: int) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list) and depth < _DEEPEST:
        for part in value:
            _texts(part, texts, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        _texts(value.get("text", value.get("content")), texts, depth + 1)


# One mini-SWE-agent attempt in the making: messages in, steps and shell commands with their results out.

_FINISHED = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
"""What a command prints first to submit the rest of its output."""
_FENCE_OPENS = re.compile(r"```(?:mswea_bash_command|bash)[ \t]{0,20}\r?\n")
_FENCE_CLOSES = "\n```"
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d{1,9})\s*</returncode>")
_OUTPUT = "<output>"
_LONG_OUTPUT = "<output_head>"
_REJECTED = "Command not executed. The user rejected"
_TIMED_OUT = "timed out and has been killed"
_NOT_RUN = "action was not executed"


class Conversation:
    """Reads the messages of one attempt in order."""

    def __init__(self, builder: SessionBuilder, model: str | None) -> None:
        self.builder = builder
        self.model = model
        self.handed_in = ""
        """What the command printed that declared the task done."""
        self.ended: Extra | None = None
        """What the harness noted when it ended the attempt."""
        self._open: list[ToolCall] = []

    def take(self, message: Message) -> None:
        """One message."""
        speaker, at = message.speaker, _time(message.extra)
        if speaker == "assistant":
            self._answer(message, at)
        elif speaker == "system":
            self._note(message.text, at)
        elif speaker == "exit":
            self.ended = message.extra
            self._observe(message, at)
        elif speaker == "user" and not self.builder.session.turns:
            self.builder.turn("prompt", message.text.strip(), at, self.model)
        elif speaker in ("user", "tool"):
            self._observe(message, at)
        else:
            self.builder.event("unknown", f"message of {speaker}"[:80], at)

    def _note(self, text: str, at: int | None) -> None:
        self.builder.event("meta", text[:RESULT_CHARS_KEPT], at, n_chars=len(text))

    # -- the model -----------------------------------------------------------------------------------------------

    def _answer(self, message: Message, at: int | None) -> None:
        builder = self.builder
        step = builder.step(None, self.model, at)
        count_usage(step, message.extra)
        self._open = []
        if isinstance(message.reasoning_content, str) and message.reasoning_content:
            builder.event("thinking", message.reasoning_content, at, step)
        commands = _noted(message.extra) or _called(message.tool_calls)
        noted = message.extra.actions if message.extra is not None else None
        for calls, read in ((noted, _noted(message.extra)), (message.tool_calls, _called(message.tool_calls))):
            for _ in range((len(calls) if isinstance(calls, list) else 0) - len(read)):
                builder.event("unknown", "call without a command", at, step)
        text = message.text
        if not commands:
            fenced = _fenced(text)
            # More than one is an error of form: none of them ran.
            commands = [("", fenced[0].strip())] if len(fenced) == 1 else []
        if len(commands) == 1:
            text = text.replace(commands[0][1], "").replace("```mswea_bash_command\n\n```", "")
            text = text.replace("```bash\n\n```", "")
        if text.strip():
            builder.event("text", text.strip(), at, step)
        for n, (call_id, command) in enumerate(commands):
            self._open.append(self._call(call_id or f"message-{builder.line}.{n}", command, at, step))

    def _call(self, call_id: str, command: str, at: int | None, step: Step) -> ToolCall:
        arguments = msgspec.json.encode({"command": command})
        return self.builder.call(call_id, "bash", arguments, SHELL, at, step)

    # -- what came of it -----------------------------------------------------------------------------------------

    def _observe(self, message: Message, at: int | None) -> None:
        """The answer to a command; to a reply without one, the harness says what it should have been."""
        named = message.tool_call_id or message.call_id
        call = next((c for c in self._open if c.call_id == named), None) if named else None
        if call is None and self._open and not (named and message.speaker == "tool"):
            call = self._open[0]
        if call is None:
            if message.text:  # what ends an attempt at its limits has no words
                self._note(message.text, at)
            return
        self._open.remove(call)
        text, code = _output(message)
        status, error = _outcome(message, text, code, call)
        if any(mark in (call.command or "") for mark in _FINISHED):
            self.handed_in = text
        self.builder.result(call.call_id, text, status, at, exit_code=code, error=error)


def _fenced(text: str) -> list[str]:
    """What stands in the text's fences for commands, those that are closed."""
    commands: list[str] = []
    opens = _FENCE_OPENS.search(text)
    while opens is not None:
        closes = text.find(_FENCE_CLOSES, opens.end() - 1)
        if closes < 0:
            break
        commands.append(text[opens.end() : closes])
        opens = _FENCE_OPENS.search(text, closes + len(_FENCE_CLOSES))
    return commands


def _noted(extra: Extra | None) -> list[tuple[str, str]]:
    """The commands as the harness took them from the reply: id and text."""
    actions = extra.actions if extra is not None else None
    objects = [a for a in actions if isinstance(a, dict)] if isinstance(actions, list) else []
    return [(_text(a.get("tool_call_id")), c) for a in objects if isinstance(c := a.get("command"), str)]


def _called(calls: object) -> list[tuple[str, str]]:
    """The commands of function calls, where the harness noted none."""
    commands = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = _object(function.get("arguments")) if isinstance(function, dict) else {}
        if isinstance(arguments.get("command"), str):
            commands.append((_text(call.get("id")), arguments["command"]))
    return commands


def _object(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _output(message: Message) -> tuple[str, int | None]:
    """What a command printed and its exit code: as noted, else as the model was told."""
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
    elif stated is not None and _LONG_OUTPUT in text:
        text = text[stated.end() :].strip()
    return text, code


def _outcome(message: Message, text: str, code: int | None, call: ToolCall) -> tuple[CallStatus, str | None]:
    exception = _text(message.extra.exception_info) if message.extra is not None else ""
    if message.text.startswith(_REJECTED):
        return "rejected", None
    if exception == _NOT_RUN:
        return "cancelled", None
    if _TIMED_OUT in message.text[:RESULT_CHARS_KEPT] or "timed out" in exception:
        return "error", "timeout"
    if exception and message.speaker != "exit":
        return "error", "other"
    return "ok", None


def _time(extra: Extra | None) -> int | None:
    """Seconds since 1970, as Python's clock gives them, in microseconds."""
    seconds = number(extra.timestamp) if extra is not None else None
    return None if seconds is None else logged_ms(seconds * 1000)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# mini-SWE-agent trajectories, each an attempt with its session.

_ENDINGS: dict[str, Ending] = {
    "LimitsExceeded": "budget",
    "TimeExceeded": "time",
    "ContextWindowExceededError": "budget",
    "FormatError": "finished",
    "RepeatedFormatError": "finished",
}
_LIMITS = ("step_limit", "cost_limit", "wall_time_limit_seconds")
"""Of these 0 means none."""
_BROKEN_OFF = ("Error", "Exception", "Timeout", "Interrupt", "Interruption")
"""How the names of exceptions end that are the provider's, the environment's, or of who stopped it."""
_OF_MODEL = ("temperature", "top_p", "seed", "max_tokens")


def read(inputs: list[Input]) -> Reading:
    """Each file is an attempt of its own."""
    reading = Reading()
    for source in inputs:
        document = read_document(source, decode, "messages")
        if document is None:
            continue
        messages = each(document.messages, decode_message, source.artifact)
        tally(source.artifact, "message", [None if m is None else m.speaker for m in messages])
        session, part = _attempt(source, document, messages)
        reading.sessions.append(session)
        reading.attempts.append(part)
    return reading


def _attempt(source: Input, document: Document, messages: list[Message | None]) -> tuple[Session, Attempt]:
    path, info = source.artifact.path, document.info or Info()
    set_to, observed = knobs(info)
    model = set_to.get("model_id")
    instance = _text_files(document.instance_id) or stem_of(path)
    session = Session(
        session_id="",
        context="eval",
        format="mini-swe-agent",
        agent="mini-swe-agent",
        artifact_id=source.artifact.artifact_id,
    )
    session.agent_version, session.repo = _text_files(info.mini_version) or None, repo_of(instance)
    builder = SessionBuilder(session, PROFILE)
    builder.where(observed)
    conversation = Conversation(builder, model if isinstance(model, str) else None)
    for n, message in enumerate(messages, 1):
        builder.line = n
        if message is not None:
            conversation.take(message)
    builder.finish()
    goes_by = _name(path, model)
    part = Attempt(
        root=root_of(path),
        task_id=canonical(instance),
        run_id=(run_of(path) or "").rpartition("/")[0] or None,
        goes_by=goes_by,
        session_artifact=session.artifact_id,
        knobs=set_to,
        started_at=session.started_at,
        ended_at=session.ended_at,
    )
    _end(part, info, conversation, max(len(messages), 1))
    return session, part


def knobs(info: Info) -> tuple[dict[str, Any], str | None]:
    """The treatment as configured, and the working folder. A limit of 0 is none (None)."""
    config = info.config if isinstance(info.config, dict) else {}
    agent, model, environment = (_inner_files(config, name) for name in ("agent", "model", "environment"))
    treatment: dict[str, Any] = {"agent_type": "mini-swe-agent"}
    name = model.get("model_name")
    if isinstance(name, str) and name:
        treatment["model_id"] = name
    for limit in _LIMITS:
        if number(agent.get(limit)) is not None:
            treatment["timeout_s" if limit == "wall_time_limit_seconds" else limit] = agent[limit] or None
    kwargs = _inner_files(model, "model_kwargs")
    treatment.update({k: kwargs[k] for k in _OF_MODEL if number(kwargs.get(k)) is not None})
    if isinstance(kwargs.get("reasoning_effort"), str):
        treatment["reasoning_effort"] = kwargs["reasoning_effort"]
    if number(environment.get("timeout")) is not None:
        treatment["execution_timeout_s"] = environment["timeout"]
    return treatment, _text_files(environment.get("cwd")) or None


def _name(path: str, model: object) -> str | None:
    """What an evaluation calls the trial: its folders are named for the model (`provider__name`), else for the run."""
    run = run_of(path)
    if run is None or of_submission(path) or not isinstance(model, str):
        return run
    return run_of_model(model, run.rpartition("/")[2])


def _end(part: Attempt, info: Info, conversation: Conversation, line: int) -> None:
    """How the attempt ended, what it handed in, and what it cost."""
    ended = conversation.ended
    artifact_id = part.session_artifact or ""
    status = _text_files(info.exit_status) or (_text_files(ended.exit_status) if ended is not None else "")
    handed_in = _text_files(info.submission) or _text_files(info.result)
    if not handed_in and ended is not None:
        handed_in = _text_files(ended.submission)
    if not handed_in and not status:
        handed_in = conversation.handed_in
    fields = ["exit_status", "timed_out"]
    part.exit_status = status or None
    part.ending = _ending(status) if status else None
    part.timed_out = status == "TimeExceeded" if status else None
    if looks_like_diff(handed_in):
        part.patch, part.patch_text_bytes = patched_files(handed_in), len(handed_in.encode("utf-8", "replace"))
    elif status and not handed_in.strip():
        part.patch, part.patch_text_bytes = [], 0
    text = f"exit status {status or 'unknown'}"
    if part.patch is not None:
        text, fields = f"{text}, submitted {', '.join(f.path for f in part.patch) or 'nothing'}", [*fields, "patch"]
    if status or part.patch is not None:
        part.statements.append(Statement(text=text, artifact_id=artifact_id, line=line, fields=fields))
    set_to = ", ".join(f"{k} {v}" for k, v in part.knobs.items())
    part.statements.append(
        Statement(
            text=f"configured: {set_to}", artifact_id=artifact_id, line=1, fields=[f"knobs.{k}" for k in part.knobs]
        )
    )
    cost = amount(info.model_stats.instance_cost) if info.model_stats is not None else None
    if cost:  # 0 is what a model without a price costs
        part.cost_usd = cost
        part.statements.append(
            Statement(text=f"model stats: cost_usd {cost}", artifact_id=artifact_id, line=line, fields=["cost_usd"])
        )


def _ending(status: str) -> Ending:
    """By the exit status: a limit's, or the name of the exception that ended it."""
    if status in _ENDINGS:
        return _ENDINGS[status]
    return "infrastructure" if status.endswith(_BROKEN_OFF) else "finished"


def _inner_files(of: dict[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def _text_files(value: object) -> str:
    return value if isinstance(value, str) else ""
