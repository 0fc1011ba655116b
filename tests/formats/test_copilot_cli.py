"""Copilot CLI, words and tokens: every trap of design/formats.md#copilot-cli."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.copilot_cli import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact
from tests.formats.copilot_events import (
    ID,
    ROW,
    given,
    says,
    start,
    texts,
    user,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def test_snapshots_of_a_session_are_united_by_event_id() -> None:
    rows = [{"id": f"k{n}", **r} for n, r in enumerate([start(), user("a"), says("x", "hi"), user("b"), user("c")])]
    files = [given("early", rows[:3]), given("slice", rows[3:]), given("middle", rows[:4])]
    files[1].session_hint = ID
    (session,) = FORMAT.read(files).sessions
    assert sorted(t.text for t in session.turns) == ["a", "b", "c"]
    assert texts(session, "text") == ["hi"]
    assert sum(f.artifact.record_kinds.get("repeated", 0) for f in files) == 4


@pytest.mark.parametrize(
    ("record", "keys", "beside"),
    [
        (start(), [f"session:{ID}"], False),
        (user("x"), [], True),
        ({"type": "session_start", "data": {}, "parentId": None}, None, False),
        ({"type": "session", "id": "x", "parentId": None}, None, False),
        ({"type": "user.message", "data": "x", "parentId": None}, None, False),
    ],
)
def test_events_are_recognised_by_their_envelope(record: ROW, keys: list[str] | None, beside: bool) -> None:
    claim = FORMAT.claims(Head(json.dumps(record).encode() + b"\n", "x", True))
    assert (claim.keys if claim else None, claim.by_folder if claim else False) == (keys, beside)


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_sessions_have_the_figures_counted_another_way() -> None:
    """Counted with plain json; the collector recorded the same tokens of the ten sessions that shut down."""
    totals = dict.fromkeys(("turns", "steps", "calls", "output", "prompt", "failed", "edits"), 0)
    recorded = 0
    for path in sorted(CORPUS.glob("sessions/copilot-cli/*/*/transcript.jsonl")):
        data = path.read_bytes()
        claimed = identify(Head(data[:HEAD_BYTES], path.name, len(data) <= HEAD_BYTES))
        assert claimed is not None and claimed[0] is FORMAT
        artifact = Artifact(
            artifact_id=path.name, source="corpus", path=path.name, format="copilot-cli", sha256="", bytes=len(data)
        )
        (session,) = FORMAT.read([Input(data, artifact)]).sessions
        got = {
            "turns": len(session.turns),
            "steps": len(session.steps),
            "calls": len(session.tool_calls),
            "output": sum(s.output_tokens or 0 for s in session.steps),
            "prompt": sum((s.input_tokens or 0) + (s.cache_read_tokens or 0) for s in session.steps),
            "failed": sum(c.status == "error" for c in session.tool_calls),
            "edits": sum(e.via == "edit_tool" for e in session.edits),
        }
        assert got == count(data), path.parent.name
        assert (artifact.skipped, texts(session, "unknown")) == (0, [])
        totals = {key: totals[key] + n for key, n in got.items()}
        theirs = json.loads((path.parent / "entire.metadata.json").read_text())["token_usage"]
        recorded += theirs["input_tokens"] == got["prompt"] > 0 and theirs["output_tokens"] == got["output"]
    assert totals == {
        "turns": 6, "steps": 120, "calls": 129, "output": 62143, "prompt": 100640, "failed": 5, "edits": 12,
    }  # fmt: skip
    assert recorded == 7, "three of the ten shut down without any figure"


def count(data: bytes) -> dict[str, int]:
    """A second road to the same figures."""
    events = [json.loads(line) for line in data.splitlines()]
    by_type: dict[str, list[ROW]] = {}
    for one_event in events:
        by_type.setdefault(one_event["type"], []).append(one_event["data"])
    completed = by_type.get("tool.execution_complete", [])
    results = [c.get("result") or {} for c in completed]
    models = [m["usage"] for s in by_type.get("session.shutdown", []) for m in s["modelMetrics"].values()]
    ends = [r.get("content", "")[-60:] for r in results]
    names = {b["toolCallId"]: b["toolName"] for b in by_type.get("tool.execution_start", [])}
    changed = [c["result"]["detailedContent"] for c in completed if names[c["toolCallId"]] in ("edit", "create")]
    return {
        "turns": sum(not d["content"].startswith("[[ ## ") for d in by_type["user.message"]),
        "steps": len(by_type["assistant.message"]),
        "calls": len(names),
        "output": sum(m["outputTokens"] for m in by_type["assistant.message"]),
        "prompt": sum(u["inputTokens"] for u in models),
        "failed": sum("with exit code" in e and not e.endswith("code 0>") for e in ends)
        + sum(not c["success"] for c in completed),
        "edits": sum(text.count("\n@@ -") for text in changed),
    }
