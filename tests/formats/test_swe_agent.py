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


# -- steps and calls ---------------------------------------------------------------------------------------------------


# -- edits -------------------------------------------------------------------------------------------------------------


# -- the attempt -------------------------------------------------------------------------------------------------------


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
