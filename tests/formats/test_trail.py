"""The traps of TRAIL traces and their annotations, one test each (design/formats.md#trail)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input, Reading, identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.trail import FORMAT
from agentsignals.formats.trail.reader import category_of, duration_us
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.model import Artifact, Attempt, Session

DIFF = "--- a/parse.py\n+++ b/parse.py\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n"
GOLD = f"diff --git a/lex.py b/lex.py\n{DIFF.replace('parse', 'lex')}"
LIMITED = ("litellm.RateLimitError", "too many tokens")


def span(id_: str, name: str, kind: str = "", second: int = 0, *within: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A span of one second. `error` is (type, message); the rest are attributes with `_` for `.`-less keys as given."""
    error = more.pop("error", None)
    attributes: dict[str, Any] = {"pat.app": "SWEBench", **more.pop("attributes", {})}
    if kind:
        attributes["openinference.span.kind"] = kind
    raised = {"exception.type": error[0], "exception.message": error[1]} if error else {}
    return {
        "timestamp": f"2026-01-02T03:04:{second:02d}.500000Z",
        "trace_id": "ab12",
        "span_id": id_,
        "parent_span_id": None,
        "span_name": name,
        "span_attributes": attributes,
        "duration": more.pop("duration", "PT1S"),
        "status_code": "Error" if error else more.pop("status", "Ok"),
        "status_message": f"{error[0]}: {error[1]}" if error else "",
        "events": [{"Timestamp": "2026-01-02T03:04:05", "Name": "exception", "Attributes": raised}] if error else [],
        "logs": more.pop("logs", []),
        "child_spans": list(within),
    }


def llm(id_: str, second: int, text: str | None, task: str = "New task:\nMend it.", **more: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "You write code.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": task,
        "llm.input_messages.2.message.role": "assistant",
        "llm.input_messages.2.message.content": "said before",
        "llm.model_name": "anthropic/claude-x",
    }
    if text is not None:
        attributes |= {
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": text,
            "llm.token_count.prompt": "100",
            "llm.token_count.completion": 10,
        }
    return span(id_, "LiteLLMModel.__call__", "LLM", second, attributes=attributes | more.pop("attributes", {}), **more)


def code(text: str) -> str:
    return f"Thought: next.\n\nCode:\n```py\n{text}\n```<end_code>"


