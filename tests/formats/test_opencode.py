"""The traps of OpenCode exports, one test each (design/formats.md#opencode)."""

from __future__ import annotations

from typing import Any

from agentsignals.formats.opencode import FORMAT
from agentsignals.model import Session
from tests.formats.reading import read_one

START = 1_775_000_000_000
ZERO = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def text(words: str, **facts: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **facts}


def user(*parts: dict[str, Any], at: int = 0, **facts: Any) -> dict[str, Any]:
    info = {"role": "user", "id": "msg_u", "time": {"created": START + at}, "agent": "build", **facts}
    return {"info": info, "parts": list(parts)}


def agent(*parts: dict[str, Any], at: int = 10, **facts: Any) -> dict[str, Any]:
    time = {"created": START + at, "completed": START + at + 5}
    info = {"role": "assistant", "id": f"msg_{at}", "time": time, "modelID": "m-1", "cost": 0, "tokens": ZERO, **facts}
    return {"info": info, "parts": [{"type": "step-start"}, *parts]}


def read(*messages: Any, **info: Any) -> Session:
    about = {"id": "ses_1", "directory": "/w", "version": "1.2.20", **info}
    return read_one(FORMAT, {"info": about, "messages": messages})
