"""The traps of OpenTelemetry traces of generative AI, one test each (the conventions 1.28 to 1.41; no real file)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import Input, Reading
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.otel_genai import FORMAT
from agentsignals.model import MAIN, Artifact, Session
from tests.otel_spans import T0, agentic, call, chat, event, export, pairs, span, text, value


def given(*exports: Any, name: str = "a") -> Input:
    data = "".join(json.dumps(e) + "\n" for e in exports).encode()
    return Input(
        data, Artifact(artifact_id=name, source="t", path=name, format="otel-genai", sha256="", bytes=len(data))
    )


def read(*exports: Any) -> Reading:
    return FORMAT.read([given(*exports)])


def session_of(*spans: Any, **more: Any) -> Session:
    (session,) = read(export(*spans, **more)).sessions
    return session


def told(session: Session) -> list[tuple[str, str | None]]:
    return [(e.kind, e.text) for e in session.events]


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        (agentic()[0], ["otel:conv-1", f"otel:{'f' * 32}"]),
        (export(span("a", 0)), None),
        ({"resourceSpans": 7}, None),
        ({"spans": [{"key": "gen_ai.x"}]}, None),
        ({"resourceLogs": [{"scopeLogs": [{"logRecords": [event("gen_ai.choice")]}]}]}, []),
    ],
)
def test_a_batch_that_speaks_of_models_is_claimed_by_its_traces(document: Any, keys: list[str] | None) -> None:
    for form in (json.dumps(document), json.dumps(document, indent=2)):
        claim = FORMAT.claims(Head(form.encode(), "x.json", True))
        assert (claim.keys if claim is not None else None) == keys


def test_a_long_document_is_known_by_its_beginning() -> None:
    data = json.dumps(export(*(chat(f"{n:016x}", n, [text("user", "x" * 500)]) for n in range(200)))).encode()
    assert len(data) > HEAD_BYTES
    assert FORMAT.claims(Head(data[:HEAD_BYTES], "x", False)) is not None


def test_a_conversation_is_a_session_whatever_its_traces() -> None:
    (session,) = read(*agentic()).sessions
    assert (session.session_id, session.agent, session.agent_version, session.context) == (
        "conv-1",
        "mender",
        "2.1",
        "product",
    )
    assert [t.text for t in session.turns] == ["Fix it", "Thanks, more"]
    assert [(e.kind, e.text) for e in session.events if e.kind != "tool_call"] == [
        ("human_turn", "Fix it"), ("thinking", "Where?"), ("text", "Looking."), ("tool_result", "x = 1"),
        ("tool_result", "timed out"), ("text", "Done."), ("human_turn", "Thanks, more"), ("text", "More."),
    ]  # fmt: skip
    assert [(c.name, c.class_, c.path, c.status, c.error_class) for c in session.tool_calls] == [
        ("read_file", "read", "a.py", "ok", None), ("bash", "test", None, "error", "timeout"),
    ]  # fmt: skip
    assert (session.started_at, session.ended_at) == (T0 // 1000, T0 // 1000 + 49_000_000)


def test_traces_without_a_conversation_are_sessions_of_their_own() -> None:
    reading = read(export(chat("a", 1, trace="1" * 32), chat("b", 2, trace="2" * 32)))
    assert [s.session_id for s in reading.sessions] == ["1" * 32, "2" * 32]


def test_spans_of_anything_else_are_no_session() -> None:
    one = given(export(span("a", 0, name="GET /")))
    assert FORMAT.read([one]).sessions == []
    assert one.artifact.record_kinds == {"batch": 1, "span.other": 1}


def test_cached_tokens_are_taken_out_of_the_input() -> None:
    def used(**usage: int) -> tuple[int | None, ...]:
        facts: dict[str, Any] = {f"usage.{k.replace('__', '.')}": v for k, v in usage.items()}
        (step,) = session_of(chat("a", 1, said=[text("assistant", "x")], facts=facts)).steps
        return step.input_tokens, step.output_tokens, step.cache_read_tokens, step.cache_write_tokens

    assert used(input_tokens=100, output_tokens=5, cache_read__input_tokens=60) == (40, 5, 60, None)
    assert used(input_tokens=100, cache_read__input_tokens=60, cache_creation__input_tokens=30) == (10, None, 60, 30)
    assert used(input_tokens=3, cache_read__input_tokens=60) == (3, None, 60, None), "beside, against the conventions"
    assert used(prompt_tokens=7, completion_tokens=2) == (7, 2, None, None), "as named before 1.27"
    assert used() == (None, None, None, None)


@pytest.mark.parametrize(
    ("facts", "tier"),
    [
        ({"gen_ai.openai.response.service_tier": "priority"}, "priority"),
        ({"gen_ai.openai.response.service_tier": "default", "gen_ai.openai.request.service_tier": "priority"}, None),
        ({}, None),
    ],
)
def test_a_call_says_how_it_was_served(facts: dict[str, str], tier: str | None) -> None:
    (step,) = session_of(chat("a", 1, [text("user", "hi")], facts=facts)).steps
    assert step.service_tier == tier


def test_a_call_told_by_two_instrumentations_is_one() -> None:
    inner = chat("b", 1, [text("user", "hi")], [text("assistant", "ho")], parent="a", facts={"usage.input_tokens": 5})
    outer = chat("a", 1, [text("user", "hi")], [text("assistant", "ho")], lasts=2, facts={"usage.input_tokens": 5})
    session = session_of(inner, outer)
    assert [s.input_tokens for s in session.steps] == [5]
    assert told(session) == [("human_turn", "hi"), ("text", "ho")]


def test_words_that_are_said_again_count_again() -> None:
    go, ok = text("user", "go on"), text("assistant", "ok")
    session = session_of(
        chat("a", 1, [go], [ok]), chat("b", 90, [go, ok, go], [ok]), chat("c", 200, [go, ok, go, ok, go], [ok])
    )
    assert told(session) == [("human_turn", "go on"), ("text", "ok")] * 3


@pytest.mark.parametrize("shape", ["json", "structured"])
def test_messages_are_json_or_structured(shape: str) -> None:
    asked, said = [text("user", "hi")], [text("assistant", "", call("c", "bash", command="ls"))]
    one = chat("a", 1)
    facts = {
        "gen_ai.input.messages": asked,
        "gen_ai.output.messages": said,
        "gen_ai.system_instructions": [{"type": "text", "content": "s"}],
    }
    one["attributes"] += pairs(facts) if shape == "structured" else pairs({k: json.dumps(v) for k, v in facts.items()})
    session = session_of(one)
    assert told(session) == [("meta", "s"), ("human_turn", "hi"), ("tool_call", None)]
    assert session.tool_calls[0].command == "ls"


def events_of_1_36() -> list[dict[str, Any]]:
    calls = [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]
    return [
        event("gen_ai.system.message", content="s"), event("gen_ai.user.message", content="hi"),
        event("gen_ai.assistant.message", tool_calls=json.dumps(calls)),
        event("gen_ai.tool.message", id="c", content="a.py"),
        event("gen_ai.choice", index=0, finish_reason="stop", message=json.dumps({"content": "one file"})),
    ]  # fmt: skip


def test_messages_may_be_events_of_the_span() -> None:
    session = session_of(chat("a", 1, events=events_of_1_36()))
    assert told(session) == [
        ("meta", "s"), ("human_turn", "hi"), ("tool_call", None), ("tool_result", "a.py"), ("text", "one file"),
    ]  # fmt: skip
    assert [(c.command, c.status) for c in session.tool_calls] == [("ls", "ok")]
    assert [s.stop_reason for s in session.steps] == ["stop"]


def test_messages_may_be_logs_that_name_the_span() -> None:
    logs = tuple(
        {"traceId": "f" * 32, "spanId": "a", "eventName": e["name"], "body": value(_plain(e["attributes"]))}
        for e in events_of_1_36()
    )
    assert told(session_of(chat("a", 1), logs=logs)) == told(session_of(chat("a", 1, events=events_of_1_36())))


def _plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {p["key"]: next(iter(p["value"].values())) for p in attributes}


def test_details_may_be_one_event() -> None:
    facts = {"gen_ai.input.messages": [text("user", "hi")], "gen_ai.output.messages": [text("assistant", "ho")]}
    one = chat("a", 1, events=[event("gen_ai.client.inference.operation.details", **facts)])
    assert told(session_of(one)) == [("human_turn", "hi"), ("text", "ho")]


def test_prompts_and_completions_of_the_first_conventions() -> None:
    events = [
        event(
            "gen_ai.content.prompt",
            **{"gen_ai.prompt": '[{"role": "user", "content": [{"type": "text", "text": "hi"}]}]'},
        ),
        event("gen_ai.content.completion", **{"gen_ai.completion": '[{"role": "assistant", "content": "ho"}]'}),
    ]
    assert told(session_of(chat("a", 1, events=events))) == [("human_turn", "hi"), ("text", "ho")]


def test_messages_may_be_numbered_in_names() -> None:
    facts = {
        "prompt.0.role": "user", "prompt.0.content": "hi", "prompt.1.role": "tool", "prompt.1.content": "r",
        "prompt.1.tool_call_id": "zz", "completion.0.role": "assistant", "completion.0.content": "ho",
        "completion.0.tool_calls.0.id": "c", "completion.0.tool_calls.0.name": "bash",
        "completion.0.tool_calls.0.arguments": '{"command": "ls"}', "completion.0.finish_reason": "tool_calls",
    }  # fmt: skip
    session = session_of(chat("a", 1, facts=facts))
    assert told(session) == [("human_turn", "hi"), ("text", "ho"), ("tool_call", None)]
    assert [(s.stop_reason, session.tool_calls[0].command) for s in session.steps] == [("tool_calls", "ls")]


def test_without_contents_there_are_calls_and_no_words() -> None:
    tool = span("t", 3, facts={"operation.name": "execute_tool", "tool.name": "bash"})
    session = session_of(chat("a", 1, facts={"usage.input_tokens": 5}), tool)
    assert (len(session.turns), len(session.steps)) == (0, 1)
    assert [(c.name, c.class_, c.status) for c in session.tool_calls] == [("bash", "shell", "ok")]


def test_a_tool_s_span_without_an_id_answers_the_oldest_call_of_its_name() -> None:
    said = [text("assistant", "", call("c1", "bash", command="ls"), call("c2", "bash", command="pwd"))]
    tools = [
        span(f"t{n}", 3 + n, facts={"operation.name": "execute_tool", "tool.name": "bash", "tool.call.result": f"r{n}"})
        for n in (1, 2, 3)
    ]
    session = session_of(chat("a", 1, said=said), *tools)
    assert [(c.call_id, session.events[c.result_seq or 0].text) for c in session.tool_calls] == [
        ("c1", "r1"),
        ("c2", "r2"),
        ("t3", "r3"),
    ]


def test_a_model_s_name_is_the_answer_s_or_the_request_s() -> None:
    session = session_of(chat("a", 1), chat("b", 2, facts={"response.model": "gpt-x-1"}))
    assert [s.model for s in session.steps] == ["gpt-x", "gpt-x-1"]


def test_what_an_agent_was_asked_is_the_prompt_once() -> None:
    hi = [text("user", "hi")]
    agent = {"operation.name": "invoke_agent", "input.messages": json.dumps(hi)}
    assert told(session_of(span("o", 0, lasts=9, facts=agent), chat("m", 1, parent="o"))) == [("human_turn", "hi")]
    assert told(session_of(span("o", 0, lasts=9, facts=agent), chat("m", 1, hi, parent="o"))) == [("human_turn", "hi")]
    assert [
        t.text for t in session_of(span("h", 0, facts={"input.messages": json.dumps(hi)}), chat("m", 1)).turns
    ] == []


def test_an_edit_that_succeeded_is_a_change_of_its_file() -> None:
    calls = [call(i, "write_file", path=f"{i}.py", content="x\ny") for i in ("a", "b")]
    tool = {"operation.name": "execute_tool", "tool.name": "write_file"}
    session = session_of(
        chat("m", 1, said=[text("assistant", "", *calls)]), span("t", 2, facts={**tool, "tool.call.id": "a"}),
        span("u", 3, facts={**tool, "tool.call.id": "b"}, status={"code": 2}),
    )  # fmt: skip
    assert [(e.path, e.op, e.added) for e in session.edits] == [("a.py", "create", 2)]
    assert [c.status for c in session.tool_calls] == ["ok", "error"]


def test_spans_that_name_no_operation_are_known_by_their_attributes() -> None:
    one = given(export(span("a", 1, facts={"request.model": "m"}), span("t", 2, facts={"tool.name": "bash"}),
                       span("e", 3, facts={"operation.name": "embeddings", "request.model": "m"})))  # fmt: skip
    (session,) = FORMAT.read([one]).sessions
    assert (len(session.steps), [c.name for c in session.tool_calls]) == (1, ["bash"])
    assert one.artifact.record_kinds == {"batch": 1, "span.model": 1, "span.tool": 1, "span.other": 1}


def test_a_place_is_the_line_of_its_batch_or_the_span_s_number_in_a_document() -> None:
    hi, ho = [text("user", "hi")], [text("user", "ho")]
    (lines,) = read(export(chat("a", 1, hi)), export(chat("b", 2, ho))).sessions
    document = json.dumps(export(chat("a", 1, hi), chat("b", 2, ho)), indent=1).encode()
    (printed,) = FORMAT.read(
        [Input(document, Artifact(artifact_id="a", source="t", path="a", format="otel-genai", sha256="", bytes=1))]
    ).sessions
    assert [e.line for e in lines.events] == [e.line for e in printed.events] == [1, 2]


def test_an_agent_within_an_agent_is_a_thread() -> None:
    agent = {"operation.name": "invoke_agent", "agent.name": "x"}
    session = session_of(
        span("o", 0, lasts=9, facts=agent), chat("m", 1, [text("user", "hi")], [text("assistant", "a")], "o"),
        span("i", 2, "o", lasts=3, facts=agent), chat("n", 3, [text("user", "sub")], [text("assistant", "b")], "i"),
    )  # fmt: skip
    assert [s.thread for s in session.steps] == [MAIN, "i"]
    assert [t.text for t in session.turns] == ["hi"]


def test_spans_that_begin_together_are_nested_all_the_same() -> None:
    agent = {"operation.name": "invoke_agent"}
    inner, outer = span("a", 0, "z", lasts=2, facts=agent), span("z", 0, lasts=5, facts=agent)
    session = session_of(chat("m", 0, said=[text("assistant", "x")], parent="a"), inner, outer)
    assert [s.thread for s in session.steps] == ["a"]


def test_a_model_call_that_failed_is_told() -> None:
    failed = chat(
        "a",
        1,
        [text("user", "hi")],
        facts={"error.type": "429"},
        status={"code": "STATUS_CODE_ERROR", "message": "slow down"},
    )
    session = session_of(failed)
    assert told(session) == [("human_turn", "hi"), ("api_error", "slow down")]
    assert session.steps == []


def test_a_span_in_two_files_counts_once() -> None:
    one, two = given(*agentic(), name="a"), given(agentic()[0], name="b")
    (session,) = FORMAT.read([one, two]).sessions
    assert len(session.steps) == 4
    assert two.artifact.record_kinds == {"batch": 1, "repeated_span": 7}


def test_a_printed_document_is_read_too() -> None:
    data = json.dumps(agentic()[0], indent=2).encode()
    reading = FORMAT.read(
        [Input(data, Artifact(artifact_id="a", source="t", path="a", format="otel-genai", sha256="", bytes=len(data)))]
    )
    assert [len(s.steps) for s in reading.sessions] == [3]


@pytest.mark.parametrize("depth", [40, 400, 50_000])
def test_values_nested_too_deep_are_left_out(depth: int) -> None:
    deep = '{"arrayValue":{"values":[' * depth + '{"stringValue":"x"}' + "]}}" * depth
    line = json.dumps(export(chat("a", 1, said=[text("assistant", "ok")], facts={"deep": "XX"}))).replace(
        '{"stringValue": "XX"}', deep
    )
    one = Input(
        line.encode(), Artifact(artifact_id="a", source="t", path="a", format="otel-genai", sha256="", bytes=len(line))
    )
    FORMAT.read([one])
    assert one.artifact.records >= 1


def test_odd_spans_cost_only_themselves() -> None:
    one = given(
        export({"spanId": 7}, chat("a", 1, 5, "{["), chat("b", 2, [7, text("user", "hi"), {"parts": 3}], [{"role": 5}]))
    )
    (session,) = FORMAT.read([one]).sessions
    assert one.artifact.skipped_reasons == {"bad_shape": 1}
    assert [t.text for t in session.turns] == ["hi"]
