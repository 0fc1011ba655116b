"""What is exported by others' standards: read back, and held against their own validators where these are installed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentsignals.export import agent_trace, atif, otel_genai
from agentsignals.export.messages import main_messages
from tests.export.test_writers import PEOPLE, PRODUCT, comparable, read_again, said, sessions_of, tokens

UNLIKE = {
    "claude-code-people.jsonl-0": "a prompt of a picture alone",
    "gemini-cli-early.json-0": "a prompt of a picture alone",
    "qwen-code-broken.jsonl-0": "a prompt of a picture alone",
    "vscode-copilot-session.json-0": "a prompt of a picture alone",
    "goose-broken.json-0": "a failed call without a result has the failure's name as one",
    "mini-swe-agent-run.traj.json-0": "a failed call without a result has the failure's name as one",
    "vscode-copilot-transcript.jsonl-0": "a failed call without a result has the failure's name as one",
    "windsurf-steps.jsonl-0": "a failed call without a result has the failure's name as one",
    "amp-threads-1": "what a subagent did before all else is in nobody's span",
    "claude-stream-run.jsonl-0": "what a subagent did before all else is in nobody's span",
}
"""Sessions of which a trace says something else, and what."""


def name_of(sample: Path, n: int) -> str:
    return f"{sample.parent.name}-{sample.name}-{n}"


@pytest.mark.parametrize("sample", PEOPLE)
def test_a_trace_has_words_calls_results_and_tokens(sample: Path) -> None:
    """Of calls whose arguments are no object, and where nothing was said, there is nothing to compare."""
    for n, session in enumerate(sessions_of(sample)):
        if comparable(session) and main_messages(session) and name_of(sample, n) not in UNLIKE:
            again = read_again(otel_genai.text(session), "x.otlp.json")
            assert said(again) == said(session) and tokens(again) == tokens(session)
            assert (again.session_id, again.agent) == (session.session_id, session.agent or "unknown")


def test_sessions_that_differ_are_named() -> None:
    assert not UNLIKE.keys() - {name_of(sample, n) for sample in PRODUCT for n, _ in enumerate(sessions_of(sample))}


@pytest.mark.parametrize("sample", PEOPLE[::7])
def test_harbors_own_models_accept_a_trajectory(sample: Path) -> None:
    reason = "harbor is not installed, and needs Python 3.12; tests/schemas has its schema"
    models = pytest.importorskip("harbor.models.trajectories.trajectory", reason=reason)
    for session in sessions_of(sample):
        models.Trajectory.model_validate_json(atif.text(session))


@pytest.mark.parametrize("sample", PEOPLE[::7])
def test_opentelemetrys_own_types_and_names_fit_a_trace(sample: Path) -> None:
    """OTLP's JSON has ids in hexadecimal, Protocol Buffers' own in base 64."""
    types = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="no OTLP types")
    names = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes", reason="no names")
    parse = pytest.importorskip("google.protobuf.json_format").Parse
    known = {value for value in vars(names).values() if isinstance(value, str)} | {"error.type"}
    for session in sessions_of(sample):
        document = json.loads(otel_genai.text(session))
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for name in span.keys() & {"traceId", "spanId", "parentSpanId"}:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
            assert {pair["key"] for pair in span["attributes"]} <= known
        parse(json.dumps(document), types.ExportTraceServiceRequest())


def test_the_version_of_an_agent_trace_is_one_that_its_schema_allows() -> None:
    """The schema of 0.1.0 asks for two numbers, though examples beside it have three."""
    schema: dict[str, Any] = {"type": "string", "pattern": r"^[0-9]+\.[0-9]+$"}
    jsonschema.validate(agent_trace.VERSION, schema)
