"""The traps of Grok Build's sessions that no sample shows (design/formats.md#grok-build)."""

from __future__ import annotations

import json
from typing import Any

from agentsignals.formats import by_name, identify, unread_file
from agentsignals.formats.records import HEAD_BYTES, Head
from tests.formats.reading import claimed, read_one

ID = "01a20945-0000-7000-8000-000000000001"
START_MS = 1_795_451_853_000


class Log:
    """The updates of a session, each a second after the one before it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def update(self, kind_: str, began: int | None = None, **facts: Any) -> None:
        n = len(self.rows)
        meta = {"eventId": f"{ID}-{n}", "agentTimestampMs": START_MS + 1000 * n}
        meta |= {"streamStartMs": START_MS + began} if began is not None else {}
        params = {"sessionId": ID, "update": {"sessionUpdate": kind_, **facts}, "_meta": meta}
        self.rows.append({"timestamp": START_MS // 1000 + n, "method": "session/update", "params": params})

    def asks(self, words: str, prompt: int = 0) -> None:
        beside = {"modelId": "toy", "promptIndex": prompt}
        self.update("user_message_chunk", content={"type": "text", "text": words}, _meta=beside)

    def says(self, words: str, began: int, kind: str = "agent_message_chunk") -> None:
        self.update(kind, began, content={"type": "text", "text": words})

    def call(self, name: str, began: int, call_id: str = "c1", **given: Any) -> None:
        tool = {"x.ai/tool": {"version": 1, "name": name, "kind": "execute"}}
        self.update("tool_call", began, toolCallId=call_id, title=f"Run {name}", rawInput=given, _meta=tool)

    def result(self, words: str, status: str | None = "completed", call_id: str = "c1", **output: Any) -> None:
        content = [{"type": "content", "content": {"type": "text", "text": words}}]
        facts = {"status": status} if status else {}
        self.update("tool_call_update", toolCallId=call_id, content=content, rawOutput=output, **facts)

    def completed(self, prompt: int, output: int, cached: int, **more: Any) -> None:
        used = {"inputTokens": prompt, "outputTokens": output, "cachedReadTokens": cached, "reasoningTokens": 8}
        self.update("turn_completed", usage={**used, "modelUsage": {"toy": used}}, stop_reason="end_turn", **more)

    def data(self) -> bytes:
        return "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in self.rows).encode()


def summary(**more: Any) -> bytes:
    head = {"info": {"id": ID, "cwd": "/work/shop"}, "current_model_id": "toy", "chat_format_version": 1}
    return json.dumps({**head, "head_branch": "main", "generated_title": "The cart", **more}).encode()


def keys(data: bytes) -> list[str] | None:
    found = claimed(data)
    return found and found[1]


def test_what_belongs_together() -> None:
    log, long = Log(), Log()
    log.asks("go")
    long.asks("x" * 2 * HEAD_BYTES)
    assert [keys(data) for data in (log.data(), long.data(), summary())] == [[f"session:{ID}"]] * 3
    others = {"method": "session/update", "params": {"sessionId": ID, "update": {"sessionUpdate": "plan"}}}
    assert keys(json.dumps(others).encode()) is None
    assert keys(b'{"info": {"id": "a"}, "version": 1}') is None


def test_what_the_model_is_sent_is_named() -> None:
    rows = [{"type": "system", "content": "You are"}, {"type": "user", "content": [], "prompt_index": 0}]
    head = Head("".join(f"{json.dumps(row)}\n" for row in rows).encode(), "chat_history.jsonl", complete=True)
    named = unread_file(head)
    assert identify(head) is None
    assert named is not None
    assert (named.name, named.reason) == ("grok-build", "not_sessions")


def test_the_state_of_the_screen_is_no_unknown_event() -> None:
    log = Log()
    log.asks("go")
    for kind in ("plan", "background_tasks", "available_commands_update", "current_mode_update", "brand_new"):
        log.update(kind)
    made = read_one(by_name("grok-build"), log.data())
    assert [e.text for e in made.events if e.kind == "unknown"] == ["brand_new"]
