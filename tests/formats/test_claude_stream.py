"""The traps of Claude Code's headless stream, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_stream import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import Artifact
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.claude import SESSION, Log
from tests.formats import reading

OPUS, HAIKU = "claude-opus-4-6", "claude-haiku-4-5-20251001"
Row = dict[str, Any]
INIT = {
    "type": "system", "subtype": "init", "session_id": SESSION, "uuid": "i", "cwd": "/srv/shop", "model": OPUS,
    "claude_code_version": "2.1.59", "tools": ["Bash"],
}  # fmt: skip


def assistant(uuid: str, *blocks: Row, id_: str = "m1", **facts: Any) -> Row:
    message = {"id": id_, "model": facts.pop("model", OPUS), "role": "assistant", "content": list(blocks)}
    message |= {"stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    return {
        "type": "assistant",
        "message": message,
        "session_id": SESSION,
        "uuid": uuid,
        "parent_tool_use_id": None,
    } | facts


def text(words: str) -> Row:
    return {"type": "text", "text": words}


def result(**facts: Any) -> Row:
    told = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "ok", "uuid": "r"}
    return {**told, "session_id": SESSION, **facts}


def given(*rows: Row | str, name: str = "a") -> Input:
    return reading.given(reading.lines(*rows), "claude-stream", name)


@pytest.mark.parametrize("first", [b"[[[[", b"[]", b"[5]", b"{", b'{"type": "sys', b"\xff"])
def test_a_broken_first_line_costs_itself(first: bytes) -> None:
    rows = [INIT, assistant("a", text("hi")), result()]
    data = b"\n".join([first, *(json.dumps(row).encode() for row in rows)]) + b"\n"
    artifact = Artifact(artifact_id="a", source="t", path="a", format="claude-stream", sha256="", bytes=len(data))
    (session,) = FORMAT.read([Input(data, artifact)]).sessions
    assert [e.kind for e in session.events] == ["text", "meta"]
    assert (artifact.records, artifact.skipped) == (4, 1)


def test_a_transcript_of_the_same_run_is_believed_and_nothing_counts_twice(tmp_path: Path) -> None:
    log = Log()
    log.user("fix it")
    log.say("done")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "t.jsonl").write_bytes(log.data())
    (tmp_path / "in" / "out.txt").write_bytes(given(INIT, assistant("a", text("done")), result()).data)
    summary = pipeline.analyze([str(tmp_path / "in")], tmp_path / "store")
    assert (summary.sessions, summary.prompts) == (1, 1)
    _, found = asked(Store(tmp_path / "store"), "SELECT format FROM sessions")
    assert found == [("claude-code",)]
