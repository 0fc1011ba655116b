"""Antigravity's transcripts (design/formats.md#small-formats): steps whose results name no call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats.antigravity import FORMAT
from agentsignals.formats.head import Head

PATH = "/home/me/.gemini/antigravity/brain/1b2c3d4e-aaaa/.system_generated/logs/transcript_full.jsonl"


def step(n: int, type_: str, content: str = "", source: str = "MODEL", **more: Any) -> dict[str, Any]:
    return {"step_index": n, "source": source, "type": type_, "status": "DONE", "content": content, **more}


def asks(n: int, content: str, source: str = "USER_EXPLICIT") -> dict[str, Any]:
    return step(n, "USER_INPUT", content, source)


@pytest.mark.parametrize(
    ("first", "keys"),
    [
        (asks(0, "hi"), ["session:1b2c3d4e-aaaa"]),
        ({**asks(0, "hi"), "step_index": "0"}, None),
        ({**asks(0, "hi"), "type": "user_input"}, None),
        ({"step_index": 0, "type": "USER_INPUT"}, None),
    ],
)
def test_a_step_has_an_index_and_its_source_and_type_in_capitals(first: object, keys: list[str] | None) -> None:
    claim = FORMAT.claims(Head(json.dumps(first).encode(), PATH, True))
    assert (claim.keys if claim else None) == keys
