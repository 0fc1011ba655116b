"""The prompt that a program fills into its template is nobody's words, whichever agent it drives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import by_name
from agentsignals.model import Session
from tests.formats.reading import given

SAMPLES = Path(__file__).parent
OF_AGENTS = {
    "claude-code": "people.jsonl",
    "codex": "session.jsonl",
    "gemini-cli": "menu.json",
    "pi": "tree.jsonl",
    "opencode": "person.json",
    "copilot-cli": "session.jsonl",
    "factory-droid": "session.jsonl",
    "kiro": "client.json",
    "cursor-agent": "plain.jsonl",
}
HEADER = "[[ ## user_query ## ]]\n\n"


def read(name: str, data: bytes) -> Session:
    path = f"s{Path(OF_AGENTS[name]).suffix}"
    return by_name(name).read([given(data, name, path)]).sessions[0]


@pytest.mark.parametrize("name", OF_AGENTS)
def test_a_programs_template_is_no_prompt(name: str) -> None:
    data = (SAMPLES / name / OF_AGENTS[name]).read_bytes()
    prompts = [t.text for t in read(name, data).turns if t.kind == "prompt" and t.text]
    written = json.dumps(prompts[0], ensure_ascii=False)[1:-1].encode()
    assert written in data
    filled = data.replace(written, json.dumps(HEADER)[1:-1].encode() + written)
    session = read(name, filled)
    assert [t.text for t in session.turns if "user_query" in t.text] == []
    assert any("user_query" in (e.text or "") and e.kind == "meta" for e in session.events)


@pytest.mark.parametrize(
    "words", ["[[ ## user_query ## ]] is what the header must be", "see [[ ## a ## ]]\nhere", "[[wiki]]\n"]
)
def test_a_person_may_name_one(words: str) -> None:
    data = (SAMPLES / "codex" / "session.jsonl").read_bytes()
    before = next(t.text for t in read("codex", data).turns if t.kind == "prompt" and t.text)
    filled = data.replace(json.dumps(before)[1:-1].encode(), json.dumps(words)[1:-1].encode())
    assert words.strip() in [t.text for t in read("codex", filled).turns]
