"""Windsurf's transcripts (design/formats.md#small-formats): steps without ids, times and models."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.head import Head
from agentsignals.formats.windsurf import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from tests.formats.reading import given, lines, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "windsurf"
PATH = "/home/me/.windsurf/transcripts/1b2c3d4e-aaaa.jsonl"


def step(kind: str, status: str = "done", **body: object) -> dict[str, Any]:
    return {kind: body, "status": status, "type": kind}


def talk(*steps: object, path: str = PATH) -> Session:
    return read_one(FORMAT, given(lines(*steps), "windsurf", path))


SAID = step("user_input", user_response="hi")
ANSWER = step("planner_response", response="hello")


@pytest.mark.parametrize(
    ("steps", "keys"),
    [
        ([SAID], ["session:1b2c3d4e-aaaa"]),
        ([step("find", pattern="*"), ANSWER], ["session:1b2c3d4e-aaaa"]),
        ([step("find", pattern="*")], None),
        ([{**SAID, "user_input": "hi"}], None),
        ([SAID, {"role": "user", "message": {}}], None),
    ],
)
def test_only_steps_that_hold_what_they_are_and_somebody_s_words_are_windsurf_s(
    steps: list[object], keys: list[str] | None
) -> None:
    claim = FORMAT.claims(Head("\n".join(map(json.dumps, steps)).encode(), PATH, True))
    assert (claim.keys if claim else None) == keys


def test_edits_have_both_texts_and_a_change_that_was_refused_is_none() -> None:
    accepted = {"acknowledgement_type": "ACKNOWLEDGEMENT_TYPE_ACCEPT", "path": "file:///home/me/p/a.py"}
    refused = {**accepted, "acknowledgement_type": "ACKNOWLEDGEMENT_TYPE_REJECT", "path": "file:///home/me/p/b.py"}
    session = talk(
        step("code_action", original_content="a\nb\n", new_content="a\nc\n", **accepted),
        step("code_action", new_content="1\n2\n", **accepted),
        step("code_action", new_content="1\n", **refused),
        step("run_command", command="ls", cwd="/home/me/p"),
        step("teleport", to="b"),
    )
    assert [(e.path, e.op, e.start_line, e.added, e.removed) for e in session.edits] == [
        ("a.py", "modify", 2, 1, 1),
        ("a.py", "create", 1, 2, 0),
    ]
    assert [c.status for c in session.tool_calls] == ["ok", "ok", "rejected", "ok"]
    assert [e.text for e in session.events if e.kind == "unknown"] == ["teleport"]
    assert (session.session_id, session.cwd, len(session.steps)) == ("1b2c3d4e-aaaa", "/home/me/p", 1)


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_a_recorded_transcript_has_as_many_of_each_as_its_lines_say(tmp_path: Path) -> None:
    (path,) = CORPUS.glob("*.jsonl")
    types = Counter(json.loads(line)["type"] for line in path.read_text("utf-8").splitlines())
    _, store = pipeline.ingest_into([str(path)], tmp_path / "s", jobs=1)
    (session,) = map(store.session, store.manifest.sessions)
    assert (len(session.turns), Counter(c.name for c in session.tool_calls)) == (
        types.pop("user_input"),
        types - Counter(planner_response=types["planner_response"]),
    )
    assert Counter(c.status for c in session.tool_calls)["error"] == 1
    added, removed = Counter[str](), Counter[str]()
    for edit in session.edits:
        added[edit.call_id] += edit.added or 0
        removed[edit.call_id] += edit.removed or 0
    first, second = added
    assert (added[first], removed[first]) == (74, 0), "as git said in the session"
    assert added[second] == removed[second] >= 53, "git said 53, by the shortest difference"
