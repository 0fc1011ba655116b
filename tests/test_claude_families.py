"""Files of Claude Code that belong together: subagents, snapshots and slices of a session, forks."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.formats import claude_code
from agentsignals.formats.head import Head
from agentsignals.model import MAIN, Session
from tests.claude import SESSION, Log, given, read, session, turns

OTHER = "6f1d2c3b-0000-4000-8000-000000000002"


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


# -- subagents -------------------------------------------------------------------------------------------------------


def progress(log: Log, type_: str, content: Any, uuid: str, **message: Any) -> None:
    inner = {"type": type_, "message": {"role": type_, "content": content, **message}, "uuid": uuid}
    data = {
        "type": "agent_progress",
        "agentId": "a1b2",
        "prompt": "Explore.",
        "message": inner,
        "normalizedMessages": [],
    }
    log.record("progress", data=data, parentToolUseID="toolu_1", toolUseID="agent_msg_1")


def with_subagent(log: Log) -> Log:
    log.user("look around")
    log.call("Task", "toolu_1", prompt="Explore.")
    progress(log, "user", [text("Explore.")], "in-1")
    usage = {"input_tokens": 50, "output_tokens": 60}
    block = {"type": "tool_use", "id": "toolu_in", "name": "Grep", "input": {"pattern": "x"}}
    progress(log, "assistant", [block], "in-2", id="msg_in", model="claude-haiku-4-5", usage=usage)
    progress(log, "user", [{"type": "tool_result", "tool_use_id": "toolu_in", "content": "found"}], "in-3")
    log.record("progress", data={"type": "bash_progress", "output": "…"})
    log.result("It is in cart.py.", "toolu_1")
    return log


def test_an_embedded_subagent_is_a_thread_of_its_own() -> None:
    found = session(with_subagent(Log()))
    assert [(c.name, c.thread, c.status, c.turn) for c in found.tool_calls] == [
        ("Task", MAIN, "ok", 0),
        ("Grep", "a1b2", "ok", 0),
    ]
    assert [(s.thread, s.output_tokens) for s in found.steps] == [(MAIN, 10), ("a1b2", 60)]
    assert [e.thread for e in found.events if e.kind == "meta"] == ["a1b2"]
    assert [t.text for t in found.turns] == ["look around"]
    assert found.model == "claude-opus-4-6"


def agent_file(after: float) -> Log:
    log = Log(name="agent")
    log.wait(after)
    facts = {"isSidechain": True, "agentId": "a1b2"}
    log.user("Explore.", **facts)
    block = {"type": "tool_use", "id": "toolu_in", "name": "Grep", "input": {"pattern": "x"}}
    log.assistant(block, message_id="msg_in", usage=(50, 60, 0, 0), **facts)
    log.record(
        "user", message={"content": [{"type": "tool_result", "tool_use_id": "toolu_in", "content": "f"}]}, **facts
    )
    return log


def test_a_subagents_own_file_joins_the_session_at_the_turn_it_ran_in() -> None:
    parent = Log()
    parent.user("look around")
    parent.call("Task", "toolu_1", prompt="Explore.")
    parent.wait(10)
    parent.result("It is in cart.py.", "toolu_1")
    parent.user("thanks")
    for files in ((parent, agent_file(3)), (agent_file(3), parent)):
        found = session(*files)
        assert [(c.name, c.thread, c.turn) for c in found.tool_calls] == [("Task", MAIN, 0), ("Grep", "a1b2", 0)]
        assert [t.text for t in found.turns] == ["look around", "thanks"]
        assert {e.artifact_id for e in found.events if e.thread == "a1b2"} != {found.artifact_id}


def test_a_subagent_told_of_twice_counts_once() -> None:
    parent = with_subagent(Log())
    found = session(parent, agent_file(3))
    assert [c.name for c in found.tool_calls] == ["Task", "Grep"]
    assert sum(s.output_tokens or 0 for s in found.steps if s.thread == "a1b2") == 60


def test_sidechain_records_in_the_main_file_are_no_turns() -> None:
    log = Log(version="1.0.43")
    log.user("look around")
    log.user("Explore the code.", isSidechain=True)
    log.say("I see.", isSidechain="True", message_id="m2")
    log.say("Done.", isSidechain="False", message_id="m3")
    assert turns(log) == [("prompt", "look around")]
    assert [(e.kind, e.thread) for e in session(log).events[1:]] == [
        ("meta", "sidechain"),
        ("text", "sidechain"),
        ("text", MAIN),
    ]


# -- families --------------------------------------------------------------------------------------------------------


def long_log() -> Log:
    log = Log()
    for n in range(4):
        log.user(f"prompt {n}")
        log.queue("enqueue", f"and {n}")
        log.queue("remove")
        log.ran("Read", file_path=f"/work/shop/{n}.py")
        log.side("custom-mystery", sessionId=SESSION)
    return log


def part(log: Log, start: int, end: int) -> Log:
    piece = Log(log.session)
    piece.lines = log.lines[start:end]
    return piece


def facts(found: Session) -> tuple[Any, ...]:
    seen = [(e.kind, e.text, e.timestamp, e.turn) for e in found.events]
    return seen, [t.text for t in found.turns], [c.status for c in found.tool_calls]


@pytest.mark.parametrize(
    "cuts", [[(0, 9), (0, 24)], [(0, 9), (0, 16), (0, 24)], [(0, 12), (12, 24)], [(0, 14), (8, 24)]]
)
def test_snapshots_and_slices_of_a_session_unite_to_the_whole(cuts: list[tuple[int, int]]) -> None:
    whole = long_log()
    expected = facts(session(whole))
    pieces = [part(whole, *cut) for cut in cuts]
    assert facts(session(*pieces)) == expected
    assert facts(session(*reversed(pieces))) == expected


def fork(at: int) -> tuple[Log, Log]:
    """A session, and one that was resumed from its first records under an id of its own."""
    first = long_log()
    second = Log(OTHER, "fork")
    second.lines = [line.replace(SESSION, OTHER) for line in first.lines[:at]]
    second.wait(3600)
    second.user("another way")
    second.say("so be it", message_id="msg_fork")
    return first, second


def test_a_forked_history_counts_in_the_session_that_ended_first() -> None:
    for files in (fork(8), fork(8)[::-1]):
        first, second = sorted(read(*files).sessions, key=lambda s: s.session_id)
        assert [t.text for t in first.turns if t.kind == "prompt"] == [f"prompt {n}" for n in range(4)]
        assert [t.text for t in second.turns if t.kind == "prompt"] == ["another way"]
        assert (first.parent_session_id, second.parent_session_id) == (None, SESSION)
        assert len(first.tool_calls) == 4
        assert [s.message_id for s in second.steps] == ["msg_fork"]


def apart(times: int, **facts: str) -> bytes:
    """Lines of as many sessions in one file, whose records share an id."""
    log = Log()
    for n in range(times):
        log.user(**{"content": f"do the task {n}", "uuid": "the-same", "sessionId": f"s{n}", **facts})
    return log.data()


@pytest.mark.parametrize("facts", [{}, {"content": "the same"}, {"timestamp": "2026-03-02T09:00:00.000Z"}])
def test_records_of_several_sessions_that_share_an_id_are_all_read(facts: dict[str, str]) -> None:
    source = given(apart(40, **facts))
    sessions = claude_code.FORMAT.read([source]).sessions
    assert sorted(s.session_id for s in sessions) == sorted(f"s{n}" for n in range(40))
    assert source.artifact.record_kinds == {"user": 40}


def test_a_session_that_is_all_copies_is_counted() -> None:
    source = given(apart(40, content="the same", timestamp="2026-03-02T09:00:00.000Z"))
    assert len(claude_code.FORMAT.read([source]).sessions) == 1
    assert source.artifact.skipped_reasons == {"session_of_copies": 39}
    assert source.artifact.record_kinds == {"user": 40, "repeated": 39}


def test_a_fork_shares_a_key_with_its_origin() -> None:
    claims = [claude_code.claims(Head(log.data(), complete=True)) for log in fork(8)]
    assert all(claims)
    shared = set.intersection(*(set(claim.keys) for claim in claims if claim))
    assert shared == {"record:01-0001", "record:01-0002", "record:01-0003"}


def test_a_file_that_holds_two_sessions_is_of_the_one_its_name_says() -> None:
    log = Log(OTHER)
    log.user("old", sessionId=SESSION)
    log.user("new", sessionId=OTHER)
    log.user("newer", sessionId=OTHER)
    assert [s.session_id for s in read(log).sessions] == [OTHER]
    (named,) = claude_code.FORMAT.read([given(log.data(), hint=SESSION)]).sessions
    assert named.session_id == SESSION


def test_a_file_without_an_event_is_no_session() -> None:
    log = Log()
    log.side("summary", summary="Cart", leafUuid="x")
    log.side("file-history-snapshot", messageId="m", snapshot={})
    assert read(log).sessions == []


def test_the_title_a_person_gave_stands_over_others() -> None:
    log = Log()
    log.side("custom-title", customTitle="Mine", sessionId=SESSION)
    log.side("ai-title", aiTitle="Guess", sessionId=SESSION)
    log.user("go")
    assert session(log).title == "Mine"


def test_a_summary_is_the_title_only_of_the_session_it_is_about() -> None:
    log = Log()
    log.side("summary", summary="Another session", leafUuid="elsewhere")
    log.user("go")
    assert session(log).title is None
    log.side("summary", summary="This session", leafUuid="01-0001")
    assert session(log).title == "This session"
