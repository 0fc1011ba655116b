"""An agent's work on disk and its traces: done once whatever interrupts it, read as sessions with calls and edits."""

from __future__ import annotations

from pathlib import Path

import agentsignals
import msgspec
import pytest
from agentsignals.errors import LabError
from agentsignals.store.query import rows

from agentsignals_lab.conditions import BASELINE
from agentsignals_lab.repo_agent.rows import RepoEpisodeRow, RepoStepRow
from agentsignals_lab.retry.retry_runs import Ran
from agentsignals_lab.runs import Run
from tests.conftest import read_files
from tests.repo_agent.scripted import (
    CALM,
    SOLVED,
    SUBMIT,
    TEST,
    Scripted,
    act,
    opened,
    replacing,
    worked,
)

ANSWERS = (act("read shop/basket.py"), SOLVED, SUBMIT)
CASE = "        self.assertEqual(basket.total(), 800)\n"


def interrupts(*_: int) -> None:
    raise KeyboardInterrupt


def content(folder: Path) -> dict[str, object]:
    """All that a run holds but how long tests took."""
    run = Run.read(folder)
    steps = [msgspec.structs.replace(row, wall_time_s=0.0) for row in run.table("repo_steps", RepoStepRow).rows]
    traces = {p.relative_to(folder).as_posix(): p.read_text("utf-8") for p in sorted(folder.rglob("traces/*/*.jsonl"))}
    return {"steps": steps, "episodes": run.table("repo_episodes", RepoEpisodeRow).rows, "traces": traces}


@pytest.mark.slow
def test_an_interrupted_run_that_goes_on_holds_what_a_whole_one_holds(tmp_path: Path) -> None:
    answers = (replacing("tests/test_basket.py", CASE, "        self.fail()\n"), TEST, *ANSWERS)
    with opened(tmp_path / "whole") as run:
        assert worked(run, Scripted(*answers), 2, BASELINE, CALM) == Ran(4, 4)
    with pytest.raises(KeyboardInterrupt), opened(tmp_path / "cut") as run:
        worked(run, Scripted(*answers), 2, BASELINE, CALM, progress=interrupts)
    assert len(Run.read(tmp_path / "cut").table("repo_episodes", RepoEpisodeRow).rows) == 1
    with opened(tmp_path / "cut") as run:
        writer = Scripted(*answers)
        assert worked(run, writer, 2, BASELINE, CALM) == Ran(4, 3)
        assert len(writer.told) == 15, "what was done is not asked again"
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


def test_steps_of_an_episode_that_was_cut_do_not_mix_with_its_second_run(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        worked(run, Scripted(act("list"), act("list"), SUBMIT))
        run.table("repo_episodes", RepoEpisodeRow).keep(lambda _: False)
    with opened(tmp_path) as run:
        worked(run, Scripted(SUBMIT))
        assert [row.action for row in run.table("repo_steps", RepoStepRow).rows] == ["submit"]


def test_two_conditions_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="Two conditions are called 'calm words'"):
        worked(opened(tmp_path), Scripted(), 1, CALM, CALM)


def test_hidden_tests_stand_in_no_line_but_the_last(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        worked(
            run,
            Scripted(
                TEST, replacing("shop/basket.py", "        self.items = {}\n", "        self.items = {} \n"), SUBMIT
            ),
        )
    (path,) = (tmp_path / "traces").rglob("*.jsonl")
    *before, last = path.read_text("utf-8").splitlines()
    assert "HiddenTest" in last
    assert not any("HiddenTest" in line or "reference_patch" in line for line in before)


def test_a_trace_is_a_session_with_calls_edits_patch_and_verdict(tmp_path: Path) -> None:
    answers = (
        act("read ../up"), "hm", act("read nothing.py"), replacing("shop/basket.py", "no such line\n", "x\n"),
        replacing("tests/test_basket.py", CASE, "        self.fail()\n"), TEST, SOLVED,
        act("write tests/new.py\n1\n2"), SUBMIT,
    )  # fmt: skip
    with opened(tmp_path) as run:
        worked(run, Scripted(*answers), 1, CALM)
    reading = read_files(list((tmp_path / "traces").rglob("*.jsonl")), tmp_path)
    (session,), (attempt,) = reading.sessions, reading.attempts
    assert [(c.name, c.class_, c.status, c.error_class, c.exit_code) for c in session.tool_calls] == [
        ("read", "read", "error", "permission", None),
        ("read", "read", "error", "not_found", None),
        ("replace", "edit", "error", "edit_mismatch", None),
        ("replace", "edit", "ok", None, None),
        ("test", "test", "error", "test_failed", 1),
        ("patch", "edit", "ok", None, None),
        ("write", "edit", "ok", None, None),
        ("submit", "other", "ok", None, None),
    ]
    assert [(e.path, e.op, e.start_line, e.end_line, e.added, e.removed, e.whole_file) for e in session.edits] == [
        ("tests/test_basket.py", "modify", 10, 10, 1, 1, False),
        ("shop/basket.py", "modify", 9, 12, 4, 1, False),
        ("tests/new.py", "create", 1, 2, 2, 0, True),
    ]
    assert [t.kind for t in session.turns] == ["prompt"]
    assert [e.text for e in session.events if e.kind == "harness"] == [
        "Nothing was done: there is no block fenced with ```action.\nSteps left: 7."
    ]
    assert (len(session.steps), session.steps[0].input_tokens, session.steps[0].output_tokens) == (9, 7, 3)
    assert attempt.patch is not None
    assert attempt.gold_patch is not None
    assert [f.path for f in attempt.patch] == ["shop/basket.py", "tests/new.py", "tests/test_basket.py"]
    assert [f.path for f in attempt.gold_patch] == ["shop/basket.py"]
    assert (attempt.reward, attempt.exit_status, attempt.knobs["tone"]) == (1.0, "submitted", "calm")
    assert attempt.ratings is not None
    assert attempt.ratings["tests_edited"] == ["tests/test_basket.py"]


def test_an_exit_code_of_zero_is_one(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        worked(run, Scripted(TEST, SUBMIT))
    reading = read_files(list((tmp_path / "traces").rglob("*.jsonl")), tmp_path)
    assert [(c.status, c.exit_code) for c in reading.sessions[0].tool_calls] == [("ok", 0), ("ok", None)]


def test_a_run_is_read_as_attempts_whose_signals_of_place_and_patch_are_known(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        worked(run, Scripted(act("read shop/basket.py"), TEST, SOLVED, TEST, SUBMIT), 1, BASELINE, CALM)
    store = agentsignals.analyze(tmp_path / "run", store=tmp_path / "store")
    _, found = rows(store, "SELECT attempt_index, reward, is_last FROM attempts")
    assert found == [(0, 1.0, True)] * 2
    wanted = {
        "behavior.edit_calls": "1",
        "behavior.localized_correct_file": "true",
        "verification.patch_applies": "true",
        "verification.patch_outcome_label": '"correct_patch"',
        "verification.patch_present": "true",
    }
    _, found = rows(store, "SELECT DISTINCT signal, value FROM signals WHERE value IS NOT NULL")
    assert {name: value for name, value in found if name in wanted} == wanted


def test_episodes_of_another_evaluator_are_not_gone_on_with(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        worked(run, Scripted(SUBMIT))
        table = run.table("repo_episodes", RepoEpisodeRow)
        (row,) = table.rows
        table.keep(lambda _: False)
        table.add([msgspec.structs.replace(row, evaluator="1")])
        with pytest.raises(LabError, match="judged by evaluator 1, and would now be by 2"):
            worked(run, Scripted(SUBMIT), 2)
