"""Pi files made up entry by entry."""

from __future__ import annotations

from typing import Any

from agentsignals.formats import Input
from agentsignals.formats.pi import FORMAT
from agentsignals.model import Session
from tests.formats.reading import given as file
from tests.formats.reading import lines

ROW = dict[str, Any]
BOT: ROW = {"api": "x", "provider": "anthropic", "model": "claude-opus-5", "stopReason": "stop"}


def at(second: float) -> str:
    return f"2026-05-01T10:{int(second) // 60:02}:{second % 60:06.3f}Z"


def header(**more: object) -> ROW:
    return {"type": "session", "version": 3, "id": "s1", "timestamp": at(0), "cwd": "/w", **more}


def entry(id_: str, parent: str | None, second: float, type_: str = "message", **more: object) -> ROW:
    return {"type": type_, "id": id_, "parentId": parent, "timestamp": at(second), **more}


def user(text: str) -> ROW:
    return {"message": {"role": "user", "content": [{"type": "text", "text": text}]}}


def bot(*blocks: ROW, **more: object) -> ROW:
    return {"message": {"role": "assistant", "content": list(blocks), **BOT, **more}}


def says(text: str, **more: object) -> ROW:
    return bot({"type": "text", "text": text}, **more)


def call(call_id: str, name: str, **arguments: object) -> ROW:
    return bot({"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}, stopReason="toolUse")


def result(call_id: str, name: str, text: str, error: bool = False, **more: object) -> ROW:
    content = [{"type": "text", "text": text}]
    return {
        "message": {
            "role": "toolResult",
            "toolCallId": call_id,
            "toolName": name,
            "content": content,
            "isError": error,
            **more,
        }
    }


def chain(*rows: tuple[float, str, ROW]) -> list[ROW]:
    """Entries one after the other: (second, type, fields)."""
    made: list[ROW] = []
    for n, (second, type_, fields) in enumerate(rows):
        made.append(entry(f"e{n}", f"e{n - 1}" if n else None, second, type_, **fields))
    return made


def given(name: str, rows: list[ROW]) -> Input:
    return file(lines(*rows), "pi", name)


def read(*files: list[ROW]) -> list[Session]:
    return FORMAT.read([given(f"f{n}", rows) for n, rows in enumerate(files)]).sessions


def one(*rows: ROW) -> Session:
    (session,) = read([header(), *rows])
    return session


def talk(*fields: ROW) -> Session:
    return one(*chain(*[(n + 1.0, "message", f) for n, f in enumerate(fields)]))
