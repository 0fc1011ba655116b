"""What a SWE-agent trajectory holds, decoded piece by piece: one step of an odd shape costs that step only."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats.records import UNREADABLE, Decode

T = TypeVar("T")


class Step(Struct, gc=False, kw_only=True):
    """One entry of the trajectory: a model call and what came of its action."""

    action: object = None
    observation: object = None
    response: object = None
    thought: object = None
    reasoning_content: object = None
    execution_time: object = None
    state: Raw = Raw()
    """An object; a JSON string in old files."""
    query: Raw = Raw()
    """The whole prompt again; called `messages` for a while."""
    messages: Raw = Raw()


class State(Struct, gc=False):
    """The environment after a step."""

    working_dir: object = None
    open_file: object = None


class Function(Struct, gc=False):
    name: object = None
    arguments: object = None


class Call(Struct, gc=False):
    id: object = None
    function: Function | None = None


PARTS = frozenset(("text", "image_url", "image", "tool_result"))
"""The kinds of blocks that there are; pictures have no words."""


class Message(Struct, kw_only=True):
    """One message of the history."""

    role: str = ""
    content: object = None
    message_type: object = None
    thought: object = None
    action: object = None
    is_demo: object = None
    tool_calls: list[Call] | None = None
    thinking_blocks: list[dict[str, Any]] | None = None

    @property
    def is_demonstration(self) -> bool:
        """It shows how another task was solved."""
        return bool(self.is_demo) or self.message_type == "demonstration"

    @property
    def type(self) -> str:
        """What it is, for counting."""
        if self.is_demonstration:
            return "demonstration"
        return self.message_type if isinstance(self.message_type, str) else self.role

    @property
    def kinds(self) -> list[str]:
        """The kinds of its blocks."""
        blocks = self.content if isinstance(self.content, list) else []
        return [as_text(b.get("type")) if isinstance(b, dict) else "" for b in blocks]


class ModelStats(Struct, gc=False):
    instance_cost: object = None
    tokens_sent: object = None
    tokens_received: object = None
    api_calls: object = None


class Info(Struct, gc=False):
    """How the attempt ended."""

    exit_status: object = None
    submission: object = None
    swe_agent_version: object = None
    best_attempt_idx: object = None
    model_stats: ModelStats | None = None


class Document(Struct, kw_only=True):
    """A trajectory file. `attempts` are those of a run that retries; what stands beside them repeats the best."""

    trajectory: list[Raw] | None = None
    history: list[Raw] | None = None
    attempts: list[Raw] | None = None
    info: Raw = Raw()
    replay_config: Raw = Raw()
    environment: object = None


class Attempted(Struct):
    """One attempt of a run that retries."""

    trajectory: list[Raw] = field(default_factory=list)
    history: list[Raw] = field(default_factory=list)
    info: Raw = Raw()


decode = msgspec.json.Decoder(Document).decode
decode_attempted = msgspec.json.Decoder(Attempted).decode
decode_step = msgspec.json.Decoder(Step).decode
decode_message = msgspec.json.Decoder(Message).decode
_decode_messages = msgspec.json.Decoder(list[Message]).decode
_decode_state = msgspec.json.Decoder(State).decode
_decode_info = msgspec.json.Decoder(Info).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_any = msgspec.json.Decoder().decode


def state_of(step: Step) -> State:
    """The state after a step; nothing is known when it can't be read."""
    return _state(step.state) or _state(_text(step.state).encode("utf-8", "replace")) or State()


def info_of(raw: Raw) -> Info:
    return _or_none(raw, _decode_info) or Info()


def prompt_of(step: Step) -> list[Message]:
    """The messages that a model call was given."""
    return _or_none(step.query or step.messages, _decode_messages) or []


def config_of(raw: Raw) -> dict[str, Any]:
    """The run's configuration: an object, or one as a JSON string."""
    config = _or_none(raw, _decode_any)
    if isinstance(config, str):
        config = _or_none(config.encode("utf-8", "replace"), _decode_any)
    return config if isinstance(config, dict) else {}


def text_of(content: object) -> str:
    """The words of a message: a string, or blocks of type `text`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (b.get("text") for b in content if isinstance(b, dict))
    return "\n".join(t for t in texts if isinstance(t, str))


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _state(raw: Raw | bytes) -> State | None:
    return _or_none(raw, _decode_state)


def _text(raw: Raw) -> str:
    return _or_none(raw, _decode_text) or ""


def _or_none(raw: Raw | bytes, decode: Decode[T]) -> T | None:
    if not raw:
        return None
    try:
        return decode(memoryview(raw))
    except UNREADABLE:
        return None
