"""Hermes' sessions as JSON (design/formats.md#small-formats): messages of OpenAI's kind, results as JSON in texts."""

from __future__ import annotations

import json

import pytest

from agentsignals.formats.head import Head
from agentsignals.formats.hermes import FORMAT

FACTS = {"session_id": "20260901_1", "platform": "cli", "session_start": "2026-09-01T10:00:00", "model": "m-1"}


@pytest.mark.parametrize("lacks", ["session_id", "platform", "session_start"])
def test_a_session_names_its_platform_and_start(lacks: str) -> None:
    whole = {**FACTS, "messages": []}
    assert FORMAT.claims(Head(json.dumps(whole).encode(), "x", True)) is not None
    less = {name: value for name, value in whole.items() if name != lacks}
    assert FORMAT.claims(Head(json.dumps(less).encode(), "x", True)) is None
