"""A model on this machine that follows a script, for agents that ask it over one of four interfaces.

Anthropic's messages, OpenAI's chat completions and responses, Gemini's `generateContent`; streamed or whole. A session
of an agent goes: a text with a call that reads a file, a command that fails, a call that writes a file, an answer. The
next step is told by the number of tool results in the request, and the names and arguments of the calls by the
tools that it declares. Each answer states tokens, which are remembered: what was sent is what a reader has to find.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct

ANSWER = "The notes name three fruits; the command failed, and I wrote the list."
TITLE = "Fruits in the notes"
_DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_SHELL = re.compile(
    r"(?i)^(?:functions\.)?(?:bash|shell|shell_command|run_shell_command|exec_command|execute|run_command|run_commands"
    r"|execute_command|run_terminal_command|terminal|run_terminal_cmd|shell_exec|exec|local_shell)$"
)
_READ = re.compile(
    r"(?i)^(?:read|read_file|readfile|view|view_file|open_file|cat|str_replace_based_edit_tool|file_editor|read_files)$"
)
_WRITE = re.compile(
    r"(?i)^(?:write|write_file|writefile|create|create_file|write_to_file|save_file|edit_file|editor|file_editor|new_file)$"
)


class Tool(Struct):
    """A tool that a request declares."""

    name: str
    schema: dict[str, Any]
    is_free_text: bool = False


class Sent(Struct):
    """One answer: the interface it was asked over, and the tokens that it stated."""

    interface: str
    model: str
    input: int
    cached: int
    written: int
    output: int
    reasoning: int
    calls: int
    is_title: bool


class Script:
    """Answers a request with the next step of the session. `sent` lists the answers."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.sent: list[Sent] = []
        self._lock = threading.Lock()

    def step(
        self, interface: str, model: str, tools: list[Tool], results: int, ends_with: str = ""
    ) -> tuple[str, list[tuple[str, Any]], Sent]:
        """Return text, calls and tokens of an answer. A request without tools asks for a title. `ends_with` is the
        command with which an agent wants to be told that it is done."""
        write = "printf 'apple\\npear\\n' > list.txt"
        steps = [(_READ, "cat notes.txt"), (_SHELL, "ls /no/such/folder"), (_WRITE, write)]
        steps += [(_SHELL, ends_with)] if ends_with else []
        calls: list[tuple[str, Any]] = []
        text = ANSWER if tools else TITLE
        if tools and results < len(steps):
            wanted, command = steps[results]
            tool = next((t for t in tools if wanted.match(t.name)), None) or next(
                (t for t in tools if _SHELL.match(t.name)), None
            )
            if tool is not None:
                calls = [(tool.name, self.arguments(tool, command))]
                text = ("I read the notes first.", "", "Now I write the list.", ANSWER)[results]
        with self._lock:
            n = len(self.sent)
            tokens = Sent(interface, model, 1000 + 10 * n, 300, 40, 50 + n, 7, len(calls), not tools)
            self.sent.append(tokens)
        return text, calls, tokens

    def arguments(self, tool: Tool, command: str) -> Any:
        """Fill the arguments that a tool requires."""
        if tool.is_free_text:
            return command
        properties = tool.schema.get("properties") or {}
        given: dict[str, Any] = {}
        named = {"path", "file", "content", "contents", "command", "cmd", "commands", "file_text", "text"}
        for name in properties:
            if name in (tool.schema.get("required") or ()) or name.lower() in named:
                given[name] = self._value(name, properties[name], command, tool.name)
        return given

    def _value(self, name: str, schema: dict[str, Any], command: str, tool: str) -> Any:
        kind = schema.get("type")
        kind = next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else kind
        lower = name.lower()
        file = "list.txt" if _WRITE.match(tool) and command.startswith("printf") else "notes.txt"
        if schema.get("enum"):
            allowed = schema["enum"]
            wanted = ("create", "write") if file == "list.txt" else ("view", "read")
            return next((v for v in wanted if v in allowed), allowed[0])
        if kind in ("integer", "number"):
            return 30 if "time" in lower else 1
        if kind == "boolean":
            return False
        if kind == "array":
            items = schema.get("items") or {}
            if items.get("type") == "object":
                return [self.arguments(Tool(tool, items), command)]
            if "command" in lower or "cmd" in lower:
                return [command] if lower.endswith("s") else ["bash", "-lc", command]
            return [f"{self.folder}/{file}"] if "path" in lower or "file" in lower else []
        if kind == "object":
            return self.arguments(Tool(tool, schema), command)
        if "command" in lower or lower in ("cmd", "script", "code", "input"):
            return command
        if "content" in lower or lower in ("file_text", "text", "code_edit", "new_string", "new_str"):
            return "apple\npear\n"
        if "path" in lower or lower in ("file", "filename", "file_name", "target_file"):
            return f"{self.folder}/{file}"
        if lower in ("cwd", "workdir", "working_directory", "dir_path", "directory"):
            return self.folder
        return "Read the notes" if kind in ("string", None) else None


