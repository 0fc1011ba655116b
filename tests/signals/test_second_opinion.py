"""Signals of real sessions against figures taken from the raw lines by another road."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_code.reader import read
from agentsignals.model import Absent, Artifact, from_iso
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/corpus is not there"),
]

USAGE = {
    "tokens.input_tokens_total": "input_tokens",
    "tokens.output_tokens_total": "output_tokens",
    "tokens.cache_read_tokens": "cache_read_input_tokens",
    "tokens.cache_write_tokens": "cache_creation_input_tokens",
}


def transcripts() -> list[Path]:
    """Every ninth transcript, so that all repositories are met in little time."""
    return sorted(CORPUS.glob("*/*/transcript.jsonl"))[::9]


def raw(path: Path) -> list[dict[str, Any]]:
    """The assistant records of the main thread, each once."""
    seen: set[str] = set()
    kept = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("type") != "assistant" or record.get("isSidechain") or record.get("uuid") in seen:
            continue
        if record["message"].get("model") != "<synthetic>" and not record.get("isApiErrorMessage"):
            seen.add(record["uuid"])
            kept.append(record)
    return kept


def counted(records: list[dict[str, Any]]) -> dict[str, Any]:
    calls: dict[str, str] = {}
    usage: dict[str, Counter[str]] = {}
    for record in records:
        message = record["message"]
        most = usage.setdefault(message["id"], Counter())
        for field in USAGE.values():
            most[field] = max(most[field], message.get("usage", {}).get(field) or 0)
        calls |= {b["id"]: b["name"] for b in message["content"] if b["type"] == "tool_use"}
    totals = {path: sum(u[field] for u in usage.values()) for path, field in USAGE.items()}
    curve = [
        u["input_tokens"] + u["cache_read_input_tokens"] + u["cache_creation_input_tokens"] for u in usage.values()
    ]
    edits = sum(name in ("Edit", "MultiEdit", "Write", "NotebookEdit") for name in calls.values())
    return {
        **totals,
        "behavior.turn_count": len(usage),
        "behavior.tool_call_count": len(calls),
        "behavior.edit_calls": edits,
        "tokens.context_growth_curve[]": curve,
    }


@pytest.mark.parametrize("path", transcripts(), ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_counts_of_a_real_session_are_those_of_its_raw_lines(path: Path) -> None:
    data = path.read_bytes()
    session = read(
        [
            Input(
                data,
                Artifact(
                    artifact_id="a", source="test", path=str(path), format="claude-code", sha256="", bytes=len(data)
                ),
            )
        ]
    ).sessions[0]
    found = {r.signal.path: r.value for r in measure(SessionView(session))}
    records = raw(path)
    assert {key: found[key] for key in counted(records)} == counted(records)
    stamps = [from_iso(r["timestamp"]) or 0 for r in records]
    if stamps:
        assert found["infra.wall_time_s"] >= (max(stamps) - min(stamps)) / 1_000_000
    shares = found["corpus.tool_class_mix"]
    assert isinstance(shares, Absent) or sum(shares.values()) == pytest.approx(1.0)
