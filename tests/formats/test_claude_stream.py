"""The traps of Claude Code's headless stream, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_stream import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import Artifact, Session, prices
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


def test_a_long_context_is_no_other_model() -> None:
    long = {f"{OPUS}[1m]": {"inputTokens": 5, "outputTokens": 9, "costUSD": 0}}
    assert [
        s.model for s in read(INIT, assistant("a", text("x"), used=usage(5, 9)), result(modelUsage=long)).steps
    ] == [OPUS]


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


def test_a_total_that_is_not_by_model_covers_every_models_calls() -> None:
    advised = usage(100, 10) | {
        "iterations": [
            {"type": "advisor_message", "model": HAIKU, **usage(5000, 50)},
            {"type": "message", **usage(100, 10)},
        ]
    }
    session = read(
        INIT,
        assistant("a", text("ok"), used=advised),
        assistant("b", text("seen"), id_="m2", model=HAIKU, used=usage(700, 70), parent_tool_use_id="toolu_1"),
        result(total_cost_usd=0.5, usage=usage(100, 10)),
    )
    prices.apply(session)
    assert sum(step.cost_usd or 0.0 for step in session.steps) == 0.5
    assert sum(step.input_tokens or 0 for step in session.steps) == 5800
