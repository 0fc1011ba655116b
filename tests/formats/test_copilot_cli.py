"""Copilot CLI, words and tokens: every trap of design/formats.md#copilot-cli."""

from __future__ import annotations

import json

import pytest

from agentsignals.formats.copilot_cli import FORMAT
from agentsignals.formats.head import Head
from tests.formats.copilot_events import (
    ID,
    ROW,
    given,
    says,
    start,
    texts,
    user,
)


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
