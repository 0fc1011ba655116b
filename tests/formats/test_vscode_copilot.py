"""The traps of VS Code's chats, one test each (design/formats.md#vs-code-copilot-chat)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.formats import Input, identify
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.formats.vscode_copilot import FORMAT
from agentsignals.formats.vscode_copilot.records import replay
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.sources import RawFile, local
from tests.formats import reading
from tests.formats.vscode_chats import (
    MADE_BY_THE_EXTENSION,
    SESSION,
    START,
    agent_span,
    asks,
    chat,
    delete,
    events,
    log,
    model,
    model_span,
    push,
    put,
    request,
    snapshot,
    span,
    tool_span,
    traces,
    tree,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native"


def of(data: bytes, path: str = "/u/chatSessions/x.jsonl") -> Input:
    return reading.given(data, FORMAT.name, path)


def saved(document: Any, path: str = "/u/chatSessions/x.json") -> Input:
    return of(json.dumps(document).encode(), path)


def only(*inputs: Input) -> Session:
    (session,) = FORMAT.read(list(inputs)).sessions
    return session


def claimant(data: bytes, path: str = "x") -> tuple[str, list[str]] | None:
    claim = identify(Head(data[:HEAD_BYTES], path, len(data) <= HEAD_BYTES))
    return claim and (claim[0].name, claim[1].keys)


LONG = [request("x" * HEAD_BYTES)]
HERE = f"session:{SESSION}"


@pytest.mark.parametrize(
    ("document", "path", "keys"),
    [
        (chat(request("hi")), "x", [HERE]),
        (chat(*LONG), f"/u/chatSessions/{SESSION}.json", [HERE]),
        (chat(*LONG), "/export.json", []),
        (snapshot(chat()), "x", [HERE]),
        (snapshot({"sessionId": SESSION, "creationDate": 1, "requests": LONG}), "x", [HERE]),
        (
            snapshot({"version": 3, "creationDate": 1, "requests": []}),
            "/emptyWindowChatSessions/e.jsonl",
            ["session:e"],
        ),
        ({"requests": [], "total": 3}, "x", None),
        ({"kind": 0, "v": {"requests": []}}, "x", None),
        ({"kind": 0, "v": 7}, "x", None),
        ({"kind": 1, "k": ["requests"], "v": []}, "x", None),
    ],
)
def test_a_chat_is_told_by_who_answers_it(document: Any, path: str, keys: list[str] | None) -> None:
    """Its id stands behind the requests: of a long one the place says it, where the editor names files so."""
    assert claimant(json.dumps(document).encode(), path) == (keys if keys is None else (FORMAT.name, keys))


def test_a_log_that_lost_its_beginning_says_so() -> None:
    source = of(log(push("requests", v=[request("go")])))
    assert (FORMAT.read([source]).sessions, source.artifact.skipped_reasons) == ([], {"no_snapshot": 1})


_names = st.sampled_from("abc")
_documents = st.recursive(
    st.integers(0, 9) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_replaying_changes_is_making_them(data: st.DataObject) -> None:
    """Changes that are drawn of the document as it stands, made on it, and what a log of them comes to."""
    document: Any = data.draw(st.dictionaries(_names, _documents, max_size=3))
    entries = [snapshot(copy.deepcopy(document))]
    for _ in range(data.draw(st.integers(0, 12))):
        path: list[str | int] = []
        holder: Any = document
        while True:
            is_list = isinstance(holder, list)
            step: Any = data.draw(st.integers(0, len(holder)) if is_list else _names)
            path.append(step)
            below = (holder[step] if step < len(holder) else None) if is_list else holder.get(step)
            if not isinstance(below, dict | list) or data.draw(st.booleans()):
                break
            holder = below
        value = data.draw(_documents)
        if isinstance(below, list) and data.draw(st.booleans()):
            more, cut = data.draw(st.lists(_documents, max_size=2)), data.draw(st.none() | st.integers(0, len(below)))
            entries.append(push(*path, v=copy.deepcopy(more), i=cut))
            below[cut if cut is not None else len(below) :] = more
        elif isinstance(holder, dict) and data.draw(st.booleans()):
            entries.append(delete(*path))
            holder.pop(step, None)
        else:
            entries.append(put(*path, v=copy.deepcopy(value)))
            if isinstance(holder, list):
                holder[step : step + 1] = [value]
            else:
                holder[step] = value
    source = of(log(*entries))
    assert replay(source).document == document
    assert source.artifact.skipped_reasons == {}


ASKED = ("user.message", {"content": "go", "attachments": []})


def document_of(path: Path, chat_id: str = SESSION) -> Input:
    """The document that the database holds of a chat."""
    files = [file for file in local.find(str(path)) if isinstance(file, RawFile)]
    (data,) = local.read([file for file in files if file.key == chat_id], None)
    assert isinstance(data, bytes)
    return of(data, f"{path}///{chat_id}")


EDIT = {"id": "c1", "name": "insert_edit_into_file", "arguments": '{"filePath": "/w/a.py", "code": "x"}'}
RUN = {"id": "c2", "name": "run_in_terminal", "arguments": '{"command": "make"}'}
LOOK = {"id": "c3", "name": "runSubagent", "arguments": '{"prompt": "look"}'}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Session:
    title = {"copilot_chat.parent_chat_session_id": SESSION}
    repository = {"copilot_chat.repo.remote_url": "https://github.com/ida/tides.git"}
    spans = (
        model_span("title", 0, None, agent_name="title", trace_id="t0", facts=title),
        model_span("progress", 0, None, agent_name="progressMessages", trace_id="t1"),
        agent_span("a1", 1, "go", facts=repository),
        span("hook", "execute_hook", 2, "a1"),
        tool_span("todo", 2, "a1", {"id": "", "name": "manage_todo_list", "arguments": "{}"}, "none"),
        model_span("m1", 3, "a1", EDIT, RUN, LOOK),
        tool_span("e1", 4, "a1", EDIT, json.dumps(tree("edited", "/w/a.py")["content"][0]["value"])),
        tool_span("e2", 4.2, None, {**EDIT, "name": "vscode_editFile_internal"}, "", chat_session_id=SESSION),
        tool_span("r1", 5, "a1", RUN, "no make", status_code=2, status_message="it failed"),
        tool_span("l1", 6, "a1", LOOK, "seen"),
        agent_span("sub", 6, "look", "l1", chat_session_id=None),
        model_span("m2", 7, "sub"),
        model_span("m3", 9, "a1", status_code=2, status_message="429"),
        agent_span("other", 20, "not this one", trace_id="t9", chat_session_id="another"),
        model_span("m9", 21, "other", trace_id="t9"),
    )
    path = traces(tmp_path_factory.mktemp("traces") / "agent-traces.db", *spans)
    return only(document_of(path))


def test_tools_of_traces_are_those_that_the_model_called(traced: Session) -> None:
    """Hooks and what the program calls for itself are none; an edit has two spans of one id."""
    calls = [(c.name, c.status, c.started_at) for c in traced.tool_calls]
    at = [(START + s * 1000) * 1000 for s in (4, 5, 6)]
    assert calls == [
        ("insert_edit_into_file", "ok", at[0]),
        ("run_in_terminal", "error", at[1]),
        ("runSubagent", "ok", at[2]),
    ]
    assert [e.path for e in traced.edits] == ["/w/a.py"]
    assert next(e.text for e in traced.events if e.kind == "tool_result") == "edited\n/w/a.py"


@pytest.fixture(scope="module")
def every_form(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chat as the editor and the extension keep it, in a home folder."""
    home = tmp_path_factory.mktemp("home")
    place = home / "workspaceStorage/0a"
    calls = [asks("c2", "run_in_terminal", command="make"), asks("c4", "read_file", filePath="/home/ida/tides/a")]
    asked = request("go", 1, [], [model("", *calls), model("made")], {"c2": {"content": [{"value": "fine"}]}}, usage=7)
    second = request("on", 9, [], [model("a"), model("b")], usage=5)
    (place / "chatSessions").mkdir(parents=True)
    (place / f"chatSessions/{SESSION}.json").write_text(json.dumps(chat(asked)))
    (place / f"chatSessions/{SESSION}.jsonl").write_bytes(log(snapshot(chat(asked)), push("requests", v=[second])))
    (place / "GitHub.copilot-chat/transcripts").mkdir(parents=True)
    (place / f"GitHub.copilot-chat/transcripts/{MADE_BY_THE_EXTENSION}.jsonl").write_bytes(events(ASKED))
    traces(
        home / "globalStorage/github.copilot-chat/agent-traces.db",
        agent_span("a1", 60, "go"),
        model_span("m1", 61, "a1", RUN),
        tool_span("r1", 63, "a1", RUN, "fine"),
        model_span("m2", 65, "a1"),
        agent_span("a2", 100, "taken back", trace_id="t2"),
        model_span("m3", 101, "a2", trace_id="t2"),
        tool_span("e3", 102, "a2", EDIT, "edited", trace_id="t2"),
    )
    return home


