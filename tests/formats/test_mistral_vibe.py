"""The traps of Mistral Vibe's sessions that no sample shows (design/formats.md#mistral-vibe)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import identify, unread_file
from agentsignals.formats.mistral_vibe import FORMAT
from agentsignals.formats.records import Head
from agentsignals.model import Session
from tests.formats.reading import claimed, given, read_one

CORPUS = Path(__file__).parents[3] / "shared/corpus/native/mistral-vibe"
ID = "5c1e7f60-0000-4000-8000-000000000001"
UNIFIED = f"logs/session/unified/{ID}"
OLD = "logs/session/session_20260613_110000_5c1e7f60"
START_MS = 1_795_450_197_000


def entry(n: int, type_: str, version: int = 0, **facts: Any) -> dict[str, Any]:
    at = START_MS + 1000 * n
    times = {"createdAt": at, "updatedAt": at + version, "generationStatus": "completed"}
    return {"id": f"e{n}", "sessionId": ID, "turnId": "t", **times, "type": type_, **facts}


def said(n: int, role: str, words: str, source: str = "turn_start", **more: Any) -> dict[str, Any]:
    return entry(n, "message", role=role, content=[{"type": "text", "text": words}], source=source, **more)


def chunk(*entries: dict[str, Any], name: str = "aa") -> tuple[str, bytes]:
    return f"{UNIFIED}/chunks/{name}.json", json.dumps(entries).encode()


def journal(*entries: dict[str, Any]) -> tuple[str, bytes]:
    changes = [{"op": "append_entry", "entry": e} for e in entries] + [{"op": "set_envelope", "state": {}}]
    rows = [
        {"payload": {"client_command_id": "c", "method": "turn/start"}, "type": "command_reserved"},
        {"payload": {"delta": changes}, "type": "projection_delta"},
    ]
    marked = ({**row, "recovery_journal_record_version": 1, "sequence": n} for n, row in enumerate(rows))
    return f"{UNIFIED}/journal/0000000000000082.jsonl", "".join(f"{json.dumps(row)}\n" for row in marked).encode()


def state(sequence: int, tokens: tuple[int, int, int]) -> tuple[str, bytes]:
    used = dict(zip(("inputTokens", "cachedInputTokens", "outputTokens"), tokens, strict=True))
    session = {"id": ID, "tokenUsage": used, "parentSessionId": None, "title": None}
    document = {"projection_state_version": 1, "session_id": ID, "snapshot": {"session": session}}
    path = f"{UNIFIED}/generations/{sequence:016}/projection-state.json"
    return path, json.dumps({**document, "snapshot_sequence": sequence}).encode()


def meta(folder: str = UNIFIED, **more: Any) -> tuple[str, bytes]:
    where = {"environment": {"working_directory": "/work/moved"}, "origin_directory": "/work/shop"}
    head = {
        "session_id": ID,
        "parent_session_id": None,
        "start_time": "2026-11-23T16:09:56+00:00",
        "git_branch": "main",
    }
    known = {"title": None, "title_source": "auto", "config": {"model_name": "mock-large"}, **more}
    return f"{folder}/meta.json", json.dumps({**head, **where, **known}).encode()


def messages(*rows: dict[str, Any]) -> tuple[str, bytes]:
    named = ({"message_id": f"m{n}", "content": "", **row} for n, row in enumerate(rows))
    return f"{OLD}/messages.jsonl", "".join(f"{json.dumps(row)}\n" for row in named).encode()


def read(*files: tuple[str, bytes]) -> Session:
    return read_one(FORMAT, *(given(data, "mistral-vibe", path) for path, data in files))


def keys(path: str, data: bytes) -> list[str] | None:
    found = claimed(data, path)
    return found and found[1]


def test_what_belongs_together() -> None:
    session = f"session:{ID}"
    assert keys(*chunk(said(1, "user", "go"))) == [session]
    assert keys(*journal(said(1, "user", "go"))) == [session]
    assert keys(*state(7, (1, 0, 1))) == [session]
    assert keys(*meta(OLD)) == [session, f"folder:{OLD}"]
    assert keys(*messages({"role": "user", "content": "go"})) == [f"folder:{OLD}"]
    assert keys("a/messages.jsonl", b'{"role":"user","content":"go"}\n') is None
    assert keys("a/meta.json", b'{"session_id":"a","start_time":"2026","title_source":"auto"}') is None


@pytest.mark.parametrize(
    "row",
    [
        {"store_format": "mistral.vibe.unified-session-store/v1", "session_id": ID},
        {"manifest_version": 1, "recovery_journal_segment": {}},
        [{"message": {"role": "user", "content": []}, "source": "history", "turn_index": 0}],
    ],
)
def test_what_its_runtime_keeps_beside_is_named(row: Any) -> None:
    head = Head(json.dumps(row).encode(), "x.json", complete=True)
    named = unread_file(head)
    assert identify(head) is None
    assert named is not None
    assert (named.name, named.reason) == ("mistral-vibe", "not_sessions")


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus at ../shared/corpus/native/mistral-vibe")
def test_a_sample_of_others() -> None:
    session = read(*((str(path), path.read_bytes()) for path in sorted(CORPUS.glob("*/*"))))
    assert (len(session.turns), len(session.tool_calls), session.steps[-1].input_tokens) == (1, 1, 200)
