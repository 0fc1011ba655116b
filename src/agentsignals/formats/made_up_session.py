"""Sessions that nobody had, from a list of parts: what signals are held against where the truth is planted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.tools import EDIT, OTHER, READ, SHELL, Tool
from agentsignals.model import Session

_START, _SECOND = 1_767_225_600_000_000, 1_000_000


def session_of(parts: Sequence[Sequence[str]]) -> Session:
    """The session of these parts (a kind, then texts), each a second behind the end of the one before; `pause` is one
    of so many seconds."""
    session = Session(session_id="planted", context="product", format="planted", agent="planted", artifact_id="planted")
    builder = SessionBuilder(session)
    at = _START
    for builder.line, (kind, *texts) in enumerate(parts, 1):
        if kind == "pause":
            at += int(texts[0]) * _SECOND
        else:
            _PARTS[kind](builder, at, *texts)
            at += int(texts[2]) * _SECOND if len(texts) > 2 else 0
        at += _SECOND
    return builder.finish()


def _person(builder: SessionBuilder, at: int, text: str) -> None:
    builder.turn("prompt", text, at)


def _agent(builder: SessionBuilder, at: int, text: str) -> None:
    builder.event("text", text, at, builder.step(None, None, at))


def _thinking(builder: SessionBuilder, at: int, text: str) -> None:
    builder.event("thinking", text, at, builder.step(None, None, at))


def _interrupt(builder: SessionBuilder, at: int) -> None:
    builder.event("interrupt", "", at)


def _call(  # noqa: PLR0913  (a part says what was called, about what, what came, and how long after)
    tool: Tool, argument: str, builder: SessionBuilder, at: int, about: str, result: str = "ok", seconds: str = "0.5"
) -> None:
    call_id = f"c{builder.line}"
    arguments = msgspec.json.encode({argument: about}).decode()
    call = builder.call(call_id, tool.class_, arguments, tool, at)
    builder.result(call_id, result, "ok", at + int(float(seconds) * _SECOND))
    if tool is EDIT:
        builder.edit(call, about, "modify", [])


_PARTS: dict[str, Any] = {
    "person": _person,
    "agent": _agent,
    "thinking": _thinking,
    "interrupt": _interrupt,
    "edit": partial(_call, EDIT, "path"),
    "read": partial(_call, READ, "path"),
    "shell": partial(_call, SHELL, "command"),
    "poll": partial(_call, OTHER.to("poll"), "id"),
}
