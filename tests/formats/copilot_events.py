"""Copilot CLI events made up for tests: an envelope and the fields a test is about."""

from __future__ import annotations

from typing import Any

from agentsignals.formats import Input
from agentsignals.formats.copilot_cli import FORMAT
from agentsignals.model import Session
from tests.formats import reading

ROW = dict[str, Any]
ID = "5b1e0000-0000-4000-8000-000000000001"


def event(type_: str, agent: str | None = None, **data: object) -> ROW:
    envelope = {"type": type_, "data": data, "timestamp": "2026-04-01T09:00:00.000Z", "parentId": None}
    return {**envelope, "agentId": agent} if agent else envelope


def start(**more: object) -> ROW:
    context = {"cwd": "/w", "branch": "tide", "repository": "ilo/ferry"}
    return event("session.start", sessionId=ID, copilotVersion="1.0.64", context=context, **more)


def user(text: str, **more: object) -> ROW:
    return event(
        "user.message", content=text, transformedContent=f"<now/>\n{text}\n<reminder/>", attachments=[], **more
    )


def request(call_id: str, name: str, **arguments: object) -> ROW:
    return {"toolCallId": call_id, "name": name, "arguments": arguments, "type": "function"}


def says(id_: str = "m", text: str = "", *requests: ROW, agent: str | None = None, **more: object) -> ROW:
    data = {
        "messageId": id_,
        "apiCallId": f"api-{id_}",
        "model": "opus",
        "content": text,
        "toolRequests": list(requests),
    }
    return event("assistant.message", agent, **{**data, **more})


def done(call_id: str, text: str = "", **more: object) -> ROW:
    result = {"content": text, "detailedContent": more.pop("detailed", text), "contents": more.pop("contents", None)}
    return event("tool.execution_complete", toolCallId=call_id, success=True, result=result, **more)


def failed(call_id: str, message: str, code: str) -> ROW:
    return event("tool.execution_complete", toolCallId=call_id, success=False, error={"message": message, "code": code})


def metrics(count: int, *usage: int) -> ROW:
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
    return {"requests": {"count": count, "cost": 3}, "usage": dict(zip(names, usage, strict=False))}


def shutdown(**models: ROW) -> ROW:
    return event("session.shutdown", shutdownType="routine", totalPremiumRequests=3, modelMetrics=models)


def given(name: str, rows: list[ROW]) -> Input:
    numbered = [{"id": f"e{n}", **r} for n, r in enumerate(rows)]
    return reading.given(reading.lines(*numbered), "copilot-cli", name)


def one(*rows: ROW) -> Session:
    (session,) = FORMAT.read([given("a", list(rows))]).sessions
    return session


def texts(session: Session, kind: str) -> list[str | None]:
    return [e.text for e in session.events if e.kind == kind]


def usage(session: Session) -> list[tuple[object, ...]]:
    return [
        (s.model, s.input_tokens, s.cache_read_tokens, s.cache_write_tokens, s.output_tokens, s.stop_reason)
        for s in session.steps
    ]
