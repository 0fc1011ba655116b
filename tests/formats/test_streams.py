"""What a program prints while it runs, and the log that it keeps of the same run (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.claude_form import CLAUDE_STREAM_FORMAT as FORMAT
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.claude import SESSION, Log
from tests.formats.reading import given, lines

THREAD, AT = "019f3661-0000-7000-8000-000000000001", "2026-05-02T09:00:00.000Z"
CLAUDE: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": SESSION, "uuid": "i", "cwd": "/srv/shop", "model": "m"},
    {"type": "assistant", "session_id": SESSION, "uuid": "a", "message": {
        "id": "m1", "model": "m", "role": "assistant", "content": [{"type": "text", "text": "done"}]}},
    {"type": "result", "subtype": "success", "is_error": False, "session_id": SESSION, "uuid": "r"},
]  # fmt: skip
CODEX: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": THREAD},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_9", "type": "agent_message", "text": "done"}},
    {"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 0, "output_tokens": 1}},
]
ROLLOUT: list[dict[str, Any]] = [
    {"timestamp": AT, "type": "session_meta", "payload": {"id": THREAD, "timestamp": AT, "cwd": "/r"}},
    {"timestamp": AT, "type": "event_msg", "payload": {"type": "user_message", "message": "go"}},
]


def transcript() -> bytes:
    log = Log()
    log.user("fix it")
    log.say("done")
    return log.data()


@pytest.mark.parametrize(
    ("log", "printed", "believed"),
    [(transcript(), lines(*CLAUDE), "claude-code"), (lines(*ROLLOUT), lines(*CODEX), "codex")],
    ids=["claude", "codex"],
)
def test_one_session_was_printed_and_logged(log: bytes, printed: bytes, believed: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(log)
    (tmp_path / "in" / "out.txt").write_bytes(printed)
    summary = pipeline.analyze([str(tmp_path / "in")], tmp_path / "store")
    assert (summary.sessions, summary.prompts) == (1, 1)
    assert asked(Store(tmp_path / "store"), "SELECT format FROM sessions")[1] == [(believed,)]


@pytest.mark.parametrize("first", [b"[[[[", b"[]", b"[5]", b"{", b'{"type": "sys', b"\xff"])
def test_a_broken_first_line_costs_itself(first: bytes) -> None:
    source = given(b"\n".join([first, *(json.dumps(row).encode() for row in CLAUDE)]) + b"\n", "claude-stream")
    (session,) = FORMAT.read([source]).sessions
    assert [e.kind for e in session.events] == ["text", "meta"]
    assert (source.artifact.records, source.artifact.skipped) == (4, 1)
