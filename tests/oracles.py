"""Counters of what raw logs hold, a function a format, that share nothing with the readers: plain `json`, a few lines
each, written from what the agents' logs look like. `tests/test_oracles.py` holds the tables against them.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Count:
    """What one file says; None where its agent does not log such a thing. Tokens as the tables have them: `input` was
    neither read from a cache nor written to one."""

    prompts: int | None = None
    api_calls: int | None = None
    tool_calls: int | None = None
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost: float | None = None
    totals: dict[str, float] = field(default_factory=dict)
    """Of these, what the file itself sums up."""
    times: list[str] = field(default_factory=list)
    """When the prompts, answers and results were logged, as ISO 8601."""
    failed: set[str] = field(default_factory=set)
    """Ids of the calls that the log flags as failed, by its own flag."""


def lines(data: bytes) -> Iterator[dict[str, Any]]:
    """Each line's object; two that were written into one line are two, and a torn one is none."""
    decoder = json.JSONDecoder()
    for raw in data.decode("utf-8", "replace").split("\n"):
        text = raw.strip()
        while text.startswith("{"):
            try:
                value, end = decoder.raw_decode(text)
            except ValueError:
                break
            yield value
            text = text[end:].strip()


def blocks(content: Any) -> list[dict[str, Any]]:
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _steps(trajectory: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (s for s in trajectory.get("steps") or () if isinstance(s, dict))
    for inner in trajectory.get("subagent_trajectories") or ():
        yield from _steps(inner)


def atif(data: bytes) -> Count:
    """ATIF: an agent's step with metrics is a model call; the file sums them up itself. Its cached tokens are
    prompt's."""
    document = json.loads(data)
    metrics = [s.get("metrics") or {} for s in _steps(document) if s.get("source") == "agent"]
    cached = sum(m.get("cached_tokens") or 0 for m in metrics)
    written = sum((m.get("extra") or {}).get("cache_creation_input_tokens") or 0 for m in metrics)
    done = Count(
        input=sum(m.get("prompt_tokens") or 0 for m in metrics) - cached - written,
        output=sum(m.get("completion_tokens") or 0 for m in metrics),
        cache_read=cached,
        cache_write=written,
        cost=sum(m.get("cost_usd") or 0 for m in metrics),
    )
    totals = document.get("final_metrics") or {}
    if totals and not document.get("subagent_trajectories"):
        done.totals = {
            "output": totals.get("total_completion_tokens") or 0,
            "cache_read": totals.get("total_cached_tokens") or 0,
            "cost": totals.get("total_cost_usd") or 0,
        }
    return done


def _messages(data: bytes) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Thread, record and message; subagents' are embedded in older logs' progress records."""
    seen: set[str] = set()
    for record in lines(data):
        inner, thread = record, str(record.get("agentId") or record.get("isSidechain") or "")
        if record.get("type") == "progress" and isinstance(record.get("data"), dict):
            inner, thread = record["data"].get("message") or {}, str(record["data"].get("agentId"))
        identity = record.get("uuid")
        if isinstance(inner.get("message"), dict) and (identity is None or identity not in seen):
            yield thread, inner, inner["message"]
        if identity is not None:
            seen.add(identity)


def claude_code(data: bytes) -> Count:
    """Claude Code: an answer's lines share `message.id`, and the one with most output tokens is the whole of it. Where
    it says what a session used of each model, that is what it used."""
    usage: dict[tuple[str, str], dict[str, int]] = {}
    model_of: dict[tuple[str, str], str] = {}
    calls: set[str] = set()
    done = Count()
    for thread, record, message in _messages(data):
        parts = blocks(message.get("content"))
        done.times += [str(record["timestamp"])] if record.get("timestamp") else []
        if record.get("type") == "assistant" and message.get("model") != "<synthetic>":
            key = (thread, str(message.get("id") or record.get("uuid")))
            found = message.get("usage") or {}
            kept = usage.setdefault(key, found)
            model_of[key] = str(message.get("model"))
            if found.get("output_tokens", 0) > kept.get("output_tokens", 0):
                usage[key] = found
        calls |= {b["id"] for b in parts if b.get("type") == "tool_use"}
        done.failed |= {b["tool_use_id"] for b in parts if b.get("type") == "tool_result" and b.get("is_error") is True}

    states = [record["modelUsage"] for record in lines(data) if record.get("type") == "cost-state"]
    summed = states[-1] if states and set(model_of.values()) <= states[-1].keys() else {}

    def total(name: str, in_sum: str) -> int:
        logged = dict.fromkeys((*model_of.values(), *summed), 0)
        for key, used in usage.items():
            logged[model_of[key]] += used.get(name) or 0
        return sum(max(n, summed.get(model, {}).get(in_sum, 0)) for model, n in logged.items())

    done.api_calls, done.tool_calls = len(usage), len(calls)
    done.input, done.output = total("input_tokens", "inputTokens"), total("output_tokens", "outputTokens")
    done.cache_read = total("cache_read_input_tokens", "cacheReadInputTokens")
    done.cache_write = total("cache_creation_input_tokens", "cacheCreationInputTokens")
    return done


CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")


_OF_CODEX_CACHE = ("cached_input_tokens", "cache_write_input_tokens")


def codex(data: bytes) -> Count:
    """Codex rollouts: each model call is followed by a `token_count`, which may be said again; its totals run on. From
    0.171 on a prompt is an item that was completed."""
    done = Count(tool_calls=0, prompts=0, input=0, output=0, cache_read=0)
    before, items = None, 0
    for record in lines(data):
        payload = record.get("payload") or {}
        kind = payload.get("type")
        if record.get("type") == "response_item" and kind in CALLS:
            done.tool_calls += 1
            done.times.append(record["timestamp"])
        if record.get("type") == "event_msg" and kind == "user_message":
            done.prompts += 1
        items += kind == "item_completed" and payload["item"].get("type") == "UserMessage"
        info = payload.get("info") if kind == "token_count" else None
        if not info:
            continue
        total = info["total_token_usage"]
        if total == before:
            continue
        new = {k: n - ((before or {}).get(k) or 0) for k, n in total.items()}
        if min(new.values()) < 0:  # another process went on with the session: it counts from nothing
            new = total
        before = total
        done.input += new["input_tokens"] - sum(new.get(name) or 0 for name in _OF_CODEX_CACHE)
        done.cache_read += new.get("cached_input_tokens") or 0
        done.output += new["output_tokens"]
    done.prompts = done.prompts or items
    if before is not None:
        done.totals = {
            "input": before["input_tokens"] - sum(before.get(name) or 0 for name in _OF_CODEX_CACHE),
            "output": before["output_tokens"],
            "cache_read": before.get("cached_input_tokens") or 0,
        }
    return done


_CALLS = ("command_execution", "file_change", "mcp_tool_call", "web_search", "todo_list", "collab_tool_call")


def codex_exec(data: bytes) -> Count:
    """Codex's printed events: an item that is work is a call, told once or twice, and so is each state of a plan; each
    turn ends with its sums."""
    calls, used = set(), Count(input=0, output=0, cache_read=0)
    for n, event in enumerate(lines(data)):
        item, usage = (value if isinstance(value := event.get(name), dict) else {} for name in ("item", "usage"))
        if item.get("type") in _CALLS:
            calls.add((item.get("id") or n, str(item.get("items"))))
        cached = usage.get("cached_input_tokens") or 0
        used.input = (used.input or 0) + (usage.get("input_tokens") or 0) - cached
        used.output = (used.output or 0) + (usage.get("output_tokens") or 0)
        used.cache_read = (used.cache_read or 0) + cached
    used.tool_calls = len(calls)
    return used


def copilot_cli(data: bytes) -> Count:
    """Copilot CLI: what was used stands in `session.shutdown` by model; a resumed session has one for each part. From
    1.0.102 on each call has a record, and the sums go on."""
    records = list(lines(data))
    metrics = [r["data"]["usage"] for r in records if r.get("type") == "session.usage_record"] or [
        m.get("usage") or {}
        for r in records
        if r.get("type") == "session.shutdown"
        for m in (r["data"].get("modelMetrics") or {}).values()
    ]
    done = Count(
        prompts=sum(r.get("type") == "user.message" and _is_persons(r["data"]) for r in records),
        tool_calls=len({r["data"].get("toolCallId") for r in records if r.get("type") == "tool.execution_start"}),
        times=[r["timestamp"] for r in records if r.get("type") in ("user.message", "assistant.message")],
        failed={
            r["data"]["toolCallId"]
            for r in records
            if r.get("type") == "tool.execution_complete" and r["data"].get("success") is False
        },
    )
    if metrics:
        cached = sum(u.get("cacheReadTokens") or 0 for u in metrics)
        written = sum(u.get("cacheWriteTokens") or 0 for u in metrics)
        done.output = sum(u.get("outputTokens") or 0 for u in metrics)
        done.cache_read, done.cache_write = cached, written
        done.input = sum(u.get("inputTokens") or 0 for u in metrics) - cached - written
    return done


def _is_persons(message: dict[str, Any]) -> bool:
    """No other source is named, and it is not headed as a program heads the fields of its prompt."""
    return "source" not in message and not str(message.get("content")).startswith("[[ ## ")


def cursor_agent(data: bytes) -> Count:
    """Cursor's transcripts: roles and blocks; neither ids, times nor tokens. What its databases hold comes as
    documents: of a chat, whose prompts are marked among what is put before them, and of a conversation in the IDE, in
    bubbles."""
    every = list(lines(data))
    if any("cursorComposer" in r for r in every):
        return _of_bubbles(every)
    asks = "<user_query>" if any("cursorChat" in r for r in every) else ""
    records = [r for r in every if isinstance(r.get("message"), dict)]
    parts = [(r.get("role"), b) for r in records for b in blocks(r["message"].get("content"))]
    return Count(
        prompts=sum(role == "user" and b.get("type") == "text" and asks in b["text"] for role, b in parts),
        tool_calls=sum(role == "assistant" and b.get("type") == "tool_use" for role, b in parts),
    )


def _of_bubbles(bubbles: list[dict[str, Any]]) -> Count:
    """Type 1 is the person's side, on which the program speaks too."""
    persons = [b for b in bubbles if b.get("type") == 1 and not b.get("isSimulatedMsg")]
    used = [b["tokenCount"] for b in bubbles if isinstance(b.get("tokenCount"), dict)]
    return Count(
        prompts=sum(not b["text"].startswith("<system_notification>") for b in persons),
        tool_calls=sum("toolFormerData" in b for b in bubbles),
        input=sum(u["inputTokens"] for u in used),
        output=sum(u["outputTokens"] for u in used),
        times=[b["createdAt"] for b in bubbles if "createdAt" in b],
    )


def factory_droid(data: bytes) -> Count:
    """Factory Droid: messages of blocks; what it used stands in a file of its own, which is not collected."""
    messages = [r["message"] for r in lines(data) if r.get("type") == "message" and isinstance(r.get("message"), dict)]
    parts = [b for m in messages for b in blocks(m.get("content"))]
    return Count(
        tool_calls=sum(b.get("type") == "tool_use" for b in parts),
        failed={b["tool_use_id"] for b in parts if b.get("type") == "tool_result" and b.get("is_error") is True},
    )


NOT_SAID = ("<session_context>", "<state_snapshot>")


def gemini_cli(data: bytes) -> Count:
    """Gemini CLI: one document, or a line a change of it; `tokens` stand at each answer, thoughts beside its output."""
    messages: dict[str, dict[str, Any]] = {}
    try:
        records = json.loads(data)["messages"]
    except (ValueError, KeyError):
        records = [m for line in lines(data) for m in (line.get("$set", {}).get("messages") or [line])]
    for record in records:
        if record.get("type") in ("user", "gemini"):
            name = record.get("id") or str(len(messages))
            before = messages.get(name, {})
            messages[name] = record | {kept: record.get(kept) or before.get(kept) for kept in ("tokens", "toolCalls")}
    answers = [m for m in messages.values() if m["type"] == "gemini"]
    calls = [c for m in answers for c in m.get("toolCalls") or ()]
    tokens = [t for m in answers if (t := m["tokens"])]
    return Count(
        prompts=sum(m["type"] == "user" and _is_said(m.get("content")) for m in messages.values()),
        api_calls=len(tokens),
        tool_calls=len(calls),
        input=sum(t.get("input", 0) + t.get("tool", 0) - t.get("cached", 0) for t in tokens),
        output=sum(t.get("output", 0) + t.get("thoughts", 0) for t in tokens),
        cache_read=sum(t.get("cached", 0) for t in tokens),
        times=[m["timestamp"] for m in messages.values() if m.get("timestamp")],
        failed={c["id"] for c in calls if c.get("status") == "error"},
    )


def _is_said(content: Any) -> bool:
    parts = [{"text": content}] if isinstance(content, str) else blocks(content)
    texts = [p["text"] for p in parts if p.get("text")]
    return bool(texts) and not texts[0].startswith(NOT_SAID)


def _events(events: Any) -> Iterator[dict[str, Any]]:
    for event in events or ():
        yield event
        yield from _events(event.get("events"))


def _of_the_agent(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    scoring: set[Any] = set()
    steps = 0
    for event in events:
        kind, inner = event.get("event"), event.get("type") in ("scorer", "scorers")
        if kind == "span_begin" and (inner or event.get("parent_id") in scoring):
            scoring.add(event.get("id"))
        elif kind == "step" and inner:
            steps += 1 if event.get("action") == "begin" else -1
        elif not steps and event.get("span_id") not in scoring:
            yield event


def inspect(data: bytes) -> Count:
    """Inspect's packed log: a model event with usage is a model call, a tool event a call; events may lie in events,
    and those of a sample in several members, by number. What a scorer asks its own model, in a span or between two
    steps of that name, is not the agent's."""
    try:
        log = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile as problem:
        raise ValueError("no archive") from problem
    samples: dict[str, list[tuple[int, Any]]] = {}
    for name in log.namelist():
        if part := re.fullmatch(r"samples/(.+)/events/(\d+)\.json", name):
            samples.setdefault(part[1], []).append((int(part[2]), json.loads(log.read(name))))
        elif re.fullmatch(r"samples/[^/]+\.json", name):
            samples[name] = [(0, json.loads(log.read(name)).get("events"))]
    whole = [[e for _, listed in sorted(parts, key=lambda p: p[0]) for e in listed or ()] for parts in samples.values()]
    events = [e for listed in whole for e in _of_the_agent(_events(listed))]
    usages = [(e.get("output") or {}).get("usage") or {} for e in events if e.get("event") == "model"]
    return Count(
        tool_calls=sum(e.get("event") == "tool" for e in events),
        input=sum(u.get("input_tokens") or 0 for u in usages),
        output=sum(u.get("output_tokens") or 0 for u in usages),
        cache_read=sum(u.get("input_tokens_cache_read") or 0 for u in usages),
        cache_write=sum(u.get("input_tokens_cache_write") or 0 for u in usages),
    )


def kiro(data: bytes) -> Count:
    """Kiro: a history of pairs, what was asked and what was answered; no tokens."""
    history = json.loads(data)["history"]
    said = [(pair.get("user") or {}).get("content") or {} for pair in history]
    answers = [pair.get("assistant") or {} for pair in history]
    return Count(
        prompts=sum("Prompt" in s for s in said),
        tool_calls=sum(len((a.get("ToolUse") or {}).get("tool_uses") or ()) for a in answers),
    )


def mini_swe_agent(data: bytes) -> Count:
    """mini-SWE-agent: an assistant's message is a model call; `info.model_stats` say what they cost together."""
    document = json.loads(data)
    messages = document if isinstance(document, list) else document.get("messages") or []
    stats = ({} if isinstance(document, list) else document.get("info") or {}).get("model_stats") or {}
    return Count(
        api_calls=sum(m.get("role") == "assistant" for m in messages),
        totals={"run cost": stats["instance_cost"]} if "instance_cost" in stats else {},
    )


def opencode(data: bytes) -> Count:
    """OpenCode exports: a message has its tokens and cost; younger ones log reasoning beside the output."""
    document = json.loads(data)
    messages = document["messages"]
    if any("info" not in m for m in messages):  # version 2, which tests/formats/test_opencode.py counts by hand
        return Count(prompts=None)
    answers = [m for m in messages if m["info"].get("role") == "assistant"]
    tokens = [m["info"].get("tokens") or {} for m in answers]
    tools = [p for m in answers for p in m.get("parts") or () if p.get("type") == "tool"]
    cache = [t.get("cache") or {} for t in tokens]
    return Count(
        prompts=0  # a subagent's are its parent's words
        if document["info"].get("parentID")
        else sum(
            m["info"].get("role") == "user"
            and any(p.get("type") == "text" and not p.get("synthetic") for p in m.get("parts") or ())
            for m in messages
        ),
        tool_calls=len(tools),
        input=sum(t.get("input") or 0 for t in tokens),
        output=sum((t.get("output") or 0) + _beside(t) for t in tokens),
        cache_read=sum(c.get("read") or 0 for c in cache),
        cache_write=sum(c.get("write") or 0 for c in cache),
        cost=sum(m["info"].get("cost") or 0 for m in answers),
        failed={p["callID"] for p in tools if (p.get("state") or {}).get("status") == "error"},
    )


def _beside(tokens: dict[str, Any]) -> int:
    """Reasoning tokens, where the total says that the output does not hold them."""
    cache = tokens.get("cache") or {}
    whole = (
        (tokens.get("input") or 0) + (tokens.get("output") or 0) + (cache.get("read") or 0) + (cache.get("write") or 0)
    )
    reasoning = tokens.get("reasoning") or 0
    return reasoning if tokens.get("total") == whole + reasoning else 0


_KINDS = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read_tokens",
          "cache_write": "cache_write_tokens"}  # fmt: skip


def opentraces(data: bytes) -> Count:
    """OpenTraces: of several writings of a trace the last holds all; an agent's step has its tokens and calls."""
    latest = {row.get("trace_id"): row for row in lines(data) if isinstance(row.get("steps"), list)}
    steps = [s for row in latest.values() for s in row["steps"] if isinstance(s, dict) and s.get("role") == "agent"]
    used = [s.get("token_usage") or {} for s in steps]
    tokens = {kind: sum(u.get(name) or 0 for u in used) for kind, name in _KINDS.items()}
    return Count(tool_calls=sum(len(s.get("tool_calls") or ()) for s in steps), **tokens)


def _facts(span: dict[str, Any]) -> dict[str, Any]:
    pairs = (span.get("attributes") or ()) if isinstance(span, dict) else ()
    return {p["key"].removeprefix("gen_ai."): next(iter(p["value"].values()), None) for p in pairs}


def otel_genai(data: bytes) -> Count:
    """OpenTelemetry's spans of models: a span of `chat` is a model call, with its tokens; one of `execute_tool` a
    call."""
    text = data.decode()
    exports = [json.loads(text)] if text.startswith("{\n") else [json.loads(line) for line in text.splitlines()]
    spans = [
        _facts(span)
        for export in exports
        for resource in export["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    chats = [facts for facts in spans if facts.get("operation.name") == "chat"]
    cached = sum(int(c.get("usage.cache_read.input_tokens") or 0) for c in chats)
    return Count(
        api_calls=len(chats),
        input=sum(int(c.get("usage.input_tokens") or 0) for c in chats) - cached,
        output=sum(int(c.get("usage.output_tokens") or 0) for c in chats),
        cache_read=cached,
    )


def pi(data: bytes) -> Count:
    """Pi: a tree of records; each answer has its usage and what it cost."""
    entries = [r for r in lines(data) if r.get("type") == "message" and isinstance(r.get("message"), dict)]
    records = [entry["message"] for entry in entries]
    answers = [m for m in records if m.get("role") == "assistant"]
    usage = [m.get("usage") or {} for m in answers]
    results = [m for m in records if m.get("role") == "toolResult"]

    def total(name: str) -> int:
        return sum(u.get(name) or 0 for u in usage)

    return Count(
        prompts=sum(m.get("role") == "user" for m in records),
        api_calls=len(answers),
        tool_calls=sum(b.get("type") == "toolCall" for m in answers for b in blocks(m.get("content"))),
        input=total("input"),
        output=total("output"),
        cache_read=total("cacheRead"),
        cache_write=total("cacheWrite"),
        cost=sum((u.get("cost") or {}).get("total") or 0 for u in usage),
        times=[entry["timestamp"] for entry in entries if entry.get("timestamp")],
        failed={m["toolCallId"] for m in results if m.get("isError") is True},
    )


def sts(data: bytes) -> Count:
    """STS: a message's tool calls, and those of a person; no tokens."""
    messages = [row["message"] for row in lines(data) if isinstance(row.get("message"), dict)]
    return Count(tool_calls=sum("function" in call for m in messages for call in m.get("toolCalls") or ()))


def swe_agent(data: bytes) -> Count:
    """SWE-agent: each step is an action carried out, or the harness's `exit_…`; `info.model_stats` are its own sums."""
    document = json.loads(data)
    attempts = document.get("attempts") or [document]
    steps = [s for one in attempts for s in one.get("trajectory") or one.get("history") or ()]
    actions = [(s.get("action") or "").strip() for s in steps if not s.get("is_demo")]
    stats = (document.get("info") or {}).get("model_stats") or {}
    return Count(
        tool_calls=sum(bool(a) and not a.startswith("exit_") for a in actions),
        totals={}
        if not stats
        else {"run cost": stats.get("instance_cost"), "run output": stats.get("tokens_received")},
    )


def swival(data: bytes) -> Count:
    """Swival: Claude Code's shape without tokens; a message may be written as a text."""
    done = Count(tool_calls=0)
    for row in lines(data):
        message = row.get("message")
        with suppress(ValueError):
            message = json.loads(message) if isinstance(message, str) else message
        if not isinstance(message, dict):
            continue
        for block in blocks(message.get("content")):
            done.tool_calls = (done.tool_calls or 0) + (block.get("type") == "tool_use")
            if block.get("type") == "tool_result" and block.get("is_error"):
                done.failed.add(block["tool_use_id"])
    return done


def _spans(spans: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for span in spans or ():
        if isinstance(span, dict):
            yield str(span.get("span_id")), span.get("span_attributes") or {}
            yield from _spans(span.get("child_spans"))


def trail(data: bytes) -> Count:
    """TRAIL: a span of kind LLM is a model call, with its tokens among the attributes, as words or as numbers. One
    that is written twice is one."""
    spans = dict(_spans(json.loads(data).get("spans"))).values()
    calls = [facts for facts in spans if facts.get("openinference.span.kind") == "LLM"]
    return Count(
        input=sum(int(a.get("llm.token_count.prompt") or 0) for a in calls),
        output=sum(int(a.get("llm.token_count.completion") or 0) for a in calls),
    )


COUNTERS: dict[str, Callable[[bytes], Count]] = {
    counter.__name__: counter
    for counter in (
        atif, claude_code, codex, codex_exec, copilot_cli, cursor_agent, factory_droid, gemini_cli, inspect,
        kiro, mini_swe_agent, opencode, opentraces, otel_genai, pi, sts, swe_agent, swival, trail,
    )
}  # fmt: skip
