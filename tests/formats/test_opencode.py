"""The traps of OpenCode exports, one test each (design/formats.md#opencode)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.opencode import FORMAT
from agentsignals.model import Session
from tests.formats.reading import read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "opencode"
START = 1_775_000_000_000
ZERO = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def text(words: str, **facts: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **facts}


def tool(
    name: str, given: dict[str, Any], status: str = "completed", call_id: str = "call_1", **state: Any
) -> dict[str, Any]:
    run = {"status": status, "input": given, "time": {"start": START + 1, "end": START + 2}, **state}
    return {"type": "tool", "callID": call_id, "tool": name, "state": run}


def user(*parts: dict[str, Any], at: int = 0, **facts: Any) -> dict[str, Any]:
    info = {"role": "user", "id": "msg_u", "time": {"created": START + at}, "agent": "build", **facts}
    return {"info": info, "parts": list(parts)}


def agent(*parts: dict[str, Any], at: int = 10, **facts: Any) -> dict[str, Any]:
    time = {"created": START + at, "completed": START + at + 5}
    info = {"role": "assistant", "id": f"msg_{at}", "time": time, "modelID": "m-1", "cost": 0, "tokens": ZERO, **facts}
    return {"info": info, "parts": [{"type": "step-start"}, *parts]}


def read(*messages: Any, **info: Any) -> Session:
    about = {"id": "ses_1", "directory": "/w", "version": "1.2.20", **info}
    return read_one(FORMAT, {"info": about, "messages": messages})


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_the_corpus_reads_as_entire_counted_it() -> None:
    """Steps and tokens are those Entire recorded beside each transcript; files and lines stand in the raw JSON."""
    found: Counter[str] = Counter()
    for path in sorted(CORPUS.glob("*/*/transcript.json")):
        data = path.read_bytes()
        session = read_one(FORMAT, data)
        raw = json.loads(data)
        recorded = json.loads((path.parent / "entire.metadata.json").read_bytes())["token_usage"]
        assert len(session.steps) == recorded["api_call_count"]
        assert sum(s.input_tokens or 0 for s in session.steps) == recorded["input_tokens"]
        assert sum(s.output_tokens or 0 for s in session.steps) == recorded["output_tokens"]
        assert sum(s.cache_read_tokens or 0 for s in session.steps) == recorded["cache_read_tokens"]
        tools = [p for m in raw["messages"] for p in m["parts"] if p["type"] == "tool"]
        files = [f for p in tools for f in p["state"].get("metadata", {}).get("files", ())]
        by_tool = [e for e in session.edits if e.via == "edit_tool"]
        assert sum(e.added or 0 for e in by_tool) == sum(f["additions"] for f in files)
        gone = sum(f["type"] == "delete" for f in files)  # the client counts what follows the last newline as a line
        assert sum(e.removed or 0 for e in by_tool) == sum(f["deletions"] for f in files) - gone
        assert [c.exit_code for c in session.tool_calls if c.name == "bash"] == [
            p["state"]["metadata"].get("exit") for p in tools if p["tool"] == "bash"
        ]
        assert {e.path for e in by_tool} == {f["relativePath"] for f in files}
        found.update(sessions=1, turns=len(session.turns), calls=len(session.tool_calls), steps=len(session.steps))
        found["subagents"] += session.parent_session_id is not None
        found["failed"] += sum(c.status == "error" for c in session.tool_calls)
        found["exit_not_zero"] += sum(bool(c.exit_code) for c in session.tool_calls)
    assert found == {
        "sessions": 35,
        "subagents": 22,
        "turns": 17,
        "steps": 429,
        "calls": 786,
        "failed": 10,
        "exit_not_zero": 5,
    }
