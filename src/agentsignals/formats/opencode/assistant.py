"""The agent's messages in an OpenCode export: model calls, their tokens, and everything their parts say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.figures import amount
from agentsignals.formats.figures import count as count_of
from agentsignals.formats.one_document import as_text
from agentsignals.formats.opencode import UNNAMED
from agentsignals.formats.opencode.records import Message, MessageInfo, Part, Tokens, failure
from agentsignals.formats.opencode.tools import Runs, arguments
from agentsignals.model import EventKind, Step
from agentsignals.model.times import logged_ms

ABORTED = "MessageAbortedError"
REASONING_BESIDE_OUTPUT = (1, 4)
"""From this version on `output` leaves reasoning out: inside up to 1.2.26, beside from 1.4.3
(design/formats.md#token-usage)."""

_VERSION = re.compile(r"(\d+)\.(\d+)")
_UNCOUNTED = frozenset(("step-start", "step-finish", "snapshot", "file", "agent"))
"""Parts that leave no event; `step-finish` repeats the tokens and the cost of its message."""


class AgentSide:
    """Turns assistant messages into steps, calls and events. One message is one model call."""

    def __init__(self, builder: SessionBuilder, version: str | None) -> None:
        self.builder = builder
        self.reasoning_beside = _version(version) >= REASONING_BESIDE_OUTPUT
        self.runs = Runs(builder)
        self.just_compacted = False
        self.shell_by_person = False
        """The next message runs a command that the person typed."""
        self.trigger: str | None = None
        """What asked for the next compaction."""
        self._model: str | None = None
        self._place: tuple[str | None, str | None] = None, None

    def message(self, message: Message, at_record: Callable[[str | None], None] = lambda _: None) -> None:
        """`at_record` hears which message or part is read."""
        info = message.info
        at = logged_ms(info.time.created) if info.time is not None else None
        self._where(info)
        if self.shell_by_person:
            self._person_ran(message, at)
            return
        self.just_compacted = bytes(info.summary) == b"true" and not info.error
        step = self._step(info, at) if _is_model_call(message) else None
        if step is not None and not self.just_compacted:
            self._model_change(step)
        if self.just_compacted:
            self._compacted(at, step)
        for part in message.parts:
            if part is not None:
                at_record(part.id)
                self._part(part, at, step)
        at_record(info.id)
        self.runs.close()
        if info.error:
            self._error(info, at, step)
        elif step is not None and _is_unfinished(message):
            self.builder.event("meta", "not finished: no answer, no end and no reason is recorded", at, step)

    def _step(self, info: MessageInfo, at: int | None) -> Step:
        """Always a step of its own: ids may be REDACTED, and then many messages share one."""
        step = self.builder.step(None, info.modelID, at)
        step.message_id = None if info.id in UNNAMED else info.id
        step.stop_reason = info.finish
        if info.tokens is not None:
            count(step, info.tokens, self.reasoning_beside)
        if info.cost:  # 0 is what a subscription or a free model shows
            step.cost_usd, step.cost_source = amount(info.cost), "recorded"
        return step

    def _part(self, part: Part, at: int | None, step: Step | None) -> None:
        builder = self.builder
        began = logged_ms(part.time.start) if part.time is not None else None
        when = began if began is not None else at
        if part.type == "tool":
            self.runs.add(part, when, step)
        elif part.type == "text":
            machine = part.synthetic or part.ignored or self.just_compacted
            builder.event("meta" if machine else "text", part.text or "", when, step)
        elif part.type == "reasoning":
            builder.event("thinking", part.text or "", when, step)
        elif part.type == "patch":
            builder.event("meta", "\n".join(["files changed since the step began:", *(part.files or ())]), at, step)
        elif part.type == "retry":
            failed = logged_ms(part.time.created) if part.time is not None else None
            builder.event("api_error", ": ".join(filter(None, failure(part.error))), failed or at, step)
        elif part.type not in _UNCOUNTED:
            builder.event("unknown", part.type or "part without a type", when, step)

    def _error(self, info: MessageInfo, at: int | None, step: Step | None) -> None:
        ended = logged_ms(info.time.completed) if info.time is not None else None
        name, message = failure(info.error)
        kind: EventKind = "interrupt" if name == ABORTED else "api_error"
        self.builder.event(kind, ": ".join(filter(None, (name, message))), ended if ended is not None else at, step)

    def _compacted(self, at: int | None, step: Step | None) -> None:
        self.builder.event("compaction", json.dumps({"trigger": self.trigger} if self.trigger else {}), at, step)
        self.trigger = None

    def _person_ran(self, message: Message, at: int | None) -> None:
        """`!command`: the client logs it as a message of the agent with a tool run; the agent had no part in it."""
        self.shell_by_person = False
        for part in message.parts:
            if part is not None and part.state is not None:
                self.builder.event("user_shell", arguments(part.state).command or "", at)
                self.builder.event("command_output", as_text(part.state.output), at)

    def _model_change(self, step: Step) -> None:
        if step.model and step.model != self._model:
            if self._model is not None:
                self.builder.event("model_change", f"{self._model} -> {step.model}", step.timestamp, step)
            self._model = step.model

    def _where(self, info: MessageInfo) -> None:
        """The working tree's root (`/` when there is none), which paths are relative to, and the folder of the call."""
        place = info.path
        if place is None or (place.cwd, place.root) == self._place:
            return
        self._place = place.cwd, place.root
        if place.root and place.root != "/":
            self.builder.where(place.root)
        self.builder.where(place.cwd)


def count(step: Step, tokens: Tokens, reasoning_beside: bool) -> None:
    """The tokens of a message; all zero is what an aborted call shows, and says nothing.

    `output_tokens` is what was billed as output, reasoning included, as in every other format: where `output` leaves
    reasoning out, it is added. `total` tells, and the client's version where the total fits neither reading.
    """
    parts = tokens.input, tokens.output, tokens.reasoning
    fresh, output, reasoning = (count_of(v) for v in parts)
    read = count_of(tokens.cache.read) if tokens.cache is not None else None
    write = count_of(tokens.cache.write) if tokens.cache is not None else None
    if not any((fresh, output, reasoning, read, write)):
        return
    step.input_tokens, step.cache_read_tokens, step.cache_write_tokens = fresh, read, write
    step.output_tokens, step.reasoning_tokens = output, reasoning
    if output is None or not reasoning:
        return
    inside = (fresh or 0) + output + (read or 0) + (write or 0)
    total = count_of(tokens.total)
    beside = reasoning_beside if total not in (inside, inside + reasoning) else total != inside
    if beside or reasoning > output:
        step.output_tokens = output + reasoning


def _is_model_call(message: Message) -> bool:
    """False for the message the client writes itself to run a subagent for a command: a tool run and nothing else."""
    if message.info.error or not message.parts:
        return True
    if any(p is None or p.type != "tool" for p in message.parts):
        return True
    tokens = message.info.tokens
    return tokens is not None and any((tokens.input, tokens.output, tokens.reasoning))


def _is_unfinished(message: Message) -> bool:
    """A call that was being tried when the client ended: attempts that a provider turned away leave nothing else."""
    info = message.info
    ended = info.finish or (info.time is not None and info.time.completed)
    return not ended and all(p is None or p.type in _UNCOUNTED for p in message.parts)


def _version(text: str | None) -> tuple[int, int]:
    match = _VERSION.match(text or "")
    return (int(match.group(1)), int(match.group(2))) if match else REASONING_BESIDE_OUTPUT