def answer(script: Script, path: str, body: dict[str, Any]) -> tuple[bool, Iterator[tuple[str | None, Any]] | None]:
    """Return whether an answer is streamed, and its events: one document if not, None for a path of no model."""
    path = path.partition("?")[0]
    is_streamed = bool(body.get("stream"))
    if path.endswith("/messages"):
        return is_streamed, _anthropic(script, body, is_streamed)
    if path.endswith("/chat/completions"):
        return is_streamed, _chat(script, body, is_streamed)
    if path.endswith("/responses"):
        return is_streamed, _responses(script, body, is_streamed)
    if path.endswith(("generateContent", "GenerateContent")):
        return ":stream" in path, _gemini(script, body, path.rpartition("/")[2].partition(":")[0])
    return False, None


def _results(blocks: list[Any], is_result: Any) -> int:
    return sum(1 for block in blocks if isinstance(block, dict) and is_result(block))


def _anthropic(script: Script, body: dict[str, Any], is_streamed: bool) -> Iterator[tuple[str | None, Any]]:
    tools = [Tool(t["name"], t.get("input_schema") or {}) for t in body.get("tools") or () if t.get("input_schema")]
    blocks = [b for m in body["messages"] for b in (m["content"] if isinstance(m["content"], list) else ())]
    text, calls, sent = script.step(
        "anthropic", body["model"], tools, _results(blocks, lambda b: b.get("type") == "tool_result")
    )
    usage = {
        "input_tokens": sent.input - sent.cached - sent.written,
        "cache_creation_input_tokens": sent.written,
        "cache_read_input_tokens": sent.cached,
        "output_tokens": sent.output,
    }
    n = len(script.sent)
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{n:02}{k}", "name": name, "input": given}
        for k, (name, given) in enumerate(calls)
    ]
    stop = "tool_use" if calls else "end_turn"
    head = {"id": f"msg_{n:024}", "type": "message", "role": "assistant", "model": body["model"]}
    if not is_streamed:
        yield None, {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        return
    first = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": first}
    for k, block in enumerate(content):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        yield "content_block_start", {"type": "content_block_start", "index": k, "content_block": empty}
        yield "content_block_delta", {"type": "content_block_delta", "index": k, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": k}
    last = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield "message_delta", last
    yield "message_stop", {"type": "message_stop"}


def _chat(script: Script, body: dict[str, Any], is_streamed: bool) -> Iterator[tuple[str | None, Any]]:
    declared = [t.get("function") or t for t in body.get("tools") or ()]
    tools = [Tool(t["name"], t.get("parameters") or {}) for t in declared if t.get("name")]
    results = sum(m["role"] == "tool" for m in body["messages"])
    ends_with = f"echo {_DONE}" if _DONE in str(body["messages"][:2]) else ""
    text, calls, sent = script.step("openai-chat", body["model"], tools, results, ends_with)
    n = len(script.sent)
    usage = {
        "prompt_tokens": sent.input,
        "completion_tokens": sent.output,
        "total_tokens": sent.input + sent.output,
        "prompt_tokens_details": {"cached_tokens": sent.cached, "cache_write_tokens": sent.written},
        "completion_tokens_details": {"reasoning_tokens": sent.reasoning},
    }
    asked = [
        {"index": k, "id": f"call_{n:02}{k}", "type": "function", "function": {"name": a, "arguments": json.dumps(g)}}
        for k, (a, g) in enumerate(calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if asked:
        message["tool_calls"] = asked
    stop = "tool_calls" if calls else "stop"
    head = {"id": f"chatcmpl-{n:08}", "created": 1_790_000_000 + n, "model": body["model"]}
    if not is_streamed:
        choice = {"index": 0, "message": message, "finish_reason": stop}
        yield None, {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return
    head["object"] = "chat.completion.chunk"
    yield None, {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield None, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}
    yield None, {**head, "choices": [], "usage": usage}
    yield None, "[DONE]"


def _responses(script: Script, body: dict[str, Any], is_streamed: bool) -> Iterator[tuple[str | None, Any]]:
    tools = [
        Tool(t["name"], t.get("parameters") or {}, t["type"] == "custom")
        for t in body.get("tools") or ()
        if t.get("name") and t.get("type") in ("function", "custom")
    ]
    asked_items = body["input"] if isinstance(body["input"], list) else []
    results = _results(asked_items, lambda b: str(b.get("type")).endswith("_call_output"))
    text, calls, sent = script.step("openai-responses", body["model"], tools, results)
    n = len(script.sent)
    output: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append(
            {"type": "message", "id": f"msg_{n:02}", "role": "assistant", "status": "completed", "content": [part]}
        )
    free = {t.name for t in tools if t.is_free_text}
    for k, (name, given) in enumerate(calls):
        call = {"id": f"fc_{n:02}{k}", "call_id": f"call_{n:02}{k}", "name": name, "status": "completed"}
        output.append(
            {"type": "custom_tool_call", **call, "input": given}
            if name in free
            else {"type": "function_call", **call, "arguments": json.dumps(given)}
        )
    usage = {
        "input_tokens": sent.input,
        "input_tokens_details": {"cached_tokens": sent.cached, "cache_write_tokens": sent.written},
        "output_tokens": sent.output,
        "output_tokens_details": {"reasoning_tokens": sent.reasoning},
        "total_tokens": sent.input + sent.output,
    }
    head = {"id": f"resp_{n:08}", "object": "response", "created_at": 1_790_000_000 + n, "model": body["model"]}
    whole = {**head, "status": "completed", "output": output, "usage": usage, "error": None, "incomplete_details": None}
    whole.update(
        instructions=None, metadata={}, parallel_tool_calls=False, tool_choice="auto", tools=[], temperature=1, top_p=1
    )
    if not is_streamed:
        yield None, whole
        return
    number = iter(range(1000))
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"type": "response.created", "sequence_number": next(number), "response": begun}
    for k, item in enumerate(output):
        at = {"output_index": k}
        opened = {**item, "status": "in_progress"} | ({"content": []} if item["type"] == "message" else {})
        yield "", {"type": "response.output_item.added", "sequence_number": next(number), **at, "item": opened}
        if item["type"] == "message":
            at |= {"item_id": item["id"], "content_index": 0}
            part = item["content"][0]
            empty = {**part, "text": ""}
            yield "", {"type": "response.content_part.added", "sequence_number": next(number), **at, "part": empty}
            yield (
                "",
                {
                    "type": "response.output_text.delta",
                    "sequence_number": next(number),
                    **at,
                    "delta": text,
                    "logprobs": [],
                },
            )
            yield (
                "",
                {
                    "type": "response.output_text.done",
                    "sequence_number": next(number),
                    **at,
                    "text": text,
                    "logprobs": [],
                },
            )
            yield "", {"type": "response.content_part.done", "sequence_number": next(number), **at, "part": part}
        elif item["type"] == "function_call":
            at |= {"item_id": item["id"]}
            yield (
                "",
                {
                    "type": "response.function_call_arguments.delta",
                    "sequence_number": next(number),
                    **at,
                    "delta": item["arguments"],
                },
            )
            yield (
                "",
                {
                    "type": "response.function_call_arguments.done",
                    "sequence_number": next(number),
                    **at,
                    "arguments": item["arguments"],
                },
            )
        yield (
            "",
            {"type": "response.output_item.done", "sequence_number": next(number), "output_index": k, "item": item},
        )
    yield "response.completed", {"type": "response.completed", "sequence_number": next(number), "response": whole}


def _gemini(script: Script, body: dict[str, Any], model: str) -> Iterator[tuple[str | None, Any]]:
    declared = [f for t in body.get("tools") or () for f in t.get("functionDeclarations") or ()]
    tools = [Tool(f["name"], f.get("parametersJsonSchema") or f.get("parameters") or {}) for f in declared]
    parts = [part for c in body.get("contents") or () for part in c.get("parts") or ()]
    results = _results(parts, lambda p: "functionResponse" in p)
    is_json = "json" in str((body.get("generationConfig") or {}).get("responseMimeType"))
    text, calls, sent = script.step("gemini", model, tools, results)
    if is_json:
        text = json.dumps({"reasoning": "simple", "model_choice": "flash", "title": TITLE, "complexity_score": 5,
                           "complexity_reasoning": "simple", "next_speaker": "user"})  # fmt: skip
    content: list[dict[str, Any]] = [{"text": text}] if text else []
    content += [{"functionCall": {"name": name, "args": given}} for name, given in calls]
    usage = {
        "promptTokenCount": sent.input,
        "cachedContentTokenCount": sent.cached,
        "candidatesTokenCount": sent.output - sent.reasoning,
        "thoughtsTokenCount": sent.reasoning,
        "totalTokenCount": sent.input + sent.output,
    }
    candidate = {"content": {"role": "model", "parts": content}, "finishReason": "STOP", "index": 0}
    yield (
        None,
        {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": model,
            "responseId": f"r{len(script.sent)}",
        },
    )


def served(script: Script, port: int = 0, log: list[str] | None = None) -> ThreadingHTTPServer:
    """Start the server in a thread of its own and return it. `log` gets the paths that were asked for."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._noted()
            models = ("scripted-1", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro")
            document = {"object": "list", "data": [{"id": m, "object": "model", "owned_by": "local"} for m in models]}
            self._whole(document if "/models" in self.path else {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                body = b"".join(iter(self._chunk, b""))
            self._noted()
            try:
                asked = json.loads(body or b"{}")
                is_streamed, events = answer(script, self.path, asked) if isinstance(asked, dict) else (False, None)
            except ValueError:
                events = None
            if events is None:
                self._whole({"input_tokens": 1000, "totalTokens": 1000} if "ount" in self.path else {})
            elif is_streamed:
                text = "".join(
                    (f"event: {name or event['type']}\n" if name is not None else "")
                    + f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
                    for name, event in events
                )
                self._sent(text.encode(), "text/event-stream")
            else:
                self._whole(next(events)[1])

        def _chunk(self) -> bytes:
            size = int(self.rfile.readline().split(b";")[0], 16)
            part = self.rfile.read(size)
            self.rfile.readline()
            return part

        def _noted(self) -> None:
            if log is not None:
                log.append(f"{self.command} {self.path}")

        def _whole(self, document: Any) -> None:
            self._sent(json.dumps(document).encode(), "application/json")

        def _sent(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server
