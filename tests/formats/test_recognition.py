"""Which format claims a file, by which keys: each asks for what only its agent writes (design/formats.md#recognition).

What real sessions of an agent hold is counted here too, where nothing else of its format is left to ask.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentsignals.formats import identify, opencode, pi
from agentsignals.formats.builder import path_of_uri
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.ingest import pipeline
from agentsignals.ingest.pipeline import summarize
from agentsignals.model import Session
from agentsignals.store import Store
from agentsignals.store.index import ArtifactEntry, SessionEntry
from tests.claude import SESSION, Log
from tests.formats.codex_rows import ID, ROW, meta, prompt
from tests.formats.pi_entries import at, entry, header, user
from tests.formats.reading import claimed, format_of, given, lines
from tests.quick import each_row

NATIVE = Path(__file__).parents[3] / "shared" / "corpus" / "native"
AMP = {"v": 1, "id": "T-019e0000-0000-7000-8000-000000000009", "created": 1, "messages": []}
CONTINUE = {"sessionId": "s", "title": "t", "workspaceDirectory": "/w"}
QWEN = {"uuid": "u1", "parentUuid": None, "sessionId": "s1", "timestamp": "2026-05-04T09:00:00.000Z", "type": "user"}
GEMINI = {"sessionId": "s", "projectHash": "h"}
KIMI_CODE = {"type": "metadata", "protocol_version": "1.5", "created_at": 1_780_000_000_000}
KIMI_CLI = {"timestamp": 1_780_000_000.5, "message": {"type": "TurnBegin", "payload": {"user_input": "go"}}}
OPENHANDS = {"id": "a", "timestamp": "2026-01-01", "source": "agent", "kind": "MessageEvent"}
EVENT = "3f0c6f0e9a1b4c5d8e7f60718293a4b5/events/event-00001-0000000a-0000.json"


def said(**message: Any) -> dict[str, Any]:
    return {**QWEN, "message": {"role": "user", **message}}


@each_row(("content", "path", "expected"), [
        (AMP, "x", "amp"),
        ({**AMP, "messages": [{}] * 40_000}, "x", "amp"),
        ({**AMP, "id": "t-1"}, "x", None),
        ({**AMP, "v": "1"}, "x", None),
        ({**AMP, "v": None}, "x", None),
        ({**CONTINUE, "history": []}, "x", "continue"),
        ({**CONTINUE, "history": [{"message": {}}] * 9999}, "x", "continue"),
        ({"sessionId": "s", "workspaceDirectory": "/w", "history": [{"role": "user"}]}, "x", None),
        ({"sessionId": "s", "history": [{"message": {"role": "user"}}]}, "x", None),
        ([{**CONTINUE, "dateCreated": "1780000000000"}], "x", "continue"),
        ([{"sessionId": "s", "title": "t"}], "x", None),
        # `parentUuid` and `sessionId` have several agents: Qwen's chats were Claude Code's sessions without a turn.
        (lines(said(parts=[{"text": "hi"}])), "x", "qwen-code"),
        (lines(said(parts=[{"text": "hi" * HEAD_BYTES}])), "x", "qwen-code"),
        (lines({**QWEN, "type": "system", "subtype": "custom_title", "systemPayload": {}}), "x", "qwen-code"),
        (lines(said(content="hi")), "x", "claude-code"),
        (lines({**said(content="hi" * HEAD_BYTES), "isSidechain": False}), "x", None),
        (lines(said(words="hi")), "x", None),
        ({**GEMINI, "messages": []}, "chat.json", "gemini-cli"),
        (lines({**GEMINI, "startTime": "t", "kind": "main"}, {"id": "m", "type": "user"}), "chat.json", "gemini-cli"),
        (lines(GEMINI, {"id": "m", "type": "user"}), "chat.json", None),
        ({"sessionId": "s", "messages": []}, "chat.json", None),
        ({**GEMINI, "sessionId": "", "messages": []}, "chat.json", None),
        (lines({"type": "metadata", "protocol_version": "1.9"}, KIMI_CLI), "w.jsonl", "kimi-cli"),
        (lines(KIMI_CLI), "w.jsonl", "kimi-cli"),
        (lines({"timestamp": 1.5, "message": {"type": "x", "text": "y"}}), "w.jsonl", None),
        (lines({"timestamp": "2026-01-01", "message": {"type": "x", "payload": {}}}), "w.jsonl", None),
        (lines(KIMI_CODE, {"type": "turn.prompt", "time": 1}), "w.jsonl", "kimi-code"),
        (lines(KIMI_CODE, {"type": "forked", "time": 1}, {"type": "turn.prompt", "time": 1}), "w.jsonl", "kimi-code"),
        (lines(KIMI_CODE), "w.jsonl", "kimi-code"),
        (lines(KIMI_CODE, KIMI_CLI), "w.jsonl", "kimi-cli"),
        (lines(KIMI_CODE, {"type": "text", "time": 1}), "w.jsonl", None),
        (OPENHANDS, EVENT, "openhands"),
        ({**OPENHANDS, "source": "sensor"}, EVENT, None),
        ({**OPENHANDS, "id": 1}, EVENT, None),
        ({"id": "a", "timestamp": "2026-01-01", "source": "agent", "type": "message"}, EVENT, None),
        ({"id": "a", "agent": {"llm": {}}, "stats": {}}, EVENT, None),
        (lines({"type": "session_meta", "id": "x", "timestamp": "2026-03-01"}), "x", None),
        (lines({"type": "session", "payload": {}, "timestamp": "2026-03-01"}), "x", None),
        (lines({"type": "event_msg", "payload": "x", "timestamp": "2026-03-01"}), "x", None),
        (lines({"type": "event_msg", "payload": {}}), "x", None),
    ])  # fmt: skip
def test_each_asks_for_what_only_its_agent_writes(content: Any, path: str, expected: str | None) -> None:
    assert format_of(content, path) == expected


def test_a_first_record_longer_than_the_window_is_recognised() -> None:
    log = Log()
    log.user([{"type": "image", "source": {"data": "x" * 200_000}}])
    long = lines(meta(base_instructions={"text": "long " * HEAD_BYTES}), prompt("a"))
    assert claimed(log.data()) == ("claude-code", [f"session:{SESSION}"])
    assert claimed(long) == ("codex", [f"session:{ID}"])


@pytest.mark.parametrize(
    ("first", "is_pi"),
    [
        (header(), True),
        ({k: v for k, v in header().items() if k != "version"}, True),  # v1
        (header(harness="llama.app"), False),  # HF STS
        ({"type": "session", "id": "s1", "timestamp": at(0)}, False),
        ({**header(), "type": "session.start", "data": {}}, False),  # Copilot CLI
        ({**header(), "type": "session_start", "owner": "me"}, False),  # Factory Droid
    ],
)
def test_a_session_header_with_a_folder_and_no_harness_is_pis(first: ROW, is_pi: bool) -> None:
    data = lines(first, entry("e0", None, 1, **user("hi")))
    assert (pi.FORMAT.claims(Head(data, "x.jsonl", True)) is not None) is is_pi


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({"info": {"id": "ses_a"}, "messages": []}, ["session:ses_a"]),
        ({"info": {"id": "REDACTED", "projectID": "p", "directory": "/w"}, "messages": []}, []),
        ({"info": {"id": "other"}, "messages": []}, None),
        ({"info": {"id": "ses_a"}}, None),
        ({"info": {"id": "ses_a", "permission": ["x" * 1000] * 90}, "messages": []}, ["session:ses_a"]),
    ],
    ids=["plain", "redacted", "no session", "no messages", "info longer than the head"],
)
def test_exports_of_opencode_are_recognised_by_their_session_id(document: Any, keys: list[str] | None) -> None:
    data = json.dumps(document, indent=2).encode()
    claim = opencode.FORMAT.claims(Head(data[:HEAD_BYTES], "full.jsonl", len(data) <= HEAD_BYTES))
    assert (claim.keys if claim is not None else None) == keys
    assert claim is None or claim.by_folder == (keys == [])


def test_the_place_of_an_openhands_file_says_which_conversation_it_is_of() -> None:
    parent, child = "3f0c6f0e9a1b4c5d8e7f60718293a4b5", "aa0c6f0e9a1b4c5d8e7f60718293a4b5"
    folder = f"/h/conversations/{parent}/subagents/{child}"
    long = {
        "thought": [],
        "tool_name": "file_editor",
        "tool_call_id": "c",
        "tool_call": {"arguments": "x" * 2 * HEAD_BYTES},
    }
    event = {key: value for key, value in OPENHANDS.items() if key != "kind"}
    state = {"id": child, "stats": {"usage_to_metrics": {}}, "execution_status": "finished"}
    keys = [f"folder:{folder}", f"session:{child}", f"folder:/h/conversations/{parent}"]
    events = [f"{folder}/events/event-{n:05d}-{n:08x}-0000.json" for n in (1, 2)]
    assert claimed(OPENHANDS, events[0]) == ("openhands", keys)
    assert claimed({**event, **long, "kind": "ActionEvent"}, events[1]) == ("openhands", keys)
    assert claimed(state, f"{folder}/base_state.json") == ("openhands", keys)
    assert claimed(OPENHANDS, f"/h/mine/{events[0].rpartition('/')[2]}") == ("openhands", ["folder:/h/mine"])
    assert claimed(OPENHANDS, "/h/other.json") is None


@pytest.mark.parametrize(
    ("text", "path"),
    [("file:///w/a%20b", "/w/a b"), ("file:///c%3A/w", "c:/w"), ("vscode-remote://x/w", "vscode-remote://x/w")],
)
def test_editors_write_folders_as_addresses(text: str, path: str) -> None:
    assert path_of_uri(text) == path


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


# -- what programs wrote against a scripted model, counted by hand -----------------------------------------------


def native(name: str, pattern: str) -> list[Session]:
    folder = NATIVE / name
    if not folder.is_dir():
        pytest.skip(f"no corpus at {folder}")
    paths = sorted(folder.rglob(pattern))
    found = identify(Head(paths[0].read_bytes(), paths[0].name, True))
    assert found is not None
    inputs = [given(path.read_bytes(), found[0].name, path.name) for path in paths]
    sessions = found[0].read(inputs).sessions
    assert not [e for s in sessions for e in s.events if e.kind == "unknown"]
    assert not [i.artifact.skipped_reasons for i in inputs if i.artifact.skipped]
    return sessions


def test_a_real_thread_of_amp_is_read_whole() -> None:
    (made,) = native("amp", "T-*.json")[:1]
    assert (made.repo, made.branch, made.started_at) == ("user/testing-git", "master", 1_772_241_173_221_000)
    assert (len(made.turns), len(made.tool_calls), [s.output_tokens for s in made.steps]) == (1, 4, [239, 71, 245])
    # Each call's total is the sum of the three kinds of input.
    kinds = [(s.input_tokens, s.cache_write_tokens, s.cache_read_tokens) for s in made.steps]
    assert [sum(n or 0 for n in three) for three in kinds] == [14_870, 15_897, 16_208]


def test_what_continue_wrote_is_what_the_model_sent() -> None:
    """Four calls and an answer; prompts of 201 to 205 tokens with 64 cached, answers of 40 with 8 of reasoning."""
    (made,) = native("continue/sessions", "*.json")
    assert [s.input_tokens for s in made.steps] == [137, 138, 139, 140, 141]
    assert {(s.output_tokens, s.cache_read_tokens, s.reasoning_tokens) for s in made.steps} == {(40, 64, 8)}
    statuses = {c.name: c.status for c in made.tool_calls}
    assert statuses == {"Write": "ok", "Read": "ok", "Edit": "ok", "Bash": "unknown"}
    assert [(e.op, e.added, e.removed) for e in made.edits] == [("create", 1, 0), ("modify", 1, 1)]
    assert (made.started_at, len(made.turns), made.model) == (1_795_346_452_552_000, 1, "mock-1")


def test_what_qwen_code_wrote_is_read_whole() -> None:
    """200+n prompt tokens with 64 cached, and 40 of output: of each call n of a session."""
    sessions = native("qwen", "*.jsonl")
    assert [(len(s.turns), len(s.tool_calls), len(s.edits)) for s in sessions] == [(1, 4, 2), (2, 2, 0)]
    for session in sessions:
        assert [s.input_tokens for s in session.steps] == [137 + n for n in range(len(session.steps))]
        assert {(s.output_tokens, s.cache_read_tokens) for s in session.steps} == {(40, 64)}


def test_sessions_of_kimi_code_say_what_the_scripted_model_sent(tmp_path: Path) -> None:
    """5 calls with 137 to 141 fresh tokens and 64 cached, 4 tool calls, one failed."""
    if not (NATIVE / "kimi-code").is_dir():
        pytest.skip(f"no corpus at {NATIVE / 'kimi-code'}")
    _, store = pipeline.ingest_into([str(NATIVE / "kimi-code")], tmp_path / "s", jobs=1)
    session = store.session("session_2000d2ae-9258-4fc2-ba6a-406707700677")
    figures = [(s.input_tokens, s.cache_read_tokens, s.output_tokens, s.model) for s in session.steps]
    assert figures == [(137 + n, 64, 40, "mock-1") for n in range(5)]
    calls = [(c.name, c.status, c.exit_code) for c in session.tool_calls]
    assert calls == [("Write", "ok", None), ("Read", "ok", None), ("Edit", "ok", None), ("Bash", "error", 3)]
    assert [t.text for t in session.turns] == ["Write hello.py that prints hello, change it, run it"]
