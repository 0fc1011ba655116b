"""What an agent without function calling does: its message holds it as XML (OpenHands) or JSON (Terminus)."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.records import UNREADABLE

_FUNCTION, _END_FUNCTION = "<function=", "</function>"
_PARAMETER, _END_PARAMETER = "<parameter=", "</parameter>"
KEYSTROKES = "keystrokes"
"""The name given to what Terminus types into its terminal: it has no name there."""


class Actions(Struct, gc=False):
    """A message: what it says, and the calls in it, each a name and its arguments as JSON."""

    text: str
    calls: list[tuple[str, str]]


class _Batch(Struct, gc=False):
    """What Terminus answers with."""

    commands: list[Raw]
    analysis: str | None = None
    plan: str | None = None
    explanation: str | None = None


class _Command(Struct, gc=False):
    keystrokes: str


_batch = msgspec.json.Decoder(_Batch).decode
_command = msgspec.json.Decoder(_Command).decode


def read(message: str) -> Actions:
    """The message taken apart; all of it is text where it holds no action."""
    if _FUNCTION in message:
        return _functions(message)
    if '"commands"' in message:
        return _commands(message)
    return Actions(message, [])


def _commands(message: str) -> Actions:
    """Text before or behind the JSON is tolerated by Terminus, and here."""
    start, end = message.find("{"), message.rfind("}")
    try:
        batch = _batch(message[start : end + 1])
    except UNREADABLE:
        return Actions(message, [])
    calls = [(KEYSTROKES, bytes(raw).decode("utf-8", "replace")) for raw in batch.commands if _is_command(raw)]
    thoughts = [t for t in (batch.analysis, batch.plan, batch.explanation) if t]
    return Actions("\n\n".join(thoughts), calls)


def _is_command(raw: Raw) -> bool:
    try:
        _command(raw)
    except UNREADABLE:
        return False
    return True


def _functions(message: str) -> Actions:
    prose, calls = [], []
    at = 0
    while (start := message.find(_FUNCTION, at)) >= 0:
        prose.append(message[at:start])
        name_end = message.find(">", start)
        if name_end < 0:
            at = start
            break
        end = message.find(_END_FUNCTION, name_end)
        body = message[name_end + 1 : end if end >= 0 else len(message)]
        calls.append((message[start + len(_FUNCTION) : name_end].strip(), _parameters(body)))
        at = end + len(_END_FUNCTION) if end >= 0 else len(message)
    prose.append(message[at:])
    return Actions("\n".join(t.strip() for t in prose if t.strip()), calls)


def _parameters(body: str) -> str:
    """The parameters as JSON. A value may itself hold tags: it lasts until the next parameter begins."""
    parameters: dict[str, str] = {}
    for part in body.split(_PARAMETER)[1:]:
        name, opened, value = part.partition(">")
        if opened:
            end = value.rfind(_END_PARAMETER)
            parameters[name.strip()] = (value[:end] if end >= 0 else value).removeprefix("\n")
    return msgspec.json.encode(parameters).decode()
