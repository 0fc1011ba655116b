"""Codex records made up for tests: a payload, in its envelope, with the fields a test is about."""

from __future__ import annotations

import json
from typing import Any

from agentsignals.formats import Input
from agentsignals.formats.codex import FORMAT
from agentsignals.model import Session
from tests.formats import reading

ROW = dict[str, Any]
ID = "019e0000-0000-7000-8000-000000000001"
OTHER = "019d0000-0000-7000-8000-000000000002"
OLD_TURN, OWN_TURN = "019d0000-1000-7000-8000-0000000000a1", "019e0000-1000-7000-8000-0000000000b1"


def row(type_: str, second: float = 0, **payload: object) -> ROW:
    return {
        "timestamp": f"2026-03-01T10:{int(second) // 60:02}:{second % 60:06.3f}Z",
        "type": type_,
        "payload": payload,
    }


def item(type_: str, **payload: object) -> ROW:
    return row("response_item", type=type_, **payload)


def event(type_: str, second: float = 0, **payload: object) -> ROW:
    return row("event_msg", second, type=type_, **payload)


def meta(id_: str = ID, **more: object) -> ROW:
    return row("session_meta", id=id_, cwd="/w", cli_version="0.142.0", source="cli", **more)


def context(model: str = "gpt-5.5", **more: object) -> ROW:
    return row("turn_context", model=model, cwd="/w", **more)


def prompt(text: str, second: float = 0) -> ROW:
    return event("user_message", second, message=text, images=[], local_images=[])


def says(text: str = "ok") -> ROW:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}], phase="commentary")


def call(call_id: str, name: str = "exec_command", **arguments: object) -> ROW:
    return item("function_call", call_id=call_id, name=name, arguments=json.dumps(arguments))


def output(call_id: str, text: object) -> ROW:
    return item("function_call_output", call_id=call_id, output=text)


def tokens(total: tuple[int, int, int, int], last: tuple[int, int, int, int]) -> ROW:
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
    info = {
        "total_token_usage": dict(zip(names, total, strict=True)),
        "last_token_usage": dict(zip(names, last, strict=True)),
    }
    return event("token_count", info=info)


def given(name: str, rows: list[ROW]) -> Input:
    return reading.given(reading.lines(*rows), "codex", name)


def one(*rows: ROW) -> Session:
    (session,) = FORMAT.read([given("a", list(rows))]).sessions
    return session


def texts(session: Session, kind: str) -> list[str | None]:
    return [e.text for e in session.events if e.kind == kind]
