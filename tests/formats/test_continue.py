"""The traps of Continue's sessions, one test each (design/formats.md#continue)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.formats import Reading
from agentsignals.formats.builder import path_of_uri
from agentsignals.formats.continue_ import FORMAT
from tests.formats.reading import format_of, given

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "continue" / "sessions"


def read(*files: object) -> Reading:
    return FORMAT.read([given(file, "continue", str(n)) for n, file in enumerate(files)])


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": []}, "continue"),
        ({"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": [{"message": {}}] * 9999}, "continue"),
        ({"sessionId": "s", "workspaceDirectory": "/w", "history": [{"role": "user"}]}, None),
        ({"sessionId": "s", "history": [{"message": {"role": "user"}}]}, None),
        ([{"sessionId": "s", "title": "t", "dateCreated": "1780000000000", "workspaceDirectory": "/w"}], "continue"),
        ([{"sessionId": "s", "title": "t"}], None),
    ],
)
def test_it_asks_for_what_only_continue_writes(document: object, expected: str | None) -> None:
    assert format_of(document) == expected


@pytest.mark.parametrize(
    ("text", "path"),
    [("file:///w/a%20b", "/w/a b"), ("file:///c%3A/w", "c:/w"), ("vscode-remote://x/w", "vscode-remote://x/w")],
)
def test_editors_write_folders_as_addresses(text: str, path: str) -> None:
    assert path_of_uri(text) == path


@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus/native/continue is not there")
def test_what_the_program_wrote_is_what_the_model_sent() -> None:
    """Four calls and an answer; prompts of 201 to 205 tokens with 64 cached, answers of 40 with 8 of reasoning."""
    reading = read(*(path.read_bytes() for path in sorted(CORPUS.iterdir())))
    (made,) = reading.sessions
    assert [s.input_tokens for s in made.steps] == [137, 138, 139, 140, 141]
    assert {(s.output_tokens, s.cache_read_tokens, s.reasoning_tokens) for s in made.steps} == {(40, 64, 8)}
    statuses = {c.name: c.status for c in made.tool_calls}
    assert statuses == {"Write": "ok", "Read": "ok", "Edit": "ok", "Bash": "unknown"}
    assert [(e.op, e.added, e.removed) for e in made.edits] == [("create", 1, 0), ("modify", 1, 1)]
    assert (made.started_at, len(made.turns), made.model) == (1_795_346_452_552_000, 1, "mock-1")
