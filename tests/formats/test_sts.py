"""The traps of STS conversations, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.sts import FORMAT
from agentsignals.model import Artifact, Session

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval" / "sts" / "conv_a6ef7da3.jsonl"
HEADER: dict[str, Any] = {"type": "session", "harness": "acme.app", "id": "c-1"}


def lines(*messages: dict[str, Any], **header: Any) -> bytes:
    rows = [{**HEADER, **header}, *({"type": "message", "message": m} for m in messages)]
    return "".join(json.dumps(r) + "\n" for r in rows).encode()


def given(data: bytes, name: str = "a") -> Input:
    return Input(data, Artifact(artifact_id=name, source="t", path=name, format="sts", sha256="", bytes=len(data)))


def read(*messages: dict[str, Any], **header: Any) -> Session:
    (session,) = FORMAT.read([given(lines(*messages, **header))]).sessions
    return session


def said(role: str, text: str = "", id_: str | None = None, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **({"id": id_, "parent": parent} if id_ else {}), **more}


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
    data = (json.dumps(header) + "\n").encode() + lines(said("user", "hi")).split(b"\n", 1)[1]
    found = identify(Head(data, "x.jsonl", True))
    assert (found[0].name if found is not None else None) == claimant


def test_claude_look_alikes_with_a_harness_are_not_sts() -> None:
    rows = [HEADER, {"type": "user", "parentUuid": None, "sessionId": "s", "harness": "swival"}]
    assert FORMAT.claims(Head("".join(json.dumps(r) + "\n" for r in rows).encode(), "x", True)) is None


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus")
def test_the_real_conversation() -> None:
    data = CORPUS.read_bytes()
    found = identify(Head(data[:HEAD_BYTES], CORPUS.as_posix(), True))
    assert found is not None
    assert (found[0].name, found[1].keys) == ("sts", ["session:a6ef7da3-14ca-4bc4-8521-1aba45124532"])
    (session,) = FORMAT.read([given(data)]).sessions
    told = [json.loads(line)["message"] for line in data.splitlines()[1:]]
    last = next(m["timings"] for m in reversed(told) if m.get("timings"))
    assert sum(s.output_tokens or 0 for s in session.steps) == last["agentic"]["llm"]["predicted_n"] == 431
    assert sum(s.input_tokens or 0 for s in session.steps) == last["agentic"]["llm"]["prompt_n"] == 2185
    assert [s.cache_read_tokens for s in session.steps] == [None, 2158]
    assert [(c.name, c.status) for c in session.tool_calls] == [("web_fetch_exa", "ok")]
    assert (session.agent, len(session.turns), session.context) == ("llama.app", 1, "product")
