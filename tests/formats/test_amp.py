"""The traps of Amp's threads, one test each (design/formats.md#amp)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.amp import FORMAT
from agentsignals.model import Session
from tests.formats.reading import format_of, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "amp"
ID = "T-019e0000-0000-7000-8000-000000000009"


def read(document: dict[str, Any]) -> Session:
    return read_one(FORMAT, document)


@pytest.mark.parametrize(
    ("more", "expected"),
    [({}, "amp"), ({"messages": [{}] * 40_000}, "amp"), ({"id": "t-1"}, None), ({"v": "1"}, None), ({"v": None}, None)],
)
def test_it_asks_for_what_only_amp_writes(more: dict[str, Any], expected: str | None) -> None:
    assert format_of({"v": 1, "id": ID, "created": 1, "messages": [], **more}) == expected


@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus/native/amp is not there")
def test_a_real_thread_is_read_whole() -> None:
    made = read(json.loads(next(CORPUS.glob("T-*.json")).read_text("utf-8")))
    assert (made.repo, made.branch, made.started_at) == ("user/testing-git", "master", 1_772_241_173_221_000)
    assert (len(made.turns), len(made.tool_calls), [s.output_tokens for s in made.steps]) == (1, 4, [239, 71, 245])
    # Each call's total is the sum of the three kinds of input.
    kinds = [(s.input_tokens, s.cache_write_tokens, s.cache_read_tokens) for s in made.steps]
    assert [sum(n or 0 for n in three) for three in kinds] == [14_870, 15_897, 16_208]
    assert not [e for e in made.events if e.kind == "unknown"]
