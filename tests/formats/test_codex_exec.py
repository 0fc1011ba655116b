"""The traps of `codex exec --json`, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentsignals.formats import Input
from agentsignals.formats.codex_exec import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.formats import reading

THREAD = "019f3661-0000-7000-8000-000000000001"
START: dict[str, Any] = {"type": "thread.started", "thread_id": THREAD}
TURN: dict[str, Any] = {"type": "turn.started"}
Row = dict[str, Any]


def item(when: str, kind: str, id_: str = "item_0", **facts: Any) -> Row:
    return {"type": f"item.{when}", "item": {"id": id_, "type": kind, **facts}}


def ran(command: str = "ls", output: str = "", id_: str = "item_0", **facts: Any) -> Row:
    told = {"command": command, "aggregated_output": output, "exit_code": 0, "status": "completed"}
    return item("completed", "command_execution", id_, **{**told, **facts})


def said(text: str = "ok", id_: str = "item_9") -> Row:
    return item("completed", "agent_message", id_, text=text)


def used(input: int, output: int, cached: int = 0, **more: int) -> Row:  # noqa: A002  (the file's name)
    usage = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, **more}
    return {"type": "turn.completed", "usage": usage}


def given(*rows: Row | str, name: str = "a") -> Input:
    return reading.given(reading.lines(*rows), "codex-exec", name)


def read(*rows: Row | str) -> Session:
    (session,) = FORMAT.read([given(START, TURN, *rows)]).sessions
    return session


def test_a_rollout_of_the_same_thread_is_believed(tmp_path: Path) -> None:
    at = "2026-05-02T09:00:00.000Z"
    rollout = [
        {
            "timestamp": at,
            "type": "session_meta",
            "payload": {"id": THREAD, "timestamp": at, "cwd": "/r", "cli_version": "1"},
        },
        {"timestamp": at, "type": "event_msg", "payload": {"type": "user_message", "message": "go"}},
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rollout.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rollout))
    (tmp_path / "in" / "out.jsonl").write_bytes(given(START, TURN, said("done"), used(9, 1)).data)
    assert pipeline.analyze([str(tmp_path / "in")], tmp_path / "store").sessions == 1
    assert asked(Store(tmp_path / "store"), "SELECT format FROM sessions")[1] == [("codex",)]
