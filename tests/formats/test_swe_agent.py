"""SWE-agent trajectories: what a step was, what its tools said, and where an attempt's facts come from."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input, by_name
from agentsignals.model import Artifact, Attempt, Session

DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
EDITED = "The file /r/a.py has been edited. Here's the result of running `cat -n` on a snippet of /r/a.py:\n"


def step(action: str, observation: str = "", **more: Any) -> dict[str, Any]:
    said = {"thought": "", "response": "", "state": {"working_dir": "/r"}}
    return {"action": action, "observation": observation, **said, **more}


def document(steps: list[dict[str, Any]], history: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    return {"trajectory": steps, "history": history or [], "info": {}, **more}


def read_at(path: str, content: Any) -> tuple[list[Session], list[Attempt], Artifact]:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    artifact = Artifact(artifact_id=path, source="test", path=path, format="swe-agent", sha256="", bytes=len(data))
    reading = by_name("swe-agent").read([Input(data, artifact)])
    return reading.sessions, reading.attempts, artifact


def read(content: Any, path: str = "/runs/x/task.traj") -> tuple[Session, Attempt]:
    (session,), (part,), _ = read_at(path, content)
    return session, part


def assistant(action: str, thought: str = "", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": thought, "thought": thought, "action": action, "agent": "main", **more}


def function(id_: str, name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]


# -- steps and calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "class_", "path"),
    [
        ("str_replace_editor view /r/a.py --view_range 1 9", "read", "a.py"),
        ("str_replace_editor create /r/b.py --file_text 'x'", "edit", "b.py"),
        ("str_replace_editor undo_edit /r/b.py", "edit", "b.py"),
        ("open a.py 3", "read", "a.py"),
        ('search_file "x y" a.py', "search", "a.py"),
        ("search_dir x src", "search", "src"),
        ("find_file a.py", "search", None),
        ("submit", "other", None),
        ("cat a.py", "read", "a.py"),
        ("cd /r && python -m pytest tests -q", "test", None),
        ("submitted=1", "shell", None),
        ("open 'never closed", "read", "'never"),
    ],
)
def test_an_action_is_a_tool_or_a_command_of_the_shell(action: str, class_: str, path: str | None) -> None:
    (call,) = read(document([step(action, "x")]))[0].tool_calls
    assert (call.class_, call.path) == (class_, path)


@pytest.mark.parametrize(
    ("action", "observation", "status", "error"),
    [
        ("str_replace_editor view /r/a.py", "Here's the result of running `cat -n` on /r/a.py:\n", "ok", None),
        ("str_replace_editor view /r/a.py", "The path /r/a.py does not exist. Please", "error", "not_found"),
        ("str_replace_editor insert /r/a.py", "The file /r/a.py does not exist.\n", "error", "not_found"),
        ("search_file x a.py", "Match 1: it was not found\nMatch 2: here\n", "ok", None),
        ("str_replace_editor view /r", "The `view_range` parameter is not allowed here", "error", "invalid_arguments"),
        ("str_replace_editor str_replace /r/a.py", "No replacement was performed, x", "error", "edit_mismatch"),
        ("edit 1:1\nx\nend_of_edit", "Your proposed edit has introduced new syntax error(s).", "error", "lint_failed"),
        ("open a.py", "File a.py not found\n", "error", "not_found"),
        ("find_file a.py", 'No matches found for "a.py" in /r', "ok", None),
        ("open notes.md", "[File: notes.md (2 lines total)]\n1:it was not found\n", "ok", None),
        ("submit flag", "Wrong flag!", "error", "other"),
        ("submit", "Thank you for your work", "ok", None),
        ("cat a.py", "cat: a.py: No such file or directory\n", "error", "not_found"),
        ("cat log", "first: line\nsecond: line\n", "ok", None),
        ("nope", "bash: line 1: nope: command not found\n", "error", "not_found"),
        ("python a.py", "x\nTraceback (most recent call last):\n  File\nValueError: no\n", "error", "exception"),
        ("cat log", "Traceback (most recent call last):\nValueError: no\nthat was it\n", "ok", None),
        ("pytest -q", "..F\n1 failed, 2 passed in 0.1s\n", "error", "test_failed"),
        ("pytest -q", "3 passed, 0 failed in 0.1s\n", "ok", None),
        ("cat a", "1 failed, 2 passed in 0.1s\n", "ok", None),
        ("sleep 99", "The command 'sleep 99' was cancelled because it took more than 30 seconds.", "error", "timeout"),
        ("if", "Your bash command contained syntax errors and was NOT executed. Please", "error", "compile_error"),
    ],
)
def test_an_answer_says_whether_it_worked(action: str, observation: str, status: str, error: str | None) -> None:
    (call,) = read(document([step(action, observation)]))[0].tool_calls
    assert (call.status, call.error_class, call.exit_code) == (status, error, None)


# -- edits -------------------------------------------------------------------------------------------------------------

OPEN = "[File: /r/a.py ({} lines total)]\n"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("str_replace_editor create /r/a.py --file_text 'x\ny\n'", "File created successfully at: /r/a.py")],
         ("create", 1, 2, 2, 0)),
        ([("str_replace_editor str_replace /r/a.py --old_str b --new_str 'b\nc'", f"{EDITED}  8\ta\n  9\tb\n 10\tc\n")],
         ("modify", 10, 10, 1, 0)),
        ([("str_replace_editor str_replace /r/a.py --old_str 'a b' --new_str 'a c'", f"{EDITED}  8\tif a c:\n")],
         ("modify", 8, 8, 1, 1)),
        ([("str_replace_editor str_replace /r/a.py --old_str 'b' --new_str 'x'", f"{EDITED}  8\tx\n  9\tx\n")],
         ("modify", None, None, 1, 1)),
        ([("str_replace_editor insert /r/a.py --insert_line 4 --new_str 'x\ny'", EDITED)], ("modify", 5, 6, 2, 0)),
        ([("str_replace_editor undo_edit /r/a.py", "Last edit to /r/a.py undone successfully.")],
         ("modify", None, None, None, None)),
        ([("edit 3:4\nx\ny\nz\nend_of_edit", OPEN.format(9))], ("modify", 3, 5, 3, 2)),
        ([("open a.py", OPEN.format(3)), ("edit 3:9\nx\nend_of_edit", OPEN.format(3))], ("modify", 3, 3, 1, 1)),
        ([("open a.py", OPEN.format(6)), ("edit 6:7\nend_of_edit", OPEN.format(5))], ("modify", 6, 6, 0, 1)),
        ([("open a.py", OPEN.format(6)), ("edit\nx\ny\nend_of_edit", OPEN.format(7) + "4:x\n5:y\n")],
         ("modify", 4, 5, 2, 1)),
        ([("edit 'old' 'new'", "Text replaced.\n" + OPEN.format(7) + "7:a new one\n")], ("modify", 7, 7, 1, 1)),
        ([("insert 'x\ny' 3", OPEN.format(7) + "4:x\n5:y\n")], ("modify", 4, 5, 2, 0)),
    ],
)  # fmt: skip
def test_an_edit_has_the_lines_that_its_answer_shows(steps: list[tuple[str, str]], expected: tuple[Any, ...]) -> None:
    state = {"working_dir": "/r", "open_file": "/r/a.py"}
    session, _ = read(document([step(a, o, state=state) for a, o in steps]))
    (edit,) = session.edits
    assert (edit.path, edit.via) == ("a.py", "edit_tool")
    assert (edit.op, edit.start_line, edit.end_line, edit.added, edit.removed) == expected


# -- the attempt -------------------------------------------------------------------------------------------------------


def configured(**model: Any) -> dict[str, Any]:
    return {"agent": {"model": {"name": "openai/quick-1", **model}}, "problem_statement": {"id": "Acme__Tools-7"}}


@pytest.mark.parametrize(
    ("more", "task"),
    [
        ({"replay_config": configured(), "environment": "other"}, "acme__tools-7"),
        ({"environment": "acme__tools-8"}, "acme__tools-8"),
        ({"environment": "swe_main"}, "task"),
        ({}, "task"),
    ],
)
def test_the_task_is_named_by_the_problem_the_environment_or_the_file(more: dict[str, Any], task: str) -> None:
    assert read(document([step("ls")], **more))[1].task_id == task


@pytest.mark.parametrize(
    ("info", "patch", "timed_out"),
    [
        ({"exit_status": "submitted", "submission": DIFF.replace("\n", "\r\n")},
         ["x"], False),
        ({"exit_status": "exit_context", "submission": None}, [], False),
        ({"exit_status": "exit_total_execution_time", "submission": ""}, [], True),
        ({"exit_status": "submitted", "submission": "flag{x}"}, None, False),
        ({}, None, None),
    ],
)  # fmt: skip
def test_what_was_handed_in_is_a_patch_an_empty_one_or_not_known(
    info: dict[str, Any], patch: list[str] | None, timed_out: bool | None
) -> None:
    _, part = read(document([step("ls")], info=info))
    assert (part.patch if part.patch is None else [f.path for f in part.patch]) == patch
    assert (part.exit_status, part.timed_out) == (info.get("exit_status"), timed_out)


# -- hostile files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        document([step("ls")], replay_config="{not json"),
        document([step("ls")], replay_config=[1]),
        document([step("ls", state=[1])]),
        document([{"action": None, "observation": 5}]),
        document([step("ls")], [{"role": "assistant", "action": "ls", "tool_calls": [{"function": {"name": 3}}]}]),
        document([step("ls")], info={"model_stats": {"tokens_sent": 1e300, "instance_cost": "x"}, "submission": 4}),
        document([step("str_replace_editor")]),
        document([step("edit")]),
        document([step("x" * 60_000, "[File: " * 9_000)]),
        document([step("edit 1:1\n" + "\n" * 30_000, "1:\n" * 20_000)]),
    ],
)
def test_odd_values_cost_nothing_but_themselves(odd: dict[str, Any]) -> None:
    session, _ = read(odd)
    assert len(session.steps) == 1


CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval"


def corpus(folder: str) -> list[Path]:
    found = sorted((CORPUS / folder).rglob("*.traj"))
    if not found:
        pytest.skip("the corpus of eval runs is not here")
    return found


def test_the_corpus_of_runs_gives_the_figures_that_a_plain_count_gives() -> None:
    """Counted apart from this reader: entries and actions of the JSON, `git apply --numstat` of the submissions."""
    read_ = [read(p.read_bytes(), str(p)) for p in corpus("swe-agent-swebench")]
    calls = [c for s, _ in read_ for c in s.tool_calls]
    assert (len(read_), sum(len(s.steps) for s, _ in read_), len(calls)) == (11, 259, 252)
    assert sum(len(s.turns) for s, _ in read_) == 11
    names = [c.name for c in calls]
    assert [names.count(n) for n in ("str_replace_editor", "bash", "submit")] == [133, 97, 22]
    editor = [c for c in calls if c.name == "str_replace_editor"]
    assert [(c.class_, c.status) for c in editor].count(("edit", "ok")) == 50
    assert [(c.class_, c.status) for c in editor].count(("read", "ok")) == 75 - 15
    assert [(c.class_, c.status) for c in editor].count(("search", "ok")) == 15, "folders"
    assert [(c.class_, c.status) for c in editor].count(("read", "error")) == 8
    files = [f for _, p in read_ for f in p.patch or []]
    assert (len(files), sum(f.added for f in files), sum(f.removed for f in files)) == (16, 210, 44)
    assert (sum(p.input_tokens or 0 for _, p in read_), sum(p.output_tokens or 0 for _, p in read_)) == (
        3_366_717,
        11_738,
    )
    assert sum(p.cost_usd is not None for _, p in read_) == 4, "the others' models have no price"
    assert {p.task_id for _, p in read_} >= {"project-monai__monai-5416"}, "one id, however its files write it"


def test_the_edits_of_the_corpus_lie_where_the_submitted_patch_has_them() -> None:
    """Where one edit alone changed a file that was handed in, its lines are among the patch's."""
    checked = 0
    for path in corpus("swe-agent-swebench"):
        session, part = read(path.read_bytes(), str(path))
        for file in part.patch or []:
            edits = [e for e in session.edits if e.path == file.path]
            if len(edits) == 1 and file.op == "modify":
                (edit,) = edits
                assert edit.start_line is not None
                assert edit.end_line is not None
                assert any(n <= edit.start_line and edit.end_line < n + k for _, _, n, k in file.hunks), (path, edit)
                assert edit.added is not None
                assert edit.added >= file.added
                checked += 1
    assert checked == 6


