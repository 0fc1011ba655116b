"""The traps of OpenTelemetry traces of generative AI, one test each (the conventions 1.28 to 1.41; no real file)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats.otel_genai import FORMAT
from agentsignals.formats.records import HEAD_BYTES, Head
from tests.formats.reading import given
from tests.otel_spans import agentic, chat, event, export, span, text


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


def test_spans_of_anything_else_are_no_session() -> None:
    one = given(export(span("a", 0, name="GET /")), "otel-genai")
    assert FORMAT.read([one]).sessions == []
    assert one.artifact.record_kinds == {"batch": 1, "span.other": 1}


@pytest.mark.parametrize("depth", [40, 400, 50_000])
def test_values_nested_too_deep_are_left_out(depth: int) -> None:
    deep = '{"arrayValue":{"values":[' * depth + '{"stringValue":"x"}' + "]}}" * depth
    line = json.dumps(export(chat("a", 1, said=[text("assistant", "ok")], facts={"deep": "XX"})))
    one = given(line.replace('{"stringValue": "XX"}', deep).encode(), "otel-genai")
    FORMAT.read([one])
    assert one.artifact.records >= 1