def agent(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    attributes = {"input.value": json.dumps({"task": "Mend it.", "max_steps": None}), "smolagents.max_steps": "12"}
    attributes |= more.pop("attributes", {})
    return span("agent", "CodeAgent.run", "AGENT", 1, *steps, attributes=attributes, duration="PT8S", **more)


def trace(*spans: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"trace_id": "ab12", "spans": list(spans), **more}


def mended() -> dict[str, Any]:
    """A run that fails once, mends the file, and answers with a diff."""
    item = {"instance_id": "acme__tools-12", "repo": "acme/tools", "patch": GOLD, "FAIL_TO_PASS": '["t.py::a"]'}
    log = {"body": {"function.name": "process_item", "function.arguments": {"item": item}, "function.output": DIFF}}
    failed = span(
        "s1", "Step 1", "CHAIN", 2, llm("l1", 2, code("print(1/0)")), error=("AgentExecutionError", "division by zero")
    )
    looked = span(
        "s2",
        "Step 2",
        "CHAIN",
        4,
        llm("l2", 4, code("print('hi')")),
        attributes={"output.value": "Execution logs:\nhi"},
    )
    answer = span(
        "t1", "FinalAnswerTool", "TOOL", 7, attributes={"tool.name": "final_answer", "input.value": '{"args": ["d"]}'}
    )
    last = span(
        "s3", "Step 3", "CHAIN", 6, llm("l3", 6, code("final_answer(d)")), answer, attributes={"output.value": DIFF}
    )
    counted = {"output.value": DIFF, "llm.token_count.prompt": 300, "llm.token_count.completion": 30}
    made = span("c1", "create_agent", "", 0, status="Unset")
    return trace(
        span(
            "root",
            "process_item",
            "",
            0,
            made,
            agent(failed, looked, last, attributes=counted),
            logs=[log],
            duration="PT10.5S",
        )
    )


def marked(**more: Any) -> dict[str, Any]:
    errors = [
        {
            "category": "Formatting Errors ",
            "location": "l1",
            "evidence": "1/0",
            "description": "Divides.",
            "impact": "LOW",
        },
        {
            "category": "Goal deviation",
            "location": "t1",
            "evidence": "",
            "description": "",
            "impact": "HIGH",
            "Observation: x": "",
        },
        {"category": "Resource Abuse", "location": "gone", "description": "Lost.", "impact": "LOW"},
    ]
    scores = [{"reliability_score": 4, "reliability_reasoning": "Mostly.", "plan_opt_score": 4.75, "overall": 4.4}]
    return {"trace_id": "ab12", "errors": errors, "scores": scores, **more}


if __name__ == "__main__":
    folder = Path(__file__).parent / "trail"
    for where, what in (("data", mended()), ("annotations", marked())):
        (folder / "mended" / where).mkdir(parents=True, exist_ok=True)
        (folder / "mended" / where / "ab12.json").write_text(json.dumps(what, indent=1) + "\n", encoding="utf-8")
    odd = trace(span("a", "x", "LLM", 1, {"span_id": 7}, llm("b", 2, "fine")), {"span_id": "c", "child_spans": "none"})
    (folder / "broken.json").write_text(json.dumps(odd) + "\n", encoding="utf-8")


CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval" / "trail"


def given(document: Any, path: str = "data/ab12.json") -> Input:
    data = json.dumps(document).encode()
    return Input(data, Artifact(artifact_id=path, source="t", path=path, format="trail", sha256="", bytes=len(data)))


def read(*documents: Any) -> Reading:
    return FORMAT.read([given(d, f"{n}.json") for n, d in enumerate(documents)])


def session_of(*spans: Any, **more: Any) -> Session:
    (session,) = read(trace(*spans, **more)).sessions
    return session


def part_of(*spans: Any) -> Attempt:
    (part,) = read(trace(*spans)).attempts
    return part


def told(session: Session) -> list[tuple[str, str | None]]:
    return [(e.kind, e.text) for e in session.events]


CLAIMS: list[tuple[Any, list[str] | None]] = [
    (trace(), ["trace:ab12"]),
    (trace(span("a", "x")), ["trace:ab12"]),
    (trace({"id": 7}), None),
    ({"trace_id": 7, "spans": []}, None),
    ({"trace_id": "", "spans": []}, None),
    ({"trace_id": "x", "spans": "y"}, None),
    (marked(), ["trace:ab12"]),
    ({k: v for k, v in marked().items() if k != "trace_id"}, ["trace:9f"]),
    ({"trace_id": "q", "errors": [], "scores": [{"plan_opt_score": 1}]}, ["trace:q"]),
    ({"trace_id": "q", "errors": [], "scores": []}, None),
    ({"errors": [{"message": "x"}], "scores": [1]}, None),
    ({"errors": 3, "scores": [{"plan_opt_score": 1}]}, None),
]


@pytest.mark.parametrize(("document", "keys"), CLAIMS)
def test_a_trace_and_its_annotations_share_a_key(document: Any, keys: list[str] | None) -> None:
    claim = FORMAT.claims(Head(json.dumps(document).encode(), "annotations/9f.json", True))
    assert (claim.keys if claim is not None else None) == keys


def test_a_trace_is_known_by_its_beginning() -> None:
    data = json.dumps(trace(*(span(str(n), "x" * 900) for n in range(90)))).encode()
    assert len(data) > HEAD_BYTES
    found = identify(Head(data[:HEAD_BYTES], "x", False))
    assert found is not None
    assert found[0].name == "trail"


def test_a_code_agent_acts_by_the_code_in_its_answers() -> None:
    (session,) = read(mended()).sessions
    assert [(c.name, c.class_, c.status) for c in session.tool_calls] == [
        ("python_interpreter", "shell", "error"), ("python_interpreter", "shell", "ok"),
        ("python_interpreter", "shell", "ok"), ("final_answer", "other", "ok"),
    ]  # fmt: skip
    assert json.loads(session.tool_calls[1].arguments) == {"code": "print('hi')"}
    results = [session.events[c.result_seq or 0].text for c in session.tool_calls]
    assert results == ["division by zero", "Execution logs:\nhi", DIFF, ""]
    assert len(session.steps) == 3


def test_several_blocks_of_code_are_one_call() -> None:
    chain = span(
        "s", "Step 1", "CHAIN", 1, llm("l", 1, f"{code('a')}\nand\n{code('b')}"), attributes={"output.value": "ok"}
    )
    (call,) = session_of(chain).tool_calls
    assert json.loads(call.arguments) == {"code": "a\n\nb"}


@pytest.mark.parametrize("text", ["no code", "```\n", "`x`"])
def test_an_answer_without_code_calls_nothing(text: str) -> None:
    session = session_of(span("s", "Step 1", "CHAIN", 1, llm("l", 1, text), attributes={"output.value": "ok"}))
    assert [c.arguments for c in session.tool_calls if json.loads(c.arguments)["code"]] == []


def test_the_task_is_the_only_prompt_and_what_is_repeated_counts_once() -> None:
    (session,) = read(mended()).sessions
    assert [t.text for t in session.turns] == ["Mend it."]
    assert [e.text for e in session.events if e.kind == "meta"] == ["You write code."]
    assert "said before" not in {e.text for e in session.events}


def test_without_an_agent_s_span_the_task_is_what_the_model_was_asked() -> None:
    assert [t.text for t in session_of(llm("a", 1, "x"), llm("b", 2, "y")).turns] == ["New task:\nMend it."]


def test_several_roots_are_one_session_in_order() -> None:
    steps = [span(f"s{n}", f"Step {n}", "CHAIN", n, llm(f"l{n}", n, f"say {n}")) for n in range(3)]
    session = session_of(span("c", "create_agent"), *steps)
    assert [e.text for e in session.events if e.kind == "text"] == ["say 0", "say 1", "say 2"]
    assert session.started_at is not None


def test_a_span_that_was_written_twice_counts_once() -> None:
    one = given(
        trace(
            span(
                "s",
                "Step",
                "CHAIN",
                1,
                llm("l", 1, code("x")),
                llm("l", 1, code("x")),
                attributes={"output.value": "o"},
            )
        )
    )
    (session,) = FORMAT.read([one]).sessions
    assert (len(session.steps), len(session.tool_calls)) == (1, 1)
    assert one.artifact.record_kinds == {"document": 1, "span.chain": 1, "span.llm": 1, "repeated_span": 1}


def test_cached_tokens_are_taken_out_of_the_prompt_s() -> None:
    details = {"llm.token_count.prompt_details.cache_read": 60, "llm.token_count.prompt_details.cache_write": "30"}
    (step,) = session_of(llm("a", 1, "x", attributes=details)).steps
    assert (step.input_tokens, step.cache_read_tokens, step.cache_write_tokens, step.output_tokens) == (10, 60, 30, 10)
    (bare,) = session_of(llm("a", 1, "x", attributes={"llm.token_count.prompt": "many"})).steps
    assert bare.input_tokens is None


def test_a_failure_is_told_once_where_it_began() -> None:
    step = span(
        "s",
        "Step 1",
        "CHAIN",
        2,
        llm("l", 2, None, error=LIMITED),
        error=("AgentGenerationError", "model: too many tokens"),
    )
    session = session_of(
        span("r", "process_item", "", 0, agent(step, error=("smolagents.AgentGenerationError", "m")), error=("E", "m"))
    )
    assert [k for k, _ in told(session)] == ["human_turn", "meta", "api_error"]
    assert session.events[-1].text == "too many tokens"
    assert session.steps == [], "a call that gave no answer is no step"


def test_a_failure_without_an_exception_is_its_status() -> None:
    failed = llm("l", 2, None) | {"status_code": "Error", "status_message": "gone"}
    assert told(session_of(failed))[-1] == ("api_error", "gone")


def test_how_it_ended_is_said_by_the_agent_s_span() -> None:
    broken = part_of(
        span("r", "process_item", "", 0, agent(error=("smolagents.utils.AgentGenerationError", "m")), error=("E", "m"))
    )
    assert (broken.exit_status, broken.exception) == ("error", "AgentGenerationError")
    (done,) = read(mended()).attempts
    assert (done.exit_status, done.exception) == ("completed", None)
    unknown = part_of(llm("a", 1, "x"))
    assert (unknown.exit_status, unknown.wall_time_s, unknown.input_tokens) == (None, 1.0, None)


def test_the_spans_around_the_agent_tell_of_the_task_and_the_patch() -> None:
    reading = read(mended())
    (made,) = attach_attempts(reading.sessions, reading.attempts, {})
    found = made.attempt
    assert found is not None
    assert (found.trial_id, found.task_id, made.repo, made.agent) == (
        "ab12",
        "acme__tools-12",
        "acme/tools",
        "CodeAgent",
    )
    assert [f.path for f in found.patch or ()] == ["parse.py"]
    assert [f.path for f in found.gold_patch or ()] == ["lex.py"]
    assert (found.wall_time_s, found.agent_time_s) == (10.5, 8.0)
    assert (found.input_tokens, found.output_tokens) == (300, 30)
    assert found.knobs == {
        "model_id": "anthropic/claude-x",
        "agent_type": "CodeAgent",
        "dataset": "SWEBench",
        "max_steps": 12,
    }


def test_a_tool_s_span_answers_the_call_its_model_made() -> None:
    asked = {
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "web_search",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"query": "x"}',
    }
    tool = span("t", "WebSearchTool", "TOOL", 2, attributes={"tool.name": "web_search", "output.value": "found"})
    failing = span("u", "Other", "TOOL", 3, attributes={"tool.name": "web_search"}, error=("E", "timed out"))
    session = session_of(span("s", "Step 1", "CHAIN", 1, llm("l", 1, "", attributes=asked), tool, failing))
    assert [(c.call_id, c.class_, c.status, c.error_class) for c in session.tool_calls] == [
        ("c1", "web", "ok", None), ("u", "web", "error", "timeout"),
    ]  # fmt: skip


