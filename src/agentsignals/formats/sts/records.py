"""The records of an STS conversation as typed structs (design/formats.md#small-formats): only what is read."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct


class Part(Struct, gc=False):
    type: str | None = None
    text: str | None = None


PARTS = frozenset(("text", "image", "image_url", "input_audio", "input_video", "file"))
"""The kinds of parts that there are; the attached ones have no words."""


class Function(Struct, gc=False):
    name: str | None = None
    arguments: Raw = Raw()
    """JSON as a text; or, from a sloppy writer, JSON itself."""


class Call(Struct, gc=False):
    id: str | None = None
    function: Function | None = None
    agentsignals: Raw = Raw()
    """What our own export adds (`model.carried`), here and on messages and headers."""


class Used(Struct, gc=False):
    """What one model call used: `prompt_n` were read anew, `cache_n` were not, `predicted_n` written."""

    prompt_n: float | None = None
    predicted_n: float | None = None
    cache_n: float | None = None


class Ran(Struct, gc=False):
    success: bool | None = None


class RunTurn(Struct, gc=False):
    llm: Used | None = None
    toolCalls: list[Ran] | None = None


class Run(Struct, gc=False):
    perTurn: list[RunTurn] | None = None


class Timings(Used, gc=False):
    """Of the last model call of a run; `agentic` tells of all. The same stands at every answer of the run."""

    agentic: Run | None = None


class Message(Struct, gc=False, kw_only=True):
    role: str
    content: str | list[Part] | None = None
    id: str | None = None
    parent: str | None = None
    type: str | None = None
    timestamp: Any = None
    model: str | None = None
    reasoningContent: str | None = None
    toolCalls: list[Call] | None = None
    toolCallId: str | None = None
    timings: Timings | None = None
    agentsignals: Raw = Raw()

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(p.text for p in self.content if p.text)
        return self.content or ""


class Line(Struct, gc=False, kw_only=True):
    """A header or a message."""

    type: str | None = None
    message: Message | None = None
    harness: str | None = None
    id: str | None = None
    name: str | None = None
    currNode: str | None = None
    cwd: str | None = None
    agentsignals: Raw = Raw()


DECODER = msgspec.json.Decoder(Line)
decode = DECODER.decode
