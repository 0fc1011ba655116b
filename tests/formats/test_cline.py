"""The traps of Cline, Roo Code and Kilo Code, one test each (design/formats.md#cline)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.changes.hunks import edit_texts
from agentsignals.formats.cline import FORMAT, PROFILE
from agentsignals.formats.records import HEAD_BYTES
from agentsignals.ingest import pipeline
from agentsignals.model import Session, encode_roles
from tests.formats.reading import format_of, given

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "cline-cli"
FOLDER = "/u/globalStorage/{}/tasks/1780000000000"
T = 1_780_000_000_000
Row = dict[str, Any]


def say(kind: str, text: str = "", at: int = 0, **more: Any) -> Row:
    return {"ts": T + at * 1000, "type": "say", "say": kind, "text": text, **more}


def request(at: int, request: str = "", **used: Any) -> Row:
    return say("api_req_started", json.dumps({"request": request, **used}), at)


def model(text: str, at: int | None = None) -> Row:
    times = {} if at is None else {"ts": T + at * 1000}
    return {"role": "assistant", "content": [{"type": "text", "text": text}], **times}


def user(*texts: str) -> Row:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def read(files: dict[str, object], folder: str = FOLDER.format("saoudrizwan.claude-dev")) -> list[Session]:
    inputs = []
    for name, rows in files.items():
        inputs.append(given(rows, "cline", f"{folder}/{name}"))
    return FORMAT.read(inputs).sessions


def task(rows: list[Row], history: list[Row] | None = None, **more: object) -> Session:
    files: dict[str, object] = {"ui_messages.json": rows, **more}
    if history is not None:
        files["api_conversation_history.json"] = [user("<task>\nfix it\n</task>"), *history]
    (session,) = read(files)
    return session


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([say("task", "fix it")], "cline"),
        ([say("text", "fix it" * HEAD_BYTES)], "cline"),
        ([{"ts": T, "type": "ask", "ask": "command"}], "cline"),
        ([user("<task>\nfix it\n</task>")], "cline"),
        ([user("fix it")], None),
        ([{"ts": T, "type": "log", "say": "hello"}], None),
        ({"files_in_context": [], "model_usage": []}, "cline"),
        ({"files_in_context": [], "other": []}, None),
        ({"version": 1, "agent": "lead", "sessionId": "s", "messages": []}, "cline"),
        ({"sessionId": "s", "messages": []}, None),
    ],
)
def test_it_is_known_by_what_it_alone_writes(content: object, expected: str | None) -> None:
    assert format_of(content, "/x/a.json") == expected


@pytest.mark.parametrize(
    ("diff", "pairs"),
    [
        ("------- SEARCH\na\n=======\nb\n+++++++ REPLACE", [("a", "b")]),
        ("<<<<<<< SEARCH\n:start_line:7\n-------\na\n-----\n=======\n\n>>>>>>> REPLACE", [("a\n-----", "")]),
        ("----- SEARCH\na\n=====\nb\n+++++ REPLACE\n" * 2, [("a", "b"), ("a", "b")]),
        ("<<<<<<< SEARCH\na\n=======\nb", []),
        ("@@ -1 +1 @@\n-a\n+b", []),
    ],
)  # fmt: skip
def test_an_edit_is_pairs_of_texts_between_marks(diff: str, pairs: list[tuple[str, str]]) -> None:
    roles = PROFILE.tools["replace_in_file"].roles
    assert roles is not None
    texts = edit_texts(json.dumps({"path": "a", "diff": diff}), encode_roles(roles))
    assert [(t.old, t.new) for t in texts if t.kind == "replace"] == pairs
    assert bool(pairs) or [t.kind for t in texts] == ["patch"]


def test_tags_that_never_close_are_read_once() -> None:
    """A model may write as many as fit: what each looks for is looked for once."""
    session = task([say("task", "go"), request(1)], [model("<read_file>" + "<path>" * 20_000, 2)])
    assert [c.arguments for c in session.tool_calls] == ["{}"]


@pytest.mark.parametrize(
    "said",
    [
        'The user denied this operation and provided the following feedback:\n<feedback>\nuse our "log"\n</feedback>',
        '{"status":"denied","message":"The user denied this operation.","feedback":"use our \\"log\\""}',
    ],
)
def test_words_of_a_refusal_are_a_turn_also_where_the_page_is_missing(said: str) -> None:
    write = "<write_to_file>\n<path>a.py</path>\n<content>\nprint()\n</content>\n</write_to_file>"
    history = [user("<task>\nfix it\n</task>"), model(write, 2), user("[write_to_file for 'a.py'] Result:", said)]
    (alone,) = read({"api_conversation_history.json": history})
    page = [say("task", "fix it"), request(1), say("tool", '{"tool":"newFileCreated","path":"a.py"}', 2)]
    whole = task([*page, say("user_feedback", 'use our "log"', 3)], history[1:])
    for one in (alone, whole):
        assert [(t.kind, t.text) for t in one.turns[1:]] == [("rejection_feedback", 'use our "log"')]
    broken = '{"status":"denied","message":"The user denied this operation.","feedback":"see C:\\x"}'  # no JSON
    (one,) = read({"api_conversation_history.json": [*history[:2], user("[write_to_file for 'a.py'] Result:", broken)]})
    assert [t.text for t in one.turns[1:]] == ["see C:\\x"]
    silent = [*history[:2], user("[write_to_file for 'a.py'] Result:", "The user denied this operation.")]
    assert [len(one.turns) for one in read({"api_conversation_history.json": silent})] == [1]


def test_the_cli_s_sessions_say_what_the_scripted_model_sent(tmp_path: Path) -> None:
    """Counted over the file: 4 calls of the model with 201 to 204 tokens of input, 64 of them cached."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}")
    _, store = pipeline.ingest_into([str(CORPUS)], tmp_path / "s", jobs=1)
    session = store.session("1795346477710_uu1ij")
    assert (session.agent, session.agent_version, session.cwd) == ("cline", "3.0.65", "/home/user/project_cl")
    assert [t.text for t in session.turns] == ["Write hello.py that prints hello, change the greeting, then run it"]
    assert [(s.input_tokens, s.cache_read_tokens, s.output_tokens) for s in session.steps] == [
        (137 + n, 64, 40) for n in range(4)
    ]
    assert [(c.name, c.status, c.exit_code) for c in session.tool_calls] == [
        ("editor", "ok", None),
        ("read_files", "ok", None),
        ("run_commands", "error", 3),
    ]
