"""The traps of Amp's threads, one test each (design/formats.md#amp)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.amp import FORMAT
from agentsignals.model import Session, ToolCall
from tests.formats.reading import format_of, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "amp"
ID = "T-019e0000-0000-7000-8000-000000000009"


def read(document: dict[str, Any]) -> Session:
    return read_one(FORMAT, document)


def thread(*messages: dict[str, Any], **more: Any) -> Session:
    return read({"v": 1, "id": ID, "created": 1_780_000_000_000, "messages": list(messages), **more})


def asked(**usage: Any) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"cmd": "make"}}
    return {"role": "assistant", "messageId": 1, "content": [call], "usage": usage, "state": {"type": "complete"}}


def came(**run: Any) -> dict[str, Any]:
    return {"role": "user", "messageId": 2, "content": [{"type": "tool_result", "toolUseID": "c", "run": run}]}


def call_of(session: Session) -> ToolCall:
    return next(call for call in session.tool_calls if call.call_id == "c")


@pytest.mark.parametrize(
    ("more", "expected"),
    [({}, "amp"), ({"messages": [{}] * 40_000}, "amp"), ({"id": "t-1"}, None), ({"v": "1"}, None), ({"v": None}, None)],
)
def test_it_asks_for_what_only_amp_writes(more: dict[str, Any], expected: str | None) -> None:
    assert format_of({"v": 1, "id": ID, "created": 1, "messages": [], **more}) == expected


@pytest.mark.parametrize(
    ("model", "fresh", "written", "expected"),
    [
        ("claude-opus-4-6", 3, 1619, (3, 1619)),
        ("claude-opus-4-6", 0, 1619, (0, 1619)),
        ("gpt-5.2", 0, 700, (700, None)),  # nothing is written to the cache there for money
        (None, 0, 137, (137, None)),  # of 201 that were sent with 64 cached; who answered is not said
        ("gpt-5.2", 12, 0, (12, 0)),
    ],
)
def test_only_anthropics_input_is_called_so(
    model: str | None, fresh: int, written: int, expected: tuple[int, int | None]
) -> None:
    usage = {"model": model, "inputTokens": fresh, "cacheCreationInputTokens": written, "cacheReadInputTokens": 50}
    (step,) = thread(asked(**usage, outputTokens=30)).steps
    assert (step.input_tokens, step.cache_write_tokens) == expected
    assert (step.cache_read_tokens, step.output_tokens) == (50, 30)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"status": "done", "result": {"output": "", "exitCode": 0}}, ("ok", "done", 0)),
        ({"status": "done", "result": {"output": "", "exitCode": 3}}, ("error", "exit_nonzero", 3)),
        (
            {"status": "done", "result": {"exitCode": -1, "stopCode": "inactivity", "stopReason": "Command timed out"}},
            ("error", "timed_out", None),
        ),
        ({"status": "done", "result": {"exitCode": -1, "stopCode": "user-stop"}}, ("cancelled", "cancelled", None)),
        ({"status": "error", "error": {"message": "File not found"}}, ("error", "error_result", None)),
        ({"status": "rejected-by-user", "reason": "no"}, ("rejected", "refused", None)),
        ({"status": "cancelled"}, ("cancelled", "cancelled", None)),
        ({"status": "in-progress"}, ("none", None, None)),
        ({"status": "blocked-on-user"}, ("none", None, None)),
    ],
)
def test_done_says_nothing_of_a_commands_end(run: dict[str, Any], expected: tuple[object, ...]) -> None:
    call = call_of(thread(asked(), came(**run)))
    assert (call.status, call.outcome, call.exit_code) == expected


@pytest.mark.parametrize("result", [["No results found."], []])
def test_a_search_without_a_hit_says_so_in_a_list(result: list[str]) -> None:
    message = asked()
    message["content"][0]["name"] = "glob"
    assert call_of(thread(message, came(status="done", result=result))).outcome == "nothing_found"


@pytest.mark.parametrize(("n_calls", "expected"), [(1, 1_780_000_001_000_000), (2, None)])
def test_the_time_of_a_batch_is_that_of_a_call_which_is_all_of_it(n_calls: int, expected: int | None) -> None:
    message = asked(timestamp="2026-05-28T20:26:40.000Z")
    message["content"] = message["content"][:1] + [{**message["content"][0], "id": "d"}] * (n_calls - 1)
    trace = {"name": "tools", "context": {"messageId": 1}, "endTime": "2026-05-28T20:26:41.000Z"}
    made = thread(message, came(status="done", result="x"), meta={"traces": [trace]})
    assert call_of(made).ended_at == expected


@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus/native/amp is not there")
def test_a_real_thread_is_read_whole() -> None:
    made = read(json.loads(next(CORPUS.glob("T-*.json")).read_text("utf-8")))
    assert (made.repo, made.branch, made.started_at) == ("user/testing-git", "master", 1_772_241_173_221_000)
    assert (len(made.turns), len(made.tool_calls), [s.output_tokens for s in made.steps]) == (1, 4, [239, 71, 245])
    # Each call's total is the sum of the three kinds of input.
    kinds = [(s.input_tokens, s.cache_write_tokens, s.cache_read_tokens) for s in made.steps]
    assert [sum(n or 0 for n in three) for three in kinds] == [14_870, 15_897, 16_208]
    assert not [e for e in made.events if e.kind == "unknown"]
