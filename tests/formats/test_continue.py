"""The traps of Continue's sessions, one test each (design/formats.md#continue)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Reading
from agentsignals.formats.builder import path_of_uri
from agentsignals.formats.continue_ import FORMAT
from agentsignals.model import SESSION_TOTAL, Session, ToolCall
from tests.formats.reading import format_of, given

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "continue" / "sessions"


def read(*files: object) -> Reading:
    return FORMAT.read([given(file, "continue", str(n)) for n, file in enumerate(files)])


def session(*items: dict[str, Any], **more: Any) -> Session:
    (made,) = read(
        {"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": list(items), **more}
    ).sessions
    return made


def said(text: str, usage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text, **({"usage": usage} if usage else {})}, **more}


def ran(command: str, status: str, text: str, says: str | None = None, tool: str = "Bash") -> ToolCall:
    asked = {"id": "c", "function": {"name": tool, "arguments": json.dumps({"command": command})}}
    shown = {"content": text, **({"status": says} if says else {})}
    state = {"toolCallId": "c", "toolCall": asked, "status": status, "output": [shown]}
    item = said("", toolCallStates=[state])
    item["message"]["toolCalls"] = [asked]
    (call,) = session(item).tool_calls
    return call


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": []}, "continue"),
        ({"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": [{"message": {}}] * 9999}, "continue"),
        ({"sessionId": "s", "workspaceDirectory": "/w", "history": [{"role": "user"}]}, None),
        ({"sessionId": "s", "history": [{"message": {"role": "user"}}]}, None),
        ([{"sessionId": "s", "title": "t", "dateCreated": "1780000000000", "workspaceDirectory": "/w"}], "continue"),
        ([{"sessionId": "s", "title": "t"}], None),
    ],
)
def test_it_asks_for_what_only_continue_writes(document: object, expected: str | None) -> None:
    assert format_of(document) == expected


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"cached_tokens": 64}, (137, 64, None)),
        ({"cached_tokens": 50, "cache_read_tokens": 50, "cache_write_tokens": 10}, (201, 50, 10)),
        (None, (201, None, None)),
    ],
)
def test_cached_tokens_are_inside_the_prompt_on_one_wire_and_beside_it_on_the_other(
    details: dict[str, int] | None, expected: tuple[int | None, ...]
) -> None:
    usage = {"prompt_tokens": 201, "completion_tokens": 40, "prompt_tokens_details": details, "cost_cents": 3}
    (step,) = session(said("a", usage)).steps
    assert (step.input_tokens, step.cache_read_tokens, step.cache_write_tokens) == expected
    assert (step.output_tokens, step.cost_usd) == (40, None)


@pytest.mark.parametrize(
    ("state", "text", "says", "tool", "expected"),
    [
        ("done", "1 failed\n", None, "Bash", ("unknown", None, None)),
        ("done", "out\n\nStderr: warned\n", None, "Bash", ("ok", "done", None)),
        ("done", "\n\n[Command timed out after 1 seconds of no output]", None, "Bash", ("error", "timed_out", None)),
        ("errored", "Error executing tool Bash: Error (exit code 2): no", None, "Bash", ("error", "exit_nonzero", 2)),
        ("canceled", "Permission denied by user", None, "Bash", ("rejected", "refused", None)),
        ("canceled", "Command blocked by security policy", None, "Bash", ("error", "error_result", None)),
        ("canceled", "", None, "Bash", ("cancelled", "cancelled", None)),
        ("calling", "begun", None, "Bash", ("none", None, None)),
        ("done", "1 failed", "Command failed with exit code 1", "run_terminal_command", ("error", "exit_nonzero", 1)),
        ("done", "3 passed", "Command completed", "builtin_run_terminal_command", ("ok", "done", 0)),
        ("done", "text", None, "Read", ("ok", "done", None)),
    ],
)
def test_a_command_failed_where_its_result_says_so_and_else_nobody_knows(
    state: str, text: str, says: str | None, tool: str, expected: tuple[object, ...]
) -> None:
    call = ran("python -m pytest", state, text, says, tool)
    assert (call.status, call.outcome, call.exit_code) == expected


def test_the_extensions_say_a_result_twice() -> None:
    asked = {"id": "c", "function": {"name": "read_file", "arguments": '{"filepath": "/w/a.py"}'}}
    state = {"toolCallId": "c", "toolCall": asked, "status": "done", "output": [{"content": "x"}]}
    again = {"message": {"role": "tool", "content": "x", "toolCallId": "c"}}
    made = session(said("", toolCallStates=[state]), again)
    assert [(c.path, c.status) for c in made.tool_calls] == [("a.py", "ok")]
    assert [e.kind for e in made.events] == ["tool_call", "tool_result"]


@pytest.mark.parametrize(
    ("details", "total", "expected"),
    [
        ({"cached_tokens": 10}, {}, (None, 300, None)),  # what of it came from the cache is not said
        ({"cache_read_tokens": 10}, {"cachedTokens": 4010}, (100, 300, 4000)),
    ],
)
def test_what_a_compaction_took_away_is_a_closing_total(
    details: dict[str, int], total: dict[str, int], expected: tuple[int | None, ...]
) -> None:
    summary = said("All that was.", conversationSummary="All that was.")
    usage = {"prompt_tokens": 30, "completion_tokens": 20, "prompt_tokens_details": details, "model": "m"}
    sums = {"promptTokens": 130, "completionTokens": 320, "promptTokensDetails": total, "totalCost": 9}
    made = session(summary, said("Go on.", usage), usage=sums)
    closing = made.steps[-1]
    assert (closing.input_tokens, closing.output_tokens, closing.cache_read_tokens) == expected
    assert (closing.stop_reason, closing.model, len(made.steps)) == (SESSION_TOTAL, "m", 2)
    assert [e.kind for e in made.events] == ["compaction", "meta", "text", "meta"]
    sums["completionTokens"] = 20
    assert len(session(said("Go on.", usage), usage=sums).steps) == 1


def test_only_the_list_says_when_a_session_began() -> None:
    one = {"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": [said("hi")]}
    entry = {"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "dateCreated": "1780000000000"}
    reading = read(one, [entry, {**entry, "sessionId": "gone"}, 7])
    assert [(s.session_id, s.started_at) for s in reading.sessions] == [("s", 1_780_000_000_000_000)]
    assert read(one, [{**entry, "dateCreated": "yesterday"}]).sessions[0].started_at is None


@pytest.mark.parametrize(
    ("text", "path"),
    [("file:///w/a%20b", "/w/a b"), ("file:///c%3A/w", "c:/w"), ("vscode-remote://x/w", "vscode-remote://x/w")],
)
def test_editors_write_folders_as_addresses(text: str, path: str) -> None:
    assert path_of_uri(text) == path


@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus/native/continue is not there")
def test_what_the_program_wrote_is_what_the_model_sent() -> None:
    """Four calls and an answer; prompts of 201 to 205 tokens with 64 cached, answers of 40 with 8 of reasoning."""
    reading = read(*(path.read_bytes() for path in sorted(CORPUS.iterdir())))
    (made,) = reading.sessions
    assert [s.input_tokens for s in made.steps] == [137, 138, 139, 140, 141]
    assert {(s.output_tokens, s.cache_read_tokens, s.reasoning_tokens) for s in made.steps} == {(40, 64, 8)}
    statuses = {c.name: c.status for c in made.tool_calls}
    assert statuses == {"Write": "ok", "Read": "ok", "Edit": "ok", "Bash": "unknown"}
    assert [(e.op, e.added, e.removed) for e in made.edits] == [("create", 1, 0), ("modify", 1, 1)]
    assert (made.started_at, len(made.turns), made.model) == (1_795_346_452_552_000, 1, "mock-1")
