"""An item of a kind that no format knows, put into every list of every sample, is told or counted: never lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Reading, by_name
from agentsignals.model import Artifact
from tests.formats.reading import given, read_one
from tests.golden import SAMPLES, read_files, samples

_ITEM = {"type": "gangway", "data": "what nobody knows"}


def _lists(value: Any, place: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Every list of objects in a record, with the names that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lists(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        if any(isinstance(inner, dict) for inner in value):
            yield place, value
        for inner in value:
            yield from _lists(inner, f"{place}[]")


def _records(data: bytes) -> list[Any]:
    """The document of a file, or its lines; those that are no JSON as they are."""
    try:
        return [json.loads(data)]
    except ValueError:
        return [_loaded(line) for line in data.split(b"\n")]


def _loaded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


def _with_an_unknown_item(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file again and again, each time with the item at the end of the first list of another kind."""
    records = _records(data)
    seen: set[str] = set()
    for n, record in enumerate(records):
        kind = f"{record['type']}:" if isinstance(record, dict) and isinstance(record.get("type"), str) else ""
        for place in dict.fromkeys(place for place, _ in _lists(record)):
            if f"{kind}{place}" in seen:
                continue
            seen.add(f"{kind}{place}")
            changed = copy.deepcopy(record)
            next(items for at, items in _lists(changed) if at == place).append(_ITEM)
            rows = [*records[:n], changed, *records[n + 1 :]]
            lines = (row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)
            yield f"{kind}{place}", b"\n".join(lines)


def _said(artifact: Artifact, reading: Reading) -> Any:
    """What is told and counted: rows that are there, and of which kinds the records were."""
    events = [(e.kind, e.text, e.thread) for s in reading.sessions for e in s.events]
    calls = [(c.name, c.arguments) for s in reading.sessions for c in s.tool_calls]
    return artifact.record_kinds, artifact.skipped_reasons, events, calls


def _silent(sample: Path, folder: Path) -> set[str]:
    """The lists of a sample in which an unknown item changes nothing."""
    root = sample if sample.is_dir() else sample.parent
    sources = [p for p in sorted(sample.rglob("*")) if p.is_file()] if sample.is_dir() else [sample]
    copies = [folder / p.relative_to(root) for p in sources]
    for source, copied in zip(sources, copies, strict=True):
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(source.read_bytes())
    found: set[str] = set()
    for source, copied in zip(sources, copies, strict=True):
        data, name = source.read_bytes(), source.relative_to(root).as_posix()
        if data[:2] == b"PK":
            continue
        before = _read(copies, folder, name)
        for place, changed in _with_an_unknown_item(data):
            copied.write_bytes(changed)
            if _read(copies, folder, name) == before:
                found.add(place)
        copied.write_bytes(data)
    return found


def _read(paths: list[Path], folder: Path, name: str) -> Any:
    artifacts, _, reading = read_files(paths, folder)
    artifact = next(a for a in artifacts if a.path == name)
    return _said(artifact, reading)


