"""The traps of Qwen Code's chats, one test each (design/formats.md#qwen-code)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentsignals.formats.head import HEAD_BYTES
from agentsignals.formats.qwen_code import FORMAT
from agentsignals.ingest.pipeline import summarize
from agentsignals.store import Store
from agentsignals.store.index import ArtifactEntry, SessionEntry
from tests.formats.reading import format_of, given, lines

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "qwen"


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def claimant(*rows: object) -> str | None:
    return format_of(lines(*rows))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"type": "user", "message": {"role": "user", "parts": [text("hi")]}}, "qwen-code"),
        ({"type": "user", "message": {"role": "user", "parts": [text("hi" * HEAD_BYTES)]}}, "qwen-code"),
        ({"type": "system", "subtype": "custom_title", "systemPayload": {}}, "qwen-code"),
        ({"type": "user", "message": {"role": "user", "content": "hi"}}, "claude-code"),
        ({"isSidechain": False, "type": "user", "message": {"role": "user", "content": "hi" * HEAD_BYTES}}, None),
        ({"type": "user", "message": {"role": "user", "words": "hi"}}, None),
    ],
)
def test_each_asks_for_what_only_it_writes(more: dict[str, Any], expected: str | None) -> None:
    """`parentUuid` and `sessionId` have several agents: Qwen's chats were Claude Code's sessions without a turn."""
    head = {"uuid": "u1", "parentUuid": None, "sessionId": "s1", "timestamp": "2026-05-04T09:00:00.000Z"}
    assert claimant({**head, **more}) == expected


@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus/native/qwen is not there")
def test_what_the_agent_itself_wrote_is_read_whole() -> None:
    files = sorted(CORPUS.rglob("*.jsonl"))
    inputs = [given(f.read_bytes(), "qwen-code", f.name) for f in files]
    sessions = FORMAT.read(inputs).sessions
    assert [i.artifact.skipped for i in inputs] == [0, 0]
    assert not [e for s in sessions for e in s.events if e.kind == "unknown"]
    assert [(len(s.turns), len(s.tool_calls), len(s.edits)) for s in sessions] == [(1, 4, 2), (2, 2, 0)]
    # The scripted model sent 200+n prompt tokens with 64 cached, and 40 of output: of each call n of a session.
    for session in sessions:
        assert [s.input_tokens for s in session.steps] == [137 + n for n in range(len(session.steps))]
        assert {(s.output_tokens, s.cache_read_tokens) for s in session.steps} == {(40, 64)}


def test_sessions_in_which_nobody_says_anything_are_named(tmp_path: Path) -> None:
    """So a file that was taken for another agent's is seen; one that was not measured yet is not called silent."""
    store = Store(tmp_path, create=True)
    figures: dict[str, Any] = dict.fromkeys(SessionEntry.__struct_fields__)
    for name, facts in {
        "silent": {"n_turns": 0, "n_tool_calls": 0},
        "asked": {"n_turns": 1, "n_tool_calls": 0},
        "works": {"n_turns": 0, "n_tool_calls": 2},
        "paid": {"n_turns": 0, "n_tool_calls": 0, "output_tokens": 3},
        "unmeasured": {},
        "attempt": {"n_turns": 0, "n_tool_calls": 0, "context": "eval"},
    }.items():
        session = {**figures, "shard": "1", "group": name, "context": "product", **facts}
        store.manifest.sessions[name] = SessionEntry(**session)
        store.manifest.files[name] = ArtifactEntry(
            source="local", spec=name, bytes=1, stamp=1, container="", key="", session_hint=None, repo_hint=None,
            format="claude-code", parser=1, group=name, keys=[], shard="1",
        )  # fmt: skip
    collected = replace(store.manifest.files["silent"], format="entire")  # what a collector kept beside the agent's own
    store.manifest.files["collected"] = collected
    store.save()
    summary = summarize(store, set(store.manifest.files))
    assert summary.silent_sessions == {"claude-code": 1}
