"""What is exported by others' standards: read back, and held against their own validators where these are installed."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonschema
import pytest

from agentsignals.export import agent_trace, atif, otel_genai
from agentsignals.export.messages import main_messages
from agentsignals.model import Session
from tests.export.test_writers import SESSIONS, comparable, read_again, said, tokens

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
ALIKE = [session for session in SESSIONS if session.id not in UNLIKE]


@pytest.mark.parametrize("session", ALIKE)
def test_a_trace_has_words_calls_results_and_tokens(session: Session) -> None:
    if not comparable(session) or not main_messages(session):
        pytest.skip("calls whose arguments are no object, or nothing said: there is nothing to compare")
    again = read_again(otel_genai.text(session), "x.otlp.json")
    assert said(again) == said(session) and tokens(again) == tokens(session)
    assert (again.session_id, again.agent) == (session.session_id, session.agent or "unknown")


def test_sessions_that_differ_are_named() -> None:
    assert not UNLIKE.keys() - {str(session.id) for session in SESSIONS}


@pytest.mark.parametrize("session", SESSIONS[::7])
def test_harbors_own_models_accept_a_trajectory(session: Session) -> None:
    reason = "harbor is not installed, and needs Python 3.12; tests/schemas has its schema"
    models = pytest.importorskip("harbor.models.trajectories.trajectory", reason=reason)
    models.Trajectory.model_validate_json(atif.text(session))


@pytest.mark.parametrize("session", SESSIONS[::7])
def test_opentelemetrys_own_types_and_names_fit_a_trace(session: Session) -> None:
    """OTLP's JSON has ids in hexadecimal, Protocol Buffers' own in base 64."""
    types = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="no OTLP types")
    names = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes", reason="no names")
    parse = pytest.importorskip("google.protobuf.json_format").Parse
    document = json.loads(otel_genai.text(session))
    known = {value for value in vars(names).values() if isinstance(value, str)} | {"error.type"}
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in span.keys() & {"traceId", "spanId", "parentSpanId"}:
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
        assert {pair["key"] for pair in span["attributes"]} <= known
    parse(json.dumps(document), types.ExportTraceServiceRequest())


def test_the_version_of_an_agent_trace_is_one_that_its_schema_allows() -> None:
    """The schema of 0.1.0 asks for two numbers, though examples beside it have three."""
    schema: dict[str, Any] = {"type": "string", "pattern": r"^[0-9]+\.[0-9]+$"}
    jsonschema.validate(agent_trace.VERSION, schema)