def test_an_agent_within_an_agent_is_a_thread() -> None:
    inner = span(
        "in",
        "ToolCallingAgent.run",
        "AGENT",
        3,
        llm("l2", 3, "found", task="Find it."),
        attributes={"input.value": "Find it."},
    )
    session = session_of(agent(llm("l1", 2, "asking"), inner, llm("l3", 5, "done")))
    assert [(s.message_id, s.thread) for s in session.steps] == [("l1", "main"), ("l2", "in"), ("l3", "main")]
    assert [t.text for t in session.turns] == ["Mend it."]


def test_an_error_is_a_label_at_the_first_event_of_its_span() -> None:
    (session,) = read(mended(), marked()).sessions
    labels = [label for label in session.labels if label.task == "trail_error"]
    assert (labels[0].value, labels[0].reason, labels[0].labeller) == ("formatting_error", "Divides.", "human")
    places = [(session.events[x.seq].kind, x.turn) if x.seq is not None else None for x in labels]
    assert places == [("text", 0), ("tool_call", 0), None]
    assert json.loads(labels[0].detail or "")["category"] == "Formatting Errors ", "as it was written"
    assert json.loads(labels[2].detail or "")["location"] == "gone"


def test_scores_stay_numbers() -> None:
    (session,) = read(mended(), marked()).sessions
    scores = [(x.task, x.number, x.value, x.reason) for x in session.labels if x.task != "trail_error"]
    assert scores == [
        ("trail_reliability", 4.0, "4", "Mostly."), ("trail_plan_opt", 4.75, "4.75", None),
        ("trail_overall", 4.4, "4.4", None),
    ]  # fmt: skip