def test_the_demonstrations_of_all_versions_are_read() -> None:
    read_ = [read(p.read_bytes(), str(p))[0] for p in corpus("swe-agent-demos")]
    calls = [c for s in read_ for c in s.tool_calls]
    assert (len(read_), sum(len(s.steps) for s in read_), len(calls)) == (19, 210, 210)
    names = [c.name for c in calls]
    assert [names.count(n) for n in ("edit", "create", "insert", "open", "submit", "find_file")] == [
        39,
        15,
        2,
        16,
        26,
        9,
    ]
    assert sum(c.error_class == "lint_failed" for c in calls) == 10
    assert sum(c.name == "submit" and c.status == "error" for c in calls) == 7, "wrong flags"
    edits = [e for s in read_ for e in s.edits if e.via == "edit_tool"]
    assert len(edits) == 39 + 15 + 2 - 10
    assert all(e.start_line is not None for e in edits)


def test_every_prompt_of_the_corpus_states_its_problem() -> None:
    for path in corpus("swe-agent-swebench"):
        session, _ = read(path.read_bytes(), str(path))
        assert session.title
        assert session.title in session.turns[0].text


def test_a_submission_read_here_is_read_alike_by_git(tmp_path: Path) -> None:
    for path in corpus("swe-agent-swebench")[:3]:
        _, part = read(path.read_bytes(), str(path))
        submission = json.loads(path.read_text("utf-8"))["info"]["submission"]
        told = subprocess.run(
            ["git", "apply", "--numstat", "-"],
            input=submission,
            text=True,
            capture_output=True,
            cwd=tmp_path,
            check=True,
        ).stdout
        counted = {m[3]: (int(m[1]), int(m[2])) for m in re.finditer(r"(\d+)\t(\d+)\t(.+)", told)}
        assert {f.path: (f.added, f.removed) for f in part.patch or []} == counted
