"""The traps of Kimi Code's wire files that no sample shows (design/formats.md#kimi-code)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.ingest import pipeline
from tests.formats.reading import format_of, given, lines

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "kimi-code"
T = 1_780_000_000_000
ID = "session_11111111-0000-4000-8000-00000000000{}"
Row = dict[str, Any]


def row(type_: str, at: int = 0, **more: Any) -> Row:
    return {"type": type_, "agentId": "main", **more, "time": T + at * 1000}


def prompt(text: str, at: int = 0, kind: str = "user", type_: str = "turn.prompt", **origin: Any) -> list[Row]:
    """A prompt as it stands in the file: three times."""
    input_, source = [{"type": "text", "text": text}], {"kind": kind, **origin}
    message = {"role": "user", "content": input_, "id": f"m{at}", "origin": source}
    return [
        row(type_, at, input=input_, origin=source, promptId=f"m{at}"),
        row("context.append_message", at, message=message),
        {"type": "agent.message.appended", "message": {"message": message}, "time": T, "kind": "event"},
    ]


def source(rows: list[Row], session: int = 1, agent: str = "main") -> Input:
    head = {"type": "metadata", "protocol_version": "1.5", "created_at": T}
    return given(lines(head, *rows), "kimi-code", f"/k/{ID.format(session)}/agents/{agent}/wire.jsonl")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("turn.prompt")], "kimi-code"),
        ([row("forked"), row("turn.prompt")], "kimi-code"),
        ([], "kimi-code"),
        ([{"timestamp": 1.5, "message": {"type": "TurnBegin", "payload": {}}}], "kimi-cli"),
        ([{"type": "text", "time": 1}], None),
    ],
)
def test_lines_with_dots_are_kimi_code_s(rows: list[Row], expected: str | None) -> None:
    assert format_of(source(rows).data, "w.jsonl") == expected


def test_sessions_say_what_the_scripted_model_sent(tmp_path: Path) -> None:
    """Counted over the file by hand: 5 calls with 137 to 141 fresh tokens and 64 cached, 4 tool calls, one failed."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}")
    _, store = pipeline.ingest_into([str(CORPUS)], tmp_path / "s", jobs=1)
    session = store.session("session_2000d2ae-9258-4fc2-ba6a-406707700677")
    assert [(s.input_tokens, s.cache_read_tokens, s.output_tokens, s.model) for s in session.steps] == [
        (137 + n, 64, 40, "mock-1") for n in range(5)
    ]
    assert [(c.name, c.status, c.exit_code) for c in session.tool_calls] == [
        ("Write", "ok", None),
        ("Read", "ok", None),
        ("Edit", "ok", None),
        ("Bash", "error", 3),
    ]
    assert [t.text for t in session.turns] == ["Write hello.py that prints hello, change it, run it"]