def test_annotations_that_name_no_trace_are_of_the_one_they_are_named_for() -> None:
    nameless = {k: v for k, v in marked().items() if k != "trace_id"}
    (session,) = FORMAT.read([given(mended()), given(nameless, "annotations/ab12.json")]).sessions
    assert len(session.labels) == 6


def test_copies_of_annotations_and_traces_count_once() -> None:
    reading = read(mended(), mended(), marked(), marked())
    assert [len(s.labels) for s in reading.sessions] == [6]


def test_annotations_without_their_trace_are_accounted_for() -> None:
    one = given(marked(), "annotations/ab12.json")
    assert FORMAT.read([one]) == Reading()
    assert one.artifact.note == "annotations of a trace that is not among the files"
    assert one.artifact.record_kinds == {"annotations": 1, "error": 3, "scores": 1}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("Formatting Errors", "formatting_error"), (" Formatting Error", "formatting_error"),
        ("Goal deviation", "goal_deviation"), ("Instruction non complience", "instruction_non_compliance"),
        ("Instruction Non-compliance", "instruction_non_compliance"), ("Language-only", "language_only"),
        ("Context Handling Failures", "context_handling_failure"), ("Tool Access", "tool_access"), ("??", ""),
    ],
)  # fmt: skip
def test_categories_have_one_spelling(raw: str, expected: str) -> None:
    assert category_of(raw) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT2M5.65S", 125_650_000), ("PT0.000118S", 118), ("P1DT1H", 90_000_000_000), ("PT0S", 0), ("PT", None),
     ("P", None), ("P1M", None), ("2.5", None), ("", None), (None, None), ("PT1S ", None)],
)  # fmt: skip
def test_durations_are_iso(text: str | None, expected: int | None) -> None:
    assert duration_us(text) == expected


