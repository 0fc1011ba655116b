"""The traps of Cline, Roo Code and Kilo Code, one test each (design/formats.md#cline)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.changes.hunks import edit_texts
from agentsignals.formats.cline import FORMAT, PROFILE
from agentsignals.formats.head import HEAD_BYTES
from agentsignals.ingest import pipeline
from agentsignals.model import Session, encode_roles
from tests.formats.reading import format_of, given, read_one

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


def run(command: str) -> str:
    return f"<execute_command>\n<command>{command}</command>\n</execute_command>"


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
    ("extension", "shows", "agent"),
    [
        ("saoudrizwan.claude-dev", "checkpoint_saved", "cline"),
        ("rooveterinaryinc.roo-cline", "text", "roo-code"),
        ("kilocode.kilo-code", "text", "kilo"),
        ("a copy", "checkpoint_saved", "roo-code"),
        ("a copy", "checkpoint_created", "cline"),
    ],
)
def test_the_place_tells_the_agent_else_what_the_page_shows(extension: str, shows: str, agent: str) -> None:
    (session,) = read({"ui_messages.json": [say("text", "fix it"), say(shows, "x", 1)]}, FOLDER.format(extension))
    assert (session.agent, session.session_id) == (agent, "1780000000000")


@pytest.mark.parametrize(("provider", "fresh"), [("openai", 137), ("anthropic", 201), (None, 201)])
def test_cached_tokens_are_input_of_some_providers(provider: str | None, fresh: int) -> None:
    row = request(1, tokensIn=201, tokensOut=40, cacheReads=64, cacheWrites=0, cost=0)
    (step,) = task([say("task", "fix it"), {**row, "modelInfo": {"providerId": provider, "modelId": "m"}}]).steps
    assert (step.input_tokens, step.output_tokens, step.cache_read_tokens, step.cost_usd) == (fresh, 40, 64, None)


@pytest.mark.parametrize(
    ("result", "status", "code"),
    [
        ("Command failed with exit code 3.\nOutput:\nexit code 0", "error", 3),
        ("Command executed successfully (exit code 0).\nOutput:\nx", "ok", 0),
        ("Command executed in terminal within working directory '/w'. Exit code: 2\nOutput:\n", "error", 2),
        ("Command executed.\nOutput:\nexit code 3", "unknown", None),
        ("The user denied this operation.", "rejected", None),
        ("The tool execution failed with the following error:\n<error>\nno\n</error>", "error", None),
        ("Skipping tool due to user rejecting a previous tool.", "cancelled", None),
    ],
)
@pytest.mark.parametrize("form", ["one block", "two blocks", "the page alone"])
def test_how_a_command_ended_stands_in_its_result(result: str, status: str, code: int | None, form: str) -> None:
    header = "[execute_command for 'x'] Result:"
    rows = [
        say("task", "fix it"),
        request(1),
        say("command", "x", 2),
        request(5, f"{header}\n{result}\n\n<environment_"),
    ]
    sent = [header, result] if form == "two blocks" else [f"{header}\n{result}"]
    session = task(rows, None if form == "the page alone" else [model(run("x"), 2), user(*sent)])
    (call,) = session.tool_calls
    assert (call.command, call.status, call.exit_code) == ("x", status, code)


@pytest.mark.parametrize("timed", [True, False])
def test_answers_go_to_their_requests(timed: bool) -> None:
    """The history may lack the last ones, and has nothing of a request that was broken off."""
    rows = [say("task", "go"), request(1), request(3, cancelReason="streaming_failed"), request(5), request(9)]
    history = [model(run("a"), 2 if timed else None), user("[x] Result:\nA"), model(run("b"), 6 if timed else None)]
    session = task(rows, history)
    assert [(c.command, c.step) for c in session.tool_calls] == [("a", 0), ("b", 2)]


def test_of_two_copies_of_a_task_the_fuller_one_counts() -> None:
    paths = {n: f"/copy{n}/1780000000000/ui_messages.json" for n in (1, 2)}
    inputs = [given([say("task", "go"), *([request(1)] * n)], "cline", path) for n, path in paths.items()]
    session = read_one(FORMAT, *inputs)
    assert len(session.steps) == 2
    assert inputs[0].artifact.note == f"superseded by {paths[2]}"


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