_COPY = "the record is a copy of another file's, or of a later line"
_FIGURES = "figures or names beside what was said; one that says none of them has nothing to be read"
_BY_DESIGN = {
    "amp/threads messages[].content[].run.progress": "a turn of a subagent without words and calls says nothing",
    "amp/threads messages[].content[].run.~debug.inferences": _FIGURES,
    "amp/threads relationships": "another thread than the one that it was forked from",
    "atif/files steps[].observation.results[].subagent_trajectory_ref": "a name that leads nowhere",
    "atif/continued steps[].observation.results[].subagent_trajectory_ref": "a name that leads nowhere",
    "atif/subagents.json steps[].observation.results[].subagent_trajectory_ref": "a name that leads nowhere",
    "claude-code/records hologram:content": "a record of an unknown kind, which is told as a whole",
    "claude-code/snapshots assistant:message.content": _COPY,
    "claude-code/snapshots user:message.content": _COPY,
    "claude-code/steps assistant:message.content": "a message of the program itself, which is a text",
    "claude-stream/records user:tool_use_result.structuredPatch": "a hunk without lines changes nothing",
    **{f"cline/task {name}": _FIGURES for name in ("environment_history", "files_in_context", "model_usage")},
    "codex/fork response_item:payload.content": _COPY,
    "codex/forks response_item:payload.content": _COPY,
    "codex/newer.jsonl event_msg:payload.item.content": "the item has records of its own",
    "codex/newer.jsonl event_msg:payload.item.parsed_cmd": "the item has records of its own",
    "codex/newer.jsonl response_item:payload.internal_chat_message_metadata_passthrough"
    ".content_item_metadata": _FIGURES,
    "codex/session.jsonl compacted:payload.replacement_history": "the messages before, again",
    "codex/session.jsonl compacted:payload.replacement_history[].content": "the messages before, again",
    "codex/session.jsonl event_msg:payload.result.Ok.content": "the output of the call, which has a record of its own",
    "codex/snapshots response_item:payload.content": _COPY,
    "codex-exec/run.jsonl item.completed:item.items": "the last update of the list has them already",
    "codex-exec/turns item.completed:item.items": "the last update of the list has them already",
    "continue/folder history[].contextItems": "files that a prompt names, put beside it by the editor",
    "entire/checkpoint.json sessions": "the files of the sessions have records of their own",
    "entire/compact.jsonl assistant:content": "a copy of the agent's own transcript, line by line counted",
    "entire/compact.jsonl user:content": "a copy of the agent's own transcript, line by line counted",
    "gemini-cli/log.jsonl $set.messages[].toolCalls": _COPY,
    "gemini-cli/log.jsonl $set.messages[].toolCalls[].result": _COPY,
    "gemini-cli/log.jsonl gemini:thoughts": _COPY,
    "gemini-cli/log.jsonl gemini:toolCalls": _COPY,
    "gemini-cli/log.jsonl gemini:toolCalls[].result": "the answers of sibling calls stand with each of them",
    "gemini-cli/newer.jsonl gemini:toolCalls[].result": "the answers of sibling calls stand with each of them",
    "gemini-cli/menu.json messages[].toolCalls[].result": "the answers of sibling calls stand with each of them",
    **{f"harbor/{place}": _FIGURES for place in ("job agents", "job datasets", "steps agents", "steps tasks")},
    "harbor/steps ": "what was collected from the container: its files have records of their own",
    "harbor/job results.tests": "a test without name and status neither passed nor failed",
    "kimi-cli/session message.payload.return_value.display": "what a person is shown beside the result",
    **{f"kimi-code/{name} agent.message.appended:message.message.content": _COPY for name in ("fork", "session")},
    "kiro/cli data.content": "a message of an unknown kind, which is told as a whole",
    "kiro/client.json history[].assistant.ToolUse.tool_uses[].orig_args.operations": "the arguments, again",
    "kiro/client.json latest_summary": "it stands for the entries before: a compaction, whatever is in it",
    "lab-retry/recovered.jsonl message.pieces": "the lab's own log, in which a piece is its text",
    **{f"mistral-vibe/session [].{place}": _COPY for place in ("content", "detail.input.content")},
    **{
        f"mini-swe-agent/run.traj.json messages[].extra.response.choices{place}": "the model's answer again, as it came"
        for place in ("", "[].message.tool_calls")
    },
    "mistral-vibe/session [].state.output._meta.mistralai.vibe.sdk.search_replace.blocks": "no line is in the change",
    **{
        f"openhands/conversation stats.usage_to_metrics.{place}": _FIGURES
        for place in ("default.token_usages", "default.costs", "task:task_00000001.token_usages")
    },
    "opencode/person.json messages[].parts[].state.metadata.files": "a change without a path is of no file",
    "opentraces/two_sessions.jsonl steps": "an older generation of the record",
    "otel-genai/agentic.jsonl resourceSpans": "the records are the spans, which it lacks",
    "otel-genai/agentic.jsonl resourceSpans[].scopeSpans": "the records are the spans, which it lacks",
    "otel-genai/agentic.jsonl resourceSpans[].scopeSpans[].spans[].attributes[].value.arrayValue.values": _FIGURES,
    "otel-genai/odd.json resourceSpans": "the records are the spans, which it lacks",
    "otel-genai/odd.json resourceSpans[].scopeSpans": "the records are the spans, which it lacks",
    "antigravity/home PLANNER_RESPONSE:tool_calls": _COPY,
    **{f"factory-droid/{name} tags": _FIGURES for name in ("run", "settled")},
    "hermes/database.json usage": _FIGURES,
    "hermes/session.json tools": "the tools that were offered",
    "opencode/second.json messages[].content[].state.metadata.files": _FIGURES,
    "pi/family message:message.content": _COPY,
    "conversation-table/rows.json features": "the columns of the data set",
    "sts/forked.jsonl message:message.timings.agentic.perTurn": _FIGURES,
    "sts/forked.jsonl message:message.timings.agentic.perTurn[].toolCalls": _FIGURES,
    "swe-agent/modern.traj trajectory[].query": "the prompt again, which the history has",
    "swe-agent/modern.traj trajectory[].query[].content": "the prompt again, which the history has",
    "swe-agent/retries attempts[].trajectory[].query": "the prompt again, which the history has",
    "swe-agent/retries history": "the best of several attempts again",
    "swe-agent/retries history[].content": "the best of several attempts again",
    "swe-agent/retries trajectory": "the best of several attempts again",
    "swe-agent/retries trajectory[].query": "the prompt again, which the history has",
    "swival/exported_twice assistant:message.content": _COPY,
    "swival/exported_twice user:message.content": _COPY,
    **{f"tau2-bench/{name} tasks": "what the simulator and the judge are told" for name in ("folder", "whole")},
    "tau2-bench/folder simulation_index": "each simulation again, in short",
    "zed/before.json request_token_usage": _FIGURES,
    "zed/thread.json initial_project_snapshot.worktree_snapshots": _FIGURES,
    **{
        f"vscode-copilot/{place}.result.metadata.renderedUserMessage": "the prompt again, with the context around it"
        for place in ("log.jsonl v[]", "session.json requests[]", "united requests[]")
    },
    **{
        f"vscode-copilot/{place}.message.parts": "the text holds them all"
        for place in ("log.jsonl v[]", "session.json requests[]", "united requests[]")
    },
    **{
        f"vscode-copilot/session.json requests[].result.metadata.toolCallResults.{call}__vscode-1790000000001"
        ".content[].value.node.children": "a part of a rendered prompt without a text"
        for call in ("c1", "c2", "d3", "d6")
    },
    "vscode-copilot/log.jsonl v": _COPY,
    "vscode-copilot/log.jsonl v.metadata.renderedUserMessage": "the prompt again, with the context around it",
    "vscode-copilot/session.json requests[].response[].edits[]": "a change without a text is at no place",
    "vscode-copilot/session.json requests[].variableData.variables": _FIGURES,
    "trail/mended spans[].child_spans[].child_spans[].events": "only exceptions are read of a span's events",
    "trail/mended spans[].logs": "only the task's row is read of them",
}
"""Where an unknown item is silent, and why."""
_WHOLE = [s for s in samples() if not s.name.startswith(("broken", "torn"))]


