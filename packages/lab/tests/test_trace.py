"""A retry loop on disk and its traces: done once whatever interrupts it, and read as attempts of trials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import agentsignals
import pytest
from agentsignals.errors import LabError
from agentsignals.store.query import rows

from agentsignals_lab import coding_tasks
from agentsignals_lab.coding_tasks import cases
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.report import write_logs
from agentsignals_lab.residual import Generation, Message, Sampling
from agentsignals_lab.retry_loop import AttemptRow, EpisodeRow, Plan
from agentsignals_lab.retry_runs import Ran, run_loop
from agentsignals_lab.runs import Config, Manifest, Run
from agentsignals_lab.texts import Wording
from tests.conftest import read_files
from tests.test_retry import Scripted, fenced

TASK = coding_tasks.task("parse_duration")
WRONG = fenced("def parse_duration(text):\n    return 1 if text else 2\n")
CONFIG = Config("retry_loop", {})
MANIFEST = Manifest(
    model={"name": "made-up"},
    evaluator="1",
    texts="0123",
    sandbox="default",
    seed=13,
    packages={},
    started_at="2026-11-20T00:00:00Z",
)
CALM = Condition(name="calm words", tone="calm")


class Dying(Scripted):
    """Answers so often, then is interrupted."""

    def __init__(self, times: int, *answers: str) -> None:
        super().__init__(*answers)
        self.times = times

    def answer(self, chat: Sequence[Message], sampling: Sampling) -> Generation:
        self.times -= 1
        if self.times < 0:
            raise KeyboardInterrupt
        return super().answer(chat, sampling)


def opened(folder: Path) -> Run:
    return Run.open(folder, CONFIG, MANIFEST)


def looped(run: Run, writer: Scripted, samples: int = 1, *conditions: Condition) -> Ran:
    plan = Plan(wording=Wording(), attempts=2)
    return run_loop(run, writer, plan, conditions or (BASELINE,), [TASK], samples)


def content(folder: Path) -> dict[str, object]:
    """All that a run holds but how long the code took."""
    run = Run.read(folder)
    attempts = [{**json_of(row), "wall_time_s": 0} for row in run.table("attempts", AttemptRow).rows]
    episodes = [json_of(row) for row in run.table("episodes", EpisodeRow).rows]
    traces = {p.relative_to(folder).as_posix(): p.read_text("utf-8") for p in sorted(folder.rglob("traces/*/*.jsonl"))}
    return {"attempts": attempts, "episodes": episodes, "traces": traces}


def json_of(row: AttemptRow | EpisodeRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


@pytest.mark.slow
def test_an_interrupted_run_that_goes_on_holds_what_a_whole_one_holds(tmp_path: Path) -> None:
    with opened(tmp_path / "whole") as run:
        assert looped(run, Scripted(WRONG, fenced(TASK.reference)), 3, BASELINE, CALM) == Ran(6, 6)
    with pytest.raises(KeyboardInterrupt), opened(tmp_path / "cut") as run:
        looped(run, Dying(10, WRONG, fenced(TASK.reference)), 3, BASELINE, CALM)
    kept = len(Run.read(tmp_path / "cut").table("episodes", EpisodeRow).rows)
    assert 0 < kept < 6
    with opened(tmp_path / "cut") as run:
        writer = Scripted(WRONG, fenced(TASK.reference))
        assert looped(run, writer, 3, BASELINE, CALM) == Ran(6, 6 - kept)
        assert len(writer.told) == 2 * (6 - kept), "what was done is not asked again"
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


def test_attempts_of_an_episode_that_was_cut_do_not_mix_with_its_second_run(tmp_path: Path) -> None:
    """A server's second answers are others: two attempts of the first time would stand beside one of the second."""
    with opened(tmp_path) as run:
        looped(run, Scripted(WRONG, WRONG))
        run.table("episodes", EpisodeRow).rewrite([])
    with opened(tmp_path) as run:
        looped(run, Scripted(fenced(TASK.reference)))
        assert [row.full_pass for row in run.table("attempts", AttemptRow).rows] == [True]
    assert len(Run.read(tmp_path).table("attempts", AttemptRow).rows) == 1


@pytest.mark.slow
def test_rows_that_are_taken_away_are_gone_from_disk(tmp_path: Path) -> None:
    run = opened(tmp_path)
    looped(run, Scripted(WRONG, WRONG), 2)
    attempts = run.table("attempts", AttemptRow)
    attempts.rewrite([row for row in attempts.rows if row.sample == 1])
    assert [row.sample for row in Run.read(tmp_path).table("attempts", AttemptRow).rows] == [1, 1]