def test_an_odd_span_costs_only_itself() -> None:
    one = given(trace(span("a", "x", "CHAIN", 1, {"span_id": 7}, llm("b", 2, "fine")), 5, llm("c", 3, "too", status=3)))
    (session,) = FORMAT.read([one]).sessions
    assert [e.text for e in session.events if e.kind == "text"] == ["fine"]
    assert one.artifact.skipped_reasons == {"bad_shape": 3}


@pytest.mark.parametrize("depth", [60, 300, 5_000])
def test_spans_nested_too_deep_are_counted_and_no_trouble(depth: int) -> None:
    inner = json.dumps(llm("deep", 1, "found"))
    for broken in ("", '{"span_id": 7}, '):
        text = '{"trace_id": "ab12", "spans": [' + '{"child_spans": [' * depth + broken + inner + "]}" * depth + "]}"
        one = Input(
            text.encode(), Artifact(artifact_id="a", source="t", path="a", format="trail", sha256="", bytes=len(text))
        )
        FORMAT.read([one])
        assert one.artifact.records > 0


def test_attributes_that_count_a_list_badly_are_no_trouble() -> None:
    odd = {f"llm.output_messages.{n}.message.content": "x" for n in (5, 7)} | {
        "0." * 50_000: 1,
        "llm.token_count.prompt": "9" * 99,
    }
    session = session_of(span("l", "x", "LLM", 1, attributes=odd))
    assert session.steps == []


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus")
def test_the_corpus() -> None:
    """Figures counted over the JSON by another script; each agent's span sums up the tokens of its model calls."""
    inputs = []
    for path in sorted(CORPUS.rglob("*.json")):
        data = path.read_bytes()
        found = identify(Head(data[:HEAD_BYTES], path.as_posix(), len(data) <= HEAD_BYTES))
        assert found is not None
        assert (found[0].name, found[1].keys) == ("trail", [f"trace:{path.stem}"])
        inputs.append(
            Input(
                data,
                Artifact(
                    artifact_id=path.as_posix(),
                    source="t",
                    path=path.as_posix(),
                    format="trail",
                    sha256="",
                    bytes=len(data),
                ),
            )
        )
    reading = FORMAT.read(inputs)
    sessions, parts = reading.sessions, reading.attempts
    assert len(sessions) == 14
    assert sum(len(s.steps) for s in sessions) == 141, "142 with an answer, one of them written twice"
    assert Counter((c.name, c.status) for s in sessions for c in s.tool_calls) == {
        ("python_interpreter", "ok"): 120, ("python_interpreter", "error"): 21, ("final_answer", "ok"): 10,
    }  # fmt: skip
    summed = [p for p in parts if p.input_tokens is not None]
    assert len(summed) == 10
    for part in summed:
        (session,) = (s for s in sessions if s.session_id == part.session_id)
        assert part.input_tokens == sum(x.input_tokens or 0 for x in session.steps)
        assert part.output_tokens == sum(x.output_tokens or 0 for x in session.steps)
    errors = [x for s in sessions for x in s.labels if x.task == "trail_error"]
    assert (len(errors), sum(x.seq is None for x in errors)) == (111, 1)
    assert Counter(x.value for x in errors).most_common(2) == [
        ("formatting_error", 36),
        ("instruction_non_compliance", 26),
    ]
    assert sum(p.task_id is not None and p.gold_patch is not None for p in parts) == 13
    assert Counter(p.exit_status for p in parts) == {"completed": 10, "error": 3, None: 1}
    assert not any(i.artifact.skipped for i in inputs)
