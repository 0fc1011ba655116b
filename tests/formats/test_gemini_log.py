"""The traps of Gemini CLI's JSON Lines, one test each (design/formats.md#gemini-cli; written since 0.40)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from agentsignals.formats import Input, Reading
from agentsignals.formats.gemini_cli import FORMAT
from agentsignals.model import ABANDONED, MAIN, Session
from tests.formats.reading import claimed, given, lines, read_one

AT = "2026-05-02T09:00:00.000Z"
HEADER = {"sessionId": "s-1", "projectHash": "shop", "startTime": AT, "lastUpdated": AT, "kind": "main"}
Rows = dict[str, Any]


def message(kind: str, id_: str, content: Any = "", **facts: Any) -> Rows:
    return {"id": id_, "timestamp": AT, "type": kind, "content": content, **facts}


def user(id_: str, text: str) -> Rows:
    return message("user", id_, [{"text": text}])


def gemini(id_: str, text: str = "", **facts: Any) -> Rows:
    return message("gemini", id_, text, **{"model": "gemini-3-flash", **facts})


def tokens(input: int, output: int) -> dict[str, int]:  # noqa: A002  (the file's name)
    return {"input": input, "output": output, "cached": 0, "thoughts": 0, "tool": 0, "total": input + output}


def call(id_: str, output: str = "", status: str = "success") -> Rows:
    answer = [{"functionResponse": {"id": id_, "name": "glob", "response": {"output": output}}}]
    return {"id": id_, "name": "glob", "args": {}, "status": status, "timestamp": AT, "result": answer}


def shown(*messages: Rows, **facts: Any) -> Rows:
    return {"$set": {"messages": list(messages), **facts}}


def chat(data: bytes, path: str = "/h/chats/a.jsonl") -> Input:
    return given(data, "gemini-cli", path)


def reading(*rows: Rows | str, path: str = "/h/chats/a.jsonl") -> Reading:
    return FORMAT.read([chat(lines(*rows), path)])


def read(*rows: Rows | str, **header: Any) -> Session:
    (session,) = reading({**HEADER, **header}, *rows).sessions
    return session


def heard(session: Session) -> list[tuple[str, str | None]]:
    return [(e.kind, e.text) for e in session.events if e.kind not in ("tool_call", "tool_result")]


def test_a_message_written_anew_counts_once_as_it_was_last() -> None:
    session = read(
        user("u1", "which files?"),
        gemini("g1", "I look.", tokens=None),
        gemini("g1", "I look.", tokens=tokens(100, 5)),
        gemini("g1", "I look.", tokens=tokens(100, 5), toolCalls=[call("c1", status="executing")]),
        gemini("g1", "I look.", tokens=tokens(100, 5), toolCalls=[call("c1", "a.py")]),
        gemini("g2", "One."),
    )
    assert [(s.input_tokens, s.output_tokens) for s in session.steps] == [(100, 5), (None, None)]
    assert [(c.call_id, c.status) for c in session.tool_calls] == [("c1", "ok")]
    assert [e.text for e in session.events] == ["which files?", "I look.", None, "a.py", "One."]


def test_what_was_taken_back_is_paid_for_but_no_turn() -> None:
    session = read(
        user("u1", "keep"), gemini("g1", "kept"), user("u2", "drop"), gemini("g2", "dropped", tokens=tokens(9, 1)),
        {"$rewindTo": "u2"}, user("u3", "after"), gemini("g3", "so"),
    )  # fmt: skip
    assert [t.text for t in session.turns] == ["keep", "after"]
    assert [(e.text, e.thread) for e in session.events if e.thread != MAIN] == [
        ("drop", ABANDONED),
        ("dropped", ABANDONED),
    ]
    assert [(s.thread, s.turn, s.output_tokens) for s in session.steps] == [
        (MAIN, 0, None), (ABANDONED, None, 1), (MAIN, 1, None),
    ]  # fmt: skip


def test_a_message_said_again_after_it_was_taken_back_counts() -> None:
    session = read(user("u1", "a"), {"$rewindTo": "u1"}, user("u1", "a"))
    assert [t.text for t in session.turns] == ["a"]


def test_going_back_to_a_message_that_is_not_there_takes_nothing_back() -> None:
    assert [t.text for t in read(user("u1", "still here"), {"$rewindTo": "x"}).turns] == ["still here"]


def test_a_compression_erases_nothing_and_repeats_nothing() -> None:
    masked = gemini("g1", toolCalls=[call("c1", "(masked)")])
    session = read(
        user("u1", "first"),
        gemini("g1", toolCalls=[call("c1", "whole output")]),
        gemini("g2", "answer"),
        shown(
            user("x1", "<state_snapshot>sum</state_snapshot>"), gemini("x2", "Got it."), masked, gemini("x3", "answer")
        ),
        user("u2", "second"),
    )
    assert heard(session) == [
        ("human_turn", "first"), ("text", "answer"), ("compaction", "<state_snapshot>sum</state_snapshot>"),
        ("human_turn", "second"),
    ]  # fmt: skip
    assert [e.text for e in session.events if e.kind == "tool_result"] == ["whole output"]
    assert len(session.steps) == 2


def test_going_back_to_a_copy_is_going_back_to_its_original() -> None:
    session = read(
        user("u1", "first"), user("u2", "second"), shown(user("x1", "first"), user("x2", "second")), {"$rewindTo": "x2"}
    )
    assert [t.text for t in session.turns] == ["first"]


@pytest.mark.parametrize("messages", [[], [user("u1", "hello")]])
def test_what_the_model_is_shown_after_a_cancelled_prompt_erases_nothing(messages: list[Rows]) -> None:
    assert [t.text for t in read(user("u1", "hello"), shown(*messages)).turns] == ["hello"]


def test_a_writer_that_logs_whole_conversations_only_is_believed() -> None:
    session = read(shown(user("u1", "q"), gemini("g1", "a", tokens=tokens(3, 2))))
    assert heard(session) == [("human_turn", "q"), ("text", "a")]


def test_such_a_writer_logs_the_conversation_anew_as_it_grows() -> None:
    begun, done = (
        gemini("g1", "I look.", toolCalls=[call("c1", status="executing")]),
        gemini("g1", "I look.", toolCalls=[call("c1", "a.py")]),
    )
    session = read(shown(user("u1", "q"), begun), shown(user("u1", "q"), done, gemini("g2", "One.")))
    assert [e.text for e in session.events] == ["q", "I look.", None, "a.py", "One."]


def test_what_follows_in_the_same_turn_belongs_to_it() -> None:
    session = read(user("u1", "a"), gemini("g1", "b"), {"$rewindTo": "g1"}, gemini("g2", "c"))
    assert [(e.text, e.turn) for e in session.events] == [("a", 0), ("b", None), ("c", 0)]


def test_the_clients_words_about_the_machine_are_no_turn_and_name_the_folder() -> None:
    words = "<session_context>\nHello.\n- **Workspace Directories:**\n  - /srv/shop\n  - /srv/lib\n</session_context>"
    session = read(shown(user("c", words)), user("u1", "hi"))
    assert session.cwd == "/srv/shop"
    assert [t.text for t in session.turns] == ["hi"]


@pytest.mark.parametrize(
    ("project", "cwd"),
    [
        (hashlib.sha256(b"/srv/shop").hexdigest(), "/srv/shop"),
        (hashlib.sha256(b"/else").hexdigest(), None),
        ("shop", "/srv/shop"),
    ],
)
def test_a_folder_that_is_not_the_headers_is_not_believed(project: str, cwd: str | None) -> None:
    assert read(user("u1", "hi"), projectHash=project, directories=["/srv/shop"]).cwd == cwd


def test_a_set_changes_the_title_and_counts_as_a_record() -> None:
    (session,) = (found := reading(HEADER, user("u1", "hi"), {"$set": {"summary": "Greeting"}})).sessions
    assert session.title == "Greeting"
    assert found.sessions[0].events[0].line == 2


def test_a_session_resumed_by_a_newer_version_is_one() -> None:
    old = [message("user", "u1", "list"), gemini("g1", "two", tokens=tokens(5, 2))]
    document = json.dumps({**HEADER, "messages": old}, indent=2).encode()
    log = lines(HEADER, *old, {"$set": {"sessionId": "s-1"}}, user("u2", "and now?"), gemini("g2", "three"))
    files = [chat(document, "a.json"), chat(log, "a.jsonl")]
    assert [claimed(f.data, f.artifact.path) for f in files] == [("gemini-cli", ["session:s-1"])] * 2
    session = read_one(FORMAT, *files)
    assert [t.text for t in session.turns] == ["list", "and now?"]
    assert files[0].artifact.note == "superseded by a.jsonl"
    assert sum(s.input_tokens or 0 for s in session.steps) == 5


def test_a_document_on_one_line_is_no_log() -> None:
    data = json.dumps({**HEADER, "messages": [user("u1", "hi")]}).encode() + b"\n"
    file = chat(data)
    session = read_one(FORMAT, file)
    assert len(session.turns) == 1
    assert file.artifact.record_kinds == {"document": 1, "message.user": 1}


def test_a_subagents_session_has_no_turns_and_knows_its_parent() -> None:
    (session,) = reading(
        {**HEADER, "kind": "subagent"}, user("u1", "look around"), path="/h/tmp/x/chats/parent-1/sub-1.jsonl"
    ).sessions
    assert (session.turns, session.parent_session_id) == ([], "parent-1")


def test_lines_of_no_known_shape_are_counted_and_cost_nobody() -> None:
    file = chat(lines(HEADER, "{no json", {"id": 7, "type": "user"}, {"x": 1}, {"$set": 3}, user("u1", "fine")))
    session = read_one(FORMAT, file)
    assert [t.text for t in session.turns] == ["fine"]
    assert file.artifact.skipped_reasons == {"bad_json": 1, "bad_shape": 1}
    assert file.artifact.record_kinds == {"header": 1, "other": 2, "message.user": 1}


def test_a_header_alone_is_no_session() -> None:
    assert reading(HEADER).sessions == []
