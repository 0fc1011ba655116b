"""Builds chats of VS Code and logs of changes to them, as the editor writes them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

START = 1_790_000_000_000
SESSION = "7c1e0a52-0000-4000-8000-000000000001"
MADE_BY_THE_EXTENSION = "5d2f1b63-0000-4000-8000-000000000001"


def terminal(command: str, code: int | None = None, output: str = "", **more: Any) -> dict[str, Any]:
    ended = {} if code is None else {"terminalCommandState": {"exitCode": code, "duration": 1200, "timestamp": START}}
    data = {"kind": "terminal", "commandLine": {"original": command}, **ended}
    return {"toolSpecificData": {**data, "terminalCommandOutput": {"text": output}, **more}}


def asks(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A call as the model made it."""
    return {"id": f"{call_id}__vscode-1790000000001", "name": name, "arguments": json.dumps(arguments)}


def model(response: str, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A call of the model. Its id is of what it said and asked for, so that samples stay as they are."""
    name = "-".join(["round", response[:12], *(call["id"][:4] for call in calls)])
    return {"response": response, "toolCalls": list(calls), "toolInputRetry": 0, "id": name, **more}


def tree(*texts: str) -> dict[str, Any]:
    """What a tool returned, as the extension renders it."""
    leaves = [{"type": 2, "priority": 9, "text": text, "lineBreakBefore": n > 0} for n, text in enumerate(texts)]
    node = {"type": 1, "ctor": 2, "ctorName": "x", "children": leaves, "props": {}, "references": []}
    return {"$mid": 20, "content": [{"$mid": 23, "value": {"node": node}}]}


def request(
    text: str,
    n: int = 1,
    response: list[dict[str, Any]] | None = None,
    rounds: list[dict[str, Any]] | None = None,
    results: dict[str, Any] | None = None,
    usage: int | None = None,
    metadata: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A prompt and its answer; one without rounds has no result."""
    at = START + n * 60_000
    made: dict[str, Any] = {
        "requestId": f"request_{n}",
        "timestamp": at,
        "message": {"text": text, "parts": [{"text": text, "kind": "text"}]},
        "variableData": {"variables": []},
        "agent": {"id": "github.copilot.editsAgent", "extensionVersion": "0.37.1"},
        "modelId": "copilot/claude-sonnet-4",
        "response": response or [],
        "modelState": {"value": 1, "completedAt": at + 9_000},
    }
    if rounds is not None:
        returned = {f"{call}__vscode-1790000000001": value for call, value in (results or {}).items()}
        facts = {"renderedUserMessage": [{"type": 1, "text": f"<context>\ninjected\n</context>\n{text}"}]}
        facts |= {"toolCallRounds": rounds, "toolCallResults": returned, "sessionId": MADE_BY_THE_EXTENSION}
        made["result"] = {
            "timings": {"firstProgress": 900, "totalElapsed": 9_000},
            "metadata": facts | (metadata or {}),
        }
        if usage is not None:
            made["result"]["usage"] = {"promptTokens": 9_000, "completionTokens": usage}
    return made | more


def chat(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The document."""
    person = {"requesterUsername": "ida-lovelace", "requesterAvatarIconUri": {"path": "/u/4711", "scheme": "https"}}
    head = {"version": 3, **person, "responderUsername": "GitHub Copilot", "initialLocation": "panel"}
    tail = {"sessionId": SESSION, "creationDate": START, "customTitle": "Tides and clocks", "inputState": {}}
    return {**head, "requests": list(requests), **tail, **more}


def snapshot(document: Any) -> dict[str, Any]:
    return {"kind": 0, "v": document}


def put(*path: str | int, v: Any) -> dict[str, Any]:
    return {"kind": 1, "k": list(path), "v": v}


def push(*path: str | int, v: list[Any] | None = None, i: int | None = None) -> dict[str, Any]:
    more = {**({} if v is None else {"v": v}), **({} if i is None else {"i": i})}
    return {"kind": 2, "k": list(path), **more}


def delete(*path: str | int) -> dict[str, Any]:
    return {"kind": 3, "k": list(path)}


def log(*entries: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def events(*rows: tuple[str, dict[str, Any]], cwd: str | None = "/home/ida/tides") -> bytes:
    """A transcript of the extension's agent, a second an event."""
    begun: dict[str, Any] = {
        "sessionId": MADE_BY_THE_EXTENSION,
        "version": 1,
        "producer": "copilot-agent",
        "copilotVersion": "0.47.0",
    }
    begun |= {"vscodeVersion": "1.119.0", **({"context": {"cwd": cwd}} if cwd else {})}
    lines = []
    for n, (kind, data) in enumerate((("session.start", begun), *rows)):
        at = {"id": f"e{n}", "timestamp": f"2026-09-21T14:13:{20 + n:02d}.000Z", "parentId": f"e{n - 1}" if n else None}
        lines.append(json.dumps({"type": kind, "data": data, **at}).encode() + b"\n")
    return b"".join(lines)


TRACES = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE spans (span_id TEXT PRIMARY KEY, trace_id TEXT NOT NULL, parent_span_id TEXT, name TEXT NOT NULL,
  start_time_ms INTEGER NOT NULL, end_time_ms INTEGER NOT NULL, status_code INTEGER NOT NULL DEFAULT 0,
  status_message TEXT, operation_name TEXT, provider_name TEXT, agent_name TEXT, conversation_id TEXT,
  request_model TEXT, response_model TEXT, input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER,
  reasoning_tokens INTEGER, tool_name TEXT, tool_call_id TEXT, tool_type TEXT, chat_session_id TEXT,
  turn_index INTEGER, ttft_ms REAL);
CREATE TABLE span_attributes (span_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT, PRIMARY KEY (span_id, key));
CREATE TABLE span_events (id INTEGER PRIMARY KEY AUTOINCREMENT, span_id TEXT NOT NULL, name TEXT NOT NULL,
  timestamp_ms INTEGER NOT NULL, attributes TEXT);
CREATE INDEX idx_spans_chat_session ON spans(chat_session_id);
"""


def span(name: str, operation: str, at_s: float, parent: str | None = None, **columns: Any) -> dict[str, Any]:
    """A span of a second. `facts` are its attributes, `prompt` what the person typed."""
    at = START + at_s * 1000
    times = {"start_time_ms": int(at), "end_time_ms": at + 1000.5}
    return {"span_id": name, "trace_id": "t", "parent_span_id": parent, "operation_name": operation, **times, **columns}


def agent_span(name: str, at_s: float, prompt: str, parent: str | None = None, **columns: Any) -> dict[str, Any]:
    """Of a request: it sums up the calls within it."""
    sums = {"input_tokens": 999_999, "output_tokens": 999_999, "agent_name": "GitHub Copilot Chat", "status_code": 1}
    return span(name, "invoke_agent", at_s, parent, prompt=prompt, **{**sums, "end_time_ms": START + 10**6, **columns})


def model_span(name: str, at_s: float, parent: str | None, *calls: dict[str, Any], **columns: Any) -> dict[str, Any]:
    """A call that is billed 40 fresh tokens, 60 cached and 7 of output."""
    used = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 7, "response_model": "gpt-4.1-2025-04-14"}
    parts = [{"type": "tool_call", **call} for call in calls] or [{"type": "text", "content": f"said by {name}"}]
    facts = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}
    facts |= {"gen_ai.response.finish_reasons": '["stop"]', **columns.pop("facts", {})}
    return span(name, "chat", at_s, parent, facts=facts, **{**used, **columns})


def tool_span(
    name: str, at_s: float, parent: str | None, call: dict[str, Any], result: str, **more: Any
) -> dict[str, Any]:
    facts = {"gen_ai.tool.call.arguments": call["arguments"], "gen_ai.tool.call.result": result}
    named = {"tool_name": call["name"], "tool_call_id": call["id"], "status_code": 1, "facts": facts}
    return span(name, "execute_tool", at_s, parent, **{**named, **more})


def traces(path: Path, *spans: dict[str, Any], chat: str = SESSION) -> Path:
    """A database of these spans; those of an agent name the chat."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    db.executescript(TRACES)
    for made in spans:
        row = {"name": "x", "chat_session_id": chat if made["operation_name"] == "invoke_agent" else None, **made}
        facts, prompt = row.pop("facts", {}), row.pop("prompt", None)
        db.execute(f"INSERT INTO spans ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
        db.executemany("INSERT INTO span_attributes VALUES (?, ?, ?)", [(row["span_id"], *f) for f in facts.items()])
        if prompt is not None:
            event = (row["span_id"], row["start_time_ms"], json.dumps({"content": prompt}))
            db.execute("INSERT INTO span_events VALUES (NULL, ?, 'user_message', ?, ?)", event)
    db.commit()
    db.close()
    return path
