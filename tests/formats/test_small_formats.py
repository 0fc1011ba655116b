"""Traps of small formats that no sample shows (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import Format, Reading, aider, antigravity, gemini_cli, hermes, tau_bench, windsurf
from agentsignals.formats.factory_droid import DROID_EXEC_FORMAT
from agentsignals.formats.records import Head
from tests.formats.reading import given, lines, read_one

BRAIN = "/home/me/.gemini/antigravity/brain/1b2c3d4e-aaaa/.system_generated/logs/transcript_full.jsonl"
CASCADE = "/home/me/.windsurf/transcripts/1b2c3d4e-aaaa.jsonl"
ASKS = {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE", "content": "hi"}
HERMES = {"session_id": "20260901_1", "platform": "cli", "session_start": "2026-09-01T10:00:00", "messages": []}
START = "# aider chat started at 2026-09-01 09:00:00\n\n> Aider v0.86.1  \n"


def step(kind: str, status: str = "done", **body: object) -> dict[str, Any]:
    """A step of Windsurf's Cascade."""
    return {kind: body, "status": status, "type": kind}


SAID, ANSWER = step("user_input", user_response="hi"), step("planner_response", response="hello")
FIND = step("find", pattern="*")


@pytest.mark.parametrize(
    ("format_", "path", "rows", "keys"),
    [
        (antigravity.FORMAT, BRAIN, [ASKS], ["session:1b2c3d4e-aaaa"]),
        (antigravity.FORMAT, BRAIN, [{**ASKS, "step_index": "0"}], None),
        (antigravity.FORMAT, BRAIN, [{**ASKS, "type": "user_input"}], None),
        (antigravity.FORMAT, BRAIN, [{"step_index": 0, "type": "USER_INPUT"}], None),
        (hermes.FORMAT, "x", [HERMES], ["session:20260901_1"]),
        *((hermes.FORMAT, "x", [{k: v for k, v in HERMES.items() if k != lacks}], None)
          for lacks in HERMES),
        (windsurf.FORMAT, CASCADE, [SAID], ["session:1b2c3d4e-aaaa"]),
        (windsurf.FORMAT, CASCADE, [FIND, ANSWER], ["session:1b2c3d4e-aaaa"]),
        (windsurf.FORMAT, CASCADE, [FIND], None),
        (windsurf.FORMAT, CASCADE, [{**SAID, "user_input": "hi"}], None),
        (windsurf.FORMAT, CASCADE, [SAID, {"role": "user", "message": {}}], None),
    ],
)  # fmt: skip
def test_files_are_told_by_what_only_they_say(
    format_: Format, path: str, rows: list[Any], keys: list[str] | None
) -> None:
    claim = format_.claims(Head("\n".join(map(json.dumps, rows)).encode(), path, True))
    assert (claim.keys if claim else None) == keys


def test_aider_s_sessions_keep_their_ids_while_they_grow_and_count_once_in_copies() -> None:
    def read(*texts: str) -> Reading:
        named = ((text.encode(), "aider", f"/w/{n}/.aider.chat.history.md") for n, text in enumerate(texts))
        return aider.FORMAT.read([given(*file) for file in named])

    short, long = START + "#### hi  \n", START + "#### hi  \n\nhello\n"
    (before,), (after,) = read(short).sessions, read(short, long).sessions
    assert before.session_id == after.session_id and [event.kind for event in after.events][-1] == "text"
    assert len(read(long + START.replace("09:00", "10:00") + "#### hi  \n").sessions) == 2


def test_a_record_without_a_session_id_stays_with_its_file() -> None:
    def said(text: str, **more: str) -> dict[str, str]:
        return {"type": "message", "role": "user", "id": text, "text": text, **more}

    first = lines(said("a", session_id="s-1"), said("b"))
    second = lines(said("c"), said("d", session_id="s-2"))
    files = (given(data, "droid-exec", f"/w/{n}.jsonl") for n, data in enumerate((first, second)))
    sessions = DROID_EXEC_FORMAT.read([*files]).sessions
    assert [(s.session_id, [t.text for t in s.turns]) for s in sessions] == [("s-1", ["a", "b"]), ("s-2", ["c", "d"])]


