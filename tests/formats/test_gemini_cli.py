"""The traps of Gemini CLI chat files that no sample shows (design/formats.md#gemini-cli)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from agentsignals.formats.gemini_cli import FORMAT
from tests.formats.reading import read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "gemini-cli"


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_the_corpus_reads_as_the_raw_messages_and_entire_count_it() -> None:
    found: Counter[str] = Counter()
    for path in sorted(CORPUS.glob("*/*/transcript.json")):
        data = path.read_bytes()
        session = read_one(FORMAT, data)
        raw = json.loads(data)
        used = [m["tokens"] for m in raw["messages"] if m.get("tokens")]
        assert len(session.steps) == len(used)
        fresh = sum(s.input_tokens or 0 for s in session.steps) + sum(s.cache_read_tokens or 0 for s in session.steps)
        assert fresh + sum(s.output_tokens or 0 for s in session.steps) == sum(t["total"] for t in used)
        recorded = json.loads((path.parent / "entire.metadata.json").read_bytes())["token_usage"]
        # Entire keeps cached tokens inside the input and leaves thoughts out of the output
        if recorded["api_call_count"] == len(used):
            assert fresh == recorded["input_tokens"]
            thoughts = sum(s.reasoning_tokens or 0 for s in session.steps)
            assert sum(s.output_tokens or 0 for s in session.steps) - thoughts == recorded["output_tokens"]
            found["as Entire counted"] += 1
        assert hashlib.sha256((session.cwd or "").encode()).hexdigest() == raw["projectHash"]
        calls = [c for m in raw["messages"] for c in m.get("toolCalls", ())]
        shown_edits = [c for c in calls if "diffStat" in (c.get("resultDisplay") or ())]
        stats = [c["resultDisplay"]["diffStat"] for c in shown_edits]
        by_tool = [e for e in session.edits if e.via == "edit_tool"]
        assert len(by_tool) == sum(c["resultDisplay"]["fileDiff"].count("\n@@ ") for c in shown_edits)
        assert sum(e.added or 0 for e in by_tool) == sum(s["model_added_lines"] for s in stats)
        assert sum(e.removed or 0 for e in by_tool) == sum(s["model_removed_lines"] for s in stats)
        found.update(e.kind for e in session.events if e.kind in ("interrupt", "unknown"))
        found.update(c.status for c in session.tool_calls)
        found.update(sessions=1, turns=len(session.turns), steps=len(session.steps), edits=len(by_tool))
    assert found == {
        "sessions": 4,
        "as Entire counted": 3,
        "turns": 11,
        "steps": 60,
        "ok": 57,
        "cancelled": 1,
        "rejected": 1,
        "interrupt": 2,
        "edits": 18,
    }
