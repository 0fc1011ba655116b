"""The traps of Qwen Code's chats, one test each (design/formats.md#qwen-code)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentsignals.formats.head import HEAD_BYTES
from agentsignals.formats.qwen_code import FORMAT
from agentsignals.ingest.pipeline import summarize
from agentsignals.model import Session
from agentsignals.store import Store
from agentsignals.store.index import ArtifactEntry, SessionEntry
from tests.formats.reading import format_of, given, lines, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "qwen"


class Chat:
    """The lines of a chat, each with the one before it as its parent."""

    def __init__(self, session_id: str = "s1") -> None:
        self.session_id = session_id
        self.rows: list[dict[str, Any]] = []

    def row(self, type_: str, *parts: dict[str, Any], **more: Any) -> str:
        name = f"u{len(self.rows)}"
        base = {"uuid": name, "parentUuid": self.rows[-1]["uuid"] if self.rows else None, "sessionId": self.session_id}
        message = {"message": {"role": "model" if type_ == "assistant" else "user", "parts": list(parts)}}
        at = {"timestamp": f"2026-05-04T09:00:{len(self.rows):02d}.000Z", "type": type_}
        self.rows.append({**base, **at, "cwd": "/w", "version": "0.15.10", **(message if parts else {}), **more})
        return name

    def system(self, subtype: str, **payload: Any) -> str:
        return self.row("system", subtype=subtype, systemPayload=payload)

    def telemetry(self, name: str, **facts: Any) -> str:
        return self.system("ui_telemetry", uiEvent={"event.name": f"qwen-code.{name}", **facts})

    def read(self) -> Session:
        return read_one(FORMAT, lines(*self.rows))


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


@pytest.mark.parametrize(
    ("status", "response", "expected"),
    [
        ("success", {"output": "Command: x\nExit Code: 3"}, ("error", "exit_nonzero", 3)),
        ("success", {"output": "Command: x\nExit Code: 0"}, ("ok", "done", 0)),
        ("error", {"error": "no such tool"}, ("error", "error_result", None)),
        ("cancelled", {"error": "Reason: User did not allow tool call"}, ("rejected", "refused", None)),
        (None, {"error": "gone"}, ("error", "error_result", None)),
    ],
)
def test_a_result_says_success_of_commands_that_failed(
    status: str | None, response: dict[str, str], expected: tuple[str, str, int | None]
) -> None:
    chat = Chat()
    chat.row("assistant", {"functionCall": {"id": "c", "name": "run_shell_command", "args": {"command": "x"}}})
    answer = {"functionResponse": {"id": "c", "name": "run_shell_command", "response": response}}
    chat.row("tool_result", answer, **({"toolCallResult": {"callId": "c", "status": status}} if status else {}))
    (call,) = chat.read().tool_calls
    assert (call.status, call.outcome, call.exit_code) == expected


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
