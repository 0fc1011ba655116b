"""The traps of STS conversations, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.head import Head
from agentsignals.formats.sts import FORMAT
from tests.formats.reading import claimed, format_of, given, lines, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval" / "sts" / "conv_a6ef7da3.jsonl"
HEADER: dict[str, Any] = {"type": "session", "harness": "acme.app", "id": "c-1"}


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
    said = {"type": "message", "message": {"role": "user", "content": "hi"}}
    assert format_of(lines(header, said), "x.jsonl") == claimant


def test_claude_look_alikes_with_a_harness_are_not_sts() -> None:
    rows = [HEADER, {"type": "user", "parentUuid": None, "sessionId": "s", "harness": "swival"}]
    assert FORMAT.claims(Head(lines(*rows), "x", True)) is None


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus")
def test_the_real_conversation() -> None:
    data = CORPUS.read_bytes()
    assert claimed(data, CORPUS.as_posix()) == ("sts", ["session:a6ef7da3-14ca-4bc4-8521-1aba45124532"])
    session = read_one(FORMAT, given(data, "sts"))
    told = [json.loads(line)["message"] for line in data.splitlines()[1:]]
    last = next(m["timings"] for m in reversed(told) if m.get("timings"))
    assert sum(s.output_tokens or 0 for s in session.steps) == last["agentic"]["llm"]["predicted_n"] == 431
    assert sum(s.input_tokens or 0 for s in session.steps) == last["agentic"]["llm"]["prompt_n"] == 2185
    assert [s.cache_read_tokens for s in session.steps] == [None, 2158]
    assert [(c.name, c.status) for c in session.tool_calls] == [("web_fetch_exa", "ok")]
    assert (session.agent, len(session.turns), session.context) == ("llama.app", 1, "product")
