"""Values that can't be true are absent and counted, in whatever field of whatever format they stand."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from agentsignals.formats import Input, Reading, by_name
from agentsignals.formats.atif import FORMAT as ATIF
from agentsignals.formats.bounds import MOST_TOKENS, MOST_USD, amount, count, validate
from agentsignals.model import EARLIEST, LATEST, MAIN, Artifact, Session, Step, logged_iso, logged_ms
from tests.formats.reading import given, read_one


def _read(metrics: str, at: str = "2026-03-01T10:00:05Z") -> tuple[Session, dict[str, int]]:
    document = {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [{"step_id": 1, "timestamp": at, "source": "agent", "message": "ok", "metrics": {}}],
    }
    data = json.dumps(document).replace('"metrics": {}', f'"metrics": {metrics}').encode()
    file = given(data, "atif", "run.json")
    session = read_one(ATIF, file)
    assert file.artifact.skipped == 0
    return session, file.artifact.skipped_reasons


@pytest.mark.parametrize(
    "value", ["-1", "1.5", "1e300", "true", '"9 or so"', "[]", str(MOST_TOKENS + 1), "9" * 400, "NaN"]
)
def test_an_impossible_count_is_absent_and_counted(value: str) -> None:
    session, reasons = _read(f'{{"completion_tokens": {value}, "prompt_tokens": 7}}')
    assert (session.steps[0].output_tokens, session.steps[0].input_tokens) == (None, 7)
    assert sum(reasons.values()) == 1


@pytest.mark.parametrize(("usd", "kept"), [(0.01, True), (MOST_USD, True), (MOST_USD * 1.01, False), (-0.5, False)])
def test_costs_are_bounded(usd: float, kept: bool) -> None:
    session, reasons = _read(json.dumps({"cost_usd": usd}))
    assert session.steps[0].cost_usd == (usd if kept else None)
    assert session.steps[0].cost_source == ("recorded" if kept else None)
    assert reasons == ({} if kept else {"impossible_cost": 1})


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "soon"])
def test_impossible_times_are_absent_and_counted(at: str) -> None:
    session, reasons = _read("{}", at)
    assert session.started_at is None and session.ended_at is None
    assert all(e.timestamp is None for e in session.events)
    assert reasons["impossible_time"] >= 1


def test_bounds_include_their_ends() -> None:
    assert (count(0), count(MOST_TOKENS), count(None), count(2.0)) == (0, MOST_TOKENS, None, 2)
    assert (amount(0), amount(MOST_USD), amount(None)) == (0.0, MOST_USD, None)
    assert math.isnan(count(MOST_TOKENS + 1) or 0) and math.isnan(amount(math.inf) or 0)
    assert logged_ms(None) is None and logged_iso("") is None
    for odd in (1e308, math.nan, -5, "1", True, 10**400):
        assert not EARLIEST <= (logged_ms(odd) or 0) <= LATEST


@pytest.mark.parametrize(
    ("reward", "reason"),
    [
        ("1e308", "impossible_score"),
        ('"a half"', "impossible_score"),
        ('"0.5"', None),
        ("1e400", "impossible_number"),
        ("0.5", None),
    ],
)
def test_a_reward_that_is_none_costs_itself_and_not_its_session(reward: str, reason: str | None) -> None:
    steps = '[{"role": "user", "content": "hi"}, {"role": "agent", "content": "x", "token_usage": {"input_tokens": 5}}]'
    data = f'{{"trace_id": "t", "session_id": "s", "outcome": {{"reward": {reward}}}, "steps": {steps}}}\n'.encode()
    file = given(data, "opentraces", "r.jsonl")
    reading, artifact = by_name("opentraces").read([file]), file.artifact
    assert [s.steps[0].input_tokens for s in reading.sessions] == [5]
    assert [a.reward for a in reading.attempts if a.reward is not None] == ([] if reason else [0.5])
    assert (artifact.skipped, artifact.skipped_reasons) == (0, {reason: 1} if reason else {})


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("tokens", [math.nan, math.inf, -1, MOST_TOKENS + 1, 10**400])
def test_one_impossible_count_among_sound_ones_is_seen_wherever_it_stands(tokens: Any, at: int) -> None:
    counts: list[Any] = [5, None, 3]
    counts[at] = tokens
    steps = [
        Step(
            step=n, turn=None, thread=MAIN, seq=n, message_id=None, model=None, timestamp=None, input_tokens=count,
            output_tokens=0,
        )
        for n, count in enumerate(counts)
    ]  # fmt: skip
    artifact = Artifact(artifact_id="a", source="", path="", format=None, sha256="", bytes=0)
    session = Session(session_id="s", context="product", format="x", agent="x", artifact_id="a", steps=steps)
    validate(Reading([session]), [Input(b"", artifact)], ())
    counts[at] = None
    assert [step.input_tokens for step in steps] == counts and artifact.skipped_reasons == {"impossible_tokens": 1}
    assert [step.output_tokens for step in steps] == [0, 0, 0]
