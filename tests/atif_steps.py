"""ATIF trajectories of a few steps, and what they become."""

from __future__ import annotations

from typing import Any

from agentsignals.formats import Reading
from agentsignals.formats.atif import FORMAT
from agentsignals.model import Session
from tests.formats.reading import given


def agent(message: Any = "", **facts: Any) -> dict[str, Any]:
    return {"source": "agent", "message": message, **facts}


def user(message: Any, **facts: Any) -> dict[str, Any]:
    return {"source": "user", "message": message, **facts}


def call(call_id: Any, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": name, "arguments": arguments}


def seen(*results: tuple[Any, Any]) -> dict[str, Any]:
    return {"results": [{"source_call_id": i, "content": text} for i, text in results]}


def used(prompt: Any, completion: Any = 1, cached: Any = None, **extra: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached, "extra": extra or None}


def document(*steps: Any, session_id: Any = "s-1", **facts: Any) -> dict[str, Any]:
    head = {"schema_version": "ATIF-v1.7", "session_id": session_id, "agent": {"name": "x", "version": "1"}}
    return {**head, "steps": list(steps), **facts}


def reading(files: dict[str, Any]) -> Reading:
    return FORMAT.read([given(content, "atif", path) for path, content in files.items()])


def run(*steps: Any, **facts: Any) -> Session:
    (session,) = reading({"/r/t.json": document(*steps, **facts)}).sessions
    return session


def told(session: Session) -> list[tuple[str, str | None]]:
    return [(e.kind, e.text) for e in session.events]
