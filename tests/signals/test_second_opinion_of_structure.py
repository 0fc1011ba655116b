"""Structural figures of real sessions against figures taken from the raw lines by another road."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_code.reader import read
from agentsignals.model import Artifact
from agentsignals.signals.catalog import measure, plain
from agentsignals.views.session import SessionView

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/corpus is not there"),
]
PERSON = "The user doesn't want to "


def transcripts() -> list[Path]:
    return sorted(CORPUS.glob("*/*/transcript.jsonl"))[2::9]


def messages(path: Path) -> list[dict[str, Any]]:
    """Main-thread records in file order, each once."""
    seen: set[str] = set()
    found = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("isSidechain") or not isinstance(record.get("message"), dict) or record.get("uuid") in seen:
            continue
        seen.add(record.get("uuid"))
        found.append(record)
    return found


def text(block: dict[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(p["text"] for p in content or [] if isinstance(p.get("text"), str))


def raw(path: Path) -> dict[str, Any]:
    """Result sizes, errors by tool and changes of model, straight from the lines."""
    names: dict[str, str] = {}
    commands: dict[str, str] = {}
    sizes: list[int] = []
    errors: Counter[str] = Counter()
    models: list[str] = []
    for record in messages(path):
        content = record["message"].get("content")
        model = record["message"].get("model")
        if record.get("type") == "assistant" and model and model[0] != "<" and model not in models[-1:]:
            models.append(model)
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                names[block["id"]] = block["name"]
                commands[block["id"]] = block["input"].get("command", "")
            elif block.get("type") == "tool_result" and block["tool_use_id"] in names:
                said = text(block)
                sizes.append(-(-len(said) // 4))
                if block.get("is_error") and not said.startswith((PERSON, "[Request interrupted")):
                    name, command = names[block["tool_use_id"]], commands.get(block["tool_use_id"], "")
                    if said != "Exit code 1" or not re.search(r"\bgrep\b[^|;&]*$", command):  # it found nothing
                        errors[name] += 1
    return {"sizes": sorted(sizes), "errors": dict(errors), "models": models}


def computed(path: Path) -> dict[str, Any]:
    artifact = Artifact(artifact_id="a", source="test", path=str(path), format="claude-code", sha256="", bytes=0)
    sessions = read([Input(path.read_bytes(), artifact)]).sessions
    found = {r.signal.path: plain(r.value) for r in measure(SessionView(sessions[0])) if r.turn is None}
    errors: Counter[str] = Counter()
    for row in found["user.tool_errors_by_type[]"]:
        errors[row["tool"]] += row["n"]
    changes = found["user.model_changes[]"]
    return {
        "sizes": sorted(found["user.tool_result_sizes[]"]),
        "errors": dict(errors),
        "models": [change["to_model"] for change in changes],
    }


def test_sizes_errors_and_models_are_those_of_the_raw_lines() -> None:
    compared = 0
    for path in transcripts():
        expected, found = raw(path), computed(path)
        assert found["sizes"] == expected["sizes"], path
        assert found["errors"] == expected["errors"], path
        assert found["models"] == expected["models"][1:], path
        compared += len(expected["sizes"])
    assert compared > 300
