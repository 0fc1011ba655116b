"""The watch of new versions: a scripted model that tells what it sent, and a comparison that tells what is read."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.upstream.compare import Report, compared, sampled
from benchmarks.upstream.model_server import ANSWER, TITLE, Script, served
from benchmarks.upstream.page import fields, written
from benchmarks.upstream.trial import agents, filled

from agentsignals.formats import formats

TOOLS = [("Read", ["file_path"]), ("Bash", ["command"]), ("write_file", ["path", "content"])]


def _schema(names: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": {n: {"type": "string"} for n in names}, "required": names}


def _asked(interface: str, results: int, *, tools: bool, stream: bool) -> tuple[str, dict[str, Any]]:
    """The path and the body of a request after so many results of tools."""
    declared = [(name, _schema(names)) for name, names in TOOLS] if tools else []
    if interface == "anthropic":
        block = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
        named = [{"name": n, "input_schema": s} for n, s in declared]
        messages = [{"role": "user", "content": [block] * results or "go"}]
        return "/v1/messages", {"model": "m", "stream": stream, "tools": named, "messages": messages}
    if interface == "openai-chat":
        functions = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in declared]
        chat = [{"role": "user", "content": "go"}, *[{"role": "tool", "content": "x"}] * results]
        return "/v1/chat/completions", {"model": "m", "stream": stream, "tools": functions, "messages": chat}
    if interface == "openai-responses":
        functions = [{"type": "function", "name": n, "parameters": s} for n, s in declared]
        return "/v1/responses", {"model": "m", "stream": stream, "tools": functions,
                                 "input": [{"type": "function_call_output"}] * results}  # fmt: skip
    functions = [{"functionDeclarations": [{"name": n, "parameters": s} for n, s in declared]}]
    contents = [{"role": "user", "parts": [{"functionResponse": {}}] * results or [{"text": "go"}]}]
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/m:{method}", {"tools": functions, "contents": contents}


@pytest.fixture
def script() -> Iterator[tuple[Script, str]]:
    made = Script("/w")
    server = served(made)
    yield made, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("interface", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_the_model_follows_its_script_on_every_interface(
    interface: str, stream: bool, script: tuple[Script, str]
) -> None:
    made, url = script
    said = []
    for results, tools in ((0, True), (1, True), (2, True), (3, True), (0, False)):
        path, body = _asked(interface, results, tools=tools, stream=stream)
        request = urllib.request.Request(f"{url}{path}", json.dumps(body).encode())  # noqa: S310
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
            said.append(reply.read().decode())
    for text, words in zip(said, ("notes.txt", "/no/such/folder", "list.txt", ANSWER, TITLE), strict=True):
        assert words in text
    assert [(s.calls, s.is_title, s.interface) for s in made.sent] == [
        *[(1, False, interface)] * 3, (0, False, interface), (0, True, interface),
    ]  # fmt: skip


ROWS = [
    {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-09-01T10:00:00Z", "cwd": "/w"},
    {"type": "message", "id": "a", "parentId": None, "timestamp": "2026-09-01T10:00:01Z",
     "message": {"role": "user", "content": [{"type": "text", "text": "go"}]}},
    {"type": "message", "id": "b", "parentId": "a", "timestamp": "2026-09-01T10:00:02Z", "seenByNobody": {"x": 1},
     "message": {"role": "assistant", "model": "m", "api": "chat", "stopReason": "neverSeen",
                 "content": [{"type": "text", "text": "done"}],
                 "usage": {"input": 70, "output": 5, "cacheRead": 30, "cacheWrite": 0, "totalTokens": 105}}},
    {"type": "neverSeen", "id": "c", "parentId": "b", "timestamp": "2026-09-01T10:00:03Z"},
]  # fmt: skip
TOLD = {
    "commands": [{}],
    "sent": [{"calls": 0, "is_title": False, "input": 100, "cached": 40, "written": 0, "output": 5}],
}


def test_new_known_and_read_are_told_apart_and_sums_compared(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    report = compared("pi", TOLD, [tmp_path], counts_tokens=False)
    assert report.formats == ["pi"] and report.records == 4
    assert "message: seenByNobody" in report.new_fields and report.new_types == ["neverSeen"]
    assert report.new_values == ["message: message.stopReason = neverSeen"]
    assert "message: message.api" in report.not_read and "message: message.usage.totalTokens" in report.not_read
    assert not {"message: message.usage.input", "message: message.model"} & {*report.not_read, *report.new_fields}
    assert report.wrong == ["cached tokens: 40 sent, 30 read"] and report.differs


def test_the_page_names_what_differs() -> None:
    ran = Report(agent="one", version="1.0", new_fields=["a: x.y", "b: x.y"], sent={"prompts": 2}, found={"prompts": 1})
    page = written([ran, Report(agent="two", package="p", problem="not to be had")], "2026-11-29")
    assert "| one | 1.0 | **1** of 2 | – |" in page and "* New fields: `x.y`\n" in page
    assert "| two | p | not to be had |" in page
    assert fields(["a: x[text].y", "b: x[].y"]) == ["x[].y"]


def test_every_agent_of_the_list_is_complete() -> None:
    for agent in agents():
        assert agent.registry in ("npm", "pip") and bool(agent.not_run) != bool(agent.commands)
        texts = [part for command in (*agent.setup, *agent.commands) for part in command] + [*agent.files.values()]
        assert all("{prompt}" in " ".join(c) or "{again}" in " ".join(c) for c in agent.commands)
        assert filled(" ".join(texts), {"url": "U"}).count("{url}") == 0


def test_a_sample_has_fields_that_are_read_and_others() -> None:
    assert "pi" in formats()
    met = sampled("hermes")
    assert ": usage[].output_tokens" in met.read and ": system_prompt" in met.values.keys() - met.read
