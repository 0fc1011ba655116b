"""One mini-SWE-agent attempt in the making: messages in, steps and shell commands with their results out."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.figures import number, whole
from agentsignals.formats.mini_swe_agent.records import Extra, Message, count_usage
from agentsignals.formats.tools import SHELL
from agentsignals.model import CallStatus, Step, ToolCall
from agentsignals.model.times import logged_ms

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
