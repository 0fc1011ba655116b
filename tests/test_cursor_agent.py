"""Cursor agent transcripts (design/formats.md#cursor): the words, and the calls; nothing else is logged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.cursor_agent import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact, Session, from_iso

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
ROW = dict[str, Any]


def said(role: str, *blocks: ROW | str) -> ROW:
    return {
        "role": role,
        "message": {"content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]},
    }


def use(name: str, **given: object) -> ROW:
    return {"type": "tool_use", "name": name, "input": given}


def answer(text: str, **more: object) -> ROW:
    return {"type": "tool_result", "content": text, **more}


def file(name: str, rows: list[ROW], hint: str | None = None) -> Input:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return Input(
        data,
        Artifact(artifact_id=name, source="t", path=name, format="cursor-agent", sha256=name, bytes=len(data)),
        hint,
    )


def talk(*rows: ROW) -> Session:
    (session,) = FORMAT.read([file("f", list(rows))]).sessions
    return session


BARE = said("user", "hi")


@pytest.mark.parametrize(
    ("rows", "claimed"),
    [
        ([BARE], True),
        ([BARE, {"type": "turn_ended", "status": "success"}], True),
        ([said("assistant", "hi")], True),
        ([BARE, {**BARE, "timestamp": "2026-01-01T00:00:00Z"}], False),
        ([BARE, {**BARE, "id": "m1"}], False),
        ([{**BARE, "sessionId": "s"}], False),
        ([{**BARE, "type": "user"}], False),
        ([{"role": "user", "message": {"content": "x", "id": "msg_1", "usage": {}}}], False),
        ([{"role": "system", "message": {"content": "x"}}], False),
        ([{"role": "user", "content": "x"}], False),
        ([{"type": "turn_ended", "status": "success"}], False),
    ],
)
def test_only_records_of_role_and_message_and_nothing_else_are_cursors(rows: list[ROW], claimed: bool) -> None:
    claim = FORMAT.claims(Head("\n".join(json.dumps(r) for r in rows).encode(), "x.jsonl", True))
    assert (claim is not None) is claimed
    assert claim is None or (claim.keys, claim.beside) == ([], True)


def test_the_place_of_the_file_names_the_session_else_the_file_does() -> None:
    files = [file("a", [BARE], "place"), file("b", [BARE])]
    assert [s.session_id for s in FORMAT.read(files).sessions] == ["b", "place"]


def test_of_several_files_of_one_session_the_largest_counts_and_the_others_say_so() -> None:
    files = [file("old", [BARE], "s"), file("new", [BARE, said("assistant", "hello")], "s")]
    (session,) = FORMAT.read(files).sessions
    assert (session.artifact_id, len(session.events)) == ("new", 2)
    assert files[0].artifact.note == "an earlier copy of new, which counts"
    assert files[0].artifact.record_kinds == {"user": 1, "repeated": 1}


@pytest.mark.parametrize(
    ("text", "turn", "meta"),
    [
        ("<user_query>\ndo it\n</user_query>", "do it", None),
        ("<links>\nhttps://x\n</links>\n<user_query>\ndo it\n</user_query>", "do it", "<links>\nhttps://x\n</links>"),
        ("<user_query>\nwhat is </user_query> for?\n</user_query>", "what is </user_query> for?", None),
        ("<user_query>\nnever closed", "never closed", None),
        ("plain words", "plain words", None),
        ("<rules>\nbe kind\n</rules>\nplain <b>words</b>", "plain <b>words</b>", "<rules>\nbe kind\n</rules>"),
        ("<system_reminder>\ntick\n</system_reminder>", None, "<system_reminder>\ntick\n</system_reminder>"),
    ],
)
def test_the_persons_words_are_in_the_query_tag(text: str, turn: str | None, meta: str | None) -> None:
    session = talk(said("user", text))
    assert [t.text for t in session.turns] == ([turn] if turn else [])
    assert [e.text for e in session.events if e.kind == "meta"] == ([meta] if meta else [])


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("UTC-4", "15:19"), ("UTC+5:30", "05:49"), ("UTC-3:30", "14:49"), ("UTC", "11:19")],
)
def test_a_time_before_the_words_is_the_turns_and_nothing_elses(zone: str, expected: str) -> None:
    words = f"<timestamp>Tuesday, Jun 23, 2026, 11:19 AM ({zone})</timestamp>\n<user_query>go</user_query>"
    session = talk(said("user", words), said("assistant", "going"))
    assert session.turns[0].timestamp == from_iso(f"2026-06-23T{expected}:00Z")
    assert session.events[-1].timestamp is None


def test_without_logged_results_calls_have_none_and_edits_are_what_was_asked_for() -> None:
    patch = "*** Begin Patch\n*** Update File: b.py\n@@\n-x\n+y\n+z\n*** End Patch"
    session = talk(
        BARE,
        said("assistant", use("StrReplace", path="a.py", old_string="1\n2", new_string="1\n3")),
        said("assistant", {"type": "tool_use", "name": "ApplyPatch", "input": patch}, use("Delete", path="c.py")),
        said("assistant", use("Read", path="d.md"), use("Write", path="d.md", contents="1\n")),
        said("assistant", use("Write", path="e.md", contents="1\n")),
    )
    assert {c.status for c in session.tool_calls} == {"none"}
    assert len({c.call_id for c in session.tool_calls}) == 6
    assert [(e.path, e.op, e.start_line, e.added, e.removed) for e in session.edits] == [
        ("a.py", "modify", None, 1, 1),
        ("b.py", "modify", None, 2, 1),
        ("c.py", "delete", None, 0, None),
        ("d.md", "modify", 1, 1, None),
        ("e.md", "create", 1, 1, 0),
    ]
    assert {(s.input_tokens, s.output_tokens, s.timestamp, s.model) for s in session.steps} == {
        (None, None, None, None)
    }


def test_where_results_are_logged_they_answer_in_order_and_only_successes_edit() -> None:
    session = talk(
        said("assistant", use("Write", path="a.md", contents="1\n"), use("Write", path="b.md", contents="1\n")),
        said("user", answer("written"), answer("permission denied", is_error=True)),
        said("assistant", use("Write", path="c.md", contents="1\n")),
    )
    assert [(c.path, c.status) for c in session.tool_calls] == [("a.md", "ok"), ("b.md", "error"), ("c.md", "none")]
    assert [e.path for e in session.edits] == ["a.md"]
    assert session.turns == []


@pytest.mark.parametrize(
    ("row", "event"),
    [
        ({"type": "turn_ended", "status": "success"}, []),
        ({"type": "turn_ended", "status": "aborted", "error": "User aborted"}, [("interrupt", "User aborted")]),
        ({"type": "turn_ended", "status": "error", "error": "boom"}, [("api_error", "boom")]),
        ({"type": "brand_new"}, [("unknown", "brand_new")]),
    ],
)
def test_how_a_turn_ended(row: ROW, event: list[tuple[str, str]]) -> None:
    assert [(e.kind, e.text) for e in talk(BARE, row).events[1:]] == event


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_transcripts_have_the_turns_the_collector_counted() -> None:
    got = {}
    for path in sorted(CORPUS.glob("sessions/cursor-agent/*/*/transcript.jsonl")):
        data = path.read_bytes()
        found = identify(Head(data[:HEAD_BYTES], path.name, len(data) <= HEAD_BYTES))
        assert found is not None and found[0] is FORMAT
        artifact = Artifact(
            artifact_id=str(path), source="corpus", path=str(path), format="cursor-agent", sha256="", bytes=len(data)
        )
        (session,) = FORMAT.read([Input(data, artifact, path.parent.name)]).sessions
        got[session.session_id] = (
            artifact.records,
            len(session.turns),
            len(session.steps),
            [e.added for e in session.edits],
        )
    assert got == {
        "13e662e2-92d5-46e4-b101-d9a3aeb52bb2": (56, 5, 51, []),
        "fcab959a-cca4-4bc7-8521-92a5ea313ca4": (5, 2, 3, [3]),
    }
