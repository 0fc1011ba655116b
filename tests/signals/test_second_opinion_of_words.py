"""Figures of real sessions' words against what a slow and plain reading of their raw lines finds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_code import FORMAT
from agentsignals.model import Absent, Artifact
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/corpus is not there"),
]
SEED_HEDGES = re.compile(r"\bi think\b|\bmight be\b|\bprobably\b|\bi'm not sure\b")
CAPITALS = re.compile(r"\b[A-Z]{3,}\b")


def messages(path: Path) -> Iterator[str]:
    """The visible texts of the main thread, each record once."""
    seen: set[str] = set()
    for line in path.read_text("utf-8", "replace").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("type") != "assistant" or record.get("isSidechain") or record["uuid"] in seen:
            continue
        seen.add(record["uuid"])
        if record["message"].get("model") != "<synthetic>" and not record.get("isApiErrorMessage"):
            yield from (b["text"] for b in record["message"]["content"] if b["type"] == "text")


def without_code(text: str) -> str:
    """Line by line: a fence switches code on and off."""
    kept, code = [], False
    for line in text.split("\n"):
        if line.lstrip(" \t>").startswith("```") and "`" not in line.lstrip(" \t>`"):
            code = not code
        elif not code and not line.lstrip(" \t").startswith(">"):
            kept.append(re.sub(r'"[^"]{1,200}"|“[^”]{1,200}”', " ", re.sub(r"`[^`]{1,200}`", " ", line)))
    return "\n".join(kept).replace("’", "'")


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*/transcript.jsonl"))[::5], ids=lambda p: p.parts[-2])
def test_hedges_tokens_and_markers_are_those_of_the_raw_lines(path: Path) -> None:
    data = path.read_bytes()
    session = FORMAT.read(
        [
            Input(
                data,
                Artifact(
                    artifact_id="a", source="test", path=str(path), format="claude-code", sha256="", bytes=len(data)
                ),
            )
        ]
    ).sessions[0]
    found = {r.signal.path: r for r in measure(SessionView(session))}
    raw = list(messages(path))
    said = [without_code(text) for text in raw]
    rate, marked = found["user.agent_hedging_rate"], found["loop.marker_score"]
    tokens = sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in said)
    if not isinstance(rate.value, Absent):
        assert rate.detail is not None
        assert rate.detail["den"] == tokens
        literal = sum(len(SEED_HEDGES.findall(text.lower())) for text in said)
        assert rate.detail["seed_literal"] == pytest.approx(100 * literal / tokens)
    else:
        assert tokens == 0
    assert marked.detail is not None
    assert marked.detail["all_caps"] == sum(len(CAPITALS.findall(text)) for text in raw)
    assert marked.detail["exclamation"] == sum(text.count("!") for text in raw)
