"""The traps of Claude Code's headless stream, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_stream import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import MAIN, Artifact, Session, prices
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from agentsignals.views.usage import is_lower_bound
from tests.claude import SESSION, Log
from tests.formats import reading

OPUS, HAIKU = "claude-opus-4-6", "claude-haiku-4-5-20251001"
Row = dict[str, Any]
INIT = {
    "type": "system", "subtype": "init", "session_id": SESSION, "uuid": "i", "cwd": "/srv/shop", "model": OPUS,
    "claude_code_version": "2.1.59", "tools": ["Bash"],
}  # fmt: skip


def usage(input: int = 0, output: int = 0, read: int = 0, write: int = 0) -> dict[str, int]:  # noqa: A002  (the file's name)
    return {
        "input_tokens": input,
        "output_tokens": output,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
    }


def assistant(uuid: str, *blocks: Row, id_: str = "m1", used: Row | None = None, **facts: Any) -> Row:
    message = {"id": id_, "model": facts.pop("model", OPUS), "role": "assistant", "content": list(blocks)}
    message |= {"stop_reason": None, "usage": used or usage(1, 1)}
    return {
        "type": "assistant",
        "message": message,
        "session_id": SESSION,
        "uuid": uuid,
        "parent_tool_use_id": None,
    } | facts


def user(uuid: str, content: Any, **facts: Any) -> Row:
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "session_id": SESSION, "uuid": uuid, "parent_tool_use_id": None} | facts


def text(words: str) -> Row:
    return {"type": "text", "text": words}


def use(call_id: str, name: str = "Bash", **arguments: Any) -> Row:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(**facts: Any) -> Row:
    told = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "ok", "uuid": "r"}
    return {**told, "session_id": SESSION, **facts}


def by_model(**figures: tuple[int, int, float]) -> dict[str, Row]:
    names = {"opus": OPUS, "haiku": HAIKU}
    return {
        names[name]: {"inputTokens": used, "outputTokens": wrote, "costUSD": cost}
        for name, (used, wrote, cost) in figures.items()
    }


def given(*rows: Row | str, name: str = "a") -> Input:
    return reading.given(reading.lines(*rows), "claude-stream", name)


def read(*rows: Row | str) -> Session:
    (session,) = FORMAT.read([given(*rows)]).sessions
    return session


def test_a_start_says_who_and_where_and_is_no_event() -> None:
    session = read(INIT, assistant("a", text("hi")))
    assert (session.format, session.agent, session.agent_version) == ("claude-stream", "claude-code", "2.1.59")
    assert (session.model, session.cwd, session.session_id, session.context) == (OPUS, "/srv/shop", SESSION, "product")
    assert [e.kind for e in session.events] == ["text"]


def test_partial_messages_and_other_chatter_leave_nothing() -> None:
    part = {"type": "stream_event", "event": {"delta": {"text": "h"}}, "session_id": SESSION, "uuid": "p"}
    hook = {**part, "type": "system", "subtype": "hook_started", "uuid": "h"}
    session = read(INIT, part, {**part, "type": "tool_progress", "uuid": "q"}, hook, assistant("a", text("hi")))
    assert [(e.kind, e.text) for e in session.events] == [("text", "hi")]


def test_a_stream_of_chatter_alone_is_no_session() -> None:
    part = {"type": "stream_event", "event": {}, "session_id": SESSION, "uuid": "p"}
    assert FORMAT.read([given(INIT, part)]).sessions == []


@pytest.mark.parametrize(
    ("rows", "is_bound"),
    [
        ([assistant("a", text("x"), used=usage(3, 2))], True),
        ([assistant("a", text("x"), used=usage(3, 2)), result(usage=usage(3, 107))], False),
        # killed in the run after: of three calls the totals hold one
        ([assistant("a", text("x"), used=usage(3, 2)), result(usage=usage(3, 107)),
          assistant("b", text("x"), id_="m2"), assistant("c", text("x"), id_="m3"),
          assistant("d", text("x"), id_="m4")], True),
    ],
)  # fmt: skip
def test_output_of_a_run_is_a_lower_bound_until_its_totals_come(rows: list[Row], is_bound: bool) -> None:
    assert is_lower_bound(read(INIT, *rows)) is is_bound


@pytest.mark.parametrize(("speeds", "usd"), [(("fast", "fast"), 30.0), ((None, None), 5.0), (("fast", None), 5.0)])
def test_totals_are_charged_as_the_calls_were_served(speeds: tuple[str | None, ...], usd: float) -> None:
    rows = [
        assistant(f"a{n}", text("x"), id_=f"m{n}", used={**usage(0, 0), "speed": speed})
        for n, speed in enumerate(speeds)
    ]
    session = read(INIT, *rows, result(usage=usage(1_000_000)))
    prices.apply(session)
    # Under the price of today, long prompts included; opus 4.6 in fast mode costs six times as much.
    assert sum(s.cost_usd or 0 for s in session.steps) == pytest.approx(usd)


def test_a_subagent_whose_records_are_in_the_stream_counts_once() -> None:
    totals = {"agentId": "abc", "totalToolUseCount": 1, "totalTokens": 777}
    session = read(
        INIT,
        assistant("a", use("t1", "Task", prompt="look"), use("t2", "Task", prompt="look")),
        assistant("b", use("t3", command="ls"), id_="m2", parent_tool_use_id="t1"),
        user("c", [{"type": "tool_result", "tool_use_id": "t3", "content": "x"}], parent_tool_use_id="t1"),
        user("d", [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}], tool_use_result=totals),
        user("e", [{"type": "tool_result", "tool_use_id": "t2", "content": "ok"}], tool_use_result={
            **totals, "agentId": "def", "totalToolUseCount": 9}),
    )  # fmt: skip
    assert [s.summed_calls for s in session.steps if s.summed_calls is not None] == [9]
    assert [c.call_id for c in session.tool_calls if c.thread != MAIN] == ["t3"]


def test_what_calls_do_not_account_for_closes_the_run() -> None:
    """The usage of a message is printed when it begins: its output is still to come."""
    session = read(
        INIT,
        assistant("a", text("x"), id_="m1", used=usage(3, 2, 900, 40)),
        assistant("b", use("t1"), id_="m1", used=usage(3, 2, 900, 40)),
        assistant("c", text("y"), id_="m2", used=usage(1, 1, 940, 10)),
        result(usage=usage(4, 107, 1840, 50), total_cost_usd=0.03),
    )
    assert [(s.output_tokens, s.stop_reason) for s in session.steps] == [(2, None), (1, None), (104, "session_total")]
    assert sum(s.input_tokens or 0 for s in session.steps) == 4
    assert sum(s.cache_read_tokens or 0 for s in session.steps) == 1840
    assert sum(s.cache_write_tokens or 0 for s in session.steps) == 50
    assert sum(s.cost_usd or 0 for s in session.steps) == pytest.approx(0.03)


def test_models_that_no_message_is_by_are_counted_with_their_cost() -> None:
    session = read(
        INIT,
        assistant("a", text("x"), used=usage(5, 9)),
        result(modelUsage=by_model(opus=(5, 9, 0.02), haiku=(319, 32, 0.001)), total_cost_usd=0.021),
    )
    prices.apply(session)
    assert [(s.model, s.output_tokens, s.cost_usd) for s in session.steps] == [
        (OPUS, 9, 0.0), (OPUS, 0, 0.02), (HAIKU, 32, 0.001),
    ]  # fmt: skip
    assert {s.cost_source for s in session.steps} == {"recorded"}


def test_a_long_context_is_no_other_model() -> None:
    long = {f"{OPUS}[1m]": {"inputTokens": 5, "outputTokens": 9, "costUSD": 0}}
    assert [
        s.model for s in read(INIT, assistant("a", text("x"), used=usage(5, 9)), result(modelUsage=long)).steps
    ] == [OPUS]


def test_totals_that_go_on_growing_are_counted_by_what_they_grew() -> None:
    session = read(
        INIT,
        assistant("a", text("x"), id_="m1", used=usage(5, 1)),
        result(uuid="r1", modelUsage=by_model(opus=(5, 10, 0.1))),
        assistant("b", text("y"), id_="m2", used=usage(7, 1)),
        result(uuid="r2", modelUsage=by_model(opus=(12, 30, 0.3))),
    )
    assert sum(s.output_tokens or 0 for s in session.steps) == 30
    assert sum(s.input_tokens or 0 for s in session.steps) == 12
    assert sum(s.cost_usd or 0 for s in session.steps) == pytest.approx(0.3)


def test_runs_printed_into_one_file_are_a_session_each() -> None:
    printed = [{**row, "session_id": f"s{n}"} for n in range(20) for row in (INIT, user("u", f"do it {n}"), result())]
    source = given(*printed)
    sessions = FORMAT.read([source]).sessions
    assert sorted(s.session_id for s in sessions) == sorted(f"s{n}" for n in range(20))
    assert {(s.model, len(s.turns)) for s in sessions} == {(OPUS, 1)}
    assert "repeated" not in source.artifact.record_kinds


def test_a_resumed_run_counts_from_zero_and_repeats_nothing() -> None:
    first = given(
        INIT, assistant("a", text("x"), id_="m1"), result(uuid="r1", modelUsage=by_model(opus=(1, 10, 0.1))), name="1"
    )
    second = given(
        {**INIT, "uuid": "i2"},
        assistant("a", text("x"), id_="m1"),
        assistant("b", text("y"), id_="m2"),
        result(uuid="r2", modelUsage=by_model(opus=(1, 20, 0.2))),
        name="2",
    )
    (session,) = FORMAT.read([second, first]).sessions
    assert [e.text for e in session.events if e.kind == "text"] == ["x", "y"]
    assert sum(s.output_tokens or 0 for s in session.steps) == 30
    assert sum(s.cost_usd or 0 for s in session.steps) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("second", "totals"),
    [
        ((490, 50, 0.5), (490, 50, 0.5)),  # they hold the first run's, as of 2.1.330
        ((124, 20, 0.2), (490, 50, 0.5)),  # they begin at zero, as before
        ((700, 60, 0.6), (700, 60, 0.6)),  # they hold it, and a call that no message is by
    ],
)
def test_totals_of_a_resumed_run_count_what_it_used_once(
    second: tuple[int, int, float], totals: tuple[int, int, float]
) -> None:
    first = given(
        INIT,
        assistant("a", text("x"), id_="m1", used=usage(366, 1)),
        result(uuid="r1", modelUsage=by_model(opus=(366, 30, 0.3))),
        name="1",
    )
    resumed = given(
        {**INIT, "uuid": "i2"},
        assistant("b", text("y"), id_="m2", used=usage(124, 1)),
        result(uuid="r2", modelUsage=by_model(opus=second)),
        name="2",
    )
    (session,) = FORMAT.read([first, resumed]).sessions
    counted = [(s.input_tokens or 0, s.output_tokens or 0, s.cost_usd or 0) for s in session.steps]
    assert [sum(column) for column in zip(*counted, strict=True)] == pytest.approx(totals)


@pytest.mark.parametrize(
    ("facts", "errors"),
    [
        ({"is_error": False}, []),
        ({"is_error": True, "result": "API Error: 529"}, ["API Error: 529"]),
        ({"subtype": "error_during_execution", "is_error": True, "result": None, "errors": ["lost"]}, ['["lost"]']),
        ({"subtype": "error_max_turns", "is_error": True}, []),
    ],
)
def test_a_success_may_be_an_error(facts: Row, errors: list[str]) -> None:
    session = read(INIT, result(**facts))
    assert [e.text for e in session.events if e.kind == "api_error"] == errors
    (told,) = [e.text for e in session.events if e.kind == "meta"]
    assert json.loads(told or "")["is_error"] is facts["is_error"]


def test_a_denied_call_failed_for_want_of_permission() -> None:
    refusal = {"type": "tool_result", "tool_use_id": "t1", "content": "No.", "is_error": True}
    denied = [{"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {}}]
    (call,) = read(INIT, assistant("a", use("t1")), user("b", [refusal]), result(permission_denials=denied)).tool_calls
    assert (call.status, call.error_class) == ("error", "permission")


def test_a_subagent_is_a_thread_named_by_the_call_that_started_it() -> None:
    session = read(
        INIT,
        assistant("a", use("t1", "Task", prompt="look"), id_="m1"),
        user("b", [text("look")], parent_tool_use_id="t1"),
        assistant("c", text("found"), id_="m2", parent_tool_use_id="t1"),
    )
    assert session.turns == []
    assert [(e.kind, e.thread) for e in session.events] == [("tool_call", MAIN), ("meta", "t1"), ("text", "t1")]


def test_replayed_prompts_are_turns_and_synthetic_ones_are_not() -> None:
    session = read(INIT, user("a", "fix it", isReplay=True), user("b", [text("Skill body")], isSynthetic=True))
    assert [t.text for t in session.turns] == ["fix it"]


def test_edits_come_from_the_structured_result() -> None:
    patch = {
        "filePath": "/srv/shop/a.py",
        "structuredPatch": [{"oldStart": 3, "newStart": 3, "lines": ["-a", "+b", "+c"]}],
    }
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "updated"}
    rows = (
        assistant("a", use("t1", "Edit", file_path="/srv/shop/a.py")), user("b", [answer], tool_use_result=patch),
    )  # fmt: skip
    (edit,) = read(INIT, *rows).edits
    assert (edit.path, edit.start_line, edit.end_line, edit.added, edit.removed) == ("a.py", 3, 4, 2, 1)


def test_a_compaction_says_how_long_the_context_was() -> None:
    mark = {"type": "system", "subtype": "compact_boundary", "session_id": SESSION, "uuid": "c"}
    (event,) = read(INIT, {**mark, "compact_metadata": {"trigger": "auto", "pre_tokens": 9}}).events
    assert (event.kind, json.loads(event.text or "")) == ("compaction", {"trigger": "auto", "preTokens": 9})


def test_a_list_of_records_is_read_like_lines() -> None:
    rows = [INIT, assistant("a", text("hi")), result()]
    data = json.dumps(rows, indent=2).encode()
    artifact = Artifact(artifact_id="a", source="t", path="a", format="claude-stream", sha256="", bytes=len(data))
    (session,) = FORMAT.read([Input(data, artifact)]).sessions
    assert [e.kind for e in session.events] == ["text", "meta"]
    cut = Artifact(artifact_id="a", source="t", path="a", format="claude-stream", sha256="", bytes=0)
    (session,) = FORMAT.read([Input(data[:-40], cut)]).sessions
    assert [e.text for e in session.events] == ["hi"]
    assert cut.skipped_reasons == {"cut_document": 1}


@pytest.mark.parametrize("first", [b"[[[[", b"[]", b"[5]", b"{", b'{"type": "sys', b"\xff"])
def test_a_broken_first_line_costs_itself(first: bytes) -> None:
    rows = [INIT, assistant("a", text("hi")), result()]
    data = b"\n".join([first, *(json.dumps(row).encode() for row in rows)]) + b"\n"
    artifact = Artifact(artifact_id="a", source="t", path="a", format="claude-stream", sha256="", bytes=len(data))
    (session,) = FORMAT.read([Input(data, artifact)]).sessions
    assert [e.kind for e in session.events] == ["text", "meta"]
    assert (artifact.records, artifact.skipped) == (4, 1)


def test_a_transcript_of_the_same_run_is_believed_and_nothing_counts_twice(tmp_path: Path) -> None:
    log = Log()
    log.user("fix it")
    log.say("done")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "t.jsonl").write_bytes(log.data())
    (tmp_path / "in" / "out.txt").write_bytes(given(INIT, assistant("a", text("done")), result()).data)
    summary = pipeline.analyze([str(tmp_path / "in")], tmp_path / "store")
    assert (summary.sessions, summary.prompts) == (1, 1)
    _, found = asked(Store(tmp_path / "store"), "SELECT format FROM sessions")
    assert found == [("claude-code",)]
