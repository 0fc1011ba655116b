"""Factory Droid (design/formats.md#small-formats): its logs, and what `droid exec` prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats.factory_droid import DROID_EXEC_FORMAT, FORMAT
from agentsignals.formats.records import Head

ROW = dict[str, Any]
START: ROW = {"type": "session_start", "id": "s1", "title": "t", "owner": "me", "version": 2, "cwd": "/w"}


def message(id_: str | None, role: str, *blocks: ROW | str, **more: object) -> ROW:
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    row = {
        "type": "message",
        "id": id_,
        "timestamp": "2026-03-01T10:00:00Z",
        "message": {"role": role, "content": content, **more},
    }
    return {key: value for key, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ("rows", "claimed"),
    [
        ([START], True),
        ([{"type": "session_start", "id": "s1", "cwd": "/w"}, message("m", "user", "hi")], True),
        (
            [
                {"type": "session_start", "id": "s1", "cwd": "/w", "model": "q"},
                {"type": "user_message", "content": "hi"},
            ],
            False,
        ),
        ([{"type": "session.start", "data": {"sessionId": "s1"}, "id": "e", "parentId": None}], False),  # Copilot CLI
        ([{"type": "session", "id": "s1", "cwd": "/w", "timestamp": "2026-03-01T10:00:00Z"}], False),  # Pi
        ([{**START, "id": 7}], False),
    ],
)
def test_a_session_start_with_an_owner_or_messages_is_droids(rows: list[ROW], claimed: bool) -> None:
    claim = FORMAT.claims(Head("\n".join(json.dumps(r) for r in rows).encode(), "x.jsonl", True))
    assert (claim.keys if claim else None) == (["session:s1"] if claimed else None)


@pytest.mark.parametrize(
    ("record", "claimed"),
    [
        ({"type": "tool_call", "toolName": "Read", "parameters": {}}, True),
        ({"type": "message", "role": "user", "text": "hi"}, True),
        ({"type": "tool_call", "subtype": "started", "tool_call": {}}, False),  # Cursor's
        ({"type": "message", "role": "user", "content": "hi"}, False),  # Gemini CLI's
        ({"type": "assistant", "message": {}}, False),  # Claude's
    ],
)
def test_streams_of_other_agents_are_theirs(record: dict[str, Any], claimed: bool) -> None:
    head = Head(json.dumps({**record, "session_id": "s"}).encode(), "run.jsonl", True)
    assert (DROID_EXEC_FORMAT.claims(head) is not None) == claimed
