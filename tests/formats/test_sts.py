"""The traps of STS conversations, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.sts import FORMAT
from agentsignals.model import ABANDONED, MAIN, Artifact, Session

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval" / "sts" / "conv_a6ef7da3.jsonl"
HEADER: dict[str, Any] = {"type": "session", "harness": "acme.app", "id": "c-1"}
USED = {"predicted_n": 9, "prompt_n": 20, "cache_n": 80}


def lines(*messages: dict[str, Any], **header: Any) -> bytes:
    rows = [{**HEADER, **header}, *({"type": "message", "message": m} for m in messages)]
    return "".join(json.dumps(r) + "\n" for r in rows).encode()


def given(data: bytes, name: str = "a") -> Input:
    return Input(data, Artifact(artifact_id=name, source="t", path=name, format="sts", sha256="", bytes=len(data)))


def read(*messages: dict[str, Any], **header: Any) -> Session:
    (session,) = FORMAT.read([given(lines(*messages, **header))]).sessions
    return session


def said(role: str, text: str = "", id_: str | None = None, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **({"id": id_, "parent": parent} if id_ else {}), **more}


def asks(*calls: tuple[str, str], **more: Any) -> dict[str, Any]:
    made = [{"id": i, "function": {"name": n, "arguments": "{}"}} for i, n in calls]
    return said("assistant", "", toolCalls=made, **more)


def run(*turns: tuple[int, int, list[bool]], **last: Any) -> dict[str, Any]:
    told = [{"llm": {"prompt_n": p, "predicted_n": w}, "toolCalls": [{"success": s} for s in ok]} for p, w, ok in turns]
    return {**USED, **last, "agentic": {"perTurn": told}}


@pytest.mark.parametrize(
    ("header", "claimant"),
    [
        ({"type": "session", "harness": "acme.app", "id": "x", "cwd": "/r", "version": 3}, "sts"),
        ({"type": "session", "id": "x", "cwd": "/r", "version": 3}, "pi"),
        ({"type": "session", "harness": "acme.app"}, "sts"),
        ({"type": "session", "id": "x"}, None),
        ({"type": "session", "harness": 7, "id": "x"}, None),
    ],
)
def test_a_session_with_a_harness_is_sts_and_one_without_may_be_pi(
    header: dict[str, Any], claimant: str | None
) -> None:
    data = (json.dumps(header) + "\n").encode() + lines(said("user", "hi")).split(b"\n", 1)[1]
    found = identify(Head(data, "x.jsonl", True))
    assert (found[0].name if found is not None else None) == claimant


def test_claude_look_alikes_with_a_harness_are_not_sts() -> None:
    rows = [HEADER, {"type": "user", "parentUuid": None, "sessionId": "s", "harness": "swival"}]
    assert FORMAT.claims(Head("".join(json.dumps(r) + "\n" for r in rows).encode(), "x", True)) is None


def test_the_conversation_is_the_way_to_the_current_node() -> None:
    tree = (
        said("system", "", "r", None, type="root"), said("user", "a", "1", "r"), said("assistant", "b", "2", "1"),
        said("user", "c", "3", "2"), said("assistant", "d", "4", "1"),
    )  # fmt: skip
    session = read(*tree, currNode="4")
    assert [(e.text, e.thread) for e in session.events] == [
        ("a", MAIN), ("b", ABANDONED), ("c", ABANDONED), ("d", MAIN),
    ]  # fmt: skip
    assert [t.text for t in session.turns] == ["a"]
    assert [e.thread for e in read(*tree, currNode="gone").events] == [MAIN, ABANDONED, ABANDONED, MAIN]
    assert [e.thread for e in read(*tree, currNode="3").events] == [MAIN, MAIN, MAIN, ABANDONED]


def test_messages_without_ids_are_one_conversation() -> None:
    session = read(said("user", "a"), said("assistant", "b"), said("user", "c"))
    assert [(e.text, e.thread) for e in session.events] == [("a", MAIN), ("b", MAIN), ("c", MAIN)]


def test_a_lost_line_abandons_nothing_before_it() -> None:
    session = read(said("user", "a", "1", None), said("assistant", "c", "3", "2"), currNode="3")
    assert {e.thread for e in session.events} == {MAIN}


def test_parents_in_a_circle_are_no_trouble() -> None:
    session = read(said("user", "a", "1", "2"), said("assistant", "b", "2", "1"), currNode="2")
    assert [e.text for e in session.events] == ["a", "b"]


def test_a_run_s_figures_stand_at_each_answer_and_count_once() -> None:
    told = run((60, 7, [True]), (20, 9, []))
    result = said("tool", "x", toolCallId="t")
    session = read(
        said("user", "go"), asks(("t", "web_search"), timings=told), result, said("assistant", "ok", timings=told)
    )
    assert [(s.input_tokens, s.output_tokens, s.cache_read_tokens) for s in session.steps] == [
        (60, 7, None),
        (20, 9, 80),
    ]


def test_figures_that_fit_no_answers_are_of_none() -> None:
    told = run((60, 7, []), (20, 9, []))
    session = read(said("user", "go"), said("assistant", "ok", timings=told))
    assert [(s.input_tokens, s.output_tokens) for s in session.steps] == [(None, None)]


def test_runs_are_told_apart_by_the_prompts() -> None:
    one, two = run((1, 2, [])), run((3, 4, []))
    session = read(
        said("user", "a"), said("assistant", "b", timings=one), said("user", "c"), said("assistant", "d", timings=two)
    )
    assert [(s.input_tokens, s.output_tokens) for s in session.steps] == [(1, 2), (3, 4)]


def test_an_answer_by_itself_has_its_own_figures() -> None:
    session = read(said("user", "go"), said("assistant", "a", timings=USED), said("assistant", "b"))
    assert [(s.input_tokens, s.output_tokens, s.cache_read_tokens) for s in session.steps] == [
        (20, 9, 80),
        (None, None, None),
    ]


def test_a_call_that_the_run_calls_failed_is_an_error() -> None:
    told = run((1, 1, [True, False]), (2, 2, []))
    answers = (said("tool", "fine", toolCallId="t"), said("tool", "404 not found", toolCallId="u"))
    session = read(
        said("user", "go"), asks(("t", "web_search"), ("u", "bash"), timings=told), *answers, said("assistant", "x")
    )
    assert [(c.name, c.class_, c.status, c.error_class) for c in session.tool_calls] == [
        ("web_search", "web", "ok", None), ("bash", "shell", "error", "not_found"),
    ]  # fmt: skip


def test_an_edit_that_succeeded_is_a_change_of_its_file() -> None:
    made = {"id": "e", "function": {"name": "write_file", "arguments": '{"path": "a.py", "content": "x\\ny"}'}}
    look = {"id": "l", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    answers = (said("tool", "ok", toolCallId="e"), said("tool", "a.py", toolCallId="l"))
    session = read(said("user", "go"), said("assistant", "", toolCalls=[made, look]), *answers)
    assert [(e.path, e.op, e.added) for e in session.edits] == [("a.py", "create", 2)]


def test_a_result_of_no_call_is_kept() -> None:
    session = read(said("user", "go"), said("tool", "late", toolCallId="zz"))
    assert [(e.kind, e.text) for e in session.events][-1] == ("tool_result", "late")


def test_a_record_that_is_not_understood_is_kept() -> None:
    note = b'{"type":"note","what":"else"}'
    (session,) = FORMAT.read([given(lines(said("user", "a")) + note + b"\n")]).sessions
    assert [(e.kind, e.text, e.line) for e in session.events][-1] == ("unknown", note.decode(), 3)


def test_of_two_snapshots_the_longer_counts() -> None:
    short, long = given(lines(said("user", "a")), "s"), given(lines(said("user", "a"), said("assistant", "b")), "l")
    (session,) = FORMAT.read([short, long]).sessions
    assert len(session.events) == 2
    assert short.artifact.note == "superseded by l"


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus")
def test_the_real_conversation() -> None:
    data = CORPUS.read_bytes()
    found = identify(Head(data[:HEAD_BYTES], CORPUS.as_posix(), True))
    assert found is not None
    assert (found[0].name, found[1].keys) == ("sts", ["session:a6ef7da3-14ca-4bc4-8521-1aba45124532"])
    (session,) = FORMAT.read([given(data)]).sessions
    told = [json.loads(line)["message"] for line in data.splitlines()[1:]]
    last = next(m["timings"] for m in reversed(told) if m.get("timings"))
    assert sum(s.output_tokens or 0 for s in session.steps) == last["agentic"]["llm"]["predicted_n"] == 431
    assert sum(s.input_tokens or 0 for s in session.steps) == last["agentic"]["llm"]["prompt_n"] == 2185
    assert [s.cache_read_tokens for s in session.steps] == [None, 2158]
    assert [(c.name, c.status) for c in session.tool_calls] == [("web_fetch_exa", "ok")]
    assert (session.agent, len(session.turns), session.context) == ("llama.app", 1, "product")