def test_passing_what_is_shown_alone_is_no_reward(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        looped(run, Scripted(fenced(cases.hardcoded(TASK))))
    reading = read_files(list((tmp_path / "traces").rglob("*.jsonl")), tmp_path)
    (one,) = reading.attempts
    assert (one.reward, one.rewards) == (0.0, {"visible": 1.0, "hidden": 0.0, "task": 0.0})
    assert one.ratings is not None
    assert one.ratings["hardcoded"] is True
    assert one.verification is not None
    assert (one.verification.passed, one.verification.failed) == (["visible cases"], ["hidden cases"])


@pytest.mark.parametrize("name", ["../../up", "/etc/x", "..", ".", "a/b", "a\0b"])
def test_no_name_of_a_condition_leaves_the_folder(name: str, tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        looped(run, Scripted(fenced(TASK.reference)), 1, Condition(name=name))
    (trace,) = (tmp_path / "run" / "traces").rglob("*.jsonl")
    assert trace.parent.parent == tmp_path / "run" / "traces"
    assert {p.name for p in tmp_path.iterdir()} == {"run"}


def test_a_trace_says_what_was_asked_and_nothing_of_hidden_cases(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        looped(run, Scripted(WRONG, WRONG), 1, CALM)
    (path,) = (tmp_path / "traces").rglob("*.jsonl")
    header, *records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert header["agentsignals_lab"] == 1
    assert header["condition"]["tone"] == "calm"
    assert header["task"]["key"] == TASK.key
    assert [next(iter(record)) for record in records] == [
        "message", "message", "message", "attempt", "message", "message", "attempt", "final",
    ]  # fmt: skip
    told = path.read_text("utf-8")
    assert not any(repr(case.args[0]) in told for case in TASK.hidden if case.args[0] and case not in TASK.visible)


def test_each_attempt_is_a_session_with_its_treatment_and_verdict(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        looped(run, Scripted(WRONG, fenced(TASK.reference)), 1, CALM)
    paths = list((tmp_path / "traces").rglob("*.jsonl"))
    reading = read_files(paths, tmp_path)
    first, second = reading.sessions
    assert [s.context for s in reading.sessions] == ["eval", "eval"]
    assert [t.text.splitlines()[0] for t in first.turns] == [
        "Write the Python function `parse_duration(text: str) -> int`."
    ]
    assert "Attempts left: 1" in second.turns[0].text
    assert (first.steps[0].input_tokens, first.steps[0].output_tokens) == (5, 2)
    one, two = reading.attempts
    assert (one.trial_id, one.attempt_index, two.attempt_index) == (two.trial_id, 0, 1)
    assert (one.reward, two.reward) == (0.0, 1.0)
    assert one.rewards == {"visible": 0.0, "hidden": 0.0, "task": 0.0}
    assert one.verification is not None
    assert one.verification.message.startswith("expected 200")
    assert (one.knobs["condition"], one.knobs["tone"], one.knobs["model_id"]) == ("calm words", "calm", "made-up")
    assert one.patch is None


def test_a_loop_is_a_log_of_inspect_for_each_condition(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        looped(run, Scripted(WRONG, fenced(TASK.reference)), 2, BASELINE, Condition(name="../calm", tone="calm"))
        with (
            pytest.raises(LabError, match="no finished episode"),
            Run.open(tmp_path / "none", CONFIG, MANIFEST) as none,
        ):
            write_logs(none, tmp_path / "logs")
        paths = write_logs(run, tmp_path / "logs")
    assert sorted(p.name for p in (tmp_path / "logs").iterdir()) == sorted(p.name for p in paths)
    assert [p.parent for p in paths] == [tmp_path / "logs"] * 2
    reading = read_files(paths, tmp_path)
    assert [s.format for s in reading.sessions] == ["inspect"] * 4
    assert [(a.reward, a.rewards) for a in reading.attempts] == [
        (1.0, {"full_pass": 1.0, "visible_pass": 1.0, "hidden_pass": 1.0, "hardcoded": 0.0})
    ] * 4
    one = reading.attempts[0]
    assert (one.knobs["condition"], one.knobs["epoch"], one.input_tokens, one.output_tokens) == ("../calm", 1, 10, 4)
    with (
        pytest.raises(LabError, match="not of a retry loop"),
        Run.open(tmp_path / "g", Config("grid", {}), MANIFEST) as other,
    ):
        write_logs(other, tmp_path / "logs")


@pytest.mark.slow
def test_a_run_is_read_as_attempts_that_recovery_is_counted_over(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        looped(run, Scripted(WRONG, fenced(TASK.reference)), 2, BASELINE, CALM)
    store = agentsignals.analyze(tmp_path / "run", store=tmp_path / "store")
    _, found = rows(
        store, "SELECT attempt_index, count(*), sum(reward), min(is_last) FROM attempts GROUP BY 1 ORDER BY 1"
    )
    assert found == [(0, 4, 0.0, False), (1, 4, 4.0, True)]
