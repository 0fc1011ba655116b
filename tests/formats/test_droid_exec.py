"""What `droid exec` prints, and the settings beside Droid's logs (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import droid_exec
from agentsignals.formats.head import Head


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
    assert (droid_exec.claims(head) is not None) == claimed
