"""Repetition, errors and commits of real sessions against figures taken from the raw lines by another road."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_code.reader import read
from agentsignals.model import Absent, Artifact
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/corpus is not there"),
]

SAME_BY_NATURE = re.compile(r"Todo|Task|Agent|Skill|PlanMode|AskUserQuestion")
PERSON_OR_SIBLING = ("The user doesn't want to ", "<tool_use_error>Sibling tool call errored")


def transcripts() -> list[Path]:
    return sorted(CORPUS.glob("*/*/transcript.jsonl"))[4::9]


def blocks(path: Path) -> list[dict[str, Any]]:
    """Tool uses and results of the main thread in file order, each once."""
    seen: set[str] = set()
    found = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        content = (record.get("message") or {}).get("content")
        if record.get("isSidechain") or not isinstance(content, list) or record.get("uuid") in seen:
            continue
        seen.add(record.get("uuid"))
        found += [b for b in content if b.get("type") in ("tool_use", "tool_result")]
    return found


def text(block: dict[str, Any]) -> str:
    content = block.get("content")
    return content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content or [])


def repeats(found: list[dict[str, Any]], waits: set[str]) -> tuple[int, int]:
    """Calls that repeat an earlier one whatever was edited, of all but those that wait (`waits`: their ids)."""
    before: set[str] = set()
    n = total = 0
    for block in found:
        if block["type"] != "tool_use" or SAME_BY_NATURE.search(block["name"]) or block["id"] in waits:
            continue
        given = dict(block["input"])
        if "command" in given:
            given = {k: v for k, v in given.items() if k not in ("description", "timeout", "run_in_background")}
            given["command"] = " ".join(given["command"].split())
        key = json.dumps([block["name"], given], sort_keys=True)
        total += 1
        n += key in before
        before.add(key)
    return n, total


def failures(found: list[dict[str, Any]]) -> tuple[int, int]:
    answers = [b for b in found if b["type"] == "tool_result"]
    counted = [b for b in answers if not (b.get("is_error") and text(b).startswith(PERSON_OR_SIBLING))]
    return sum(bool(b.get("is_error")) for b in counted), len(counted)


@pytest.mark.parametrize("path", transcripts(), ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_figures_agree_with_the_raw_lines(path: Path) -> None:
    artifact = Artifact(
        artifact_id="a", source="s", path=str(path), format="claude-code", sha256="", bytes=path.stat().st_size
    )
    (session,) = read([Input(path.read_bytes(), artifact)]).sessions
    results = {r.signal.path: r for r in measure(SessionView(session))}
    found = blocks(path)
    waits = {str(call.call_id) for call in session.tool_calls if call.purpose == "poll"}
    for name, numerator, (num, den) in (
        ("dynamics.repetition_rate", "equal", repeats(found, waits)),
        ("user.tool_error_rate", "num", failures(found)),
    ):
        result = results[name]
        if isinstance(result.value, Absent):
            assert den == 0, name
        else:
            assert result.detail is not None
            assert (result.detail[numerator], result.detail["den"]) == (num, den), name
            assert result.detail["num"] <= num, name
