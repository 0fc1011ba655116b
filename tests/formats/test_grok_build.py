"""The traps of Grok Build's sessions, one test each (design/formats.md#grok-build)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import identify
from agentsignals.formats.grok_build import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.unknown import unread_file
from agentsignals.model import Session
from tests.formats.reading import claimed, given, read_one

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


def read(*files: bytes) -> Session:
    return read_one(FORMAT, *(given(file, "grok-build", f"f{n}") for n, file in enumerate(files)))


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


def test_a_model_call_is_told_by_when_its_answer_began() -> None:
    log = Log()
    log.asks("go")
    log.says("hm", 10, "agent_thought_chunk")
    log.says("I lo", 10)
    log.says("ok.", 10)
    log.call("read_file", 10, target_file="/work/shop/a.py")
    log.result("text")
    log.says("Now this.", 20)
    log.says("Done.", 30)
    log.completed(1221, 240, 384)
    session = read(log.data(), summary())
    assert [e.text for e in session.events if e.kind in ("thinking", "text")] == ["hm", "I look.", "Now this.", "Done."]
    *calls, closing = session.steps
    assert [(step.step, step.turn) for step in calls] == [(0, 0), (1, 0), (2, 0)]
    assert (closing.input_tokens, closing.cache_read_tokens, closing.output_tokens) == (837, 384, 240)
    assert (closing.stop_reason, closing.reasoning_tokens, closing.model) == ("session_total", 8, "toy")
    assert (session.tool_calls[0].path, session.cwd, session.branch, session.title) == (
        *("a.py", "/work/shop"),
        *("main", "The cart"),
    )


@pytest.mark.parametrize(
    ("words", "status", "output", "expected"),
    [
        ("x", "completed", {"type": "Bash", "exit_code": 3}, ("error", "exit_nonzero", 3)),
        ("x", "completed", {"type": "Bash", "exit_code": 0, "timed_out": False}, ("ok", "done", 0)),
        ("", "completed", {"type": "Bash", "timed_out": True, "exit_code": 124}, ("error", "timed_out", 124)),
        ("Tool not found", "failed", {}, ("error", "error_result", None)),
        ("stopped", "cancelled", {}, ("cancelled", "cancelled", None)),
        ("x", "in_progress", {}, ("none", None, None)),
        ("x", None, {}, ("none", None, None)),
    ],
)
def test_how_calls_end(words: str, status: str | None, output: dict[str, Any], expected: tuple[Any, ...]) -> None:
    log = Log()
    log.call("run_terminal_command", 10, command="make")
    log.result(words, status, **output)
    (call,) = read(log.data()).tool_calls
    assert (call.status, call.outcome, call.exit_code) == expected


def test_a_search_that_found_nothing_has_not_failed() -> None:
    log = Log()
    log.call("grep", 10, pattern="zzz")
    log.result("found 0 matches", type="GrepSearch", exit_code=1, match_count=0)
    (call,) = read(log.data()).tool_calls
    assert (call.status, call.outcome, call.exit_code) == ("ok", "nothing_found", None)


@pytest.mark.parametrize(
    ("old", "new", "place", "edit"),
    [
        ("", "a\nb\n", None, ("create", 1, 2, 2, 0)),
        ("b", "b\nc", {"old_string": "b", "new_string": "b\nc", "old_line": 4, "new_line": 4}, ("modify", 4, 5, 2, 1)),
        ("b", "c", None, ("modify", None, None, None, None)),
    ],
)
def test_edits(old: str, new: str, place: dict[str, Any] | None, edit: tuple[Any, ...]) -> None:
    log = Log()
    log.call("search_replace", 10, file_path="/work/shop/a.py", old_string=old, new_string=new)
    change = {"type": "diff", "path": "/work/shop/a.py", "oldText": old, "newText": new}
    change |= {"_meta": {"details": [place]}} if place else {}
    log.update("tool_call_update", toolCallId="c1", status="completed", content=[change])
    (made,) = read(log.data(), summary()).edits
    assert (made.path, made.op, made.start_line, made.end_line, made.added, made.removed) == ("a.py", *edit)


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        (None, [("prompt", "go on"), ("queued_prompt", "be quick"), ("prompt", "and?")]),
        ("headless", [("scripted_prompt", words) for words in ("go on", "be quick", "and?")]),
        ("subagent", []),
    ],
)
def test_whose_words_they_are(kind: str | None, turns: list[tuple[str, str]]) -> None:
    log = Log()
    log.asks("go ")
    log.asks("on")
    log.says("At it.", 10)
    log.asks("be quick", 1)
    log.completed(10, 1, 0)
    log.asks("and?", 2)
    log.update("rumour")
    session = read(log.data(), summary(session_kind=kind))
    assert [(turn.kind, turn.text) for turn in session.turns] == turns
    assert session.events[-1].kind == "unknown"


def test_tokens_that_are_not_told_are_absent() -> None:
    log = Log()
    log.asks("go")
    log.update("turn_completed", usage={"outputTokens": 40})
    (step,) = read(log.data()).steps
    assert (step.input_tokens, step.output_tokens, step.cache_read_tokens) == (None, 40, None)


def test_a_copy_counts_once_and_ids_begin_anew_with_a_resume() -> None:
    log = Log()
    log.asks("go")
    log.says("Done.", 10)
    before = log.data()
    log.asks("again", 1)
    log.rows[-1]["params"]["_meta"]["eventId"] = f"{ID}-0"
    assert [turn.text for turn in read(log.data(), before).turns] == ["go", "again"]


def test_what_the_model_is_sent_is_named() -> None:
    rows = [{"type": "system", "content": "You are"}, {"type": "user", "content": [], "prompt_index": 0}]
    head = Head("".join(f"{json.dumps(row)}\n" for row in rows).encode(), "chat_history.jsonl", complete=True)
    named = unread_file(head)
    assert identify(head) is None
    assert named is not None
    assert (named.name, named.reason) == ("grok-build", "not_sessions")