@pytest.mark.slow
def test_a_chat_in_every_form_is_one_session(every_form: Path, tmp_path: Path) -> None:
    """Also where the extension called it otherwise: that id stands in the chat, behind what is looked at first. Beside
    it a workspace whose folder is not in the chat."""
    other = tmp_path / "0b"
    (other / "chatSessions").mkdir(parents=True)
    (other / "chatSessions/c.json").write_text(json.dumps(chat(request("hi", 1), sessionId="c")))
    (other / "workspace.json").write_text('{"folder": "file:///home/ida/the%20sea"}')
    _, store = pipeline.ingest_into([str(every_form), str(other)], tmp_path / "store", jobs=1)
    assert sorted(store.manifest.sessions) == [SESSION, "c"]
    assert len(store.session(SESSION).steps) == 5 and store.session("c").cwd == "/home/ida/the sea"


@pytest.mark.parametrize(
    ("workspace", "folder"),
    [
        ({"folder": "file:///home/ida/the%20sea"}, "/home/ida/the sea"),
        ({"folder": "file:///c%3A/work"}, "c:/work"),
        ({"folder": "vscode-remote://ssh-remote%2Bbox/srv/sea/"}, "/srv/sea"),
        ({"workspace": "file:///home/ida/sea.code-workspace"}, None),
    ],
)
def test_the_folder_is_that_of_the_window(workspace: dict[str, str], folder: str | None) -> None:
    data = json.dumps(workspace).encode()
    assert claimant(data) == (FORMAT.name, [])
    lent = of(data, "/u/0a/workspace.json")
    lent.named_trials = None
    look = (
        "tool.execution_start",
        {"toolCallId": "c", "toolName": "read_file", "arguments": {"filePath": "/srv/sea/a"}},
    )
    transcript = of(events(ASKED, look, cwd=None), "/u/0a/GitHub.copilot-chat/transcripts/t.jsonl")
    session = only(lent, transcript)
    assert (session.cwd, session.tool_calls[0].path) == (folder, "a" if folder == "/srv/sea" else "/srv/sea/a")
    assert only(lent, saved(chat(request("go")), "/u/0a/chatSessions/x.json")).cwd == folder


