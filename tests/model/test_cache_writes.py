"""Cache writes kept for an hour cost twice the input price, those kept for five minutes a quarter more than it."""

from __future__ import annotations

import json

import pytest

from agentsignals.formats.claude_code import FORMAT
from agentsignals.model import Step, prices
from tests.formats.reading import read_one

MODEL = "claude-opus-4-5-20251101"


def _step(cache_creation: object) -> Step:
    usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000_000}
    record = {
        "type": "assistant",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {
            "id": "m1",
            "model": MODEL,
            "content": [{"type": "text", "text": "hi"}],
            "usage": {**usage, **({"cache_creation": cache_creation} if cache_creation else {})},
        },
    }
    data = json.dumps(record).encode() + b"\n"
    session = read_one(FORMAT, data)
    prices.apply(session)
    return session.steps[0]


@pytest.mark.parametrize(
    ("cache_creation", "tokens", "times_input"),
    [
        (None, None, 1.25),
        ({"ephemeral_5m_input_tokens": 1_000_000, "ephemeral_1h_input_tokens": 0}, None, 1.25),
        ({"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1_000_000}, 1_000_000, 2.0),
        ({"ephemeral_5m_input_tokens": 400_000, "ephemeral_1h_input_tokens": 600_000}, 600_000, 1.7),
    ],
)
def test_what_a_cache_write_costs(cache_creation: object, tokens: int | None, times_input: float) -> None:
    step = _step(cache_creation)
    an_input = prices.cost_usd(MODEL, 1_000_000, 0, at=step.timestamp)
    assert step.cache_write_1h_tokens == tokens
    assert an_input is not None and step.cost_usd == pytest.approx(times_input * an_input)