def test_a_result_answers_only_a_call_of_its_own_tool() -> None:
    calls = {**ASKS, "source": "MODEL", "type": "PLANNER_RESPONSE", "tool_calls": [{"name": "view_file", "args": {}}]}
    lost = {**ASKS, "step_index": 1, "source": "MODEL", "type": "RUN_COMMAND", "status": "ERROR", "content": "no"}
    own = {**lost, "step_index": 2, "type": "VIEW_FILE", "status": "DONE", "content": "the file"}
    session = read_one(antigravity.FORMAT, given(lines(calls, lost, own), "antigravity", BRAIN))
    assert [(c.name, c.status) for c in session.tool_calls] == [("view_file", "ok")]
    assert [e.text for e in session.events if e.kind == "unknown"] == ["result without a call: RUN_COMMAND"]


def test_a_trial_without_a_number_has_none_in_its_id() -> None:
    row = {"task_id": 3, "reward": 1.0, "info": {}, "traj": [{"role": "user", "content": "hi"}]}
    data = json.dumps([row, {**row, "trial": 2}]).encode()
    attempts = tau_bench.FORMAT.read([given(data, "tau-bench", "/r/run.json")]).attempts
    assert [(a.trial_id, a.statements[0].text) for a in attempts] == [
        ("run/3", "task 3: reward 1"),
        ("run/3/2", "task 3, trial 2: reward 1"),
    ]


def test_windsurf_s_edits_have_both_texts_and_a_change_that_was_refused_is_none() -> None:
    accepted = {"acknowledgement_type": "ACKNOWLEDGEMENT_TYPE_ACCEPT", "path": "file:///home/me/p/a.py"}
    refused = {**accepted, "acknowledgement_type": "ACKNOWLEDGEMENT_TYPE_REJECT", "path": "file:///home/me/p/b.py"}
    steps = (
        step("code_action", original_content="a\nb\n", new_content="a\nc\n", **accepted),
        step("code_action", new_content="1\n2\n", **accepted),
        step("code_action", new_content="1\n", **refused),
        step("run_command", command="ls", cwd="/home/me/p"),
        step("teleport", to="b"),
    )
    session = read_one(windsurf.FORMAT, given(lines(*steps), "windsurf", CASCADE))
    assert [(e.path, e.op, e.start_line, e.added, e.removed) for e in session.edits] == [
        ("a.py", "modify", 2, 1, 1),
        ("a.py", "create", 1, 2, 0),
    ]
    assert [c.status for c in session.tool_calls] == ["ok", "ok", "rejected", "ok"]
    assert [e.text for e in session.events if e.kind == "unknown"] == ["teleport"]
    assert (session.session_id, session.cwd, len(session.steps)) == ("1b2c3d4e-aaaa", "/home/me/p", 1)


def test_the_file_that_a_resumed_chat_opens_beside_its_own_is_no_session() -> None:
    """It has the client's context alone, under the id of the chat and another time."""
    header = {"sessionId": "s1", "projectHash": "a" * 64, "startTime": "2026-11-29T14:41:00Z", "kind": "main"}
    context = {"id": "c", "timestamp": "2026-11-29T14:41:00Z", "type": "user", "content": "<session_context>\nHere"}
    prompt = {"id": "p", "timestamp": "2026-11-29T14:41:01Z", "type": "user", "content": "go"}
    opened = [header, {"$set": {"messages": [context]}}]
    for rows, expected in ((opened, []), ([*opened, prompt], ["s1"])):
        read = gemini_cli.FORMAT.read([given(lines(*rows), "gemini-cli")])
        assert [s.session_id for s in read.sessions] == expected