def test_homes_of_every_workspace_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "App[1]"))
    for place in (
        ".config/Code/User/workspaceStorage/0a/chatSessions",
        ".config/Code - Insiders/User/globalStorage/emptyWindowChatSessions",
        "Library/Application Support/VSCodium/User/workspaceStorage/0b/GitHub.copilot-chat/transcripts",
        "App[1]/Code/User/workspaceStorage/0c/chatSessions",
        ".vscode-server/data/User/workspaceStorage/0d/chatSessions",
        ".config/Code/User/workspaceStorage/0e/other",
    ):
        (tmp_path / place).mkdir(parents=True)
    for workspace in ("0a", "0e"):
        (tmp_path / f".config/Code/User/workspaceStorage/{workspace}/workspace.json").touch()
    there = [p.relative_to(tmp_path).parts[-2:] for p in local.found_homes()["vscode-copilot"]]
    assert there == [
        ("0a", "chatSessions"), ("0a", "workspace.json"), ("globalStorage", "emptyWindowChatSessions"),
        ("GitHub.copilot-chat", "transcripts"), ("0c", "chatSessions"), ("0d", "chatSessions"),
    ]  # fmt: skip


@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared/corpus/native")
@pytest.mark.parametrize(
    ("file", "counts"),
    [  # taken with jq from the raw documents: requests, rounds, calls in them; of the log after the last push
        ("vscode-copilot-chatsessions-json/copilot_session_simple.json", (3, 5, 2, [])),
        ("vscode-copilot-chatsessions-jsonl/copilot_session_multiline.jsonl", (2, 4, 2, [33, 40])),
    ],
)
def test_recorded_chats(file: str, counts: tuple[int, int, int, list[int]]) -> None:
    session = only(of((CORPUS / file).read_bytes(), file))
    used = [s.output_tokens for s in session.steps if s.output_tokens is not None]
    assert (len(session.turns), len(session.steps), len(session.tool_calls), used) == counts
    assert {c.status for c in session.tool_calls} == {"ok"} and session.cwd == "/Users/user/projects/testing-git"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared/corpus/native")
def test_a_transcript_of_others() -> None:
    path = CORPUS / "vscode-copilot-transcripts/ws1/GitHub.copilot-chat/transcripts/test-session-abc.jsonl"
    session = only(of(path.read_bytes(), path.as_posix()))
    assert (session.session_id, session.agent_version) == ("test-session-abc", "0.47.0")
    assert [(c.name, c.class_, c.status) for c in session.tool_calls] == [("read_file", "read", "ok")]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared/corpus/native")
def test_recorded_traces() -> None:
    """Sums taken with sqlite3: 17,414 + 18,101 + 270 tokens of input of which 20,736 were cached; 655 + 74 + 9 out."""
    path = CORPUS / "vscode-copilot-otel/agent-traces.db"
    session = only(document_of(path, "48eb5d32-e8f9-4528-b791-92cec0da9dce"))
    assert sum(s.input_tokens or 0 for s in session.steps) == 17_414 + 18_101 + 270 - 20_736
    assert sum(s.output_tokens or 0 for s in session.steps) == 655 + 74 + 9
    assert [(c.name, c.status) for c in session.tool_calls] == [("apply_patch", "ok")]
    assert (len(session.turns), session.repo, [e.added for e in session.edits]) == (1, "user/testing-git", [1])


def test_a_span_belongs_to_the_chat_of_the_nearest_span_above_that_names_one(tmp_path: Path) -> None:
    """Neither a circle of spans nor a lost one names any."""
    unnamed = {"chat_session_id": None}
    path = traces(
        tmp_path / "t.db",
        agent_span("a1", 1, "go"),
        model_span("m1", 2, "a1", **unnamed),
        model_span("m2", 3, None, **unnamed),
        model_span("m3", 4, "gone", **unnamed),
        model_span("m4", 5, "m4", **unnamed),
        model_span("m5", 6, "m6", **unnamed),
        model_span("m6", 7, "m5", **unnamed),
    )
    assert [step.message_id for step in only(document_of(path)).steps] == ["m1"]