@pytest.mark.parametrize("sample", _WHOLE, ids=lambda s: s.relative_to(SAMPLES).as_posix())
def test_an_unknown_item_is_told_or_counted(sample: Path, tmp_path: Path) -> None:
    name = f"{sample.relative_to(SAMPLES).as_posix()} "
    silent = {f"{name}{place}" for place in _silent(sample, tmp_path)}
    assert silent == {place for place in _BY_DESIGN if place.startswith(name)}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "claude-code",
            [
                {"type": "assistant", "uuid": "a", "sessionId": "s", "message": {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t", "name": "Read", "input": {}}]}},
                {"type": "user", "uuid": "b", "sessionId": "s", "message": {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": [_ITEM]}]}},
            ],
        ),
        (
            "codex",
            [
                {"type": "session_meta", "payload": {"id": "s"}},
                {"type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": "x"}},
                {"type": "response_item", "payload": {
                    "type": "function_call_output", "call_id": "c", "output": [_ITEM]}},
            ],
        ),
    ],
)  # fmt: skip
def test_an_unknown_block_of_a_tools_result_is_told(name: str, lines: list[Any]) -> None:
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    session = read_one(by_name(name), given(data, name, "a.jsonl"))
    assert [e.text for e in session.events if e.kind == "unknown"] == ["block gangway"]
