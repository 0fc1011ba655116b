"""Whose session it is: exports of other agents in Claude Code's records, and the one time that an export gives all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import by_name
from agentsignals.model import Session
from tests.formats.reading import format_of, lines, read_one

TIME = "2026-07-20T10:00:00.000Z"
CALL = {"type": "tool_use", "id": "t1", "name": "terminal", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}
SAID: list[tuple[str, Any]] = [
    ("user", "Look."), ("assistant", [CALL]), ("user", [RESULT]), ("assistant", [{"type": "text", "text": "Done."}]),
    ("user", "Thanks."), ("assistant", [{"type": "text", "text": "Bye."}]),
]  # fmt: skip


def export(times: list[str], **facts: Any) -> Session:
    """A session of these records, each with its time."""
    records = [
        {"parentUuid": None, "sessionId": "s-1", "uuid": f"u{n}", "timestamp": at, "type": role, **facts,
         "message": {"role": role, "content": content}}
        for n, ((role, content), at) in enumerate(zip(SAID, times, strict=True))
    ]  # fmt: skip
    return read(lines(*records))


def read(data: bytes) -> Session:
    named = format_of(data)
    assert named is not None
    return read_one(by_name(named), data)


@pytest.mark.parametrize(
    ("facts", "agent", "version", "class_"),
    [
        ({"version": "hermes-agent"}, "hermes", None, "search"),
        ({"version": "hermes/0.9.1"}, "hermes", "0.9.1", "search"),
        ({"harness": "acme"}, "acme", None, "search"),
        ({"version": "acme-agent 2.0"}, "acme-agent", "2.0", "search"),
        ({"version": "2.1.100"}, "claude-code", "2.1.100", "other"),
    ],
)
def test_a_record_names_its_agent(facts: dict[str, Any], agent: str, version: str | None, class_: str) -> None:
    session = export([TIME] * 6, **facts)
    assert (session.agent, session.agent_version, session.tool_calls[0].class_) == (agent, version, class_)
    assert session.started_at is session.ended_at is None, "an export's time is no session's"


def test_times_that_differ_are_kept() -> None:
    session = export([TIME[:17] + f"{n:02}.000Z" for n in range(6)], version="hermes-agent")
    assert session.started_at is not None and session.ended_at is not None
    assert session.ended_at - session.started_at == 5_000_000


def test_one_time_for_all_messages_of_a_row_is_no_duration() -> None:
    who = [("user", "a"), ("assistant", "b")] * 3
    said = [{"role": role, "content": text, "timestamp": TIME} for role, text in who]
    session = read(json.dumps([{"session_id": "11111111-aaaa", "messages": said}] * 2).encode())
    assert session.started_at is session.ended_at is None
    assert all(event.timestamp is None for event in session.events)
