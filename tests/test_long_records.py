"""A record longer than what a file is recognised by, a prompt with pictures in it, costs nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats.head import HEAD_BYTES
from agentsignals.ingest import pipeline
from tests.golden import SAMPLES

FEW = ("claude-code", "codex", "gemini-cli", "pi")
EXACT = ("cursor-agent",)
"""Whose records are recognised by having no other key."""


def samples() -> list[object]:
    """The first sample of JSON Lines of each format; but for a few they are slow together."""
    first = {path.relative_to(SAMPLES).parts[0]: path for path in sorted(SAMPLES.rglob("*.jsonl"), reverse=True)}
    slow = [pytest.mark.slow]
    return [pytest.param(first[name], id=name, marks=[] if name in FEW else slow) for name in sorted(first)]


def figures(file: Path, store: Path) -> tuple[object, ...]:
    made = pipeline.ingest([str(file)], store, jobs=1)
    return made.formats, made.sessions, made.prompts, made.tool_calls, made.input_tokens, made.output_tokens


@pytest.mark.parametrize("sample", samples())
@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
def test_a_long_record_hides_no_session(sample: Path, which: int, tmp_path: Path) -> None:
    lines = sample.read_bytes().split(b"\n")
    try:
        record = json.loads(lines[which])
    except (IndexError, ValueError):
        record = None
    if not isinstance(record, dict) or sample.relative_to(SAMPLES).parts[0] in EXACT:
        pytest.skip("no such record, or one that may have no other key")
    expected = figures(sample, tmp_path / "as-it-is")
    lines[which] = json.dumps({**record, "padding": "x" * (HEAD_BYTES + 1)}).encode()
    (tmp_path / sample.name).write_bytes(b"\n".join(lines))
    assert figures(tmp_path / sample.name, tmp_path / "longer") == expected


@pytest.mark.slow
@pytest.mark.parametrize(("megabytes", "formats"), [(15, {"pi": 1}), (17, {})])
def test_so_long_a_first_record_is_looked_for(megabytes: int, formats: dict[str, int], tmp_path: Path) -> None:
    """Beyond, the file is counted as one that no format claims."""
    first, *others = sorted((SAMPLES / "pi").rglob("*.jsonl"))[0].read_text("utf-8").split("\n")
    padded = json.dumps({**json.loads(first), "padding": "x" * (megabytes << 20)})
    (tmp_path / "a.jsonl").write_text("\n".join((padded, *others)))
    made = pipeline.ingest([str(tmp_path / "a.jsonl")], tmp_path / "s", jobs=1)
    assert (made.formats, "unrecognised" in made.skipped) == (formats, not formats)
