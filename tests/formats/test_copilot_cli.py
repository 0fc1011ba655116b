"""Copilot CLI, words and tokens: every trap of design/formats.md#copilot-cli."""

from __future__ import annotations

import json

import pytest

from agentsignals.formats.copilot_cli import FORMAT
from agentsignals.formats.records import Head
from tests.formats.copilot_events import (
    ID,
    ROW,
    event,
    given,
    metrics,
    one,
    says,
    shutdown,
    start,
    texts,
    usage,
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


def recorded(api_id: str, model: str, *tokens: int) -> ROW:
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
    return event(
        "session.usage_record", usage={"model": model, "apiCallId": api_id, **dict(zip(names, tokens, strict=False))}
    )


def test_calls_have_the_tokens_of_their_records_and_totals_that_go_on_count_once() -> None:
    session = one(
        start(), user("a"), recorded("api-m", "opus", 100, 10, 40, 0, 3), says("m", "x"),
        recorded("api-title", "haiku", 20, 2, 0, 0, 0),
        shutdown(opus=metrics(1, 100, 10, 40, 0), haiku=metrics(1, 20, 2, 0, 0)),
        event("session.resume", sessionId=ID), user("b"), says("n", "y"), recorded("api-n", "opus", 200, 20, 50, 0, 3),
        shutdown(opus=metrics(2, 300, 30, 90, 0), haiku=metrics(1, 20, 2, 0, 0)),
        event("session.resume", sessionId=ID), user("c"), recorded("api-o", "opus", 5, 1, 0, 0, 0), says("o", "z"),
    )  # fmt: skip
    assert usage(session) == [
        ("opus", 60, 40, 0, 10, None),
        ("haiku", 20, None, None, 2, "session_total"),
        ("opus", 150, 50, 0, 20, None),
        ("opus", 5, 0, 0, 1, None),
    ]
